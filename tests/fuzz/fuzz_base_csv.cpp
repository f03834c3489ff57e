// CsvReader: no input crashes, errors name a line inside the file, and records that are written
// with csv_cell read back the same.
#include <algorithm>
#include <string>
#include <vector>

#include "base/csv.hpp"
#include "fuzz.hpp"

namespace {

const std::vector<std::string> required{"id", "src", "dst"};
const std::vector<std::string> optional{"after"};
constexpr std::size_t column_count = 4;

using Records = std::vector<std::vector<std::string>>;

void check_error(const weft::Error& error, std::string_view text) {
  const auto line_count = 1 + std::ranges::count(text, '\n');
  WEFT_CHECK(error.where.line >= 1 && error.where.line <= line_count);
  WEFT_CHECK(error.where.column >= 1);
  WEFT_CHECK(!error.what.empty() && !error.hint.empty());
}

// What stands before the first error.
Records read(std::string_view text) {
  Records out;
  weft::CsvReader csv(text, "fuzz.csv");
  if (const auto header = csv.header(required, optional); !header) {
    check_error(header.error(), text);
    return out;
  }
  while (csv.next()) {
    std::vector<std::string> record;
    for (std::size_t c = 0; c < column_count; ++c) record.emplace_back(csv.cell(c).text);
    out.push_back(std::move(record));
  }
  if (csv.error() != nullptr) check_error(*csv.error(), text);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Records records = read(weft::fuzz::text_of(data, size));
  std::string copy = "id,src,dst,after\n";
  for (const auto& record : records)
    for (std::size_t c = 0; c < column_count; ++c)
      copy += weft::csv_cell(record[c]) + (c + 1 < column_count ? "," : "\n");
  WEFT_CHECK(read(copy) == records);
  return 0;
}
