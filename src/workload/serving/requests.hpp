// What a replica is asked: recorded runs, Azure's traces, or arrivals drawn at random.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"

namespace weft::workload {

struct InferenceRequest {
  Time arrival;
  std::uint32_t input = 0, output = 0;  // tokens, each 1 or more
  // Requests with the same number share their first `prefix_tokens` tokens; 0: with none.
  std::uint64_t prefix = 0;
  std::uint32_t prefix_tokens = 0;
  std::uint32_t class_index = 0;  // in RequestTrace::classes
};

// When a recorded run delivered, on the clock of the arrivals.
struct MeasuredRequest {
  Time first_token, last_token;
};

struct RequestTrace {
  std::vector<InferenceRequest> requests;  // by arrival
  std::vector<MeasuredRequest> measured;   // as many, or none
  // Names of the kinds of requests that have objectives of their own; "" where none is stated.
  std::vector<std::string> classes{""};
};

// JSON lines as LLMServingSim's runs of vLLM have them: input_toks, output_toks, arrival_time
// (seconds), and where it was measured queued_ts, first_token_ts, last_token_ts (seconds of another
// clock: the first request's arrival is its queued_ts). Optional: prefix, prefix_toks, class.
Result<RequestTrace> read_vllm_requests(std::string_view text, const std::string& file);

// CSV "TIMESTAMP,ContextTokens,GeneratedTokens" with "2023-11-16 18:15:46.6805900", and optional
// Prefix, PrefixTokens, Class. A request that generated nothing counts as one token.
// From: Azure/AzurePublicDataset.
Result<RequestTrace> read_azure_requests(std::string_view text, const std::string& file);

// By its first character: "{" is JSON. Gzip is unpacked.
Result<RequestTrace> read_requests(std::string_view bytes, const std::string& file);

struct PoissonArrivals {
  std::string name;  // of the class
  double per_second = 1;
  std::uint64_t count = 1000;
  std::uint32_t input = 1024, output = 128;
  std::uint64_t seed = 1;
};
RequestTrace poisson_requests(const PoissonArrivals& arrivals);
// Several classes, each drawn by itself, by arrival.
RequestTrace poisson_requests(std::span<const PoissonArrivals> classes);

inline constexpr std::uint32_t request_tokens_max = 1 << 24;

}  // namespace weft::workload
