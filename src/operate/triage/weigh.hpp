// Which cause explains what waits on a part: every suspect whose footprint holds the part is
// weighed, and the cheapest story wins. Nothing here changes the board.
#pragma once

#include <cstdint>
#include <optional>

#include "operate/triage/board.hpp"

namespace weft::operate::triage {

struct Verdict {
  CauseKind kind = CauseKind::unknown;
  SuspectId suspect;  // none for a single part
  double score = -1;
  double runner_up = 0;

  bool is_set() const { return score >= 0; }
};

// The best suspect for what waits on the part, if any is worth its price.
// Cost: the footprints of the suspects that enough alarms speak for.
Verdict weigh(const Board& board, const Pending& pending);
// What the evidence on the part amounts to when nothing larger explains it.
std::optional<CauseKind> leaf(const Board& board, const Pending& pending);
// The same of a cable that is known to be in trouble.
CauseKind leaf_kind(const Board& board, PartId cable, const Tally& tally);
// Of what explains, the most that one kind is worth when it is said of the root itself.
double direct_worth(const CauseRule& rule, KindMask kinds);
// Nats to say which of the ports they were: one by one, or run by run.
double price_of_ports(double spoken, double ports, double runs);

// Whether its carrier was lost in the same blow.
bool speaks_at_once(const Board& board, PartId part, std::int64_t onset);
// A host that answers nobody.
bool is_silenced(const Board& board, PartId part, std::int64_t onset);
// Whether the case of a part would be swallowed by the suspect: a lesser cause inside its
// footprint that began with it.
bool is_lesser(const Board& board, const OpenCase& c, PartId part, SuspectId suspect,
               std::int64_t onset);
// The case of a lesser cause inside `whole` that began in the same blow, and holds the part; or an
// invalid slot.
CaseSlot lesser_at_once(const Board& board, PartId part, SuspectId whole, std::int64_t onset);

}  // namespace weft::operate::triage
