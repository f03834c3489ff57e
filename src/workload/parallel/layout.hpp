// Which layers stand on which virtual pipeline stage, as a text in Megatron's words.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "base/text.hpp"

namespace weft::workload {

struct StageContents {
  std::uint32_t layers = 0, prediction = 0;
  bool embedding = false, head = false;
};

// --pipeline-model-parallel-layout: E embedding, t layer, m layer of multi-token prediction, L head
// with its loss, | ends a virtual stage, (...)*n and x*n repeat: "Et|(tt|)*30mL". Returns one entry
// for each virtual stage, in the order in which a micro-batch meets them.
// Fails: Errc::parse at other characters, Errc::infeasible with more than 2^16 virtual stages.
Result<std::vector<StageContents>> parse_layout(const Token& text);

}  // namespace weft::workload
