// Test traffic over what is drained, and the way back into service.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json_line.hpp"
#include "operate/repair/driver.hpp"

namespace weft::operate::repair {
namespace {

Outcome no_result(const Pending& pending) {
  return {.order = pending.id, .error = Error{Errc::io, {}, "no result came", {}, {}}};
}

}  // namespace

void Driver::mended(Ticket& t) {
  r_.touch(t);
  t.check_at = now();
  const std::string why = fmt::format("{} says that it is repaired", t.repaired_by);
  if (!t.has_part()) return move(t, Stage::verifying, why);
  if (t.stage != Stage::failed) return;
  if (t.is_reserved) {
    t.verify = {};
    return move(t, Stage::repairing, why);
  }
  t.resolution = Resolution::repaired;
  close(t);
}

// Is there a fault to be found at all?
bool Driver::drained(Ticket& t) {
  if (t.pending) {
    if (!is_lost(*t.pending)) return false;
    const Outcome lost = no_result(*std::exchange(t.pending, std::nullopt));
    checked(t, lost);
  }
  const bool is_known = t.baseline.sent > 0 || t.no_means;
  if (!is_known && t.checks_failed < r_.policy_.retries.checks) {
    if (is_due(t.check_at)) issue(t, OrderKind::check);
    return false;
  }
  std::string found = "whether test traffic comes through is not known";
  if (t.baseline.sent > 0)
    found = fmt::format("{} of {} test packets lost", t.baseline.lost, t.baseline.sent);
  move(t, Stage::repairing, found);
  t.check_at = in(r_.policy_.timing.recheck_ns);
  const bool looks_well = t.baseline.sent > 0 && t.baseline.lost <= problem(t).lost_max;
  if (looks_well || !t.has_open_case()) t.check_at = now();
  tell(t, "repair_drained",
       fmt::format("{} is drained and waits for repair ({}): {}", name(t), to_text(t.kind), found));
  return true;
}

// Some faults show in what the part says of itself long before they lose packets, and test traffic
// alone would let them pass: they have to be silent until then.
Timestamp Driver::quiet_until(const Repair& repair, const Ticket& t) {
  const std::int64_t quiet = repair.policy_.problem(t.kind).quiet_ns;
  return quiet > 0 && t.has_open_case() ? Timestamp{t.told_at.ns + quiet} : Timestamp{};
}

// When to verify what nobody says is repaired; a person's word is put to the test at once.
Timestamp Driver::verify_at(const Repair& repair, const Ticket& t) {
  return t.repaired_by.empty() ? std::max(t.check_at, quiet_until(repair, t)) : t.check_at;
}

bool Driver::repairing(Ticket& t) {
  if (t.is_offender) return false;
  const bool must_wait =
      t.no_means ? t.repaired_by.empty() && !t.is_orphan() : !is_due(verify_at(r_, t));
  if (must_wait) return false;
  t.verify = {};
  move(t, Stage::verifying,
       t.repaired_by.empty() ? std::string("is it well again?")
                             : fmt::format("{} says that it is repaired", t.repaired_by));
  return true;
}

bool Driver::verifying(Ticket& t) {
  if (!t.has_part()) {  // only its case can tell
    if (t.has_open_case()) return false;
    t.resolution = Resolution::repaired;
    close(t);
    return true;
  }
  if (t.pending) {
    if (!is_lost(*t.pending)) return false;
    const Outcome lost = no_result(*std::exchange(t.pending, std::nullopt));
    checked(t, lost);
    return true;
  }
  if (!is_due(quiet_until(r_, t))) {
    if (t.told_at <= t.since) return false;
    refute(t, "it is still told of");
    return true;
  }
  if (t.no_means) return clean(t);
  if (t.verify.lost <= problem(t).lost_max && t.verify.sent < problem(t).packets) {
    issue(t, OrderKind::check);
    return false;
  }
  return judge_round(t);
}

void Driver::put_off_check(Ticket& t) {
  const Timing& timing = r_.policy_.timing;
  std::int64_t wait = timing.recheck_ns;
  for (std::uint32_t i = 1; i < t.verifications + t.checks_failed && wait < timing.recheck_max_ns;
       ++i)
    wait *= 2;
  t.check_at = in(std::min(wait, timing.recheck_max_ns));
}

bool Driver::judge_round(Ticket& t) {
  if (t.verify.lost <= problem(t).lost_max) return clean(t);
  refute(t, fmt::format("{} of {} test packets lost", t.verify.lost, t.verify.sent));
  return true;
}

// It is not well yet.
void Driver::refute(Ticket& t, std::string found) {
  ++t.verifications;
  put_off_check(t);
  if (!t.repaired_by.empty())
    tell(t, "repair_verify_failed", fmt::format("{} is not well yet: {}", name(t), found));
  t.repaired_by.clear();
  move(t, Stage::repairing, std::move(found));
}

bool Driver::clean(Ticket& t) {
  const auto repairs = static_cast<std::uint32_t>(std::ranges::count_if(
      r_.machine_.past, [&](const Repair::Past& p) { return p.part == name(t); }));
  const bool is_offender =
      repairs >= r_.policy_.guards.offender_repairs || t.rollbacks > r_.policy_.retries.rollbacks;
  if (is_offender && t.resolution != Resolution::replaced) {
    t.is_offender = true;
    move(t, Stage::repairing,
         fmt::format("repaired {} times already, rolled back {} times: it is to be replaced",
                     repairs, t.rollbacks));
    tell(t, "repair_replace", fmt::format("{}: {}", name(t), t.reason));
    return true;
  }
  const bool was_well = t.baseline.sent > 0 && t.baseline.lost <= problem(t).lost_max;
  if (t.resolution == Resolution::none && t.is_orphan())
    t.resolution = Resolution::moved;
  else if (t.resolution == Resolution::none)
    t.resolution = was_well && t.verifications == 0 && t.repaired_by.empty()
                       ? Resolution::no_fault_found
                       : Resolution::repaired;
  begin(t, port::ActionKind::undrain, Stage::returning,
        t.no_means ? std::string("test traffic cannot be sent over it")
                   : fmt::format("{} of {} test packets lost", t.verify.lost, t.verify.sent));
  return true;
}

bool Driver::soaking(Ticket& t) {
  if (t.has_relapsed && !t.is_held) {
    ++t.rollbacks;
    t.has_relapsed = false;
    t.resolution = Resolution::none;
    t.repaired_by.clear();
    r_.say("weft", &t, "rollback", fmt::format("\"rollbacks\":{}", t.rollbacks));
    move(t, Stage::triaged, "new evidence since it was returned");
    tell(t, "repair_rollback", fmt::format("{} fails again and is to be drained", name(t)));
    return true;
  }
  if (t.has_relapsed || !is_due({t.since.ns + problem(t).soak_ns})) return false;
  move(t, Stage::returned, "no new evidence");
  tell(t, "repair_closed", fmt::format("{} is well: {}", name(t), to_text(t.resolution)));
  return true;
}

void Driver::checked(Ticket& t, const Outcome& outcome) {
  const port::Check& c = outcome.check;
  say_outcome(t, outcome, "check",
              outcome.error ? "" : fmt::format(",\"sent\":{},\"lost\":{}", c.sent, c.lost));
  r_.touch(t);
  if (outcome.error && outcome.error->code == Errc::unsupported) {
    t.no_means = true;
    if (t.stage == Stage::verifying && t.repaired_by.empty())
      move(t, Stage::repairing, "test traffic cannot be sent over it: a person has to say");
    return;
  }
  if (outcome.error || c.sent == 0) {
    ++t.checks_failed;
    put_off_check(t);
    if (t.stage == Stage::verifying) move(t, Stage::repairing, "test traffic could not be sent");
    return;
  }
  if (t.stage == Stage::drained) {
    t.baseline = c;
    t.checks_failed = 0;
    return;
  }
  t.checks_failed = 0;
  t.verify.sent += c.sent;
  t.verify.lost += c.lost;
}

}  // namespace weft::operate::repair
