// The faults of a lab: put in, listed, healed. What is written down is the truth that detection is
// scored against.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/lab/fault_spec.hpp"
#include "adapt/lab/injector.hpp"
#include "adapt/lab/lab.hpp"
#include "base/result.hpp"

namespace weft::adapt::lab {

inline constexpr std::size_t fault_records_max = 100'000;  // of one lab, healed ones included
inline constexpr std::size_t faults_at_once_max = 1'000;

enum class FaultPhase : std::uint8_t {
  injecting,  // written down, perhaps not or half in the kernel (its injector died)
  active,
  over,
};
std::string_view to_text(FaultPhase phase);

struct FaultRecord {
  std::string id;  // "f1"
  FaultSpec spec;
  std::vector<std::string> entities;
  FaultPhase phase = FaultPhase::injecting;
  std::string start, end;  // RFC 3339 in UTC; no end while it lasts
  // What it did, by the injector's own counters: {"packets": 17}. Live, or as of its end.
  std::map<std::string, std::uint64_t> hits;

  std::uint8_t wire_index = 0;       // of its wires, where it has any
  IcmpLimit icmp_before;             // of icmp_ratelimit
  std::vector<std::string> daemons;  // that ran before switch_down
};

// {"id", "kind", "entities", "start", "end", "attrs"} on one line; attrs holds the options as they
// are given, what was hit, and the phase.
std::string truth_line(const FaultRecord& record);

// Puts a fault into a running lab. It is written down before anything is changed, so that heal and
// `down` find it after a crash. Faults stack, each with kernel objects of its own.
// Fails: as find_target; Errc::infeasible where it is there already or another fault holds what it
// needs; Errc::io and Errc::unsupported by the kernel (nothing is left then).
// Cost: 10 to 50 ms; several processes of one machine may call it, one after another.
Result<FaultRecord> inject_fault(const Lab& lab, const FaultSpec& spec);

// Takes out one fault by its id, or "all"; returns the records of those that ended. Interfaces
// that another fault holds down stay down. What is gone already is no failure. Fails:
// Errc::unknown for an id that is not there or over; Errc::io with all that could not be taken
// out, the rest being healed (the fault stays listed then).
Result<std::vector<FaultRecord>> heal_faults(const Lab& lab, std::string_view which);

// All faults ever, by age, with live counters. Flaps that have run their course are over.
Result<std::vector<FaultRecord>> list_faults(const Lab& lab);

}  // namespace weft::adapt::lab
