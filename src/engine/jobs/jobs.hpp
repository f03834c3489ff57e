// What engines run, and what they find out: the seam between jobs and engines.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "engine/jobs/time_histogram.hpp"
#include "model/fabric/fabric.hpp"
#include "model/fabric/faults.hpp"
#include "model/fabric/frontend.hpp"
#include "model/work/op_graph.hpp"
#include "model/work/outcome.hpp"
#include "workload/collective/calls.hpp"
#include "workload/collective/traffic.hpp"
#include "workload/serving/cluster.hpp"

namespace weft::engine {

using model::Fabric;
using model::NodeId;

// From its `at` on, the fabric is in its `state`.
using StateChange = model::FaultTimeline::Snapshot;

// A job runs its traffic `iterations` times, each beginning when the one before has ended.
struct Job {
  std::string name;
  workload::Traffic traffic;
  std::vector<NodeId> ranks;  // GPUs, as in the traffic's request
  std::uint32_t iterations = 1;
  Time start;
  Duration step_overhead;  // software latency added to every step of a stage
  // Per rank: how much later than the others it enters the first iteration. Empty: nobody is late.
  std::vector<Duration> late;
  // What the library needs for an iteration; none: nothing but bytes at line rate and the paths'
  // latency.
  std::optional<workload::CallCost> cost;
  // The library chooses anew for every iteration that begins in another state of the fabric: see
  // adapt(). `others`: what it may run instead of `traffic`.
  struct Alternative {
    workload::Traffic traffic;
    std::optional<workload::CallCost> cost;
  };
  bool adaptive = false;
  std::vector<Alternative> others;
};

// What a job does over the front-end network beside its steps.
struct FrontEnd {
  // Communicators come up before the first step: `lead_s` of messages one after another, then
  // `bytes` over every edge of the ring of front-end NICs, in no less than `paced_s`.
  struct StartUp {
    double lead_s = 0, paced_s = 0, bytes = 0;
    std::vector<NodeId> ring;
  };
  StartUp start;
  // Fetched for every step, which begins when it is there; `prefetch` sets may be ahead of it.
  std::vector<model::StorageFlow> ingest;
  std::uint32_t prefetch = 1;
  // Written after every `every` steps; 0: after the last. Steps wait for the write or, where it is
  // asynchronous, for the write before it and then for `copy_s`.
  std::vector<model::StorageFlow> checkpoint;
  std::uint32_t every = 0;
  bool asynchronous = false;
  double copy_s = 0;
};

// A graph that is run again and again, each iteration beginning when all actors have ended the one
// before: `iterations` times or, with Stop::steady, until for all such graphs the last two
// iterations took the same time to one part in a thousand and the last one began after the last
// state change, at most `iterations` times; with Stop::served, until all ServingJobs beside it have
// ended or can go on no more.
struct GraphJob {
  enum class Stop : std::uint8_t { counted, steady, served };

