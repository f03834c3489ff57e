// Next-hop tables for engines that forward packet by packet.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/id.hpp"
#include "base/result.hpp"
#include "model/fabric/fabric.hpp"
#include "model/fabric/state.hpp"

namespace weft::route {

using model::Fabric;
using model::LinkId;
using model::NodeId;

// For each switch and destination, the links that a shortest path may take: those of the Router,
// under one State (draining links last, dead ones never, NICs do not forward). Read-only once
// built, so that threads share it.
//
// Ends that hang on the same switches differ in the last hop only. They share a column of cells; a
// cell says where among the links of its row the list stands, 16 bits each, so that a fat tree of
// 8,192 NICs (1,280 switches x 512 columns) takes 2.5 MB. A lookup is three dependent loads: row,
// cell, list.
class Fib {
 public:
  static constexpr std::uint32_t no_target = UINT32_MAX;

  // `ends`: NICs and switches between which packets go, repeats allowed. Fails: Errc::unsupported
  // for tables beyond their bounds (65,535 columns, 2^30 cells, 32,767 lists a row). Cost: some 60
  // ns a cell; 60 ms for the fat tree above.
  static Result<Fib> build(const Fabric& fabric, const model::State& state,
                           std::span<const NodeId> ends);

  // What next() wants to know of a destination; no_target when it is none of `ends`.
  std::uint32_t target(NodeId end) const { return target_of_[end]; }

  // The links by which a shortest path leaves `at` (any switch, or a NIC of `ends` where the path
  // starts) for the end whose target that is, in the order of the links. Empty when there is no
  // path, at the end itself when that is a switch, and at other nodes.
  std::span<const LinkId> next(NodeId at, std::uint32_t target) const {
    const Row row = rows_[at];
    const Columns& column = columns_[target >> ordinal_bits];
    const std::uint32_t cell = cells_[row.first_cell + (target >> ordinal_bits)];
    const std::uint32_t last =
        column.base +
        ((target & ordinal_mask) * column.arrivals + (cell & ~arrival)) * column.stride;
    const LinkId* list = &lists_[(cell & arrival) != 0 ? last : row.base + (cell << unit_bits_)];
    return {list + 1, list->value};
  }

  // Bytes of all tables.
  std::size_t bytes() const;

 private:
  friend class FibBuilder;

  // A target is a column and the end's number in it.
  static constexpr std::uint32_t ordinal_bits = 16, ordinal_mask = (1u << ordinal_bits) - 1;
  // Cells with this bit: the next link leads to the end; the other bits number the switches where
  // that is so. Without: the place of the list, in units.
  static constexpr std::uint32_t arrival = 1u << 15;

  struct Row {
    std::uint32_t first_cell = 0;  // NICs with equal ports share cells
    std::uint32_t base = 0;        // of the node's lists
  };
  struct Columns {
    std::uint32_t base = 0;  // last hops, by end, then arrival
    std::uint16_t arrivals = 0, stride = 0;
  };

  Column<NodeId, Row> rows_;
  std::vector<Columns> columns_;
  std::vector<std::uint16_t> cells_;
  std::vector<LinkId> lists_;  // each with its length in front
  std::uint32_t unit_bits_ = 0;
  Column<NodeId, std::uint32_t> target_of_;
};

}  // namespace weft::route
