#include "operate/validate/rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/check.hpp"
#include "base/id.hpp"

namespace weft::operate::validate {
namespace {

using model::cable_of;
using model::CableId;
using model::Fabric;
using model::LinkId;
using model::NodeId;
using model::reverse;

constexpr std::uint32_t rounds_max = 1000;

// How many cables a switch stands above the back-end NICs; 0: it does not.
class Tiers {
 public:
  explicit Tiers(const Fabric& fabric) : fabric_(fabric), tier_(fabric.node_count(), 0) {
    std::vector<NodeId> queue;
    const auto visit = [&](NodeId from, LinkId link) {
      const NodeId to = fabric.to(link);
      if (!fabric.is_switch(to) || tier_[to] != 0) return;
      tier_[to] = tier_[from] + 1;
      queue.push_back(to);
    };
    for (const NodeId nic : fabric.nics())
      for (const LinkId link : fabric.out(nic)) visit(nic, link);
    for (std::size_t i = 0; i < queue.size(); ++i)
      for (const LinkId link : fabric.out(queue[i])) visit(queue[i], link);
    switches_ = std::move(queue);
  }

  std::span<const NodeId> switches() const { return switches_; }  // by tier
  std::uint32_t of(NodeId node) const { return tier_[node]; }
  bool is_up(LinkId link) const {
    return fabric_.is_switch(fabric_.to(link)) &&
           tier_[fabric_.to(link)] == tier_[fabric_.from(link)] + 1 &&
           (tier_[fabric_.from(link)] > 0 ||
            fabric_.kind(fabric_.from(link)) == model::NodeKind::nic);
  }

 private:
  const Fabric& fabric_;
  Column<NodeId, std::uint32_t> tier_;
  std::vector<NodeId> switches_;
};

// A NIC that has come up to a switch: it sends from there and receives there.
struct Slot {
  NodeId nic;
  std::vector<LinkId> up;  // from the NIC to the switch
};

class Planner {
 public:
  // Switches begin with the same uplinks, so that those who go up meet others there; staggered,
  // with different ones, which is better where few NICs are idle.
  Planner(const Fabric& fabric, const RoundOptions& options, bool is_staggered)
      : fabric_(fabric),
        options_(options),
        is_staggered_(is_staggered),
        live_(fabric, options.state),
        tiers_(fabric),
        count_(fabric.link_count(), 0),
        slots_(fabric.node_count()),
        nics_below_(fabric.node_count(), 0) {
    for (const NodeId nic : fabric.nics()) {
      const NodeId host = fabric.host_of(nic);
      if (!host.valid() || !is_idle(host)) continue;
      for (const LinkId link : fabric.out(nic))
        if (may_cross(link)) nic_links_.push_back(link);
    }
    // Hosts in turn, so that those who stay below come from several.
    const auto place = [&](LinkId link) {
      const NodeId nic = fabric_.from(link);
      return nic.value - fabric_.nics_of(fabric_.host_of(nic)).front().value;
    };
    std::ranges::stable_sort(nic_links_, {}, place);
    find_targets();
  }

  Result<Rounds> plan() {
    if (targets_.empty())
      return fail(Errc::infeasible, {}, "no two idle NICs have a live switch between them",
                  "free more hosts, or repair their cables");
    constexpr std::uint32_t patience = 8;  // rounds without gain
    std::uint32_t idle_rounds = 0;
    for (; out_.count < rounds_max && idle_rounds < patience && is_open(); ++out_.count) {
      gained_ = false;
      run_round();
      idle_rounds = gained_ ? 0 : idle_rounds + 1;
    }
    if (idle_rounds > 0) drop_rounds(idle_rounds);
    if (out_.flows.empty())
      return fail(Errc::infeasible, {}, "no idle NIC finds another above it",
                  "plans need two hosts under one switch, or switches in tiers above the NICs; a "
                  "torus or Dragonfly has none");
    account();
    return std::move(out_);
  }

 private:
  bool is_idle(NodeId host) const {
    const std::uint32_t index = fabric_.role_index(host);
    return index < options_.is_idle.size() && options_.is_idle[index];
  }
  bool is_reserved(LinkId link) const {
    const std::size_t cable = cable_of(link).index();
    return cable < options_.is_reserved.size() && options_.is_reserved[cable];
  }
  bool may_cross(LinkId link) const {
    return tiers_.is_up(link) && live_.usable(link) && live_.usable(reverse(link)) &&
           !is_reserved(link);
  }
  std::vector<LinkId> uplinks(NodeId node) const {
    std::vector<LinkId> out;
    for (const LinkId link : fabric_.out(node))
      if (may_cross(link)) out.push_back(link);
    return out;
  }

