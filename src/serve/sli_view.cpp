#include "serve/sli_view.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_line.hpp"
#include "base/line_reader.hpp"
#include "model/events/entity.hpp"
#include "model/events/evidence.hpp"
#include "observe/sli/report.hpp"
#include "serve/listing.hpp"

namespace weft::serve {

namespace sli = observe::sli;

namespace {

constexpr std::size_t cases_max = 100'000;

// None for what is no case any more, and for what is about nothing in the fabric.
Result<std::optional<model::Episode>> episode_of(const model::Fabric& fabric,
                                                 const port::Document& document) {
  Errors errors;
  WEFT_TRY(const JsonLine line, JsonLine::parse(document.body, {"case " + document.id, 0, 0}));
  const std::string standing = line.text("standing", "", errors);
  const auto cause = line.object("cause", errors);
  model::Episode out;
  out.id = document.id;
  if (cause) {
    out.kind = cause->text("kind", {}, errors);
    out.entities = {cause->text("entity", {}, errors)};
  }
  out.start = line.time("opened", {}, errors);
  if (line.has("closed"))
    out.end = {line.time("closed", {}, errors).ns + 1};
  else if (standing == "closed")
    out.end = document.updated;
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  if (standing == "withdrawn" || standing == "superseded" || out.entities.empty() ||
      !model::find_entity(fabric, {out.entities.front(), {}}))
    return std::nullopt;
  return out;
}

}  // namespace

Result<std::vector<model::Episode>> case_episodes(const model::Fabric& fabric, port::Store& store,
                                                  Timestamp from, Timestamp to) {
  std::vector<model::Episode> out;
  WEFT_TRY(const auto documents, store.documents(case_kind, end_of_time, cases_max));
  for (const port::Document& document : documents) {
    if (document.updated.ns < from.ns - ns_per_day) break;  // last updated first
    WEFT_TRY(auto episode, episode_of(fabric, document));
    if (episode && episode->start < to && from < episode->end) out.push_back(*std::move(episode));
  }
  return out;
}

Result<std::string> sli_view(const model::Fabric& fabric, const sli::Settings& settings,
                             port::Store& store, Timestamp from, Timestamp to,
                             std::uint64_t event) {
  if (to <= from) return fail(Errc::value, {}, "\"to\" is not after \"from\"", "use a later time");
  WEFT_TRY(auto episodes, case_episodes(fabric, store, from, to));
  WEFT_TRY(const sli::Causes causes, sli::Causes::create(fabric, std::move(episodes), settings));
  sli::MinuteCounters::Options options;
  options.first_minute = sli::minute_of(from);
  options.last_minute = sli::minute_of({to.ns - 1});
  sli::MinuteCounters book(fabric, settings, causes, options);
  sli::OffenderBook offenders(fabric);
  Status taken;
  const auto take = [&](const model::EvidenceSet& set) {
    if (taken) taken = book.add(set);
    if (taken) taken = offenders.add(set, options.first_minute, options.last_minute);
  };
  for (;;) {
    WEFT_TRY(const auto events, store.events(event, event_rows));
    if (events.empty()) break;
    event = events.back().seq + 1;
    std::string rows;
    for (const port::StoredEvent& one : events)
      if (one.feed == "evidence") rows += one.line + "\n";
    LineReader lines(rows, "the store's evidence");
    WEFT_TRY_STATUS(model::scan_evidence(fabric, lines, take));
    WEFT_TRY_STATUS(taken);
  }
  WEFT_TRY(const sli::Report report,
           sli::build_report(book, offenders, options.first_minute, options.last_minute));
  return sli::to_json(report, book);
}

}  // namespace weft::serve
