// Paths inside hosts: between GPUs, and between a GPU and its NIC. Internal to the room.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "route/choices.hpp"
#include "route/dag.hpp"
#include "route/domains.hpp"
#include "route/live_links.hpp"
#include "route/router.hpp"

namespace weft::route {

// Shortest paths between two nodes over one medium, by a search from the goal that stays within the
// domain. Meant for domains of some dozens of nodes.
class InnerSearch {
 public:
  InnerSearch(const Fabric& fabric, const LiveLinks& live) : fabric_(fabric), live_(live) {}

  // False when no live path leads from `from` to `to`.
  bool search(NodeId from, NodeId to, Medium medium);
  // For the last search() that succeeded, as Dag wants them.
  bool reached(NodeId at, NodeId goal) const { return at == goal; }
  Choices next(NodeId at, NodeId goal);

 private:
  struct Mark {
    std::uint32_t round = 0, distance = 0;
  };
  bool is_known(NodeId node) const { return marks_[node].round == round_; }

  const Fabric& fabric_;
  const LiveLinks& live_;
  Column<NodeId, Mark> marks_;
  std::uint32_t round_ = 0;
  std::vector<NodeId> queue_;
  std::vector<LinkId> links_;
};

class HostPaths {
 public:
  HostPaths(const Fabric& fabric, const LiveLinks& live, const Domains& domains);

  // To be called after `live` has changed.
  void on_change(std::span<const LinkChange> changes);

  // How two nodes reach each other without a network: NVLink where it is cabled, else PCIe within a
  // host, else none.
  Medium medium_between(NodeId a, NodeId b) const;
  // GPU to GPU over that medium, in equal shares over all shortest paths (NVLink stripes over its
  // switches). False when no live path exists.
  bool append_between(NodeId a, NodeId b, Medium medium, std::vector<Hop>& out);
  // The hops between a GPU and the NIC it uses that can limit. A link can not when it is at least
  // as fast as all NICs together whose traffic crosses it, in a host whose GPUs need no PCIe among
  // themselves. A host without PCIe in the model has none that limit.
  bool append_to_nic(NodeId gpu, std::vector<Hop>& out);
  bool append_from_nic(NodeId gpu, std::vector<Hop>& out);
  // Between two GPUs, or a GPU and a NIC of its host, on the first shortest path in link order. 0
  // from a node to itself and where the model has no cables; duration_max when none is live.
  Duration latency(NodeId from, NodeId to);

 private:
  enum class Way : std::uint8_t { to_nic, from_nic };
  static constexpr std::uint32_t unknown = UINT32_MAX, broken = UINT32_MAX - 1;
  struct Range {
    std::uint32_t first = 0, count = unknown;
  };
  struct Use {
    LinkId link;
    NodeId nic;
    friend auto operator<=>(const Use&, const Use&) = default;
  };
  struct Ways {
    Range to_nic, from_nic;
    Range& of(Way way) { return way == Way::to_nic ? to_nic : from_nic; }
  };

  bool append_cached(NodeId gpu, Way way, std::vector<Hop>& out);
  void find_host(NodeId host, Way way);
  bool append_search(NodeId from, NodeId to, Medium medium, std::vector<Hop>& out);
  std::vector<LinkId> limiting_links(NodeId host, Way way, std::vector<Use>& uses) const;
  double nic_bytes_per_s(NodeId nic, Way way) const;
  bool shares_pcie(NodeId host) const;

  const Fabric& fabric_;
  const LiveLinks& live_;
  const Domains& domains_;
  InnerSearch search_;
  Dag<InnerSearch> dag_;
  std::vector<Ways> ways_;  // by GPU index
  std::vector<Hop> hops_;
};

}  // namespace weft::route
