// Recorded workloads as operation graphs: SimAI/AICB text, Chakra execution traces, GOAL schedules.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "model/work/op_graph.hpp"

namespace weft::workload {

// One input file in memory: path for messages, bytes as on disk (gzip included).
struct TraceFile {
  std::string path;
  std::string content;
};

struct TraceOptions {
  // Ranks to run on; none: as many as were recorded. Formats say when another number makes sense.
  std::optional<std::uint32_t> ranks;
  // Chakra: process groups by side file {"id": [ranks...]}, where the trace does not embed them.
  std::optional<TraceFile> groups;
  // GOAL: overhead of a send or recv on its processor (LogGP's o); latency and bandwidth are the
  // fabric's.
  double goal_overhead_s = 0;
  // GOAL: a send of at most so many bytes has ended for its own rank when its overhead is paid, and
  // travels whether or not it is awaited; a larger one waits for its receive (LogGOPS's S; the
  // default is LogGOPSim's).
  std::uint64_t goal_eager_bytes = 65535;
  // Chakra: rates of a GPU in FLOP/s and bytes/s, for compute that is recorded as operations and
  // bytes instead of a time (roofline). 0: not given.
  double peak_flops = 0;
  double memory_bandwidth = 0;
};

struct RecordedWorkload {
  // What a message costs beyond the network stands in the trace (GOAL: LogGP's overheads), so that
  // a library adds nothing.
  bool has_own_costs = false;
  std::string format;  // "simai", "aicb", "chakra", "goal text", "goal binary"
  model::OpGraph graph;
  // Everything a person should know: what was counted, mapped to something else, or left out.
  // Never empty where the graph differs from the file in any way.
  std::vector<std::string> notes;
  // Counts for the summary, in reporting order: {"compute nodes", 3643}.
  std::vector<std::pair<std::string, std::uint64_t>> counts;
  // Where the file carries its own answer or table (SimAI), numbers for the summary, in seconds.
  std::vector<std::pair<std::string, double>> times_s;
};

// Reads the files of one workload; the format is found by their content. Chakra has one file per
// rank (NAME.RANK.et, or a .tar/.tgz of them); the others have one file.
// Fails: every error found up to a hundred, with line or byte position. Bounds: 2 GiB of input,
// 100 M operations.
Result<RecordedWorkload> read_workload(std::span<const TraceFile> files,
                                       const TraceOptions& options);

enum class TraceFormat : std::uint8_t { simai, aicb, goal, chakra };
// By the first bytes of the content and, for Chakra and GOAL, the end of the name; none where no
// format is known.
std::optional<TraceFormat> format_of(const TraceFile& file);
// What is said of a file of no known format.
Error unknown_format(const TraceFile& file);

// The reader of each format; `is_*` look at the first bytes only.
bool is_simai(const TraceFile& file);
Result<RecordedWorkload> read_simai(const TraceFile& file, const TraceOptions& options);
bool is_aicb_csv(const TraceFile& file);
Result<RecordedWorkload> read_aicb_csv(const TraceFile& file, const TraceOptions& options);
bool is_chakra(const TraceFile& file);
Result<RecordedWorkload> read_chakra(std::span<const TraceFile> files, const TraceOptions& options);
bool is_goal(const TraceFile& file);  // text or binary
Result<RecordedWorkload> read_goal(const TraceFile& file, const TraceOptions& options);

}  // namespace weft::workload
