// The rules of triage as data: what each kind of event says, and what each cause costs.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/config.hpp"
#include "base/result.hpp"
#include "model/events/case.hpp"
#include "model/events/event_kind.hpp"

namespace weft::operate::triage {

using model::cause_kind_count;
using model::CauseKind;

// What an event says of the part that it is about.
enum class Meaning : std::uint8_t {
  nothing,     // of no use to triage
  down,        // carrier is lost
  session,     // a routing session is lost
  clear,       // what was down is well again
  soft,        // it works, and badly
  light,       // the same, and it is the optic that says so
  loss,        // probes are lost on it
  silence,     // it answers nobody
  fault,       // the device names its own fault
  change,      // its configuration changed
  congestion,  // queues, marks or pauses
  planned,     // somebody takes it out of service, or back, on purpose
};
inline constexpr std::size_t meaning_count = 12;

// One bit per EventKind.
using KindMask = std::uint64_t;
static_assert(model::event_kind_count <= 64);
constexpr KindMask bit(model::EventKind kind) { return KindMask{1} << static_cast<unsigned>(kind); }

struct EventRule {
  Meaning meaning = Meaning::nothing;
  std::int64_t wait_ns = 0;    // for evidence of other parts, before a cause is sought
  std::int64_t spread_ns = 0;  // of a poll: it happened at any time in so long before
};

struct CauseRule {
  double price = 0;   // of the assumption that it happened
  double silent = 0;  // for each part that should speak and does not
  KindMask explains = 0;
  KindMask expects = 0;  // what a part that should speak says
  KindMask doubts = 0;   // it explains them, and yet they speak for a lesser cause inside it
  std::array<double, model::event_kind_count> direct{};  // for what is said of the root itself
};

struct Rules {
  struct Timing {
    std::int64_t lateness_ns = 0;    // a record may come so much behind the newest
    std::int64_t together_ns = 0;    // effects of one cause begin so near to each other
    std::int64_t at_once_ns = 0;     // the same of what dies in one blow
    std::int64_t spread_ns = 0;      // sessions that a control plane lets die do so within so long
    std::int64_t lesser_ns = 0;      // a case that began so near to a greater one is part of it
    std::int64_t reboot_ns = 0;      // whoever closes his sessions goes down within so long
    std::int64_t blip_ns = 0;        // a single down and up is held so long
    std::int64_t soft_ns = 0;        // and single bit errors, light levels
    std::int64_t cleared_ns = 0;     // a part is done with so long after it is well again
    std::int64_t relapse_ns = 0;     // the same of a link, a NIC or a host
    std::int64_t silent_ns = 0;      // a case that has been silent so long waits for recovery only
    std::int64_t unrepaired_ns = 0;  // and is closed when it has been so for so long
    std::int64_t congested_ns = 0;   // the same of congestion
    std::int64_t change_ns = 0;      // a change acts within so long
  };
  // Clocks, judged record by record: event time further from the time of receipt is not believed,
  // and replaced by that time less the usual delay.
  struct Clock {
    std::int64_t behind_ns = 0, ahead_ns = 0, delay_ns = 0;
  };
  struct Cards {
    std::uint32_t ports = 0;  // per line card; switches with no more than that have none
  };
  // So many records make a case of their own.
  struct Counts {
    std::uint32_t flaps = 0, soft = 0, losses = 0, silences = 0, faults = 0, congestion = 0,
                  part = 0, racks = 0;
  };

  double gain = 0;  // for each part whose evidence a cause explains
  Timing timing;
  Clock clock;
  Cards cards;
  Counts counts;
  std::array<EventRule, model::event_kind_count> events{};
  std::array<CauseRule, cause_kind_count> causes{};

  const EventRule& event(model::EventKind kind) const {
    return events[static_cast<std::size_t>(kind)];
  }
  const CauseRule& cause(CauseKind kind) const { return causes[static_cast<std::size_t>(kind)]; }
  // All kinds that mean this.
  KindMask kinds(Meaning meaning) const;
};

// The text that default_rules() reads: every key with its value, and why.
std::string_view default_rules_text();
Rules default_rules();

// `config` laid over the default rules key by key, and read. Fails: every error found, each with
// its position; unknown keys, kinds and causes are errors.
Result<Rules> read_rules(const Config& config);

}  // namespace weft::operate::triage
