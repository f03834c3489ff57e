// Late evidence may show that a case holds several causes: it is then thought over from what it
// holds, with the cause that is proven set apart.
#include <algorithm>
#include <bit>
#include <span>
#include <tuple>
#include <utility>

#include "base/hash.hpp"
#include "operate/triage/correlator.hpp"

namespace weft::operate::triage {
namespace {

// Parts that others have taken from a case: with more of them it is not one of these that is odd.
constexpr std::ptrdiff_t taken_max = 2;

bool is_among(std::span<const PartId> parts, PartId part) {
  return std::ranges::find(parts, part) != parts.end();
}

}  // namespace

// What a device takes with it can look like its own doing; a rack without power is no such doubt.
bool Correlator::may_split(const OpenCase& c) const {
  const bool is_of_device =
      c.kind == CauseKind::card || c.kind == CauseKind::part || is_device(c.kind);
  return !is_splitting_ && c.suspect.valid() && is_of_device;
}

// As weigh() would say of the case's cause, had others caused what is `apart`.
double Correlator::weigh_without(std::uint32_t slot, std::span<const PartId> apart) const {
  const OpenCase& c = cases_[slot];
  if (c.kind == CauseKind::part) return weigh_ports_without(slot, apart);
  const CauseRule& rule = rules_.cause(c.kind);
  double sum = -rule.price;
  const auto is_own = [&](PartId part) {
    return states_[part.index()].owner == slot && !is_among(apart, part);
  };
  for (const PartId part : suspects_.expected(c.suspect)) {
    if (!is_own(part)) continue;
    const PartState& state = states_[part.index()];
    sum += state.was_down ? rules_.gain : state.has_spoken ? -rule.silent / 2 : -rule.silent;
  }
  for (const PartId part : suspects_.possible(c.suspect)) {
    const PartState& state = states_[part.index()];
    if (!is_own(part) || !state.has_spoken || part == c.root) continue;
    if (state.was_down || parts_.is_node(part)) sum += rules_.gain;
  }
  double direct = 0;
  for (KindMask left = c.tally.kinds & rule.explains; left != 0; left &= left - 1)
    direct = std::max(direct, rule.direct[static_cast<std::size_t>(std::countr_zero(left))]);
  return sum + direct;
}

// The same of a switch that died in part: as many ports must be left as make one.
double Correlator::weigh_ports_without(std::uint32_t slot, std::span<const PartId> apart) const {
  const OpenCase& c = cases_[slot];
  double ports = 0, runs = 0, spoken = 0;
  bool was_spoken = false;
  for (const PartId part : suspects_.all(c.suspect)) {
    if (!parts_.is_cable(part)) continue;
    const PartState& state = states_[part.index()];
    const bool is_spoken = state.owner == slot && state.was_down && !is_among(apart, part);
    spoken += is_spoken ? 1 : 0;
    runs += is_spoken && !was_spoken ? 1 : 0;
    was_spoken = is_spoken;
    ++ports;
  }
  if (spoken < rules_.counts.part) return -1;
  return rules_.gain * spoken - rules_.cause(c.kind).price - price_of_ports(spoken, ports, runs);
}

// What a lesser cause would be worth, of the evidence that the case holds.
double Correlator::weigh_lesser(std::uint32_t slot, SuspectId lesser) const {
  const CauseRule& rule = rules_.cause(suspects_[lesser].kind);
  double sum = -rule.price;
  for (const PartId part : suspects_.expected(lesser)) {
    const PartState& state = states_[part.index()];
    sum += state.owner == slot && state.was_down ? rules_.gain : -rule.silent;
  }
  return sum;
}

// Something was said that the case explains, and that yet speaks for a cause of its own.
void Correlator::doubt(std::uint32_t slot, const Evidence& evidence) {
  const OpenCase& c = cases_[slot];
  if (!may_split(c)) return;
  const model::Entity entity = parts_.entity(evidence.part);
  for (const SuspectId lesser : suspects_.of(evidence.part)) {
    const Suspects::Suspect& row = suspects_[lesser];
    if (row.root != entity || row.kind >= c.kind) continue;
    const double worth = weigh_lesser(slot, lesser);
    if (worth <= 0 || weigh_without(slot, suspects_.all(lesser)) > 0) continue;
    return split(slot, {row.kind, lesser, worth, 0}, evidence.part, evidence.at);
  }
}

// A cable of the case is about to have a case of its own, for what the case does not explain.
bool Correlator::split_by_leaf(PartId part, CauseKind kind, std::int64_t now) {
  const PartState& state = states_[part.index()];
  const std::uint32_t slot = state.owner;
  if (slot == none || !parts_.is_cable(part) || !may_split(cases_[slot])) return false;
  if (!state.was_down || state.is_clear || !is_live_at(part, now)) return false;
  const auto taken = std::ranges::count_if(
      cases_[slot].owned, [&](PartId p) { return states_[p.index()].owner != slot; });
  if (taken >= taken_max || weigh_without(slot, {&part, 1}) > 0) return false;
  split(slot, {kind, {}, 0, 0}, part, now);
  return true;
}

void Correlator::open_apart(const Verdict& apart, PartId part, std::int64_t now) {
  if (!apart.suspect.valid()) return open_leaf(apart.kind, part, now);
  std::int64_t onset = now;
  for (const PartId down : suspects_.expected(apart.suspect))
    if (const std::uint32_t pending = states_[down.index()].pending; pending != none)
      onset = std::min(onset, pendings_[pending].onset());
  open_suspect(apart, onset);
}

// What came back when all else of the case has its place; what then failed again is known.
void Correlator::place_again(const Observation& said) {
  const PartState& state = states_[said.part.index()];
  if (state.owner != none && state.last > said.at && state.has_spoken &&
      explains(cases_[state.owner], said.kind)) {
    cases_[state.owner].members.push_back(said);
    thin(cases_[state.owner]);
    return;
  }
  const Evidence evidence = said.evidence();
  if (state.owner != none && joins(state.owner, evidence))
    join(state.owner, evidence, said.is_repeat != 0);
  else if (state.pending != none)
    put_aside(evidence, said.is_repeat != 0);
  else if (!follow(said))
    ++counts_.dismissed;
}

// All that the case holds waits again; the cause that is proven is taken out of it first. What
// came back is told last, as it was then.
void Correlator::split(std::uint32_t slot, const Verdict& apart, PartId part, std::int64_t now) {
  is_splitting_ = true;
  const OpenCase whole = cases_[slot];
  const std::uint64_t first = next_number_;
  release(slot);
  --counts_.cases;
  ++counts_.split;
  std::vector<Observation> said = whole.members;
  said.insert(said.end(), whole.unexplained.begin(), whole.unexplained.end());
  for (const LearnedMember& led : whole.led) said.push_back(led.said);
  std::ranges::stable_sort(said, {}, &Observation::at);
  const auto is_clear = [&](const Observation& s) {
    return rules_.event(s.kind).meaning == Meaning::clear;
  };
  for (const Observation& s : said)
    if (!is_clear(s)) put_aside(s.evidence(), s.is_repeat != 0);
  open_apart(apart, part, now);
  if (const std::uint32_t own = states_[part.index()].owner; own != none)
    cases_[own].is_apart = true;
  for (const Observation& s : said)
    if (states_[s.part.index()].pending != none)
      decide_alone(s.part, now + rules_.timing.together_ns);
  for (const Observation& s : said)
    if (is_clear(s)) place_again(s);
  place_omitted(whole);
  name_split(whole, first);
  is_splitting_ = false;
}

// The case that keeps the root keeps the name; where none does, the one with the first record.
void Correlator::name_split(const OpenCase& whole, std::uint64_t from) {
  const std::string name = whole.name.empty() ? name_of(whole) : whole.name;
  OpenCase* heir = nullptr;
  auto best = std::tuple(true, std::int64_t{0}, std::uint64_t{0});
  for (auto at = by_number_.lower_bound(from); at != by_number_.end(); ++at) {
    OpenCase& c = cases_[at->second];
    const Observation* first = first_member(c);
    const auto rank =
        std::tuple(c.entity != whole.entity, first == nullptr ? c.onset : first->at, c.number);
    if (heir != nullptr && rank >= best) continue;
    heir = &c;
    best = rank;
  }
  for (auto at = by_number_.lower_bound(from); at != by_number_.end(); ++at) {
    OpenCase& c = cases_[at->second];
    c.name = &c == heir ? name : name_of(c);
    c.split_from = &c == heir ? whole.split_from : name;
    if (&c == heir || c.name != name) continue;
    Digest digest;
    digest.add(name);
    digest.add(model::name(parts_.fabric(), c.entity));
    c.name = digest.hex().substr(0, 12);
  }
}

}  // namespace weft::operate::triage
