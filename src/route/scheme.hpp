// What a routing scheme is, and the registry of them. Internal to the room.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.hpp"
#include "base/result.hpp"
#include "route/hash.hpp"
#include "route/next_hops.hpp"
#include "route/pools.hpp"
#include "route/router.hpp"

namespace weft::route {

// Chooses among next hops as the switches of one run would.
class Hasher {
 public:
  Hasher(const Fabric& fabric, const RoutingConfig& config, std::uint64_t seed)
      : fabric_(fabric),
        function_(*find_hash(config.hash)),
        seed_(mix64(seed ^ hash_text("route"))),
        equal_seeds_(config.same_hash_seed),
        addresses_(addresses_of(fabric)) {}

  std::uint64_t digest(const Stream& stream, QpField qp) const {
    return function_.digest(
        header_between(addresses_[stream.src], addresses_[stream.dst], stream.qp), qp);
  }
  std::uint64_t digest(NodeId src, NodeId dst, const UdpPorts& ports) const {
    return function_.digest(header_of(fabric_, src, dst, ports), QpField::ignored);
  }
  // `choices` must not be empty. Weighted choices by where the hash falls on their running sums.
  LinkId choose(NodeId at, std::uint64_t digest, const Choices& choices) const {
    const std::size_t count = choices.links.size();
    if (count == 1) return choices.links[0];
    const std::uint64_t bits = function_.at_switch(digest, seed_of(at));
    if (choices.cumulative.empty()) return choices.links[scale(bits, count)];
    const double mark = static_cast<double>(bits >> 11) * 0x1p-53 * choices.cumulative.back();
    const auto above = std::ranges::upper_bound(choices.cumulative, mark);
    const auto index = static_cast<std::size_t>(above - choices.cumulative.begin());
    return choices.links[std::min(index, count - 1)];
  }

 private:
  // NICs choose their port in software, each in its own way even where switches hash alike.
  std::uint64_t seed_of(NodeId at) const {
    return equal_seeds_ && fabric_.is_switch(at) ? seed_ : mix64(seed_ ^ at.value);
  }

  const Fabric& fabric_;
  const HashFunction& function_;
  std::uint64_t seed_;
  bool equal_seeds_;
  Column<NodeId, std::uint32_t> addresses_;
};

// What a scheme works with; owned by the router and stable in memory.
struct Parts {
  const Fabric& fabric;
  const RoutingConfig& config;
  const LiveLinks& live;     // as routes have it
  const LiveLinks* noticed;  // by each switch, of its own links; null: they are as `live`
  NextHops& next_hops;
  Pools& pools;
  Hasher hasher;
  bool counts = true;  // whether a path that is asked for is going to carry the stream
};

class Scheme {
 public:
  virtual ~Scheme() = default;
  // Appends the hops of one leg, between two ends that differ (NIC or switch; `stream` names the
  // ends of the whole path and gives the entropy). False when there is no live path; what was
  // appended by then is taken back by the caller.
  virtual bool append_leg(const Stream& stream, NodeId from, NodeId to, std::vector<Hop>& out) = 0;
  // Appends the links that append_leg could use for some stream, repeats allowed.
  virtual void append_usable_leg(NodeId from, NodeId to, std::vector<LinkId>& out) = 0;
  // Appends a minimal path and a detour, as the digest picks. Only for schemes with detours.
  virtual void append_ways(std::uint64_t /*digest*/, NodeId /*from*/, NodeId /*to*/,
                           std::vector<Hop>& /*minimal*/, std::vector<Hop>& /*detour*/) {}
  // Whether one leg may cross a link twice.
  virtual bool may_repeat() const { return false; }
  virtual void on_change(std::span<const LinkChange>) {}
  // For schemes with a controller: flows that may be under way together, and the state of the
  // fabric now, of which the controller has seen().
  virtual void declare(std::span<const NicDemand>) {}
  virtual void on_sight(const model::State& /*state*/) {}
  // In words, what the controller did; empty without one.
  virtual std::string report() const { return {}; }
  // Drops caches; called when those of NextHops may go.
  virtual void trim() {}
};

struct SchemeRow {
  std::string_view name;
  QpField qp;  // whether streams of one connection differ by QP
  SchemeEngine engine;
  Result<std::unique_ptr<Scheme>> (*make)(Parts& parts);
};
// nullptr for an unknown name.
const SchemeRow* find_scheme(std::string_view name);

// One per file; scheme.cpp names them.
Result<std::unique_ptr<Scheme>> make_ecmp(Parts& parts);
Result<std::unique_ptr<Scheme>> make_e_ecmp(Parts& parts);
Result<std::unique_ptr<Scheme>> make_te(Parts& parts);
Result<std::unique_ptr<Scheme>> make_pinned(Parts& parts);
Result<std::unique_ptr<Scheme>> make_spray(Parts& parts);
Result<std::unique_ptr<Scheme>> make_optimal(Parts& parts);
Result<std::unique_ptr<Scheme>> make_minimal(Parts& parts);
Result<std::unique_ptr<Scheme>> make_valiant(Parts& parts);
Result<std::unique_ptr<Scheme>> make_ugal(Parts& parts);
Result<std::unique_ptr<Scheme>> make_ugal_g(Parts& parts);

// Walks from `from` to the goal, one link at a time; `choose(at, choices)` says which. Returns
// where it arrived, or an invalid id when there is no path.
template <class Choose>
NodeId walk(const Fabric& fabric, NextHops& next_hops, NodeId from, const Goal& goal, Choose choose,
            std::vector<Hop>& out) {
  NodeId at = from;
  while (!next_hops.reached(at, goal)) {
    const Choices choices = next_hops.next(at, goal);
    if (choices.links.empty()) return NodeId{};
    const LinkId link = choose(at, choices);
    out.push_back({link, 1});
    at = fabric.to(link);
  }
  return at;
}

}  // namespace weft::route
