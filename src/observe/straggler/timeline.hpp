// What the workers of a training job did in some steps, as StragglerAnalysis records it: one Chrome
// trace, a process per data-parallel replica, threads "PP rank P, TP rank 0, ...".
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace weft::observe::straggler {

// In alphabetical order of their names in the file.
enum class Kind : std::uint8_t {
  backward_compute,
  backward_recv,
  backward_send,
  embedding_all_reduce,
  forward_compute,
  forward_recv,
  forward_send,
  gc,
  reduce_scatter,
  layernorm_all_reduce,
  optimizer,
  clip,
  all_gather,
};
inline constexpr std::size_t kind_count = 13;
// "backward-compute", as in the file.
std::string_view to_text(Kind kind);
// Moves data, so that its duration contains waiting for others.
bool is_communication(Kind kind);

struct Op {
  std::uint32_t stage;
  Kind kind;
  std::uint32_t seq;  // among its kind and stage: the micro-batch of a compute
  auto operator<=>(const Op&) const = default;
};

// Every replica does the same operations in every step.
struct Timeline {
  std::uint32_t stage_count = 0;
  std::vector<std::int64_t> steps, replicas;  // numbers in the file, ascending
  std::vector<Op> ops;                        // of one replica and step, ascending
  std::vector<double> start_s, end_s;         // by index()
  std::vector<std::string> notes;             // what was left out

  std::size_t index(std::size_t step, std::size_t replica, std::size_t op) const {
    return (step * replicas.size() + replica) * ops.size() + op;
  }
};

inline constexpr std::size_t json_padding = 64;
// `content` has json_padding more bytes of capacity. Fails: Errc::parse, naming the event, or
// the operation that one worker lacks and others have.
// Cost: O(n log n) of n operations; 21 MB in 0.1 s.
Result<Timeline> read_timeline(std::string& content, const std::string& file);

}  // namespace weft::observe::straggler
