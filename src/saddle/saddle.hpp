// Large linear programs of one shape, solved to a certified gap: flows over columns (a path, or a
// path in a slot of time), loads on rows (a link, or a link in a slot), and a price for each row.
//
//   min over x in X, max over y in Y of   cost.x + y.(A x + offset) - limits of y
//
// X is a product of blocks of columns {x >= 0, sum = volume (or at most volume)}, in which sums of
// groups of neighbours may be capped. Y is a product of blocks of rows {y >= 0, low <= sum y <=
// high}. With P = the largest (A x + offset) of a block of rows, the block adds to the objective
//
//   low * P + (high - low) * max(0, P - limit)
//
// so that one form covers a peak that is paid for (low = high), a capacity (low = 0, high without
// end), and a capacity that costs (low = 0, high finite).
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace weft::saddle {

inline constexpr double unbounded = std::numeric_limits<double>::infinity();

struct RowBlock {
  std::uint32_t begin = 0;  // its rows go on to the next block's first
  double low = 0, high = unbounded, limit = 0;
};

enum class Fill : std::uint8_t { exactly, at_most };

struct ColumnBlock {
  std::uint32_t begin = 0;  // its columns go on to the next block's first
  double volume = 0;
  Fill fill = Fill::exactly;
  // Groups of its columns whose sums are capped, that cover all of them; none: no caps.
  std::uint32_t first_group = 0, group_count = 0;
};

struct Group {
  std::uint32_t begin = 0, end = 0;  // columns
  double cap = unbounded;
};

// Entries of A are `scale` of the row, at the rows that `entries` lists for each column; times
// `weights`, unless that is empty. Where a block of rows has no end (high), all column blocks must
// be at_most, offsets must not be above limits, and groups and weights are not supported: answers
// are then made feasible by scaling down.
struct Problem {
  std::vector<double> scale, offset;  // of each row; scale > 0
  std::vector<RowBlock> row_blocks;
  std::vector<double> cost;                // of each column
  std::vector<std::uint32_t> entry_begin;  // of each column, and one more
  std::vector<std::uint32_t> entries;
  std::vector<double> weights;  // of each entry, >= 0; none: all 1
  std::vector<ColumnBlock> column_blocks;
  std::vector<Group> groups;

  std::size_t row_count() const { return scale.size(); }
  std::size_t column_count() const { return cost.size(); }
};

struct Options {
  double gap = 0.01;  // (value - bound) / the smaller of both, at which to stop
  std::uint32_t iterations_max = 100'000;
  // Steps of x over steps of y, in units of a typical flow over a typical price. 0: the default of
  // the problem's kind.
  double weight = 0;
  std::uint32_t check_every = 20;
};

// x, y and the weight of steps, to begin the next solution of a similar problem with.
struct Start {
  std::vector<double> x, y;
  double weight = 0;
};

struct Answer {
  std::vector<double> x;  // feasible
  std::vector<double> y;  // prices that prove `bound`: see bound_of()
  double value = 0, bound = 0;
  double gap = 0;
  std::uint32_t iterations = 0;
  double seconds = 0;  // CPU time of this thread
  Start next;
};

// Primal-dual hybrid gradient with diagonal steps and restarts to the average. All sums are double.
// Deterministic. Where iterations run out, the gap is what it is.
// From: Chambolle & Pock, JMIV 2011; Pock & Chambolle, ICCV 2011 (steps); Applegate et al.,
// "PDLP", NeurIPS 2021 (restarts, weight). We differ: projections instead of rows for demands.
Answer solve(const Problem& problem, const Options& options = {}, const Start* start = nullptr);

// What no x in X can go below, from prices in Y alone: the certificate, recomputed from nothing
// else.
double bound_of(const Problem& problem, const std::vector<double>& y);
// The objective at x; loads are left behind where `loads` is given.
double value_of(const Problem& problem, const std::vector<double>& x);

}  // namespace weft::saddle
