// How evidence flows: it joins the case that explains it, or waits on its part for a decision.
#include "operate/triage/correlator.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace weft::operate::triage {
namespace {

using model::EventKind;

constexpr std::uint8_t tally_max = UINT8_MAX;

}  // namespace

Evidence Correlator::Observation::evidence() const {
  Evidence out;
  out.at = at;
  out.begin = is_window ? at - 1 : at;
  out.serial = serial;
  out.part = part;
  out.kind = kind;
  out.source = source;
  out.end = end;
  out.is_policy = is_policy;
  out.has_reason = has_reason;
  out.is_indirect = is_indirect;
  return out;
}

void Tally::add(const Evidence& evidence, Meaning meaning) {
  kinds |= bit(evidence.kind);
  ++records;
  switch (meaning) {
    case Meaning::down: {
      if (evidence.at != evidence.begin || evidence.kind == EventKind::interface_down) return;
      auto& count =
          downs[std::size_t{2} * static_cast<std::size_t>(evidence.source) + evidence.end];
      if (count < tally_max) ++count;
      return;
    }
    case Meaning::session:
      policies += evidence.is_policy ? 1 : 0;
      reasons += evidence.has_reason ? 1 : 0;
      return;
    case Meaning::clear:
      ups += evidence.kind == EventKind::link_up || evidence.kind == EventKind::nic_up ? 1 : 0;
      return;
    case Meaning::light:
      ++light;
      ++soft;
      return;
    case Meaning::soft:
      ++soft;
      return;
    case Meaning::loss:
      ++losses;
      return;
    case Meaning::congestion:
      full += evidence.is_indirect || evidence.kind == EventKind::probe_latency ? 0 : 1;
      if (evidence.focus.valid()) vote(evidence.focus, 1);
      return;
    default:
      return;
  }
}

void Tally::add(const Tally& other) {
  for (std::size_t i = 0; i < downs.size(); ++i)
    downs[i] = static_cast<std::uint8_t>(std::min<int>(tally_max, downs[i] + other.downs[i]));
  kinds |= other.kinds;
  records += other.records;
  soft += other.soft;
  losses += other.losses;
  ups += other.ups;
  policies += other.policies;
  reasons += other.reasons;
  light += other.light;
  full += other.full;
  if (other.focus.valid()) vote(other.focus, other.votes);
}

void Tally::vote(PartId cable, std::uint32_t count) {
  if (cable == focus) {
    votes += count;
  } else if (count > votes) {
    focus = cable;
    votes = count - votes;
  } else {
    votes -= count;
  }
}

std::uint32_t Tally::downs_max() const { return *std::ranges::max_element(downs); }

std::uint32_t Tally::observers() const {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(downs, [](std::uint8_t n) { return n > 0; }));
}

Correlator::Correlator(const Parts& parts, const Suspects& suspects, const Rules& rules,
                       const Interpreter& interpreter, const Maintenance& maintenance,
                       const LearnedRelations& learned, Sink sink, Bounds bounds)
    : parts_(parts),
      suspects_(suspects),
      rules_(rules),
      interpreter_(interpreter),
      maintenance_(maintenance),
      learned_(learned),
      planned_(parts, suspects, rules),
      sink_(std::move(sink)),
      bounds_(bounds),
      down_(rules.kinds(Meaning::down)),
      session_(rules.kinds(Meaning::session)),
      silence_(rules.kinds(Meaning::silence)),
      alarming_(down_ | session_ | silence_ | rules.kinds(Meaning::fault)),
      states_(parts.size()),
      case_of_suspect_(suspects.size(), none),
      last_paused_(parts.fabric().node_count(), {std::numeric_limits<std::int64_t>::min(), {}}),
      alarms_(suspects.size()),
      recents_(suspects.size()),
      reasons_(learned.empty() ? 0 : parts.fabric().node_count() + 1),
      followed_(learned.empty() ? 0 : parts.size()) {
  for (std::size_t i = 0; i < cause_kind_count; ++i) {
    const CauseRule& rule = rules.causes[i];
    worth_max_[i] = std::max(rules.gain, *std::ranges::max_element(rule.direct));
    price_max_ = std::max(price_max_, rule.price);
  }
}

