// Taking switches and cables of a running lab out of service, without losing a packet.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "adapt/lab/lab.hpp"
#include "base/result.hpp"

namespace weft::adapt::lab {

enum class DrainOutcome : std::uint8_t { changed, was_so };

// Drains a switch or a cable between switches. With FRRouting: asks the neighbours to prefer other
// paths (graceful shutdown, RFC 8326), waits until no packet between NICs can meet it by the
// kernels' routes, gives packets under way 1.2 s where a session is up, then shuts the sessions
// down, on the switch and on its neighbours. A switch whose daemon does not answer is drained by
// its neighbours alone, at once. With static routes: the others' routes are replaced one by one.
// Waits until the kernels of all other switches have exactly the shortest paths that remain; where
// other faults are at work, only until nothing is worse than before. Updates `lab` and its files.
// Fails: Errc::unknown; Errc::infeasible where hosts would be cut off (nothing is changed then);
// Errc::io where traffic has not moved after 5 s and 0.1 s a switch (it is taken back then).
Result<DrainOutcome> drain(Lab& lab, std::string_view target);
// The way back: sessions first, traffic when the switch has all of its own routes. Fails: as above;
// Errc::io also where a daemon that has to be told does not answer.
Result<DrainOutcome> undrain(Lab& lab, std::string_view target);

}  // namespace weft::adapt::lab
