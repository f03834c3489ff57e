// What can be taken out of service, and who keeps traffic off it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/lab/forwarding.hpp"
#include "adapt/lab/lab.hpp"
#include "base/result.hpp"

namespace weft::adapt::lab {

// A switch, or a cable between two.
struct DrainTarget {
  std::string name;
  std::optional<LabNodeId> node;
  std::optional<LabCableId> cable;
};

// Fails: Errc::unknown; Errc::infeasible for hosts and the cables of NICs.
Result<DrainTarget> find_drain_target(const Lab& lab, std::string_view text);

// Ends of cables whose switches speak over the target: both of a cable; of a switch, those of its
// neighbours, for the switch itself may be dead, or come back as if nothing had been.
std::vector<EndId> guarding_ends(const LabPlan& plan, const DrainTarget& target);

bool crosses(const Forwarding& forwarding, const DrainTarget& target);

}  // namespace weft::adapt::lab
