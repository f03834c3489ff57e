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
  levels_.reserve(capacity.size());
  resources_.reserve(capacity.size());
  for (const double c : capacity) add_resource(c);
}

void Solver::add_resource(double capacity) {
  WEFT_CHECK(capacity >= 0);
  levels_.emplace_back();
  resources_.push_back({.capacity = capacity});
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
    id = static_cast<std::uint32_t>(entities_.size());
    WEFT_CHECK(id <= id_bits);
    entities_.emplace_back();
  } else {
    id = free_entities_.back();
    free_entities_.pop_back();
  }
  WEFT_CHECK(entities_[id].alive == 0);
  WEFT_CHECK(hops.empty() || hops.back().link.index() < levels_.size());
  const auto count = static_cast<std::uint32_t>(hops.size());
  const std::uint32_t first = hops_.take(hops_.class_for(count));
  for (std::uint32_t h = 0; h < count; ++h) {
    *hops_.at<0>(first + h) = hops[h].link.value;
    *hops_.at<2>(first + h) = shares_.place_of(hops[h].share);
  }
  entities_[id].path = {first, count, 1};
  if (count <= near_max) std::copy_n(hops_.at<0>(first), count, entities_[id].near.begin());
  entities_[id].cap = cap_of(entities_[id].path);
  entities_[id].alive = 1;
  if (is_long(id) && long_.size() <= id) long_.resize(entities_.size());
  rescan(id);
  note_changed(id);
  for (std::uint32_t h = 0; h < count; ++h) {
    fetch_ahead(first + h, first + count);
    link_hop(id, hops[h].link.value, first + h);
  }
  return EntityId(id);
}

// Prefetches what the next hops need: their resources, then the ends of these resources' lists.
void Solver::fetch_ahead(std::uint32_t place, std::uint32_t end) const {
  constexpr std::uint32_t near = 4, far = 8;
  if (place + far < end) {
    __builtin_prefetch(&resources_[hop_at(place + far)], 1);
    __builtin_prefetch(&levels_[hop_at(place + far)]);
  }
  if (place + near >= end) return;
  const List list = resources_[hop_at(place + near)].list;
  __builtin_prefetch(members_.at(list.first + list.count), 1);
}

void Solver::link_hop(std::uint32_t entity, std::uint32_t at, std::uint32_t place) {
  const double weight = hop_weight(place);
  make_room(at);
  Resource& resource = resources_[at];
  if (resource.list.count == 0) {
    note_used(at);
    resource.weighted = 0;
    resource.bound = 0;
  }
  if (weight != 1) resource.weighted = 1;
  const std::uint32_t slot = resource.list.first + resource.list.count;
  *hops_.at<1>(place) = resource.list.count++;
  *members_.at(slot) = {entity | (is_long(entity) ? long_bit : 0) | (weight != 1 ? weight_bit : 0),
                        place};
  if (levels_[at].target == unlimited) {
    resource.bound += weight * demand(entity, at);
    if (resource.bound <= resource.capacity * (1 + noise)) return;
  }
  mark_dirty(at);
}

void Solver::note_used(std::uint32_t resource) {
  resources_[resource].used_slot = static_cast<std::uint32_t>(used_.size());
  used_.push_back(resource);
}

void Solver::note_unused(std::uint32_t resource) {
  const std::uint32_t slot = resources_[resource].used_slot;
  WEFT_CHECK(used_[slot] == resource);
  used_[slot] = used_.back();
  resources_[used_[slot]].used_slot = slot;
  used_.pop_back();
}

void Solver::make_room(std::uint32_t resource) {
  List& list = resources_[resource].list;
  const std::uint8_t present = resources_[resource].size_class;
  if (present != no_class && list.count < members_.size_of(present)) return;
  const auto wanted =
      static_cast<std::uint8_t>(members_.class_for(list.count + list.count / 2 + 2));
  const std::uint32_t first = members_.take(wanted);
  if (present != no_class) {
    WEFT_CHECK(list.count == members_.size_of(present));
    std::copy_n(members_.at(list.first), list.count, members_.at(first));
    members_.give_back(list.first, present);
  }
  list.first = first;
  resources_[resource].size_class = wanted;
}

