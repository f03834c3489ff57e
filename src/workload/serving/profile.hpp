// Measured kernel times of one model on one GPU, or what stands in for them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "workload/serving/grid_table.hpp"

namespace weft::workload {

// What a replica keeps of every token, and how often its layers run.
struct ServedModel {
  std::uint32_t layers = 0, hidden = 0, kv_heads = 0, head_dim = 0, bytes = 2;

  // Keys and values of one token, on all ranks together.
  std::uint64_t kv_bytes_per_token() const {
    return std::uint64_t{2} * layers * kv_heads * head_dim * bytes;
  }
};

// Seconds. Of one tensor-parallel rank.
struct KernelProfile {
  struct Layer {
    std::string name;
    LineTable seconds;
  };
  // By tokens of a step. `embedding` and `final_layernorm` run once a step, `layernorm` twice in
  // every layer of the model, all others once in every layer.
  std::vector<Layer> dense;
  std::vector<Layer> per_sequence;  // by sequences of a step; once a step
  GridTable attention;              // of one layer of the model

  double dense_seconds(double tokens, std::uint32_t layers) const;
  double per_sequence_seconds(double sequences) const;
};

struct ProfileText {
  std::string file, text;
};

// CSV with times in microseconds, as LLMServingSim's profiler writes them: dense
// "layer,tokens,time_us"; per sequence "layer,sequences,time_us"; attention
// "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us".
// Fails with all errors: Errc::parse, Errc::value on repeated rows, on times that are not positive
// and on more than 2^18 cells of attention's grid.
Result<KernelProfile> read_profile(const ProfileText& dense, const ProfileText& per_sequence,
                                   const ProfileText& attention);

}  // namespace weft::workload
