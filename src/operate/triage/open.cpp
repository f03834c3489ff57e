#include "operate/triage/open.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/check.hpp"

namespace weft::operate::triage {
namespace {

using model::EventKind;
using model::NodeId;

PartId root_of(const Parts& parts, const model::Entity& root) {
  if (root.kind == model::EntityKind::card) return parts.of_card(NodeId(root.id), root.card);
  if (root.kind == model::EntityKind::scope) return parts.of(model::ScopeId(root.id));
  return parts.of(NodeId(root.id));
}

CaseSlot open_verdict(Board& board, const Verdict& verdict, std::int64_t onset) {
  const model::Entity& root = board.suspects[verdict.suspect].root;
  const CaseSlot slot = board.open_case(verdict.kind, root_of(board.parts, root), root, onset);
  const double margin = verdict.score - verdict.runner_up + 1;
  board.cases[slot].confidence = 1 - std::exp(-margin / board.rules.gain);
  return slot;
}

void merge_racks(Board& board, SuspectId scope, const std::vector<CaseSlot>& dark,
                 std::int64_t onset) {
  WEFT_CHECK(!dark.empty());
  CaseSlot zone = board.cases.of(scope);
  if (!zone.valid() || std::ranges::find(dark, zone) == dark.end()) {
    const Suspects::Suspect& row = board.suspects[scope];
    zone = board.open_case(row.kind, root_of(board.parts, row.root), row.root, onset);
    board.cases.name_suspect(zone, scope);
    board.cases[zone].confidence = 1 - std::exp2(-static_cast<double>(dark.size()));
  }
  for (const CaseSlot other : dark)
    if (other != zone) board.absorb(zone, other);
  ++board.counts.moved;
}

// Racks that lose their power together have lost it somewhere above them: in the scope that holds
// the most of them, of equals the smallest.
void promote_racks(Board& board, CaseSlot slot) {
  const std::int64_t onset = board.cases[slot].onset;
  const auto find_inside = [&](SuspectId scope) {
    std::vector<CaseSlot> inside;
    for (const auto& [number, other] : board.cases.by_number()) {
      const OpenCase& c = board.cases[other];
      const bool is_dark = c.kind == CauseKind::power || c.kind == CauseKind::zone;
      if (is_dark && std::abs(c.onset - onset) <= board.rules.timing.at_once_ns &&
          std::ranges::binary_search(board.suspects.of(c.root), scope))
        inside.push_back(other);
    }
    return inside;
  };
  SuspectId best;
  std::vector<CaseSlot> dark;
  for (const SuspectId suspect : board.suspects.of(board.cases[slot].root)) {
    if (board.suspects[suspect].kind != CauseKind::zone) continue;
    auto inside = find_inside(suspect);
    const bool is_one = std::ranges::any_of(
        inside, [&](CaseSlot c) { return board.cases[c].kind == CauseKind::zone; });
    if ((!is_one && inside.size() < board.rules.counts.racks) || inside.size() <= dark.size())
      continue;
    best = suspect;
    dark = std::move(inside);
  }
  if (best.valid()) merge_racks(board, best, dark, onset);
}

// Of a switch that died in part only what spoke at once belongs to the case.
void open_part(Board& board, const Verdict& verdict, std::int64_t onset) {
  const CaseSlot slot = open_verdict(board, verdict, onset);
  board.cases[slot].suspect = verdict.suspect;
  const PartId root = board.cases[slot].root;
  for (const PartId part : board.suspects.all(verdict.suspect)) {
    const CaseSlot lesser = lesser_at_once(board, part, verdict.suspect, onset);
    if (lesser.valid()) board.absorb(slot, lesser);
    if (speaks_at_once(board, part, onset) || is_silenced(board, part, onset) || part == root)
      board.take(slot, part, Silent::own);
  }
}

void absorb_lesser(Board& board, CaseSlot slot, std::int64_t onset) {
  const SuspectId suspect = board.cases[slot].suspect;
  for (const PartId part : board.suspects.all(suspect)) {
    const CaseSlot owner = board.states[part].owner;
    if (owner == slot || !board.is_live_at(part, onset)) continue;
    if (is_lesser(board, board.cases[owner], part, suspect, onset)) board.absorb(slot, owner);
  }
}

}  // namespace

void open_suspect(Board& board, const Verdict& verdict, std::int64_t onset) {
  WEFT_CHECK(verdict.suspect.valid());
  if (verdict.kind == CauseKind::part) return open_part(board, verdict, onset);
  CaseSlot slot = board.cases.of(verdict.suspect);
  if (!slot.valid() || !board.is_live(board.cases[slot], onset)) {
    slot = open_verdict(board, verdict, onset);
    board.cases.name_suspect(slot, verdict.suspect);
  }
  absorb_lesser(board, slot, onset);
  for (const PartId part : board.suspects.all(verdict.suspect)) board.take(slot, part, Silent::own);
  retype(board, board.cases[slot]);
  if (board.cases[slot].kind == CauseKind::power) promote_racks(board, slot);
}

// Whoever saw it, each on his own, leaves half of the doubt that was left. Probers that named it
// often enough for a case are two.
double confidence(const Rules& rules, const Tally& tally) {
  const double views = std::max({static_cast<double>(tally.observers()),
                                 static_cast<double>(std::popcount(tally.kinds)),
                                 tally.losses >= rules.counts.losses ? 2.0 : 0.0});
  return 1 - std::exp2(-views);
}

void open_leaf(Board& board, CauseKind kind, PartId part, std::int64_t now) {
  const Pending* pending = board.waiting(part);
  WEFT_CHECK(pending != nullptr);
  model::Entity entity = board.parts.entity(part);
  if (kind == CauseKind::nic && board.parts.is_cable(part))
    entity = model::entity(board.parts.nic_of(board.parts.cable(part)));
  const std::int64_t onset = std::min(pending->onset(), now);
  const CaseSlot slot = board.open_case(kind, part, entity, onset);
  // Capacity is counted, not inferred.
  board.cases[slot].confidence =
      kind == CauseKind::capacity ? 1 : confidence(board.rules, pending->tally);
  for (const SuspectId suspect : board.suspects.of(part))
    if (board.suspects[suspect].root == entity && board.suspects[suspect].kind == kind) {
      board.cases.name_suspect(slot, suspect);
      for (const PartId other : board.suspects.all(suspect)) board.take(slot, other, Silent::own);
    }
  board.take(slot, part, Silent::own);
  retype(board, board.cases[slot]);
}

void retype(const Board& board, OpenCase& c) {
  const Parts& parts = board.parts;
  const bool is_leaf = c.kind == CauseKind::flap || c.kind == CauseKind::optic ||
                       c.kind == CauseKind::link || c.kind == CauseKind::nic;
  if (is_leaf && parts.is_cable(c.root)) {
    c.kind = leaf_kind(board, c.root, c.tally);
    const NodeId nic = parts.nic_of(parts.cable(c.root));
    c.entity = c.kind == CauseKind::nic ? model::entity(nic) : parts.entity(c.root);
  }
  if (c.kind == CauseKind::congestion && c.tally.focus.valid())
    c.entity = model::entity(parts.nic_of(parts.cable(c.tally.focus)));
  constexpr KindMask power =
      bit(EventKind::power_lost) | bit(EventKind::psu_fail) | bit(EventKind::oob_unreachable);
  if (c.kind == CauseKind::rack && c.tally.has(power)) c.kind = CauseKind::power;
}

}  // namespace weft::operate::triage
