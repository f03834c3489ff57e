#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "workload/collective/algorithm.hpp"

namespace weft::workload {
namespace {

constexpr std::array registry{
    &algo::direct,       &algo::flat,  &algo::halving_doubling,
    &algo::hierarchical, &algo::nvls,  &algo::nvls_tree,
    &algo::pairwise,     &algo::pat,   &algo::recursive_doubling,
    &algo::ring,         &algo::sharp, &algo::tree,
};

std::string names_for(Op op) {
  std::string names;
  for (const Algorithm* a : registry)
    if (a->ops.has(op)) names += fmt::format("{}{}", names.empty() ? "" : ", ", a->name);
  return names;
}

}  // namespace

std::span<const Algorithm* const> algorithms() { return registry; }

std::vector<std::string> algorithm_names() {
  std::vector<std::string> names{"auto"};
  for (const Algorithm* a : registry) names.emplace_back(a->name);
  return names;
}

Result<const Algorithm*> find_algorithm(std::string_view name, Op op) {
  for (const Algorithm* a : registry) {
    if (a->name != name) continue;
    if (a->ops.has(op)) return a;
    return fail(Errc::infeasible, {}, fmt::format("{} does not support {}", name, to_text(op)),
                fmt::format("{} is supported by auto, {}", to_text(op), names_for(op)));
  }
  const std::string guess = did_you_mean(name, algorithm_names());
  return fail(Errc::unknown, {}, fmt::format("unknown algorithm \"{}\"{}", name, guess),
              fmt::format("{} is supported by auto, {}", to_text(op), names_for(op)));
}

void set_flow_latency(const Job& job, Stage& stage) {
  const auto crosses = [&](const Edge& e) { return !job.fabric.share_domain(e.from, e.to); };
  const bool network = std::ranges::any_of(stage.flows, crosses) ||
                       (!stage.exchanges.empty() && job.layout.host_count() > 1);
  ++(network ? stage.latency_steps : stage.inner_steps);
}

std::unexpected<Error> cannot(std::string_view algorithm, std::string_view why, std::string hint) {
  return fail(Errc::infeasible, {}, fmt::format("{} cannot serve these ranks: {}", algorithm, why),
              std::move(hint));
}

}  // namespace weft::workload
