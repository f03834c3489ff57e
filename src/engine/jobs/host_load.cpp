#include "engine/jobs/host_load.hpp"

#include <algorithm>
#include <limits>

namespace weft::engine {

using model::NodeId;
using model::NodeKind;

void HostLoad::add(NodeId from, NodeId to, double bytes) {
  const bool inside = fabric_.share_domain(from, to);
  if (fabric_.kind(from) == NodeKind::gpu) out_[inside ? from : fabric_.nic_of(from)] += bytes;
  if (fabric_.kind(to) == NodeKind::gpu) in_[inside ? to : fabric_.nic_of(to)] += bytes;
  if (fabric_.kind(from) == NodeKind::nic) out_[from] += bytes;
  if (fabric_.kind(to) == NodeKind::nic) in_[to] += bytes;
}

void HostLoad::add_both_ways(NodeId rank, double inside, double outside) {
  out_[rank] += inside;
  in_[rank] += inside;
  out_[fabric_.nic_of(rank)] += outside;
  in_[fabric_.nic_of(rank)] += outside;
}

double HostLoad::seconds() const {
  double worst = 0;
  for (const auto* side : {&out_, &in_})
    for (const auto& [node, bytes] : *side)
      if (node.valid()) worst = std::max(worst, bytes / bytes_per_s(node));
  return worst;
}

// All ports of a NIC; all of a GPU's NVLinks.
double HostLoad::bytes_per_s(NodeId node) const {
  const NodeKind far =
      fabric_.kind(node) == NodeKind::gpu ? NodeKind::nvswitch : NodeKind::fabric_switch;
  double total = 0;
  for (const model::LinkId link : fabric_.out(node)) {
    const NodeKind kind = fabric_.kind(fabric_.to(link));
    if (kind == far || (far == NodeKind::nvswitch && kind == NodeKind::gpu))
      total += fabric_.rate(link).bytes_per_s();
  }
  return total > 0 ? total : std::numeric_limits<double>::infinity();
}

}  // namespace weft::engine
