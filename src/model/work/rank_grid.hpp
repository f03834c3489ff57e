// Which place in the parallel grid a rank has.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/text.hpp"

namespace weft::model {

// Position along [tp, cp, pp, dp].
enum class Axis : std::uint8_t { tp, cp, pp, dp };
inline constexpr std::size_t axis_count = 4;
using GridPoint = std::array<std::uint32_t, axis_count>;  // by Axis

// Ranks in mixed radix over the axes, the innermost first. The default order is that of Llama 3:
// rank = tp + TP (cp + CP (pp + PP dp)).
class RankGrid {
 public:
  // Sizes by Axis, each at least 1. `order` is a permutation of the axes, innermost first.
  explicit RankGrid(GridPoint sizes,
                    std::array<Axis, axis_count> order = {Axis::tp, Axis::cp, Axis::pp, Axis::dp});

  // "tp-cp-pp-dp". Fails: Errc::value unless each axis stands there once.
  static Result<std::array<Axis, axis_count>> parse_order(const Token& text);

  std::uint32_t rank_count() const;
  std::uint32_t size(Axis axis) const { return sizes_[static_cast<std::size_t>(axis)]; }
  std::uint32_t rank(const GridPoint& point) const;
  GridPoint point(std::uint32_t rank) const;

  // Ranks that differ from `rank` along the axis alone, in order along it; `rank` is among them.
  std::vector<std::uint32_t> group(std::uint32_t rank, Axis axis) const;
  // Expert-parallel group of `rank`: the ranks of its pipeline stage, counted tp first, then cp,
  // then dp, cut into runs of `ep` (Megatron's order with expert tensor parallelism of 1). `ep`
  // divides TP * CP * DP. And those that hold the same experts: equal place in their runs.
  std::vector<std::uint32_t> expert_group(std::uint32_t rank, std::uint32_t ep) const;
  std::vector<std::uint32_t> expert_data_group(std::uint32_t rank, std::uint32_t ep) const;

 private:
  GridPoint sizes_;
  std::array<Axis, axis_count> order_;
  GridPoint stride_;  // by Axis
};

}  // namespace weft::model