// One alarm more or less in the footprints that hold the part.
void Correlator::alarm(PartId part, std::int32_t change) {
  for (const SuspectId suspect : suspects_.of(part))
    alarms_[suspect.index()] += static_cast<std::uint32_t>(change);
}

void Correlator::count_recent(std::uint32_t slot) {
  const OpenCase& c = cases_[slot];
  recent_roots_.emplace_back(c.onset, c.root);
  for (const SuspectId suspect : suspects_.of(c.root)) ++recents_[suspect.index()];
}

// Decisions look back from evidence that may itself have waited for long.
void Correlator::forget_recent(std::int64_t now) {
  const std::int64_t kept = rules_.timing.together_ns + 4 * rules_.timing.blip_ns;
  while (!recent_roots_.empty() && recent_roots_.front().first < now - kept) {
    for (const SuspectId suspect : suspects_.of(recent_roots_.front().second))
      --recents_[suspect.index()];
    recent_roots_.pop_front();
  }
}

void Correlator::add(const std::vector<Evidence>& second) {
  const Evidence* last = nullptr;
  for (const Evidence& evidence : second) {
    run_timers(evidence.at);
    const bool repeat = last != nullptr && is_repeat(*last, evidence);
    counts_.repeats += repeat ? 1 : 0;
    add_one(evidence, repeat);
    last = &evidence;
  }
}

void Correlator::finish() {
  run_timers(forever);
  while (!by_number_.empty()) retire(by_number_.begin()->second);
}

// Who paused a switch is not full itself where something below it has just paused it too.
Evidence Correlator::resolve(const Evidence& evidence) {
  Evidence out = evidence;
  const model::NodeId full = parts_.congested(evidence.part);
  if (!evidence.is_indirect) {
    if (evidence.via.valid()) last_paused_[evidence.via.index()] = {evidence.at, evidence.part};
    return out;
  }
  const auto& [at, by] = last_paused_[full.index()];
  if (by.valid() && evidence.at - at <= rules_.event(evidence.kind).wait_ns) {
    out.part = by;
    out.is_indirect = false;
  }
  return out;
}

void Correlator::add_one(const Evidence& evidence, bool is_repeat) {
  const Meaning meaning = rules_.event(evidence.kind).meaning;
  if (meaning == Meaning::planned) return add_order(evidence);
  if (is_planned(evidence)) {
    ++counts_.planned;
    return;
  }
  if (meaning == Meaning::change) return add_change(evidence, is_repeat);
  const Evidence placed = meaning == Meaning::congestion ? resolve(evidence) : evidence;
  if (learned_.is_reason(placed.kind)) note_reason(placed);
  const PartState& state = states_[placed.part.index()];
  if (state.owner != none && joins(state.owner, placed))
    return join(state.owner, placed, is_repeat);
  if (meaning == Meaning::clear && state.pending == none) {
    if (!follow(Observation(placed, is_repeat))) ++counts_.dismissed;
    return;
  }
  put_aside(placed, is_repeat);
}

void Correlator::add_change(const Evidence& evidence, bool is_repeat) {
  while (!commits_.empty() && commits_.front().at < evidence.at - 4 * rules_.timing.change_ns)
    commits_.pop_front();
  for (const auto& [number, slot] : by_number_) {
    OpenCase& c = cases_[slot];
    if (c.kind != CauseKind::config || c.change == 0 || c.change != evidence.detail ||
        !is_live(c, evidence.at))
      continue;
    c.members.emplace_back(evidence, is_repeat);
    c.last = std::max(c.last, evidence.at);
    return thin(c);
  }
  if (!is_repeat || evidence.detail != 0)
    commits_.push_back(
        {evidence.at, evidence.part, evidence.detail, Observation(evidence, is_repeat)});
}

