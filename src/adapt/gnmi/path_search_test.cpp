#include "adapt/gnmi/path_search.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace weft::adapt::gnmi {
namespace {

TEST_CASE("every set of bad paths among up to seven is found, in few sessions") {
  for (std::size_t count = 1; count <= 7; ++count)
    for (unsigned bad = 0; bad + 1 < (1U << count); ++bad) {
      const auto is_bad = [&](std::size_t path) { return (bad >> path & 1U) != 0; };
      PathSearch search(count);
      int sessions = 0, bad_count = 0;
      for (std::size_t i = 0; i < count; ++i) bad_count += is_bad(i) ? 1 : 0;
      bool is_over = false;
      while (!is_over && sessions < 100) {
        ++sessions;
        if (std::ranges::any_of(search.paths(), is_bad))
          CHECK(search.refused());
        else
          is_over = !search.taken();
      }
      CHECK(search.paths().size() + static_cast<std::size_t>(bad_count) == count);
      CHECK(std::ranges::none_of(search.paths(), is_bad));
      CHECK(std::ranges::all_of(search.dropped(), is_bad));
      const double most = 1 + 2.0 * bad_count * std::ceil(std::log2(static_cast<double>(count))) +
                          static_cast<double>(count) / 2;
      CHECK(sessions <= most);
    }
}

TEST_CASE("a substitute is tried before a path is given up") {
  PathSearch search(3, {true, true, false});
  const auto is_bad = [](std::size_t path) { return path == 0 || path == 1 || path == 4; };
  bool is_over = false;
  for (int i = 0; i < 20 && !is_over; ++i) {
    if (std::ranges::any_of(search.paths(), is_bad))
      CHECK(search.refused());
    else
      is_over = !search.taken();
  }
  CHECK(is_over);
  CHECK(search.paths() == std::vector<std::size_t>{2, 3});
  CHECK(search.dropped() == std::vector<std::size_t>{1});
}

TEST_CASE("where everything is refused, or what was taken, it begins anew") {
  PathSearch none(2);
  CHECK(none.refused());
  CHECK(none.refused());
  CHECK(!none.refused());
  CHECK(none.paths().size() == 2);
  PathSearch changed(2);
  CHECK(!changed.taken());
  CHECK(!changed.refused());
  CHECK(changed.paths().size() == 2);
}

}  // namespace
}  // namespace weft::adapt::gnmi
