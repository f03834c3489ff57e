#include "engine/fluid/solver.hpp"

#include <algorithm>
#include <cmath>

namespace weft::engine::fluid {
namespace {

// Rounding noise: levels that differ by less are one level. Rates are good to about this share.
constexpr double noise = 1e-12;

}  // namespace

Solver::Solver(std::span<const double> capacity, const Options& options)
    : options_(options), epsilon_(std::max(options.tolerance, noise)) {
  level_.reserve(capacity.size());
  target_.reserve(capacity.size());
  resource_.reserve(capacity.size());
  for (const double c : capacity) add_resource(c);
}

void Solver::add_resource(double capacity) {
  WEFT_CHECK(capacity >= 0);
  level_.push_back(unlimited);
  target_.push_back(unlimited);
  resource_.push_back({.capacity = capacity, .bound = 0});
}

bool Solver::same(double a, double b) const {
  if (a == b) return true;
  if (a == unlimited || b == unlimited) return false;
  return std::abs(a - b) <= epsilon_ * std::max(a, b);
}

// ---- coming and going

EntityId Solver::insert(std::span<const Hop> hops) {
  sorted_.assign(hops.begin(), hops.end());
  std::ranges::sort(sorted_, {}, &Hop::link);
  std::size_t kept = 0;
  for (const Hop& hop : sorted_) {
    WEFT_DCHECK(hop.link.index() < resource_.size());
    if (kept > 0 && sorted_[kept - 1].link == hop.link) {
      sorted_[kept - 1].share += hop.share;
    } else if (hop.share > 0) {
      sorted_[kept++] = hop;
    }
  }
  sorted_.resize(kept);

  std::uint32_t id = 0;
  if (free_entities_.empty()) {
    id = static_cast<std::uint32_t>(entity_.size());
    entity_.emplace_back();
    rate_.push_back(unlimited);
  } else {
    id = free_entities_.back();
    free_entities_.pop_back();
  }
  Entity& e = entity_[id];
  const std::uint32_t listed = e.changed;  // a predecessor in this slot may stand in changed_
  WEFT_CHECK(kept < (1u << 30));
  e = {};
  e.changed = listed & 1u;
  e.alive = 1;
  e.count = static_cast<std::uint32_t>(kept) & 0x3fffffffu;
  const std::uint32_t size_class = BlockArena<double>::class_for(e.count);
  e.first = hop_at_.take(size_class);
  hop_weight_.take(size_class);
  hop_slot_.take(size_class);
  for (std::uint32_t h = 0; h < e.count; ++h) {
    hop_at_[e.first + h] = sorted_[h].link.value;
    hop_weight_[e.first + h] = sorted_[h].share;
  }
  rescan(id);
  note_changed(id);
  for (std::uint32_t h = 0; h < e.count; ++h) link_hop(id, h);
  return EntityId(id);
}

void Solver::link_hop(std::uint32_t entity, std::uint32_t hop) {
  const Entity& e = entity_[entity];
  const std::uint32_t at = hop_at_[e.first + hop];
  const double weight = hop_weight_[e.first + hop];
  Resource& r = resource_[at];
  make_room(r);
  if (r.count == 0) {
    ++used_resources_;
    r.weighted = false;
  }
  if (weight != 1) r.weighted = true;
  hop_slot_[e.first + hop] = r.count;
  member_weight_[r.first + r.count] = weight;
  members_[r.first + r.count++] = {entity, is_long(e) ? hop | long_bit : hop};
  if (target_[at] == unlimited) {
    r.bound += weight * demand(entity, at);  // infinite when this hop alone limits the entity
    if (r.bound <= r.capacity) return;
  }
  mark_dirty(at);
}

void Solver::make_room(Resource& r) {
  if (r.size_class != no_block && r.count < (1u << r.size_class)) return;
  const std::uint32_t size_class = r.size_class == no_block ? 1 : r.size_class + 1;
  const std::uint32_t first = members_.take(size_class);
  member_weight_.take(size_class);
  if (r.size_class != no_block) {
    std::copy_n(members_.at(r.first), r.count, members_.at(first));
    std::copy_n(member_weight_.at(r.first), r.count, member_weight_.at(first));
    members_.give_back(r.first, r.size_class);
    member_weight_.give_back(r.first, r.size_class);
  }
  r.first = first;
  r.size_class = size_class;
}

void Solver::remove(EntityId entity) {
  Entity& e = entity_[entity.index()];
  WEFT_CHECK(e.alive != 0);
  for (std::uint32_t h = 0; h < e.count; ++h) unlink_hop(entity.value, h);
  const std::uint32_t size_class = BlockArena<double>::class_for(e.count);
  hop_at_.give_back(e.first, size_class);
  hop_weight_.give_back(e.first, size_class);
  hop_slot_.give_back(e.first, size_class);
  e.alive = 0;
  free_entities_.push_back(entity.value);
}

void Solver::unlink_hop(std::uint32_t entity, std::uint32_t hop) {
  const Entity& e = entity_[entity];
  const std::uint32_t at = hop_at_[e.first + hop];
  Resource& r = resource_[at];
  const std::uint32_t slot = hop_slot_[e.first + hop];
  const Member moved = members_[r.first + --r.count];
  members_[r.first + slot] = moved;
  member_weight_[r.first + slot] = member_weight_[r.first + r.count];
  hop_slot_[entity_[moved.entity].first + (moved.hop & ~long_bit)] = slot;
  if (r.count == 0) --used_resources_;
  if (target_[at] != unlimited || level_[at] != unlimited) mark_dirty(at);
}

void Solver::set_capacity(LinkId resource, double capacity) {
  WEFT_CHECK(capacity >= 0);
  Resource& r = resource_[resource.index()];
  if (r.capacity == capacity) return;
  r.capacity = capacity;
  if (r.count > 0) mark_dirty(resource.value);
}

void Solver::clear_changed() {
  for (const EntityId id : changed_) entity_[id.index()].changed = 0;
  changed_.clear();
}

void Solver::note_changed(std::uint32_t entity) {
  Entity& e = entity_[entity];
  if (e.changed != 0) return;
  e.changed = 1;
  changed_.push_back(EntityId(entity));
}

// ---- the fixed point

void Solver::rescan(std::uint32_t entity) {
  Entity& e = entity_[entity];
  double low = unlimited, second = unlimited;
  std::uint32_t low_at = no_block, second_at = no_block;
  const std::uint32_t* const hops = hop_at_.at(e.first);
  for (std::uint32_t h = 0; h < e.count; ++h) {
    const std::uint32_t at = hops[h];
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
  e.second = second;
  e.low_at = low_at;
  e.second_at = second_at;
}

double Solver::lowest_elsewhere(std::uint32_t entity, std::uint32_t resource) const {
  const Entity& e = entity_[entity];
  if (is_long(e)) return e.low_at == resource ? e.second : rate_[entity];
  double low = unlimited;
  const std::uint32_t* const hops = hop_at_.at(e.first);
  for (std::uint32_t h = 0; h < e.count; ++h)
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
  Resource& r = resource_[resource];
  if (r.dirty) return;
  r.dirty = true;
  dirty_.push_back(resource);
}

void Solver::flush_dirty() {
  for (const std::uint32_t at : dirty_) {
    Resource& r = resource_[at];
    r.dirty = false;
    const double target = water_fill(at);
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
  Resource& r = resource_[resource];
  if (demand_.size() < r.count) demand_.resize(2 * std::size_t{r.count});
  const Member* const members = members_.at(r.first);
  const double* const weight = member_weight_.at(r.first);
  double load = 0;
  for (std::uint32_t i = 0; i < r.count; ++i) {
    demand_[i] = demand(members[i].entity, resource);
    load += weight[i] * demand_[i];
  }
  r.bound = load;
  if (r.count == 0 || load <= r.capacity * (1 + noise)) return unlimited;
  return r.weighted ? fill_level<true>(r, level_[resource])
                    : fill_level<false>(r, level_[resource]);
}

// Newton's iteration on a concave, piecewise linear function: from any start the first step lands
// at or left of the solution, and all later ones climb to it. `guess` is the present level.
template <bool weighted>
double Solver::fill_level(const Resource& r, double guess) const {
  const double* const weight = member_weight_.at(r.first);
  const double* const demand = demand_.data();
  // Two sums of each kind: half the latency of one, and still one fixed order of addition.
  const auto step = [&](double x) {
    double below[2] = {0, 0}, above[2] = {0, 0};
    for (std::uint32_t i = 0; i < r.count; ++i) {
      const double w = weighted ? weight[i] : 1.0;
      const bool limited_here = demand[i] >= x;
      above[i & 1] += limited_here ? w : 0.0;
      below[i & 1] += limited_here ? 0.0 : w * demand[i];
    }
    const double open = above[0] + above[1];
    return open > 0 ? (r.capacity - (below[0] + below[1])) / open : unlimited;
  };
  double x = guess == unlimited ? unlimited : step(guess);
  if (x == unlimited || x <= 0) x = step(0);
  for (;;) {
    const double next = step(x);
    if (next == unlimited || next <= x * (1 + 1e-14)) return std::max(x, 0.0);
    x = next;
  }
}

void Solver::apply_level(std::uint32_t resource) {
  ++counters_.level_changes;
  const Resource& r = resource_[resource];
  const double before = level_[resource];
  const double level = target_[resource];
  level_[resource] = level;
  // Entities below the smaller of both levels are limited elsewhere and stay so. Their demands move
  // above what limits them, which changes nothing there.
  const double floor = std::min(before, level) * (1 - noise);
  const Member* const members = members_.at(r.first);
  for (std::uint32_t i = 0; i < r.count; ++i) {
    const std::uint32_t entity = members[i].entity;
    if ((members[i].hop & long_bit) != 0) {
      update_long(entity, resource, level);
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
  const Entity& e = entity_[entity];
  const std::uint32_t* const hops = hop_at_.at(e.first);
  for (std::uint32_t h = 0; h < e.count; ++h) {
    const double target = target_[hops[h]];
    if (hops[h] != resource && target > level && target != unlimited) mark_dirty(hops[h]);
  }
}

// The resource no longer holds the entity at `before`; the lowest level of the path does.
void Solver::raise_short(std::uint32_t entity, std::uint32_t resource, double before) {
  const Entity& e = entity_[entity];
  const std::uint32_t* const hops = hop_at_.at(e.first);
  double low = unlimited, second = unlimited;
  std::uint32_t low_at = no_block;
  for (std::uint32_t h = 0; h < e.count; ++h) {
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
  for (std::uint32_t h = 0; h < e.count; ++h) {
    const std::uint32_t at = hops[h];
    if (at == resource || target_[at] <= before) continue;
    if (was_lowest) {
      touch(at, *hop_weight_.at(e.first + h), before, at == low_at ? second : low);
    } else {
      mark_dirty(at);
    }
  }
}

double Solver::weight_on(const Entity& e, std::uint32_t resource) const {
  const std::uint32_t* const begin = hop_at_.at(e.first);
  const auto hop = std::lower_bound(begin, begin + e.count, resource) - begin;
  return *hop_weight_.at(e.first + static_cast<std::uint32_t>(hop));
}

// Brings the two lowest levels up to date and wakes the resources for which the demand moved.
void Solver::update_long(std::uint32_t entity, std::uint32_t resource, double level) {
  Entity& e = entity_[entity];
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
  const Entity& e = entity_[entity];
  const double rate = rate_[entity];
  const auto demand_before = [&](std::uint32_t at) { return at == low_at ? second : low; };
  const auto demand_now = [&](std::uint32_t at) { return at == e.low_at ? e.second : rate; };
  if (rate != low) {
    note_changed(entity);
    const std::uint32_t* const hops = hop_at_.at(e.first);
    for (std::uint32_t h = 0; h < e.count; ++h) {
      const std::uint32_t at = hops[h];
      if (at != resource)
        touch(at, *hop_weight_.at(e.first + h), demand_before(at), demand_now(at));
    }
    return;
  }
  // Only the limiting resources see another demand: the old one and, after a tie, the new one.
  for (const std::uint32_t at : {low_at, e.low_at}) {
    if (at != resource && at != no_block)
      touch(at, weight_on(e, at), demand_before(at), demand_now(at));
    if (low_at == e.low_at) break;
  }
}

void Solver::touch(std::uint32_t resource, double weight, double before, double after) {
  const double target = target_[resource];
  if (target == unlimited) {
    if (after <= before) return;
    Resource& r = resource_[resource];
    r.bound += weight * (after - before);
    if (r.bound <= r.capacity) return;
  } else if ((before >= target && after >= target) || before == after) {
    return;
  }
  mark_dirty(resource);
}

void Solver::settle() {
  if (dirty_.empty()) return;
  ++counters_.settles;
  // A change that touches a good part of everything is cheaper to solve anew.
  pop_limit_ = counters_.level_changes + 2 * used_resources_ + 64;
  if (dirty_.size() > 64 && dirty_.size() * 4 > used_resources_) return full_solve();
  flush_dirty();
  settle_pending();
  if (!pending_.empty()) full_solve();
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
  for (const std::uint32_t at : dirty_) resource_[at].dirty = false;
  dirty_.clear();
  fill_progressively();
  for (std::uint32_t id = 0; id < entity_.size(); ++id) {
    if (entity_[id].alive == 0) continue;
    const double before = rate_[id];
    rescan(id);
    if (rate_[id] != before) note_changed(id);
  }
  // The filling stops at the first bottleneck of each entity; ties may leave a level to correct.
  for (std::uint32_t at = 0; at < resource_.size(); ++at) {
    if (resource_[at].count > 0) {
      mark_dirty(at);
    } else {
      target_[at] = unlimited;
      resource_[at].bound = 0;
    }
  }
  flush_dirty();
  pop_limit_ = UINT64_MAX;
  settle_pending();
}

// Raises all rates together; the resource that fills first freezes its entities at its share.
// Cost: O(hops + resources log resources). Sets level_ only.
void Solver::fill_progressively() {
  left_.resize(resource_.size());
  weight_left_.resize(resource_.size());
  open_.assign(resource_.size(), 0);
  pending_.clear();
  for (std::uint32_t at = 0; at < resource_.size(); ++at) {
    const Resource& r = resource_[at];
    level_[at] = unlimited;
    if (r.count == 0) continue;
    left_[at] = r.capacity;
    open_[at] = r.count;
    double weight = 0;
    for (std::uint32_t i = 0; i < r.count; ++i) weight += member_weight_[r.first + i];
    weight_left_[at] = weight;
    pending_.push_back({r.capacity / weight, at});
  }
  std::make_heap(pending_.begin(), pending_.end());
  std::vector<char> frozen(entity_.size(), 0);
  while (!pending_.empty()) {
    const Pending top = pending_.front();
    std::pop_heap(pending_.begin(), pending_.end());
    pending_.pop_back();
    if (open_[top.resource] == 0) continue;
    const double share = std::max(left_[top.resource], 0.0) / weight_left_[top.resource];
    if (share > top.key * (1 + 1e-13)) {  // others froze meanwhile: its turn comes later
      pending_.push_back({share, top.resource});
      std::push_heap(pending_.begin(), pending_.end());
      continue;
    }
    level_[top.resource] = share;
    const Resource& r = resource_[top.resource];
    for (std::uint32_t i = 0; i < r.count; ++i) {
      const std::uint32_t id = members_[r.first + i].entity;
      if (frozen[id] != 0) continue;
      frozen[id] = 1;
      const Entity& e = entity_[id];
      for (std::uint32_t h = 0; h < e.count; ++h) {
        const std::uint32_t at = hop_at_[e.first + h];
        left_[at] -= hop_weight_[e.first + h] * share;
        weight_left_[at] -= hop_weight_[e.first + h];
        --open_[at];
      }
    }
  }
}

}  // namespace weft::engine::fluid