  // Up links that some idle NIC can reach; what no plan can do faster.
  void find_targets() {
    for (const LinkId link : nic_links_) add_target(link);
    out_.least = options_.crossings;
    for (const NodeId node : tiers_.switches()) {
      if (nics_below_[node] == 0) continue;
      const std::vector<LinkId> up = uplinks(node);
      if (up.empty()) continue;
      const std::size_t at_once = std::min<std::size_t>(up.size(), nics_below_[node]);
      out_.least = std::max(
          out_.least,
          static_cast<std::uint32_t>((options_.crossings * up.size() + at_once - 1) / at_once));
      for (const LinkId link : up) add_target(link);
    }
  }
  void add_target(LinkId link) {
    targets_.push_back(link);
    ++nics_below_[fabric_.to(link)];
  }

  std::uint32_t crossed(LinkId link) const { return std::min(count_[link], count_[reverse(link)]); }
  bool is_open() const {
    return std::ranges::any_of(targets_,
                               [&](LinkId link) { return crossed(link) < options_.crossings; });
  }

  void run_round() {
    for (const LinkId link : nic_links_)
      slots_[fabric_.to(link)].push_back({fabric_.from(link), {link}});
    for (const NodeId node : tiers_.switches()) {
      std::vector<Slot> slots = std::exchange(slots_[node], {});
      if (!slots.empty()) serve(node, slots);
    }
  }

  // Some go up, by the uplinks crossed least; the others send to each other.
  void serve(NodeId node, std::vector<Slot>& slots) {
    std::vector<LinkId> up = uplinks(node);
    std::size_t going = std::min(up.size(), slots.size());
    const bool is_first = tiers_.of(node) == 1;
    // Above the first tier they are needed below only until those uplinks are done.
    if (!is_first &&
        std::ranges::none_of(up, [&](LinkId l) { return crossed(l) < options_.crossings; }))
      going = 0;
    if (slots.size() - going == 1 && going > 1 && !is_first) --going;  // one alone has no partner
    const std::size_t turn = out_.count;
    if (!up.empty()) {
      const std::size_t offset = 5 * turn + (is_staggered_ ? node.value : 0);
      std::ranges::rotate(up, up.begin() + static_cast<std::ptrdiff_t>(offset % up.size()));
      std::ranges::stable_sort(up, {}, [&](LinkId link) { return crossed(link); });
    }
    const auto first = static_cast<std::ptrdiff_t>((3 * turn + going * turn) % slots.size());
    std::ranges::rotate(slots, slots.begin() + first);
    for (std::size_t i = 0; i < going; ++i) {
      slots[i].up.push_back(up[i]);
      slots_[fabric_.to(up[i])].push_back(std::move(slots[i]));
    }
    slots.erase(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(going));
    pair_up(node, slots);
  }

  // What a pair must differ in, so that its shortest path turns here and no lower.
  NodeId below(const Slot& slot) const {
    const NodeId node = fabric_.from(slot.up.back());
    return slot.up.size() == 1 ? fabric_.host_of(node) : node;
  }

  // A cyclic shift: each slot sends once and receives once. Sorted by what is below, any shift from
  // the largest group's size on joins different ones.
  void pair_up(NodeId node, std::vector<Slot>& slots) {
    const std::size_t n = slots.size();
    if (n < 2) return;
    std::ranges::stable_sort(slots, {}, [&](const Slot& s) { return below(s); });
    std::size_t largest = 0;
    for (std::size_t i = 0, first = 0; i < n; ++i) {
      if (below(slots[i]) != below(slots[first])) first = i;
      largest = std::max(largest, i - first + 1);
    }
    const std::size_t spread = 2 * largest <= n ? n - 2 * largest + 1 : 1;
    const std::size_t first = std::min(largest, n / 2);
    const std::size_t shift = first + (node.value * 11 + out_.count * 37) % spread;
    for (std::size_t i = 0; i < n; ++i) {
      const Slot &from = slots[i], &to = slots[(i + shift) % n];
      if (below(from) != below(to)) add(from, to);
    }
  }

  void add(const Slot& from, const Slot& to) {
    Flow flow{.round = out_.count, .src = from.nic, .dst = to.nic};
    flow.path_first = static_cast<std::uint32_t>(out_.links.size());
    const auto cross = [&](LinkId link) {
      gained_ = gained_ || count_[link] < options_.crossings;
      ++count_[link];
      out_.links.push_back(link);
    };
    for (const LinkId link : from.up) cross(link);
    for (auto link = to.up.rbegin(); link != to.up.rend(); ++link) cross(reverse(*link));
    flow.path_size = static_cast<std::uint16_t>(out_.links.size() - flow.path_first);
    out_.flows.push_back(flow);
  }

