// Small fabrics for the tests of this room.
//
//   gpu gpu gpu gpu            spine:0  spine:1
//    |   |   |   |   nvswitch      \    /      every leaf to every spine
//   nic:0   nic:1                leaf:0 ..     NIC k of every host to leaf k % leaves
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "base/rng.hpp"
#include "model/fabric/fabric.hpp"
#include "workload/collective/traffic.hpp"

namespace weft::workload::test {

struct FabricSpec {
  std::uint32_t hosts = 2, gpus = 4, nics = 4, nvswitches = 1, leaves = 1, spines = 2;
  bool is_mesh = false;  // each two GPUs of a host have a cable; no NVSwitch
  enum class Spines : std::uint8_t { joined, none } joined = Spines::joined;
};

inline Fabric make_fabric(const FabricSpec& spec) {
  using model::NodeKind;
  model::FabricBuilder builder;
  const auto region = builder.add_scope(model::ScopeKind::region, {});
  const auto cable = [&](NodeId a, NodeId b) {
    builder.add_circuit(a, b, {.rate = 400_Gbps, .latency = 1_us});
  };
  const auto node = [&](NodeKind kind, std::string_view role, NodeId host = {}) {
    return builder.add_node({.kind = kind, .role = role, .scope = region, .host = host});
  };
  std::vector<NodeId> leaves, spines;
  for (std::uint32_t i = 0; i < spec.leaves; ++i)
    leaves.push_back(node(NodeKind::fabric_switch, "leaf"));
  for (std::uint32_t i = 0; i < spec.spines; ++i)
    spines.push_back(node(NodeKind::fabric_switch, "spine"));
  if (spec.joined == FabricSpec::Spines::joined)
    for (const NodeId leaf : leaves)
      for (const NodeId spine : spines) cable(leaf, spine);
  for (std::uint32_t h = 0; h < spec.hosts; ++h) {
    const NodeId host = node(NodeKind::host, "host");
    std::vector<NodeId> switches, gpus, nics;
    for (std::uint32_t i = 0; !spec.is_mesh && i < spec.nvswitches; ++i)
      switches.push_back(node(NodeKind::nvswitch, "nvswitch", host));
    for (std::uint32_t i = 0; i < spec.gpus; ++i) gpus.push_back(node(NodeKind::gpu, "gpu", host));
    for (std::uint32_t i = 0; i < spec.nics; ++i) nics.push_back(node(NodeKind::nic, "nic", host));
    for (const NodeId gpu : gpus) {
      cable(gpu, host);
      for (const NodeId s : switches) cable(gpu, s);
    }
    for (std::size_t i = 0; spec.is_mesh && i < gpus.size(); ++i)
      for (std::size_t j = i + 1; j < gpus.size(); ++j) cable(gpus[i], gpus[j]);
    for (std::uint32_t k = 0; k < spec.nics; ++k) {
      cable(nics[k], host);
      cable(nics[k], leaves[k % spec.leaves]);
    }
    for (std::uint32_t i = 0; i < spec.gpus && spec.nics > 0; ++i)
      builder.set_nic(gpus[i], nics[i * spec.nics / spec.gpus]);
  }
  return builder.freeze();
}

// A fabric and which of its GPUs are the ranks.
struct Group {
  std::string name;
  Fabric fabric;
  std::vector<NodeId> ranks;
  bool even_hosts = true;
};

inline std::vector<NodeId> first_gpus(const Fabric& fabric, std::uint32_t n) {
  return {fabric.gpus().begin(), fabric.gpus().begin() + n};
}

// Ways to lay n ranks on hosts: one host, one rank a host, two and three a host, NICs shared by two
// GPUs, ranks dealt out to hosts in turn, a random choice from larger hosts, and hosts whose GPUs
// are a mesh.
inline std::vector<Group> groups(std::uint32_t n) {
  std::vector<Group> all;
  const auto add = [&](std::string name, const FabricSpec& spec, auto choose, bool even) {
    Fabric fabric = make_fabric(spec);
    std::vector<NodeId> ranks = choose(fabric);
    all.push_back({std::move(name), std::move(fabric), std::move(ranks), even});
  };
  const auto first = [n](const Fabric& f) { return first_gpus(f, n); };
  add("one host", {.hosts = 1, .gpus = n, .nics = 1}, first, true);
  add("one a host", {.hosts = n, .gpus = 1, .nics = 1}, first, true);
  add("two a host", {.hosts = (n + 1) / 2, .gpus = 2, .nics = 2}, first, n % 2 == 0);
  add("three a host", {.hosts = (n + 2) / 3, .gpus = 3, .nics = 3, .nvswitches = 2}, first,
      n % 3 == 0);
  add("shared NICs", {.hosts = (n + 3) / 4, .gpus = 4, .nics = 2}, first, n % 4 == 0 || n < 4);
  add(
      "in turn", {.hosts = 3, .gpus = 6, .nics = 3},
      [n](const Fabric& f) {
        std::vector<NodeId> ranks;
        for (std::uint32_t r = 0; r < n; ++r) ranks.push_back(f.gpus()[r % 3 * 6 + r / 3]);
        return ranks;
      },
      n % 3 == 0 || n == 2);
  add(
      "random", {.hosts = 5, .gpus = 4, .nics = 4},
      [n](const Fabric& f) {
        std::vector<NodeId> ranks(f.gpus().begin(), f.gpus().end());
        Rng rng(n);
        rng.shuffle(std::span(ranks));
        ranks.resize(n);
        return ranks;
      },
      false);
  add("meshes", {.hosts = (n + 7) / 8, .gpus = 8, .nics = 8, .is_mesh = true}, first,
      n % 8 == 0 || n < 8);
  add("meshes that share NICs", {.hosts = (n + 3) / 4, .gpus = 4, .nics = 2, .is_mesh = true},
      first, n % 4 == 0 || n < 4);
  return all;
}

}  // namespace weft::workload::test
