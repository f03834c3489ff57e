#include "route/assign.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.hpp"

namespace weft::route {
namespace {

// Relative: costs that differ by less are rounding.
constexpr double slack = 1e-9;
// The search ends this close to the bound: no measurement of a network tells the difference.
constexpr double close_enough = 1.0005;
// What was placed by weight and is further off is placed by count too, and the better one kept.
constexpr double far_off = 1.07;
// How many flows may push each other in a row, and how often that is tried, per flow of all.
constexpr std::uint32_t pushes_max = 1;
constexpr std::size_t effort_per_flow = 8;
constexpr double infinite = std::numeric_limits<double>::infinity();

}  // namespace

Assignment::Assignment(std::uint32_t racks, std::uint32_t spines) : racks_(racks), spines_(spines) {
  const std::size_t slots = std::size_t{2} * racks * spines;
  head_.assign(slots, none);
  count_.assign(slots, 0);
  load_.assign(slots, 0);
  capacity_.assign(slots, 1);
  while (leaves_ < slots) leaves_ *= 2;
  tree_.assign(2 * leaves_, 0);
}

std::uint32_t Assignment::add(const Flow& flow) {
  WEFT_CHECK(flow.from < racks_ && flow.to < racks_ && flow.from != flow.to && flow.weight > 0);
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(flows_.size()));
    flows_.emplace_back();
    spine_.push_back(none);
    used_.push_back(false);
    chain_of_.push_back(0);
    for (const Side side : {up, down}) {
      next_[side].push_back(none);
      prev_[side].push_back(none);
    }
  }
  const std::uint32_t id = free_.back();
  free_.pop_back();
  flows_[id] = flow;
  used_[id] = true;
  return id;
}

void Assignment::remove(std::uint32_t flow) {
  WEFT_CHECK(used_[flow]);
  if (spine_[flow] != none) take(flow);
  used_[flow] = false;
  free_.push_back(flow);
}

bool Assignment::assume(std::uint32_t flow, std::uint32_t spine) {
  WEFT_CHECK(used_[flow] && spine_[flow] == none && spine < spines_);
  if (!open(flow, spine)) return false;
  put(flow, spine);
  return true;
}

std::uint32_t Assignment::divide(std::uint32_t flow) {
  WEFT_CHECK(used_[flow]);
  const std::uint32_t spine = spine_[flow];
  if (spine != none) take(flow);
  flows_[flow].weight /= 2;
  if (spine != none) put(flow, spine);
  return add(Flow(flows_[flow]));
}

void Assignment::set_capacity(std::uint32_t rack, std::uint32_t spine, double up_capacity,
                              double down_capacity) {
  for (const Side side : {up, down}) {
    const std::size_t at = slot(side, rack, spine);
    capacity_[at] = side == up ? up_capacity : down_capacity;
    while (capacity_[at] <= 0 && head_[at] != none) take(head_[at]);
    refresh(at);
  }
}

void Assignment::link(Side side, std::uint32_t flow) {
  const std::size_t at = slot_of(side, flow, spine_[flow]);
  prev_[side][flow] = none;
  next_[side][flow] = head_[at];
  if (head_[at] != none) prev_[side][head_[at]] = flow;
  head_[at] = flow;
  ++count_[at];
  load_[at] += flows_[flow].weight;
  refresh(at);
}

void Assignment::unlink(Side side, std::uint32_t flow) {
  const std::size_t at = slot_of(side, flow, spine_[flow]);
  const std::uint32_t before = prev_[side][flow], after = next_[side][flow];
  (before == none ? head_[at] : next_[side][before]) = after;
  if (after != none) prev_[side][after] = before;
  --count_[at];
  // Rounding does not build up: an empty link carries nothing.
  load_[at] = count_[at] == 0 ? 0 : load_[at] - flows_[flow].weight;
  refresh(at);
}

void Assignment::refresh(std::size_t slot) {
  double cost = capacity_[slot] > 0 ? load_[slot] / capacity_[slot] : 0;
  for (std::size_t i = leaves_ + slot; i >= 1; i /= 2) {
    if (i < leaves_) cost = std::max(tree_[2 * i], tree_[2 * i + 1]);
    if (tree_[i] == cost) return;
    tree_[i] = cost;
  }
}

void Assignment::put(std::uint32_t flow, std::uint32_t spine) {
  spine_[flow] = spine;
  for (const Side side : {up, down}) link(side, flow);
}

