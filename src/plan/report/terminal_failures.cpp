// What failures did to flows until routing led round them.
#include <fmt/format.h>

#include "base/text.hpp"
#include "plan/report/terminal.hpp"

namespace weft::plan::report {
namespace {

using model::FailureOutcome;

constexpr std::size_t failure_rows_max = 60;

// "-" is for what the engine does not count.
std::string counted_cell(double bytes) { return bytes == 0 ? "0 B" : bytes_cell(bytes); }

std::string lost_cell(const FailureOutcome& failure) {
  return failure.lost_packets ? fmt::format("{} packets", *failure.lost_packets)
                              : counted_cell(failure.lost_bytes);
}

}  // namespace

void add_failure_heads(std::vector<Table::Head>& heads) {
  for (const char* name : {"flows hit", "path again, median", "last", "never", "stalled", "lost"})
    heads.push_back({name});
}

void add_failure_cells(const FailureOutcome& failure, std::vector<std::string>& cells) {
  for (std::string cell : {std::to_string(failure.hit), time_cell(failure.path_again_p50_s),
                           time_cell(failure.path_again_max_s), std::to_string(failure.stranded),
                           counted_cell(failure.stalled_bytes), lost_cell(failure)})
    cells.push_back(std::move(cell));
}

std::string failures_text(const model::Outcome& outcome) {
  using enum Table::Align;
  std::vector<Table::Head> heads{{"failure", left}, {"at"}, {"variant", left}};
  add_failure_heads(heads);
  Table table(heads);
  std::size_t rows = 0;
  for (const model::VariantOutcome& variant : outcome.variants)
    for (const FailureOutcome& f : variant.failures) {
      if (++rows > failure_rows_max) continue;
      std::vector<std::string> cells{printable(f.what), time_cell(f.at_s), printable(variant.name)};
      add_failure_cells(f, cells);
      table.add(std::move(cells));
    }
  if (rows == 0) return "";
  const std::string more =
      rows > failure_rows_max
          ? fmt::format("... and {} more failures; report.json has them\n", rows - failure_rows_max)
          : "";
  return table.text() + more;
}

}  // namespace weft::plan::report
