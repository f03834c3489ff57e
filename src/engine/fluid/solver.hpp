// Max-min fair rates, kept up to date as flows come and go.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/id.hpp"
#include "engine/fluid/arena.hpp"
#include "engine/fluid/hops.hpp"

namespace weft::engine::fluid {

// Whatever has one rate: a flow, several flows of equal path and fate, a ring in steady state.
using EntityId = Id<struct EntityTag>;

inline constexpr double unlimited = std::numeric_limits<double>::infinity();

// Every resource has a *level*: the water-fill of its capacity against the other resources' levels
// on each entity that crosses it (infinite while not saturated). An entity's rate is the lowest
// level on its path. This fixed point is unique and is the weighted max-min allocation, in which
// an entity of rate x loads a resource with weight * x. After a change only touched resources are
// recomputed, in order of the smaller of old and new level: all below that key is final, so every
// repair is exact. When a change spreads to most resources, a full progressive filling takes over.
// An entity's *cap*, the lowest capacity / weight of all its flows on its path, counts as the level
// of a resource that it has to itself. That changes no rate, as the cap follows from the
// capacities; but what has its path to itself then moves no level, and resources that all caps fit
// into stay out of it all. From: Bertsekas & Gallager, Data Networks, 6.5 (max-min and its
// bottleneck certificate); Ros-Giralt et al., "On the bottleneck structure of congestion-controlled
// networks", 2019 (levels). We differ: weights, and repair ordered by level.
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
  std::size_t resource_count() const { return levels_.size(); }
  double capacity(LinkId resource) const { return resources_[resource.index()].capacity; }
  // No rate through the resource is above it; unlimited where it is not full.
  double level(LinkId resource) const { return levels_[resource.index()].level; }

  // Each needs a settle() before rates are read again. Hops may name a resource several times;
  // shares add up. insert_merged() takes them as HopMerger makes them. No hop at all means an
  // unlimited rate.
  EntityId insert(std::span<const Hop> hops);
  EntityId insert_merged(std::span<const Hop> hops);
  void remove(EntityId entity);
  // The entity stands for so many flows (at least 1) that each have its rate on its hops. Rates
  // are those of as many entities of one flow. It is among changed() afterwards.
  void set_flows(EntityId entity, std::uint32_t flows);
  void set_capacity(LinkId resource, double capacity);

  // Cost: proportional to what changes; about 0.5 us per level that moves.
  void settle();

  // Bytes per second of each of its flows, per unit of weight; 0 when a hop has no capacity.
  double rate(EntityId entity) const { return entities_[entity.index()].rate; }
  // Calls visit(LinkId, double share) for every hop of one of its flows, in id order.
  template <class Visit>
  void for_each_hop(EntityId entity, Visit visit) const {
    const Path path = entities_[entity.index()].path;
    for (std::uint32_t h = path.first; h < path.first + path.count; ++h)
      visit(LinkId(hop_at(h)), hop_weight(h));
  }
  // Whether these are the entity's, merged as they are.
  bool has_hops(EntityId entity, std::span<const Hop> hops) const;
  // Entities whose rate may differ since the last clear_changed(); removed ones may be among them.
  std::span<const EntityId> changed() const { return changed_; }
  void clear_changed();

  bool alive(EntityId entity) const { return entities_[entity.index()].alive != 0; }
  const Counters& counters() const { return counters_; }

 private:
  static constexpr std::uint32_t no_block = UINT32_MAX;
  static constexpr std::uint8_t no_class = UINT8_MAX;
  // What is looked at together lies together, by resource and by entity: most of the time goes into
  // waiting for memory.
  struct Level {
    double level = unlimited;
    double target = unlimited;  // the level it should have
  };
  struct List {  // a resource's members: a block of the member arenas
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  struct Path {  // an entity's hops: a block of the hop arenas
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::uint32_t flows = 1;
  };
  struct Resource {
    double capacity;
    double bound = 0;  // while the target is unlimited: at least the load
    List list = {};
    std::uint32_t used_slot = 0;         // its place in used_
    std::uint8_t size_class = no_class;  // of its block; no_class before the first member
    std::uint8_t is_dirty = 0;
    std::uint8_t weighted = 0;  // some member's weight is not 1
  };
  static constexpr std::uint32_t near_max = 8;
  struct alignas(64) Entity {
    double rate = unlimited;  // the lowest level on its path, or its cap
    double cap = unlimited;
    Path path = {};
    std::array<std::uint32_t, near_max> near = {};  // its resources, of up to near_max hops
    // is_rising: while fill_progressively() runs, it awaits its turn.
    std::uint8_t alive = 0, is_changed = 0, is_rising = 0;
  };
  static_assert(sizeof(Entity) == 64);  // one line of the cache
  // Short entities look at all their levels when one of them moves; long ones (rings, sprayed
  // flows) remember the two lowest and where they are.
  struct LongPath {
    std::uint32_t low_at = no_block, second_at = no_block;
    double second = unlimited;
  };
  struct Member {          // of a resource
    std::uint32_t entity;  // with long_bit, and weight_bit
    std::uint32_t hop;     // its place in hops_
  };
  struct Pending {
    double key;
    std::uint32_t resource;
    bool operator<(const Pending& other) const { return key > other.key; }
  };
  static constexpr std::uint32_t short_hops_max = 16;
  // Of members: the entity is a long one; the weight of a flow of it is not 1.
  static constexpr std::uint32_t long_bit = 1u << 31, weight_bit = 1u << 30;
  static constexpr std::uint32_t id_bits = weight_bit - 1;

