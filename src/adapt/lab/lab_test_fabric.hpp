// For tests of this room: plans from a line of YAML.
#pragma once

#include <doctest/doctest.h>

#include <string_view>

#include "adapt/lab/plan.hpp"
#include "base/config.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::adapt::lab::testing {

using model::testing::make_fabric;

inline LabPlan make_plan_of(const model::Fabric& fabric, HashSeeds seeds = HashSeeds::distinct) {
  auto plan = make_plan(fabric, {.lab = "test", .seeds = seeds});
  REQUIRE_MESSAGE(plan.has_value(), (plan ? "" : plan.error().text()));
  return *std::move(plan);
}

inline LabNodeId node(const LabPlan& plan, const model::Fabric& fabric, std::string_view name) {
  const auto found = plan.find_node(fabric, {name, {}});
  REQUIRE_MESSAGE(found.has_value(), name);
  return *found;
}

//   ctsw:0   ctsw:1
//    |   \ /   |
//    |   / \   |
//   rtsw:0   rtsw:1
//     |        |
//   host:0   host:1
inline constexpr std::string_view two_by_two =
    "{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, spines: 2}";

}  // namespace weft::adapt::lab::testing