void Assignment::take(std::uint32_t flow) {
  for (const Side side : {up, down}) unlink(side, flow);
  spine_[flow] = none;
}

// As put and take do, and can be taken back.
void Assignment::move(std::uint32_t flow, std::uint32_t spine) {
  undo_.push_back({flow, spine_[flow]});
  if (spine_[flow] != none) take(flow);
  if (spine != none) put(flow, spine);
}

void Assignment::take_back(std::size_t mark) {
  for (; undo_.size() > mark; undo_.pop_back()) {
    const auto [flow, spine] = undo_.back();
    if (spine_[flow] != none) take(flow);
    if (spine != none) put(flow, spine);
  }
}

double Assignment::cost_on(std::uint32_t flow, std::uint32_t spine) const {
  if (!open(flow, spine)) return infinite;
  const double weight = flows_[flow].weight;
  return std::max(cost_with(slot_of(up, flow, spine), weight),
                  cost_with(slot_of(down, flow, spine), weight));
}

// On the spine with the least cost of the worse link, then of both; nowhere without a live path.
void Assignment::put_least(std::uint32_t flow) {
  std::uint32_t best = none;
  double best_cost = infinite, best_sum = infinite;
  for (std::uint32_t p = 0; p < spines_; ++p) {
    const double cost = cost_on(flow, p);
    if (cost == infinite || cost > best_cost) continue;
    const double sum = load_[slot_of(up, flow, p)] + load_[slot_of(down, flow, p)];
    if (cost == best_cost && sum >= best_sum) continue;
    best = p;
    best_cost = cost;
    best_sum = sum;
  }
  if (best != none) put(flow, best);
}

bool Assignment::all_equal() const {
  double weight = 0, width = 0;
  for (std::size_t f = 0; f < flows_.size(); ++f) {
    if (!used_[f]) continue;
    if (weight > 0 && flows_[f].weight != weight) return false;
    weight = flows_[f].weight;
  }
  for (const double capacity : capacity_) {
    if (capacity <= 0) continue;
    if (width > 0 && capacity != width) return false;
    width = capacity;
  }
  return true;
}

double Assignment::cost_of(std::uint32_t flow) const {
  if (spine_[flow] == none) return 0;
  return std::max(cost_with(slot_of(up, flow, spine_[flow]), 0),
                  cost_with(slot_of(down, flow, spine_[flow]), 0));
}

// 0: without a live path.
double Assignment::widest(std::uint32_t flow) const {
  double out = 0;
  for (std::uint32_t p = 0; p < spines_; ++p)
    out =
        std::max(out, std::min(capacity_[slot_of(up, flow, p)], capacity_[slot_of(down, flow, p)]));
  return out;
}

double Assignment::floor() const {
  std::vector<double> weight(std::size_t{2} * racks_, 0);
  for (std::uint32_t f = 0; f < flows_.size(); ++f) {
    if (!used_[f] || widest(f) <= 0) continue;  // counted by solve() as without a path
    for (const Side side : {up, down})
      weight[std::size_t{side} * racks_ + rack(side, f)] += flows_[f].weight;
  }
  double out = 0;
  for (std::size_t r = 0; r < weight.size(); ++r) {
    double sum = 0;
    for (std::uint32_t p = 0; p < spines_; ++p) sum += capacity_[r * spines_ + p];
    if (weight[r] > 0) out = std::max(out, weight[r] / sum);
  }
  return out;
}

double Assignment::bound() const {
  double bound = floor();
  for (std::uint32_t f = 0; f < flows_.size(); ++f)
    if (const double width = used_[f] ? widest(f) : 0; width > 0)
      bound = std::max(bound, flows_[f].weight / width);
  if (bound <= 0 || !all_equal()) return bound;
  const double one = whole_flows();
  return std::ceil(bound / one * (1 - slack)) * one;
}

// The cost of one flow where all flows and live links are equal.
double Assignment::whole_flows() const {
  const auto flow = std::ranges::find(used_, true) - used_.begin();
  return flows_[static_cast<std::size_t>(flow)].weight / std::ranges::max(capacity_);
}

// A spine with room at both ends for one more of at most k flows: the emptiest.
std::uint32_t Assignment::free_pair(std::uint32_t flow, std::uint32_t k) const {
  std::uint32_t best = none, least_sum = none;
  for (std::uint32_t p = 0; p < spines_; ++p) {
    const std::uint32_t a = count_[slot_of(up, flow, p)], b = count_[slot_of(down, flow, p)];
    if (a >= k || b >= k || a + b >= least_sum || !open(flow, p)) continue;
    best = p;
    least_sum = a + b;
  }
  return best;
}

