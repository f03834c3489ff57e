// For tests: the optimum of a problem by COIN-OR's CLP, a simplex solver that knows nothing of
// ours.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/file.hpp"
#include "base/test_folder.hpp"
#include "base/text.hpp"
#include "os/run_program.hpp"
#include "saddle/saddle.hpp"

namespace weft::saddle {

constexpr const char* clp_path = "/usr/bin/clp";
inline bool has_clp() { return std::filesystem::exists(clp_path); }

// The problem as rows of an MPS file. A block of rows has a column for its peak (free) and one for
// what the peak exceeds the limit by.
inline std::string to_mps(const Problem& p) {
  const auto row_end = [&](std::size_t b) {
    return b + 1 < p.row_blocks.size() ? p.row_blocks[b + 1].begin : p.row_count();
  };
  const auto column_end = [&](std::size_t b) {
    return b + 1 < p.column_blocks.size() ? p.column_blocks[b + 1].begin : p.column_count();
  };
  std::string rows = "NAME t\nROWS\n N obj\n", columns = "COLUMNS\n", rhs = "RHS\n";
  std::string bounds = "BOUNDS\n";
  for (std::size_t r = 0; r < p.row_count(); ++r) {
    rows += fmt::format(" L r{}\n", r);
    rhs += fmt::format(" s r{} {:.17g}\n", r, -p.offset[r]);
  }
  std::vector<std::string> of(p.column_count());
  for (std::size_t b = 0; b < p.column_blocks.size(); ++b) {
    const ColumnBlock& block = p.column_blocks[b];
    rows += fmt::format(" {} d{}\n", block.fill == Fill::exactly ? 'E' : 'L', b);
    rhs += fmt::format(" s d{} {:.17g}\n", b, block.volume);
    for (std::size_t q = block.begin; q < column_end(b); ++q)
      of[q] += fmt::format(" x{} d{} 1\n", q, b);
  }
  for (std::size_t g = 0; g < p.groups.size(); ++g) {
    rows += fmt::format(" L g{}\n", g);
    rhs += fmt::format(" s g{} {:.17g}\n", g, p.groups[g].cap);
    for (std::size_t q = p.groups[g].begin; q < p.groups[g].end; ++q)
      of[q] += fmt::format(" x{} g{} 1\n", q, g);
  }
  for (std::size_t q = 0; q < p.column_count(); ++q) {
    columns += fmt::format(" x{} obj {:.17g}\n", q, p.cost[q]) + of[q];
    for (std::uint32_t e = p.entry_begin[q]; e < p.entry_begin[q + 1]; ++e)
      columns += fmt::format(" x{} r{} {:.17g}\n", q, p.entries[e],
                             p.scale[p.entries[e]] * (p.weights.empty() ? 1 : p.weights[e]));
  }
  for (std::size_t b = 0; b < p.row_blocks.size(); ++b) {  // load <= peak <= limit + excess
    const RowBlock& block = p.row_blocks[b];
    rows += fmt::format(" L e{}\n", b);
    columns += fmt::format(" p{} obj {:.17g}\n", b, block.low);
    for (std::size_t r = block.begin; r < row_end(b); ++r)
      columns += fmt::format(" p{} r{} -1\n", b, r);
    bounds += fmt::format(" FR {:<10}p{}\n", "b", b);
    if (block.high == block.low) continue;
    columns += fmt::format(" p{} e{} 1\n", b, b);
    rhs += fmt::format(" s e{} {:.17g}\n", b, block.limit);
    if (block.high != unbounded)
      columns += fmt::format(" o{} obj {:.17g}\n o{} e{} -1\n", b, block.high - block.low, b, b);
  }
  return rows + columns + rhs + bounds + "ENDATA\n";
}

inline std::optional<double> clp_optimum(const std::string& mps, const TestFolder& folder) {
  const std::string path = folder.write("t.mps", mps);
  const auto outcome = run_program({.argv = {clp_path, path, "-solve"}, .environment = {}});
  if (!outcome) return std::nullopt;
  constexpr std::string_view said = "Optimal objective ";
  const std::size_t at = outcome->output.find(said);
  if (at == std::string::npos) return std::nullopt;
  const std::string_view rest = std::string_view(outcome->output).substr(at + said.size());
  const auto value = parse_number({rest.substr(0, rest.find(' ')), {}});
  return value ? std::optional(*value) : std::nullopt;
}

}  // namespace weft::saddle
