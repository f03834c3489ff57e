// What other rules make of the same records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/events/case.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::operate::triage {

using model::Case;

struct CaseChange {
  enum class Kind : std::uint8_t {
    added,      // only with the new rules
    gone,       // only with the old ones
    retraced,   // another cause
    regrouped,  // the same cause with other members
  };
  static constexpr std::size_t none = SIZE_MAX;

  Kind kind;
  std::size_t before = none, after = none;  // into the lists
  std::size_t shared = 0;                   // members that both have
};

// Cases are the same when each has the most members of the other among all. In the order of
// `before`, then what was added; equal cases are left out.
// Cost: O(members log members).
std::vector<CaseChange> diff(const std::vector<Case>& before, const std::vector<Case>& after);

std::string diff_json(const model::Fabric& fabric, const std::vector<Case>& before,
                      const std::vector<Case>& after, const std::vector<CaseChange>& changes);
std::string diff_table(const model::Fabric& fabric, const std::vector<Case>& before,
                       const std::vector<Case>& after, const std::vector<CaseChange>& changes);

}  // namespace weft::operate::triage
