// The front-end network: its ends, and the transfers to and from storage.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::model {

// Roles of its ends: the NICs of hosts, storage hosts (kind host, outside Fabric::hosts()) and
// their NICs. docs/frontend.md describes the network.
inline constexpr std::string_view fe_nic_role = "fe_nic";
inline constexpr std::string_view storage_role = "storage";
inline constexpr std::string_view storage_nic_role = "storage_nic";

// In order; empty where the fabric has none.
std::span<const NodeId> storage_hosts(const Fabric& fabric);
std::span<const NodeId> storage_nics(const Fabric& fabric);
// The front-end NICs of a host that a cable joins to a switch, in order. Cost: O(nodes of the
// role).
std::vector<NodeId> fe_nics_of(const Fabric& fabric, NodeId host);

// Whether the link joins NICs or switches of the front end that generators add.
bool on_front_end(const Fabric& fabric, LinkId link);

// One transfer. Its ends are for route::Router::append_gpu_path and latency: the end at the storage
// is the storage host itself, so that the path crosses what that host sustains.
struct StorageFlow {
  NodeId from, to;
  Bytes bytes;
  friend bool operator==(const StorageFlow&, const StorageFlow&) = default;
};

// Which GPUs move how much, and over how many storage hosts each host spreads it.
struct StorageTransfer {
  std::span<const NodeId> gpus;
  Bytes bytes_per_gpu;
  std::uint32_t stripe = 8;  // at most as many as there are storage hosts
  Where where = {};          // for messages
};

// A checkpoint: all GPUs of a host write their bytes through its front-end NICs, in `stripe` parts
// that differ by 1 byte at most. The k-th part of the job goes to storage host k mod S, hosts in
// the order in which their first GPU is listed: no storage host gets two parts more than another.
// The k-th part of a host leaves by its front-end NIC k mod their number. Parts of 0 bytes are left
// out. What lies between a GPU and its front-end NIC (PCIe, host memory) is not modelled. Fails:
// Errc::infeasible without storage hosts or where a host has no cabled front-end NIC; Errc::value
// for a stripe of 0, negative bytes and beyond 2^62 bytes per host. Cost: O(front-end NICs + hosts
// x stripe).
Result<std::vector<StorageFlow>> checkpoint_flows(const Fabric& fabric,
                                                  const StorageTransfer& transfer);

// Data ingestion: the same parts, from storage to hosts.
Result<std::vector<StorageFlow>> ingest_flows(const Fabric& fabric,
                                              const StorageTransfer& transfer);

// Seconds in which the busiest front-end NIC, storage NIC or storage host has moved its share at
// full rate: no schedule is faster. Switches and latency do not enter. Cost: O(flows).
double storage_seconds_min(const Fabric& fabric, std::span<const StorageFlow> flows);

}  // namespace weft::model
