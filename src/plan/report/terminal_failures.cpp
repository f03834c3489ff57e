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

std::string failures_text(const model::Outcome& outcome) {
  using enum Table::Align;
  Table table({{"failure", left},
               {"at"},
               {"variant", left},
               {"flows hit"},
               {"path again, median"},
               {"last"},
               {"never"},
               {"stalled"},
               {"lost"}});
  std::size_t rows = 0;
  for (const model::VariantOutcome& variant : outcome.variants)
    for (const FailureOutcome& f : variant.failures) {
      if (++rows > failure_rows_max) continue;
      table.add({printable(f.what), time_cell(f.at_s), printable(variant.name),
                 std::to_string(f.hit), time_cell(f.path_again_p50_s),
                 time_cell(f.path_again_max_s), std::to_string(f.stranded),
                 counted_cell(f.stalled_bytes), lost_cell(f)});
    }
  if (rows == 0) return "";
  const std::string more =
      rows > failure_rows_max
          ? fmt::format("... and {} more failures; report.json has them\n", rows - failure_rows_max)
          : "";
  return table.text() + more;
}

}  // namespace weft::plan::report
