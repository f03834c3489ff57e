#include "model/fabric/zones.hpp"

#include <algorithm>

namespace weft::model {

std::optional<ScopeKind> zone_kind(const Fabric& fabric) {
  for (const ScopeKind kind :
       {ScopeKind::zone, ScopeKind::pod, ScopeKind::building, ScopeKind::region}) {
    const auto scope = [&](NodeId host) { return fabric.enclosing(host, kind); };
    if (std::ranges::adjacent_find(fabric.hosts(), std::ranges::not_equal_to{}, scope) !=
        fabric.hosts().end())
      return kind;
  }
  return std::nullopt;
}

}  // namespace weft::model
