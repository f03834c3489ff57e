// Flows in time: who ends when, under max-min fair rates.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/fluid/key_heap.hpp"
#include "engine/fluid/limits.hpp"
#include "engine/fluid/load_windows.hpp"
#include "engine/fluid/path_index.hpp"
#include "engine/fluid/solver.hpp"

namespace weft::engine::fluid {

using FlowId = Id<struct FlowTag>;

// Event-driven: rates change only when a flow starts or ends, is moved, or a capacity changes.
// Time is in seconds as double inside; events closer than one part in 10^11 are one event, so that
// rounding does not split what happens together. Deterministic: simultaneous ends are reported in
// order of start.
//
// Flows of equal hops always have equal rates: they are one *bundle*, an entity of the solver. Its
// clock counts the bytes that each of them has sent since the bundle came to be, so that a flow
// ends when the clock comes to what it said at its start plus the flow's bytes: a mark that no
// change of rate moves. So a change of rate costs O(1) a bundle, and only the flow that ends first,
// the *head*, has a place in the queue of ends.
class Simulation {
 public:
  // Reacts to events; may start, move and stop flows, set capacities and timers from within.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_flow_end(FlowId flow, std::uint64_t tag) = 0;
    virtual void on_timer(std::uint64_t tag) = 0;
  };
  struct Options {
    Solver::Options solver;
    // Off: every flow is an entity of its own, for comparison. The rates are the same to rounding.
    enum class Bundles : std::uint8_t { on, off } bundles = Bundles::on;
    // Compare all rates with a full solve at every n-th event (0: never); see rate_error().
    std::uint64_t audit_every = 0;
    // Keep what resources carry in so many intervals of the run at most (0: none); see windows().
    std::size_t load_windows = 0;
    // Keep what limits each flow; see limits().
    bool limits = false;
  };

  // Events closer than this share of the time are one.
  static constexpr double together = 1e-11;

  Simulation(std::span<const double> capacity, const Options& options);

  double now() const { return now_; }
  // A flow of `bytes` along `hops`, from now on. `tag` comes back with its end.
  FlowId start(std::span<const Hop> hops, double bytes, std::uint64_t tag);
  // The flow goes on along other hops, with `extra_bytes` to send again.
  void move(FlowId flow, std::span<const Hop> hops, double extra_bytes);
  // Ends it without a report; returns the bytes it had left.
  double stop(FlowId flow);
  // `tag` comes back at time `at` (not before now()).
  void timer(double at, std::uint64_t tag);
  void set_capacity(LinkId resource, double capacity);
  void add_resource(double capacity);

  double rate(FlowId flow) const;
  double bytes_left(FlowId flow) const;
  // When the flow came to its present rate.
  double rate_since(FlowId flow) const;
  // Calls visit(LinkId, double share) for every hop of the flow.
  template <class Visit>
  void for_each_hop(FlowId flow, Visit visit) const {
    solver_.for_each_hop(flow_[flow.index()].entity, visit);
  }
  std::size_t active_count() const { return active_count_; }

  // What has limited an active flow, or one whose end is being reported, on its present hops, where
  // Options::limits asks for it: the resources that allow it no more than its rate. Those that come
  // to the same rate while it stays the same are not seen.
  const LimitHistory& limits(FlowId flow) const { return limits_[flow.index()]; }
  const LimitSets& limit_sets() const { return limit_sets_; }

  // Runs until nothing more can happen. Flows that then still have a rate of 0 stay active.
  void run(Listener& listener);

  // Bytes that each resource has carried for flows that ended, moved or stopped.
  const std::vector<double>& carried() const { return carried_; }
  // While flows were under way; empty unless Options::load_windows asks for it.
  const LoadWindows& windows() const { return windows_; }
  // Adds what flows still active have carried; call once, at the end.
  void account_active();

  const Solver::Counters& counters() const { return solver_.counters(); }
  std::uint64_t event_count() const { return events_; }
  // Worst relative difference to a full solve that audits have seen.
  double rate_error() const { return rate_error_; }

