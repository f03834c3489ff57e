// Which parts of the fabric are cabled together at all, whatever the state. Internal to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "route/choices.hpp"

namespace weft::route {

// What passes traffic on: fabric switches; NVSwitches; PCIe switches and the host itself.
enum class Medium : std::uint8_t { none, network, nvlink, pcie };
Medium medium_of(model::NodeKind kind);

class Domains {
 public:
  // Cost: O(links).
  explicit Domains(const Fabric& fabric);

  // Whether a path leads from `a` to `b` through nodes of the medium, or a cable does directly.
  bool connected(NodeId a, NodeId b, Medium medium) const;

 private:
  std::uint32_t root(std::uint32_t node) const;

  const Fabric& fabric_;
  std::vector<std::uint32_t> parent_;  // by node; roots point at themselves
};

}  // namespace weft::route
