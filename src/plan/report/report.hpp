// What a person, a program and a trace viewer see of a run. Formats: docs/report.md.
//
// Every function is deterministic: the same outcome gives the same bytes. Wall-clock and CPU time
// appear on the terminal only. Texts of the outcome are untrusted: each output escapes them.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "model/work/outcome.hpp"

namespace weft::plan::report {

using model::Outcome;

// One row per variant and job with mean time, bus bandwidth, slowdown against the roofline, speed
// against the first variant, and the worst max/mean load of the variant's link tiers. Jobs with a
// training outcome have a table of their own (step time, MFU, exposed communication, ...), followed
// by the hottest link, the largest waits and the bytes by distance. Notes come last. More than 40
// rows of a kind become one line a variant with each job's slowdown, or step time and MFU.
// Cost: O(rows + notes).
std::string terminal_text(const Outcome& outcome);

// report.json. Maps larger than a page can show are merged block by block (HeatMap blocks below).
// Fails: Errc::value when two variants, or two jobs or tiers of a variant, have one name.
// Cost: O(size of the outcome).
Result<std::string> json_text(const Outcome& outcome);
// The value of its "packet", for outputs of a single run.
std::string json_text(const model::PacketOutcome& packet);

// report.html: one page that needs no network and no other file. Fails as json_text does. Without
// assets (see assets.hpp) it holds the tables of the terminal.
struct PageAssets;
Result<std::string> html_text(const Outcome& outcome);
Result<std::string> html_text(const Outcome& outcome, const PageAssets& assets);
bool page_is_interactive();

// A page by the script of web/report: it shows what its data are of ("report-data" of a run,
// "sweep-data").
struct Page {
  std::string title, command;                             // `command` of weft
  std::string table;                                      // what stands there without a script
  std::vector<std::pair<std::string, std::string>> data;  // id and JSON
};
std::string page_text(const Page& page, const PageAssets& assets);
std::string page_text(const Page& page);
inline constexpr std::string_view page_is_plain =
    "report.html contains only the tables: weft was built where npm could not fetch the packages "
    "of the interactive page. Run ./run.sh again where npm can reach its registry.";

// The spans in Chrome's trace-event format, uncompressed: a process per variant, a thread per
// track, roles of a job ("llama3 / pp 3") in natural order; spans of a process sorted by start.
// Spans of one track that overlap without nesting go to further rows of that track, because viewers
// draw a row as a stack. What was `recorded` has processes behind those of the variants.
// Cost: O(spans log spans), times the rows of a track.
std::string trace_text(const Outcome& outcome,
                       std::span<const model::VariantOutcome> recorded = {});

// Whether files can be made in `directory`, found out by making one; it and the directories made
// for it are removed again. Asked before a long run, so that its result is not lost. Fails:
// Errc::io.
Status check_directory(const std::string& directory);

// Writes report.json, report.html and trace.json.gz into `directory`, which is made when missing.
// All texts exist before the first file is written. Fails: as above; Errc::io.
Status write_report(const Outcome& outcome, const std::string& directory,
                    std::span<const model::VariantOutcome> recorded = {});

// A map has at most this many cells along each side. Larger ones are divided into equal blocks of
// neighbours, as small as possible, and a cell shows the highest load of its block.
inline constexpr std::size_t map_rows_max = 384;
inline constexpr std::size_t map_columns_max = 96;

}  // namespace weft::plan::report
