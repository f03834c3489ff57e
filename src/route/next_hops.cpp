#include "route/next_hops.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <queue>

#include "base/check.hpp"
#include "base/hash.hpp"

namespace weft::route {
namespace {

constexpr std::size_t cache_words_max = 48u << 20;  // 384 MiB, reached on irregular fabrics only

}  // namespace

std::size_t NextHops::Hash::operator()(const GroupKey& key) const {
  Digest digest;
  for (const Neighbour& n : key) {
    digest.add(n.cost << 21 ^ n.at.value);
    digest.add(std::bit_cast<std::uint64_t>(n.weight));
  }
  return digest.value();
}

std::size_t NextHops::Hash::operator()(const TargetKey& key) const {
  Digest digest;
  for (const Member& m : key) digest.add(m.cost << 21 ^ m.at.value);
  return digest.value();
}

NextHops::NextHops(const Fabric& fabric, const LiveLinks& live, Weighting weighting,
                   std::vector<bool> dear, const LiveLinks* noticed)
    : fabric_(fabric),
      live_(live),
      noticed_(noticed),
      weighting_(weighting),
      dear_(std::move(dear)),
      rows_(fabric.node_count()) {
  for (const NodeId node : fabric.nodes())
    if (fabric.is_switch(node)) rows_[node].id = node_of_.push_back(node);
  for (const NodeId node : fabric.nodes())
    if (fabric.kind(node) == model::NodeKind::nic) note_uplink(node);
  WEFT_CHECK(node_of_.size() <= switch_count_max);
  switch_first_.push_back(0);
  for (const NodeId node : node_of_) {
    for (const LinkId link : fabric.out(node))
      if (is_switch(fabric.to(link))) switch_link_.push_back(link);
    switch_first_.push_back(static_cast<std::uint32_t>(switch_link_.size()));
  }
}

// Its links to GPUs and PCIe switches lead to no goal.
void NextHops::note_uplink(NodeId nic) {
  LinkId uplink;
  for (const LinkId link : fabric_.out(nic)) {
    if (!is_switch(fabric_.to(link)) && fabric_.kind(fabric_.to(link)) != model::NodeKind::nic)
      continue;
    if (uplink.valid()) return;
    uplink = link;
  }
  if (!uplink.valid() || !neighbour(uplink).valid()) return;
  rows_[nic].uplink = uplink;
  rows_[nic].uplink_switch = neighbour(uplink);
}

void NextHops::forget_targets() {
  if (targets_.empty()) return;
  for (const NodeId node : fabric_.nodes()) rows_[node].target = {};
  targets_ = {};
  target_ids_.clear();
}

void NextHops::trim() {
  if (words_ <= cache_words_max) return;
  forget_targets();
  groups_.clear();
  group_ids_.clear();
  words_ = 0;
}

void NextHops::on_change(std::span<const LinkChange> changes) {
  forget_targets();
  std::vector<SwitchId> touched;
  for (const LinkChange& change : changes) {
    const SwitchId from = rows_[fabric_.from(change.link)].id;
    const bool matters =
        weighting_ == Weighting::capacity || change.old_health != live_.health(change.link);
    if (matters && from.valid() && neighbour(change.link).valid()) touched.push_back(from);
  }
  std::vector<Group> kept;
  words_ = 0;
  for (Group& group : groups_) {
    if (!still_holds(group, touched)) continue;
    words_ += words_of(group);
    kept.push_back(std::move(group));
  }
  groups_ = std::move(kept);
  group_ids_.clear();
  for (std::size_t i = 0; i < groups_.size(); ++i) group_ids_[groups_[i].key] = GroupId(i);
  WEFT_CHECK(group_ids_.size() == groups_.size());
}

std::size_t NextHops::words_of(const Group& group) {
  return 32 + group.key.size() * 6 + group.distance.size() * 2 + group.weight.size() +
         group.links.size() / 2 + group.cumulative.size();
}

// Distances are the one solution of distance = min(cost + distance of neighbour), as costs are
// positive. Where it still holds at all senders of changed links, only their lists may be stale.
bool NextHops::still_holds(Group& group, std::span<const SwitchId> touched) const {
  if (weighting_ == Weighting::capacity) return touched.empty();
  for (const SwitchId at : touched) {
    Cost best = cost_unreachable;
    const auto entry = std::ranges::lower_bound(group.key, at, {}, &Neighbour::at);
    if (entry != group.key.end() && entry->at == at) best = entry->cost;
    for (const LinkId link : switch_links(at)) {
      const Cost rest = group.distance[neighbour(link)];
      if (live_.usable(link) && rest != cost_unreachable) best = std::min(best, cost(link) + rest);
    }
    if (best != group.distance[at]) return false;
    if (group.hops[at].count != Range::at_goal) group.hops[at] = {};
  }
  return true;
}

Goal NextHops::goal(NodeId node) {
  TargetId& known = rows_[node].target;
  if (known.valid()) return {node, known};
  TargetKey key;
  if (is_switch(node)) {
    key.push_back({rows_[node].id, 0});
  } else {
    for (const LinkId link : fabric_.out(node))
      if (neighbour(link).valid() && live_.usable(reverse(link)))
        key.push_back({neighbour(link), cost(reverse(link))});
    std::ranges::sort(key, {}, [](const Member& m) { return std::pair(m.at, m.cost); });
    const auto repeats = std::ranges::unique(key, {}, &Member::at);
    key.erase(repeats.begin(), repeats.end());
    Cost least = cost_unreachable;
    for (const Member& member : key) least = std::min(least, member.cost);
    for (Member& member : key) member.cost -= least;
  }
  known = target_of(std::move(key));
  return {node, known};
}

Goal NextHops::goal_any(std::span<const NodeId> switches) {
  TargetKey key;
  for (const NodeId node : switches) key.push_back({rows_[node].id, 0});
  std::ranges::sort(key, {}, &Member::at);
  return {NodeId{}, target_of(std::move(key))};
}

TargetId NextHops::target_of(TargetKey key) {
  const auto known = target_ids_.find(key);
  if (known != target_ids_.end()) return known->second;
  const TargetId id = targets_.push_back(make_target(key));
  target_ids_.emplace(std::move(key), id);
  return id;
}

NextHops::Target NextHops::make_target(const TargetKey& key) {
  Target target;
  std::vector<Entry> entries = entries_of(key);
  target.group = group_of(add_entries(entries, target));
  const Group& group = groups_[target.group.index()];
  for (const Member& member : key) {
    const Cost around = group.distance[member.at];
    if (around == cost_unreachable || member.cost <= target.base + around)
      target.arrivals.push_back(member);
  }
  words_ += 24 + key.size() * 4 + target.entry_first.size() + target.entry_links.size();
  return target;
}

std::vector<NextHops::Entry> NextHops::entries_of(const TargetKey& key) const {
  std::vector<Entry> entries;
  for (const Member& member : key)
    for (const LinkId out : switch_links(member.at)) {
      const LinkId in = reverse(out);
      if (live_.usable(in)) entries.push_back({neighbour(out), cost(in) + member.cost, in});
    }
  std::ranges::sort(entries, {}, [](const Entry& e) { return std::tuple(e.from, e.cost, e.link); });
  return entries;
}

// Keeps the cheapest links of each neighbour. `entries` are sorted.
NextHops::GroupKey NextHops::add_entries(std::vector<Entry>& entries, Target& target) const {
  GroupKey key;
  for (const Entry& entry : entries) {
    if (key.empty() || key.back().at != entry.from) {
      key.push_back({entry.from, entry.cost, 0});
      target.entry_first.push_back(static_cast<std::uint32_t>(target.entry_links.size()));
    }
    if (entry.cost != key.back().cost) continue;
    target.entry_links.push_back(entry.link);
    if (weighting_ == Weighting::equal) continue;
    key.back().weight += live_.bytes_per_s(entry.link);
    target.entry_cumulative.push_back(key.back().weight);
  }
  target.entry_first.push_back(static_cast<std::uint32_t>(target.entry_links.size()));
  WEFT_CHECK(target.entry_first.size() == key.size() + 1);
  if (key.empty()) return key;
  target.base = std::ranges::min(key, {}, &Neighbour::cost).cost;
  for (Neighbour& neighbour : key) neighbour.cost -= target.base;
  return key;
}

GroupId NextHops::group_of(GroupKey key) {
  const auto known = group_ids_.find(key);
  if (known != group_ids_.end()) return known->second;
  const GroupId id(groups_.size());
  group_ids_.emplace(key, id);
  Group& group = groups_.emplace_back();
  group.key = std::move(key);
  search(group);
  if (weighting_ == Weighting::capacity) weigh(group);
  words_ += words_of(group);
  return id;
}

// Dijkstra's search against the direction of the links, from all neighbours of the goal at once.
void NextHops::search(Group& group) const {
  using Item = std::pair<Cost, SwitchId>;
  std::priority_queue<Item, std::vector<Item>, std::greater<>> queue;
  group.distance.assign(node_of_.size(), cost_unreachable);
  group.hops.assign(node_of_.size(), {});
  const auto reach = [&](SwitchId at, Cost distance) {
    if (distance >= group.distance[at]) return;
    group.distance[at] = distance;
    queue.push({distance, at});
  };
  for (const Neighbour& neighbour : group.key) reach(neighbour.at, neighbour.cost);
  while (!queue.empty()) {
    const auto [done, at] = queue.top();
    queue.pop();
    WEFT_CHECK(done >= group.distance[at]);
    if (done != group.distance[at]) continue;
    for (const LinkId out : switch_links(at))
      if (live_.usable(reverse(out))) reach(neighbour(out), done + cost(reverse(out)));
  }
  for (std::uint32_t i = 0; i < group.key.size(); ++i) {
    const Neighbour& neighbour = group.key[i];
    if (group.distance[neighbour.at] == neighbour.cost)
      group.hops[neighbour.at] = {i, Range::at_goal};
  }
}

void NextHops::weigh(Group& group) const {
  std::vector<SwitchId> order;
  for (const SwitchId at : ids<SwitchId>(node_of_.size()))
    if (group.distance[at] != cost_unreachable) order.push_back(at);
  std::ranges::sort(order, {}, [&](SwitchId at) { return std::pair(group.distance[at], at); });
  group.weight.assign(node_of_.size(), 0);
  for (const SwitchId at : order) {
    if (group.hops[at].count == Range::at_goal) {
      group.weight[at] = group.key[group.hops[at].first].weight;
      continue;
    }
    for (const LinkId link : switch_links(at))
      if (live_.usable(link) && on_shortest(group, at, link))
        group.weight[at] += std::min(live_.bytes_per_s(link), group.weight[neighbour(link)]);
  }
}

bool NextHops::on_shortest(const Group& group, SwitchId at, LinkId link) const {
  const Cost rest = group.distance[neighbour(link)];
  return rest != cost_unreachable && cost(link) + rest == group.distance[at];
}

NextHops::Range NextHops::find_hops(Group& group, SwitchId at) {
  Range range{static_cast<std::uint32_t>(group.links.size()), 0};
  double sum = 0;
  for (const LinkId link : switch_links(at)) {
    if (!live_.usable(link) || !on_shortest(group, at, link)) continue;
    group.links.push_back(link);
    ++range.count;
    if (weighting_ == Weighting::equal) continue;
    sum += std::min(live_.bytes_per_s(link), group.weight[neighbour(link)]);
    group.cumulative.push_back(sum);
  }
  words_ += weighting_ == Weighting::capacity ? 2 * range.count : (range.count + 1) / 2;
  return group.hops[at] = range;
}

const NextHops::Member* NextHops::arrival(SwitchId at, const Target& target) const {
  if (target.arrivals.size() == 1)  // most often: a NIC hangs on one switch
    return target.arrivals.front().at == at ? &target.arrivals.front() : nullptr;
  const auto it = std::ranges::lower_bound(target.arrivals, at, {}, &Member::at);
  return it != target.arrivals.end() && it->at == at ? &*it : nullptr;
}

bool NextHops::reached_any(NodeId at, const Goal& goal) const {
  return is_switch(at) && arrival(rows_[at].id, targets_[goal.target]) != nullptr;
}

bool NextHops::arrives(NodeId at, const Goal& goal) const {
  if (!is_switch(at)) return false;
  const SwitchId here = rows_[at].id;
  const Target& target = targets_[goal.target];
  return arrival(here, target) != nullptr ||
         groups_[target.group.index()].hops[here].count == Range::at_goal;
}

NodeId NextHops::only_arrival(const Goal& goal) const {
  const Target& target = targets_[goal.target];
  return target.arrivals.size() == 1 ? node_of_[target.arrivals.front().at] : NodeId{};
}

Cost NextHops::distance(SwitchId at, const Target& target) const {
  if (const Member* member = arrival(at, target)) return member->cost;
  const Cost rest = groups_[target.group.index()].distance[at];
  return rest == cost_unreachable ? rest : target.base + rest;
}

Choices NextHops::without_dead(const Choices& routed) {
  const auto dead = [&](LinkId link) { return !noticed_->usable(link); };
  if (std::ranges::none_of(routed.links, dead)) return routed;
  alive_links_.clear();
  alive_cumulative_.clear();
  for (std::size_t i = 0; i < routed.links.size(); ++i) {
    if (!noticed_->usable(routed.links[i])) continue;
    alive_links_.push_back(routed.links[i]);
    if (routed.cumulative.empty()) continue;
    const double weight = routed.cumulative[i] - (i == 0 ? 0 : routed.cumulative[i - 1]);
    alive_cumulative_.push_back(weight +
                                (alive_cumulative_.empty() ? 0 : alive_cumulative_.back()));
  }
  return alive_links_.empty() ? routed : Choices{alive_links_, alive_cumulative_};
}

Choices NextHops::routed_next(NodeId at, const Goal& goal) {
  const SwitchId here = rows_[at].id;
  if (!here.valid()) return first_links(at, goal);
  const Target& target = targets_[goal.target];
  if (arrival(here, target) != nullptr) return last_links(at, goal.node);
  Group& group = groups_[target.group.index()];
  Range range = group.hops[here];
  if (range.count == Range::unknown) range = find_hops(group, here);
  const auto pick = [&](std::uint32_t first, std::uint32_t count, std::span<const LinkId> links,
                        std::span<const double> cumulative) -> Choices {
    if (cumulative.empty()) return {links.subspan(first, count)};
    return {links.subspan(first, count), cumulative.subspan(first, count)};
  };
  if (range.count != Range::at_goal)
    return pick(range.first, range.count, group.links, group.cumulative);
  const std::uint32_t first = target.entry_first[range.first];
  return pick(first, target.entry_first[range.first + 1] - first, target.entry_links,
              target.entry_cumulative);
}

// Of the links into a goal that is a NIC, the cheapest; they were left out of relative distances.
Cost NextHops::last_cost(NodeId goal) const {
  Cost least = 0;
  if (!goal.valid() || is_switch(goal)) return least;
  least = cost_unreachable;
  for (const LinkId link : fabric_.out(goal))
    if (neighbour(link).valid() && live_.usable(reverse(link)))
      least = std::min(least, cost(reverse(link)));
  return least;
}

// As first_links() would find, weights apart: there is nothing to choose from.
Choices NextHops::uplink_to(const NodeRow& nic, const Goal& goal) const {
  const bool leads_there = node_of_[nic.uplink_switch] == goal.node ||
                           distance(nic.uplink_switch, targets_[goal.target]) != cost_unreachable;
  return leads_there && live_.usable(nic.uplink) ? Choices{{&nic.uplink, 1}} : Choices{};
}

Choices NextHops::first_links(NodeId nic, const Goal& goal) {
  if (const NodeRow& row = rows_[nic]; row.uplink.valid() && weighting_ == Weighting::equal)
    return uplink_to(row, goal);
  const Target& target = targets_[goal.target];
  const Group& group = groups_[target.group.index()];
  const Cost last = last_cost(goal.node);
  clear_scratch();
  for (const LinkId link : fabric_.out(nic)) {
    if (!live_.usable(link)) continue;
    const SwitchId next = neighbour(link);
    if (fabric_.to(link) == goal.node) {
      add_scratch(link, cost(link), live_.bytes_per_s(link));
    } else if (next.valid() && last != cost_unreachable) {
      const Cost rest = distance(next, target);
      const bool passes = !group.weight.empty() && arrival(next, target) == nullptr;
      const double behind = passes ? group.weight[next] : std::numeric_limits<double>::infinity();
      if (rest != cost_unreachable)
        add_scratch(link, cost(link) + rest + last, std::min(live_.bytes_per_s(link), behind));
    }
  }
  return {scratch_links_, scratch_cumulative_};
}

Choices NextHops::last_links(NodeId at, NodeId goal) {
  if (const NodeRow& row = rows_[goal]; row.uplink.valid() && weighting_ == Weighting::equal) {
    last_link_ = reverse(row.uplink);
    const bool leads_there = row.uplink_switch == rows_[at].id && live_.usable(last_link_);
    return leads_there ? Choices{{&last_link_, 1}} : Choices{};
  }
  clear_scratch();
  for (const LinkId out : fabric_.out(goal)) {
    const LinkId link = reverse(out);
    if (fabric_.to(out) == at && live_.usable(link))
      add_scratch(link, cost(link), live_.bytes_per_s(link));
  }
  return {scratch_links_, scratch_cumulative_};
}

void NextHops::clear_scratch() {
  scratch_links_.clear();
  scratch_cumulative_.clear();
  scratch_cost_ = cost_unreachable;
}

void NextHops::add_scratch(LinkId link, Cost cost, double weight) {
  if (cost > scratch_cost_) return;
  if (cost < scratch_cost_) {
    clear_scratch();
    scratch_cost_ = cost;
  }
  scratch_links_.push_back(link);
  if (weighting_ == Weighting::equal) return;
  scratch_cumulative_.push_back(weight +
                                (scratch_cumulative_.empty() ? 0 : scratch_cumulative_.back()));
}

}  // namespace weft::route
