// Late evidence may show that a case holds several causes: it is then thought over from what it
// holds, with the cause that is proven set apart.
#include <algorithm>
#include <span>
#include <tuple>
#include <vector>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "operate/triage/decide.hpp"
#include "operate/triage/describe.hpp"
#include "operate/triage/open.hpp"

namespace weft::operate::triage {
namespace {

// Parts that others have taken from a case: with more of them it is not one of these that is odd.
constexpr std::ptrdiff_t taken_max = 2;

bool is_among(std::span<const PartId> parts, PartId part) {
  return std::ranges::find(parts, part) != parts.end();
}

// What a device takes with it can look like its own doing; a rack without power is no such doubt.
bool may_split(const Board& board, const OpenCase& c) {
  const bool is_of_device =
      c.kind == CauseKind::card || c.kind == CauseKind::part || is_device(c.kind);
  return !board.is_splitting && c.suspect.valid() && is_of_device;
}

// Of a switch that died in part: as many ports must be left as make one.
double weigh_ports_without(const Board& board, CaseSlot slot, std::span<const PartId> apart) {
  const OpenCase& c = board.cases[slot];
  double ports = 0, runs = 0, spoken = 0;
  bool was_spoken = false;
  for (const PartId part : board.suspects.all(c.suspect)) {
    if (!board.parts.is_cable(part)) continue;
    const PartState& state = board.states[part];
    const bool is_spoken = state.owner == slot && state.was_down && !is_among(apart, part);
    spoken += is_spoken ? 1 : 0;
    runs += is_spoken && !was_spoken ? 1 : 0;
    was_spoken = is_spoken;
    ++ports;
  }
  if (spoken < board.rules.counts.part) return -1;
  return board.rules.gain * spoken - board.rules.cause(c.kind).price -
         price_of_ports(spoken, ports, runs);
}

// As weigh() would say of the case's cause, had others caused what is `apart`.
double weigh_without(const Board& board, CaseSlot slot, std::span<const PartId> apart) {
  const OpenCase& c = board.cases[slot];
  if (c.kind == CauseKind::part) return weigh_ports_without(board, slot, apart);
  const CauseRule& rule = board.rules.cause(c.kind);
  double sum = -rule.price;
  const auto is_own = [&](PartId part) {
    return board.states[part].owner == slot && !is_among(apart, part);
  };
  for (const PartId part : board.suspects.expected(c.suspect)) {
    if (!is_own(part)) continue;
    const PartState& state = board.states[part];
    sum += state.was_down ? board.rules.gain : state.has_spoken ? -rule.silent / 2 : -rule.silent;
  }
  for (const PartId part : board.suspects.possible(c.suspect)) {
    const PartState& state = board.states[part];
    if (!is_own(part) || !state.has_spoken || part == c.root) continue;
    if (state.was_down || board.parts.is_node(part)) sum += board.rules.gain;
  }
  return sum + direct_worth(rule, c.tally.kinds);
}

// What a lesser cause would be worth, of the evidence that the case holds.
double weigh_lesser(const Board& board, CaseSlot slot, SuspectId lesser) {
  const CauseRule& rule = board.rules.cause(board.suspects[lesser].kind);
  double sum = -rule.price;
  for (const PartId part : board.suspects.expected(lesser)) {
    const PartState& state = board.states[part];
    sum += state.owner == slot && state.was_down ? board.rules.gain : -rule.silent;
  }
  return sum;
}

void open_apart(Board& board, const Verdict& apart, PartId part, std::int64_t now) {
  if (!apart.suspect.valid()) return open_leaf(board, apart.kind, part, now);
  std::int64_t onset = now;
  for (const PartId down : board.suspects.expected(apart.suspect))
    if (const Pending* pending = board.waiting(down); pending != nullptr)
      onset = std::min(onset, pending->onset());
  open_suspect(board, apart, onset);
}

// What came back when all else of the case has its place; what then failed again is known.
void place_again(Board& board, const Observation& said) {
  const PartState& state = board.states[said.part];
  if (state.owner.valid() && state.last > said.at && state.has_spoken &&
      board.explains(board.cases[state.owner], said.kind))
    return board.add_member(board.cases[state.owner], said);
  const Evidence evidence = said.evidence();
  if (state.owner.valid() && joins(board, state.owner, evidence))
    join(board, state.owner, evidence, said.is_repeat != 0);
  else if (state.pending.valid())
    board.put_aside(evidence, said.is_repeat != 0);
  else if (!follow(board, said))
    ++board.counts.dismissed;
}

// What the case counted goes where the rows of the same part went.
void place_omitted(Board& board, const OpenCase& whole) {
  for (const OmittedRows* rows : {&whole.members_omitted, &whole.unexplained_omitted})
    for (const auto& [stream, omitted] : *rows) {
      const CaseSlot owner = board.states[std::get<PartId>(stream)].owner;
      if (!owner.valid()) {
        board.counts.dismissed += omitted.records;
        continue;
      }
      OpenCase& c = board.cases[owner];
      merge(board.explains(c, omitted.sample.kind) ? c.members_omitted : c.unexplained_omitted,
            {{stream, omitted}});
      c.omitted += omitted.records;
    }
  for (const auto& [stream, omitted] : whole.led_omitted) board.counts.dismissed += omitted.records;
}

// Of the cases opened since `from`: the one that keeps the root keeps the name; where none does,
// the one with the first record.
void name_split(Board& board, const OpenCase& whole, std::uint64_t from) {
  const std::string name = whole.name.empty() ? name_of(board.parts, whole) : whole.name;
  const auto& cases = board.cases.by_number();
  OpenCase* heir = nullptr;
  auto best = std::tuple(true, std::int64_t{0}, std::uint64_t{0});
  for (auto at = cases.lower_bound(from); at != cases.end(); ++at) {
    OpenCase& c = board.cases[at->second];
    const Observation* first = first_member(c);
    const auto rank =
        std::tuple(c.entity != whole.entity, first == nullptr ? c.onset : first->at, c.number);
    if (heir != nullptr && rank >= best) continue;
    heir = &c;
    best = rank;
  }
  for (auto at = cases.lower_bound(from); at != cases.end(); ++at) {
    OpenCase& c = board.cases[at->second];
    c.name = &c == heir ? name : name_of(board.parts, c);
    c.split_from = &c == heir ? whole.split_from : name;
    if (&c == heir || c.name != name) continue;
    Digest digest;
    digest.add(name);
    digest.add(model::name(board.parts.fabric(), c.entity));
    c.name = digest.hex().substr(0, 12);
  }
}

// All that the case holds waits again; the cause that is proven is taken out of it first. What
// came back is told last, as it was then.
void split(Board& board, CaseSlot slot, const Verdict& apart, PartId part, std::int64_t now) {
  WEFT_CHECK(!board.is_splitting);
  board.is_splitting = true;
  const OpenCase whole = board.cases[slot];
  const std::uint64_t first = board.cases.next_number();
  board.release(slot);
  --board.counts.cases;
  ++board.counts.split;
  std::vector<Observation> said = whole.members;
  said.insert(said.end(), whole.unexplained.begin(), whole.unexplained.end());
  for (const LearnedMember& led : whole.led) said.push_back(led.said);
  std::ranges::stable_sort(said, {}, &Observation::at);
  const auto is_clear = [&](const Observation& s) {
    return board.rules.event(s.kind).meaning == Meaning::clear;
  };
  for (const Observation& s : said)
    if (!is_clear(s)) board.put_aside(s.evidence(), s.is_repeat != 0);
  open_apart(board, apart, part, now);
  if (const CaseSlot own = board.states[part].owner; own.valid()) board.cases[own].is_apart = true;
  for (const Observation& s : said)
    if (board.waiting(s.part) != nullptr)
      decide_alone(board, s.part, now + board.rules.timing.together_ns);
  for (const Observation& s : said)
    if (is_clear(s)) place_again(board, s);
  place_omitted(board, whole);
  name_split(board, whole, first);
  board.is_splitting = false;
}

}  // namespace

void doubt(Board& board, CaseSlot slot, const Evidence& evidence) {
  const OpenCase& c = board.cases[slot];
  if (!may_split(board, c)) return;
  const model::Entity entity = board.parts.entity(evidence.part);
  for (const SuspectId lesser : board.suspects.of(evidence.part)) {
    const Suspects::Suspect& row = board.suspects[lesser];
    if (row.root != entity || row.kind >= c.kind) continue;
    const double worth = weigh_lesser(board, slot, lesser);
    if (worth <= 0 || weigh_without(board, slot, board.suspects.all(lesser)) > 0) continue;
    return split(board, slot, {row.kind, lesser, worth, 0}, evidence.part, evidence.at);
  }
}

bool split_by_leaf(Board& board, PartId part, CauseKind kind, std::int64_t now) {
  const PartState& state = board.states[part];
  const CaseSlot slot = state.owner;
  if (!slot.valid() || !board.parts.is_cable(part) || !may_split(board, board.cases[slot]))
    return false;
  if (!state.was_down || state.is_clear || !board.is_live_at(part, now)) return false;
  const auto taken = std::ranges::count_if(board.cases[slot].owned,
                                           [&](PartId p) { return board.states[p].owner != slot; });
  if (taken >= taken_max || weigh_without(board, slot, {&part, 1}) > 0) return false;
  split(board, slot, {kind, {}, 0, 0}, part, now);
  return true;
}

}  // namespace weft::operate::triage
