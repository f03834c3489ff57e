// Fabrics as topology files of containerlab (https://containerlab.dev/manual/topo-def-file).
#pragma once

#include <string>

#include "base/result.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::model {

// Switches and hosts with a cable between them, as nodes of kind linux; a NIC is an interface of
// its host, or a node where it has no host. Interfaces are eth1, eth2, ... in order of cables, as
// eth0 is containerlab's own. Names keep letters, digits and "-"; other bytes become "-". Rates,
// latencies and scopes have no place in the format. Cost: O(nodes + links). Fails:
// Errc::unsupported where two names become the same, or where there is no cable.
Result<std::string> to_containerlab(const Fabric& fabric);

}  // namespace weft::model
