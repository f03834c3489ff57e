// Between the files of this room: the parts of the terminal's text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "model/work/outcome.hpp"

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

// What failures did to flows, where routing takes time to lead round them; "" when there are none.
std::string failures_text(const model::Outcome& outcome);
// The part of such a table that is the same wherever a failure has a row: flows hit, when they have
// a path again, how many never, what stalled and was lost.
void add_failure_heads(std::vector<Table::Head>& heads);
void add_failure_cells(const model::FailureOutcome& failure, std::vector<std::string>& cells);

// A byte of UTF-8 that continues a character.
inline bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }
// At most `columns` characters of UTF-8; what is cut ends in "..".
std::string clipped(std::string_view text, std::size_t columns);

// Without control characters (C0, DEL and, as UTF-8, C1), which a terminal would obey.
std::string printable(std::string_view text);

// A row that says, in place of a job's numbers, when and why it came to a stop.
void add_unfinished(Table& table, std::vector<std::string> names, const model::JobOutcome& job);
// "unfinished" for a job that came to a stop, and `text` for another.
std::string or_unfinished(const model::JobOutcome& job, std::string text);
// Such jobs among those that `shown` picks, one line each and a bounded number of them, for tables
// that have no room to say why. "" where there are none.
std::string unfinished_lines(const model::Outcome& outcome,
                             bool (*shown)(const model::JobOutcome& job));

// "-" for what has no value.
std::string cell(double value, int decimals);
std::string time_cell(double seconds);
std::string bytes_cell(double bytes);  // for 0 too

}  // namespace weft::plan::report
