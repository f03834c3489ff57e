// Cases of a change that was pushed to devices, and the sessions that ended with it.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <ranges>
#include <utility>

#include "base/check.hpp"
#include "operate/triage/open.hpp"

namespace weft::operate::triage {
namespace {

// The commit on either end of the cable that may have done it: one that has already done so
// elsewhere, else the nearest in time, those that came after it last.
const Commit* find_commit(const Board& board, PartId cable, std::int64_t onset) {
  const model::Fabric& fabric = board.parts.fabric();
  const Rules::Timing& timing = board.rules.timing;
  const model::LinkId link = forward(board.parts.cable(cable));
  const PartId a = board.parts.of(fabric.from(link)), b = board.parts.of(fabric.to(link));
  const auto is_known = [&](const Commit& commit) {
    return commit.change != 0 && std::ranges::any_of(board.cases.by_number(), [&](auto& open) {
             const OpenCase& c = board.cases[open.second];
             return c.kind == CauseKind::config && c.change == commit.change &&
                    board.is_live(c, onset);
           });
  };
  const Commit* best = nullptr;
  auto best_rank = std::pair(false, forever);
  for (const Commit& commit : board.commits.rows()) {
    if (commit.device != a && commit.device != b) continue;
    const std::int64_t since = onset - commit.at;
    if (std::abs(since) > timing.change_ns) continue;
    const bool is_after = since < -timing.at_once_ns;
    const auto rank =
        std::pair(!is_known(commit), std::abs(since) + (is_after ? timing.change_ns : 0));
    if (best != nullptr && rank >= best_rank) continue;
    best = &commit;
    best_rank = rank;
  }
  return best;
}

// Whether a case of a change may hold what began at `onset`, by the time alone.
bool is_close(const Board& board, const OpenCase& c, std::int64_t onset) {
  const Rules::Timing& timing = board.rules.timing;
  return std::abs(onset - c.onset) <= timing.change_ns + timing.together_ns;
}

// A case that was put down to another change, though all of its devices took this one as well.
CaseSlot rename_config(Board& board, std::uint64_t change, std::int64_t onset) {
  for (const auto& [number, slot] : board.cases.by_number() | std::views::reverse) {
    OpenCase& c = board.cases[slot];
    if (c.kind != CauseKind::config || !board.is_live(c, onset) || !is_close(board, c, onset))
      continue;
    const bool took_it = std::ranges::all_of(c.owned, [&](PartId part) {
      return !board.parts.is_node(part) || board.commits.has(part, change);
    });
    if (!took_it) continue;
    c.change = change;
    ++board.counts.moved;
    return slot;
  }
  return {};
}

// The live case of that change, or of one that is not known yet; else a new one.
CaseSlot config_case(Board& board, const Commit* commit, std::int64_t onset, PartId device) {
  CaseSlot nameless;
  for (const auto& [number, slot] : board.cases.by_number() | std::views::reverse) {
    const OpenCase& c = board.cases[slot];
    if (c.kind != CauseKind::config || !board.is_live(c, onset)) continue;
    if (commit != nullptr && commit->change != 0 && c.change == commit->change) return slot;
    const bool may_be = commit == nullptr || commit->change == 0 || c.change == 0;
    if (may_be && is_close(board, c, onset) && !nameless.valid()) nameless = slot;
  }
  if (!nameless.valid() && commit != nullptr)
    nameless = rename_config(board, commit->change, onset);
  if (!nameless.valid())
    nameless = board.open_case(CauseKind::config, device, board.parts.entity(device), onset);
  OpenCase& c = board.cases[nameless];
  if (commit != nullptr && c.change == 0) c.change = commit->change;
  return nameless;
}

// The live case of a change that has taken other sessions of this cable's lower switch.
CaseSlot config_nearby(const Board& board, PartId cable, std::int64_t onset) {
  const model::NodeId device = board.parts.lower_switch(board.parts.cable(cable));
  std::map<CaseSlot, std::uint32_t> taken;
  for (const model::LinkId link : board.parts.fabric().out(device)) {
    const CaseSlot owner = board.states[board.parts.of(cable_of(link))].owner;
    if (!owner.valid() || board.cases[owner].kind != CauseKind::config) continue;
    const OpenCase& c = board.cases[owner];
    const bool is_near = std::abs(c.onset - onset) <= 2 * board.rules.timing.change_ns;
    if (is_near && board.is_live(c, onset) && ++taken[owner] >= 2) return owner;
  }
  return {};
}

// What else of the device waits, and ended by policy.
void take_sessions(Board& board, CaseSlot slot, PartId device) {
  board.take(slot, device, Silent::own);
  for (const model::LinkId out : board.parts.fabric().out(board.parts.node(device))) {
    const PartId other = board.parts.of(cable_of(out));
    const Pending* pending = board.waiting(other);
    if (pending == nullptr || pending->tally.has(board.kinds.down)) continue;
    if (pending->tally.policies > 0) board.take(slot, other, Silent::leave);
  }
}

}  // namespace

bool open_config(Board& board, PartId cable) {
  const Pending* pending = board.waiting(cable);
  WEFT_CHECK(pending != nullptr && board.parts.is_cable(cable));
  const std::int64_t onset = pending->onset();
  const Commit* commit = find_commit(board, cable, onset);
  const bool has_cause = pending->tally.policies > 0;
  const bool follows = commit != nullptr && (pending->tally.reasons == 0 || commit->is_taken) &&
                       onset - commit->at >= -board.rules.timing.at_once_ns;
  if (!has_cause && !follows) {
    const CaseSlot nearby = config_nearby(board, cable, onset);
    if (nearby.valid()) board.take(nearby, cable, Silent::own);
    return nearby.valid();
  }
  const PartId device = commit != nullptr
                            ? commit->device
                            : board.parts.of(board.parts.lower_switch(board.parts.cable(cable)));
  const CaseSlot slot = config_case(board, commit, onset, device);
  OpenCase& c = board.cases[slot];
  c.confidence = std::max(c.confidence, commit == nullptr ? 0.5 : has_cause ? 0.95 : 0.7);
  if (c.change != 0) board.commits.take(c.change, c.members);
  board.take(slot, cable, Silent::own);
  if (board.parts.is_node(device)) take_sessions(board, slot, device);
  return true;
}

}  // namespace weft::operate::triage