void Solver::remove(EntityId entity) {
  const std::uint32_t id = entity.value;
  WEFT_CHECK(entities_[id].alive != 0);
  const Path path = entities_[id].path;
  const std::uint32_t* const hops = hops_of(entities_[id]);
  for (std::uint32_t h = 0; h < path.count; ++h) {
    fetch_ahead(path.first + h, path.first + path.count);
    unlink_hop(hops[h], path.first + h);
  }
  hops_.give_back(path.first, hops_.class_for(path.count));
  entities_[id].alive = 0;
  free_entities_.push_back(id);
}

void Solver::unlink_hop(std::uint32_t at, std::uint32_t place) {
  const std::uint32_t own_slot = *hops_.at<1>(place);
  List& list = resources_[at].list;
  const std::uint32_t slot = list.first + own_slot;
  const std::uint32_t last = list.first + --list.count;
  if (slot != last) {
    const Member moved = *members_.at(last);
    *members_.at(slot) = moved;
    *hops_.at<1>(moved.hop) = own_slot;
  }
  Level& level = levels_[at];
  if (list.count == 0) {
    note_unused(at);
    level = {};  // nobody sees it
    return;
  }
  if (level.target != unlimited || level.level != unlimited) mark_dirty(at);
}

// The load that a resource sees at given levels elsewhere grows by the new flows' at most, as the
// cap falls, and does not grow when there are fewer: bounds stay bounds.
void Solver::set_flows(EntityId entity, std::uint32_t flows) {
  const std::uint32_t id = entity.value;
  WEFT_CHECK(entities_[id].alive != 0 && flows > 0);
  note_changed(id);
  Path& path = entities_[id].path;
  if (path.flows == flows) return;
  const double more = static_cast<double>(flows) - path.flows;
  path.flows = flows;
  entities_[id].cap = cap_of(path);
  rescan(id);
  for (std::uint32_t place = path.first; place < path.first + path.count; ++place) {
    const std::uint32_t at = hop_at(place);
    if (load_weight(path, place) != 1) resources_[at].weighted = 1;
    if (levels_[at].target == unlimited) {
      if (more > 0) resources_[at].bound += more * hop_weight(place) * demand(id, at);
      if (resources_[at].bound <= resources_[at].capacity * (1 + noise)) continue;
    }
    mark_dirty(at);
  }
}

double Solver::cap_of(const Path& path) const {
  double cap = unlimited;
  for (std::uint32_t place = path.first; place < path.first + path.count; ++place)
    cap = std::min(cap, resources_[hop_at(place)].capacity / load_weight(path, place));
  return cap;
}

// As if the entity had been taken out and put in again.
void Solver::change_cap(std::uint32_t entity) {
  const Path path = entities_[entity].path;
  entities_[entity].cap = cap_of(path);
  rescan(entity);
  note_changed(entity);
  for (std::uint32_t h = 0; h < path.count; ++h) mark_dirty(hop_at(path.first + h));
}

void Solver::set_capacity(LinkId resource, double capacity) {
  WEFT_CHECK(resource.index() < resource_count());
  WEFT_CHECK(capacity >= 0);
  const std::uint32_t at = resource.value;
  if (resources_[at].capacity == capacity) return;
  resources_[at].capacity = capacity;
  if (resources_[at].list.count > 0) mark_dirty(at);
  for (const Member& member : members(at)) {
    const std::uint32_t entity = member.entity & id_bits;
    if (cap_of(entities_[entity].path) != entities_[entity].cap) change_cap(entity);
  }
}

bool Solver::has_hops(EntityId entity, std::span<const Hop> hops) const {
  const Path path = entities_[entity.index()].path;
  if (path.count != hops.size()) return false;
  for (std::uint32_t h = 0; h < path.count; ++h)
    if (hop_at(path.first + h) != hops[h].link.value || hop_weight(path.first + h) != hops[h].share)
      return false;
  return true;
}

