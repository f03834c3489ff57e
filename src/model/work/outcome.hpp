// What `weft run` found out: several variants of one scenario, as plain data. Engines and reducers
// fill it, the report reads it.
//
// Units: seconds, bytes and GB/s (10^9 bytes per second). Load is the share of a link's capacity
// that is used, averaged over the variant's makespan, in [0, 1]. A number that has no value (an
// operation that never finished, a missing link) is `no_number`; it becomes null in JSON.
// Names (variants; jobs and tiers within a variant) are unique. Lists are in reporting order.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_text.hpp"
#include "model/work/op_graph.hpp"

namespace weft::model {

inline constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

// Histogram bin i holds loads in [i, i + 1) / load_bins; the last one also holds 1 and more.
inline constexpr std::size_t load_bins = 200;

// How far apart the two ends of a message are.
enum class Distance : std::uint8_t { host, rack, zone, cross_zone };
inline constexpr std::size_t distance_count = 4;

// Where the time of a chain of operations went, each of which held up the next. Seconds.
struct CriticalPath {
  double compute_s = 0;
  // Of communication, by how far the most distant of its ranks are apart.
  std::array<std::array<double, distance_count>, dimension_count> communication_s{};
  double total_s() const;
};

// What the communication of a critical path waited for. Seconds, of the last step; all together,
// they are its communication.
struct LinkWaits {
  struct Link {
    std::string link;
    double seconds = 0;
  };
  std::vector<Link> links;  // largest first, at most 5
  double other_links_s = 0;
  std::uint32_t other_links = 0;
  double latency_s = 0, library_s = 0, no_path_s = 0, folded_s = 0;  // as GraphResult has them
};

struct HotLink {
  struct Flow {
    std::string job;
    Dimension dimension = Dimension::other;
    std::string from, to;  // one pair of GPUs as example
    double bytes = 0;      // of all flows of this job and dimension
  };
  std::string link;
  double bytes = 0;
  double load = 0;          // share of capacity over the run
  std::vector<Flow> flows;  // largest first
};

// What a job with a model or a recorded workload found out, beyond JobOutcome. Times are of the
// last step and means over GPUs unless said otherwise: step_time = compute + exposed + idle +
// ingest stall.
struct TrainingOutcome {
  std::string model;  // "llama3-405b", or the name of the trace's format
  std::string plan;   // "TP 8, PP 16, DP 128"
  double step_time_s = no_number;
  double compute_s = no_number;
  double idle_s = no_number;  // waiting for other ranks, not for bytes: pipeline bubble, stragglers
  double bubble = no_number;  // idle_s / (step_time - idle_s - exposed), as published bubbles are
  std::array<double, dimension_count> exposed_s{};  // communication that nothing hides
  CriticalPath critical;                // of the last step, without the wait for its input
  std::optional<LinkWaits> link_waits;  // where asked for
  double tokens_per_s_per_gpu = no_number;
  double tflops_per_gpu = no_number;  // model FLOPs (causal attention, no recomputation)
  double mfu = no_number;             // of the GPU's dense peak in the plan's precision
  double memory_bytes = no_number;    // of the fullest GPU
  double roofline_s = no_number;      // the busiest resource alone: no step is faster
  std::string roofline_resource;      // "compute of gpu:17"
  std::array<std::array<double, distance_count>, dimension_count> bytes{};  // of a step, all ranks
  std::vector<HotLink> hottest_links;                                       // by load, at most 10
  // Ranks that others waited for in the last step: seconds, summed over the waiting GPUs, that
  // would not have been lost had it come with the last but one (collectives), or like the median of
  // its role (pipeline messages).
  struct Wait {
    std::string rank;  // "rank 148 (gpu:148)"
    Dimension dimension = Dimension::other;
    double seconds = 0;
  };
  std::vector<Wait> waits;  // largest first, at most 10
  // Ranks that computed longer than the median of those with the same role: by how much.
  struct Straggler {
    std::string rank;
    double factor = 1;  // at least 1.02
  };
  std::vector<Straggler> stragglers;  // worst first, at most 10
  std::vector<double> step_times_s;
  // Over the front-end network.
  double start_s = no_number;         // from the job's start to its first step's
  double bootstrap_s = no_number;     // communicator set-up
  double ingest_s = no_number;        // fetching the data of a step, mean
  double ingest_stall_s = no_number;  // what the last step waited for its data
  double checkpoint_s = no_number;    // writing a checkpoint, mean
  std::uint64_t checkpoints = 0;
  double checkpoint_stall_s = no_number;  // what steps wait for a checkpoint, mean; in no step time
};

// A job that came to a stop before its end.
struct Unfinished {
  double at_s = 0;  // since when its first transfer that never arrived has been stalled
  std::string why;  // "iteration 4 of 10: gpu:0 has no live path to gpu:8"
};
// "unfinished at 1.2 s: iteration 4 of 10: ..."
std::string to_text(const Unfinished& unfinished);

struct JobOutcome {
  std::string name;
  std::string op;         // "all_reduce"
  std::string algorithm;  // what "auto" became
  std::string placement;  // "topology"
  std::uint64_t gpus = 0;
  double bytes_per_rank = 0;     // as in nccl-tests
  std::uint64_t iterations = 0;  // finished ones
  // Then what is said of an iteration or step has no number, however many have ended: none of them
  // is how long the job takes. Only `iterations` and TrainingOutcome::step_times_s tell of those.
  std::optional<Unfinished> unfinished;
  double time_mean_s = no_number, time_min_s = no_number, time_max_s = no_number;
  double algbw_gbyte_s = no_number, busbw_gbyte_s = no_number;
  double roofline_s = no_number;              // lower bound of one iteration on the healthy fabric
  double roofline_busbw_gbyte_s = no_number;  // bus bandwidth of an iteration that takes that long
  double ratio = no_number;                   // time_of() / roofline_s; 1 is ideal
  // Of jobs with a model or a workload; bytes and bandwidths above then have no number, and `op`
  // is "training" or "trace".
  std::optional<TrainingOutcome> training;
};
// Seconds of a step (the last) or of an iteration (the mean): how long the job takes, wherever one
// number says it. no_number for a job that does not end.
double time_of(const JobOutcome& job);

// All links of one tier that some flow of the variant could use.
struct TierOutcome {
  std::string name;  // "rtsw->ctsw"
  std::uint64_t links = 0;
  double mean_load = 0, max_load = 0;
  double mmr = no_number;  // max_load / mean_load; no number for an idle tier
  std::array<std::uint64_t, load_bins> histogram{};  // links per bin; sums to `links`
};

// Load between two roles of switches: row-major, rows x columns. Parallel links count as one, with
// the load of the hottest; a missing or failed link is `no_number`.
struct HeatMap {
  std::string row_role, column_role;       // "rtsw", "ctsw"
  std::vector<std::string> rows, columns;  // names of nodes
  std::vector<double> up, down;            // row -> column, column -> row
};

// Times from the start of a flow to its end.
struct Completion {
  struct Point {
    double share;  // of the finished flows, ascending in (0, 1]
    double seconds;
  };
  std::uint64_t finished = 0, unfinished = 0;
  double mean_s = no_number;
  std::vector<Point> quantiles;
};

struct Note {
  enum class Severity : std::uint8_t { info, warning };
  Severity severity = Severity::info;
  std::string text;
};

// Of an outcome that was extrapolated from parts: the share of all bytes and compute in the largest
// of them, and how much, relatively, the time of the job that differs most is another when
// extrapolated from the smaller parts alone. That is a hint, and no bound.
struct Estimate {
  double share = 0, spread = 0;
};
template <class Archive, Of<Estimate> T>
void fields(Archive& ar, T& estimate) {
  ar("share", estimate.share);
  ar("spread", estimate.spread);
}
// "times are estimates from 5 % of the work (engine.estimate)"
std::string to_text(const Estimate& estimate);

// Something that took simulated time, for the trace. A duration of 0 is an instant.
struct Span {
  std::string name;
  std::string category;  // "job", "stage", "fault"
  std::string track;     // spans of one track share a row
  double start_s = 0, duration_s = 0;
  std::vector<std::pair<std::string, std::string>> args;
};

// What the packet engine counted over all iterations. Sizes of packets are with their headers, sums
// of payload without.
struct PacketOutcome {
  std::string transport;
  std::uint64_t hops = 0;  // packets of any kind that crossed a link
  std::uint64_t pause_frames = 0, ecn_marks = 0, cnps = 0;
  // Data packets: in all, of which for want of headroom or on dead and lossy links.
  std::uint64_t drops = 0, drops_headroom = 0, drops_link = 0;
  std::uint64_t drops_control = 0;  // of other kinds, on dead and lossy links
  std::uint64_t trims = 0, retransmissions = 0, timeouts = 0;
  double buffer_max_bytes = 0;  // waiting in one switch
  // Payload: sent (what was sent again too) = received + dropped + in flight, or something is
  // wrong.
  double sent_bytes = 0, received_bytes = 0, dropped_bytes = 0, in_flight_bytes = 0;
  // Between NICs and switches, as VariantOutcome::tiers. Histogram bin 0 counts zeros, bin i values
  // in [2^(i-1), 2^i) bytes or picoseconds; quantiles are upper edges of bins.
  struct Tier {
    std::string name;
    std::uint64_t packets = 0, drops = 0, ecn_marks = 0, pauses = 0;
    double queue_p50_bytes = 0, queue_p99_bytes = 0, queue_max_bytes = 0;  // that a packet met
    double pause_p50_s = no_number, pause_p99_s = no_number;               // of one pause
    double paused_max_s = 0;    // of the link that was paused longest
    double paused_total_s = 0;  // of all links
    std::vector<std::uint64_t> queue_histogram, pause_histogram;  // without empty bins at the end
  };
  std::vector<Tier> tiers;
  struct Series {
    std::string name, unit;  // "queue edge:3->agg:1", "B"
    std::vector<double> time_s, value;
  };
  std::vector<Series> series;
  std::vector<std::string> deadlocks, storms, lossless_drops;  // in words
  // Who made whom wait by PFC: engine/packet's PauseTree, with flows by their ids.
  struct PauseTree {
    struct Held {
      std::string flow;
      double stopped_s = 0;
    };
    struct Port {
      std::string name;
      std::uint64_t depth = 0;
      bool circle = false;
      std::uint64_t pauses = 0;
      double paused_s = 0;
      std::vector<Held> flows;  // those stalled longest come first
    };
    double paused_s = 0;
    std::vector<Port> ports;  // the root first, each before what it paused
  };
  std::optional<std::vector<PauseTree>> pause_trees;  // where they were asked for
};

// A failure of links within a run, and how long routing took to lead round it. A flow is what
// switches see as one: a QP between two ends. Hit is a flow that was under way over a link that
// died, or began over it before routing led round.
struct FailureOutcome {
  double at_s = 0;
  std::string what;            // "rtsw:1--ctsw:2", or "ctsw:3"
  std::uint64_t hit = 0;       // flows
  std::uint64_t stranded = 0;  // of these, still without a path when the run ended
  double path_again_p50_s = no_number, path_again_max_s = no_number;  // since the failure
  double stalled_bytes = no_number;  // fluid engine: rate before x time without a path, summed
  double lost_bytes = no_number;     // fluid engine: on the way when the links died
  std::optional<std::uint64_t> lost_packets;  // packet engine: of any kind, on the dead links
  struct Flow {
    std::string from, to;
    std::uint32_t qp = 0;
    double path_again_s = no_number;
  };
  std::vector<Flow> flows;  // the first ones, by their ends
};

struct FabricSummary {
  struct Count {
    std::string role;
    std::uint64_t nodes = 0;
    bool operator==(const Count&) const = default;
  };
  std::string text;  // "ai_zone, 4,032 GPUs in 252 racks"
  std::vector<Count> roles;
  std::vector<std::string> oversubscription;  // one line per tier: "rtsw 1 : 1.78"
  bool operator==(const FabricSummary&) const = default;
};

struct VariantOutcome {
  std::string name;
  FabricSummary fabric;
  std::string scheme;  // of routing
  std::uint64_t qps = 1;
  std::vector<std::string> faults;  // one line each
  std::vector<JobOutcome> jobs;
  std::vector<TierOutcome> tiers;
  std::vector<HeatMap> heat_maps;
  Completion completion;
  std::vector<Note> notes;  // unfinished flows, tolerances and their error, ...
  std::string digest;
  std::string scenario_text;    // effective, as YAML
  std::string scenario_digest;  // of that text
  std::vector<Span> spans;
  std::optional<PacketOutcome> packet;   // of runs on the packet engine
  std::optional<Estimate> estimate;      // where times and loads are extrapolated
  std::vector<FailureOutcome> failures;  // of runs with `routing: {convergence: ...}`
  std::string fabric_map;  // JSON for the page (plan/explain/fabric_map.hpp); empty: not asked for
};

struct Outcome {
  std::string scenario;  // name
  std::string file;
  std::string version;  // of weft
  std::string engine;
  std::string command;  // without what must not change the report, such as --out
  std::uint64_t seed = 1;
  std::vector<VariantOutcome> variants;  // the first is what the others are compared with
  double wall_s = 0, cpu_s = 0;          // shown on the terminal only: reports are reproducible
};

}  // namespace weft::model
