// What GPUs did in a trace of PyTorch's profiler (Kineto): Chrome trace events of kernels and
// copies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace weft::observe::straggler {

struct Kernel {
  std::string name;
  std::int64_t device = 0, stream = 0;
  double start_s = 0, end_s = 0;  // of the trace's clock
  bool is_communication = false;  // of NCCL, RCCL, NVSHMEM or DeepEP, by its name
};
struct KernelTrace {
  std::vector<Kernel> kernels;  // by device, then start
  std::size_t steps = 1;        // as ProfilerStep annotations count them; 1 where there are none
};

// `content` gets some padding. Events that are not of a GPU are passed over. Fails: Errc::parse on
// what is not such a trace, an event of a GPU without its times, and no such event at all.
// Cost: O(events log events).
Result<KernelTrace> read_kernels(std::string& content, const std::string& file);

// Of one step, the mean over devices: their time from the first kernel's start to the last one's
// end, by the steps.
struct KernelTimes {
  double step_s = 0;
  double compute_s = 0;  // some kernel that is not of communication runs
  double exposed_s = 0;  // only communication runs
  double idle_s = 0;     // nothing runs
};
KernelTimes times_of(const KernelTrace& trace);

}  // namespace weft::observe::straggler
