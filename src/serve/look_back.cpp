// The part of the controller that reads its log again, to say how things stood.
#include <algorithm>
#include <utility>

#include "base/json_line.hpp"
#include "model/events/case.hpp"
#include "model/events/entity.hpp"
#include "serve/controller.hpp"
#include "serve/listing.hpp"

namespace weft::serve {
namespace {

constexpr std::uint64_t past_events_max = 2'000'000;
// Clocks of stores and devices are not quite ours.
constexpr std::int64_t late_arrival_ns = 10 * ns_per_minute;
constexpr std::int64_t look_turn_ns = ns_per_s / 10;

std::unexpected<Error> not_reached(std::string what, std::string_view help) {
  return fail(Errc::value, {"at", 0, 0}, std::move(what), std::string(help));
}

// Where it is not over.
void add_open(const port::Document& document, std::vector<NetworkView::Open>& out) {
  const auto line = JsonLine::parse(document.body, {});
  if (!line) return;
  const std::string standing = text_of(line->node(), "standing");
  if (standing != "open" && standing != "provisional") return;
  const JsonNode cause = line->node().member("cause");
  out.push_back({document.id, text_of(cause, "kind"), text_of(cause, "entity"), standing});
}

}  // namespace

NetworkView Controller::network(Timestamp now) const {
  NetworkView out{.at = now, .out = {}, .cases = {}, .links = {}};
  std::vector<model::Entity> gone = ordered_out();
  for (const auto& [part, since] : ordered_out_) out.out.push_back({part, "weft", since.ordered});
  for (const auto& [part, until] : out_by_others_) {
    if (until <= now) continue;
    gone.push_back(part);
    out.out.push_back({name(context_.fabric, part), "others", std::nullopt});
  }
  for (const auto& [id, state] : open_) {
    if (const auto c = publisher_.find(id))
      out.cases.push_back({id, std::string(to_text(c->kind)), root_name(context_.fabric, *c),
                           std::string(to_text(state))});
    else if (const auto document = store_.document(case_kind, id))  // of before a restart
      add_open(*document, out.cases);
  }
  out.links = health_.conditions(now, gone);
  return out;
}

// Cases as take() has them, for the eyes of nobody but who looks back.
void Controller::publish_past(Timestamp now, LookedBack& out) {
  publisher_.advance(now);
  for (const CaseStatus& standing : publisher_.changes()) {
    const std::string& id = standing.body.id;
    if (standing.body.opened < truncated_before_) continue;
    if (is_over(standing.state))
      open_.erase(id);
    else
      open_[id] = standing.state;
    if (standing.json.empty()) continue;
    updated_.ns = std::max(now.ns, updated_.ns + 1);
    out.cases[id] = {std::string(case_kind), id, updated_, standing.json};
  }
}

// A service that runs comes by when something is due.
void Controller::publish_past_until(Timestamp t, LookedBack& out) {
  for (auto due = publisher_.next_due(); due && *due < t; due = publisher_.next_due()) {
    const Timestamp now = publisher_.now();
    const Timestamp then = *due > now ? *due : Timestamp{now.ns + look_turn_ns};
    if (then >= t) return;
    publish_past(then, out);
  }
}

Result<Controller::LookedBack> Controller::look_back(std::uint64_t from,
                                                     std::optional<Timestamp> whole_from,
                                                     Timestamp at,
                                                     const IsCancelled& is_cancelled) {
  is_looking_back_ = true;
  LookedBack out{.cases = {}, .events = 0, .from = at};
  const Timestamp probed{at.ns - settings_.probe_monitor.keep_ns - late_arrival_ns};
  for (bool is_over = false, is_first = true; !is_over; is_first = false) {
    if (is_cancelled && is_cancelled()) return fail(Errc::io, {}, "cancelled");
    WEFT_TRY(auto events, store_.events(from, event_rows));
    if (events.empty()) break;
    if (is_first) out.from = events.front().received;
    if (is_first) truncated_before_ = whole_from.value_or(Timestamp{out.from.ns + late_arrival_ns});
    from = events.back().seq + 1;
    is_over = events.back().received > at;
    out.events += events.size();
    std::erase_if(events, [&](const port::StoredEvent& event) {
      return event.received > at || (event.feed == "evidence" && event.received < probed);
    });
    for (std::size_t i = 0, end = 0; i < events.size(); i = end) {
      const Timestamp received = events[i].received;
      while (end < events.size() && events[end].received == received) ++end;
      publish_past_until(received, out);
      learn(std::span(events).subspan(i, end - i), at);
      publish_past(std::max(received, publisher_.now()), out);
    }
  }
  publish_past_until(at, out);
  publish_past(std::max(at, publisher_.now()), out);
  return out;
}

Result<std::unique_ptr<const Past>> Controller::past(Timestamp at, Timestamp now,
                                                     const std::vector<std::string>& open,
                                                     const IsCancelled& is_cancelled) const {
  if (at > now)
    return not_reached("the instant " + to_text(at) + " is not over: it is " + to_text(now),
                       "leave \"at\" out for the network now");
  WEFT_TRY(const auto oldest, store_.events(1, 1));
  if (oldest.empty())
    return not_reached("nothing is kept yet", "leave \"at\" out for the network now");
  PastFacts facts{.log_from = oldest.front().received, .read_from = at, .not_known = {}};
  // What was out of service is said again and again, but not every moment.
  if (oldest.front().seq > 1) facts.log_from.ns += settings_.replay_ns;
  if (at < facts.log_from)
    return not_reached("the log reaches back to " + to_text(facts.log_from),
                       "ask for an instant since then, or keep events longer (keep.events_days)");
  // Cases that may change while this is read are read first, as they stand.
  PastCases cases;
  for (const std::string& id : open)
    if (auto document = store_.document(case_kind, id); document && document->updated <= at)
      cases[id] = *std::move(document);
  WEFT_TRY(auto changed, cases_changed_since(store_, at));
  std::erase_if(changed, [&](const Changed& one) { return cases.contains(one.id); });
  Timestamp since = at;
  for (const Changed& one : changed) since = std::min(since, one.opened);
  WEFT_TRY(const std::uint64_t end, first_event_since(store_, {at.ns + 1}));
  const Timestamp start{since.ns - settings_.replay_ns - late_arrival_ns};
  WEFT_TRY(std::uint64_t from, first_event_since(store_, start));
  std::optional whole_from(Timestamp{start.ns + late_arrival_ns});
  if (oldest.front().seq > 1 && start < oldest.front().received) whole_from.reset();
  if (end > past_events_max && from < end - past_events_max) {
    from = end - past_events_max;
    whole_from.reset();
  }

  Controller then(context_, settings_, repair_.policy(), store_);
  WEFT_TRY(LookedBack found, then.look_back(from, whole_from, at, is_cancelled));
  facts.read_from = found.from;
  facts.events = found.events;
  for (const Changed& one : changed) {
    const auto seen = found.cases.find(one.id);
    cases[one.id] =
        seen == found.cases.end() ? std::nullopt : std::optional(std::move(seen->second));
    if (one.opened < then.truncated_before_ && one.opened <= at) facts.not_known.push_back(one.id);
  }
  WEFT_TRY_STATUS(find_neighbours(store_, at, facts));
  Past out;
  NetworkView network = then.network(at);
  network.cases.clear();  // those that did not change since stand in the store
  for (const auto& [id, document] : cases)
    if (document) add_open(*document, network.cases);
  WEFT_TRY(out.documents, past_documents(store_, at, std::move(cases)));
  out.network = to_json(context_.fabric, network, &facts);
  out.probes = to_json(then.probe_monitor_.view(at));
  return std::make_unique<const Past>(std::move(out));
}

}  // namespace weft::serve
