#include "model/work/rank_grid.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::model {
namespace {

constexpr std::array<std::string_view, axis_count> axis_names{"tp", "cp", "pp", "dp"};

std::size_t index(Axis axis) { return static_cast<std::size_t>(axis); }

bool is_permutation_of_axes(std::array<Axis, axis_count> order) {
  std::ranges::sort(order);
  return order == std::array{Axis::tp, Axis::cp, Axis::pp, Axis::dp};
}

// A pipeline stage, its ranks counted tp first, then cp, then dp.
struct Stage {
  const RankGrid& grid;
  std::uint32_t tp = grid.size(Axis::tp), cp = grid.size(Axis::cp);
  std::uint32_t size() const { return tp * cp * grid.size(Axis::dp); }
  std::uint32_t place(const GridPoint& at) const {
    return at[index(Axis::tp)] + tp * (at[index(Axis::cp)] + cp * at[index(Axis::dp)]);
  }
  std::uint32_t rank(std::uint32_t stage, std::uint32_t place) const {
    return grid.rank({place % tp, place / tp % cp, stage, place / tp / cp});
  }
};

}  // namespace

RankGrid::RankGrid(GridPoint sizes, std::array<Axis, axis_count> order)
    : sizes_(sizes), order_(order), stride_{} {
  WEFT_CHECK(is_permutation_of_axes(order));
  std::uint64_t stride = 1;
  for (const Axis axis : order_) {
    WEFT_CHECK(size(axis) >= 1);
    stride_[index(axis)] = static_cast<std::uint32_t>(stride);
    stride *= size(axis);
    WEFT_CHECK(stride <= UINT32_MAX);
  }
}

Result<std::array<Axis, axis_count>> RankGrid::parse_order(const Token& text) {
  const auto refuse = [&] {
    return fail(Errc::value, text.where, quote(text.text) + " is not a valid rank order",
                "list each of tp, cp, pp and dp once, innermost first, as in \"tp-cp-pp-dp\"");
  };
  const std::vector<std::string_view> names = split(trim(text.text), '-');
  if (names.size() != axis_count) return refuse();
  std::array<Axis, axis_count> order{};
  for (std::size_t i = 0; i < axis_count; ++i) {
    const auto found = std::ranges::find(axis_names, names[i]);
    if (found == axis_names.end()) return refuse();
    order[i] = static_cast<Axis>(found - axis_names.begin());
  }
  if (!is_permutation_of_axes(order)) return refuse();
  return order;
}

std::uint32_t RankGrid::rank_count() const {
  return stride_[index(order_.back())] * size(order_.back());
}

std::uint32_t RankGrid::rank(const GridPoint& point) const {
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < axis_count; ++i) {
    WEFT_DCHECK(point[i] < sizes_[i]);
    rank += point[i] * stride_[i];
  }
  return rank;
}

GridPoint RankGrid::point(std::uint32_t rank) const {
  GridPoint point;
  for (std::size_t i = 0; i < axis_count; ++i) point[i] = rank / stride_[i] % sizes_[i];
  return point;
}

std::vector<std::uint32_t> RankGrid::group(std::uint32_t rank, Axis axis) const {
  GridPoint at = point(rank);
  std::vector<std::uint32_t> ranks(size(axis));
  for (std::uint32_t i = 0; i < ranks.size(); ++i) {
    at[index(axis)] = i;
    ranks[i] = this->rank(at);
  }
  return ranks;
}

std::vector<std::uint32_t> RankGrid::expert_group(std::uint32_t rank, std::uint32_t ep) const {
  const Stage stage{*this};
  WEFT_CHECK(ep >= 1 && stage.size() % ep == 0);
  const GridPoint at = point(rank);
  const std::uint32_t first = stage.place(at) / ep * ep;
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t i = 0; i < ep; ++i)
    ranks.push_back(stage.rank(at[index(Axis::pp)], first + i));
  return ranks;
}

std::vector<std::uint32_t> RankGrid::expert_data_group(std::uint32_t rank, std::uint32_t ep) const {
  const Stage stage{*this};
  WEFT_CHECK(ep >= 1 && stage.size() % ep == 0);
  const GridPoint at = point(rank);
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t place = stage.place(at) % ep; place < stage.size(); place += ep)
    ranks.push_back(stage.rank(at[index(Axis::pp)], place));
  return ranks;
}

}  // namespace weft::model
