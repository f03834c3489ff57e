// Ranks of a SimAI or AICB workload and the groups they do collectives in.
#pragma once

#include <cstdint>
#include <span>

#include "model/work/op_graph.hpp"

namespace weft::workload {

// Bounds of both formats; bytes are those of one message.
inline constexpr std::uint64_t simai_ranks_max = 1'000'000;
inline constexpr std::uint64_t simai_bytes_max = 1'000'000'000'000'000'000;

// Default order, that of Megatron-LM: rank = tp + TP (ep + EP (dp_ep + DP_EP pp)). The ranks of a
// data-parallel group count ep first, so expert groups are its runs of EP.
struct SimaiGrid {
  std::uint32_t tp = 1;
  std::uint32_t ep = 1;
  std::uint32_t dp_ep = 1;  // DP / EP: ranks that hold the same experts
  std::uint32_t pp = 1;
  // HYBRID_MODEL_DATA counts data-parallel ranks first: rank = dp + DP (tp + TP pp).
  enum class Innermost : std::uint8_t { tp, dp } innermost = Innermost::tp;

  std::uint32_t dp() const { return ep * dp_ep; }
  std::uint64_t rank_count() const { return std::uint64_t{tp} * ep * dp_ep * pp; }
};

enum class SimaiGroup : std::uint8_t { tp, ep, dp, dp_ep, pp, ends, all };
inline constexpr std::size_t simai_group_count =
    7;  // `ends`: the first and the last pipeline stage
model::Dimension dimension_of(SimaiGroup group);
std::uint32_t size_of(const SimaiGrid& grid, SimaiGroup group);

// Ranks that one actor stands for: a tensor-parallel group, or all of an expert group's. The
// second is right where they meet in an all-to-all in every layer anyway.
enum class SimaiActor : std::uint8_t { tensor_group, expert_group };

// Fills actors, their ranks, groups and memberships of `graph`, in order of pipeline stage, then
// data-parallel rank. Actors of stage s get program `programs[s]`, and as peers the actors of the
// next (slot 0) and the previous stage (slot 1), in a circle; none where there is one stage. Actors
// outside `ends` have no membership there, so it is the last slot. Every group in `used` must be
// used by all programs (`ends`: by those of the first and last stage). Collectives come with their
// SimaiGroup as slot, and get the slot of their membership.
// Cost: O(ranks * groups used).
void place_ranks(const SimaiGrid& grid, SimaiActor actor, std::span<const SimaiGroup> used,
                 std::span<const std::uint32_t> programs, model::OpGraph& graph);

}  // namespace weft::workload
