// Test traffic over what is drained, and the way back into service.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "operate/repair/driver.hpp"

namespace weft::operate::repair {
namespace {

std::string words_of(const port::Check& check) {
  std::string text = fmt::format("{} of {} test packets lost", check.lost, check.sent);
  if (check.rate_share < 1)
    text += fmt::format(", at {:.3g} % of its rate", 100 * check.rate_share);
  return text;
}

void add(port::Check& sum, const port::Check& more) {
  sum.sent += more.sent;
  sum.lost += more.lost;
  sum.rate_share = std::min(sum.rate_share, more.rate_share);
}

Outcome no_result(const Pending& pending) {
  return {.order = pending.id, .error = Error{Errc::io, {}, "no result received", {}, {}}};
}

}  // namespace

void Driver::mended(Ticket& t) {
  WEFT_CHECK(!t.deed);
  r_.touch(t);
  t.check_at = now();
  const std::string why = fmt::format("{} reports it as repaired", t.repaired_by);
  if (!t.has_part()) return move(t, Stage::verifying, why);
  if (t.stage != Stage::failed) return;
  if (t.is_reserved) {
    t.verify = {};
    return move(t, Stage::repairing, why);
  }
  t.resolution = Resolution::repaired;
  close(t);
}

// With its vendor nothing is sent over it. What is no longer its case, or needs it no more, is not
// waited for.
bool Driver::away(Ticket& t) {
  WEFT_CHECK(t.rma.has_value());
  if (t.has_part() ? !t.is_orphan() : t.has_open_case()) return false;
  back_from_vendor(t, "it is not waited for any more");
  return true;
}

void Driver::send_away(Ticket& t, std::string why) {
  t.repaired_by.clear();
  move(t, Stage::rma, std::move(why));
}

void Driver::back_from_vendor(Ticket& t, std::string why) {
  WEFT_CHECK(t.stage == Stage::rma && t.rma);
  move(t, t.rma->from, std::move(why));
  t.check_at = t.is_orphan() ? now() : in(r_.policy_.timing.recheck_ns);
}

// No more packets lost, and no slower, than the policy allows.
bool Driver::passes(const Ticket& t, const port::Check& check) const {
  const Problem& allowed = problem(t);
  return check.lost <= allowed.lost_max && check.rate_share >= allowed.rate_min;
}

// How many packets have to get through before a part counts as healthy. One that lost k of n lets
// 7 n / k pass by chance once in 1,000 times (e^-7), the policy's number perhaps much more often.
std::uint64_t Driver::packets_needed(const Ticket& t) const {
  constexpr std::uint64_t expected_losses = 7;
  const std::uint64_t least = problem(t).packets;
  if (t.loss.lost == 0) return least;
  return std::max(least, expected_losses * (t.loss.sent / t.loss.lost + 1));
}

// Losses are known at once, that there are none only after as many packets as a repair is verified
// with.
bool Driver::baseline_known(Ticket& t) {
  const bool is_enough = !passes(t, t.baseline) || t.baseline.sent >= packets_needed(t);
  return is_enough || t.no_means || t.checks_failed >= r_.policy_.retries.checks;
}

// Is there a fault to be found at all?
bool Driver::drained(Ticket& t) {
  if (t.pending) {
    if (!is_lost(*t.pending)) return false;
    const Outcome lost = no_result(*std::exchange(t.pending, std::nullopt));
    checked(t, lost);
  }
  if (!baseline_known(t)) {
    if (is_due(t.check_at)) issue(t, OrderKind::check);
    return false;
  }
  std::string found = "it is not known whether test traffic gets through";
  if (t.baseline.sent > 0) found = words_of(t.baseline);
  const bool is_well = t.baseline.sent >= packets_needed(t) && passes(t, t.baseline);
  if (is_well && !t.held_until && is_due(quiet_until(r_, t))) {  // nothing is to be mended
    t.verify = t.baseline;
    return clean(t);
  }
  if (t.held_until)
    found += fmt::format("; it failed again and is kept out of service until {}",
                         to_text(*t.held_until));
  move(t, Stage::repairing, found);
  t.check_at = in(r_.policy_.timing.recheck_ns);
  const bool looks_well = t.baseline.sent > 0 && passes(t, t.baseline);
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
  if (!t.repaired_by.empty()) return t.check_at;
  return std::max({t.check_at, quiet_until(repair, t), t.held_until.value_or(Timestamp{})});
}

bool Driver::repairing(Ticket& t) {
  if (t.is_offender) return false;
  const bool must_wait =
      t.no_means ? t.repaired_by.empty() && !t.is_orphan() : !is_due(verify_at(r_, t));
  if (must_wait) return false;
  t.verify = {};
  move(t, Stage::verifying,
       t.repaired_by.empty() ? std::string("checking whether it is healthy")
                             : fmt::format("{} reports it as repaired", t.repaired_by));
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
    refute(t, "it is still being reported");
    return true;
  }
  if (t.no_means) return clean(t);
  if (passes(t, t.verify) && t.verify.sent < packets_needed(t)) {
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
  WEFT_CHECK(t.has_part() && !t.pending);
  if (passes(t, t.verify)) return clean(t);
  refute(t, words_of(t.verify));
  return true;
}

// It is not well yet.
void Driver::refute(Ticket& t, std::string found) {
  ++t.verifications;
  put_off_check(t);
  if (!t.repaired_by.empty())
    tell(t, "repair_verify_failed", fmt::format("{} is not healthy yet: {}", name(t), found));
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
         fmt::format("already repaired {} times, rolled back {} times: it must be replaced",
                     repairs, t.rollbacks));
    tell(t, "repair_replace", fmt::format("{}: {}", name(t), t.reason));
    return true;
  }
  const bool was_well = t.baseline.sent > 0 && passes(t, t.baseline);
  if (t.resolution == Resolution::none && t.is_orphan())
    t.resolution = Resolution::moved;
  else if (t.resolution == Resolution::none)
    t.resolution = was_well && t.verifications == 0 && t.repaired_by.empty()
                       ? Resolution::no_fault_found
                       : Resolution::repaired;
  begin(t, port::ActionKind::undrain, Stage::returning,
        t.no_means ? std::string("test traffic cannot be sent over it") : words_of(t.verify));
  return true;
}

