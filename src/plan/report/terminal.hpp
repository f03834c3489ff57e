// Between the files of this room: the parts of the terminal's text.
#pragma once

#include <string>
#include <string_view>

#include "model/outcome.hpp"

namespace weft::plan::report {

// Beyond this many rows a person sees more in one line a variant.
inline constexpr std::size_t job_rows_max = 40;
// Lines of training jobs are no longer than this.
inline constexpr std::size_t line_columns_max = 120;

// What terminal_text prints, except the time the run itself took.
std::string table_text(const model::Outcome& outcome);

// The part about jobs with training outcomes; "" when there are none.
std::string training_text(const model::Outcome& outcome);

// What queues did in runs on the packet engine, by tier; "" when there are none.
std::string packet_text(const model::Outcome& outcome);

// Without control characters (C0, DEL and, as UTF-8, C1), which a terminal would obey.
std::string printable(std::string_view text);

// "-" for what has no value.
std::string cell(double value, int decimals);
std::string time_cell(double seconds);

}  // namespace weft::plan::report
