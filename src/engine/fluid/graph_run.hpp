// Operation graphs on a network: training steps and recorded workloads.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "engine/fluid/front_end.hpp"
#include "engine/fluid/network.hpp"
#include "engine/fluid/traffic_player.hpp"
#include "engine/jobs/jobs.hpp"
#include "model/work/op_graph.hpp"
#include "model/work/outcome.hpp"
#include "workload/collective/calls.hpp"

namespace weft::engine::fluid {

// Which graphs of a run have come to a steady state: none of them stops before all have.
class Steadiness {
 public:
  void expect() { ++missing_; }
  void reached() { --missing_; }
  bool all() const { return missing_ == 0; }

 private:
  std::uint32_t missing_ = 0;
};

// Semantics. Operations start as OpGraph says. Compute takes its time times the slowdown of its
// slowest GPU at its start; while communication of the actor is under way it runs slower by
// overlap_slowdown. The messages of an actor's ranks to the peer's ranks are independent transfers,
// each split over its QPs; the operation ends with the last. A collective starts when all members
// are ready, which for rings and trees is when the last could have ended anyway: every edge's bytes
// still have to cross after the last arrival. AlltoAll groups move all their messages together, at
// the pace of the slowest. Collectives of at most `latency_bytes` among `latency_ranks` or more
// cost their latency alone.
class GraphRun {
 public:
  static constexpr double latency_bytes = 4096;
  static constexpr std::size_t latency_ranks = 128;

  struct Surroundings {
    Network& network;
    TrafficPlayer& player;
    Steadiness& steadiness;
    std::function<bool()> served;  // see GraphJob::Stop::served
  };
  GraphRun(const GraphJob& job, std::uint32_t index, const Surroundings& surroundings);
  ~GraphRun();

  // The graph that a tag's value belongs to.
  static std::uint32_t index_of(std::uint64_t value) {
    return static_cast<std::uint32_t>(value >> (actor_bits + operation_bits));
  }
  void begin();
  void on_timer(std::uint64_t value);
  void on_delivered(std::uint64_t value);
  void on_played(std::uint64_t token);
  void on_front_end(std::uint64_t value);  // a timer or a delivery
  // Share of the present iteration that has been done, in operations, plus the iterations before.
  double progress() const {
    return static_cast<double>(iteration_) +
           (iterating_ ? static_cast<double>(operations_ended_) / static_cast<double>(phase_.size())
                       : 0);
  }
  GraphResult take_result();
  std::string describe_transfer(std::uint64_t value) const;
  std::string describe_play(std::uint64_t token) const;
  // The same in short, for Standstill::why.
  std::string why_transfer(std::uint64_t value) const;
  std::string why_play(std::uint64_t token) const;
  std::string why_front_end(std::uint64_t value) const { return front_end_->why(value); }

  // Everything that was sent along kept routes: for the flows behind a hot link.
  struct RouteUse {
    RouteId route;
    double bytes;  // that were sent along it
    model::Dimension dimension;
    std::span<const workload::Edge> edges;  // of a chain; none for a message
    NodeId from, to;                        // of the first part
  };
  std::vector<RouteUse> route_uses() const;
  const std::string& name() const { return job_.name; }

 private:
  static constexpr std::uint64_t actor_bits = 24, operation_bits = 24;
  static constexpr std::uint64_t timer_begin = (std::uint64_t{1} << actor_bits) - 1;

