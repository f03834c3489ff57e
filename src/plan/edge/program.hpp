// The linear program behind a plan. Internal to the room.
#pragma once

#include <span>

#include "plan/edge/edge.hpp"
#include "saddle/saddle.hpp"

namespace weft::plan::edge {

// Parts of a request that no cache answers.
double missed(const Problem& problem, const Caches& caches, std::size_t metro, std::size_t service);

// What all of an area's requests for a service cost by one way, an hour, and what they load.
struct Use {
  double gpu_cost = 0, uplink_cost = 0, delay_cost = 0;
  double gpus = 0, uplink_bps = 0;
  double rtt_s = 0;  // of what no cache answers
  double cost() const { return gpu_cost + uplink_cost + delay_cost; }
};
Use use_of(const Problem& problem, const Caches& caches, const Way& way);

// Rows: GPUs of metros, of data centres, uplinks of metros; loads are shares of what may be used.
// Columns: ways in time, by blocks of an area and a service that have requests; the last of each
// block leaves requests unserved.
struct Program {
  std::vector<Way> ways;         // of columns; the last of a block has no metro
  std::vector<double> cost;      // of columns, an hour; of unserved ones the penalty
  std::vector<double> capacity;  // of rows, in GPUs and bit/s
  // Costs over `unit`, loads over `largest`: the largest share of a row that one column loads.
  saddle::Problem linear;
  double unit = 1;
  std::vector<double> largest;

  std::span<const std::uint32_t> rows(std::size_t column) const {
    return std::span(linear.entries)
        .subspan(linear.entry_begin[column],
                 linear.entry_begin[column + 1] - linear.entry_begin[column]);
  }
  // Share of the k-th row's capacity.
  double load(std::size_t column, std::size_t k) const {
    const std::uint32_t e = linear.entry_begin[column] + static_cast<std::uint32_t>(k);
    return linear.weights[e] * largest[linear.entries[e]];
  }
  std::size_t block_end(std::size_t block) const {
    return block + 1 < linear.column_blocks.size() ? linear.column_blocks[block + 1].begin
                                                   : ways.size();
  }
};

inline constexpr std::uint32_t nowhere = UINT32_MAX;

struct ProgramOptions {
  std::optional<std::uint32_t> down;
  double penalty = 20;    // of unserved requests, over the dearest way of their block
  double margin = 0;      // of capacities that the solver stays below
  bool is_count = false;  // costs nothing, and penalties are requests per second
};
Program make_program(const Problem& problem, const Caches& caches, const ProgramOptions& options);

}  // namespace weft::plan::edge
