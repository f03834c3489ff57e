// How each kind of fault gets into the kernel and out again. Internal to the room.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "adapt/lab/fault.hpp"
#include "base/result.hpp"

namespace weft::adapt::lab {

enum class Means : std::uint8_t {
  filter,   // an nft table per namespace
  wire,     // a process per direction
  shaper,   // a token bucket per direction
  carrier,  // one end set down
  flapper,  // a process that does so again and again
  route,
  daemon,
  power,  // all of a switch
  icmp,
};
Means means_of(const FaultSpec& spec);

// Whether an interface has to stay down, for another fault's sake.
using HeldDown = std::function<bool(const FaultSite&)>;

// Finds out what the way back will need, before anything is changed.
Status prepare(const Lab& lab, const FaultTarget& target, FaultRecord& record);
// Does it. Fails as inject_fault, and may leave parts: undo() them.
Status apply(const Lab& lab, const FaultTarget& target, const FaultRecord& record);
// Undoes all of it, or whatever part was done; goes on after a failure and returns the first.
Status undo(const Lab& lab, const FaultTarget& target, const FaultRecord& record,
            const HeldDown& held_down);
// What it has hit so far; empty for means that do not count.
std::map<std::string, std::uint64_t> count_hits(const Lab& lab, const FaultTarget& target,
                                                const FaultRecord& record);
// Whether a process of the fault still runs. Faults without processes have none.
bool has_process(const Lab& lab, const FaultRecord& record);

}  // namespace weft::adapt::lab