  // State of an operation of an actor.
  enum class Phase : std::uint8_t { waiting, ready, running, ended };
  struct Program;  // what all actors of a program share, made from model::Program
  struct Stream {  // that runs one operation at a time
    std::uint32_t running = none;
    std::vector<std::uint32_t> queue;  // ready ones, from `next` on
    std::size_t next = 0;
  };
  struct Compute {  // the compute operation that an actor is running
    std::uint32_t operation = none;
    double left_s = 0, since_s = 0, speed = 1, due_s = 0;
  };
  struct ActorState {
    std::uint32_t first = 0;         // of its operations in the columns below
    std::uint32_t first_stream = 0;  // in streams_
    std::uint32_t communicating = 0;
    double busy_until_s = 0;
    double compute_s = 0;
  };
  struct GroupState {
    std::uint32_t first = 0;  // of its calls in the columns below
    std::vector<std::uint32_t> actors, slots;
  };
  struct TrafficKey {
    std::uint32_t group;
    model::CollectiveOp op;
    bool latency_only;
    std::vector<std::string> algorithms;  // of the rows, as one where all are alike
    auto operator<=>(const TrafficKey&) const = default;
  };
  struct GroupTraffic {
    std::vector<workload::Traffic> rows;
    std::vector<TrafficPlayer::TrafficId> ids;                   // of the rows; with contention
    double bytes = 1;                                            // for which they were built
    std::array<double, model::distance_count> distance_bytes{};  // of all rows, at that size
  };
  struct CallKey {
    std::uint32_t group;
    model::CollectiveOp op;
    double bytes;
    auto operator<=>(const CallKey&) const = default;
  };
  struct GroupCall {
    const GroupTraffic* traffic = nullptr;
    double scale = 0;                                      // of the traffic's bytes
    std::vector<std::optional<workload::CallCost>> costs;  // of the rows
    double alone_s = 0;                                    // without contention: the slowest row
  };
  struct PeerRoutes {  // of one peer slot of one actor: a route for each of its ranks
    std::uint32_t first = 0;
    bool known = false;
    model::Dimension dimension = model::Dimension::other;
    std::array<double, model::distance_count> distance_share{};
    double overhead_s = 0, wire_bytes = 1;  // of the library, beyond the path's latency
    double sent = 0;                        // bytes, along each of its routes
  };
  static constexpr std::uint32_t none = UINT32_MAX;

  std::uint64_t tag(std::uint32_t actor, std::uint64_t operation) const;
  std::uint32_t row(std::uint32_t actor, std::uint32_t operation) const {
    return actors_[actor].first + operation;
  }
  const model::Operation& op(std::uint32_t actor, std::uint32_t operation) const;
  const Program& program(std::uint32_t actor) const;
  std::uint32_t call_operation(std::uint32_t actor, std::uint32_t slot, std::uint32_t number) const;

  void prepare();
  void ask_iteration();
  void proceed();
  void begin_iteration();
  void end_iteration();
  void accept_iteration();
  bool was_last_iteration();
  bool ran_beyond_others() const;
  void after_step(bool last);
  void go_on(bool last);
  void become_ready(std::uint32_t actor, std::uint32_t operation);
  void run_worklist();
  bool may_start(std::uint32_t actor, std::uint32_t operation);
  void start(std::uint32_t actor, std::uint32_t operation);
  void start_compute(std::uint32_t actor, std::uint32_t operation);
  void start_message(std::uint32_t sender, std::uint32_t operation);
  void arrive(std::uint32_t actor, std::uint32_t operation);
  void start_collective(std::uint32_t group, std::uint32_t call, const model::Operation& operation);
  void end_operation(std::uint32_t actor, std::uint32_t operation);
  void communicate(std::uint32_t actor, int change);
  double slowdown(std::uint32_t actor);
  std::span<const RouteId> peer_routes(std::uint32_t actor, const model::Operation& operation);
  const GroupCall& call_of(std::uint32_t group, const model::Operation& operation);
  const GroupTraffic& traffic_of(TrafficKey key, double bytes);
  void add_distances(const workload::Traffic& row, GroupTraffic& traffic) const;
  // Ranks that each rank of the graph stands for: symmetry may have left the others out.
  double stands_for() const {
    return static_cast<double>(graph_.rank_count) / static_cast<double>(graph_.actor_ranks.size());
  }
  static workload::Traffic latency_of(workload::Op op, std::span<const NodeId> gpus);
  std::vector<NodeId> gpus_of(std::span<const std::uint32_t> ranks) const;
  const model::Program* graph_program(std::uint32_t actor) const {
    return &graph_.programs[graph_.actors[actor].program];
  }
  model::Distance distance(NodeId a, NodeId b) const;

