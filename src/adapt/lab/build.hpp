// The part of a lab that lives in the kernel: namespaces, cables, addresses, static routes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "adapt/lab/plan.hpp"
#include "adapt/lab/routes.hpp"
#include "adapt/linux_switch/netlink.hpp"
#include "base/result.hpp"

namespace weft::adapt::lab {

inline constexpr std::string_view management_interface = "mgmt0";

// Makes all namespaces of a plan, with their cables, addresses, permanent neighbours, forwarding
// and hash settings, everything up; hosts with their default routes. Returns what this kernel could
// not do, in words, where the lab works without. Fails: Errc::io; what was made stays. Cost: about
// 2 ms a cable.
Result<std::vector<std::string>> build_nodes(const LabPlan& plan);

// The management network: a namespace with a bridge, and mgmt0 in every switch.
Status build_management(const LabPlan& plan);

// Kernel routes of `nodes` along all shortest paths. `write`: replace on switches that have routes;
// static ones that they should not have any more are deleted then.
Status write_static_routes(const LabPlan& plan, const Routes& routes,
                           const std::vector<LabNodeId>& nodes, RouteWrite write);

// Default routes of all hosts, past drained switches where a NIC has another.
Status write_host_routes(const LabPlan& plan, const Without& without);

// Routes of `routes` that the kernel does not have with exactly these next hops, over `nodes`;
// those that have all are taken out of `nodes`. Fails: Errc::io.
Result<std::size_t> count_missing_routes(const LabPlan& plan, const Routes& routes,
                                         std::vector<LabNodeId>& nodes);

// After the interface was down: neighbour and, for `routes` other than null, the switch's routes.
Status restore_end(const LabPlan& plan, EndId end, const Routes* routes, const Without& without);

}  // namespace weft::adapt::lab
