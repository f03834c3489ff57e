// How long a replica computes on one step of continuous batching.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/units.hpp"
#include "workload/serving/profile.hpp"

namespace weft::workload {

// What an engine takes into a step, and keeps in its cache.
struct ServingLimits {
  std::uint32_t max_seqs = 256, token_budget = 2048;
  std::uint32_t block = 16;     // tokens of a KV block
  std::uint32_t kv_blocks = 0;  // 0: as many as are ever used
  bool asynchronous = true;     // the next step is scheduled while one runs
  bool prefix_cache = true;
  std::uint32_t stages = 1;  // of pipeline parallelism
  // Not in any kernel's time: launches and Python. The one constant of the model.
  Duration step_gap{500'000'000};
};

// What one step computes on.
struct StepLoad {
  std::uint32_t tokens = 0, sequences = 0;
  std::uint32_t prefill_tokens = 0, decodes = 0;
  // Pairs of token and earlier token: sum over prefills of n (before + n / 2), over decodes of
  // before.
  double prefill_pairs = 0, decode_pairs = 0;

  void add(std::uint32_t tokens_now, std::uint32_t before);
};

inline constexpr double step_max_s = 1e5;  // longer steps take so long: Time must hold their sum

class StepTimes {
 public:
  // Seconds that all ranks of a replica communicate in a step of so many tokens; none: nothing.
  using Communication = std::function<double(std::uint32_t tokens)>;
  // `profile` must outlive it.
  StepTimes(const KernelProfile& profile, std::uint32_t layers, const ServingLimits& limits,
            const Communication& communication);

  // All stages together. `slowdown`: how many times as long the replica's slowest GPU computes.
  Duration of(const StepLoad& load, double slowdown = 1) const;

 private:
  double attention(const StepLoad& load) const;
  double excess(double chunk, double length) const;

  const KernelProfile& profile_;
  double layers_, gap_s_, least_prefill_;
  std::vector<double> by_tokens_, communication_, by_sequences_;  // seconds
};

// The size that vLLM's CUDA graphs are captured for: 1, 2, 4, then steps of 8, above 256 of 16, up
// to the smaller of 512 and twice max_seqs. Above that: the number itself.
std::uint32_t padded_tokens(std::uint32_t tokens, std::uint32_t max_seqs);

}  // namespace weft::workload
