// For tests of this room: small fabrics, and an oracle that finds shortest paths the plain way.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.hpp"
#include "model/fabric/state.hpp"
#include "model/formats/test_fabric.hpp"
#include "route/router.hpp"

namespace weft::route::testing {

using model::FabricBuilder;
using model::Health;
using model::NodeKind;
using model::State;

using model::testing::link;
using model::testing::make_fabric;
using model::testing::node;

inline Router make_router(const Fabric& fabric, const RoutingConfig& config,
                          std::uint64_t seed = 1) {
  auto router = Router::create(fabric, config, seed);
  REQUIRE_MESSAGE(router.has_value(), (router ? "" : router.error().text()));
  return *std::move(router);
}

inline void set_health(State& state, LinkId link, Health health) {
  state.set(link, {.health = health});
  state.set(reverse(link), {.health = health});
}

using Path = std::vector<LinkId>;

inline Path links_of(const std::vector<Hop>& hops) {
  Path path;
  for (const Hop& hop : hops) path.push_back(hop.link);
  return path;
}

// The path of one stream; empty when there is none.
inline Path path_of(Router& router, const Stream& stream) {
  std::vector<Hop> hops;
  router.append_path(stream, hops);
  return links_of(hops);
}

inline std::string names(const Fabric& fabric, const Path& path) {
  std::string text;
  for (const LinkId l : path) text += (text.empty() ? "" : " ") + fabric.name(l);
  return text;
}

// Builds a fabric from switches "s:i" and NICs.
class NetBuilder {
 public:
  NodeId add_switch(std::string_view role = "s") {
    return builder_.add_node({NodeKind::fabric_switch, role, ScopeId{}});
  }
  NodeId add_nic() { return builder_.add_node({NodeKind::nic, "nic", ScopeId{}}); }
  void cable(NodeId a, NodeId b, Rate rate = 400_Gbps) {
    builder_.add_circuit(a, b, {rate, 500_ns});
  }
  Fabric freeze() { return builder_.freeze(); }

 private:
  using ScopeId = model::ScopeId;
  FabricBuilder builder_;
};

// Switches joined at random (also in parallel, also not at all), NICs with one to three ports.
inline Fabric random_fabric(Rng& rng) {
  NetBuilder net;
  std::vector<NodeId> switches, nics;
  const std::size_t switch_count = 2 + rng.below(7);
  for (std::size_t i = 0; i < switch_count; ++i) switches.push_back(net.add_switch());
  const auto any_switch = [&] { return switches[rng.below(switch_count)]; };
  const auto any_rate = [&] { return rng.below(2) == 0 ? 400_Gbps : 100_Gbps; };
  for (int i = 0; i < 5; ++i) nics.push_back(net.add_nic());
  for (const NodeId nic : nics)
    for (std::uint64_t ports = 1 + rng.below(3); ports > 0; --ports)
      net.cable(nic, any_switch(), any_rate());
  if (rng.below(4) == 0) net.cable(nics[0], nics[1]);
  for (std::uint64_t cables = rng.below(3 * switch_count); cables > 0; --cables) {
    const NodeId a = any_switch(), b = any_switch();
    if (a != b) net.cable(a, b, any_rate());
  }
  return net.freeze();
}

inline State random_state(const Fabric& fabric, Rng& rng) {
  State state;
  for (const LinkId l : fabric.links()) {
    const std::uint64_t draw = rng.below(16);
    if (draw == 0) state.set(l, {.health = Health::down});
    if (draw == 1) state.set(l, {.health = Health::draining});
    if (draw == 2) state.set(l, {.rate_factor = 0.5});
  }
  for (const NodeId n : fabric.nodes()) {
    if (!fabric.is_switch(n)) continue;
    const std::uint64_t draw = rng.below(16);
    if (draw == 0) state.set(n, {.health = Health::down});
    if (draw == 1) state.set(n, {.health = Health::draining});
  }
  return state;
}

// Shortest paths by relaxation until nothing changes; a length is (draining links, links).
class Oracle {
 public:
  using Length = std::pair<int, int>;
  static constexpr Length none{1'000'000, 0};

  Oracle(const Fabric& fabric, const State& state) : fabric_(fabric), live_(fabric, state) {}

  // The links by which a shortest path from each node to `dst` goes on; by node.
  std::map<NodeId, std::vector<LinkId>> next_hops(NodeId dst) const {
    const std::map<NodeId, Length> length = lengths(dst);
    std::map<NodeId, std::vector<LinkId>> next;
    for (const LinkId l : fabric_.links()) {
      const NodeId from = fabric_.from(l), to = fabric_.to(l);
      if (from == dst || !passes(l, dst) || length.at(to) == none) continue;
      if (plus(length.at(to), l) == length.at(from)) next[from].push_back(l);
    }
    return next;
  }

  // All shortest paths, by enumeration.
  std::vector<Path> paths(NodeId src, NodeId dst) const {
    std::vector<Path> found;
    Path path;
    extend(src, dst, next_hops(dst), path, found);
    return found;
  }

  const model::LiveView& live() const { return live_; }

 private:
  bool passes(LinkId l, NodeId dst) const {
    return live_.usable(l) && (fabric_.to(l) == dst || fabric_.is_switch(fabric_.to(l)));
  }
  Length plus(Length rest, LinkId l) const {
    return {rest.first + (live_.health[l.index()] == Health::draining ? 1 : 0), rest.second + 1};
  }
  std::map<NodeId, Length> lengths(NodeId dst) const {
    std::map<NodeId, Length> length;
    for (const NodeId n : fabric_.nodes()) length[n] = n == dst ? Length{0, 0} : none;
    for (bool changed = true; changed;) {
      changed = false;
      for (const LinkId l : fabric_.links()) {
        if (!passes(l, dst) || length[fabric_.to(l)] == none) continue;
        const Length longer = plus(length[fabric_.to(l)], l);
        if (longer >= length[fabric_.from(l)]) continue;
        length[fabric_.from(l)] = longer;
        changed = true;
      }
    }
    return length;
  }
  void extend(NodeId at, NodeId dst, const std::map<NodeId, std::vector<LinkId>>& next, Path& path,
              std::vector<Path>& found) const {
    if (at == dst) {
      found.push_back(path);
      return;
    }
    const auto choices = next.find(at);
    if (choices == next.end()) return;
    for (const LinkId l : choices->second) {
      path.push_back(l);
      extend(fabric_.to(l), dst, next, path, found);
      path.pop_back();
    }
  }

  const Fabric& fabric_;
  model::LiveView live_;
};

}  // namespace weft::route::testing
