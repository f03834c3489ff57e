// Shortest-path next hops at every node, for any goal, found on demand. Internal to the room.
#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/id.hpp"
#include "route/choices.hpp"
#include "route/live_links.hpp"

namespace weft::route {

using SwitchId = Id<struct SwitchTag>;  // fabric switches in node order
using GroupId = Id<struct GroupTag>;
using TargetId = Id<struct TargetTag>;

// The length of a path: draining links first, then links called dear, then links. Packed into one
// word so that lengths add and compare; no carry, as a path has fewer links than Cost can count.
using Cost = std::uint64_t;
inline constexpr Cost cost_link = 1;
inline constexpr Cost cost_dear = Cost{1} << 21;
inline constexpr Cost cost_draining = Cost{1} << 42;
inline constexpr Cost cost_unreachable = UINT64_MAX;
inline constexpr std::size_t switch_count_max = (1u << 21) - 2;

// Where paths lead: a NIC, a switch, or any one of several switches (node not valid).
struct Goal {
  NodeId node;
  TargetId target;
};

enum class Weighting : std::uint8_t { equal, capacity };

// All shortest paths of a fabric under its live state, where only switches pass traffic on.
//
// Let S be the switches that a goal hangs on. The distance of any other node is that to the nearest
// neighbour of S, plus the last links. So goals whose switches have the same neighbours at the same
// distances share one field of distances, found by one search: all racks of a pod make one group.
// This holds on any graph; regular fabrics have few groups.
//
// With Weighting::capacity a next hop weighs min(link, what its far end can send on), where a
// switch can send on the sum over its own next hops; the links of the goal's own NIC are left out
// of the minimum, as all paths share them. That is the max flow where the downstream of different
// next hops does not overlap, and an over-estimate where it does.
//
// Cost: O(switch links * log switches) per group, O(ports of the goal's switches) per target,
// O(ports) per first use of a next-hop list, then a few loads.
class NextHops {
 public:
  // `live` must outlive this. `dear` marks links that paths avoid as if they were long (by LinkId;
  // empty: none). `noticed`, where given, is what each node knows of its own links beside that: it
  // must outlive this, too.
  NextHops(const Fabric& fabric, const LiveLinks& live, Weighting weighting,
           std::vector<bool> dear = {}, const LiveLinks* noticed = nullptr);

  // To be called after `live` has changed. Goals become invalid. Distances that still hold are
  // kept.
  void on_change(std::span<const LinkChange> changes);
  // Drops everything when the cache has grown beyond its bound. Goals become invalid then.
  void trim();

  bool is_switch(NodeId node) const { return rows_[node].id.valid(); }
  // `node`: a NIC or a fabric switch.
  Goal goal(NodeId node);
  Goal goal_any(std::span<const NodeId> switches);
  bool reached(NodeId at, const Goal& goal) const {
    return goal.node.valid() ? at == goal.node : reached_any(at, goal);
  }
  // The live links by which a shortest path leaves `at` (a NIC where the path starts, or a switch)
  // for the goal; empty when there is none. `at` has not reached the goal. Those that `at` has
  // noticed to be down are left out, unless they are all that it has a route over.
  Choices next(NodeId at, const Goal& goal) {
    const Choices routed = routed_next(at, goal);
    return noticed_ == nullptr ? routed : without_dead(routed);
  }
  // Whether that path has only the links to the goal itself left after `at`'s neighbour.
  bool arrives(NodeId at, const Goal& goal) const;
  // The switch at which all paths to the goal arrive, or an invalid id when there are several.
  NodeId only_arrival(const Goal& goal) const;

