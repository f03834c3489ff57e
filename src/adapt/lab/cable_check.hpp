// Packets over single cables of a lab, from one end to the other and back.
#pragma once

#include <cstddef>
#include <span>

#include "adapt/lab/plan.hpp"
#include "base/result.hpp"
#include "port/actuator.hpp"

namespace weft::adapt::lab {

// Sends `packets_each_way` UDP packets over each of the cables, both ways and side by side, from
// sockets that are bound to its two interfaces: 64 pairs of ports, the classes of service 0, 26 and
// 48 in turn. Nothing is routed, so it works on what is drained. What has not come 0.3 s after the
// last was sent is lost, and so is what the kernel will not send.
// Fails: Errc::io where a namespace or socket is not to be had. Cost: 0.8 s for each 32 cables.
Result<port::Check> check_cables(const LabPlan& plan, std::span<const LabCableId> cables,
                                 std::size_t packets_each_way);

}  // namespace weft::adapt::lab
