// For tests of this room: rules from YAML, a small fabric, events in a line.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"
#include "model/events/entity.hpp"
#include "model/formats/test_fabric.hpp"
#include "observe/detect/detector.hpp"

namespace weft::observe::detect::testing {

using model::testing::make_fabric;

inline Result<Rules> try_rules(const std::string& yaml) {
  const auto config = parse_yaml(yaml, "r.yaml");
  REQUIRE_MESSAGE(config.has_value(), yaml);
  return read_rules(*config);
}
// Only those of the list.
inline Rules make_rules(const std::string& detections) {
  auto rules = try_rules("builtin: false\ndetections:\n" + detections);
  REQUIRE_MESSAGE(rules.has_value(), (rules ? "" : rules.error().text()));
  return *std::move(rules);
}
inline std::string refusal(const std::string& yaml) {
  const auto rules = try_rules(yaml);
  return rules ? "accepted" : rules.error().text();
}

inline model::Entity entity(const model::Fabric& fabric, std::string_view name) {
  const auto found = model::find_entity(fabric, {name, {}});
  REQUIRE_MESSAGE(found.has_value(), name);
  return *found;
}

constexpr std::int64_t ms = 1'000'000;

}  // namespace weft::observe::detect::testing
