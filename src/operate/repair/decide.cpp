// From a case to a drain that may be done.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.hpp"
#include "operate/repair/driver.hpp"

namespace weft::operate::repair {
namespace {

// A forecast costs the engine's time, and jobs do not change quickly; nor does what an actuator
// takes for harm, or a dry run.
constexpr std::int64_t slow_patience = 10;  // times that of other refusals
constexpr double slowdown_bound = 1e9;      // what JSON can say, of what is no number too

}  // namespace

void Driver::start_over(Ticket& t, std::string why) {
  t.is_reserved = false;
  t.forecast.reset();
  if (t.stage != Stage::detected) move(t, Stage::detected, std::move(why));
}

// Nothing was done, or what was done is undone.
void Driver::close(Ticket& t) {
  const bool is_end_told = !t.was_drained || t.stage == Stage::undoing;  // by who is undone
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
  if (!is_end_told)
    tell(t, "repair_closed", fmt::format("{} is left as it is: {}", name(t), t.reason));
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
    return watch(t, "it is inside a maintenance window");
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
  return watch(t, fmt::format("confidence {:.2f}, but {:.2f} is required", lead.confidence,
                              problem(t).confidence));
}

// A drain that was not begun is dropped with the reason for it.
bool Driver::lost_its_case(Ticket& t) {
  if (!t.has_open_case())
    close(t);
  else if (!r_.is_believable(t.lead()))
    start_over(t, "the case is no longer credible");
  else
    return false;
  return true;
}

bool Driver::triaged(Ticket& t) {
  if (lost_its_case(t)) return true;
  if (t.is_held) return false;
  const Mode mode = problem(t).mode;
  if (!t.has_part())
    return propose(t, fmt::format("{} at {}: nothing to drain", to_text(t.kind), name(t)));
  if (mode == Mode::propose)
    return propose(t, fmt::format("drain {} manually: {}", name(t), to_text(t.kind)));
  if (mode == Mode::approve && t.approved_by.empty())
    return propose(t, fmt::format("drain {} once approved: {}", name(t), to_text(t.kind)));
  return try_reserve(t);
}

bool Driver::propose(Ticket& t, std::string why) {
  if (t.has_part()) {
    const auto objections = all_refusals(r_.situation(&t), t.part);
    for (const Refusal& no : objections) why += fmt::format("; would be rejected: {}", no.why);
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
    t.reason +=
        fmt::format("; of {} jobs the worst would take {:.3f} times as long, {} would stall",
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
  WEFT_CHECK(t.has_part() && !t.is_reserved);
  if (const Verdict no = first_refusal(r_.situation(&t), t.part)) return block(t, *no);
  t.is_reserved = true;
  t.forecast.reset();
  t.verify = {};
  t.checks_failed = 0;
  move(t, Stage::forecasting, "capacity is reserved");
  if (problem(t).forecast != Forecasting::none) issue(t, OrderKind::forecast);
  return true;
}

bool Driver::block(Ticket& t, const Refusal& refusal) {
  WEFT_CHECK(!t.deed);
  t.is_reserved = false;
  const bool is_news = t.stage != Stage::blocked || t.reason != refusal.why;
  if (is_news)
    r_.say("weft", &t, "refused", JsonObject().add("guard", refusal.guard).add("why", refusal.why));
  if (t.stage != Stage::blocked) move(t, Stage::blocked, refusal.why);
  t.reason = refusal.why;
  const bool changes_slowly = refusal.guard == "forecast" || refusal.guard == "actuator";
  const std::int64_t factor = changes_slowly ? slow_patience : 1;
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
  WEFT_CHECK(!t.pending && !t.deed);
  Forecast f = outcome.forecast;
  if (!std::isfinite(f.slowdown_max)) f.slowdown_max = slowdown_bound;
  f.slowdown_max = std::clamp(f.slowdown_max, 0.0, slowdown_bound);
  JsonObject detail;
  if (!outcome.error)
    detail.add("jobs", f.jobs)
        .add("stalled", f.stalled)
        .add("slowdown", f.slowdown_max, decimals(4));
  say_outcome(t, outcome, "forecast", detail);
  if (!outcome.error) t.forecast = f;
  if (t.stage == Stage::proposed) return tell_proposal(t);
  if (outcome.error && problem(t).forecast == Forecasting::required) {
    block(t, {"forecast",
              fmt::format("the impact on jobs cannot be forecast: {}", outcome.error->text())});
    return;
  }
  if (t.forecast)
    if (const Verdict no = guard_forecast(r_.policy_.guards, *t.forecast)) block(t, *no);
}

// Probers name a part by what flows met on their way, and ways change: where no device says
// anything, the part itself is asked before it is taken out of service.
bool Driver::must_check_first(const Ticket& t) const {
  return problem(t).checks_first && t.approved_by.empty() && !t.no_means &&
         std::ranges::all_of(t.cases, [](const Followed& c) { return !c.is_open || c.is_probed; });
}

void Driver::exonerate(Ticket& t) {
  const Timing& timing = r_.policy_.timing;
  std::int64_t wait = timing.recheck_ns;
  for (std::uint32_t i = 0; i < t.exonerations && wait < timing.recheck_max_ns; ++i) wait *= 2;
  ++t.exonerations;
  const Timestamp until = in(std::min(wait, timing.recheck_max_ns));
  block(t, {"test traffic",
            fmt::format("{} of {} test packets lost over {}: it is healthy, although probes "
                        "reported loss",
                        t.verify.lost, t.verify.sent, name(t)),
            until});
}

bool Driver::forecasting(Ticket& t) {
  if (lost_its_case(t)) return true;
  if (t.pending) {
    if (!is_lost(*t.pending)) return false;
    const Outcome lost{.order = t.pending->id,
                       .error = Error{Errc::io, {}, "no result received", {}, {}}};
    const OrderKind kind = t.pending->kind;
    t.pending.reset();
    kind == OrderKind::check ? checked(t, lost) : forecast_known(t, lost);
    return t.stage != Stage::forecasting;
  }
  if (t.is_held) return false;
  if (t.snapshot && !is_due({t.seen.ns + r_.policy_.timing.snapshot_ns})) return false;
  if (must_check_first(t)) {
    const bool is_clean = passes(t, t.verify);
    if (is_clean && t.verify.sent >= packets_needed(t)) {
      exonerate(t);
      return true;
    }
    if (is_clean && t.checks_failed < r_.policy_.retries.checks) {
      issue(t, OrderKind::check);
      return false;
    }
  }
  // Much may have happened since the capacity was reserved.
  if (const Verdict no = first_refusal(r_.situation(&t), t.part)) {
    block(t, *no);
    return true;
  }
  r_.machine_.drains.push_back({now(), t.part});
  r_.machine_dirty_ = true;
  begin(t, port::ActionKind::drain, Stage::draining,
        t.approved_by.empty() ? "by policy" : fmt::format("approved by {}", t.approved_by));
  return true;
}

}  // namespace weft::operate::repair
