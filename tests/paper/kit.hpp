// What the tests of published numbers share: fabrics, facts and runs from a line of YAML.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"
#include "engine/fluid/flow_run.hpp"
#include "model/fabric/faults.hpp"
#include "model/formats/build_fabric.hpp"
#include "model/formats/test_fabric.hpp"
#include "plan/explain/explain.hpp"
#include "plan/run/run.hpp"
#include "route/router.hpp"

namespace weft::paper {

using model::Fabric;
using plan::FabricFacts;

inline Fabric fabric_of(std::string_view yaml) { return model::testing::make_fabric(yaml); }

inline FabricFacts facts_of(std::string_view yaml) { return plan::explain(fabric_of(yaml)); }

// The entry of a list of facts whose `name` member is `value`.
template <class Entry>
const Entry& entry(const std::vector<Entry>& list, std::string Entry::* name,
                   std::string_view value) {
  const auto found = std::ranges::find(list, value, name);
  REQUIRE_MESSAGE(found != list.end(), value);
  return *found;
}
inline const auto& role_of(const FabricFacts& facts, std::string_view role) {
  return entry(facts.roles, &FabricFacts::RoleFacts::name, role);
}
inline const auto& switches_of(const FabricFacts& facts, std::string_view role) {
  return entry(facts.switch_tiers, &FabricFacts::SwitchTier::role, role);
}
inline const auto& loss_of(const FabricFacts& facts, std::string_view role) {
  return entry(facts.losses, &FabricFacts::Loss::role, role);
}
inline const auto& path_of(const FabricFacts& facts, std::string_view what) {
  return entry(facts.paths, &FabricFacts::PathFacts::what, what);
}

inline std::vector<model::FaultTimeline::Snapshot> faults_of(const Fabric& fabric,
                                                             std::string_view yaml) {
  const auto section = parse_yaml(yaml, "faults.yaml");
  REQUIRE_MESSAGE(section.has_value(), yaml);
  auto timeline = model::read_faults(fabric, *section);
  if (!timeline) FAIL(timeline.error().text());
  return std::move(timeline->snapshots);
}

inline route::Router router_of(const Fabric& fabric, const route::RoutingConfig& config,
                               std::uint64_t seed = 1) {
  auto router = route::Router::create(fabric, config, seed);
  if (!router) FAIL(router.error().text());
  return *std::move(router);
}

inline model::NodeId node_of(const Fabric& fabric, std::string_view name) {
  const auto node = fabric.find_node({name, {}});
  REQUIRE_MESSAGE(node.has_value(), name);
  return *node;
}

// Every NIC sends 500 MB to the one in its place of the rack that is `shift` further on, for each
// shift at once. Racks are of 16 NICs.
inline model::FlowSet rack_shift(const Fabric& fabric, std::initializer_list<std::size_t> shifts) {
  model::FlowSet set;
  const auto nics = fabric.nics();
  for (const std::size_t shift : shifts)
    for (std::size_t i = 0; i < nics.size(); ++i)
      set.flows.push_back(
          {.src = nics[i], .dst = nics[(i + 16 * shift) % nics.size()], .size = 500_MB});
  return set;
}

// All variants of a scenario, as `weft run` runs them; every job must finish.
inline model::Outcome run(const std::string& yaml, std::uint64_t seed = 1) {
  const auto file = model::parse_scenario(yaml, "scenario.yaml", {.seed = seed});
  if (!file) FAIL(file.error().text());
  auto outcome = plan::run_scenario(*file, {});
  if (!outcome) FAIL(outcome.error().text());
  REQUIRE_FALSE(plan::has_unfinished(*outcome));
  return *std::move(outcome);
}

// Time over roofline, averaged over a variant's jobs.
inline double mean_ratio(const model::Outcome& outcome, std::string_view variant) {
  const auto& jobs = entry(outcome.variants, &model::VariantOutcome::name, variant).jobs;
  double sum = 0;
  for (const model::JobOutcome& job : jobs) sum += job.ratio;
  return sum / static_cast<double>(jobs.size());
}

}  // namespace weft::paper
