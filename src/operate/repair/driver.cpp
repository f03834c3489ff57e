#include "operate/repair/driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"

namespace weft::operate::repair {
namespace {

constexpr int moves_max = 32;  // in one step; the longest chain is half as long
constexpr std::uint32_t snapshot_tries_max = 2;

JsonObject error_of(const Outcome& outcome) {
  return outcome.error ? JsonObject().add("error", outcome.error->text()) : JsonObject();
}

}  // namespace

std::string Driver::name(const Ticket& t) const {
  return t.key().kind == model::EntityKind::none ? std::string("unknown entity")
                                                 : model::name(r_.fabric_, t.key());
}

void Driver::drive(Ticket& t) {
  WEFT_CHECK(!is_over(t.stage) || t.ended);
  keep_snapshot(t);
  for (int i = 0; i < moves_max && !is_over(t.stage); ++i)
    if (!advance(t)) break;
  tell_cases(t);
  tell_overdue(t);
  send_messages(t);
  if (is_over(t.stage) && t.messages.empty()) r_.active_.erase(t.id);
}

bool Driver::advance(Ticket& t) {
  switch (t.stage) {
    case Stage::detected:
    case Stage::watched:
      return detected(t);
    case Stage::triaged:
      return triaged(t);
    case Stage::proposed:
      return proposed(t);
    case Stage::blocked:
      return blocked(t);
    case Stage::forecasting:
      return forecasting(t);
    case Stage::draining:
      return draining(t);
    case Stage::returning:
    case Stage::undoing:
      return work(t);
    case Stage::drained:
      return drained(t);
    case Stage::repairing:
      return repairing(t);
    case Stage::verifying:
      return verifying(t);
    case Stage::soaking:
      return soaking(t);
    case Stage::failed:
      return failed(t);
    case Stage::rma:
      return away(t);
    case Stage::returned:
    case Stage::rolled_back:
    case Stage::closed:
      return false;
  }
  return false;
}

void Driver::move(Ticket& t, Stage to, std::string why) {
  WEFT_CHECK(!is_over(t.stage));
  WEFT_CHECK(does_act(to) == t.deed.has_value());
  WEFT_CHECK(to == Stage::failed || t.is_reserved == needs_reserve(t, to));
  // A clock that was set back while nobody ran takes nothing back.
  if (const auto part = ttr_part(t, t.stage, to))
    t.spent_ns[static_cast<std::size_t>(*part)] += std::max<std::int64_t>(0, now().ns - t.since.ns);
  const Stage from = std::exchange(t.stage, to);
  t.since = now();
  t.reason = std::move(why);
  t.retry_at.reset();
  t.pending.reset();
  if (is_over(to)) {
    t.ended = now();
    r_.ended_.emplace(now(), t.id);
  }
  r_.touch(t);
  r_.say("weft", &t, "stage",
         to_object(StageChange{.from = from,
                               .to = to,
                               .why = t.reason,
                               .subject = r_.subject_of(t),
                               .resolution = t.resolution,
                               .rollbacks = t.rollbacks,
                               .is_offender = t.is_offender}));
}

Order Driver::order(const Ticket& t, OrderKind kind, std::string id) const {
  Order out{.id = std::move(id), .kind = kind, .ticket = t.id, .case_id = t.lead().id};
  if (kind != OrderKind::notify) out.entity = name(t);
  return out;
}

void Driver::issue(Ticket& t, OrderKind kind) {
  WEFT_CHECK(!t.pending && !is_over(t.stage));
  t.pending = Pending{fmt::format("{}.{}", t.serial, ++t.orders), kind, now()};
  r_.touch(t);
  Order out = order(t, kind, t.pending->id);
  if (kind == OrderKind::check) {
    const std::uint64_t sent = t.stage == Stage::drained ? t.baseline.sent : t.verify.sent;
    const std::uint64_t needed = packets_needed(t);
    out.packets = std::min(problem(t).packets, needed - std::min(needed, sent));
  }
  if (kind == OrderKind::forecast) {
    const Situation s = r_.situation(&t);
    for (const auto& parts : {s.held, s.suspected})
      for (const Entity& e : parts) out.out.push_back(model::name(r_.fabric_, e));
    std::ranges::sort(out.out);
    const auto twice = std::ranges::unique(out.out);
    out.out.erase(twice.begin(), twice.end());
  }
  r_.say("weft", &t, "order",
         JsonObject().add("order", out.id).add("what", kind).add("entity", out.entity));
  r_.orders_.push_back(std::move(out));
}

void Driver::tell_of(Ticket& t, std::string case_id, std::string event, std::string summary) {
  t.messages.push_back({.id = fmt::format("{}.{}", t.serial, ++t.orders),
                        .case_id = std::move(case_id),
                        .event = std::move(event),
                        .summary = std::move(summary),
                        .due = now()});
  r_.touch(t);
}

// People hear of a case once it is believed, or final: not of what comes and goes within seconds,
// and not of what a maintenance window explains. Of what they heard they hear the end.
void Driver::tell_cases(Ticket& t) {
  for (Followed& c : t.cases) {
    if (!c.is_open && !c.told.empty()) {
      tell_of(t, c.id, "case_closed",
              c.is_moved ? fmt::format("{}: no longer a case, or merged into another one", c.told)
                         : fmt::format("{}: over", c.told));
      c.told.clear();
    }
    if (!c.is_open || c.state == model::CaseState::maintenance) continue;
    const bool is_early = c.state == model::CaseState::provisional &&
                          (t.stage == Stage::detected || !r_.is_believable(c));
    std::string cause =
        fmt::format("{} at {}", to_text(c.kind),
                    c.root.kind == model::EntityKind::none ? std::string("unknown entity")
                                                           : model::name(r_.fabric_, c.root));
    if (c.told == cause || (c.told.empty() && is_early)) continue;
    tell_of(t, c.id, c.told.empty() ? "case_opened" : "case_updated", cause);
    c.told = std::move(cause);
  }
}

std::optional<Driver::Objective> Driver::objective(const Repair& r, const Ticket& t) {
  const auto part = ttr_part(t, t.stage);
  const bool is_told =
      std::ranges::any_of(t.cases, [](const Followed& c) { return !c.told.empty(); });
  if (!part || !is_told) return std::nullopt;
  const auto index = static_cast<std::size_t>(*part);
  const std::int64_t slo_ns = r.policy_.problem(t.kind).slo_ns[index];
  if ((t.overdue >> index & 1) != 0 || slo_ns == 0) return std::nullopt;
  return Objective{*part, {t.since.ns + slo_ns - t.spent_ns[index]}};
}

void Driver::tell_overdue(Ticket& t) {
  const auto missed = objective(r_, t);
  if (!missed || !is_due(missed->end)) return;
  const auto index = static_cast<std::size_t>(missed->part);
  t.overdue |= 1u << index;
  const auto told =
      std::ranges::find_if(t.cases, [](const Followed& c) { return !c.told.empty(); });
  tell_of(
      t, told->id, "repair_overdue",
      fmt::format("{}: {} takes longer than its objective of {}", name(t), to_text(missed->part),
                  human_seconds(static_cast<double>(problem(t).slo_ns[index]) / ns_per_s)));
}

// The case, and the repair that it is part of.
std::string Driver::notice_body(const Ticket& t, const std::string& case_id) const {
  const auto at = std::ranges::find(t.cases, case_id, &Followed::id);
  const Followed& c = at == t.cases.end() ? t.lead() : *at;
  return JsonObject()
      .add("case", c.id)
      .add("cause", JsonObject().add("kind", c.kind).add("entity", r_.name_or_none(c.root)))
      .add("open", c.is_open)
      .add("state", c.state)
      .add("confidence", c.confidence, decimals(3))
      .add("opened", c.opened)
      .add("repair", JsonText{to_json(r_.fabric_, t)})
      .text();
}

void Driver::send_messages(Ticket& t) {
  std::vector<std::string> ready;
  for (const Message& m : t.messages)
    if (is_due(m.due)) ready.push_back(m.id);
  for (const std::string& id : ready) {
    const auto m = std::ranges::find(t.messages, id, &Message::id);
    WEFT_CHECK(m != t.messages.end());
    if (m->is_pending) {  // no result came
      message_done(t, *m,
                   {.order = id, .error = Error{Errc::io, {}, "no result received", {}, {}}});
      continue;
    }
    m->is_pending = true;
    ++m->tries;
    m->due = in(r_.policy_.timing.order_ns);
    r_.touch(t);
    Order out = order(t, OrderKind::notify, id);
    r_.say("weft", &t, "order",
           JsonObject().add("order", id).add("what", "notify").add("event", m->event));
    out.notice = {id, now(), m->event, m->case_id, m->summary, notice_body(t, m->case_id)};
    r_.orders_.push_back(std::move(out));
  }
}

void Driver::message_done(Ticket& t, Message& m, const Outcome& outcome) {
  r_.touch(t);
  say_outcome(t, outcome, "notify", JsonObject().add("event", m.event));
  if (outcome.error && m.tries < r_.policy_.retries.notices) {
    m.is_pending = false;
    m.due = in(r_.policy_.timing.notice_ns << std::min(m.tries - 1, 10u));
    return;
  }
  if (outcome.error)
    r_.say("weft", &t, "unsent", JsonObject().add("event", m.event).add("tries", m.tries));
  std::erase_if(t.messages, [id = m.id](const Message& other) { return other.id == id; });
}

// The first order of a ticket: evidence goes away.
void Driver::keep_snapshot(Ticket& t) {
  if (t.snapshot && is_lost(*t.snapshot))
    return snapshot_done(
        t, {.order = t.snapshot->id, .error = Error{Errc::io, {}, "no result received", {}, {}}});
  const bool is_wanted = t.snapshot_tries == 0 && t.has_open_case() &&
                         t.root.kind != model::EntityKind::none &&
                         t.lead().state != model::CaseState::maintenance;
  if (!is_wanted || is_over(t.stage)) return;
  ++t.snapshot_tries;
  t.snapshot = Pending{fmt::format("{}.snapshot", t.serial), OrderKind::snapshot, now()};
  r_.touch(t);
  Order out = order(t, OrderKind::snapshot, t.snapshot->id);
  out.entity = model::name(r_.fabric_, t.root);
  r_.say("weft", &t, "order",
         JsonObject().add("order", out.id).add("what", "snapshot").add("entity", out.entity));
  r_.orders_.push_back(std::move(out));
}

void Driver::snapshot_done(Ticket& t, const Outcome& outcome) {
  WEFT_CHECK(t.snapshot.has_value());
  say_outcome(t, outcome, "snapshot", {});
  r_.touch(t);
  if (!outcome.error || t.snapshot_tries >= snapshot_tries_max) return t.snapshot.reset();
  ++t.snapshot_tries;
  t.snapshot->since = now();
  Order again = order(t, OrderKind::snapshot, t.snapshot->id);
  again.entity = model::name(r_.fabric_, t.root);
  r_.orders_.push_back(std::move(again));
}

void Driver::say_outcome(const Ticket& t, const Outcome& outcome, std::string_view what,
                         const JsonObject& detail) {
  r_.say("weft", &t, "outcome",
         JsonObject()
             .add("order", outcome.order)
             .add("what", what)
             .add_all(detail)
             .add_all(error_of(outcome))
             .add_if("note", outcome.note));
}

void Driver::take(const Outcome& outcome) {
  for (const std::string& id : r_.active_) {
    Ticket& t = r_.tickets_.find(id)->second;
    if (t.snapshot && t.snapshot->id == outcome.order) return snapshot_done(t, outcome);
    const auto m = std::ranges::find(t.messages, outcome.order, &Message::id);
    if (m != t.messages.end()) return message_done(t, *m, outcome);
    if (!t.pending || t.pending->id != outcome.order) continue;
    const OrderKind kind = t.pending->kind;
    t.pending.reset();
    r_.touch(t);
    if (kind == OrderKind::act) return act_done(t, outcome);
    if (kind == OrderKind::look) return looked(t, outcome);
    if (kind == OrderKind::check) return checked(t, outcome);
    return forecast_known(t, outcome);
  }
  r_.say("weft", nullptr, "late",
         JsonObject().add("order", outcome.order).add_all(error_of(outcome)));
}

// Acts are looked at; all else is asked for again, under the same id.
void Driver::take_up(Ticket& t) {
  for (Message& m : t.messages)
    if (m.is_pending) {
      m.is_pending = false;
      m.due = now();
      --m.tries;
    }
  if (t.snapshot) {
    t.snapshot->since = now();
    Order out = order(t, OrderKind::snapshot, t.snapshot->id);
    out.entity = model::name(r_.fabric_, t.root);
    r_.orders_.push_back(std::move(out));
  }
  if (!t.pending) return;
  if (t.pending->kind == OrderKind::act) {
    WEFT_CHECK(t.deed.has_value());
    t.deed->phase = ActionAttempt::Phase::doubt;
    t.deed->since = t.look_at = now();
    t.pending.reset();
    r_.say("weft", &t, "in doubt", JsonObject().add("action", t.deed->id));
  } else {
    const auto [id, kind, since] = *std::exchange(t.pending, std::nullopt);
    issue(t, kind);
    // The same order, not another one.
    --t.orders;
    t.pending->id = r_.orders_.back().id = id;
  }
  r_.touch(t);
}

std::optional<Timestamp> Driver::due(const Repair& r, const Ticket& t) {
  const Timing& timing = r.policy_.timing;
  std::optional<Timestamp> out;
  const auto wake = [&](Timestamp at) {
    if (!out || at < *out) out = at;
  };
  for (const Message& m : t.messages) wake(m.due);
  if (t.snapshot) wake({t.snapshot->since.ns + timing.order_ns});
  if (is_over(t.stage)) return out;
  if (const auto running = objective(r, t)) wake(running->end);
  if (t.retry_at && !t.is_held) wake(*t.retry_at);
  if (t.pending) wake({t.pending->since.ns + timing.order_ns});
  if (t.stage == Stage::forecasting && !t.pending && !t.is_held && t.snapshot)
    wake({t.seen.ns + timing.snapshot_ns});
  if (t.deed && !t.pending && t.deed->phase == ActionAttempt::Phase::ask)
    for (const Freeze& f : r.situation(nullptr).freezes)
      if (f.until > r.now_) wake(f.until);
  const Timestamp believed{t.seen.ns + timing.early_ns};
  if (t.stage == Stage::detected && believed > r.now_) wake(believed);
  const bool looks = (t.deed && t.deed->phase != ActionAttempt::Phase::ask) ||
                     (t.stage == Stage::failed && t.is_reserved);
  if (looks && !t.pending) wake(t.look_at);
  const bool checks =
      t.stage == Stage::drained || (t.stage == Stage::repairing && !t.is_offender && !t.no_means);
  if (checks && !t.pending) wake(t.stage == Stage::drained ? t.check_at : verify_at(r, t));
  const bool listens = t.stage == Stage::verifying && t.has_part() && !t.pending;
  if (listens && quiet_until(r, t) > r.now_) wake(quiet_until(r, t));
  if (t.stage == Stage::soaking && !t.has_relapsed)
    wake({t.since.ns + r.policy_.problem(t.kind).soak_ns});
  if (out && *out < r.now_) out = r.now_;
  return out;
}

}  // namespace weft::operate::repair
