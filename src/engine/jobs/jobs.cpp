#include "engine/jobs/jobs.hpp"

#include <algorithm>
#include <functional>

#include "base/check.hpp"

namespace weft::engine {

std::uint32_t GraphJob::slowest_of(std::uint32_t actor, const model::State& state,
                                   const model::Fabric& fabric) const {
  return *std::ranges::max_element(graph->ranks_of(actor), {}, [&](std::uint32_t rank) {
    return slowdown(state, fabric, rank);
  });
}

std::vector<GraphResult::Straggler> find_stragglers(const model::OpGraph& graph,
                                                    std::span<const double> compute_s,
                                                    std::span<const std::uint32_t> slowest) {
  constexpr double factor_min = 1.02;
  constexpr std::size_t kept = 10;
  WEFT_CHECK(compute_s.size() == graph.actors.size() && slowest.size() == compute_s.size());
  std::vector<std::vector<double>> by_program(graph.programs.size());
  for (std::size_t a = 0; a < compute_s.size(); ++a)
    by_program[graph.actors[a].program].push_back(compute_s[a]);
  for (std::vector<double>& times : by_program) std::ranges::sort(times);
  std::vector<GraphResult::Straggler> out;
  for (std::size_t a = 0; a < compute_s.size(); ++a) {
    const std::vector<double>& alike = by_program[graph.actors[a].program];
    const double median = alike[(alike.size() - 1) / 2];
    if (median > 0 && compute_s[a] >= factor_min * median)
      out.push_back({slowest[a], compute_s[a] / median});
  }
  std::ranges::stable_sort(out, std::ranges::greater{}, &GraphResult::Straggler::factor);
  if (out.size() > kept) out.resize(kept);
  return out;
}

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