bool Correlator::explains(const OpenCase& c, EventKind kind) const {
  return (rules_.cause(c.kind).explains & bit(kind)) != 0;
}

std::int64_t Correlator::quiet_after(const OpenCase& c) const {
  if (c.kind == CauseKind::congestion) return rules_.timing.congested_ns;
  return c.is_clear ? rules_.timing.cleared_ns : rules_.timing.silent_ns;
}

bool Correlator::is_live(const OpenCase& c, std::int64_t at) const {
  return at - c.last <= quiet_after(c);
}

// A case over many parts does not stay open for one of them because another one still talks.
bool Correlator::is_live_at(PartId part, std::int64_t at) const {
  const PartState& state = states_[part.index()];
  if (state.owner == none) return false;
  const OpenCase& c = cases_[state.owner];
  if (!is_live(c, at)) return false;
  if (state.has_spoken) return !state.is_clear || at - state.last <= rules_.timing.cleared_ns;
  return !c.is_clear || at - c.cleared_at <= rules_.timing.cleared_ns;
}

bool Correlator::joins(std::uint32_t slot, const Evidence& e) const {
  const OpenCase& c = cases_[slot];
  if (!explains(c, e.kind)) return false;
  const std::uint32_t pending = states_[e.part.index()].pending;
  const KindMask kind = bit(e.kind);
  const bool is_clear = rules_.event(e.kind).meaning == Meaning::clear;
  // What ends or follows the new trouble on this part is no news of the old one.
  if (pending != none && pendings_[pending].has_down && (is_clear || (kind & session_) != 0) &&
      (pendings_[pending].tally.kinds & down_) != 0)
    return false;
  // A part of many that fails again on its own, when all was well again, may do so for itself.
  const PartState& state = states_[e.part.index()];
  const bool is_relapse = state.is_clear && c.is_clear && (kind & (down_ | session_)) != 0 &&
                          rules_.event(e.kind).spread_ns == 0 &&
                          e.at - state.last > rules_.timing.together_ns;
  if (is_relapse && c.suspect.valid()) return false;
  if (is_live_at(e.part, e.at)) return true;
  if (pending == none && is_clear && e.at - c.last < rules_.timing.silent_ns) return true;
  return e.begin < e.at && e.begin < c.last;  // a window that began while the case was open
}

void Correlator::join(std::uint32_t slot, const Evidence& e, bool is_repeat) {
  OpenCase& c = cases_[slot];
  c.members.emplace_back(e, is_repeat);
  thin(c);
  if (is_repeat) return;
  const Meaning meaning = rules_.event(e.kind).meaning;
  PartState& state = states_[e.part.index()];
  state.has_spoken = true;
  state.was_down |= meaning == Meaning::down;
  state.last = std::max(state.last, e.at);
  c.last = std::max(c.last, e.at);
  if (meaning == Meaning::clear) {
    state.is_clear = true;
    if (!c.is_clear) c.cleared_at = e.at;
    c.is_clear = true;
  } else if (meaning == Meaning::down || meaning == Meaning::session) {
    if (rules_.event(e.kind).spread_ns == 0) state.is_clear = false;
  } else if (meaning == Meaning::loss && e.begin > c.cleared_at) {
    c.is_clear = false;  // well again, as its carrier says, and probes are lost all the same
  }
  c.tally.add(e, meaning);
  if (c.kind <= CauseKind::nic) c.confidence = std::max(c.confidence, confidence(c.tally));
  retype(c);
  if ((rules_.cause(c.kind).doubts & bit(e.kind)) != 0) doubt(slot, e);
}

