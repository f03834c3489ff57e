#include "engine/fluid/arena.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <vector>

#include "base/rng.hpp"

namespace weft::engine::fluid {
namespace {

TEST_CASE("a growing array keeps its items, one of its own put in again as well") {
  Ids ids;
  CHECK(ids.empty());
  ids.push_back(7);
  for (int i = 0; i < 1000; ++i) ids.push_back(ids.back() + 1);  // also where it has to move
  REQUIRE(ids.size() == 1001);
  CHECK(std::accumulate(ids.begin(), ids.end(), 0u) == 1001 * (7 + 1007) / 2);
  ids.pop_back();
  CHECK(ids.back() == 1006);
  CHECK(ids[0] == 7);
  ids.clear();
  CHECK(ids.empty());
}

TEST_CASE("a size class is the least that holds so many, with a quarter of room at most") {
  using Arena = BlockArena<char>;
  CHECK(Arena::class_for(0) == 0);
  for (std::uint32_t count = 1; count < 5000; ++count) {
    const std::uint32_t size_class = Arena::class_for(count);
    CHECK(Arena::size_of(size_class) >= count);
    CHECK(Arena::size_of(size_class) <= count + count / 4);
    if (size_class > 0) CHECK(Arena::size_of(size_class - 1) < count);
  }
}

TEST_CASE("blocks do not overlap, keep what is in them and are used again") {
  struct Block {
    std::uint32_t first, size_class;
    double value;
  };
  BlockArena<std::uint32_t, double> arena;
  std::vector<Block> blocks;
  Rng rng(8);
  std::uint32_t top = 0;
  for (int event = 0; event < 4000; ++event) {
    if (!blocks.empty() && rng.below(blocks.size()) >= 20) {
      std::swap(blocks[rng.below(blocks.size())], blocks.back());
      const auto [first, size_class, value] = blocks.back();
      for (std::uint32_t i = 0; i < arena.size_of(size_class); ++i) {
        CHECK(*arena.at<0>(first + i) == i);
        CHECK(*arena.at<1>(first + i) == value);
      }
      arena.give_back(first, size_class);
      blocks.pop_back();
      continue;
    }
    const std::uint32_t size_class = arena.class_for(static_cast<std::uint32_t>(rng.below(33)));
    const Block block{arena.take(size_class), size_class, static_cast<double>(event)};
    for (std::uint32_t i = 0; i < arena.size_of(size_class); ++i) {
      *arena.at<0>(block.first + i) = i;
      *arena.at<1>(block.first + i) = block.value;
    }
    top = std::max(top, block.first + arena.size_of(size_class));
    blocks.push_back(block);
  }
  CHECK(top < 10000);  // 4000 blocks would take several times as much
}

}  // namespace
}  // namespace weft::engine::fluid
