// ASTRA-sim's system configuration: how NPUs compute and which collective algorithms they use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/work/op_graph.hpp"
#include "workload/trace/trace.hpp"

namespace weft::workload {

// Values in SI units; the file has ns, TFLOP/s and GB/s (10^9 here, unlike in network files).
struct AstraSystem {
  struct Implementation {
    model::CollectiveOp op;
    std::vector<std::string> by_dimension;  // as written: {"ring", "direct4"}
    // The nearest of weft's collective algorithms, for all dimensions together; "auto" where the
    // dimensions differ and no algorithm of weft's does that.
    std::string algorithm;
  };
  enum class Scheduling : std::uint8_t { lifo, fifo };

  Scheduling scheduling = Scheduling::lifo;
  std::vector<Implementation> implementations;  // of those that the file names
  std::uint64_t active_chunks = 1;              // per dimension
  std::uint64_t dataset_splits = 1;
  double endpoint_delay_s = 0;
  double local_reduction_delay_s = 0;
  double local_memory_bytes_per_s = 0;  // 0: not given
  double peak_flops = 0;                // 0: not given
  bool roofline = false;
  // Understood and without a part in weft, with the reason: notes for the person.
  std::vector<std::string> unused;
};

// Understands every key that ASTRA-sim's system file has (2.0, early 2026).
// Fails: every error found, with file:line:column: broken JSON, unknown keys (with the nearest),
// values out of range, unknown algorithms, custom collectives (Errc::unsupported).
Result<AstraSystem> read_astra_system(std::string_view text, const std::string& file);

// Sets the rates for compute that is recorded as operations (Chakra's num_ops), where the roofline
// is on.
void apply(const AstraSystem& system, TraceOptions& options);

// What a person should know: the algorithms and what has no part.
std::vector<std::string> to_notes(const AstraSystem& system);

}  // namespace weft::workload
