// The state of correlation: what is said of each part, what waits, and the open cases.
#pragma once

#include <cstdint>

#include "base/id.hpp"
#include "operate/triage/commits.hpp"
#include "operate/triage/context.hpp"
#include "operate/triage/footprints.hpp"
#include "operate/triage/leads.hpp"
#include "operate/triage/open_case.hpp"
#include "operate/triage/pending.hpp"

namespace weft::operate::triage {

struct CaseCounts {
  std::uint64_t repeats = 0;    // said before, word for word
  std::uint64_t dismissed = 0;  // evidence too thin for a case
  std::uint64_t cases = 0, merged = 0, moved = 0, split = 0;
  std::uint64_t learned = 0;  // members by learned relations
  std::uint64_t planned = 0;  // effects of orders, and the orders
};

// Kinds of events by what they mean.
struct KindMasks {
  explicit KindMasks(const Rules& rules)
      : down(rules.kinds(Meaning::down)),
        session(rules.kinds(Meaning::session)),
        silence(rules.kinds(Meaning::silence)),
        alarm(down | session | silence | rules.kinds(Meaning::fault)) {}

  KindMask down, session, silence;
  KindMask alarm;  // what makes causes worth weighing
};

struct PartState {
  CaseSlot owner;  // the case that explains what is said of the part
  PendingSlot pending;
  std::int64_t last = 0;  // its own evidence in that case
  bool has_spoken = false, was_down = false, is_clear = false;
};

// Whether a case takes a part that says nothing, too.
enum class Silent : std::uint8_t { leave, own };

// Everything that correlation knows at the moment. Invariants, which only the methods here have to
// keep: `pending` of a part is the slot in `pendings` that names the part, if there is one; its
// `owner` is open and has the part among `owned`; footprints count each slot with an alarm and each
// case that began not long ago. All else may be read and changed by whoever weighs, opens and
// splits cases.
struct Board {
  Board(const Context& context, std::size_t rows);

  // What waits on the part, or nullptr. Valid until something else waits.
  Pending* waiting(PartId part) {
    const PendingSlot slot = states[part].pending;
    return slot.valid() ? &pendings[slot] : nullptr;
  }
  const Pending* waiting(PartId part) const {
    const PendingSlot slot = states[part].pending;
    return slot.valid() ? &pendings[slot] : nullptr;
  }
  // Whether new evidence may still belong to the case; a case over many parts does not stay open
  // for one of them because another one still talks.
  bool is_live(const OpenCase& c, std::int64_t at) const;
  bool is_live_at(PartId part, std::int64_t at) const;
  bool explains(const OpenCase& c, model::EventKind kind) const {
    return (rules.cause(c.kind).explains & bit(kind)) != 0;
  }
  // Consoles of hosts below a rack switch: a dead switch leaves them alone, so the rack may have
  // lost its power.
  bool speaks_of_power(const OpenCase& c, PartId part, KindMask kinds) const {
    return c.kind == CauseKind::rack_device && part != c.root &&
           (kinds & bit(model::EventKind::oob_unreachable)) != 0;
  }

  // Evidence waits on its part.
  void put_aside(const Evidence& evidence, bool is_repeat);
  // Nothing waits on the part any more.
  void close_pending(PartId part);

  CaseSlot open_case(CauseKind kind, PartId root, model::Entity entity, std::int64_t onset);
  // Pending evidence becomes members; later evidence on the part goes to this case.
  void take(CaseSlot slot, PartId part, Silent silent);
  // The lesser case's evidence becomes the greater one's, which counts as opened when the lesser
  // was.
  void absorb(CaseSlot slot, CaseSlot lesser);
  // The case is no more, and what it held belongs to nobody.
  void release(CaseSlot slot);
  void add_member(OpenCase& c, const Observation& said) const {
    c.members.push_back(said);
    thin(c, rows_max);
  }

  // What does not change.
  const Parts& parts;
  const Suspects& suspects;
  const Rules& rules;
  const LearnedRelations& learned;
  const KindMasks kinds;
  const std::size_t rows_max;  // see Correlator::Bounds

  Column<PartId, PartState> states;
  Pendings pendings;
  OpenCases cases;
  Footprints footprints;
  Commits commits;
  LeadHistory leads;
  bool is_splitting = false;
  CaseCounts counts;

 private:
  void own(CaseSlot slot, PartId part);
};

}  // namespace weft::operate::triage
