#include "saddle/saddle.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "base/test_skip.hpp"
#include "saddle/test_clp.hpp"

namespace weft::saddle {
namespace {

// Columns that each meet one row, one block of exactly `volume`, one peak over all rows.
Problem one_peak(const std::vector<double>& offset, double volume) {
  Problem p{.scale = std::vector<double>(offset.size(), 1.0), .offset = offset};
  p.row_blocks = {{0, 1, 1, 0}};
  p.entry_begin = {0};
  for (std::uint32_t r = 0; r < offset.size(); ++r) {
    p.cost.push_back(0);
    p.entries.push_back(r);
    p.entry_begin.push_back(r + 1);
  }
  p.column_blocks = {{0, volume}};
  return p;
}

// Rows in blocks of up to three, columns of up to four rows, blocks of up to five columns.
// Every fourth one that is no packing has weights, some of them 0.
Problem random_problem(std::uint64_t seed, bool is_packing) {
  Rng rng(seed);
  Problem p;
  const auto number = [&](double from, double to) { return from + (to - from) * rng.uniform(); };
  const auto row_count = static_cast<std::uint32_t>(6 + rng.below(10));
  for (std::uint32_t r = 0; r < row_count; ++r) {
    p.scale.push_back(is_packing ? 1 : number(0.5, 2));
    p.offset.push_back(number(0, 1));
    const double low = number(0, 2);
    if (is_packing)
      p.row_blocks.push_back({r, 0, unbounded, number(1, 3)});
    else if (r % 3 == 0)
      p.row_blocks.push_back({r, low, rng.below(2) == 0 ? low : low + number(0, 3), number(0, 4)});
  }
  p.entry_begin = {0};
  for (int b = 0; b < 8; ++b) {
    ColumnBlock block{static_cast<std::uint32_t>(p.cost.size()), number(0.5, 3),
                      is_packing ? Fill::at_most : Fill::exactly};
    const auto count = static_cast<std::uint32_t>(1 + rng.below(6));
    for (std::uint32_t q = 0; q < count; ++q) {
      p.cost.push_back(is_packing ? -number(0.5, 2) : number(0, 0.3));
      for (std::uint32_t r = 0; r < row_count; ++r)
        if (rng.below(4) == 0) p.entries.push_back(r);
      p.entry_begin.push_back(static_cast<std::uint32_t>(p.entries.size()));
    }
    if (!is_packing && b % 2 == 1) {  // each two columns share a cap that just suffices
      block.first_group = static_cast<std::uint32_t>(p.groups.size());
      const std::uint32_t pairs = (count + 1) / 2;
      for (std::uint32_t q = 0; q < count; q += 2, ++block.group_count)
        p.groups.push_back(
            {block.begin + q, block.begin + std::min(q + 2, count), 1.3 * block.volume / pairs});
    }
    p.column_blocks.push_back(block);
  }
  if (seed % 4 == 1)
    for (std::size_t e = 0; e < p.entries.size(); ++e)
      p.weights.push_back(rng.below(8) == 0 ? 0 : number(0.2, 4));
  return p;
}

void check_feasible(const Problem& p, const std::vector<double>& x) {
  for (const double v : x) CHECK(v >= 0);
  for (std::size_t b = 0; b < p.column_blocks.size(); ++b) {
    const ColumnBlock& block = p.column_blocks[b];
    const std::size_t end =
        b + 1 < p.column_blocks.size() ? p.column_blocks[b + 1].begin : x.size();
    const double sum =
        std::accumulate(x.begin() + block.begin, x.begin() + static_cast<std::ptrdiff_t>(end), 0.0);
    CHECK(sum <= block.volume * (1 + 1e-9));
    if (block.fill == Fill::exactly) CHECK(sum == approx(block.volume).epsilon(1e-9));
  }
  for (const Group& g : p.groups)
    CHECK(std::accumulate(x.begin() + g.begin, x.begin() + g.end, 0.0) <= g.cap * (1 + 1e-9));
}

}  // namespace

TEST_CASE("water fills the lowest rows") {
  // Levels 1, 2, 5 and 4 units of water: 3.5, 3.5, 5 would be 4 units, so the peak stays at 5.
  const Answer stays = solve(one_peak({1, 2, 5}, 4), {.gap = 1e-6});
  CHECK(stays.value == approx(5).epsilon(1e-5));
  // 10 units: (1 + 2 + 5 + 10) / 3 = 6.
  const Answer rises = solve(one_peak({1, 2, 5}, 10), {.gap = 1e-6});
  CHECK(rises.value == approx(6).epsilon(1e-5));
  CHECK(rises.x[0] == approx(5).epsilon(1e-3));
  CHECK(rises.gap <= 1e-6);
}

TEST_CASE("a limit that costs: the peak passes it only where volume has nowhere else to go") {
  Problem p = one_peak({0, 0}, 10);
  p.row_blocks = {{0, 1, 11, 4}};  // peak 5 against a limit of 4: 5 + 10 x 1
  CHECK(solve(p, {.gap = 1e-6}).value == approx(15).epsilon(1e-5));
  p.column_blocks[0].volume = 8;  // peak 4
  CHECK(solve(p, {.gap = 1e-6}).value == approx(4).epsilon(1e-5));
}

TEST_CASE("the bound follows from the prices alone, and answers are feasible and repeat") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    const Problem p = random_problem(seed, seed % 2 == 0);
    const Answer a = solve(p, {.gap = 1e-3});
    CHECK(a.gap <= 1e-3);
    CHECK(a.bound <= a.value + 1e-12 * std::abs(a.value));
    CHECK(bound_of(p, a.y) == approx(a.bound).epsilon(1e-12));
    check_feasible(p, a.x);
    if (seed % 2 == 1) CHECK(value_of(p, a.x) == approx(a.value).epsilon(1e-12));
    CHECK(solve(p, {.gap = 1e-3}).x == a.x);
    // Prices of another problem are a valid bound, too, if a worse one.
    CHECK(bound_of(p, std::vector<double>(a.y.size(), 0.0)) <= a.value + 1e-9);
    const Answer again = solve(p, {.gap = 1e-3}, &a.next);
    CHECK(again.iterations <= a.iterations);
  }
}

