// Max-min fair rates, kept up to date as flows come and go.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/id.hpp"
#include "engine/fluid/arena.hpp"
#include "route/router.hpp"

namespace weft::engine::fluid {

using route::Hop;
using route::LinkId;

// Whatever has one rate: a flow, several flows of equal path and fate, a ring in steady state.
using EntityId = Id<struct EntityTag>;

inline constexpr double unlimited = std::numeric_limits<double>::infinity();

// Every resource has a *level*: the water-fill of its capacity against the other resources' levels
// on each entity that crosses it (infinite while not saturated). An entity's rate is the lowest
// level on its path. This fixed point is unique and is the weighted max-min allocation, in which
// an entity of rate x loads a resource with weight * x. After a change only touched resources are
// recomputed, in order of the smaller of old and new level: all below that key is final, so every
// repair is exact. When a change spreads to most resources, a full progressive filling takes over.
// From: Bertsekas & Gallager, Data Networks, 6.5 (max-min and its bottleneck certificate); Ros-Giralt
// et al., "On the bottleneck structure of congestion-controlled networks", 2019 (levels). We
// differ: weights, and repair ordered by level.
class Solver {
 public:
  struct Options {
    // A level that moves by less than this share is left as it is. 0 is exact (to rounding).
    double tolerance = 0;
  };
  struct Counters {
    std::uint64_t settles = 0, level_changes = 0, recomputes = 0, full_solves = 0;
  };

  // `capacity` in bytes per second, by resource.
  Solver(std::span<const double> capacity, const Options& options);

  void add_resource(double capacity);
  std::size_t resource_count() const { return level_.size(); }
  double capacity(LinkId resource) const { return resource_[resource.index()].capacity; }

  // Each needs a settle() before rates are read again. Hops may name a resource several times;
  // shares add up. No hop at all means an unlimited rate.
  EntityId insert(std::span<const Hop> hops);
  void remove(EntityId entity);
  void set_capacity(LinkId resource, double capacity);

  // Cost: proportional to what changes; about 0.5 us per level that moves.
  void settle();

  // Bytes per second per unit of weight; 0 when a hop has no capacity.
  double rate(EntityId entity) const { return rate_[entity.index()]; }
  // Calls visit(LinkId, double share) for every hop, in id order.
  template <class Visit>
  void for_each_hop(EntityId entity, Visit visit) const {
    const Entity& e = entity_[entity.index()];
    for (std::uint32_t h = 0; h < e.count; ++h)
      visit(LinkId(*hop_at_.at(e.first + h)), *hop_weight_.at(e.first + h));
  }
  // Entities whose rate may differ since the last clear_changed(); removed ones may be among them.
  std::span<const EntityId> changed() const { return changed_; }
  void clear_changed();

  bool alive(EntityId entity) const { return entity_[entity.index()].alive != 0; }
  std::size_t entity_slots() const { return entity_.size(); }
  const Counters& counters() const { return counters_; }

 private:
  struct Member {       // one crossing of a resource, in the resource's list
    std::uint32_t entity;
    std::uint32_t hop;  // which of the entity's hops; long_bit set for long entities
  };
  struct Resource {
    double capacity;
    double bound;       // while the target is unlimited: at least the load
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::uint32_t size_class = no_block;
    bool dirty = false;
    bool weighted = false;  // some member's weight is not 1
  };
  struct Entity {
    std::uint32_t first = 0;  // into the arenas of hops
    std::uint32_t count : 30 = 0;
    std::uint32_t alive : 1 = 0;
    std::uint32_t changed : 1 = 0;
    // Long entities only: where the lowest level is, and the second lowest.
    std::uint32_t low_at = no_block, second_at = no_block;
    double second = unlimited;
  };
  struct Pending {
    double key;
    std::uint32_t resource;
    bool operator<(const Pending& other) const { return key > other.key; }
  };
  static constexpr std::uint32_t no_block = UINT32_MAX;
  // Short entities look at all their levels when one of them moves; long ones (rings, sprayed
  // flows) remember the two lowest.
  static constexpr std::uint32_t short_hops_max = 16;
  static constexpr std::uint32_t long_bit = 1u << 31;

  bool same(double a, double b) const;
  void link_hop(std::uint32_t entity, std::uint32_t hop);
  void make_room(Resource& resource);
  void unlink_hop(std::uint32_t entity, std::uint32_t hop);
  static bool is_long(const Entity& entity) { return entity.count > short_hops_max; }
  void rescan(std::uint32_t entity);
  double lowest_elsewhere(std::uint32_t entity, std::uint32_t resource) const;
  double demand(std::uint32_t entity, std::uint32_t resource) const;
  void note_changed(std::uint32_t entity);
  void mark_dirty(std::uint32_t resource);
  void flush_dirty();
  double water_fill(std::uint32_t resource);
  template <bool weighted>
  double fill_level(const Resource& resource, double guess) const;
  void apply_level(std::uint32_t resource);
  void lower_short(std::uint32_t entity, std::uint32_t resource, double level);
  void raise_short(std::uint32_t entity, std::uint32_t resource, double before);
  void update_long(std::uint32_t entity, std::uint32_t resource, double level);
  void wake_long(std::uint32_t entity, std::uint32_t resource, double low, double second,
                 std::uint32_t low_at);
  void touch(std::uint32_t resource, double weight, double before, double after);
  double weight_on(const Entity& entity, std::uint32_t resource) const;
  void settle_pending();
  void full_solve();
  void fill_progressively();

  Options options_;
  double epsilon_;
  Counters counters_;
  std::vector<double> level_;
  std::vector<double> target_;       // the level each resource should have
  std::vector<Resource> resource_;
  std::vector<Entity> entity_;
  std::vector<double> rate_;         // by entity: the lowest level on its path
  std::vector<std::uint32_t> free_entities_;
  // Blocks of these two are taken together, as are those of the three below.
  BlockArena<Member> members_;
  BlockArena<double> member_weight_;
  BlockArena<std::uint32_t> hop_at_;    // resource
  BlockArena<double> hop_weight_;
  BlockArena<std::uint32_t> hop_slot_;  // place in the resource's list of members
  std::vector<std::uint32_t> dirty_;
  std::vector<Pending> pending_;
  std::vector<EntityId> changed_;
  std::vector<double> demand_;       // scratch of water_fill
  std::vector<Hop> sorted_;          // scratch of insert
  std::vector<double> left_, weight_left_;
  std::vector<std::uint32_t> open_;  // scratch of fill_progressively
  std::uint64_t pop_limit_ = 0;
  std::size_t used_resources_ = 0;   // with at least one member
};

}  // namespace weft::engine::fluid
