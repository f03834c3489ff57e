// The parts of a scenario that every command shares: fabric, routing, transport, faults, engine.
#pragma once

#include <string>
#include <vector>

#include "engine/fluid/network.hpp"
#include "model/fabric.hpp"
#include "model/outcome.hpp"
#include "model/scenario.hpp"
#include "route/router.hpp"

namespace weft::plan {

struct Setup {
  model::Fabric fabric;
  route::RoutingConfig routing;
  std::vector<engine::fluid::StateChange> changes;
  engine::fluid::Simulation::Options engine;
  Duration step_overhead;                // transport.step_overhead
  std::vector<std::string> fault_lines;  // for people
  std::vector<model::Span> fault_spans;  // for the trace
  std::vector<std::string> notes;        // keys that are understood and change nothing here
};

// Builds the fabric and reads `routing`, `transport`, `faults` and `engine`. Fails with every error
// of these sections.
// `engine: fluid`, or a map {name: fluid, tolerance: 1e-4, audit_every: 1000}.
Result<Setup> read_setup(const model::Scenario& scenario);

}  // namespace weft::plan