  // Accounting, in graph_account.cpp.
  void account_gap(std::uint32_t actor, std::uint32_t operation, double until_s);
  // A collective that the actor itself takes part in, within a gap of its computing.
  struct OwnCollective {
    double start_s, end_s;
    model::Dimension dimension;
  };
  std::vector<OwnCollective> own_collectives(std::uint32_t actor, std::uint32_t operation,
                                             double from_s) const;
  double book_waiting(double from_s, double until_s, std::span<const OwnCollective> own);
  std::uint32_t last_dependency(std::uint32_t actor, std::uint32_t operation) const;
  void blame(std::uint32_t actor, std::uint32_t operation, double seconds);
  void subtract_usual_waits();
  void rank_waits();
  void find_stragglers();
  void find_critical_path();
  std::pair<std::uint32_t, std::uint32_t> held_up_by(std::uint32_t actor,
                                                     std::uint32_t operation) const;
  void add_critical(std::uint32_t actor, std::uint32_t operation, double from_s, double to_s);
  void add_limits(std::uint32_t actor, std::uint32_t operation, double from_s, double to_s);
  void take_limits();
  model::Distance farthest(std::uint32_t actor, std::uint32_t operation);
  void account_iteration();
  void account_tail(std::uint32_t actor, std::uint32_t last);
  void take_folded(double share);
  void list_stuck();
  std::string why_unreachable(std::span<const std::uint32_t> ranks) const;
  std::string dead_path(std::span<const std::uint32_t> ranks) const;
  std::string describe_operation(std::uint32_t actor, std::uint32_t operation) const;
  void record_spans();

  GraphJob job_;
  const model::OpGraph& graph_;
  std::uint32_t index_;
  Network& network_;
  TrafficPlayer& player_;
  Steadiness& steadiness_;
  std::function<bool()> served_;
  bool steady_ = false;
  std::vector<Program> programs_;
  std::vector<ActorState> actors_;
  std::vector<Stream> streams_;
  std::vector<Compute> compute_;  // by stream
  std::vector<GroupState> groups_;
  // By actor and operation.
  std::vector<Phase> phase_;
  std::vector<std::uint32_t> left_;  // dependencies; then transfers, or 1 + what it queued behind
  std::vector<double> ready_s_, start_s_, end_s_;
  // By group and call.
  std::vector<std::uint32_t> arrived_, last_actor_;
  std::vector<double> before_last_s_;  // when the last but one arrived
  std::vector<double> slowdown_;       // by actor, in the state of slowdown_round_
  std::uint32_t slowdown_round_ = 0;
  std::vector<PeerRoutes> peer_routes_;  // by OpGraph::peers
  std::vector<RouteId> routes_;
  workload::Calls library_calls_;
  std::map<TrafficKey, GroupTraffic> traffic_;
  std::map<CallKey, GroupCall> group_calls_;
  struct Work {
    std::uint32_t actor, operation;
  };
  std::vector<Work> worklist_;
  std::size_t work_done_ = 0;
  bool working_ = false, iterating_ = false;
  std::uint32_t iteration_ = 0;
  std::size_t operations_ended_ = 0;
  double iteration_start_s_ = 0, operations_begin_s_ = 0;  // with and without the wait for data
  // What the job waits for at the front end.
  enum class Await : std::uint8_t { nothing, start, data, checkpoint, end };
  Await await_ = Await::nothing;
  bool was_last_ = false;
  double await_since_s_ = 0;
  std::optional<FrontEndRun> front_end_;
  std::map<std::pair<std::uint32_t, model::Dimension>, double> waits_;
  // Where the network notes_limits(): of messages, by the sender's operation; of calls.
  std::vector<LimitHistory> message_limits_, call_limits_;
  LimitSum critical_limits_;
  GraphResult current_, result_;  // of this iteration; of all that have ended
};

// The ten busiest links between NICs and switches of the back end, with who sent over them.
std::vector<model::HotLink> hottest_links(std::span<const double> link_bytes, double makespan_s,
                                          std::span<const std::unique_ptr<GraphRun>> graphs,
                                          Network& network);

}  // namespace weft::engine::fluid
