// Actions, which nobody believes before the network shows their effect.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/plural.hpp"
#include "operate/repair/driver.hpp"

namespace weft::operate::repair {
namespace {

using port::ActionKind;
using port::Service;

constexpr std::int64_t look_ns_max = 5 * ns_per_s;

}  // namespace

Verdict Driver::hindrance(const Ticket& t, ActionKind kind, const Situation& s) {
  if (t.is_held) return Refusal{"hold", "an operator stopped the repair"};
  const bool is_drain = kind == ActionKind::drain;
  if (is_drain || !s.policy->undrain_when_killed)
    if (auto no = guard_kill_switch(s)) return no;
  if (is_drain || !s.policy->undrain_when_frozen)
    if (auto no = guard_freeze(s)) return no;
  return std::nullopt;
}

// What speaks against going on with a drain that has begun: its part is reserved, so that neither
// rate nor blast radius changed by it.
Verdict Driver::objection(const Ticket& t) const {
  const Situation s = r_.situation(&t);
  if (auto no = hindrance(t, ActionKind::drain, s)) return no;
  if (auto no = guard_isolation(s, t.part)) return no;
  return guard_capacity(s, t.part);
}

void Driver::begin(Ticket& t, ActionKind kind, Stage stage, std::string why) {
  WEFT_CHECK(t.has_part() && t.is_reserved);
  WEFT_CHECK(kind == ActionKind::drain ? stage == Stage::draining : stage != Stage::draining);
  t.deed = ActionAttempt{
      .kind = kind, .id = fmt::format("weft-{}-{}", t.serial, ++t.orders), .since = now()};
  move(t, stage, std::move(why));
}

void Driver::undo(Ticket& t, Stage after, std::string why) {
  t.after_undo = after;
  begin(t, ActionKind::undrain, Stage::undoing, std::move(why));
}

void Driver::issue_act(Ticket& t) {
  WEFT_CHECK(t.deed && !t.pending && t.deed->phase == ActionAttempt::Phase::ask);
  ActionAttempt& d = *t.deed;
  ++d.tries;
  d.phase = ActionAttempt::Phase::asked;
  d.since = now();
  t.pending = Pending{fmt::format("{}.{}", t.serial, ++t.orders), OrderKind::act, now()};
  r_.touch(t);
  Order out = order(t, OrderKind::act, t.pending->id);
  out.action = {d.id, d.kind, out.entity, out.case_id};
  r_.say("weft", &t, "order",
         JsonObject()
             .add("order", out.id)
             .add("what", d.kind)
             .add("entity", out.entity)
             .add("action", d.id)
             .add("try", d.tries));
  r_.orders_.push_back(std::move(out));
}

// The next order of an action, when it is time.
bool Driver::work(Ticket& t) {
  WEFT_CHECK(t.deed.has_value());
  ActionAttempt& d = *t.deed;
  if (t.pending) {
    if (!is_lost(*t.pending)) return false;
    r_.say("weft", &t, "lost", JsonObject().add("order", t.pending->id));
    t.service = Service::unknown;
    if (t.pending->kind == OrderKind::act) {
      d.phase = ActionAttempt::Phase::doubt;
      d.since = now();
    }
    t.pending.reset();
    t.look_at = now();
    r_.touch(t);
    if (now().ns - d.since.ns >= r_.policy_.timing.confirm_ns) {
      try_again(t, "the state of the network could not be read");
      return true;
    }
  }
  if (d.phase == ActionAttempt::Phase::ask) return ask(t);
  if (is_due(t.look_at)) issue(t, OrderKind::look);
  return false;
}

// What was allowed when the action was decided on may not be any more.
bool Driver::ask(Ticket& t) {
  const ActionKind kind = t.deed->kind;
  if (const Verdict no = hindrance(t, kind, r_.situation(&t))) {
    if (t.reason == no->why) return false;
    t.reason = no->why;
    r_.touch(t);
    r_.say("weft", &t, "refused", JsonObject().add("guard", no->guard).add("why", no->why));
    return false;
  }
  const Verdict no = kind == ActionKind::drain ? objection(t) : std::nullopt;
  if (!no) {
    issue_act(t);
    return false;
  }
  // What was tried may still have its effect, whatever was seen so far.
  if (t.deed->tries > 0) {
    undo(t, Stage::blocked, no->why);
  } else {
    t.deed.reset();
    forget_drain(t);
    block(t, *no);
  }
  return true;
}

// A drain under way may lose its reason; what was ordered is first waited for.
bool Driver::draining(Ticket& t) {
  const bool is_ordered = t.pending && t.pending->kind == OrderKind::act;
  if ((!t.is_rejected && !t.is_orphan()) || is_ordered) return work(t);
  const std::string why = t.is_rejected ? "rejected" : "the cause is elsewhere";
  if (t.deed->tries == 0) {
    t.deed.reset();
    forget_drain(t);
    close(t);
  } else {
    undo(t, Stage::rolled_back, why);
  }
  return true;
}

// The last one had no effect, and is none that counts.
void Driver::forget_drain(const Ticket& t) {
  auto& drains = r_.machine_.drains;
  const auto last = std::ranges::find(drains.rbegin(), drains.rend(), t.part, &PastDrain::part);
  if (last == drains.rend()) return;
  drains.erase(std::next(last).base());
  r_.machine_dirty_ = true;
}

void Driver::act_done(Ticket& t, const Outcome& outcome) {
  WEFT_CHECK(t.deed && t.deed->phase == ActionAttempt::Phase::asked && t.deed->tries > 0);
  ActionAttempt& d = *t.deed;
  say_outcome(t, outcome, port::to_text(d.kind), JsonObject().add("action", d.id));
  d.since = t.look_at = now();
  d.phase = outcome.error ? ActionAttempt::Phase::doubt : ActionAttempt::Phase::confirm;
  const bool had_no_effect = outcome.error && outcome.error->code != Errc::io;
  if (!had_no_effect) return;
  if (hindrance(t, d.kind, r_.situation(&t))) {  // stopped on the way
    --d.tries;
    d.phase = ActionAttempt::Phase::ask;
    return;
  }
  if (d.kind != ActionKind::drain || d.tries > 1) return;  // the state decides
  t.deed.reset();
  forget_drain(t);
  t.is_reserved = false;
  if (outcome.error->code == Errc::infeasible)
    block(t, {"actuator", outcome.error->text()});
  else
    fail(t, Stage::triaged, fmt::format("it cannot be drained: {}", outcome.error->text()));
}

void Driver::looked(Ticket& t, const Outcome& outcome) {
  say_outcome(t, outcome, "look",
              outcome.error ? JsonObject() : JsonObject().add("service", outcome.service));
  t.service = outcome.error ? Service::unknown : outcome.service;
  if (t.stage == Stage::failed) {
    t.look_at = in(r_.policy_.timing.failed_look_ns);
    if (t.service != Service::in_service) return;
    t.is_reserved = false;
    t.reason += "; it is back in service";
    return;
  }
  WEFT_CHECK(t.deed && t.deed->phase != ActionAttempt::Phase::asked);
  ActionAttempt& d = *t.deed;
  const bool is_drain = d.kind == ActionKind::drain;
  const std::int64_t waited = now().ns - d.since.ns;
  // An undrain that nobody answered stops no drain that nobody answered: that may yet come.
  const bool is_early = t.stage == Stage::undoing && d.phase == ActionAttempt::Phase::doubt &&
                        waited < r_.policy_.timing.confirm_ns;
  const bool is_so = t.service == (is_drain ? Service::drained : Service::in_service);
  if (is_so && !is_early) return confirmed(t);
  const Service before = is_drain ? Service::in_service : Service::drained;
  // A try that nobody answered may still have its effect: the last one is waited for.
  const bool is_last = d.tries >= r_.policy_.retries.acts;
  if (d.phase == ActionAttempt::Phase::doubt && t.service == before && !is_last)
    return try_again(t, "it had no effect");
  if (waited >= r_.policy_.timing.confirm_ns)
    return try_again(
        t, fmt::format("after {} s the part is {}", waited / ns_per_s, port::to_text(t.service)));
  t.look_at = in(std::clamp(waited / 2, std::min(r_.policy_.timing.confirm_every_ns, look_ns_max),
                            look_ns_max));
}

void Driver::try_again(Ticket& t, std::string why) {
  ActionAttempt& d = *t.deed;
  if (d.tries >= r_.policy_.retries.acts) return gave_up(t, std::move(why));
  d.phase = ActionAttempt::Phase::ask;
  d.since = now();
  r_.touch(t);
}

void Driver::confirmed(Ticket& t) {
  WEFT_CHECK(t.deed && (t.deed->kind == ActionKind::drain) == (t.stage == Stage::draining));
  const ActionKind kind = t.deed->kind;
  t.deed.reset();
  if (kind == ActionKind::drain) {
    t.was_drained = true;
    if (!t.drained_at) t.drained_at = now();
    t.held_until = r_.hold_until(t.part);
    t.exonerations = 0;
    t.baseline = t.verify = {};
    t.checks_failed = t.verifications = 0;
    t.check_at = t.told_at = now();
    return move(t, Stage::drained, "the network shows it drained");
  }
  t.is_reserved = false;
  if (t.stage == Stage::returning) {
    t.returned_at = now();
    t.has_relapsed = false;
    r_.machine_.past.push_back({now(), name(t)});
    r_.machine_dirty_ = true;
    move(t, Stage::soaking, "back in service, under watch");
    tell(t, "repair_returned", fmt::format("{} is back in service, under watch", name(t)));
    return;
  }
  if (t.after_undo == Stage::blocked) {
    block(t, {"capacity", t.reason});
    return;
  }
  if (t.after_undo == Stage::failed) return fail(t, Stage::triaged, t.reason);
  if (t.has_open_case() && !t.is_rejected)
    return move(t, Stage::triaged, "it is the cause after all");
  close(t);
  tell(t, "repair_rolled_back", fmt::format("{} is back in service: {}", name(t), t.reason));
}

void Driver::gave_up(Ticket& t, std::string why) {
  const bool is_drain = t.deed->kind == ActionKind::drain;
  why = fmt::format("{} {} failed {}: {}", is_drain ? "draining" : "returning", name(t),
                    counted(t.deed->tries, "time"), why);
  t.deed.reset();
  if (!is_drain) return fail(t, t.stage, std::move(why));
  if (t.service != Service::in_service) return undo(t, Stage::failed, std::move(why));
  t.is_reserved = false;
  fail(t, Stage::triaged, std::move(why));
}

void Driver::fail(Ticket& t, Stage retry, std::string why) {
  t.deed.reset();
  t.retry = retry;
  t.look_at = in(r_.policy_.timing.failed_look_ns);
  move(t, Stage::failed, std::move(why));
  tell(t, "repair_failed", fmt::format("{} needs an operator: {}", name(t), t.reason));
}

// Looks now and then whether people helped.
bool Driver::failed(Ticket& t) {
  if (!t.is_reserved) {
    if (t.has_open_case()) return false;
    close(t);
    return true;
  }
  if (t.pending && is_lost(*t.pending)) t.pending.reset();
  if (!t.pending && is_due(t.look_at)) {
    t.look_at = in(r_.policy_.timing.failed_look_ns);
    issue(t, OrderKind::look);
  }
  return false;
}

void Driver::resume(Ticket& t) {
  t.forecast.reset();
  if (t.stage == Stage::failed && t.is_reserved)
    return begin(t, ActionKind::undrain,
                 t.retry == Stage::returning ? Stage::returning : Stage::undoing,
                 fmt::format("retried, approved by {}", t.approved_by));
  move(t, Stage::triaged, fmt::format("approved by {}", t.approved_by));
}

void Driver::give_back(Ticket& t, std::string why) {
  t.is_rejected = true;
  t.resolution = Resolution::rejected;
  r_.touch(t);
  if (t.stage == Stage::draining) return;  // what was ordered is waited for
  if (t.stage == Stage::undoing) {
    t.after_undo = Stage::rolled_back;
  } else if (is_before_act(t.stage) || !t.is_reserved) {
    close(t);
  } else {
    undo(t, Stage::rolled_back, std::move(why));
  }
}

}  // namespace weft::operate::repair