TEST_CASE("a warm start loses the price of a row that nothing meets any more") {
  Problem p{.scale = {1, 1}, .offset = {0, 0}};
  p.row_blocks = {{0, 0, unbounded, 1}, {1, 0, unbounded, 1}};
  p.cost = {-1};
  p.entry_begin = {0, 1};
  p.entries = {0};
  p.column_blocks = {{0, 3, Fill::at_most}};
  const Start start{.x = {1}, .y = {1, 0.7}, .weight = 1};
  const Answer a = solve(p, {.gap = 1e-4, .iterations_max = 2000}, &start);
  CHECK(a.value == approx(-1).epsilon(1e-3));
  CHECK(a.gap <= 1e-4);
}

TEST_CASE("weights: rows are met in unequal parts, and what meets no row takes the cheapest") {
  // One unit on two columns of a row: it may carry 1, and they load it with 4 and 1/2 a unit.
  Problem p{.scale = {1}, .offset = {0}};
  p.row_blocks = {{0, 0, 100, 1}};
  p.cost = {1, 3, 2, 1};
  p.entry_begin = {0, 1, 2, 2, 2};
  p.entries = {0, 0};
  p.weights = {4, 0.5};
  p.column_blocks = {{0, 1}, {2, 1}};
  const Answer a = solve(p, {.gap = 1e-6});
  // 4 x + (1 - x) / 2 = 1: x = 1/7. The second block costs 1.
  CHECK(a.value == approx(1.0 / 7 + 3 * 6.0 / 7 + 1).epsilon(1e-5));
  CHECK(a.x[0] == approx(1.0 / 7).epsilon(1e-3));
  CHECK(a.x[3] == approx(1));
}

TEST_CASE("CLP finds the same optimum" * doctest::test_suite("needs clp")) {
  if (!has_clp()) return skip_test("no clp; install the Debian package coinor-clp");
  const TestFolder folder;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    CAPTURE(seed);
    const Problem p = random_problem(seed, seed % 2 == 0);
    const Answer a = solve(p, {.gap = 1e-5});
    const auto optimum = clp_optimum(to_mps(p), folder);
    REQUIRE(optimum);
    CHECK(a.bound <= *optimum + 1e-6 * std::abs(*optimum));
    CHECK(a.value >= *optimum - 1e-6 * std::abs(*optimum));
    CHECK(a.gap <= 1e-5);
  }
}

}  // namespace weft::saddle
