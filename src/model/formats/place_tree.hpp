// The places of a fabric that hold hosts, by which schedulers place jobs. Internal to the room.
#pragma once

#include <vector>

#include "model/fabric/fabric.hpp"

namespace weft::model {

struct PlaceTree {
  Column<ScopeId, std::vector<NodeId>> hosts;    // in that place and in none inside it
  Column<ScopeId, std::vector<ScopeId>> inside;  // with hosts somewhere below, the last one first
  std::vector<ScopeId> roots;                    // likewise

  explicit PlaceTree(const Fabric& fabric)
      : hosts(fabric.scopes().size()), inside(fabric.scopes().size()) {
    const auto& scopes = fabric.scopes();
    for (const NodeId host : fabric.hosts()) {
      ScopeId at = fabric.scope(host);
      while (scopes[at].kind == ScopeKind::host && scopes[at].parent.valid())
        at = scopes[at].parent;
      hosts[at].push_back(host);
    }
    // Parents have smaller ids than their children.
    for (std::size_t i = scopes.size(); i-- > 0;) {
      const ScopeId scope{i}, parent = scopes[scope].parent;
      if (hosts[scope].empty() && inside[scope].empty()) continue;
      (parent.valid() ? inside[parent] : roots).push_back(scope);
    }
  }
};

}  // namespace weft::model
