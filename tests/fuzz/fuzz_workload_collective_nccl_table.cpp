// read_nccl_table: no input crashes, errors name a place inside the file, numbers are finite.
#include <algorithm>
#include <cmath>

#include "fuzz.hpp"
#include "workload/collective/perf_table.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = weft::fuzz::text_of(data, size);
  const auto table = weft::workload::read_nccl_table(text, "fuzz.txt");
  const auto line_count = 1 + std::ranges::count(text, '\n');
  if (!table) {
    WEFT_CHECK(table.error().where.line >= 1 && table.error().where.line <= line_count);
    WEFT_CHECK(!table.error().what.empty() && !table.error().hint.empty());
    return 0;
  }
  WEFT_CHECK(!table->rows.empty());
  for (const auto& row : table->rows) {
    WEFT_CHECK(row.where.line >= 1 && row.where.line <= line_count);
    for (const double value : {row.time_us, row.algbw_GBps, row.busbw_GBps, row.in_place_time_us,
                               row.in_place_algbw_GBps, row.in_place_busbw_GBps})
      WEFT_CHECK(std::isfinite(value) && value >= 0);
  }
  return 0;
}
