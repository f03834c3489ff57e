// What the machine may do about which problem, and what it must never do: a file of YAML.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "model/events/case.hpp"

namespace weft::operate::repair {

using model::CauseKind;

// The parts that the time to repair is split into.
enum class TtrPart : std::uint8_t { detect, triage, drain, repair, verify, rma };
inline constexpr std::size_t ttr_part_count = 6;
std::string_view to_text(TtrPart part);

enum class Mode : std::uint8_t {
  observe,    // only written down
  propose,    // people are told what would be done, and do it by their own means
  approve,    // done when a person has agreed
  automatic,  // done
};
std::string_view to_text(Mode mode);  // "observe", "propose", "approve", "auto"

// What is taken out of service: nothing, the cable that is the root, or the switch that is the root
// or holds it.
enum class DrainTarget : std::uint8_t { none, cable, device };
// What becomes of a drain whose cost to the running jobs cannot be predicted.
enum class Forecasting : std::uint8_t {
  none,      // not asked for
  advisory,  // goes on
  required,  // is refused
};

struct Problem {
  Mode mode = Mode::propose;
  double confidence = 0;       // cases with less are watched
  bool acts_early = false;     // on cases that are still provisional
  bool counts_as_gone = true;  // capacity behind a suspected part is not relied on
  DrainTarget drain = DrainTarget::none;
  Forecasting forecast = Forecasting::required;
  std::int64_t soak_ns = 0;    // returned under watch for so long
  std::uint64_t packets = 0;   // of test traffic that have to cross it
  std::uint64_t lost_max = 0;  // of them
  double rate_min = 0;         // share of its rate that it has to run at
  std::int64_t quiet_ns = 0;   // and nothing is said of it for so long meanwhile
  bool checks_first = true;    // before a drain, where only probes report loss
  std::array<std::int64_t, ttr_part_count> slo_ns{};  // each part's objective
};

struct GuardPolicy {
  double rack_share = 0;    // of the uplink capacity of each first switch and each rack
  double plane_share = 0;   // of that of each rack in each plane, where it has several
  double demand_share = 0;  // uplinks of a rack keep so much of what its NICs can send
  // Parts out of service at once by the machine's hands.
  std::uint32_t total_max = 0, zone_max = 0, rack_max = 0, role_max = 0;
  std::uint32_t drains_per_hour = 0;
  std::uint32_t part_drains_per_hour = 0;  // of one part
  double slowdown_max = 1;                 // of any running job, as forecast
  std::uint32_t stalled_max = 0;           // jobs that would stall
  bool undrain_when_killed = false;
  bool undrain_when_frozen = true;
  std::uint32_t offender_repairs = 0;  // a part repaired so often within so long is not returned
  std::int64_t offender_ns = 0;
};

struct Timing {
  std::int64_t confirm_every_ns = 0;  // an act's effect is looked for so often
  std::int64_t confirm_ns = 0;        // and so long, before it is tried again
  std::int64_t order_ns = 0;          // an order without a result is taken for lost
  std::int64_t blocked_ns = 0;        // a refused drain is tried again
  std::int64_t snapshot_ns = 0;       // a drain waits so long for the snapshot
  std::int64_t recheck_ns = 0;        // test traffic over drained parts, doubling
  std::int64_t recheck_max_ns = 0;    // up to this
  std::int64_t failed_look_ns = 0;    // what has failed is looked at so often
  std::int64_t notice_ns = 0;         // a notice is sent again, doubling
  std::int64_t early_ns = 0;          // a provisional case has to last so long
  std::int64_t short_ns = 0;          // capacity below its reserve has to last so long
  std::int64_t grace_ns = 0;          // evidence so soon after a return is of the return
  // A part that fails again within `again` of a return is kept out of service for `hold` at least,
  // doubling with each such return up to `hold_max`.
  std::int64_t again_ns = 0, hold_ns = 0, hold_max_ns = 0;
  std::int64_t remember_ns = 0;  // what is over is forgotten
};

struct Retries {
  std::uint32_t acts = 0;       // tries of one action
  std::uint32_t notices = 0;    // of one notice
  std::uint32_t checks = 0;     // checks in a row that give no result
  std::uint32_t rollbacks = 0;  // of one repair; then the part is to be replaced
};

// Times that are kept are added to and subtracted from each other: a bound that cannot overflow,
// some 126 years from 1970. Fails beyond it.
inline constexpr std::int64_t time_ns_max = 4'000'000'000'000'000'000;
Status check_range(Timestamp t, const Where& where = {});

inline constexpr std::size_t freezes_max = 1'000;
// No new drains in [from, until).
struct Freeze {
  Timestamp from, until;
  std::string why, who;
  friend bool operator==(const Freeze&, const Freeze&) = default;
};

struct Policy {
  std::array<Problem, model::cause_kind_count> problems{};
  GuardPolicy guards;
  Timing timing;
  Retries retries;
  std::vector<Freeze> freezes;

  const Problem& problem(CauseKind kind) const { return problems[static_cast<std::size_t>(kind)]; }
};

// The text that default_policy() reads: every key with its value, and why.
std::string_view default_policy_text();
Policy default_policy();

// `config` laid over the default policy key by key, and read. A problem type's keys are laid over
// those of `defaults`. Fails: every error found, each with its position; unknown keys and problem
// types are errors.
Result<Policy> read_policy(const Config& config);

}  // namespace weft::operate::repair
