// How cases come to be: what they take with them, which lesser ones they swallow, how they are
// told.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>

#include "base/hash.hpp"
#include "operate/triage/correlator.hpp"

namespace weft::operate::triage {
namespace {

using model::EventKind;
using model::NodeId;
using model::NodeKind;

constexpr std::int64_t long_ago = std::numeric_limits<std::int64_t>::min();

}  // namespace

std::uint32_t Correlator::new_case(CauseKind kind, PartId root, model::Entity entity,
                                   std::int64_t onset) {
  std::uint32_t slot = static_cast<std::uint32_t>(cases_.size());
  if (free_cases_.empty()) {
    cases_.emplace_back();
  } else {
    slot = free_cases_.back();
    free_cases_.pop_back();
  }
  OpenCase& c = cases_[slot];
  c.is_open = true;
  c.kind = kind;
  c.root = root;
  c.entity = entity;
  c.onset = onset;
  c.last = onset;
  c.number = next_number_++;
  by_number_.emplace(c.number, slot);
  case_timers_.emplace(onset + rules_.timing.silent_ns, slot);
  count_recent(slot);
  ++counts_.cases;
  return slot;
}

void Correlator::own(std::uint32_t slot, PartId part) {
  PartState& state = states_[part.index()];
  if (state.owner == slot) return;
  state = {.owner = slot, .pending = state.pending, .last = long_ago};
  cases_[slot].owned.push_back(part);
}

// Pending evidence becomes members; later evidence on the part goes to this case.
void Correlator::take(std::uint32_t slot, PartId part, Silent silent) {
  OpenCase& c = cases_[slot];
  PartState& state = states_[part.index()];
  const KindMask explained = rules_.cause(c.kind).explains;
  if (state.pending != none && (pendings_[state.pending].tally.kinds & explained) != 0) {
    const Pending& pending = pendings_[state.pending];
    own(slot, part);
    for (const Observation& said : pending.said)
      ((explained & bit(said.kind)) != 0 ? c.members : c.unexplained).push_back(said);
    if (!learned_.empty() && !c.unexplained.empty()) to_follow_.push_back(slot);
    thin(c);
    c.tally.add(pending.tally);
    c.last = std::max(c.last, pending.last);
    state.last = pending.last;
    state.has_spoken = true;
    state.was_down = (pending.tally.kinds & explained & down_) != 0;
    state.is_clear = pending.is_clear;
    if (pending.is_clear && !c.is_clear) {
      c.is_clear = true;
      c.cleared_at = pending.last;
    }
    close_pending(part);
  } else if (silent == Silent::own && !is_live_at(part, c.onset)) {
    own(slot, part);
  }
}

// The lesser case's evidence becomes the greater one's, which counts as opened when the lesser was.
void Correlator::absorb(std::uint32_t slot, std::uint32_t lesser) {
  OpenCase& to = cases_[slot];
  OpenCase& from = cases_[lesser];
  to.members.insert(to.members.end(), from.members.begin(), from.members.end());
  to.unexplained.insert(to.unexplained.end(), from.unexplained.begin(), from.unexplained.end());
  to.led.insert(to.led.end(), from.led.begin(), from.led.end());
  merge(to.members_omitted, from.members_omitted);
  merge(to.unexplained_omitted, from.unexplained_omitted);
  merge(to.led_omitted, from.led_omitted);
  to.omitted += from.omitted;
  thin(to);
  for (const LearnedMember& led : from.led) followed_[led.said.part.index()] = to.number + 1;
  to.tally.add(from.tally);
  to.last = std::max(to.last, from.last);
  to.onset = std::min(to.onset, from.onset);
  for (const PartId part : from.owned) {
    PartState& state = states_[part.index()];
    if (state.owner != lesser) continue;
    state.owner = slot;
    to.owned.push_back(part);
  }
  if (from.suspect.valid() && case_of_suspect_[from.suspect.index()] == lesser)
    case_of_suspect_[from.suspect.index()] = none;
  by_number_.erase(from.number);
  from = {};
  free_cases_.push_back(lesser);
  --counts_.cases;
  ++counts_.merged;
}

void Correlator::absorb_lesser(std::uint32_t slot, std::int64_t onset) {
  const SuspectId suspect = cases_[slot].suspect;
  for (const PartId part : suspects_.all(suspect)) {
    const std::uint32_t owner = states_[part.index()].owner;
    if (owner == none || owner == slot || !is_live_at(part, onset)) continue;
    if (is_lesser(cases_[owner], part, suspect, onset)) absorb(slot, owner);
  }
}

void Correlator::open_suspect(const Verdict& verdict, std::int64_t onset) {
  if (verdict.kind == CauseKind::part) return open_part(verdict, onset);
  std::uint32_t slot = case_of_suspect_[verdict.suspect.index()];
  if (slot == none || !is_live(cases_[slot], onset)) {
    const Suspects::Suspect& row = suspects_[verdict.suspect];
    const bool is_card = row.root.kind == model::EntityKind::card;
    const PartId root = is_card ? parts_.of_card(NodeId(row.root.id), row.root.card)
                        : row.root.kind == model::EntityKind::scope
                            ? parts_.of(model::ScopeId(row.root.id))
                            : parts_.of(NodeId(row.root.id));
    slot = new_case(row.kind, root, row.root, onset);
    cases_[slot].suspect = verdict.suspect;
    cases_[slot].confidence = 1 - std::exp(-(verdict.score - verdict.runner_up + 1) / rules_.gain);
    case_of_suspect_[verdict.suspect.index()] = slot;
  }
  absorb_lesser(slot, onset);
  for (const PartId part : suspects_.all(verdict.suspect)) take(slot, part, Silent::own);
  retype(cases_[slot]);
  if (cases_[slot].kind == CauseKind::power) promote_racks(slot);
}

// Racks that lose their power together have lost it somewhere above them: in the scope that holds
// the most of them, of equals the smallest.
void Correlator::promote_racks(std::uint32_t slot) {
  const std::int64_t onset = cases_[slot].onset;
  const auto find_inside = [&](SuspectId scope) {
    std::vector<std::uint32_t> inside;
    for (const auto& [number, other] : by_number_) {
      const OpenCase& c = cases_[other];
      const bool is_dark = c.kind == CauseKind::power || c.kind == CauseKind::zone;
      if (is_dark && std::abs(c.onset - onset) <= rules_.timing.at_once_ns &&
          std::ranges::binary_search(suspects_.of(c.root), scope))
        inside.push_back(other);
    }
    return inside;
  };
  SuspectId best;
  std::vector<std::uint32_t> dark;
  for (const SuspectId suspect : suspects_.of(cases_[slot].root)) {
    if (suspects_[suspect].kind != CauseKind::zone) continue;
    auto inside = find_inside(suspect);
    const bool is_one = std::ranges::any_of(
        inside, [&](std::uint32_t c) { return cases_[c].kind == CauseKind::zone; });
    if ((!is_one && inside.size() < rules_.counts.racks) || inside.size() <= dark.size()) continue;
    best = suspect;
    dark = std::move(inside);
  }
  if (best.valid()) merge_racks(best, dark, onset);
}

void Correlator::merge_racks(SuspectId scope, const std::vector<std::uint32_t>& dark,
                             std::int64_t onset) {
  std::uint32_t zone = case_of_suspect_[scope.index()];
  if (zone == none || std::ranges::find(dark, zone) == dark.end()) {
    const Suspects::Suspect& row = suspects_[scope];
    zone = new_case(row.kind, parts_.of(model::ScopeId(row.root.id)), row.root, onset);
    cases_[zone].suspect = scope;
    cases_[zone].confidence = 1 - std::exp2(-static_cast<double>(dark.size()));
    case_of_suspect_[scope.index()] = zone;
  }
  for (const std::uint32_t other : dark)
    if (other != zone) absorb(zone, other);
  ++counts_.moved;
}

// Of a switch that died in part only what spoke at once belongs to the case.
void Correlator::open_part(const Verdict& verdict, std::int64_t onset) {
  const Suspects::Suspect& row = suspects_[verdict.suspect];
  const PartId root = parts_.of(NodeId(row.root.id));
  const std::uint32_t slot = new_case(CauseKind::part, root, row.root, onset);
  cases_[slot].suspect = verdict.suspect;
  cases_[slot].confidence = 1 - std::exp(-(verdict.score - verdict.runner_up + 1) / rules_.gain);
  for (const PartId part : suspects_.all(verdict.suspect)) {
    const std::uint32_t lesser = lesser_at_once(part, verdict.suspect, onset);
    if (lesser != none) absorb(slot, lesser);
    if (speaks_at_once(part, onset) || is_silenced(part, onset) || part == root)
      take(slot, part, Silent::own);
  }
}

// Of a case with a part of its own. Whoever saw it, each on his own, leaves half of the doubt that
// was left. Probers that named it often enough for a case are two.
double Correlator::confidence(const Tally& tally) const {
  const double views = std::max({static_cast<double>(tally.observers()),
                                 static_cast<double>(std::popcount(tally.kinds)),
                                 tally.losses >= rules_.counts.losses ? 2.0 : 0.0});
  return 1 - std::exp2(-views);
}

void Correlator::open_leaf(CauseKind kind, PartId part, std::int64_t now) {
  const Pending& pending = pendings_[states_[part.index()].pending];
  model::Entity entity = parts_.entity(part);
  if (kind == CauseKind::nic && parts_.is_cable(part))
    entity = model::entity(parts_.nic_of(parts_.cable(part)));
  const std::int64_t onset = std::min(pending.onset(), now);
  const std::uint32_t slot = new_case(kind, part, entity, onset);
  cases_[slot].confidence = confidence(pending.tally);
  for (const SuspectId suspect : suspects_.of(part))
    if (suspects_[suspect].root == entity && suspects_[suspect].kind == kind) {
      cases_[slot].suspect = suspect;
      case_of_suspect_[suspect.index()] = slot;
      for (const PartId other : suspects_.all(suspect)) take(slot, other, Silent::own);
    }
  take(slot, part, Silent::own);
  retype(cases_[slot]);
}

// The commit on either end of the cable that may have done it: one that has already done so
// elsewhere, else the nearest in time, those that came after it last.
const Correlator::Commit* Correlator::find_commit(PartId cable, std::int64_t onset) const {
  const model::Fabric& fabric = parts_.fabric();
  const model::LinkId link = forward(parts_.cable(cable));
  const PartId a = parts_.of(fabric.from(link)), b = parts_.of(fabric.to(link));
  const auto is_known = [&](const Commit& commit) {
    return commit.change != 0 && std::ranges::any_of(by_number_, [&](const auto& open) {
             const OpenCase& c = cases_[open.second];
             return c.kind == CauseKind::config && c.change == commit.change && is_live(c, onset);
           });
  };
  const Commit* best = nullptr;
  auto best_rank = std::pair(false, forever);
  for (const Commit& commit : commits_) {
    if (commit.device != a && commit.device != b) continue;
    const std::int64_t since = onset - commit.at;
    if (std::abs(since) > rules_.timing.change_ns) continue;
    const bool is_after = since < -rules_.timing.at_once_ns;
    const auto rank =
        std::pair(!is_known(commit), std::abs(since) + (is_after ? rules_.timing.change_ns : 0));
    if (best != nullptr && rank >= best_rank) continue;
    best = &commit;
    best_rank = rank;
  }
  return best;
}

// The live case of that change, or of one that is not known yet; else a new one.
std::uint32_t Correlator::config_case(const Commit* commit, std::int64_t onset, PartId device) {
  const std::int64_t near = rules_.timing.change_ns + rules_.timing.together_ns;
  std::uint32_t nameless = none;
  for (const auto& [number, slot] : by_number_ | std::views::reverse) {
    const OpenCase& c = cases_[slot];
    if (c.kind != CauseKind::config || !is_live(c, onset)) continue;
    const bool is_near = std::abs(onset - c.onset) <= near;
    if (commit != nullptr && commit->change != 0 && c.change == commit->change) return slot;
    const bool may_be = commit == nullptr || commit->change == 0 || c.change == 0;
    if (may_be && is_near && nameless == none) nameless = slot;
  }
  if (nameless == none && commit != nullptr) nameless = rename_config(commit->change, onset);
  if (nameless == none)
    nameless = new_case(CauseKind::config, device, parts_.entity(device), onset);
  if (commit != nullptr && cases_[nameless].change == 0) cases_[nameless].change = commit->change;
  return nameless;
}

// A case that was put down to another change, though all of its devices took this one as well.
std::uint32_t Correlator::rename_config(std::uint64_t change, std::int64_t onset) {
  const std::int64_t near = rules_.timing.change_ns + rules_.timing.together_ns;
  for (const auto& [number, slot] : by_number_ | std::views::reverse) {
    OpenCase& c = cases_[slot];
    if (c.kind != CauseKind::config || !is_live(c, onset) || std::abs(onset - c.onset) > near)
      continue;
    const bool took_it = std::ranges::all_of(c.owned, [&](PartId part) {
      return !parts_.is_node(part) || std::ranges::any_of(commits_, [&](const Commit& commit) {
        return commit.device == part && commit.change == change;
      });
    });
    if (!took_it) continue;
    c.change = change;
    ++counts_.moved;
    return slot;
  }
  return none;
}

void Correlator::take_commits(std::uint32_t slot) {
  OpenCase& c = cases_[slot];
  if (c.change == 0) return;
  for (Commit& commit : commits_) {
    if (commit.change != c.change || commit.is_taken) continue;
    commit.is_taken = true;
    c.members.push_back(commit.said);
  }
}

// The live case of a change that has taken other sessions of this cable's lower switch.
std::uint32_t Correlator::config_nearby(PartId cable, std::int64_t onset) const {
  const model::NodeId device = parts_.lower_switch(parts_.cable(cable));
  std::map<std::uint32_t, std::uint32_t> taken;
  for (const model::LinkId link : parts_.fabric().out(device)) {
    const std::uint32_t owner = states_[parts_.of(cable_of(link)).index()].owner;
    if (owner == none || cases_[owner].kind != CauseKind::config) continue;
    const bool is_near = std::abs(cases_[owner].onset - onset) <= 2 * rules_.timing.change_ns;
    if (is_near && is_live(cases_[owner], onset) && ++taken[owner] >= 2) return owner;
  }
  return none;
}

// Sessions that end by policy, or just after a change at one end, for no other reason, or with
// others that a change has taken.
bool Correlator::open_config(PartId part) {
  const Pending& pending = pendings_[states_[part.index()].pending];
  const std::int64_t onset = pending.onset();
  const Commit* commit = find_commit(part, onset);
  const bool has_cause = pending.tally.policies > 0;
  const bool follows = commit != nullptr && (pending.tally.reasons == 0 || commit->is_taken) &&
                       onset - commit->at >= -rules_.timing.at_once_ns;
  if (!has_cause && !follows) {
    const std::uint32_t nearby = config_nearby(part, onset);
    if (nearby == none) return false;
    take(nearby, part, Silent::own);
    return true;
  }
  const PartId device =
      commit != nullptr ? commit->device : parts_.of(parts_.lower_switch(parts_.cable(part)));
  const std::uint32_t slot = config_case(commit, onset, device);
  cases_[slot].confidence = std::max(cases_[slot].confidence, commit == nullptr ? 0.5
                                                              : has_cause       ? 0.95
                                                                                : 0.7);
  take_commits(slot);
  take(slot, part, Silent::own);
  if (parts_.is_node(device)) take_sessions(slot, device);
  return true;
}

// What else of the device waits, and ended by policy.
void Correlator::take_sessions(std::uint32_t slot, PartId device) {
  take(slot, device, Silent::own);
  for (const model::LinkId out : parts_.fabric().out(parts_.node(device))) {
    const PartId other = parts_.of(cable_of(out));
    const std::uint32_t waiting = states_[other.index()].pending;
    if (waiting == none || (pendings_[waiting].tally.kinds & down_) != 0) continue;
    if (pendings_[waiting].tally.policies > 0) take(slot, other, Silent::leave);
  }
}

// Later evidence may say more about the kind of trouble without moving its place.
void Correlator::retype(OpenCase& c) const {
  const bool is_leaf = c.kind == CauseKind::flap || c.kind == CauseKind::optic ||
                       c.kind == CauseKind::link || c.kind == CauseKind::nic;
  if (is_leaf && parts_.is_cable(c.root)) {
    c.kind = leaf_kind(c.root, c.tally);
    const NodeId nic = parts_.nic_of(parts_.cable(c.root));
    c.entity = c.kind == CauseKind::nic ? model::entity(nic) : parts_.entity(c.root);
  }
  if (c.kind == CauseKind::congestion && c.tally.focus.valid())
    c.entity = model::entity(parts_.nic_of(parts_.cable(c.tally.focus)));
  constexpr KindMask power =
      bit(EventKind::power_lost) | bit(EventKind::psu_fail) | bit(EventKind::oob_unreachable);
  if (c.kind == CauseKind::rack && (c.tally.kinds & power) != 0) c.kind = CauseKind::power;
}

Relation Correlator::relation(const OpenCase& c, const Observation& said) const {
  if (c.kind == CauseKind::congestion) return Relation::pauses_towards;
  if (c.kind == CauseKind::config) return Relation::same_change;
  if ((bit(said.kind) & session_) != 0 || said.kind == EventKind::bgp_up ||
      said.kind == EventKind::bfd_up)
    return Relation::session_over;
  if (said.kind == EventKind::probe_loss || said.kind == EventKind::probe_latency)
    return Relation::probe_over;
  if (parts_.is_cable(said.part)) {
    if (said.part == c.root) return Relation::end_of_link;
    return parts_.nic_of(parts_.cable(said.part)).valid() ? Relation::nic_below : Relation::port_of;
  }
  if (said.part == c.root) return Relation::itself;
  if (!parts_.is_node(said.part)) return Relation::part_of;
  const NodeKind kind = parts_.fabric().kind(parts_.node(said.part));
  return kind == NodeKind::host  ? Relation::host_below
         : kind == NodeKind::nic ? Relation::nic_below
                                 : Relation::device_inside;
}

const Correlator::Observation* Correlator::first_member(const OpenCase& c) {
  const auto first = std::ranges::min_element(
      c.members, {}, [](const Observation& s) { return std::tuple(s.at, s.part.value, s.kind); });
  return first == c.members.end() ? nullptr : &*first;
}

// From its first record's time and place.
std::string Correlator::name_of(const OpenCase& c) const {
  const Observation* first = first_member(c);
  Digest digest;
  digest.add(first == nullptr ? c.onset : first->at);
  if (first != nullptr) {
    digest.add(model::name(parts_.fabric(), parts_.entity(first->part)));
    digest.add(model::to_text(first->kind));
  }
  return digest.hex().substr(0, 12);
}

void Correlator::describe_rows(const OpenCase& c, Case& out) const {
  // Thinned here, so that the rows do not depend on when that was done last.
  std::optional<OpenCase> thinned;
  if (row_count(c) > 2 * bounds_.rows) {
    thinned = c;
    thinned->thin_at = 0;
    thin(*thinned);
  }
  const OpenCase& whole = thinned ? *thinned : c;
  const auto tell = [&](const std::vector<Observation>& said, std::vector<Case::Member>& to) {
    to.reserve(said.size());
    for (const Observation& s : said) to.push_back({Timestamp{s.at}, s.serial, relation(c, s)});
  };
  tell(whole.members, out.members);
  tell(whole.unexplained, out.unexplained);
  for (const LearnedMember& led : whole.led)
    out.members.push_back(
        {Timestamp{led.said.at}, led.said.serial, Relation::learned, led.confidence});
  std::ranges::stable_sort(out.members, {}, &Case::Member::at);
  std::ranges::stable_sort(out.unexplained, {}, &Case::Member::at);
  const auto summarise = [&](const OmittedRows& rows, bool is_led, auto& to) {
    for (const auto& [stream, omitted] : rows)
      add_summary(omitted, is_led ? Relation::learned : relation(c, omitted.sample), to);
  };
  summarise(whole.members_omitted, false, out.members_summarised);
  summarise(whole.led_omitted, true, out.members_summarised);
  summarise(whole.unexplained_omitted, false, out.unexplained_summarised);
}

Case Correlator::describe(const OpenCase& c, CaseState state) const {
  Case out;
  out.state = state;
  out.kind = c.kind;
  if (c.kind == CauseKind::part) {
    out.is_partial = true;
    out.kind = suspects_[c.suspect].kind;
  }
  out.root = c.entity;
  out.confidence = c.confidence;
  if (c.change != 0) out.change = interpreter_.change(c.change);
  describe_rows(c, out);
  const Observation* first = first_member(c);
  out.opened = first == nullptr ? Timestamp{c.onset} : Timestamp{first->at};
  if (c.is_clear || c.kind == CauseKind::congestion) out.closed = Timestamp{c.last};
  out.id = c.name.empty() ? name_of(c) : c.name;
  out.split_from = c.split_from;
  std::vector<PartId> spoken;
  for (const PartId part : c.owned) {
    const PartState& p = states_[part.index()];
    if (p.has_spoken) {
      spoken.push_back(part);
      out.suppressed += part == c.root ? 0 : 1;
    } else if (c.suspect.valid() &&
               std::ranges::binary_search(suspects_.expected(c.suspect), part)) {
      ++out.silent;
    }
  }
  out.maintenance = maintenance_.covering(spoken, out.opened);
  if (out.maintenance.empty()) out.maintenance = planned_.covering(spoken, out.opened);
  if (!out.maintenance.empty() && state == CaseState::settled) out.state = CaseState::maintenance;
  return out;
}

}  // namespace weft::operate::triage