std::uint32_t Correlator::open_pending(const Evidence& e) {
  std::uint32_t slot = static_cast<std::uint32_t>(pendings_.size());
  if (free_pendings_.empty()) {
    pendings_.emplace_back();
  } else {
    slot = free_pendings_.back();
    free_pendings_.pop_back();
  }
  Pending& pending = pendings_[slot];
  std::vector<Observation> said = std::move(pending.said);
  said.clear();
  pending = {};
  pending.said = std::move(said);
  pending.part = e.part;
  pending.first = e.begin;
  return states_[e.part.index()].pending = slot;
}

void Correlator::close_pending(PartId part) {
  PartState& state = states_[part.index()];
  if (pendings_[state.pending].is_alarm) alarm(part, -1);
  free_pendings_.push_back(state.pending);
  pendings_[state.pending].part = {};
  state.pending = none;
}

// Too thin for a case. Where a case holds the part, that case says what it does not explain.
void Correlator::dismiss(PartId part) {
  const PartState& state = states_[part.index()];
  const Pending& pending = pendings_[state.pending];
  const bool is_held = state.owner != none && is_live_at(part, pending.last);
  for (const Observation& said : pending.said) {
    if (follow(said)) continue;
    ++counts_.dismissed;
    if (is_held) cases_[state.owner].unexplained.push_back(said);
  }
  if (is_held) thin(cases_[state.owner]);
  close_pending(part);
}

void Correlator::put_aside(const Evidence& e, bool is_repeat) {
  const std::uint32_t known = states_[e.part.index()].pending;
  Pending& pending = pendings_[known == none ? open_pending(e) : known];
  pending.said.emplace_back(e, is_repeat);
  if (is_repeat) return;
  const EventRule& rule = rules_.event(e.kind);
  pending.tally.add(e, rule.meaning);
  if (!pending.is_alarm && (bit(e.kind) & alarming_) != 0) {
    pending.is_alarm = true;
    alarm(e.part, 1);
  }
  pending.first = std::min(pending.first, e.begin);
  pending.last = std::max(pending.last, e.at);
  if (rule.meaning == Meaning::clear) {
    pending.is_clear = true;
    pending.is_up |= e.kind == EventKind::link_up || e.kind == EventKind::nic_up;
    if (pending.due == 0) schedule(pending, e.at + rules_.timing.blip_ns);
    return;
  }
  const bool is_down = rule.meaning == Meaning::down || rule.meaning == Meaning::session;
  const bool is_first = is_down && !pending.has_down;
  if (is_down) {
    const bool is_again = pending.is_clear && rule.spread_ns == 0 &&
                          e.at - pending.first_down > rules_.timing.together_ns;
    // What was told beats what a poll found.
    if (!pending.has_down || is_again || rule.spread_ns / 2 < pending.slack) {
      pending.slack = rule.spread_ns / 2;
      pending.first_down = e.at - pending.slack;
    }
    if (rule.spread_ns == 0) {
      pending.is_clear = false;
      pending.is_up &= rule.meaning != Meaning::down;
    }
    pending.has_down = true;
  }
  const std::int64_t due = due_after(pending, e);
  // Once it is down, the first due time stands; what is vague waits for more.
  if (pending.due == 0 || is_first || due < pending.due ||
      !(pending.has_down && pending.tally.records > 1))
    schedule(pending, due);
}

std::int64_t Correlator::due_after(const Pending& pending, const Evidence& e) const {
  const EventRule& rule = rules_.event(e.kind);
  switch (rule.meaning) {
    case Meaning::light:
    case Meaning::soft:
      if (pending.has_down) return pending.due;
      return pending.tally.soft == rules_.counts.soft
                 ? e.at
                 : std::max(pending.due, e.at + rules_.timing.soft_ns);
    case Meaning::congestion:
      return e.at + (pending.tally.full >= rules_.counts.congestion ? 0 : rule.wait_ns);
    case Meaning::loss:  // probers say it again and again
      return std::min(std::max(pending.due, e.at + rule.wait_ns), pending.first + 2 * rule.wait_ns);
    case Meaning::silence:
      return std::max(pending.due, e.at + rule.wait_ns);
    default:
      return e.at + rule.wait_ns;
  }
}

