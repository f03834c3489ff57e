#include <algorithm>
#include <map>

#include "engine/packet/build.hpp"

namespace weft::engine::packet {
namespace {

using model::ScopeId;
using model::ScopeKind;

// The pod of a node, else its rack; invalid for what stands above them.
ScopeId home(const Fabric& fabric, NodeId node) {
  const ScopeId pod = fabric.enclosing(node, ScopeKind::pod);
  return pod.valid() ? pod : fabric.enclosing(node, ScopeKind::rack);
}

std::vector<std::uint8_t> deal(const Fabric& fabric, std::uint32_t count) {
  std::map<ScopeId, std::uint32_t> homes;
  std::map<std::uint32_t, std::uint32_t> above;  // by role: how many
  for (const NodeId node : fabric.nodes()) {
    const ScopeId scope = home(fabric, node);
    if (scope.valid()) {
      homes.emplace(scope, 0);
    } else {
      ++above[fabric.role_id(node).value];
    }
  }
  std::uint32_t position = 0;
  for (auto& [scope, index] : homes) index = position++;
  std::map<std::uint32_t, std::uint32_t> dealt;
  std::vector<std::uint8_t> out(fabric.node_count(), 0);
  for (const NodeId node : fabric.nodes()) {
    const ScopeId scope = home(fabric, node);
    const std::uint32_t role = fabric.role_id(node).value;
    const std::uint64_t at = scope.valid() ? homes.at(scope) : dealt[role]++;
    const std::uint64_t of = scope.valid() ? homes.size() : above.at(role);
    out[node.index()] = static_cast<std::uint8_t>(at * count / of);
  }
  return out;
}

// Whether every message starts in the partition in which the last event it waits for happens.
bool keeps_dependents(const MessageSet& set, const std::vector<std::uint8_t>& of_node) {
  for (std::uint32_t m = 0; m < set.size(); ++m) {
    const Connection& from = set.connections[set.messages[m].connection];
    for (const Dependent& d : set.dependents_of(m)) {
      const Connection& to = set.connections[set.messages[d.message].connection];
      const bool at_sender = d.when == static_cast<std::uint32_t>(Dependent::When::acknowledged) ||
                             set.messages[m].bytes == 0;
      if (of_node[(at_sender ? from.src : from.dst).index()] != of_node[to.src.index()])
        return false;
    }
  }
  return true;
}

}  // namespace

Partitioning make_partitions(const MessageSet& set, const Fabric& fabric, std::uint32_t wanted) {
  const Partitioning whole{1, std::vector<std::uint8_t>(fabric.node_count(), 0), never};
  if (wanted <= 1) return whole;
  Partitioning out{std::min(wanted, partition_count_max),
                   deal(fabric, std::min(wanted, partition_count_max)), never};
  for (const LinkId link : fabric.links())
    if (out.of_node[fabric.from(link).index()] != out.of_node[fabric.to(link).index()])
      out.lookahead = std::min(out.lookahead, static_cast<Ps>(fabric.latency(link).ps));
  if (out.lookahead == 0 || !keeps_dependents(set, out.of_node)) return whole;
  return out;
}

}  // namespace weft::engine::packet
