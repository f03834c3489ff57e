// What a page shows of a job: waits by rank and kind of group, who waits for whom, and the blocked
// operation in time; folded, so that it stays small for any number of ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/colltrace/verdict.hpp"

namespace weft::observe::colltrace {

// How long ranks wait for other members of their groups of one kind (description or operation).
struct WaitRow {
  std::string kind;
  std::vector<double> cells;  // the longest wait of each cell's ranks; below 0: nothing is known
};

// Operations of one kind that lead to a verdict over equally many others, or a verdict.
struct WaitNode {
  std::string title;        // kind, or "rank 57: stuck"
  std::string example;      // an operation of one of its groups
  std::uint32_t level = 0;  // 0: a verdict
  std::size_t groups = 0, ranks = 0;
};
struct WaitEdge {
  std::size_t from = 0, to = 0;  // nodes
  std::size_t groups = 0;        // of `from` that wait for some of `to`
};

struct TimeSpan {
  double begin_s = 0, end_s = 0;
  std::uint32_t kind = 0, operation = 0;  // in Picture::kinds and operations
  std::uint32_t seq = 0;
  bool is_open = false;     // it has not ended
  bool is_blocked = false;  // it is the operation that the picture is about
};
struct TimeRow {
  std::uint32_t rank = 0;
  bool is_named = false;  // by a verdict
  bool has_trace = false;
  std::vector<TimeSpan> spans;
};

struct Picture {
  std::uint32_t ranks_per_cell = 1;
  bool is_share = false;  // waits are shares of the traced time, not seconds
  std::vector<WaitRow> waits;
  std::vector<WaitNode> nodes;
  std::vector<WaitEdge> edges;
  std::size_t unconnected = 0;  // blocked operations that lead to no verdict

  std::string blocked;  // the operation of the time line; empty: there is no time line
  double window_s = 0;
  std::vector<std::string> kinds, operations;
  std::vector<TimeRow> rows;
  std::size_t rows_left_out = 0;
};

inline constexpr std::size_t wait_cells_max = 1024, time_rows_max = 32, time_spans_max = 160;

// Waits: of a job that is stalled, how long each rank has been in what it is in, up to the
// latest event of any rank; else, the time of each operation beyond its shortest on any member, as
// a share of the time that the rank's trace spans. Ranks fold into at most wait_cells_max cells.
// Levels: an operation that lacks a named rank, or that a verdict names, is on level 1; one that
// lacks a rank which waits in that, on level 2; and so on.
// Time line: the first group of the first verdict, with named ranks first, by each rank's clock.
// Cost: a few passes over the entries. Deterministic.
Picture make_picture(const Job& job, const Report& report);

// For the page: {"ranks", "missing", "waiting", "hang", "verdicts", "waits", "graph", "timeline"}.
std::string to_json(const Picture& picture, const Job& job, const Report& report);

}  // namespace weft::observe::colltrace
