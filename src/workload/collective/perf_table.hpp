// The table of nccl-tests: made from the time model, read from a real run, and both side by side.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "workload/collective/cost.hpp"

namespace weft::workload {

inline constexpr std::size_t perf_row_count_max = 10'000;

// Sizes from `begin` to `end`, each `factor` times the one before, or `step` more where step > 0.
struct Sweep {
  Bytes begin{8}, end{128 << 20};
  std::int64_t factor = 2;
  Bytes step{};
};
// Fails: Errc::value on an empty or backward range, no progress, or more than perf_row_count_max.
Result<std::vector<Bytes>> sizes_of(const Sweep& sweep);

struct PerfRequest {
  Machine machine;
  Op op = Op::all_reduce;
  Sweep sweep;
  TunerRules rules;
  // Seconds of a call on the real fabric, as an engine finds them; empty: on one without limits.
  std::function<Result<double>(const PlannedCall& call, double bytes)> on_fabric;
  // A call of so many bytes where no library is in the way (Library::Cost::line_rate); set: nothing
  // above but the sizes and the machine's shape matters.
  struct LineRate {
    std::string algorithm;
    double seconds = 0;
    std::uint32_t channels = 0;
  };
  std::function<Result<LineRate>(double bytes)> at_line_rate;
};

struct PerfRow {
  std::uint64_t size_bytes = 0;
  double time_us = 0, algbw_GBps = 0, busbw_GBps = 0;  // 10^9 bytes per second
  std::string algorithm;
  std::optional<Protocol> protocol;  // none at line rate
  std::uint32_t channels = 0;
  std::string why;
};

// One row per size. Fails: as sizes_of(), plan_call(), `on_fabric` and `at_line_rate`.
Result<std::vector<PerfRow>> perf_rows(const PerfRequest& request);

// One measured row, "SIZE=BUSBW" with a size as nccl-tests write it and GB/s: "4M=132.41".
struct Anchor {
  Bytes size;
  double busbw_GBps = 0;
};
Result<Anchor> parse_anchor(const Token& token);
// The request with its system's one latency such that the row at the anchor's size is the anchor's.
// The algorithm is the one the request's rules give at that size, on a fabric without limits.
// Fails: as pick(), calibrate().
Result<PerfRequest> calibrate(PerfRequest request, const Anchor& anchor);

// The nccl-tests table, float and sum, column by column. Nothing was computed, so "#wrong" is N/A;
// in place costs the model the same as out of place.
std::string nccl_table(const PerfRequest& request, std::span<const PerfRow> rows);
struct MeasuredRow {
  std::uint64_t size_bytes = 0, count = 0;
  std::string type, redop;                             // redop "" where the run printed none
  double time_us = 0, algbw_GBps = 0, busbw_GBps = 0;  // out of place
  double in_place_time_us = 0, in_place_algbw_GBps = 0, in_place_busbw_GBps = 0;
  Where where;
};
// What a line of the log says about the whole run, and where it first says so.
template <class T>
struct Said {
  T value;
  Where where;
};
struct MeasuredTable {
  std::vector<MeasuredRow> rows;         // as they come; sizes may repeat
  std::optional<double> avg_busbw_GBps;  // of the last "# Avg bus bandwidth"
  std::size_t other_lines = 0;           // neither rows nor comments: the log around them
  // "all_reduce": of a program's name (all_reduce_perf), or of NCCL's lines ("NCCL INFO AllReduce:
  // opCount"); several where the file holds several runs. Send and Recv name none: all_to_all
  // and send_recv both consist of them.
  std::vector<Said<std::string>> ops;
  // Of the list of devices ("#  Rank  3 Group ..."), or of NCCL's communicators ("nranks 8").
  std::optional<Said<std::uint32_t>> ranks;
  // GPUs of one process, "nThread 1 nGpus 8": the ranks are a multiple.
  std::optional<Said<std::uint32_t>> process_ranks;
  // What NCCL chose (NCCL_DEBUG_SUBSYS=TUNING), by size.
  struct Choice {
    std::uint64_t size_bytes = 0;
    std::string algorithm;
    Protocol protocol = Protocol::simple;
  };
  std::vector<Choice> choices;
};

// Reads what nccl-tests print, old and new (with or without root and redop, with per-iteration
// columns), each line with or without mpirun's "0: " or "[1,0]<stdout>:" before it. Lines that do
// not begin like a row ("SIZE COUNT TYPE") are counted and left.
// Fails: Errc::parse on a line that begins like a row and is none (with its position), on none at
// all, and on more than 10^6.
Result<MeasuredTable> read_nccl_table(std::string_view text, const std::string& file);

// Whether the log is of a run as the request predicts: the operation and the ranks that it names,
// and the factor between its two bandwidths, which depends on both. Fails: Errc::value with the
// line that says otherwise.
Status check_run(const PerfRequest& request, const MeasuredTable& measured);
// Sizes where NCCL chose another algorithm or protocol than we, a line each.
std::vector<std::string> other_choices(std::span<const PerfRow> rows,
                                       const MeasuredTable& measured);

// Ours beside theirs where sizes are equal, with the error of our bus bandwidth, and its median and
// worst per band of sizes.
struct Compared {
  std::uint64_t size_bytes;
  double measured_GBps, model_GBps;
  double error() const { return model_GBps / measured_GBps - 1; }
};
std::vector<Compared> compare(std::span<const PerfRow> rows, const MeasuredTable& measured);
struct BandError {
  std::string_view band;  // "<= 1 MiB", "2-32 MiB", "64-512 MiB", ">= 1 GiB"
  std::size_t rows = 0;
  double median = 0, worst = 0;  // of the error's magnitude
};
// Bands without rows are left out.
std::vector<BandError> errors_by_band(std::span<const Compared> rows);
// The model's own error on published rows of AllReduce (docs/collectives-timing.md).
std::span<const BandError> published_errors();
std::string comparison_table(std::span<const Compared> rows);

// {"op", "system", "ranks", "hosts", "rows": [...], "avg_busbw_GBps"}, and of a comparison also
// "compared" and "bands".
std::string perf_json(const PerfRequest& request, std::span<const PerfRow> rows,
                      std::span<const Compared> compared = {});

}  // namespace weft::workload
