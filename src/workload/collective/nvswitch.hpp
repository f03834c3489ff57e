// The NVSwitches behind a host's GPUs, for reduction and multicast inside them.
#pragma once

#include <string_view>
#include <vector>

#include "workload/collective/algorithm.hpp"

namespace weft::workload {

// A switch and the share of a GPU's NVLink rate that leads to it.
struct SwitchShare {
  NodeId node;
  double share;
  friend bool operator==(const SwitchShare&, const SwitchShare&) = default;
};

// In id order. Empty unless every rank of the host reaches the same switches with the same shares.
std::vector<SwitchShare> nvswitches_of(const Job& job, std::uint32_t host);
// Of every host. Fails: Errc::infeasible naming the first host that has none.
Result<std::vector<std::vector<SwitchShare>>> nvswitches(const Job& job,
                                                         std::string_view algorithm);

enum class Direction : std::uint8_t { to_switches, from_switches };
// `bytes` between a GPU and its switches, divided among them; `level`: Chain::levels.
void append_nvlink(Chain& chain, NodeId gpu, const std::vector<SwitchShare>& switches, double bytes,
                   Direction direction, std::uint32_t level);

}  // namespace weft::workload
