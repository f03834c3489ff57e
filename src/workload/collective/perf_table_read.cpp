// The reader of nccl-tests output.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "base/text.hpp"
#include "workload/collective/perf_table.hpp"

namespace weft::workload {
namespace {

constexpr std::size_t measured_row_count_max = 1'000'000;
// 5 heads and two halves of time, algbw, busbw, #wrong, and max, min, p99, cv in newer ones.
constexpr std::size_t cell_count_max = 21;

struct Cell {
  std::string_view text;
  std::uint32_t column;
};

template <class T>
bool parse_whole(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

bool is_unsigned(std::string_view text) {
  std::uint64_t value = 0;
  return parse_whole(text, value);
}

bool is_type(std::string_view text) {
  constexpr std::array<std::string_view, 13> types{
      "int8",  "uint8",  "int32",    "uint32", "int64",  "uint64", "half",
      "float", "double", "bfloat16", "f8e4m3", "f8e5m2", "char"};
  for (const std::string_view type : types)
    if (text == type) return true;
  return false;
}

// Length of "0: " or "[1,0]<stdout>:" before a line.
std::size_t prefix_length(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return 0;
  const std::string_view tag = trim(line.substr(0, colon));
  const bool is_mpirun = tag.starts_with('[') && tag.ends_with('>');
  return is_unsigned(tag) || is_mpirun ? colon + 1 : 0;
}

// At most one more than a row can have, so that a long line costs no more.
std::vector<Cell> cells_of(std::string_view line, std::size_t from) {
  constexpr std::string_view blanks = " \t\r";
  std::vector<Cell> cells;
  while (cells.size() <= cell_count_max) {
    const std::size_t begin = line.find_first_not_of(blanks, from);
    if (begin == std::string_view::npos) break;
    from = std::min(line.find_first_of(blanks, begin), line.size());
    cells.push_back({line.substr(begin, from - begin), static_cast<std::uint32_t>(begin + 1)});
  }
  return cells;
}

class RowReader {
 public:
  RowReader(std::span<const Cell> cells, Where line) : cells_(cells), line_(std::move(line)) {}

  Result<MeasuredRow> read() {
    MeasuredRow row;
    row.where = line_;
    parse_whole(cells_[0].text, row.size_bytes);
    parse_whole(cells_[1].text, row.count);
    row.type = cells_[2].text;
    std::size_t at = 3;
    double number = 0;
    if (at < cells_.size() && !parse_whole(cells_[at].text, number)) row.redop = cells_[at++].text;
    // What is left are two equal halves, after a root where the count is odd.
    if ((cells_.size() - at) % 2 == 1) ++at;
    const std::size_t half = (cells_.size() - at) / 2;
    if (half != 4 && half != 8)
      return error(cells_.back(),
                   fmt::format("a line of {} columns is not an nccl-tests row", cells_.size()));
    WEFT_TRY_STATUS(numbers(at, row.time_us, row.algbw_GBps, row.busbw_GBps));
    WEFT_TRY_STATUS(
        numbers(at + half, row.in_place_time_us, row.in_place_algbw_GBps, row.in_place_busbw_GBps));
    return row;
  }

 private:
  Status numbers(std::size_t at, double& time, double& algbw, double& busbw) {
    for (double* value : {&time, &algbw, &busbw}) {
      const Cell& cell = cells_[at++];
      if (parse_whole(cell.text, *value) && std::isfinite(*value) && *value >= 0) continue;
      return error(cell, fmt::format("\"{}\" is not a time or bandwidth", cell.text));
    }
    return {};
  }

  std::unexpected<Error> error(const Cell& cell, std::string what) {
    Where where = line_;
    where.column = cell.column;
    return fail(Errc::parse, std::move(where), std::move(what),
                "a row is: size count type redop root, then time algbw busbw #wrong twice");
  }

  std::span<const Cell> cells_;
  Where line_;
};

std::optional<double> average_in(std::string_view comment) {
  const std::size_t at = comment.find("Avg bus bandwidth");
  const std::size_t colon = at == std::string_view::npos ? at : comment.find(':', at);
  if (colon == std::string_view::npos) return {};
  const auto cells = cells_of(comment, colon + 1);
  double value = 0;
  if (cells.empty() || !parse_whole(cells[0].text, value) || !std::isfinite(value)) return {};
  return value;
}

bool begins_like_row(std::span<const Cell> cells) {
  return cells.size() >= 3 && is_unsigned(cells[0].text) && is_unsigned(cells[1].text) &&
         is_type(cells[2].text);
}

}  // namespace

Result<MeasuredTable> read_nccl_table(std::string_view text, const std::string& file) {
  MeasuredTable table;
  std::uint32_t number = 0;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    ++number;
    const auto cells = cells_of(line, prefix_length(line));
    if (cells.empty()) continue;
    if (cells[0].text.starts_with('#')) {
      if (const auto average = average_in(line)) table.avg_busbw_GBps = average;
    } else if (!begins_like_row(cells)) {
      ++table.other_lines;
    } else {
      if (table.rows.size() == measured_row_count_max)
        return fail(Errc::parse, {file, number, 1},
                    fmt::format("more than {} rows", measured_row_count_max), "split the file");
      WEFT_TRY(MeasuredRow row, RowReader(cells, {file, number, cells[0].column}).read());
      table.rows.push_back(std::move(row));
    }
  }
  if (table.rows.empty())
    return fail(Errc::parse, {file, 1, 1}, "no nccl-tests rows in this file",
                "use the output of, e.g., all_reduce_perf");
  return table;
}

}  // namespace weft::workload
