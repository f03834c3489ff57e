// The steps of a drain in a lab with FRRouting: orders to daemons, and waiting for the kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "adapt/lab/drain_target.hpp"
#include "adapt/lab/frr.hpp"
#include "adapt/lab/lab.hpp"
#include "adapt/lab/routes.hpp"
#include "base/result.hpp"

namespace weft::adapt::lab {

// What the kernels should come to.
struct RouteGoal {
  const Routes& exact;               // all shortest paths that remain
  std::vector<LabNodeId> switches;   // whose routes are looked at
  const DrainTarget* avoid;          // what no traffic may cross; nullptr: nothing
  std::size_t dead_ends_max;         // of Forwarding; as many as there were before
  std::vector<LabNodeId> must_know;  // switches that need as many routes as any has
};
// Waits for the exact routes, and after a second for no more than what the others ask: with other
// faults about, the exact ones may never come. Fails: Errc::io after 5 s and 0.1 s a switch.
Status await_routes(const Lab& lab, const RouteGoal& goal);

// Switches whose routes must be right: drained ones are not asked.
std::vector<LabNodeId> open_switches(const Lab& lab, const Without& without);
// The target itself, or the switches at its ends.
std::vector<LabNodeId> own_switches(const Lab& lab, const DrainTarget& target);

// Whether the target's own daemon answers; of a cable, one of the two.
enum class Answers : std::uint8_t { no, yes };
Answers answers(const Lab& lab, const DrainTarget& target);
// Whether a session over the target is up at any end that answers.
Answers has_sessions(const Lab& lab, const DrainTarget& target);

// Whom an order must reach: all; whoever answers; or, of a switch that does not, its neighbours.
enum class Reach : std::uint8_t { all, who_answers, neighbours };
// Fails: Errc::io where daemons do not answer that have to, Errc::value with a daemon's words.
Status tell(const Lab& lab, const DrainTarget& target, DrainStep step, Reach reach);

// Until a session is up over the cable, or for three seconds.
void await_session(const Lab& lab, const DrainTarget& target);

}  // namespace weft::adapt::lab
