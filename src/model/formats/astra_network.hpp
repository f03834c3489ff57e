// ASTRA-sim's network configuration (analytical backends) as a fabric.
#pragma once

#include <string>
#include <string_view>

#include "base/config.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::model {

// Whether a YAML document is one: it has "topology" and "npus_count".
bool is_astra_network(const Config& document);

// Parallel lists, dimension 0 innermost: `topology` Ring | Switch | FullyConnected, `npus_count`,
// `bandwidth` of a link and direction in units of 2^30 bytes per second (its "GB/s"), `latency` of
// a link in ns. NPU r is gpu:r, alone in host:r with nic:r.
//   - Ring: a cable between neighbours; FullyConnected: between all pairs; Switch: from each NPU to
//     a switch "switch:k" of its group.
//   - NICs do not forward, so each stands on a switch "npu:r" of its own, which holds the cables of
//     all dimensions. Inside that, and inside hosts, nothing is slower than all cables together and
//     no time passes. One Switch dimension alone needs none of it: its NICs stand on the switch.
//   - Messages take shortest paths over all dimensions, where ASTRA-sim goes dimension by
//   dimension.
// Fails: every error found, with its position: unknown keys, lists of different length, counts,
// rates and latencies out of range, more GPUs or links than generators may make.
Result<Fabric> build_astra_network(const Config& document);
Result<Fabric> read_astra_network(std::string_view text, const std::string& file);

}  // namespace weft::model
