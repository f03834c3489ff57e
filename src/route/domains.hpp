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
  static constexpr std::uint32_t no_domain = UINT32_MAX;
  // The one domain of the medium that a node belongs to or touches; no_domain where there is none,
  // or where it reaches others too.
  std::uint32_t only_domain(NodeId node, Medium medium) const {
    const Touched& touched = touched_[node.index()];
    const std::uint32_t domain = touched.of(medium);
    return domain == several || touched.outside ? no_domain : domain;
  }

 private:
  // The one domain of each medium that a node belongs to or touches. Most nodes touch one, and then
  // two loads answer connected().
  struct Touched {
    std::uint32_t network = none, nvlink = none, pcie = none;
    bool outside = false;  // some cable leads to a node of no medium: GPU to GPU, NIC to NIC
    std::uint32_t of(Medium medium) const;
  };
  static constexpr std::uint32_t none = no_domain, several = UINT32_MAX - 1;

  std::uint32_t root(std::uint32_t node) const;
  void note_touched();
  bool share_domain(NodeId a, NodeId b, Medium medium) const;

  const Fabric& fabric_;
  std::vector<std::uint32_t> parent_;  // by node; roots point at themselves
  std::vector<Touched> touched_;       // by node
};

}  // namespace weft::route
