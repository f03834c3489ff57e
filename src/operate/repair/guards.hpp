// Guards: each may refuse a drain, and says in words why, with its numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/timestamp.hpp"
#include "model/events/entity.hpp"
#include "model/fabric/fabric.hpp"
#include "operate/repair/policy.hpp"
#include "operate/repair/reserve.hpp"
#include "operate/repair/ticket.hpp"

namespace weft::operate::repair {

struct Refusal {
  std::string guard;  // "capacity", "isolation", "blast radius", ...
  std::string why;
  std::optional<Timestamp> until = {};  // it certainly holds so long
};
using Verdict = std::optional<Refusal>;  // none: no objection

// A drain of the last hour.
struct PastDrain {
  Timestamp t;
  Entity part;
};

// All that guards look at. What is pointed to outlives it.
struct Situation {
  const model::Fabric* fabric = nullptr;
  const Reserve* reserve = nullptr;
  const GuardPolicy* policy = nullptr;
  Timestamp now;
  std::vector<Entity> held;  // out by our hands, in parallel drains too, without the part asked for
  std::vector<Entity> suspected;  // or out by others' hands
  std::vector<PastDrain> drains;  // of the last hour, ascending
  std::vector<Freeze> freezes;
  bool is_killed = false;
};

// What a row has to keep, in bit/s.
double needed_bps(const GuardPolicy& policy, const Uplinks& row);
// Whether it keeps less.
bool is_short(const GuardPolicy& policy, const Uplinks& row);
// The first four, and how many more.
std::string names(const model::Fabric& fabric, std::span<const Entity> parts);

// Kill switch on.
Verdict guard_kill_switch(const Situation& s);
// Inside a freeze window.
Verdict guard_freeze(const Situation& s);
// Drains of the last hour.
Verdict guard_rate(const Situation& s);
// The same of this part alone.
Verdict guard_part_rate(const Situation& s, const Entity& part);
// Parts out at once: in all, by zone, by rack, by role (of a cable: the roles at its ends).
Verdict guard_blast_radius(const Situation& s, const Entity& part);
// Every first switch, rack, and rack within a plane keeps its share of uplinks, or loses none of
// it. Suspected parts count as gone.
Verdict guard_capacity(const Situation& s, const Entity& part);
// No NIC, and so no host and no rack, loses its last way into the network.
Verdict guard_isolation(const Situation& s, const Entity& part);
// The jobs stay as fast as the policy wants.
Verdict guard_forecast(const GuardPolicy& policy, const Forecast& forecast);

// All of them but the forecast, cheapest first; the first refusal, or all of them.
Verdict first_refusal(const Situation& s, const Entity& part);
std::vector<Refusal> all_refusals(const Situation& s, const Entity& part);

}  // namespace weft::operate::repair
