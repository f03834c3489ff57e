#include "operate/triage/pending.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace weft::operate::triage {

using model::EventKind;

std::optional<std::int64_t> Pending::count(const Evidence& e, const Rules& rules) {
  const Meaning meaning = rules.event(e.kind).meaning;
  tally.add(e, meaning);
  first = std::min(first, e.begin);
  last = std::max(last, e.at);
  if (meaning == Meaning::clear) {
    is_clear = true;
    is_up |= e.kind == EventKind::link_up || e.kind == EventKind::nic_up;
    return due == 0 ? std::optional(e.at + rules.timing.blip_ns) : std::nullopt;
  }
  const bool is_down = meaning == Meaning::down || meaning == Meaning::session;
  const bool is_first = is_down && !has_down;
  if (is_down) count_down(e, rules);
  const std::int64_t next = due_after(e, rules);
  // Once it is down, the first due time stands; what is vague waits for more.
  const bool is_vague = !has_down || tally.records <= 1;
  return due == 0 || is_first || next < due || is_vague ? std::optional(next) : std::nullopt;
}

void Pending::count_down(const Evidence& e, const Rules& rules) {
  const EventRule& rule = rules.event(e.kind);
  const bool is_again =
      is_clear && rule.spread_ns == 0 && e.at - first_down > rules.timing.together_ns;
  // What was told beats what a poll found.
  if (!has_down || is_again || rule.spread_ns / 2 < slack) {
    slack = rule.spread_ns / 2;
    first_down = e.at - slack;
  }
  if (rule.spread_ns == 0) {
    is_clear = false;
    is_up &= rule.meaning != Meaning::down;
  }
  has_down = true;
}

std::int64_t Pending::due_after(const Evidence& e, const Rules& rules) const {
  const EventRule& rule = rules.event(e.kind);
  switch (rule.meaning) {
    case Meaning::light:
    case Meaning::soft:
      if (has_down) return due;
      return tally.soft == rules.counts.soft ? e.at : std::max(due, e.at + rules.timing.soft_ns);
    case Meaning::congestion:
      return e.at + (tally.full >= rules.counts.congestion ? 0 : rule.wait_ns);
    case Meaning::loss:  // probers say it again and again
      return std::min(std::max(due, e.at + rule.wait_ns), first + 2 * rule.wait_ns);
    case Meaning::silence:
      return std::max(due, e.at + rule.wait_ns);
    default:
      return e.at + rule.wait_ns;
  }
}

PendingSlot Pendings::open(PartId part, std::int64_t first) {
  WEFT_CHECK(part.valid());
  if (free_.empty()) free_.push_back(rows_.push_back({}));
  const PendingSlot slot = free_.back();
  free_.pop_back();
  Pending& pending = rows_[slot];
  WEFT_CHECK(!pending.part.valid());
  std::vector<Observation> said = std::move(pending.said);
  said.clear();
  pending = {};
  pending.said = std::move(said);
  pending.part = part;
  pending.first = first;
  return slot;
}

void Pendings::close(PendingSlot slot) {
  WEFT_CHECK(rows_[slot].part.valid());
  rows_[slot].part = {};
  free_.push_back(slot);
}

}  // namespace weft::operate::triage
