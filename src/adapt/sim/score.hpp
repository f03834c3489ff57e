// How good cases are, held against the truth of a storm.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/sim/problem_type.hpp"
#include "base/line_reader.hpp"
#include "base/result.hpp"
#include "model/events/episode.hpp"

namespace weft::adapt::sim {

// Which fault each record is of, by record id; "" for the background.
struct StormLabels {
  std::vector<std::string> record, fault;
};
struct ScoredCase {
  std::string id, kind, entity;
  std::vector<std::string> members;  // record ids
};

// JSON lines {"record": ID, "fault": ID or null}. Fails with up to 100 errors by line.
Result<StormLabels> read_labels(LineReader& lines);
// JSON lines of cases: {"id", "cause": {"kind", "entity"}, "members": [{"record": ID}, ...]}; a
// member may also be the id alone. The whole text: a case of thousands of members is a long line.
// Fails with up to 100 errors by line.
Result<std::vector<ScoredCase>> read_cases(std::string_view text, const std::string& file);

// What is told apart and why: docs/storm.md, "Scores".
struct Score {
  struct Agreement {
    double precision = 0, recall = 0;
    double f1() const {
      return precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
    }
  };
  struct PerType {
    std::uint32_t faults = 0, lost = 0, splits = 0;
    double macro_f1 = 0, top1 = 0;
  };

  std::uint64_t records = 0, fault_records = 0;
  std::uint32_t faults = 0;         // that at least one record speaks of
  std::uint32_t silent_faults = 0;  // that none does: not scored
  std::uint32_t cases = 0;
  std::uint32_t false_cases = 0;       // cases mostly of background
  std::uint32_t splits = 0;            // cases beyond the first of one fault
  std::uint32_t lost = 0;              // faults of which no case is
  std::uint64_t doubly_claimed = 0;    // members that an earlier case has already: not counted
  std::uint64_t unassigned = 0;        // records of faults in no case
  std::uint64_t background_taken = 0;  // records of the background in cases
  double macro_f1 = 0;                 // mean over faults of the best case's F1
  double top1 = 0, top1_entity = 0, top1_kind = 0;
  double compression = 0;  // fault records to a case
  Agreement pairwise, b_cubed;
  std::array<PerType, problem_type_count> types;
  std::vector<std::string> wrong;  // faults whose cause was not found, one line each
};

// Fails: Errc::unknown for members or labels that name no record or fault; Errc::value for records
// that are labelled twice. Cost: O(records log records).
Result<Score> score_cases(const std::vector<model::Episode>& truth, const StormLabels& labels,
                          const std::vector<ScoredCase>& cases);

std::string to_table(const Score& score);
std::string to_json(const Score& score);

}  // namespace weft::adapt::sim