 private:
  // A list in an arena; count `unknown` before first use, `at_goal` for a neighbour of the goal's
  // switches, where `first` is the position in the group's key.
  struct Range {
    static constexpr std::uint32_t unknown = UINT32_MAX, at_goal = UINT32_MAX - 1;
    std::uint32_t first = 0, count = unknown;
  };
  struct Neighbour {
    SwitchId at;
    Cost cost;      // of the links to the goal, relative to the group's least
    double weight;  // capacity of those links; 0 unless weighted
    friend bool operator==(const Neighbour&, const Neighbour&) = default;
  };
  using GroupKey = std::vector<Neighbour>;
  struct Group {
    GroupKey key;  // by switch
    Column<SwitchId, Cost> distance;
    Column<SwitchId, Range> hops;
    Column<SwitchId, double> weight;  // what a switch can send on; empty unless weighted
    std::vector<LinkId> links;
    std::vector<double> cumulative;
  };
  // A switch that a goal hangs on, and the cost of the rest, relative to the least.
  struct Member {
    SwitchId at;
    Cost cost;
    friend bool operator==(const Member&, const Member&) = default;
  };
  using TargetKey = std::vector<Member>;
  struct Target {
    GroupId group;
    Cost base = 0;                           // least cost of any neighbour
    std::vector<Member> arrivals;            // where the path goes on to the goal directly
    std::vector<std::uint32_t> entry_first;  // by position in the group's key
    std::vector<LinkId> entry_links;
    std::vector<double> entry_cumulative;
  };
  // A link from a neighbour to a member.
  struct Entry {
    SwitchId from;
    Cost cost;
    LinkId link;
  };
  // What a walk asks of a node, together: walks over large fabrics wait for memory.
  struct NodeRow {
    SwitchId id;             // of a switch
    SwitchId uplink_switch;  // at the other end of `uplink`
    LinkId uplink;           // of a NIC whose only link to switches and NICs leads to a switch
    TargetId target;         // where it was a goal
  };
  struct Hash {
    std::size_t operator()(const GroupKey& key) const;
    std::size_t operator()(const TargetKey& key) const;
  };

  Cost cost(LinkId link) const {
    return cost_link + (live_.draining(link) ? cost_draining : 0) +
           (!dear_.empty() && dear_[link.index()] ? cost_dear : 0);
  }
  std::span<const LinkId> switch_links(SwitchId at) const {
    return {switch_link_.data() + switch_first_[at.index()],
            switch_link_.data() + switch_first_[at.index() + 1]};
  }
  SwitchId neighbour(LinkId link) const { return rows_[fabric_.to(link)].id; }

  TargetId target_of(TargetKey key);
  Target make_target(const TargetKey& key);
  std::vector<Entry> entries_of(const TargetKey& key) const;
  GroupKey add_entries(std::vector<Entry>& entries, Target& target) const;
  GroupId group_of(GroupKey key);
  void search(Group& group) const;
  void weigh(Group& group) const;
  Range find_hops(Group& group, SwitchId at);
  static std::size_t words_of(const Group& group);
  bool on_shortest(const Group& group, SwitchId at, LinkId link) const;
  bool still_holds(Group& group, std::span<const SwitchId> touched) const;
  bool reached_any(NodeId at, const Goal& goal) const;
  void note_uplink(NodeId nic);
  Choices uplink_to(const NodeRow& nic, const Goal& goal) const;
  Cost distance(SwitchId at, const Target& target) const;
  const Member* arrival(SwitchId at, const Target& target) const;
  Cost last_cost(NodeId nic) const;
  Choices routed_next(NodeId at, const Goal& goal);
  Choices without_dead(const Choices& routed);
  Choices first_links(NodeId nic, const Goal& goal);
  Choices last_links(NodeId at, NodeId goal);
  void clear_scratch();
  void add_scratch(LinkId link, Cost cost, double weight);
  void forget_targets();

  const Fabric& fabric_;
  const LiveLinks& live_;
  const LiveLinks* noticed_;
  Weighting weighting_;
  std::vector<bool> dear_;
  Column<NodeId, NodeRow> rows_;
  Column<SwitchId, NodeId> node_of_;
  std::vector<std::uint32_t> switch_first_;
  std::vector<LinkId> switch_link_;  // links between switches, by sender

  Column<TargetId, Target> targets_;
  std::unordered_map<TargetKey, TargetId, Hash> target_ids_;  // never iterated
  std::vector<Group> groups_;
  std::unordered_map<GroupKey, GroupId, Hash> group_ids_;  // never iterated
  std::size_t words_ = 0;                                  // of groups and targets, 8 bytes each

  // Links of least cost so far, for choices that are made for one call.
  std::vector<LinkId> scratch_links_;
  std::vector<double> scratch_cumulative_;
  Cost scratch_cost_ = cost_unreachable;
  LinkId last_link_;                 // what last_links() returned of a NIC's only link
  std::vector<LinkId> alive_links_;  // what without_dead() returned
  std::vector<double> alive_cumulative_;
};

}  // namespace weft::route
