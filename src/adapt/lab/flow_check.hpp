// Packets of given flows over single cables of a lab: what only some 5-tuples meet shows on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "adapt/lab/plan.hpp"
#include "base/result.hpp"
#include "port/actuator.hpp"

namespace weft::adapt::lab {

struct FlowCheckOptions {
  std::size_t packets_each = 20;  // of a flow
  std::uint16_t responder_port = 8620;
};

// Sends frames with the addresses, ports and class of each flow over its link, by a packet socket
// at the sending end, and counts them at the other. Their Ethernet address belongs to nobody, so
// that the receiving switch neither forwards nor answers them. It works on what is drained and on
// what carries traffic. Flows that the lab does not know are left out.
// Fails: Errc::io where a namespace or socket is not to be had; what the kernel will not send is
// lost. Cost: 0.1 to 0.5 s.
Result<port::Check> check_flows(const model::Fabric& fabric, const LabPlan& plan,
                                std::span<const port::Flow> flows,
                                const FlowCheckOptions& options = {});

}  // namespace weft::adapt::lab
