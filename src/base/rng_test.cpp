#include "base/rng.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

using namespace weft;

namespace {

// Pearson's statistic of draws against equal shares.
double chi_square(const std::vector<int>& counts) {
  double total = 0;
  for (const int n : counts) total += n;
  const double expected = total / static_cast<double>(counts.size());
  double out = 0;
  for (const int n : counts) out += (n - expected) * (n - expected) / expected;
  return out;
}

}  // namespace

TEST_CASE("the generator is xoshiro256** seeded by SplitMix64") {
  // From a separate implementation, which gives the published 11520, 0, 1509978240 for the state
  // 1, 2, 3, 4.
  Rng rng(0);
  CHECK(rng.next() == 11091344671253066420ull);
  CHECK(rng.next() == 13793997310169335082ull);
  CHECK(rng.next() == 1900383378846508768ull);
  CHECK(rng.next() == 7684712102626143532ull);
  CHECK(rng.next() == 13521403990117723737ull);
}

TEST_CASE("the same seed gives the same numbers, another seed others") {
  Rng a(7), b(7), c(8);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t x = a.next();
    CHECK(x == b.next());
    differs |= x != c.next();
  }
  CHECK(differs);
}

TEST_CASE("below stays below and hits every value equally often") {
  Rng rng(1);
  for (const std::uint64_t n : {1u, 2u, 3u, 7u, 10u, 64u}) {
    std::vector<int> counts(n);
    for (int i = 0; i < 64'000; ++i) ++counts.at(rng.below(n));
    const double freedom = static_cast<double>(n - 1);
    CHECK(chi_square(counts) <= freedom + 4 * std::sqrt(2 * freedom));
  }
}

TEST_CASE("below is unbiased where 2^64 is far from a multiple of n") {
  // With n = 3 * 2^62 a plain remainder would give the lower third of the range twice as often.
  Rng rng(2);
  const std::uint64_t third = std::uint64_t{1} << 62;
  std::vector<int> counts(3);
  for (int i = 0; i < 30'000; ++i) ++counts.at(rng.below(3 * third) / third);
  CHECK(chi_square(counts) <= 2 + 4 * std::sqrt(2 * 2.0));
}

TEST_CASE("uniform fills [0, 1)") {
  Rng rng(3);
  std::vector<int> counts(20);
  for (int i = 0; i < 100'000; ++i) {
    const double x = rng.uniform();
    REQUIRE((x >= 0 && x < 1));
    ++counts[static_cast<std::size_t>(x * 20)];
  }
  CHECK(chi_square(counts) <= 19 + 4 * std::sqrt(2 * 19.0));
}

TEST_CASE("shuffle reaches every order equally often") {
  Rng rng(4);
  std::vector<std::vector<int>> orders;
  std::vector<int> counts(24);
  for (int i = 0; i < 24'000; ++i) {
    std::vector<int> items{0, 1, 2, 3};
    rng.shuffle(std::span(items));
    auto found = std::ranges::find(orders, items);
    if (found == orders.end()) found = orders.insert(orders.end(), items);
    ++counts.at(static_cast<std::size_t>(found - orders.begin()));
  }
  CHECK(orders.size() == 24);
  CHECK(chi_square(counts) <= 23 + 4 * std::sqrt(2 * 23.0));
}

TEST_CASE("streams do not depend on draws made elsewhere, and differ from each other") {
  Rng root(5);
  Rng before = root.stream("ecmp");
  root.next();
  Rng after = root.stream("ecmp");
  CHECK(before.next() == after.next());
  std::set<std::uint64_t> first{Rng(5).next()};
  for (const char* name : {"ecmp", "place", "faults", ""}) first.insert(root.stream(name).next());
  for (std::uint64_t i = 0; i < 1000; ++i) first.insert(root.stream(i).next());
  CHECK(first.size() == 1005);
}

TEST_CASE("neighbouring streams are uncorrelated") {
  const Rng root(6);
  double sum = 0;
  constexpr int n = 50'000;
  for (std::uint64_t i = 0; i < n; ++i)
    sum += (root.stream(i).uniform() - 0.5) * (root.stream(i + 1).uniform() - 0.5);
  const double deviation = std::sqrt(1.0 / 144 / n);
  CHECK(std::abs(sum / n) < 4 * deviation);
}

TEST_CASE("numbers can be drawn while compiling") {
  constexpr std::uint64_t drawn = [] {
    Rng rng(9);
    return rng.below(10);
  }();
  CHECK(drawn == Rng(9).below(10));
}
