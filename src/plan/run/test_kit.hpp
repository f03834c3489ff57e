// For tests of this room: a scenario from its text to its outcome.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "plan/run/run.hpp"

namespace weft::plan::testing {

inline model::Outcome run(const std::string& yaml) {
  const auto file = model::parse_scenario(yaml, "test.yaml", {});
  REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().text()));
  auto outcome = run_scenario(*file, {});
  REQUIRE_MESSAGE(outcome.has_value(), (outcome ? "" : outcome.error().text()));
  return *std::move(outcome);
}

}  // namespace weft::plan::testing