 private:
  struct Flow {
    EntityId entity;
    bool active = false;
    double mark = 0;           // of its bundle's clock, at its end
    double since = 0;          // it has its present hops
    double left_at_start = 0;  // bytes left when the present hops were taken
    std::uint64_t tag = 0;
    std::uint64_t order = 0;
  };
  // By entity. The clock is the head's mark less its `left`.
  struct Bundle {
    double left = 0;  // of the head, bytes, at `since`
    double since = 0;
    double rate = 0;  // of each flow
    std::uint32_t flows = 0;
    std::uint32_t head = none;
    std::uint32_t others = none;  // their place in queues_, by mark; none before there are any
  };
  static constexpr std::uint32_t none = UINT32_MAX;
  // Timers by time, then by order of push. Ranks in lockstep set many for the very same time, so
  // what follows on a time known already joins its bucket.
  class TimerQueue {
   public:
    void push(double at, std::uint64_t tag);
    bool empty() const { return heap_.empty(); }
    double top_at() const { return heap_.front().at; }
    // The tag of the first timer; takes it out.
    std::uint64_t pop();

   private:
    struct Bucket {
      double at = -1;  // negative: not in use
      std::size_t next = 0;
      std::vector<std::uint64_t> tags;
    };
    struct Item {
      double at;
      std::uint64_t order;
      std::uint32_t bucket;
      bool operator<(const Item& other) const {
        return at != other.at ? at > other.at : order > other.order;
      }
    };
    std::vector<Item> heap_;
    std::vector<Bucket> buckets_;
    std::vector<std::uint32_t> free_;
    // The latest bucket of a time, at a place of its hash; another time may have taken the place.
    std::array<std::uint32_t, 1024> recent_{};
    std::uint64_t next_order_ = 0;
  };

  Bundle& bundle(EntityId entity) { return bundle_[entity.index()]; }
  const Bundle& bundle(EntityId entity) const { return bundle_[entity.index()]; }
  // Puts the flow into the bundle of these hops, or a new one, at the present time.
  void join(std::uint32_t flow, std::span<const Hop> hops, double bytes);
  EntityId new_bundle(std::span<const Hop> hops);
  void add_other(Bundle& bundle, std::uint32_t flow);
  // The next flow, if any, is the head.
  void drop_head(Bundle& bundle);
  void leave(std::uint32_t flow);
  // One flow less; the last one was its head and has been dropped.
  void shrink(EntityId entity);
  template <class Visit>
  void for_each_flow(const Bundle& bundle, Visit visit) const;
  double left_at(const Flow& flow, double at) const;
  double end_time(const Bundle& bundle) const;
  // Unlimited: none.
  void set_end(std::uint32_t entity, double end);
  double end_key(std::uint32_t entity) const;
  void refresh_top();
  void refresh_rates();
  void account(const Flow& flow, double left);
  void collect_ends();
  void audit();
  void note_limit(EntityId entity);
  // What was carried up to `at`, to which flows keep their rates.
  void carried_at(double at, std::vector<double>& out) const;

  Options options_;
  Solver solver_;
  double now_ = 0;
  std::vector<Flow> flow_;
  Ids free_flows_;
  std::vector<Bundle> bundle_;     // by entity
  std::vector<EntityId> resized_;  // bundles that the solver must be told of
  std::vector<KeyHeap> queues_;    // of bundles of several flows
  std::vector<std::uint32_t> free_queues_;
  KeyHeap::Positions queue_position_;  // by flow
  PathIndex paths_;                    // of bundles that flows may join
  HopMerger merger_;
  std::vector<Hop> merged_;  // scratch of join
  std::size_t active_count_ = 0;
  std::uint64_t next_order_ = 0;
  // Bundles by predicted end of the head. One that slows down leaves its key in place, too early;
  // the key is put right when it comes to the top. Most such keys change again before that.
  KeyHeap ends_;
  KeyHeap::Positions end_position_;  // by entity
  TimerQueue timers_;
  std::vector<double> carried_;
  LoadWindows windows_;
  Ids ended_;
  std::uint64_t events_ = 0;
  double rate_error_ = 0;
  std::vector<LimitHistory> limits_;  // by flow
  LimitSets limit_sets_;
  std::vector<LinkId> limiting_;  // scratch
};

}  // namespace weft::engine::fluid