bool Driver::soaking(Ticket& t) {
  WEFT_CHECK(t.returned_at && !t.is_reserved);
  if (t.has_relapsed && !t.is_held) {
    ++t.rollbacks;
    t.has_relapsed = false;
    t.resolution = Resolution::none;
    t.repaired_by.clear();
    r_.say("weft", &t, "rollback", JsonObject().add("rollbacks", t.rollbacks));
    move(t, Stage::triaged, "new evidence since it was returned");
    tell(t, "repair_rollback", fmt::format("{} fails again and must be drained", name(t)));
    return true;
  }
  if (t.has_relapsed || !is_due({t.since.ns + problem(t).soak_ns})) return false;
  move(t, Stage::returned, "no new evidence");
  tell(t, "repair_closed", fmt::format("{} is healthy: {}", name(t), to_text(t.resolution)));
  return true;
}

void Driver::checked(Ticket& t, const Outcome& outcome) {
  const port::Check& c = outcome.check;
  JsonObject found;
  if (!outcome.error) found.add("sent", c.sent).add("lost", c.lost);
  if (!outcome.error && c.rate_share < 1)
    found.add("rate_share", fmt::format("{:.4g}", c.rate_share));
  say_outcome(t, outcome, "check", found);
  r_.touch(t);
  if (outcome.error && outcome.error->code == Errc::unsupported) {
    t.no_means = true;
    if (t.stage == Stage::verifying && t.repaired_by.empty())
      move(t, Stage::repairing, "test traffic cannot be sent over it: an operator must decide");
    return;
  }
  if (outcome.error || c.sent == 0) {
    ++t.checks_failed;
    put_off_check(t);
    if (t.stage == Stage::verifying) move(t, Stage::repairing, "test traffic could not be sent");
    return;
  }
  if (c.lost > problem(t).lost_max) {
    t.loss.sent += c.sent;
    t.loss.lost += c.lost;
  }
  if (t.stage == Stage::drained) {
    add(t.baseline, c);
    t.checks_failed = 0;
    return;
  }
  t.checks_failed = 0;
  add(t.verify, c);
}

}  // namespace weft::operate::repair