  std::string name;
  const model::OpGraph* graph = nullptr;  // finished; must outlive the run
  std::vector<NodeId> ranks;              // GPU of each rank
  std::uint32_t iterations = 1;
  Stop stop = Stop::counted;
  Time start;
  Duration step_overhead;  // software latency of each message and of each step of a collective
  // By how much communication beside it slows a GPU's compute; 1: not at all.
  double overlap_slowdown = 1;
  // By rank: how many times as long it computes as the graph says, beside what the state says of
  // its GPU; empty: all as the graph says.
  std::vector<double> compute_factor = {};
  double slowdown(const model::State& state, const model::Fabric& fabric, std::size_t rank) const {
    return state.slowdown(fabric, ranks[rank]) *
           (compute_factor.empty() ? 1 : compute_factor[rank]);
  }
  // Of an actor's ranks the one that computes slowest, of several the first.
  std::uint32_t slowest_of(std::uint32_t actor, const model::State& state,
                           const model::Fabric& fabric) const;
  // Groups that an algorithm cannot serve use auto, and the result says how many.
  workload::Algorithms algorithms{};
  workload::Library library{.cost = workload::Library::Cost::line_rate};
  std::optional<FrontEnd> front_end;  // of the fluid engine
};

// Replicas that serve requests. Their steps take what `times` says; the keys and values of prompts
// cross the fabric, an equal share from each rank of the replica that prefills to its like.
struct ServingJob {
  std::string name;
  const std::vector<workload::InferenceRequest>* requests = nullptr;  // both must outlive the run
  const workload::StepTimes* times = nullptr;
  workload::Cluster cluster;
  // The ends of each replica, those that prefill first: GPUs, or NICs.
  std::vector<std::vector<NodeId>> replicas;
};

// Jobs side by side on one fabric.
struct Work {
  std::span<const Job> jobs;
  std::span<const GraphJob> graphs;
  std::span<const ServingJob> serving = {};  // of the fluid engine
};

// How a job came to a stop that did not end: since when the first of its transfers that never
// arrived has been stalled, and why.
struct Standstill {
  double since_s = 0;
  std::string why;  // "gpu:0 has no live path to gpu:8 (dp)"
};

struct JobResult {
  struct Span {
    std::string name;  // of the stage
    std::uint32_t iteration;
    double start_s, end_s;
  };
  std::vector<double> iteration_s;  // finished ones
  std::vector<Span> stages;         // of the first iterations, at most span_count_max
  double roofline_s = 0;            // see least_seconds()
  double end_s = 0;
  bool finished = false;
  std::optional<Standstill> standstill;  // where not finished
};
inline constexpr std::size_t span_count_max = 10'000;
// Operations of a graph job, of the last iteration and one actor of each program.
inline constexpr std::size_t graph_span_count_max = 20'000;

struct FrontEndResult {
  double start_up_s = 0;                   // communicators, from the job's start
  double start_s = 0;                      // from the job's start to the first step's
  std::vector<double> ingest_s;            // of each fetch that ended
  std::vector<double> ingest_stall_s;      // of each step but the first
  std::vector<double> checkpoint_s;        // of each write that ended
  std::vector<double> checkpoint_stall_s;  // of each checkpoint
  struct Span {
    std::string name;
    double start_s, end_s;
  };
  std::vector<Span> spans;         // the first ones
  std::size_t spans_left_out = 0;  // after them
};

struct GraphResult {
  std::vector<double> iteration_s;  // finished ones, with their wait for input
  // Finished ones during which all others stopped: their time says nothing, and their bytes crossed
  // links like those of any.
  std::uint32_t discarded_iterations = 0;
  double end_s = 0;  // of all iterations
  bool finished = false;
  std::optional<Standstill> standstill;  // where not finished
  // Of the last iteration, means over actors.
  double compute_s = 0, idle_s = 0;
  std::array<double, model::dimension_count> exposed_s{};
  // The last iteration from its end back to its begin, each time along what came last: the parts
  // add up to its length. Whoever waits for the communication of others is held up by it, too.
  model::CriticalPath critical;
  // What its communication waited for; where Watch::limits asks for it, and the engine knows. Links
  // that limit a transfer together share its time equally; largest first. All of it adds up to the
  // communication of `critical`.
  struct LinkWaits {
    std::vector<std::pair<model::LinkId, double>> links;
    double latency_s = 0;  // of paths and software, from the last byte sent to its arrival
    double library_s = 0;  // collectives that the library's own pace holds up, not a link
    double no_path_s = 0;
    double folded_s = 0;  // inside hosts, folded into compute: part of no transfer
  };
  std::optional<LinkWaits> critical_links;
  // Of all iterations, what ranks sent, by dimension and distance; without what is folded.
  std::array<std::array<double, model::distance_count>, model::dimension_count> bytes{};
  // Who was waited for in the last iteration, largest first: seconds, summed over waiting ranks,
  // that would not have been lost had it come with the last but one (collectives), or like the
  // median of its role (messages: a pipeline waits for every stage).
  struct Wait {
    std::uint32_t rank;  // first of the actor
    model::Dimension dimension;
    double seconds;
  };
  std::vector<Wait> waits;
  // Actors that computed longer than the median of their program, worst first.
  struct Straggler {
    std::uint32_t rank;  // the slowest of the actor, or its first
    double factor;
  };
  std::vector<Straggler> stragglers;
  double busiest_compute_s = 0;  // of one actor in the last iteration: no step is shorter
  std::uint32_t busiest_rank = 0;
  // What the first actor of each program did in the last iteration.
  struct Span {
    std::uint32_t program;
    std::uint32_t operation;
    double start_s, end_s;
  };
  std::vector<Span> spans;
  std::vector<std::string> notes;
  // Where it is stalled: operations that never ended, one line each, bounded.
  std::vector<std::string> stuck;
  std::optional<FrontEndResult> front_end;
};

// Of a job's actors those that computed 2 % or more longer than the median of their program (of two
// medians the lower one), worst first, at most ten. `compute_s`: by actor; `slowest`: its slowest
// rank.
std::vector<GraphResult::Straggler> find_stragglers(const model::OpGraph& graph,
                                                    std::span<const double> compute_s,
                                                    std::span<const std::uint32_t> slowest);

struct ServingResult {
  workload::ServingRun run;
  std::optional<Standstill> standstill;  // where requests did not end
};

// A part of a run, and what was carried in it.
struct BusyInterval {
  double from_s = 0, to_s = 0;
  std::vector<double> link_bytes;  // by LinkId
};

struct RunResult {
  std::vector<JobResult> jobs;
  std::vector<GraphResult> graphs;
  std::vector<ServingResult> serving;
  std::vector<double> link_bytes;       // by LinkId; of packets with their headers
  std::optional<BusyInterval> busiest;  // where Watch::load_windows asks for it
  TimeHistogram transfer_times;
  std::vector<model::HotLink> hot_links;  // of runs with graphs
  std::vector<std::string> unfinished;    // one line each, at most 100, then "... and N more"
  double makespan_s = 0;
  std::string digest;
  std::vector<model::Note> notes;               // what a person should know of the engine's work
  std::optional<model::PacketOutcome> packet;   // of an engine that has packets
  std::vector<model::FailureOutcome> failures;  // where the router's convergence takes time
  std::optional<model::Estimate> estimate;      // where a part was run, and the whole extrapolated
};

// How far apart two GPUs of a job are.
model::Distance distance_between(const Fabric& fabric, NodeId a, NodeId b);

}  // namespace weft::engine
