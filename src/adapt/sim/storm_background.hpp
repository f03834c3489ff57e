// What is said on any day, without a fault behind it. Internal to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "adapt/sim/storm_plan.hpp"
#include "adapt/sim/storm_scripts.hpp"
#include "adapt/sim/storm_voice.hpp"

namespace weft::adapt::sim {

// Speaks until `voice` has said `lines` lines. Evidence of the background stays away from what is
// broken at that time, so that its label is beyond doubt. Shares: docs/storm.md, "Background".
void tell_background(const StormContext& context, const StormOptions& options,
                     const std::vector<StormFault>& faults, StormScripts& scripts,
                     StormVoice& voice, std::uint64_t lines);

}  // namespace weft::adapt::sim
