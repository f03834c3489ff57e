// The account of repairs: how long each part of them took, for which problems, of which parts.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "model/events/episode.hpp"
#include "operate/repair/policy.hpp"
#include "operate/repair/ticket.hpp"
#include "port/store.hpp"

namespace weft::operate::repair {

struct RepairRow {
  std::string repair, case_id;
  CauseKind kind = CauseKind::unknown;
  std::string entity;  // the part, or the root where nothing is drained; "" for none
  bool has_part = false;
  Timestamp opened;
  std::optional<Timestamp> ended;
  Stage stage = Stage::detected;
  Resolution resolution = Resolution::none;
  bool was_drained = false, is_offender = false;
  std::uint32_t rollbacks = 0;
  // Of the stages left so far; they add up to the time from the first evidence to the return, for
  // what was never rolled back.
  std::array<std::int64_t, ttr_part_count> spent_ns{};
  friend bool operator==(const RepairRow&, const RepairRow&) = default;
};

// In order of opening, then of id.
std::vector<RepairRow> ledger_rows(const model::Fabric& fabric,
                                   const std::map<std::string, Ticket, std::less<>>& tickets);
// The same from the audit log alone, entries ascending; what is not of repairs is passed over.
// Fails: Errc::parse with the entry's number.
Result<std::vector<RepairRow>> ledger_rows(std::span<const port::AuditEntry> audit);

// Seconds of repairs that are over, but for what was only watched, healed by itself or moved to
// another part.
struct Spread {
  std::uint64_t count = 0;
  double mean_s = 0, p50_s = 0, p90_s = 0, max_s = 0;  // nearest rank
};

struct ProblemAccount {
  CauseKind kind = CauseKind::unknown;
  std::uint64_t repairs = 0, under_way = 0, drained = 0, rollbacks = 0;
  std::array<std::uint64_t, resolution_count> resolutions{};  // of those that are over
  std::array<Spread, ttr_part_count> parts{};                 // where the part took place
  std::array<std::uint64_t, ttr_part_count> attained{};       // within their objective
  std::array<std::int64_t, ttr_part_count> slo_ns{};
  Spread whole;   // time to repair: the sum of the parts
  Spread healed;  // the same sum of what healed by itself, which nobody repaired
};

struct Offender {
  std::string entity;
  std::uint64_t repairs = 0, no_fault_found = 0;  // that were drained
  Timestamp first, last;
};

struct RepairStats {
  std::vector<ProblemAccount> problems;            // those with a repair, in order of CauseKind
  std::vector<Offender> offenders;                 // drained at least twice, worst first
  std::uint64_t returned = 0, no_fault_found = 0;  // over after a drain; of which

  double no_fault_found_ratio() const {
    return returned == 0 ? 0 : static_cast<double>(no_fault_found) / static_cast<double>(returned);
  }
};
// Of rows opened in [from, until). Cost: O(rows log rows).
RepairStats repair_stats(std::span<const RepairRow> rows, const Policy& policy, Timestamp from,
                         Timestamp until);

std::string to_json(const RepairStats& ledger);   // one object, on one line
std::string to_table(const RepairStats& ledger);  // three tables for people

// A repair as `weft sli` takes causes: the fault from its first evidence until the part was back or
// the case closed, and the drain, of kind "drain", while it was out. Attributes: "repair",
// "resolution", "stage". None for a ticket without a part and without a root.
std::vector<model::Episode> episodes_of(const model::Fabric& fabric, const Ticket& ticket);

}  // namespace weft::operate::repair
