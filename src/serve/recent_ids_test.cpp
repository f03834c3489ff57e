#include "serve/recent_ids.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>

#include "base/rng.hpp"

using namespace weft;
using namespace weft::serve;

TEST_CASE("recent ids: the last so many are known, and no others") {
  for (const std::size_t capacity : {1uz, 2uz, 7uz, 64uz, 100uz}) {
    RecentIds ids(capacity);
    std::deque<std::uint64_t> last;
    Rng rng(capacity);
    for (int i = 0; i < 20'000; ++i) {
      // Few enough to come again, some after they were forgotten.
      const std::uint64_t id = rng.below(3 * capacity);
      const bool is_known = std::ranges::find(last, id) != last.end();
      REQUIRE(ids.contains(id) == is_known);
      ids.insert(id);
      if (!is_known) last.push_back(id);
      if (last.size() > capacity) last.pop_front();
      REQUIRE(ids.size() == last.size());
    }
    for (std::uint64_t id = 0; id < 3 * capacity; ++id)
      CHECK(ids.contains(id) == (std::ranges::find(last, id) != last.end()));
  }
}