  void drop_rounds(std::uint32_t rounds) {
    out_.count -= rounds;
    while (!out_.flows.empty() && out_.flows.back().round >= out_.count) {
      for (const LinkId link : out_.path(out_.flows.back())) --count_[link];
      out_.links.resize(out_.flows.back().path_first);
      out_.flows.pop_back();
    }
  }

  // Of all links between NICs and switches in tiers.
  void account() {
    std::vector<bool> is_target(fabric_.cable_count(), false);
    for (const LinkId link : targets_) is_target[cable_of(link).index()] = true;
    for (const LinkId link : fabric_.links()) {
      const LinkId up = tiers_.is_up(link) ? link : reverse(link);
      if (!tiers_.is_up(up)) continue;
      if (count_[link] >= options_.crossings) {
        ++out_.covered;
        continue;
      }
      const bool is_live = live_.usable(up) && live_.usable(reverse(up));
      const Gap why = !is_live                          ? Gap::down
                      : is_reserved(up)                 ? Gap::reserved
                      : is_target[cable_of(up).index()] ? Gap::no_partner
                                                        : Gap::no_idle_host;
      out_.uncovered.push_back({link, why, count_[link]});
    }
  }

  const Fabric& fabric_;
  const RoundOptions& options_;
  const bool is_staggered_;
  model::LiveView live_;
  Tiers tiers_;
  Column<LinkId, std::uint32_t> count_;       // crossings
  Column<NodeId, std::vector<Slot>> slots_;   // of the round
  Column<NodeId, std::uint32_t> nics_below_;  // that may come up to a switch at once
  std::vector<LinkId> nic_links_, targets_;   // up
  bool gained_ = false;
  Rounds out_;
};

}  // namespace

std::string_view to_text(Gap gap) {
  constexpr std::array<std::string_view, 4> names{"down", "reserved", "no_idle_host", "no_partner"};
  return names[static_cast<std::size_t>(gap)];
}

double planned_gbps(const Fabric& fabric, std::span<const LinkId> path) {
  const auto rate = [&](LinkId link) { return fabric.rate(link).bps; };
  return static_cast<double>(rate(std::ranges::min(path, {}, rate))) / 1e9;
}

Result<Rounds> plan_rounds(const Fabric& fabric, const RoundOptions& options) {
  WEFT_TRY(Rounds aligned, Planner(fabric, options, false).plan());
  if (aligned.count == aligned.least) return aligned;
  WEFT_TRY(Rounds staggered, Planner(fabric, options, true).plan());
  const auto cost = [](const Rounds& r) { return std::pair(r.uncovered.size(), r.count); };
  return cost(staggered) < cost(aligned) ? std::move(staggered) : std::move(aligned);
}

std::vector<bool> cables_of_job(const Fabric& fabric, std::span<const NodeId> hosts) {
  const Tiers tiers(fabric);
  std::vector<bool> out(fabric.cable_count(), false);
  std::map<NodeId, std::set<NodeId>> below;  // NICs of the job under a switch
  std::set<NodeId> all;
  const auto reserve = [&](LinkId link, const std::set<NodeId>& nics) {
    out[cable_of(link).index()] = true;
    below[fabric.to(link)].insert(nics.begin(), nics.end());
  };
  for (const NodeId host : hosts)
    for (const NodeId nic : fabric.nics_of(host)) {
      all.insert(nic);
      for (const LinkId link : fabric.out(nic))
        if (tiers.is_up(link)) reserve(link, {nic});
    }
  // Where not all of them meet, the others are reached over any uplink.
  for (const NodeId node : tiers.switches()) {
    const auto here = below.find(node);
    if (here == below.end() || here->second.size() == all.size()) continue;
    for (const LinkId link : fabric.out(node))
      if (tiers.is_up(link)) reserve(link, here->second);
  }
  return out;
}

std::size_t choose_ports(route::Router& router, Rounds& rounds) {
  constexpr std::uint16_t roce_port = 4791, first = 49152;
  constexpr std::uint32_t tries = 4096;
  std::size_t failed = 0;
  route::Path path;
  for (Flow& flow : rounds.flows) {
    const auto wanted = rounds.path(flow);
    for (std::uint32_t i = 0; i < tries && flow.source_port == 0; ++i) {
      path.clear();
      const auto port = static_cast<std::uint16_t>(first + i);
      if (!router.append_udp_path(flow.src, flow.dst, {port, roce_port}, path)) break;
      if (std::ranges::equal(path, wanted)) flow.source_port = port;
    }
    failed += flow.source_port == 0 ? 1 : 0;
  }
  return failed;
}

}  // namespace weft::operate::validate
