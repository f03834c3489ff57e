#include "model/fabric/frontend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace weft::model {
namespace {

constexpr std::int64_t host_bytes_max = std::int64_t{1} << 62;

std::span<const NodeId> nodes_of(const Fabric& fabric, std::string_view role) {
  const RoleId id = fabric.find_role(role);
  return id.valid() ? std::span<const NodeId>(fabric.role(id).nodes) : std::span<const NodeId>{};
}

bool is_cabled(const Fabric& fabric, NodeId nic) {
  return std::ranges::any_of(fabric.out(nic),
                             [&](LinkId link) { return fabric.is_switch(fabric.to(link)); });
}

// What one host moves, and through which NICs.
struct HostShare {
  NodeId host;
  std::int64_t gpus = 0;
  std::vector<NodeId> nics;
};

// Hosts in the order in which their first GPU is listed.
std::vector<HostShare> shares_of(const Fabric& fabric, std::span<const NodeId> gpus) {
  std::vector<HostShare> shares;
  std::map<NodeId, std::size_t> share_of;
  for (const NodeId gpu : gpus) {
    const NodeId host = fabric.host_of(gpu);
    const auto [it, is_new] = share_of.try_emplace(host, shares.size());
    if (is_new) shares.push_back({host, 0, {}});
    ++shares[it->second].gpus;
  }
  for (const NodeId nic : nodes_of(fabric, fe_nic_role)) {
    const auto it = share_of.find(fabric.host_of(nic));
    if (it != share_of.end() && is_cabled(fabric, nic)) shares[it->second].nics.push_back(nic);
  }
  return shares;
}

Status check(const Fabric& fabric, const StorageTransfer& transfer,
             const std::vector<HostShare>& shares) {
  if (storage_hosts(fabric).empty())
    return fail(Errc::infeasible, transfer.where, "the fabric has no storage hosts",
                "add \"frontend: {}\" to the fabric");
  if (transfer.stripe == 0 || transfer.bytes_per_gpu.count < 0)
    return fail(Errc::value, transfer.where,
                fmt::format("cannot read {} bytes per GPU from {} storage hosts",
                            transfer.bytes_per_gpu.count, transfer.stripe),
                "use 0 or more bytes and 1 or more storage hosts");
  for (const HostShare& share : shares) {
    if (share.nics.empty())
      return fail(
          Errc::infeasible, transfer.where,
          fmt::format("{} has no front-end NIC cabled to a switch",
                      share.host.valid() ? fabric.name(share.host) : "a GPU outside any host"),
          "add \"frontend: {}\" to the fabric, or choose other GPUs");
    if (transfer.bytes_per_gpu.count > host_bytes_max / share.gpus)
      return fail(Errc::value, transfer.where,
                  fmt::format("{} GPUs x {} bytes exceed 2^62 bytes for one host", share.gpus,
                              transfer.bytes_per_gpu.count),
                  "reduce the bytes per GPU");
  }
  return {};
}

// The `index`-th of `count` parts that differ by 1 at most.
std::int64_t part(std::int64_t total, std::int64_t count, std::int64_t index) {
  return total / count + (index < total % count ? 1 : 0);
}

// Bytes per second that a NIC's cables carry; of a storage host, each cable to a NIC at most as
// much as that NIC.
double end_rate(const Fabric& fabric, NodeId end) {
  double sum = 0;
  for (const LinkId link : fabric.out(end)) {
    const NodeId to = fabric.to(link);
    const double rate = fabric.rate(link).bytes_per_s();
    if (fabric.kind(end) == NodeKind::host && fabric.kind(to) == NodeKind::nic)
      sum += std::min(rate, end_rate(fabric, to));
    if (fabric.kind(end) == NodeKind::nic && fabric.is_switch(to)) sum += rate;
  }
  return sum;
}

}  // namespace

std::span<const NodeId> storage_hosts(const Fabric& fabric) {
  return nodes_of(fabric, storage_role);
}
std::span<const NodeId> storage_nics(const Fabric& fabric) {
  return nodes_of(fabric, storage_nic_role);
}

std::vector<NodeId> fe_nics_of(const Fabric& fabric, NodeId host) {
  std::vector<NodeId> nics;
  for (const NodeId nic : nodes_of(fabric, fe_nic_role))
    if (fabric.host_of(nic) == host && is_cabled(fabric, nic)) nics.push_back(nic);
  return nics;
}

Result<std::vector<StorageFlow>> checkpoint_flows(const Fabric& fabric,
                                                  const StorageTransfer& transfer) {
  const std::vector<HostShare> shares = shares_of(fabric, transfer.gpus);
  WEFT_TRY_STATUS(check(fabric, transfer, shares));
  const std::span<const NodeId> storage = storage_hosts(fabric);
  const std::size_t stripe = std::min<std::size_t>(transfer.stripe, storage.size());
  std::vector<StorageFlow> flows;
  flows.reserve(shares.size() * stripe);
  std::size_t next = 0;
  for (const HostShare& share : shares) {
    const std::int64_t total = share.gpus * transfer.bytes_per_gpu.count;
    for (std::size_t k = 0; k < stripe; ++k, ++next) {
      const Bytes bytes{
          part(total, static_cast<std::int64_t>(stripe), static_cast<std::int64_t>(k))};
      if (bytes.count == 0) continue;
      flows.push_back({share.nics[k % share.nics.size()], storage[next % storage.size()], bytes});
    }
  }
  return flows;
}

Result<std::vector<StorageFlow>> ingest_flows(const Fabric& fabric,
                                              const StorageTransfer& transfer) {
  WEFT_TRY(std::vector<StorageFlow> flows, checkpoint_flows(fabric, transfer));
  for (StorageFlow& flow : flows) std::swap(flow.from, flow.to);
  return flows;
}

bool on_front_end(const Fabric& fabric, LinkId link) {
  constexpr std::array<std::string_view, 5> roles{fe_nic_role, storage_nic_role, "rsw", "fsw",
                                                  "ssw"};
  if (!fabric.find_role(fe_nic_role).valid()) return false;
  const auto is_end = [&](NodeId node) {
    return std::ranges::find(roles, fabric.role_name(node)) != roles.end();
  };
  return is_end(fabric.from(link)) && is_end(fabric.to(link));
}

double storage_seconds_min(const Fabric& fabric, std::span<const StorageFlow> flows) {
  // Bytes over each end, one direction at a time: an end both sends and receives at full rate.
  std::map<std::pair<NodeId, NodeId>, double> bytes;  // (end, end) or (end, none) by direction
  for (const StorageFlow& flow : flows) {
    bytes[{flow.from, NodeId{}}] += static_cast<double>(flow.bytes.count);
    bytes[{NodeId{}, flow.to}] += static_cast<double>(flow.bytes.count);
  }
  double longest = 0;
  for (const auto& [ends, amount] : bytes)
    longest =
        std::max(longest, amount / end_rate(fabric, ends.first.valid() ? ends.first : ends.second));
  return longest;
}

}  // namespace weft::model
