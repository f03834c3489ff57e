#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <limits>

#include "base/file.hpp"
#include "base/line_reader.hpp"
#include "base/plural.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "model/events/episode.hpp"
#include "model/events/evidence.hpp"
#include "observe/sli/report.hpp"

namespace weft::cli {
namespace {

struct SliArgs {
  std::vector<std::string> evidence;  // files; "-" is standard input
  std::string fabric, episodes, objectives, openslo, metrics, from, to, lateness;
};

namespace sli = observe::sli;

constexpr std::int64_t ps_per_minute = 60'000'000'000'000;
constexpr std::size_t revisions_told = 5;

// The minutes [first, last] that are reported; open where nothing was asked for.
Result<sli::MinuteCounters::Options> read_options(const SliArgs& args) {
  sli::MinuteCounters::Options out;
  if (!args.from.empty()) {
    WEFT_TRY(const Timestamp from, parse_timestamp({args.from, {"--from", 0, 0}}));
    out.first_minute = sli::minute_of(from);
  }
  if (!args.to.empty()) {
    WEFT_TRY(const Timestamp to, parse_timestamp({args.to, {"--to", 0, 0}}));
    if (to.ns == std::numeric_limits<std::int64_t>::min() ||
        sli::minute_of({to.ns - 1}) < out.first_minute)
      return fail(Errc::value, {"--to", 0, 0}, "nothing lies between --from and --to",
                  "use a later time");
    out.last_minute = sli::minute_of({to.ns - 1});
  }
  if (!args.lateness.empty()) {
    WEFT_TRY(const Duration lateness, parse_duration({args.lateness, {"--lateness", 0, 0}}));
    if (lateness.ps < 0 || lateness.ps % ps_per_minute != 0)
      return fail(Errc::value, {"--lateness", 0, 0},
                  fmt::format("{} is not a whole number of minutes", quote(args.lateness)),
                  "write e.g. \"10 min\"");
    out.lateness_minutes = lateness.ps / ps_per_minute;
  }
  return out;
}

Result<sli::Settings> load_settings(const SliArgs& args) {
  if (args.objectives.empty()) return sli::default_settings();
  WEFT_TRY(const Config config, load_yaml(args.objectives));
  return sli::read_settings(config);
}

// Errors that know no place get the file's name.
template <class T>
Result<T> in_file(Result<T> result, const std::string& file) {
  if (result) return result;
  Error error = std::move(result).error();
  if (error.where.file.empty()) error.where.file = file;
  for (Error& more : error.more)
    if (more.where.file.empty()) more.where.file = file;
  return std::unexpected(std::move(error));
}

Result<sli::Causes> load_causes(const model::Fabric& fabric, const sli::Settings& settings,
                                const std::string& path) {
  std::vector<model::Episode> episodes;
  if (!path.empty()) {
    WEFT_TRY(LineReader lines, LineReader::open(path));
    WEFT_TRY(episodes, model::read_episodes(lines));
  }
  return in_file(sli::Causes::create(fabric, std::move(episodes), settings), path);
}

Status read_file_into(const std::string& path, const sli::MinuteCounters::Options& options,
                      sli::MinuteCounters& book, sli::OffenderBook& offenders) {
  WEFT_TRY(LineReader lines, LineReader::open(path));
  Status taken;
  const auto take = [&](const model::EvidenceSet& set) {
    if (taken) taken = book.add(set);
    if (taken) taken = offenders.add(set, options.first_minute, options.last_minute);
  };
  WEFT_TRY_STATUS(model::scan_evidence(book.fabric(), lines, take));
  return in_file(std::move(taken), path);
}

// What was asked for; where that is open, what there are rows for.
Result<sli::Report> build(const sli::MinuteCounters& book, const sli::OffenderBook& offenders,
                          const sli::MinuteCounters::Options& options, const std::string& file) {
  using Limits = std::numeric_limits<std::int64_t>;
  auto [first, last] = book.span();
  if (options.first_minute != Limits::min()) first = options.first_minute;
  if (options.last_minute != Limits::max()) last = options.last_minute;
  if (first == Limits::max() || last == Limits::min() || first > last)
    return fail(Errc::value, {file, 0, 0}, "no evidence",
                "provide files with rows, or both --from and --to");
  return sli::build_report(book, offenders, first, last);
}

// It depends on the order of arrival, so it is no part of the report.
void tell_lateness(const sli::MinuteCounters& book) {
  if (book.counts().too_late > 0)
    fmt::print(stderr, "weft: note: ignored {} that came too late\n",
               counted(book.counts().too_late, "row"));
  const auto revisions = book.revisions();
  if (revisions.empty()) return;
  fmt::print(stderr, "weft: note: late rows changed the verdict on {}\n",
             counted(revisions.size(), "minute"));
  constexpr std::array<std::string_view, 4> verdicts{"no data", "good", "bad", "bad"};
  for (std::size_t i = 0; i < std::min(revisions.size(), revisions_told); ++i) {
    const auto& r = revisions[i];
    fmt::print(stderr, "weft: note:   {}, {}, {}: {} became {}\n", to_text(sli::start_of(r.minute)),
               book.settings().objectives[r.series->objective].name,
               r.series->entity.valid() ? book.fabric().name(r.series->entity) : "all",
               verdicts[static_cast<std::size_t>(r.before)],
               verdicts[static_cast<std::size_t>(r.after)]);
  }
}

// Writes the files that were asked for.
Status write_files(const SliArgs& args, const sli::Report& result,
                   const sli::MinuteCounters& book) {
  if (!args.openslo.empty())
    WEFT_TRY_STATUS(write_file(args.openslo, sli::to_openslo(book.settings())));
  if (!args.metrics.empty())
    WEFT_TRY_STATUS(write_file(args.metrics, sli::to_metrics(result, book)));
  return {};
}

Status run_sli(const Common& common, const SliArgs& args) {
  WEFT_TRY(const sli::MinuteCounters::Options options, read_options(args));
  WEFT_TRY(const sli::Settings settings, load_settings(args));
  WEFT_TRY(const model::Fabric fabric, load_fabric(common, args.fabric));
  WEFT_TRY(const sli::Causes causes, load_causes(fabric, settings, args.episodes));
  sli::MinuteCounters book(fabric, settings, causes, options);
  sli::OffenderBook offenders(fabric);
  for (const std::string& path : args.evidence)
    WEFT_TRY_STATUS(read_file_into(path, options, book, offenders));
  WEFT_TRY(const sli::Report result, build(book, offenders, options, args.evidence.front()));
  WEFT_TRY_STATUS(write_files(args, result, book));
  tell_lateness(book);
  fmt::print("{}", common.json ? sli::to_json(result, book) : sli::to_table(result, book));
  return {};
}

}  // namespace

void add_sli(Commands& commands) {
  const auto [command, args] =
      commands.add<SliArgs>("sli", "Count good and bad minutes and find their causes", run_sli);
  command.add_option("evidence", args.evidence, "Probe results: JSON lines; - for standard input")
      ->required();
  command.add_option("--fabric", args.fabric, "Scenario or fabric file")->required();
  command.add_option("--episodes", args.episodes, "Possible causes: JSON lines");
  command.add_option("--objectives", args.objectives, "YAML file with objectives and alerts");
  command.add_option("--from", args.from, "First minute of the report, RFC 3339");
  command.add_option("--to", args.to, "End of the report");
  command.add_option("--lateness", args.lateness,
                     "Ignore rows older than the newest by more than this, e.g. \"10 min\"");
  command.add_option("--openslo", args.openslo, "File for the objectives as OpenSLO v1");
  command.add_option("--metrics", args.metrics, "File for the result as Prometheus text");
}

}  // namespace weft::cli