  // `place`: a hop's index in hops_.
  std::uint32_t hop_at(std::uint32_t place) const { return *hops_.at<0>(place); }
  const std::uint32_t* hops_of(const Entity& entity) const {
    return entity.path.count <= near_max ? entity.near.data() : hops_.at<0>(entity.path.first);
  }
  double hop_weight(std::uint32_t place) const { return shares_[*hops_.at<2>(place)]; }
  // Of all flows of the entity.
  double load_weight(const Path& path, std::uint32_t place) const {
    return hop_weight(place) * path.flows;
  }
  // Of all flows of the entity.
  double load_weight(const Member& member) const {
    const double flows = entities_[member.entity & id_bits].path.flows;
    return (member.entity & weight_bit) != 0 ? hop_weight(member.hop) * flows : flows;
  }
  std::span<const Member> members(std::uint32_t resource) const {
    const List list = resources_[resource].list;
    return {members_.at(list.first), list.count};
  }
  bool same(double a, double b) const;
  void fetch_ahead(std::uint32_t place, std::uint32_t end) const;
  void link_hop(std::uint32_t entity, std::uint32_t resource, std::uint32_t place);
  void make_room(std::uint32_t resource);
  void note_used(std::uint32_t resource);
  void note_unused(std::uint32_t resource);
  void unlink_hop(std::uint32_t resource, std::uint32_t place);
  bool is_long(std::uint32_t entity) const { return entities_[entity].path.count > short_hops_max; }
  void rescan(std::uint32_t entity);
  double lowest_elsewhere(std::uint32_t entity, std::uint32_t resource) const;
  double demand(std::uint32_t entity, std::uint32_t resource) const;
  double cap_of(const Path& path) const;
  void change_cap(std::uint32_t entity);
  void note_changed(std::uint32_t entity);
  void mark_dirty(std::uint32_t resource);
  void flush_dirty();
  double water_fill(std::uint32_t resource);
  template <bool weighted>
  double gather_demands(std::uint32_t resource);
  template <bool weighted>
  double fill_level(std::uint32_t resource) const;
  void apply_level(std::uint32_t resource);
  void lower_short(std::uint32_t entity, std::uint32_t resource, double level);
  void raise_short(std::uint32_t entity, std::uint32_t resource, double before);
  void update_long(std::uint32_t entity, std::uint32_t resource, double level);
  void wake_long(std::uint32_t entity, std::uint32_t resource, double low, double second,
                 std::uint32_t low_at);
  void touch(std::uint32_t resource, double weight, double before, double after);
  double weight_on(std::uint32_t entity, std::uint32_t resource) const;
  void settle_pending();
  void full_solve();
  void fill_progressively();
  bool is_cap_narrow(std::uint32_t entity) const;
  bool open_resource(std::uint32_t resource);
  void freeze_members(std::uint32_t resource, double share);
  void freeze(std::uint32_t entity, double share);
  // While fill_progressively() runs, of resources that may fill: what their rising entities may
  // take yet, and the weight of these.
  double& left(std::uint32_t resource) { return levels_[resource].target; }
  double& weight_left(std::uint32_t resource) { return resources_[resource].bound; }

  Options options_;
  double epsilon_;
  Counters counters_;
  std::vector<Level> levels_;        // by resource
  std::vector<Resource> resources_;  // by resource
  std::vector<Entity> entities_;     // by entity
  std::vector<LongPath> long_;       // of long entities; empty until there is one
  Ids free_entities_;
  BlockArena<Member> members_;  // of resources
  // Of entities: resource in ascending order, place in its list, share of one flow in shares_.
  BlockArena<std::uint32_t, std::uint32_t, std::uint32_t> hops_;
  Shares shares_;
  Ids dirty_;
  std::vector<Pending> pending_;
  std::vector<EntityId> changed_;
  std::vector<double> demand_, weight_;  // scratch of water_fill
  HopMerger merger_;
  std::vector<Hop> merged_;  // scratch of insert
  // Scratch of fill_progressively: entities to freeze by resource (0: not one of those that may
  // fill); resources that may fill.
  std::vector<std::uint32_t> open_, narrow_;
  std::uint64_t pop_limit_ = 0;
  Ids used_;  // resources with at least one member, in no order
};

}  // namespace weft::engine::fluid