// A flow of the link that this chain has not moved yet and that can cross `to`; one that ends the
// chain, where there is one.
std::uint32_t Assignment::next_in_chain(Side side, std::uint32_t rack, std::uint32_t from,
                                        std::uint32_t to, std::uint32_t k) const {
  const Side far = side == up ? down : up;
  std::uint32_t found = none;
  for (std::uint32_t f = head_[slot(side, rack, from)]; f != none; f = next_[side][f]) {
    if (chain_of_[f] == chains_ || !open(f, to)) continue;
    if (count_[slot_of(far, f, to)] < k) return f;
    found = f;
  }
  return found;
}

// Puts the flow on `first`, which is full at its destination; a flow there moves to `second`, which
// may be full at its source; one there moves to `first`, and so on.
bool Assignment::chain(std::uint32_t flow, std::uint32_t first, std::uint32_t second,
                       std::uint32_t k) {
  ++chains_;
  undo_.clear();
  move(flow, first);
  chain_of_[flow] = chains_;
  Side side = down;
  std::uint32_t at = flows_[flow].to;
  for (std::uint32_t from = first, to = second; count_[slot(side, at, from)] > k;) {
    const std::uint32_t next = next_in_chain(side, at, from, to, k);
    if (next == none) {
      take_back(0);
      return false;
    }
    chain_of_[next] = chains_;
    move(next, to);
    side = side == up ? down : up;
    at = rack(side, next);
    std::swap(from, to);
  }
  return true;
}

bool Assignment::place_by_chain(std::uint32_t flow, std::uint32_t k) {
  for (std::uint32_t first = 0; first < spines_; ++first) {
    if (!open(flow, first) || count_[slot_of(up, flow, first)] >= k) continue;
    for (std::uint32_t second = 0; second < spines_; ++second)
      if (capacity_[slot_of(down, flow, second)] > 0 && count_[slot_of(down, flow, second)] < k &&
          chain(flow, first, second, k))
        return true;
  }
  return false;
}

// The fewest flows that the fullest link can have: those of a rack, each way, over its live links.
std::uint32_t Assignment::least_count() const {
  std::vector<std::uint32_t> flows(std::size_t{2} * racks_, 0);
  for (std::uint32_t f = 0; f < flows_.size(); ++f)
    if (used_[f])
      for (const Side side : {up, down}) ++flows[std::size_t{side} * racks_ + rack(side, f)];
  std::uint32_t least = 1;
  for (std::size_t r = 0; r < flows.size(); ++r) {
    std::uint32_t live = 0;
    for (std::uint32_t p = 0; p < spines_; ++p) live += capacity_[r * spines_ + p] > 0 ? 1 : 0;
    if (live > 0) least = std::max(least, (flows[r] + live - 1) / live);
  }
  return least;
}

void Assignment::place(std::span<const std::uint32_t> flows, By by, Others others) {
  const std::uint32_t k = by == By::count ? least_count() : 0;
  for (const std::uint32_t flow : flows) {
    const std::uint32_t spine = by == By::count ? free_pair(flow, k) : none;
    if (spine != none) {
      put(flow, spine);
    } else if (by == By::weight || others == Others::stay || !place_by_chain(flow, k)) {
      put_least(flow);
    }
  }
}

void Assignment::restore(std::span<const std::uint32_t> spines) {
  undo_.clear();
  for (std::uint32_t f = 0; f < spines.size(); ++f)
    if (spine_[f] != spines[f]) move(f, spines[f]);
}

// For sizes that differ little, or few of them: chains find room where search does not.
void Assignment::try_by_count(std::span<const std::uint32_t> flows, double bound) {
  const std::vector<std::uint32_t> first = spine_;
  const double first_worst = worst();
  restore(before_);
  place(flows, By::count, Others::may_move);
  search(bound);
  if (worst() >= first_worst) restore(first);
}

