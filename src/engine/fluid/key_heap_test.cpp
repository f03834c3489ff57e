#include "engine/fluid/key_heap.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "base/rng.hpp"

namespace weft::engine::fluid {
namespace {

// Sizes pass through all remainders of 4, so that the last siblings are one to four.
TEST_CASE("the top has the least key, whatever came, moved and went") {
  Rng rng(4);
  KeyHeap heap;
  KeyHeap::Positions position(60, KeyHeap::absent);
  std::map<std::uint32_t, double> want;
  for (int event = 0; event < 5000; ++event) {
    const auto id = static_cast<std::uint32_t>(rng.below(position.size()));
    if (rng.below(event / 1000 % 2 == 0 ? 3 : 2) == 0) {
      heap.erase(id, position);
      want.erase(id);
    } else {
      want[id] = static_cast<double>(rng.below(40));  // ties
      heap.set(id, want[id], position);
    }
    REQUIRE(heap.items().size() == want.size());
    if (want.empty()) continue;
    const auto least =
        std::ranges::min_element(want, {}, &std::pair<const std::uint32_t, double>::second);
    CHECK(heap.top().key == least->second);
    CHECK(heap.top().key == want.at(heap.top().id));
  }
}

}  // namespace
}  // namespace weft::engine::fluid
