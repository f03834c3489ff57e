// Rings over GPUs that are cabled one to each other, without an NVSwitch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workload/collective/layout.hpp"

namespace weft::workload {

// Whether each two of them have a cable of their own.
bool is_mesh(const model::Fabric& fabric, std::span<const model::NodeId> gpus);

// Rings over `members` places, number 0 to mesh_ring_count() - 1, that together use each cable of a
// full mesh equally often in each direction: one of them would leave most cables idle. For 3 to 8
// places; otherwise there is one ring, {0, 1, ...}. Cost: O(members).
std::uint32_t mesh_ring_count(std::uint32_t members);
std::vector<std::uint32_t> mesh_ring(std::uint32_t members, std::uint32_t number);

// The host's ranks in the order in which a channel passes them, whichever is first: as its members
// are; over a mesh, in one of its rings, so that the channels of each NIC take all of them in turn.
std::vector<Rank> order_in_host(const Layout& layout, std::uint32_t host, std::uint32_t channel);

}  // namespace weft::workload
