#include "engine/fluid/solver.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.hpp"

namespace weft::engine::fluid {
namespace {

// Rounding noise: levels that differ by less are one level. Rates are good to about this share.
constexpr double noise = 1e-12;

}  // namespace

Solver::Solver(std::span<const double> capacity, const Options& options)
    : options_(options), epsilon_(std::max(options.tolerance, noise)) {
  const auto reserve = [&](auto&... columns) { (columns.reserve(capacity.size()), ...); };
  reserve(level_, target_, capacity_, bound_, list_, size_class_, is_dirty_, weighted_, used_slot_);
  for (const double c : capacity) add_resource(c);
}

void Solver::add_resource(double capacity) {
  WEFT_CHECK(capacity >= 0);
  level_.push_back(unlimited);
  target_.push_back(unlimited);
  capacity_.push_back(capacity);
  bound_.push_back(0);
  list_.emplace_back();
  size_class_.push_back(no_class);
  is_dirty_.push_back(0);
  weighted_.push_back(0);
  used_slot_.push_back(0);
}

bool Solver::same(double a, double b) const {
  if (a == b) return true;
  if (a == unlimited || b == unlimited) return false;
  return std::abs(a - b) <= epsilon_ * std::max(a, b);
}

// ---- coming and going

EntityId Solver::insert(std::span<const Hop> hops) {
  if (is_merged(hops)) return insert_merged(hops);
  merger_.merge(hops, merged_);
  return insert_merged(merged_);
}

EntityId Solver::insert_merged(std::span<const Hop> hops) {
  std::uint32_t id = 0;
  if (free_entities_.empty()) {
    id = static_cast<std::uint32_t>(path_.size());
    WEFT_CHECK(id < long_bit);
    path_.emplace_back();
    rate_.push_back(unlimited);
    cap_.push_back(unlimited);
    is_rising_.push_back(0);
    alive_.push_back(0);
    is_changed_.push_back(0);
  } else {
    id = free_entities_.back();
    free_entities_.pop_back();
  }
  WEFT_CHECK(alive_[id] == 0);
  WEFT_CHECK(hops.empty() || hops.back().link.index() < level_.size());
  const auto count = static_cast<std::uint32_t>(hops.size());
  const std::uint32_t first = hops_.take(hops_.class_for(count));
  for (std::uint32_t h = 0; h < count; ++h) {
    *hops_.at<0>(first + h) = hops[h].link.value;
    *hops_.at<1>(first + h) = hops[h].share;
  }
  path_[id] = {first, count, 1};
  cap_[id] = cap_of(path_[id]);
  alive_[id] = 1;
  if (is_long(id) && long_.size() <= id) long_.resize(path_.size());
  rescan(id);
  note_changed(id);
  for (std::uint32_t h = 0; h < count; ++h) link_hop(id, first + h);
  return EntityId(id);
}

// `place` is the hop's index in hops_.
void Solver::link_hop(std::uint32_t entity, std::uint32_t place) {
  const std::uint32_t at = hop_at(place);
  const double weight = hop_weight(place);
  make_room(at);
  List& list = list_[at];
  if (list.count == 0) {
    note_used(at);
    weighted_[at] = 0;
    bound_[at] = 0;
  }
  if (weight != 1) weighted_[at] = 1;
  hop_slot(place) = list.count;
  const std::uint32_t slot = list.first + list.count++;
  member(slot) = is_long(entity) ? entity | long_bit : entity;
  member_weight(slot) = weight;
  member_hop(slot) = place;
  if (target_[at] == unlimited) {
    bound_[at] += weight * demand(entity, at);
    if (bound_[at] <= capacity_[at] * (1 + noise)) return;
  }
  mark_dirty(at);
}

void Solver::note_used(std::uint32_t resource) {
  used_slot_[resource] = static_cast<std::uint32_t>(used_.size());
  used_.push_back(resource);
}

void Solver::note_unused(std::uint32_t resource) {
  const std::uint32_t slot = used_slot_[resource];
  WEFT_CHECK(used_[slot] == resource);
  used_[slot] = used_.back();
  used_slot_[used_[slot]] = slot;
  used_.pop_back();
}

void Solver::make_room(std::uint32_t resource) {
  List& list = list_[resource];
  const std::uint8_t present = size_class_[resource];
  if (present != no_class && list.count < (1u << present)) return;
  const auto wanted = static_cast<std::uint8_t>(present == no_class ? 1 : present + 1);
  const std::uint32_t first = members_.take(wanted);
  if (present != no_class) {
    WEFT_CHECK(list.count == 1u << present);
    std::copy_n(members_.at<0>(list.first), list.count, members_.at<0>(first));
    std::copy_n(members_.at<1>(list.first), list.count, members_.at<1>(first));
    std::copy_n(members_.at<2>(list.first), list.count, members_.at<2>(first));
    members_.give_back(list.first, present);
  }
  list.first = first;
  size_class_[resource] = wanted;
}

void Solver::remove(EntityId entity) {
  const std::uint32_t id = entity.value;
  WEFT_CHECK(alive_[id] != 0);
  const Path path = path_[id];
  for (std::uint32_t h = 0; h < path.count; ++h) unlink_hop(path.first + h);
  hops_.give_back(path.first, hops_.class_for(path.count));
  alive_[id] = 0;
  free_entities_.push_back(id);
}

void Solver::unlink_hop(std::uint32_t place) {
  const std::uint32_t at = hop_at(place);
  List& list = list_[at];
  const std::uint32_t slot = list.first + hop_slot(place);
  const std::uint32_t last = list.first + --list.count;
  if (slot != last) {
    member(slot) = member(last);
    member_weight(slot) = member_weight(last);
    member_hop(slot) = member_hop(last);
    hop_slot(member_hop(slot)) = hop_slot(place);
  }
  if (list.count == 0) {
    note_unused(at);
    level_[at] = target_[at] = unlimited;  // nobody sees it
    return;
  }
  if (target_[at] != unlimited || level_[at] != unlimited) mark_dirty(at);
}

// The load that a resource sees at given levels elsewhere grows by the new flows' at most, as the
// cap falls, and does not grow when there are fewer: bounds stay bounds.
void Solver::set_flows(EntityId entity, std::uint32_t flows) {
  const std::uint32_t id = entity.value;
  WEFT_CHECK(alive_[id] != 0 && flows > 0);
  note_changed(id);
  Path& path = path_[id];
  if (path.flows == flows) return;
  const double more = static_cast<double>(flows) - path.flows;
  path.flows = flows;
  cap_[id] = cap_of(path);
  rescan(id);
  for (std::uint32_t place = path.first; place < path.first + path.count; ++place) {
    const std::uint32_t at = hop_at(place);
    const double weight = load_weight(path, place);
    member_weight(list_[at].first + hop_slot(place)) = weight;
    if (weight != 1) weighted_[at] = 1;
    if (target_[at] == unlimited) {
      if (more > 0) bound_[at] += more * hop_weight(place) * demand(id, at);
      if (bound_[at] <= capacity_[at] * (1 + noise)) continue;
    }
    mark_dirty(at);
  }
}

double Solver::cap_of(const Path& path) const {
  double cap = unlimited;
  for (std::uint32_t place = path.first; place < path.first + path.count; ++place)
    cap = std::min(cap, capacity_[hop_at(place)] / load_weight(path, place));
  return cap;
}

// As if the entity had been taken out and put in again.
void Solver::change_cap(std::uint32_t entity) {
  const Path path = path_[entity];
  cap_[entity] = cap_of(path);
  rescan(entity);
  note_changed(entity);
  for (std::uint32_t h = 0; h < path.count; ++h) mark_dirty(hop_at(path.first + h));
}

void Solver::set_capacity(LinkId resource, double capacity) {
  WEFT_CHECK(capacity >= 0);
  const std::uint32_t at = resource.value;
  if (capacity_[at] == capacity) return;
  capacity_[at] = capacity;
  const List list = list_[at];
  if (list.count > 0) mark_dirty(at);
  for (std::uint32_t i = 0; i < list.count; ++i) {
    const std::uint32_t entity = member(list.first + i) & ~long_bit;
    if (cap_of(path_[entity]) != cap_[entity]) change_cap(entity);
  }
}

bool Solver::has_hops(EntityId entity, std::span<const Hop> hops) const {
  const Path path = path_[entity.index()];
  if (path.count != hops.size()) return false;
  for (std::uint32_t h = 0; h < path.count; ++h)
    if (hop_at(path.first + h) != hops[h].link.value || hop_weight(path.first + h) != hops[h].share)
      return false;
  return true;
}

void Solver::clear_changed() {
  for (const EntityId id : changed_) is_changed_[id.index()] = 0;
  changed_.clear();
}

void Solver::note_changed(std::uint32_t entity) {
  if (is_changed_[entity] != 0) return;
  is_changed_[entity] = 1;
  changed_.push_back(EntityId(entity));
}

// ---- the fixed point

void Solver::rescan(std::uint32_t entity) {
  const Path path = path_[entity];
  double low = cap_[entity], second = unlimited;  // the cap is at no_block
  std::uint32_t low_at = no_block, second_at = no_block;
  for (std::uint32_t h = 0; h < path.count; ++h) {
    const std::uint32_t at = hop_at(path.first + h);
    const double level = level_[at];
    if (level >= second) continue;
    if (level < low) {
      second = low;
      second_at = low_at;
      low = level;
      low_at = at;
    } else {
      second = level;
      second_at = at;
    }
  }
  rate_[entity] = low;
  if (is_long(entity)) long_[entity] = {low_at, second_at, second};
}

double Solver::lowest_elsewhere(std::uint32_t entity, std::uint32_t resource) const {
  const Path path = path_[entity];
  if (path.count > short_hops_max)
    return long_[entity].low_at == resource ? long_[entity].second : rate_[entity];
  double low = cap_[entity];
  const std::uint32_t* const hops = hops_.at<0>(path.first);
  for (std::uint32_t h = 0; h < path.count; ++h)
    if (hops[h] != resource) low = std::min(low, level_[hops[h]]);
  return low;
}

// What the entity would take if this resource did not limit it: the lowest level on the rest of
// its path. A rate below this resource's level is limited elsewhere, and that is then the demand.
double Solver::demand(std::uint32_t entity, std::uint32_t resource) const {
  const double rate = rate_[entity];
  return rate < level_[resource] ? rate : lowest_elsewhere(entity, resource);
}

void Solver::mark_dirty(std::uint32_t resource) {
  if (is_dirty_[resource] != 0) return;
  is_dirty_[resource] = 1;
  dirty_.push_back(resource);
}

void Solver::flush_dirty() {
  for (const std::uint32_t at : dirty_) {
    is_dirty_[at] = 0;
    const double target = water_fill(at);
    WEFT_CHECK(target >= 0);
    target_[at] = target;
    if (same(target, level_[at])) continue;
    pending_.push_back({std::min(target, level_[at]), at});
    std::push_heap(pending_.begin(), pending_.end());
  }
  dirty_.clear();
}

// The level x at which sum of weight * min(x, demand) meets the capacity; unlimited when the
// demands fit.
double Solver::water_fill(std::uint32_t resource) {
  ++counters_.recomputes;
  const List list = list_[resource];
  if (demand_.size() < list.count) demand_.resize(2 * std::size_t{list.count});
  const bool weighted = weighted_[resource] != 0;
  const double load = weighted ? gather_demands<true>(resource) : gather_demands<false>(resource);
  bound_[resource] = load;
  if (list.count == 0 || load <= capacity_[resource] * (1 + noise)) return unlimited;
  return weighted ? fill_level<true>(resource) : fill_level<false>(resource);
}

// Fills demand_ in list order; returns the load if every demand were met.
template <bool weighted>
double Solver::gather_demands(std::uint32_t resource) {
  const List list = list_[resource];
  const std::uint32_t* const members = members_.at<0>(list.first);
  const double level = level_[resource];
  double load = 0;
  for (std::uint32_t i = 0; i < list.count; ++i) {
    const std::uint32_t entity = members[i] & ~long_bit;
    const double rate = rate_[entity];
    const double demand = rate < level ? rate : lowest_elsewhere(entity, resource);
    demand_[i] = demand;
    load += weighted ? member_weight(list.first + i) * demand : demand;
  }
  return load;
}

// Newton's iteration on a concave, piecewise linear function: from any start the first step lands
// at or left of the solution, and all later ones climb to it. The start is the present level.
template <bool weighted>
double Solver::fill_level(std::uint32_t resource) const {
  const List list = list_[resource];
  const double* const weight = members_.at<1>(list.first);
  const double* const demand = demand_.data();
  const double capacity = capacity_[resource];
  // Two sums of each kind: half the latency of one, and still one fixed order of addition.
  const auto step = [&](double x) {
    double below[2] = {0, 0}, above[2] = {0, 0};
    for (std::uint32_t i = 0; i < list.count; ++i) {
      const double w = weighted ? weight[i] : 1.0;
      const bool limited_here = demand[i] >= x;
      above[i & 1] += limited_here ? w : 0.0;
      below[i & 1] += limited_here ? 0.0 : w * demand[i];
    }
    const double open = above[0] + above[1];
    return open > 0 ? (capacity - (below[0] + below[1])) / open : unlimited;
  };
  double x = level_[resource] == unlimited ? unlimited : step(level_[resource]);
  if (x == unlimited || x <= 0) x = step(0);
  for (;;) {
    const double next = step(x);
    if (next == unlimited || next <= x * (1 + 1e-14)) return std::max(x, 0.0);
    x = next;
  }
}

void Solver::apply_level(std::uint32_t resource) {
  ++counters_.level_changes;
  const List list = list_[resource];
  const double before = level_[resource];
  const double level = target_[resource];
  level_[resource] = level;
  // Entities below the smaller of both levels are limited elsewhere and stay so. Their demands move
  // above what limits them, which changes nothing there.
  const double floor = std::min(before, level) * (1 - noise);
  for (std::uint32_t i = 0; i < list.count; ++i) {
    const std::uint32_t entity = member(list.first + i);
    if ((entity & long_bit) != 0) {
      update_long(entity & ~long_bit, resource, level);
    } else if (rate_[entity] < floor) {
      continue;
    } else if (level < before) {
      lower_short(entity, resource, level);
    } else {
      raise_short(entity, resource, before);
    }
  }
}

// The resource's level came down to or below the entity's rate. Resources whose level should be
// higher than that see a smaller demand; the others cut it anyway.
void Solver::lower_short(std::uint32_t entity, std::uint32_t resource, double level) {
  if (rate_[entity] > level) {
    rate_[entity] = level;
    note_changed(entity);
  }
  const Path path = path_[entity];
  const std::uint32_t* const hops = hops_.at<0>(path.first);
  for (std::uint32_t h = 0; h < path.count; ++h) {
    const double target = target_[hops[h]];
    if (hops[h] != resource && target > level && target != unlimited) mark_dirty(hops[h]);
  }
}

// The resource no longer holds the entity at `before`; the lowest level of the path does.
void Solver::raise_short(std::uint32_t entity, std::uint32_t resource, double before) {
  const Path path = path_[entity];
  const std::uint32_t* const hops = hops_.at<0>(path.first);
  double low = cap_[entity], second = unlimited;
  std::uint32_t low_at = no_block;
  for (std::uint32_t h = 0; h < path.count; ++h) {
    const double level = level_[hops[h]];
    if (level < low) {
      second = low;
      low = level;
      low_at = hops[h];
    } else {
      second = std::min(second, level);
    }
  }
  const bool was_lowest = rate_[entity] == before;  // else within rounding noise of it
  if (low != rate_[entity]) {
    rate_[entity] = low;
    note_changed(entity);
  }
  for (std::uint32_t h = 0; h < path.count; ++h) {
    const std::uint32_t at = hops[h];
    if (at == resource || target_[at] <= before) continue;
    if (was_lowest) {
      touch(at, load_weight(path, path.first + h), before, at == low_at ? second : low);
    } else {
      mark_dirty(at);
    }
  }
}

double Solver::weight_on(std::uint32_t entity, std::uint32_t resource) const {
  const Path path = path_[entity];
  const std::uint32_t* const begin = hops_.at<0>(path.first);
  const auto hop = std::lower_bound(begin, begin + path.count, resource) - begin;
  return load_weight(path, path.first + static_cast<std::uint32_t>(hop));
}

// Brings the two lowest levels up to date and wakes the resources for which the demand moved.
void Solver::update_long(std::uint32_t entity, std::uint32_t resource, double level) {
  LongPath& e = long_[entity];
  const double low = rate_[entity], second = e.second;
  const std::uint32_t low_at = e.low_at;
  if (resource == low_at) {
    if (level <= second) {
      rate_[entity] = level;
    } else {
      rescan(entity);
    }
  } else if (level < low) {
    e.second = low;
    e.second_at = low_at;
    rate_[entity] = level;
    e.low_at = resource;
  } else if (resource == e.second_at) {
    if (level <= second) {
      e.second = level;
    } else {
      rescan(entity);
    }
  } else if (level < second) {
    e.second = level;
    e.second_at = resource;
  } else {
    return;
  }
  wake_long(entity, resource, low, second, low_at);
}

// `low`, `second` and `low_at` are the values before the change.
void Solver::wake_long(std::uint32_t entity, std::uint32_t resource, double low, double second,
                       std::uint32_t low_at) {
  const LongPath& e = long_[entity];
  const double rate = rate_[entity];
  const auto demand_before = [&](std::uint32_t at) { return at == low_at ? second : low; };
  const auto demand_now = [&](std::uint32_t at) { return at == e.low_at ? e.second : rate; };
  if (rate != low) {
    note_changed(entity);
    const Path path = path_[entity];
    for (std::uint32_t h = 0; h < path.count; ++h) {
      const std::uint32_t at = hop_at(path.first + h);
      if (at != resource)
        touch(at, load_weight(path, path.first + h), demand_before(at), demand_now(at));
    }
    return;
  }
  // Only the limiting resources see another demand: the old one and, after a tie, the new one.
  for (const std::uint32_t at : {low_at, e.low_at}) {
    if (at != resource && at != no_block)
      touch(at, weight_on(entity, at), demand_before(at), demand_now(at));
    if (low_at == e.low_at) break;
  }
}

void Solver::touch(std::uint32_t resource, double weight, double before, double after) {
  const double target = target_[resource];
  if (target == unlimited) {
    if (after <= before) return;
    bound_[resource] += weight * (after - before);
    if (bound_[resource] <= capacity_[resource] * (1 + noise)) return;
  } else if ((before >= target && after >= target) || before == after) {
    return;
  }
  mark_dirty(resource);
}

void Solver::settle() {
  if (dirty_.empty()) return;
  ++counters_.settles;
  // A change that touches a good part of everything is cheaper to solve anew.
  pop_limit_ = counters_.level_changes + 2 * used_.size() + 64;
  if (dirty_.size() > 64 && dirty_.size() * 4 > used_.size()) return full_solve();
  flush_dirty();
  settle_pending();
  if (!pending_.empty()) full_solve();
  WEFT_CHECK(dirty_.empty() && pending_.empty());
}

// Leaves entries in pending_ only when the repair has grown past pop_limit_.
void Solver::settle_pending() {
  while (!pending_.empty()) {
    if (counters_.level_changes > pop_limit_) return;
    const double key = pending_.front().key;
    while (!pending_.empty() && pending_.front().key <= key * (1 + 1e-13)) {
      const Pending top = pending_.front();
      std::pop_heap(pending_.begin(), pending_.end());
      pending_.pop_back();
      const double target = target_[top.resource];
      const double level = level_[top.resource];
      // Outdated entries have a successor in the heap where one is needed.
      if (same(target, level) || std::min(target, level) != top.key) continue;
      apply_level(top.resource);
    }
    flush_dirty();
  }
}

// ---- from scratch

void Solver::full_solve() {
  ++counters_.full_solves;
  pending_.clear();
  for (const std::uint32_t at : dirty_) {
    is_dirty_[at] = 0;
    if (list_[at].count > 0) continue;
    level_[at] = target_[at] = unlimited;
    bound_[at] = 0;
  }
  dirty_.clear();
  fill_progressively();
  for (std::uint32_t id = 0; id < path_.size(); ++id) {
    if (alive_[id] == 0) continue;
    const double before = rate_[id];
    rescan(id);
    if (rate_[id] != before) note_changed(id);
  }
  // The filling stops at the first bottleneck of each entity; ties may leave a level to correct.
  for (const std::uint32_t at : narrow_) mark_dirty(at);
  flush_dirty();
  pop_limit_ = UINT64_MAX;
  settle_pending();
}

// Raises all rates together; the resource that fills first freezes its entities at its share, and
// an entity that has come to its cap stays there. Resources that all caps fit into cannot fill.
// Cost: O(hops + n log n), n being resources that may fill and their entities. Sets levels, and
// targets and bounds of those that cannot fill.
void Solver::fill_progressively() {
  left_.resize(list_.size());
  weight_left_.resize(list_.size());
  open_.resize(list_.size(), 0);
  narrow_.clear();
  pending_.clear();
  for (const std::uint32_t at : used_)
    if (open_resource(at)) narrow_.push_back(at);
  for (const std::uint32_t at : narrow_) {
    const List list = list_[at];
    for (std::uint32_t i = 0; i < list.count; ++i) {
      const std::uint32_t id = member(list.first + i) & ~long_bit;
      if (is_rising_[id] != 0) continue;
      is_rising_[id] = 1;
      if (!is_cap_narrow(id)) pending_.push_back({cap_[id], id | long_bit});
    }
  }
  std::make_heap(pending_.begin(), pending_.end());
  while (!pending_.empty()) {
    const Pending top = pending_.front();
    std::pop_heap(pending_.begin(), pending_.end());
    pending_.pop_back();
    if ((top.resource & long_bit) != 0) {
      freeze(top.resource & ~long_bit, top.key);
      continue;
    }
    if (open_[top.resource] == 0) continue;
    const double share = std::max(left_[top.resource], 0.0) / weight_left_[top.resource];
    if (share > top.key * (1 + 1e-13)) {  // others froze meanwhile: its turn comes later
      pending_.push_back({share, top.resource});
      std::push_heap(pending_.begin(), pending_.end());
      continue;
    }
    level_[top.resource] = share;
    freeze_members(top.resource, share);
  }
  for (const std::uint32_t at : narrow_) WEFT_CHECK(open_[at] == 0);
}

// Whether a resource that may fill keeps the entity to its cap anyway.
bool Solver::is_cap_narrow(std::uint32_t entity) const {
  const Path path = path_[entity];
  for (std::uint32_t place = path.first; place < path.first + path.count; ++place) {
    const std::uint32_t at = hop_at(place);
    if (open_[at] != 0 && capacity_[at] / load_weight(path, place) == cap_[entity]) return true;
  }
  return false;
}

// False for a resource that cannot fill.
bool Solver::open_resource(std::uint32_t resource) {
  const List list = list_[resource];
  double weight = 0, load = 0;
  for (std::uint32_t i = 0; i < list.count; ++i) {
    const double w = member_weight(list.first + i);
    weight += w;
    load += w * cap_[member(list.first + i) & ~long_bit];
  }
  level_[resource] = unlimited;
  if (load <= capacity_[resource] * (1 + noise)) {
    target_[resource] = unlimited;
    bound_[resource] = load;
    return false;
  }
  left_[resource] = capacity_[resource];
  open_[resource] = list.count;
  weight_left_[resource] = weight;
  pending_.push_back({capacity_[resource] / weight, resource});
  return true;
}

void Solver::freeze_members(std::uint32_t resource, double share) {
  const List list = list_[resource];
  for (std::uint32_t i = 0; i < list.count; ++i) freeze(member(list.first + i) & ~long_bit, share);
}

void Solver::freeze(std::uint32_t entity, double share) {
  if (is_rising_[entity] == 0) return;
  is_rising_[entity] = 0;
  const Path path = path_[entity];
  for (std::uint32_t place = path.first; place < path.first + path.count; ++place) {
    const std::uint32_t at = hop_at(place);
    if (open_[at] == 0) continue;
    const double weight = load_weight(path, place);
    left_[at] -= weight * share;
    weight_left_[at] -= weight;
    --open_[at];
  }
}

}  // namespace weft::engine::fluid
