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
#include <string>
#include <utility>
#include <vector>

namespace weft::model {

inline constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

// Histogram bin i holds loads in [i, i + 1) / load_bins; the last one also holds 1 and more.
inline constexpr std::size_t load_bins = 20;

struct JobOutcome {
  std::string name;
  std::string op;         // "all_reduce"
  std::string algorithm;  // what "auto" became
  std::string placement;  // "topology"
  std::uint64_t gpus = 0;
  double bytes_per_rank = 0;     // as in nccl-tests
  std::uint64_t iterations = 0;  // finished ones
  double time_mean_s = no_number, time_min_s = no_number, time_max_s = no_number;
  double algbw_gbyte_s = no_number, busbw_gbyte_s = no_number;
  double roofline_s = no_number;              // lower bound of one iteration on the healthy fabric
  double roofline_busbw_gbyte_s = no_number;  // bus bandwidth of an iteration that takes that long
  double ratio = no_number;                   // time_mean_s / roofline_s; 1 is ideal
};

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

// Something that took simulated time, for the trace. A duration of 0 is an instant.
struct Span {
  std::string name;
  std::string category;  // "job", "stage", "fault"
  std::string track;     // spans of one track share a row
  double start_s = 0, duration_s = 0;
  std::vector<std::pair<std::string, std::string>> args;
};

struct VariantOutcome {
  std::string name;
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
};

struct FabricSummary {
  struct Count {
    std::string role;
    std::uint64_t nodes = 0;
  };
  std::string text;  // "ai_zone, 4,032 GPUs in 252 racks"
  std::vector<Count> roles;
  std::vector<std::string> oversubscription;  // one line per tier: "rtsw 1 : 1.78"
};

struct Outcome {
  std::string scenario;  // name
  std::string file;
  std::string version;  // of weft
  std::string engine;
  std::string command;  // without what must not change the report, such as --out
  std::uint64_t seed = 1;
  FabricSummary fabric;
  std::vector<VariantOutcome> variants;  // the first is what the others are compared with
  double wall_s = 0, cpu_s = 0;          // shown on the terminal only: reports are reproducible
};

}  // namespace weft::model
