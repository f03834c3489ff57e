// For tests of this room: fabrics and faults from a line of YAML.
#pragma once

#include <doctest/doctest.h>

#include <string_view>
#include <vector>

#include "engine/fluid/network.hpp"
#include "model/fabric/faults.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::engine::fluid::testing {

using model::testing::make_fabric;

inline std::vector<StateChange> faults_of(const Fabric& fabric, std::string_view yaml) {
  const auto section = parse_yaml(yaml, "faults.yaml");
  REQUIRE(section.has_value());
  auto timeline = model::read_faults(fabric, *section);
  REQUIRE_MESSAGE(timeline.has_value(), (timeline ? "" : timeline.error().text()));
  return timeline->snapshots;
}

}  // namespace weft::engine::fluid::testing