void Correlator::schedule(Pending& pending, std::int64_t due) {
  pending.due = due;
  part_timers_.emplace(due, pending.part.value);
}

void Correlator::run_timers(std::int64_t now) {
  while (!part_timers_.empty() && part_timers_.top().first <= now) {
    const auto [due, part] = part_timers_.top();
    part_timers_.pop();
    forget_recent(due);
    const std::uint32_t pending = states_[part].pending;
    if (pending != none && pendings_[pending].due == due) decide(PartId(part), due);
  }
  while (!case_timers_.empty() && case_timers_.top().first <= now) {
    const auto [due, slot] = case_timers_.top();
    case_timers_.pop();
    OpenCase& c = cases_[slot];
    if (!c.is_open) continue;
    const std::int64_t end = c.last + rules_.timing.silent_ns;
    if (end <= due)
      retire(slot);
    else
      case_timers_.emplace(end, slot);
  }
}

std::optional<std::int64_t> Correlator::next_timer() const {
  std::optional<std::int64_t> out;
  for (const Timers* timers : {&part_timers_, &case_timers_})
    if (!timers->empty() && (!out || timers->top().first < *out)) out = timers->top().first;
  return out;
}

// The case is no more, and what it held belongs to nobody.
void Correlator::release(std::uint32_t slot) {
  OpenCase& c = cases_[slot];
  for (const PartId part : c.owned)
    if (PartState& state = states_[part.index()]; state.owner == slot)
      state = {.pending = state.pending};
  if (c.suspect.valid() && case_of_suspect_[c.suspect.index()] == slot)
    case_of_suspect_[c.suspect.index()] = none;
  by_number_.erase(c.number);
  c = {};
  free_cases_.push_back(slot);
}

void Correlator::retire(std::uint32_t slot) {
  sink_(describe(cases_[slot], CaseState::settled));
  release(slot);
}

std::vector<Case> Correlator::open_cases(CaseState state) const {
  std::vector<Case> out;
  for (const auto& [number, slot] : by_number_) out.push_back(describe(cases_[slot], state));
  return out;
}

std::uint64_t Correlator::oldest_waiting() const {
  std::uint64_t oldest = UINT64_MAX;
  for (const Pending& pending : pendings_)
    if (pending.part.valid())
      for (const Observation& s : pending.said) oldest = std::min(oldest, s.serial);
  for (const Commit& commit : commits_) oldest = std::min(oldest, commit.said.serial);
  return oldest;
}

void Correlator::append_serials(std::vector<std::uint64_t>& out) const {
  const auto append = [&](const std::vector<Observation>& said) {
    for (const Observation& s : said) out.push_back(s.serial);
  };
  for (const Pending& pending : pendings_)
    if (pending.part.valid()) append(pending.said);
  for (const Commit& commit : commits_) out.push_back(commit.said.serial);
  for (const auto& [number, slot] : by_number_) {
    append(cases_[slot].members);
    append(cases_[slot].unexplained);
    for (const LearnedMember& led : cases_[slot].led) out.push_back(led.said.serial);
  }
}

std::uint64_t Correlator::oldest_serial() const {
  std::uint64_t oldest = std::min(oldest_waiting(), planned_.oldest_serial());
  const auto look = [&](const std::vector<Observation>& said) {
    for (const Observation& s : said) oldest = std::min(oldest, s.serial);
  };
  for (const auto& [number, slot] : by_number_) {
    look(cases_[slot].members);
    look(cases_[slot].unexplained);
    for (const LearnedMember& led : cases_[slot].led) oldest = std::min(oldest, led.said.serial);
  }
  return oldest;
}

}  // namespace weft::operate::triage
