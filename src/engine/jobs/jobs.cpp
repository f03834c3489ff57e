#include "engine/jobs/jobs.hpp"

namespace weft::engine {

model::Distance distance_between(const Fabric& fabric, NodeId a, NodeId b) {
  const auto together = [&](model::ScopeKind kind) {
    const model::ScopeId scope = fabric.enclosing(a, kind);
    return scope.valid() && scope == fabric.enclosing(b, kind);
  };
  if (fabric.domain_of(a) == fabric.domain_of(b)) return model::Distance::host;
  if (together(model::ScopeKind::rack)) return model::Distance::rack;
  // The smallest scope above racks that the fabric has: pods of a three-tier fabric, else zones.
  for (const auto kind : {model::ScopeKind::pod, model::ScopeKind::zone})
    if (fabric.enclosing(a, kind).valid())
      return together(kind) ? model::Distance::zone : model::Distance::cross_zone;
  return model::Distance::zone;
}

}  // namespace weft::engine
