// For tests of this room: fabrics from a line of YAML.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "base/config.hpp"
#include "model/formats/build_fabric.hpp"

namespace weft::model::testing {

inline Result<Fabric> try_fabric(std::string_view yaml) {
  auto section = parse_yaml(yaml, "test.yaml");
  REQUIRE_MESSAGE(section.has_value(), yaml);
  return build_fabric(*section);
}

inline Fabric make_fabric(std::string_view yaml) {
  auto fabric = try_fabric(yaml);
  REQUIRE_MESSAGE(fabric.has_value(), (fabric ? "" : fabric.error().text()));
  return *std::move(fabric);
}

//      ctsw:0   ctsw:1          2 racks x 1 host x 1 GPU
//       |  \   /  |
//      rtsw:0  rtsw:1
//       nic:0   nic:1
inline Fabric two_rack_zone() {
  return make_fabric(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, spines: 2}");
}

// What build_fabric says about a section it refuses.
inline std::string refusal(std::string_view yaml) {
  const auto fabric = try_fabric(yaml);
  return fabric ? "accepted" : fabric.error().text();
}

inline std::size_t count(const Fabric& fabric, std::string_view role) {
  const RoleId id = fabric.find_role(role);
  return id.valid() ? fabric.role(id).nodes.size() : 0;
}

inline const Fabric::Tier* find_tier(const Fabric& fabric, std::string_view name) {
  for (const Fabric::Tier& tier : fabric.tiers())
    if (tier.name == name) return &tier;
  return nullptr;
}

inline std::size_t tier_size(const Fabric& fabric, std::string_view name) {
  const Fabric::Tier* tier = find_tier(fabric, name);
  return tier == nullptr ? 0 : tier->links.size();
}

inline NodeId node(const Fabric& fabric, std::string_view name) {
  const auto found = fabric.find_node({name, {}});
  REQUIRE_MESSAGE(found.has_value(), name);
  return *found;
}

inline LinkId link(const Fabric& fabric, std::string_view name) {
  const auto found = fabric.find_link({name, {}});
  REQUIRE_MESSAGE(found.has_value(), name);
  return *found;
}

// Bits per second from `at` to nodes of `role`.
inline std::int64_t bps_towards(const Fabric& fabric, NodeId at, std::string_view role) {
  std::int64_t sum = 0;
  for (const LinkId out : fabric.out(at))
    if (fabric.role_name(fabric.to(out)) == role) sum += fabric.rate(out).bps;
  return sum;
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Hops from a node over links between back-end NICs and fabric switches; NICs do not forward.
inline std::vector<int> hops_from(const Fabric& fabric, NodeId start) {
  std::vector<int> hops(fabric.node_count(), -1);
  std::vector<NodeId> queue{start};
  hops[start.index()] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    if (i > 0 && !fabric.is_switch(queue[i])) continue;
    for (const LinkId out : fabric.out(queue[i])) {
      const NodeId next = fabric.to(out);
      const bool outside = fabric.is_switch(next) ||
                           (fabric.is_switch(queue[i]) && fabric.kind(next) == NodeKind::nic);
      if (!outside || hops[next.index()] >= 0) continue;
      hops[next.index()] = hops[queue[i].index()] + 1;
      queue.push_back(next);
    }
  }
  return hops;
}

}  // namespace weft::model::testing