void Solver::clear_changed() {
  for (const EntityId id : changed_) entities_[id.index()].is_changed = 0;
  changed_.clear();
}

void Solver::note_changed(std::uint32_t entity) {
  if (entities_[entity].is_changed != 0) return;
  entities_[entity].is_changed = 1;
  changed_.push_back(EntityId(entity));
}

// ---- the fixed point

void Solver::rescan(std::uint32_t entity) {
  const Path path = entities_[entity].path;
  const std::uint32_t* const hops = hops_of(entities_[entity]);
  double low = entities_[entity].cap, second = unlimited;  // the cap is at no_block
  std::uint32_t low_at = no_block, second_at = no_block;
  for (std::uint32_t h = 0; h < path.count; ++h) {
    const std::uint32_t at = hops[h];
    const double level = levels_[at].level;
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
  entities_[entity].rate = low;
  if (is_long(entity)) long_[entity] = {low_at, second_at, second};
}

double Solver::lowest_elsewhere(std::uint32_t entity, std::uint32_t resource) const {
  const Path path = entities_[entity].path;
  if (path.count > short_hops_max)
    return long_[entity].low_at == resource ? long_[entity].second : entities_[entity].rate;
  double low = entities_[entity].cap;
  const std::uint32_t* const hops = hops_of(entities_[entity]);
  for (std::uint32_t h = 0; h < path.count; ++h)
    if (hops[h] != resource) low = std::min(low, levels_[hops[h]].level);
  return low;
}

// What the entity would take if this resource did not limit it: the lowest level on the rest of
// its path. A rate below this resource's level is limited elsewhere, and that is then the demand.
double Solver::demand(std::uint32_t entity, std::uint32_t resource) const {
  const double rate = entities_[entity].rate;
  return rate < levels_[resource].level ? rate : lowest_elsewhere(entity, resource);
}

void Solver::mark_dirty(std::uint32_t resource) {
  if (resources_[resource].is_dirty != 0) return;
  resources_[resource].is_dirty = 1;
  dirty_.push_back(resource);
}

void Solver::flush_dirty() {
  for (const std::uint32_t at : dirty_) {
    resources_[at].is_dirty = 0;
    const double target = water_fill(at);
    WEFT_CHECK(target >= 0);
    levels_[at].target = target;
    if (same(target, levels_[at].level)) continue;
    pending_.push_back({std::min(target, levels_[at].level), at});
    std::push_heap(pending_.begin(), pending_.end());
  }
  dirty_.clear();
}

// The level x at which sum of weight * min(x, demand) meets the capacity; unlimited when the
// demands fit.
double Solver::water_fill(std::uint32_t resource) {
  ++counters_.recomputes;
  const List list = resources_[resource].list;
  if (demand_.size() < list.count) {
    demand_.resize(2 * std::size_t{list.count});
    weight_.resize(demand_.size());
  }
  const bool weighted = resources_[resource].weighted != 0;
  const double load = weighted ? gather_demands<true>(resource) : gather_demands<false>(resource);
  resources_[resource].bound = load;
  if (list.count == 0 || load <= resources_[resource].capacity * (1 + noise)) return unlimited;
  return weighted ? fill_level<true>(resource) : fill_level<false>(resource);
}

// Fills demand_ and, where weighted, weight_ in list order; returns the load if every demand were
// met.
template <bool weighted>
double Solver::gather_demands(std::uint32_t resource) {
  const std::span<const Member> all = members(resource);
  const double level = levels_[resource].level;
  double load = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::uint32_t entity = all[i].entity & id_bits;
    const double rate = entities_[entity].rate;
    const double demand = rate < level ? rate : lowest_elsewhere(entity, resource);
    demand_[i] = demand;
    if (weighted) weight_[i] = load_weight(all[i]);
    load += weighted ? weight_[i] * demand : demand;
  }
  return load;
}

