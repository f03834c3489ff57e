// What a service made of each fault of a simulated network.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "adapt/sim/operations.hpp"
#include "base/json_text.hpp"
#include "base/result.hpp"
#include "port/store.hpp"

namespace weft::app {

struct FaultOutcome {
  std::string kind, part;  // of the catalogue; in the naming grammar
  Timestamp start;
  std::optional<Timestamp> end;
  // Since the start: the first case whose root is the part, or lies in it or around it; the first
  // drain of such a part; its return.
  std::optional<std::int64_t> case_ns, drain_ns, return_ns;
  std::string cause, root;  // of that case as it stands in the end
  bool is_right = false;    // root and kind are those that the catalogue says
  bool needs_case = true;   // the catalogue says that it ends in one
};
struct Outcomes {
  std::vector<FaultOutcome> faults;  // in the order of their start
  std::uint64_t cases = 0;           // that stand in the end
  std::uint64_t cases_false = 0;     // about no fault
  std::uint64_t drains = 0;
  std::uint64_t drains_healthy = 0;  // of parts that no fault was on
  std::uint64_t still_drained = 0;   // at the end
};

// Fails: as the store does; Errc::parse for documents that are no cases. Cost: faults x cases.
Result<Outcomes> outcomes(const model::Fabric& fabric, const adapt::sim::Operations& net,
                          port::Store& store);
std::string to_table(const Outcomes& outcomes);
JsonObject to_json(const Outcomes& outcomes);

}  // namespace weft::app