// Equal flows that have paths may crowd links beside emptier ones, as where a link is back, and
// search does not find the way that a chain does: those beyond k are placed again.
void Assignment::level() {
  const std::vector<std::uint32_t> first = spine_;
  const double first_worst = worst();
  const std::uint32_t k = least_count();
  std::vector<std::uint32_t> crowded;
  undo_.clear();
  for (const Side side : {up, down})
    for (std::uint32_t r = 0; r < racks_; ++r)
      for (std::uint32_t p = 0; p < spines_; ++p)
        for (const std::size_t at = slot(side, r, p); count_[at] > k;) {
          crowded.push_back(head_[at]);
          move(head_[at], none);
        }
  place(crowded, By::count, Others::may_move);
  if (worst() >= first_worst) restore(first);
}

Assignment::Outcome Assignment::solve(Others others) {
  before_ = spine_;
  std::vector<std::uint32_t> flows;
  for (std::uint32_t f = 0; f < flows_.size(); ++f)
    if (used_[f] && spine_[f] == none) flows.push_back(f);
  std::ranges::stable_sort(flows, [&](std::uint32_t a, std::uint32_t b) {
    if (flows_[a].priority != flows_[b].priority) return flows_[a].priority < flows_[b].priority;
    return flows_[a].weight > flows_[b].weight;
  });
  const double least = bound();
  const bool equal = all_equal();
  place(flows, equal ? By::count : By::weight, others);
  if (others == Others::may_move) {
    search(least);
    if (equal && worst() > least * close_enough) level();
    if (!equal && worst() > least * far_off) try_by_count(flows, least);
  }
  Outcome out{.worst = worst(), .bound = least};
  for (std::uint32_t f = 0; f < flows_.size(); ++f) {
    if (!used_[f]) continue;
    if (spine_[f] == none) {
      ++out.without;
    } else if (before_[f] == none) {
      ++out.placed;
    } else if (before_[f] != spine_[f]) {
      ++out.moved;
    }
  }
  return out;
}

std::size_t Assignment::worst_slot() const {
  std::size_t i = 1;
  while (i < leaves_) i = tree_[2 * i] == tree_[i] ? 2 * i : 2 * i + 1;
  return i - leaves_;
}

void Assignment::search(double bound) {
  effort_ = effort_per_flow * flows_.size();
  const double target = bound * close_enough;
  while (worst() > target && relieve(worst_slot())) continue;
}

// Lowers the cost of that link, and brings no other to it.
bool Assignment::relieve(std::size_t worst_slot) {
  const Side side = worst_slot < slot(down, 0, 0) ? up : down;
  const double limit = worst() * (1 - slack);
  const std::vector<std::uint32_t> flows = on(side, worst_slot);
  for (std::uint32_t pushes = 0; pushes <= pushes_max; ++pushes)
    for (const std::uint32_t flow : flows) {
      undo_.clear();
      move(flow, none);
      if (find_room(flow, limit, pushes)) return true;
      take_back(0);
    }
  return false;
}

std::vector<std::uint32_t> Assignment::on(Side side, std::size_t slot) const {
  std::vector<std::uint32_t> flows;
  for (std::uint32_t f = head_[slot]; f != none; f = next_[side][f]) flows.push_back(f);
  return flows;
}

// Puts a flow that has no path where all costs stay below the limit. On links that it would
// overload it takes the place of others, which look for room in turn. When false, nothing moved.
bool Assignment::find_room(std::uint32_t flow, double limit, std::uint32_t pushes) {
  for (std::uint32_t p = 0; p < spines_; ++p) {
    if (cost_on(flow, p) >= limit) continue;
    move(flow, p);
    return true;
  }
  const std::size_t mark = undo_.size();
  for (std::uint32_t p = 0; p < spines_ && pushes > 0; ++p) {
    if (!open(flow, p)) continue;
    move(flow, p);
    if (push_out(flow, up, limit, pushes) && push_out(flow, down, limit, pushes)) return true;
    take_back(mark);
  }
  return false;
}

// Brings that link of the flow below the limit.
bool Assignment::push_out(std::uint32_t flow, Side side, double limit, std::uint32_t pushes) {
  const std::size_t full = slot_of(side, flow, spine_[flow]);
  if (cost_with(full, 0) < limit) return true;
  for (const std::uint32_t other : on(side, full)) {
    if (other == flow || cost_with(full, -flows_[other].weight) >= limit) continue;
    if (effort_ == 0) return false;
    --effort_;
    const std::size_t mark = undo_.size();
    move(other, none);
    if (find_room(other, limit, pushes - 1)) return true;
    take_back(mark);
  }
  return false;
}

}  // namespace weft::route
