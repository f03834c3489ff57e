// From a fabric, its state and options to the World of a run. Internal to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "engine/packet/world.hpp"
#include "model/fabric/state.hpp"

namespace weft::engine::packet {

// How nodes are dealt to partitions, and how long partitions may run apart.
struct Partitioning {
  std::uint32_t count = 1;
  std::vector<std::uint8_t> of_node;
  Ps lookahead = never;  // least latency of a link between two of them
};
inline constexpr std::uint32_t partition_count_max = 64;

// Whole pods, else whole racks, in blocks; switches above them evenly. One partition when `wanted`
// is 1, when a link without latency would be cut, or when a message starts on an event at another
// partition's node.
Partitioning make_partitions(const MessageSet& set, const Fabric& fabric, std::uint32_t wanted);

// Fills all columns of the world. Fails as run_messages does.
Status build_world(World& world, const model::State& state, const Partitioning& partitioning);

// Rates, deaths and losses of a new state; appends the links that have died.
void apply_state(World& world, const model::State& state, std::vector<std::uint32_t>& died);
// The connection's path (or its source's link, by table) under the present state; false when there
// is none.
bool find_path(World& world, std::uint32_t connection);

// The NICs between which a connection crosses the network; false when it does not, or cannot.
bool find_ends(const World& world, const Connection& connection, NodeId& src, NodeId& dst);

// Parts of build_world().
bool needs_table(const Options& options);
// Next hops for all connections under this state. Again after each change of it.
Status build_table(World& world, const model::State& state);
void build_protocols(World& world);
// Minimal paths and detours of all connections, for UGAL. Again after each change of state.
void find_candidates(World& world);

}  // namespace weft::engine::packet
