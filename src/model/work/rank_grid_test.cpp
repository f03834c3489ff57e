#include "model/work/rank_grid.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

namespace weft::model {
namespace {

using Ranks = std::vector<std::uint32_t>;

template <class Visit>
void for_each_order(Visit&& visit) {
  std::array order{Axis::tp, Axis::cp, Axis::pp, Axis::dp};
  do visit(order);
  while (std::ranges::next_permutation(order).found);
}

// Every rank is in its own group, and those in its group have the same one.
template <class GroupOf>
void check_partition(const RankGrid& grid, std::size_t size, GroupOf&& group_of) {
  std::set<Ranks> groups;
  for (std::uint32_t rank = 0; rank < grid.rank_count(); ++rank) {
    const Ranks group = group_of(rank);
    REQUIRE(group.size() == size);
    REQUIRE(std::ranges::find(group, rank) != group.end());
    groups.insert(group);
  }
  std::set<std::uint32_t> seen;
  for (const Ranks& group : groups) seen.insert(group.begin(), group.end());
  CHECK(seen.size() == grid.rank_count());
  CHECK(groups.size() * size == grid.rank_count());
}

TEST_CASE("the default order is rank = tp + TP (cp + CP (pp + PP dp))") {
  const RankGrid grid({8, 2, 4, 3});
  CHECK(grid.rank_count() == 192);
  CHECK(grid.size(Axis::pp) == 4);
  CHECK(grid.rank({3, 1, 2, 2}) == 3 + 8 * (1 + 2 * (2 + 4 * 2)));
  CHECK(grid.group(9, Axis::tp) == Ranks{8, 9, 10, 11, 12, 13, 14, 15});
}

TEST_CASE("every order numbers all places once, with its axes inside out") {
  const GridPoint sizes{2, 3, 4, 5};
  for_each_order([&](std::array<Axis, axis_count> order) {
    const RankGrid grid(sizes, order);
    REQUIRE(grid.rank_count() == 120);
    for (std::uint32_t rank = 0; rank < 120; ++rank) {
      REQUIRE(grid.rank(grid.point(rank)) == rank);
      std::uint32_t rest = rank;
      for (const Axis axis : order) {
        REQUIRE(grid.point(rank)[static_cast<std::size_t>(axis)] == rest % grid.size(axis));
        rest /= grid.size(axis);
      }
    }
    for (const Axis axis : order)
      check_partition(grid, grid.size(axis),
                      [&](std::uint32_t rank) { return grid.group(rank, axis); });
  });
}

TEST_CASE("expert groups and their data groups partition the ranks, and cross in one rank") {
  for_each_order([](std::array<Axis, axis_count> order) {
    const RankGrid grid({2, 3, 2, 4}, order);
    for (const std::uint32_t ep : {1u, 2u, 3u, 4u, 6u, 8u, 12u, 24u}) {
      check_partition(grid, ep, [&](std::uint32_t r) { return grid.expert_group(r, ep); });
      check_partition(grid, 24 / ep,
                      [&](std::uint32_t r) { return grid.expert_data_group(r, ep); });
      for (std::uint32_t rank = 0; rank < 48; ++rank) {
        const Ranks data = grid.expert_data_group(rank, ep);
        std::size_t common = 0;
        for (const std::uint32_t other : grid.expert_group(rank, ep)) {
          REQUIRE(grid.point(other)[2] == grid.point(rank)[2]);
          common += std::ranges::count(data, other) > 0;
        }
        REQUIRE(common == 1);
      }
    }
  });
}

TEST_CASE("expert groups run over tp first, then cp, then dp") {
  const RankGrid grid({2, 2, 3, 4});  // stage 1 holds ranks 4 to 7, 16 to 19, ...
  CHECK(grid.expert_group(16, 8) == Ranks{4, 5, 6, 7, 16, 17, 18, 19});
  CHECK(grid.expert_data_group(16, 8) == Ranks{16, 40});
}

TEST_CASE("orders as text") {
  const auto parse = [](std::string_view text) { return RankGrid::parse_order({text, {}}); };
  CHECK(parse("tp-cp-pp-dp").value() == std::array{Axis::tp, Axis::cp, Axis::pp, Axis::dp});
  CHECK(parse(" dp-tp-pp-cp ").value() == std::array{Axis::dp, Axis::tp, Axis::pp, Axis::cp});
  for (const char* text : {"", "tp", "tp-cp-pp", "tp-cp-pp-dp-dp", "tp-cp-pp-pp", "tp-cp-pp-ep",
                           "tp,cp,pp,dp", "tp--pp-dp", "TP-CP-PP-DP"}) {
    const auto order = parse(text);
    REQUIRE_FALSE(order.has_value());
    CHECK(order.error().code == Errc::value);
  }
}

}  // namespace
}  // namespace weft::model