// Newton's iteration on a concave, piecewise linear function: from any start the first step lands
// at or left of the solution, and all later ones climb to it. The start is the present level.
template <bool weighted>
double Solver::fill_level(std::uint32_t resource) const {
  const List list = resources_[resource].list;
  const double* const weight = weight_.data();
  const double* const demand = demand_.data();
  const double capacity = resources_[resource].capacity;
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
  double x = levels_[resource].level == unlimited ? unlimited : step(levels_[resource].level);
  if (x == unlimited || x <= 0) x = step(0);
  for (;;) {
    const double next = step(x);
    if (next == unlimited || next <= x * (1 + 1e-14)) return std::max(x, 0.0);
    x = next;
  }
}

void Solver::apply_level(std::uint32_t resource) {
  ++counters_.level_changes;
  const double before = levels_[resource].level;
  const double level = levels_[resource].target;
  levels_[resource].level = level;
  // Entities below the smaller of both levels are limited elsewhere and stay so. Their demands move
  // above what limits them, which changes nothing there.
  const double floor = std::min(before, level) * (1 - noise);
  for (const Member& member : members(resource)) {
    const std::uint32_t entity = member.entity & id_bits;
    if ((member.entity & long_bit) != 0) {
      update_long(entity, resource, level);
    } else if (entities_[entity].rate < floor) {
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
  if (entities_[entity].rate > level) {
    entities_[entity].rate = level;
    note_changed(entity);
  }
  const Path path = entities_[entity].path;
  const std::uint32_t* const hops = hops_of(entities_[entity]);
  for (std::uint32_t h = 0; h < path.count; ++h) {
    const double target = levels_[hops[h]].target;
    if (hops[h] != resource && target > level && target != unlimited) mark_dirty(hops[h]);
  }
}

// The resource no longer holds the entity at `before`; the lowest level of the path does.
void Solver::raise_short(std::uint32_t entity, std::uint32_t resource, double before) {
  const Path path = entities_[entity].path;
  const std::uint32_t* const hops = hops_of(entities_[entity]);
  double low = entities_[entity].cap, second = unlimited;
  std::uint32_t low_at = no_block;
  for (std::uint32_t h = 0; h < path.count; ++h) {
    const double level = levels_[hops[h]].level;
    if (level < low) {
      second = low;
      low = level;
      low_at = hops[h];
    } else {
      second = std::min(second, level);
    }
  }
  const bool was_lowest = entities_[entity].rate == before;  // else within rounding noise of it
  if (low != entities_[entity].rate) {
    entities_[entity].rate = low;
    note_changed(entity);
  }
  for (std::uint32_t h = 0; h < path.count; ++h) {
    const std::uint32_t at = hops[h];
    if (at == resource || levels_[at].target <= before) continue;
    if (was_lowest) {
      touch(at, load_weight(path, path.first + h), before, at == low_at ? second : low);
    } else {
      mark_dirty(at);
    }
  }
}

double Solver::weight_on(std::uint32_t entity, std::uint32_t resource) const {
  const Path path = entities_[entity].path;
  const std::uint32_t* const begin = hops_.at<0>(path.first);
  const auto hop = std::lower_bound(begin, begin + path.count, resource) - begin;
  return load_weight(path, path.first + static_cast<std::uint32_t>(hop));
}

// Brings the two lowest levels up to date and wakes the resources for which the demand moved.
void Solver::update_long(std::uint32_t entity, std::uint32_t resource, double level) {
  LongPath& e = long_[entity];
  const double low = entities_[entity].rate, second = e.second;
  const std::uint32_t low_at = e.low_at;
  if (resource == low_at) {
    if (level <= second) {
      entities_[entity].rate = level;
    } else {
      rescan(entity);
    }
  } else if (level < low) {
    e.second = low;
    e.second_at = low_at;
    entities_[entity].rate = level;
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
  const double rate = entities_[entity].rate;
  const auto demand_before = [&](std::uint32_t at) { return at == low_at ? second : low; };
  const auto demand_now = [&](std::uint32_t at) { return at == e.low_at ? e.second : rate; };
  if (rate != low) {
    note_changed(entity);
    const Path path = entities_[entity].path;
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
  const double target = levels_[resource].target;
  if (target == unlimited) {
    if (after <= before) return;
    resources_[resource].bound += weight * (after - before);
    if (resources_[resource].bound <= resources_[resource].capacity * (1 + noise)) return;
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
      const double target = levels_[top.resource].target;
      const double level = levels_[top.resource].level;
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
    resources_[at].is_dirty = 0;
    if (resources_[at].list.count > 0) continue;
    levels_[at].level = levels_[at].target = unlimited;
    resources_[at].bound = 0;
  }
  dirty_.clear();
  fill_progressively();
  for (std::uint32_t id = 0; id < entities_.size(); ++id) {
    if (entities_[id].alive == 0) continue;
    const double before = entities_[id].rate;
    rescan(id);
    if (entities_[id].rate != before) note_changed(id);
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
  open_.resize(resources_.size(), 0);
  narrow_.clear();
  pending_.clear();
  for (const std::uint32_t at : used_)
    if (open_resource(at)) narrow_.push_back(at);
  for (const std::uint32_t at : narrow_) {
    for (const Member& member : members(at)) {
      const std::uint32_t id = member.entity & id_bits;
      if (entities_[id].is_rising != 0) continue;
      entities_[id].is_rising = 1;
      if (!is_cap_narrow(id)) pending_.push_back({entities_[id].cap, id | long_bit});
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
    const double share = std::max(left(top.resource), 0.0) / weight_left(top.resource);
    if (share > top.key * (1 + 1e-13)) {  // others froze meanwhile: its turn comes later
      pending_.push_back({share, top.resource});
      std::push_heap(pending_.begin(), pending_.end());
      continue;
    }
    levels_[top.resource].level = share;
    freeze_members(top.resource, share);
  }
  for (const std::uint32_t at : narrow_) WEFT_CHECK(open_[at] == 0);
}

// Whether a resource that may fill keeps the entity to its cap anyway.
bool Solver::is_cap_narrow(std::uint32_t entity) const {
  const Path path = entities_[entity].path;
  for (std::uint32_t place = path.first; place < path.first + path.count; ++place) {
    const std::uint32_t at = hop_at(place);
    if (open_[at] != 0 &&
        resources_[at].capacity / load_weight(path, place) == entities_[entity].cap)
      return true;
  }
  return false;
}

// False for a resource that cannot fill.
bool Solver::open_resource(std::uint32_t resource) {
  double weight = 0, load = 0;
  for (const Member& member : members(resource)) {
    const double w = load_weight(member);
    weight += w;
    load += w * entities_[member.entity & id_bits].cap;
  }
  levels_[resource].level = unlimited;
  if (load <= resources_[resource].capacity * (1 + noise)) {
    levels_[resource].target = unlimited;
    resources_[resource].bound = load;
    return false;
  }
  left(resource) = resources_[resource].capacity;
  open_[resource] = resources_[resource].list.count;
  weight_left(resource) = weight;
  pending_.push_back({resources_[resource].capacity / weight, resource});
  return true;
}

void Solver::freeze_members(std::uint32_t resource, double share) {
  for (const Member& member : members(resource)) freeze(member.entity & id_bits, share);
}

void Solver::freeze(std::uint32_t entity, double share) {
  if (entities_[entity].is_rising == 0) return;
  entities_[entity].is_rising = 0;
  const Path path = entities_[entity].path;
  for (std::uint32_t place = path.first; place < path.first + path.count; ++place) {
    const std::uint32_t at = hop_at(place);
    if (open_[at] == 0) continue;
    const double weight = load_weight(path, place);
    left(at) -= weight * share;
    weight_left(at) -= weight;
    --open_[at];
  }
}

}  // namespace weft::engine::fluid
