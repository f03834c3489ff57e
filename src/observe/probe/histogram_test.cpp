#include "observe/probe/histogram.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/rng.hpp"
#include "base/test_approx.hpp"

namespace weft::observe::probe {
namespace {

TEST_CASE("buckets touch, in order, none wider than 1/16 of its values") {
  for (std::size_t i = 0; i < Histogram::bucket_count; ++i) {
    const std::uint64_t least = Histogram::floor_of(i), next = Histogram::floor_of(i + 1);
    REQUIRE(least < next);
    CHECK(Histogram::bucket_of(least) == i);
    CHECK(Histogram::bucket_of(next - 1) == i);
    CHECK((next - least == 1 || 16 * (next - least) <= least));
  }
  CHECK(Histogram::bucket_of(UINT64_MAX) == Histogram::bucket_count - 1);
}

TEST_CASE("quantiles are those of the values, to a bucket") {
  Rng rng(1);
  Histogram histogram;
  std::vector<double> values;
  for (int i = 0; i < 10'000; ++i) {
    const double value = std::exp(rng.uniform() * 20);
    values.push_back(std::floor(value));
    histogram.add(static_cast<std::int64_t>(value));
  }
  std::ranges::sort(values);
  for (const double share : {0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<std::size_t>(std::max(1.0, std::ceil(share * 10'000)));
    CHECK(histogram.quantile_ns(share) == approx(values[rank - 1]).epsilon(1.0 / 30));
  }
}

TEST_CASE("empty, merged, cleared") {
  Histogram a, b;
  CHECK(a.quantile_ns(0.5) == -1);
  a.merge(b);
  CHECK(a.total() == 0);
  b.add(100);
  b.add(-5);  // counts as 0
  a.merge(b);
  CHECK(a.total() == 2);
  CHECK(a.quantile_ns(0.5) == 0);
  a.clear();
  CHECK(a.total() == 0);
}

}  // namespace
}  // namespace weft::observe::probe
