// From a case to a drain that may be done.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/json_line.hpp"
#include "operate/repair/driver.hpp"

namespace weft::operate::repair {
namespace {

// A forecast costs the engine's time, and jobs do not change quickly.
constexpr std::int64_t forecast_patience = 10;  // times that of other refusals
constexpr double slowdown_bound = 1e9;          // what JSON can say, of what is no number too

}  // namespace

void Driver::start_over(Ticket& t, std::string why) {
  t.is_reserved = false;
  t.forecast.reset();
  if (t.stage != Stage::detected) move(t, Stage::detected, std::move(why));
}

// Nothing was done, or what was done is undone.
void Driver::close(Ticket& t) {
  t.is_reserved = false;
  if (t.is_rejected)
    t.resolution = Resolution::rejected;
  else if (t.is_orphan())
    t.resolution = Resolution::moved;
  else if (t.stage == Stage::watched)
    t.resolution = Resolution::observed;
  else if (t.resolution == Resolution::none)
    t.resolution = t.repaired_by.empty() ? Resolution::healed : Resolution::repaired;
  if (t.was_drained || t.stage == Stage::undoing)
    move(t, t.returned_at ? Stage::returned : Stage::rolled_back, "its cases are closed");
  else
    move(t, Stage::closed, t.is_orphan() ? "the cause is elsewhere" : "its cases are closed");
}

bool Driver::watch(Ticket& t, std::string why) {
  if (t.stage == Stage::watched) return false;
  move(t, Stage::watched, std::move(why));
  return true;
}

// Of a new ticket, and of one that is only watched: is it to be believed?
bool Driver::detected(Ticket& t) {
  if (!t.has_open_case()) {
    close(t);
    return true;
  }
  const Followed& lead = t.lead();
  if (lead.state == model::CaseState::maintenance)
    return watch(t, "it lies inside a maintenance window");
  if (problem(t).mode == Mode::observe)
    return watch(t, fmt::format("the policy only observes problems of type {}", to_text(t.kind)));
  if (r_.is_believable(lead)) {
    if (lead.state == model::CaseState::provisional &&
        !is_due({t.seen.ns + r_.policy_.timing.early_ns}))
      return false;
    move(t, Stage::triaged,
         fmt::format("{} at {}, confidence {:.2f}", to_text(t.kind), name(t), lead.confidence));
    return true;
  }
  if (lead.state == model::CaseState::provisional) return false;
  return watch(t, fmt::format("confidence {:.2f}, and {:.2f} is needed", lead.confidence,
                              problem(t).confidence));
}

// A drain that was not begun is dropped with the reason for it.
bool Driver::lost_its_case(Ticket& t) {
  if (!t.has_open_case())
    close(t);
  else if (!r_.is_believable(t.lead()))
    start_over(t, "the case is not to be believed any more");
  else
    return false;
  return true;
}

bool Driver::triaged(Ticket& t) {
  if (lost_its_case(t)) return true;
  if (t.is_held) return false;
  const Mode mode = problem(t).mode;
  if (!t.has_part())
    return propose(t, fmt::format("{} at {}: nothing is to be drained", to_text(t.kind), name(t)));
  if (mode == Mode::propose)
    return propose(t, fmt::format("drain {}, by hand: {}", name(t), to_text(t.kind)));
  if (mode == Mode::approve && t.approved_by.empty())
    return propose(t, fmt::format("drain {}, when approved: {}", name(t), to_text(t.kind)));
  return try_reserve(t);
}

bool Driver::propose(Ticket& t, std::string why) {
  if (t.has_part()) {
    const auto objections = all_refusals(r_.situation(&t), t.part);
    for (const Refusal& no : objections) why += fmt::format("; would be refused: {}", no.why);
  }
  move(t, Stage::proposed, std::move(why));
  if (t.has_part() && problem(t).forecast != Forecasting::none)
    issue(t, OrderKind::forecast);
  else
    tell_proposal(t);
  return true;
}

void Driver::tell_proposal(Ticket& t) {
  if (t.forecast)
    t.reason += fmt::format(
        "; of {} jobs the worst would take {:.3f} times as long, {} would "
        "stand still",
        t.forecast->jobs, t.forecast->slowdown_max, t.forecast->stalled);
  tell(t, "repair_proposed", t.reason);
}

bool Driver::proposed(Ticket& t) {
  if (!t.has_open_case()) {
    close(t);
    return true;
  }
  if (t.pending && is_lost(*t.pending)) {
    t.pending.reset();
    tell_proposal(t);
  }
  return false;
}

// Reserving and judging are one: whoever is judged next sees this part as gone.
bool Driver::try_reserve(Ticket& t) {
  if (const Verdict no = first_refusal(r_.situation(&t), t.part)) return block(t, *no);
  t.is_reserved = true;
  t.forecast.reset();
  move(t, Stage::forecasting, "capacity is reserved");
  if (problem(t).forecast != Forecasting::none) issue(t, OrderKind::forecast);
  return true;
}

bool Driver::block(Ticket& t, const Refusal& refusal) {
  t.is_reserved = false;
  const bool is_news = t.stage != Stage::blocked || t.reason != refusal.why;
  if (is_news)
    r_.say("weft", &t, "refused",
           fmt::format("\"guard\":{},\"why\":{}", json_string(refusal.guard),
                       json_string(refusal.why)));
  if (t.stage != Stage::blocked) move(t, Stage::blocked, refusal.why);
  t.reason = refusal.why;
  const std::int64_t factor = refusal.guard == "forecast" ? forecast_patience : 1;
  t.retry_at = in(r_.policy_.timing.blocked_ns * factor);
  if (refusal.until && *refusal.until > *t.retry_at) t.retry_at = refusal.until;
  if (t.refused_by != refusal.guard)
    tell(t, "repair_blocked", fmt::format("{} is not drained: {}", name(t), refusal.why));
  t.refused_by = refusal.guard;
  r_.touch(t);
  return false;
}

bool Driver::blocked(Ticket& t) {
  if (lost_its_case(t)) return true;
  if (t.is_held || !t.retry_at || !is_due(*t.retry_at)) return false;
  return try_reserve(t);
}

void Driver::forecast_known(Ticket& t, const Outcome& outcome) {
  Forecast f = outcome.forecast;
  if (!std::isfinite(f.slowdown_max)) f.slowdown_max = slowdown_bound;
  f.slowdown_max = std::clamp(f.slowdown_max, 0.0, slowdown_bound);
  say_outcome(t, outcome, "forecast",
              outcome.error ? ""
                            : fmt::format(",\"jobs\":{},\"stalled\":{},\"slowdown\":{:.4f}", f.jobs,
                                          f.stalled, f.slowdown_max));
  if (!outcome.error) t.forecast = f;
  if (t.stage == Stage::proposed) return tell_proposal(t);
  if (outcome.error && problem(t).forecast == Forecasting::required) {
    block(t, {"forecast", fmt::format("what it would cost the jobs cannot be foreseen: {}",
                                      outcome.error->text())});
    return;
  }
  if (t.forecast)
    if (const Verdict no = guard_forecast(r_.policy_.guards, *t.forecast)) block(t, *no);
}

bool Driver::forecasting(Ticket& t) {
  if (lost_its_case(t)) return true;
  if (t.pending) {
    if (!is_lost(*t.pending)) return false;
    const Outcome lost{.order = t.pending->id,
                       .error = Error{Errc::io, {}, "no result came", {}, {}}};
    t.pending.reset();
    forecast_known(t, lost);
    return t.stage != Stage::forecasting;
  }
  if (t.is_held) return false;
  if (t.snapshot && !is_due({t.seen.ns + r_.policy_.timing.snapshot_ns})) return false;
  // Much may have happened since the capacity was reserved.
  if (const Verdict no = first_refusal(r_.situation(&t), t.part)) {
    block(t, *no);
    return true;
  }
  r_.machine_.drains.push_back(now());
  r_.machine_dirty_ = true;
  begin(t, port::ActionKind::drain, Stage::draining,
        t.approved_by.empty() ? "by policy" : fmt::format("approved by {}", t.approved_by));
  return true;
}

}  // namespace weft::operate::repair
