// P-40: the example of 16 GPUs in Llama Team, "The Llama 3 Herd of Models", 2024, section 3.3.2:
// with TP, CP, PP and DP of 2 in the order [TP, CP, PP, DP], the groups of GPU 0 are {0, 1},
// {0, 2}, {0, 4} and {0, 8}. Ours: the same, exactly.
#include "kit.hpp"
#include "model/work/rank_grid.hpp"

namespace weft::paper {
namespace {

TEST_CASE("P-40: groups of the first of 16 GPUs") {
  const model::RankGrid grid({2, 2, 2, 2});
  using Ranks = std::vector<std::uint32_t>;
  CHECK(grid.rank_count() == 16);
  CHECK(grid.group(0, model::Axis::tp) == Ranks{0, 1});
  CHECK(grid.group(0, model::Axis::cp) == Ranks{0, 2});
  CHECK(grid.group(0, model::Axis::pp) == Ranks{0, 4});
  CHECK(grid.group(0, model::Axis::dp) == Ranks{0, 8});
}

}  // namespace
}  // namespace weft::paper
