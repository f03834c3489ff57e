// Comma-separated values with a header line (RFC 4180 quoting).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/text.hpp"

namespace weft {
inline namespace base {

// Reads line by line, so that a file of a million flows needs no copy of itself.
//   CsvReader csv(text, "flows.csv");
//   WEFT_TRY_STATUS(csv.header({"id", "src"}, {"after"}));
//   while (csv.next()) use(csv.cell("src"));
//   if (auto error = csv.error()) ...
class CsvReader {
 public:
  CsvReader(std::string_view text, std::string file);

  // Bounds: 1,024 cells a record. Text must be UTF-8; nothing may follow a closing quote.
  // Reads the first line: all of `required` must be there, nothing beyond both lists may be.
  // Columns stand in any order; an optional one without a name is never there. Blank lines and
  // lines that start with '#' are skipped everywhere.
  Status header(std::span<const std::string> required, std::span<const std::string> optional);

  // The next line's cells by number in (required..., optional...) order; a missing optional column
  // is an empty cell. False at the end or at an error.
  bool next();
  Token cell(std::size_t column) const;
  Where where() const { return {file_, line_, 1}; }
  const Error* error() const { return failed_ ? &error_ : nullptr; }

 private:
  struct Position {
    std::uint32_t line, column;
  };
  bool skip_blank();
  bool read_line(std::vector<std::string>& cells);
  void start_cell(std::vector<std::string>& cells, std::size_t at, std::size_t line_start);
  bool refuse(Position at, std::string what, std::string hint);
  Where where(Position at) const { return {file_, at.line, at.column}; }

  std::string_view text_;
  std::string file_;
  std::uint32_t line_ = 0;  // of the current record
  std::uint32_t next_line_ = 1;
  std::vector<std::string> cells_;
  std::vector<Position> starts_;       // of each cell
  std::vector<std::size_t> position_;  // per named column: cell index, or npos
  std::size_t width_ = 0;
  bool failed_ = false;
  Error error_;
};

// Quotes where needed.
std::string csv_cell(std::string_view text);

}  // namespace base
}  // namespace weft
