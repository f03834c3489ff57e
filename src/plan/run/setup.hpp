// The parts of a scenario that every command shares: fabric, routing, transport, faults, engine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/fluid/job_run.hpp"
#include "engine/packet_jobs/run.hpp"
#include "model/fabric/fabric.hpp"
#include "model/scenario/scenario.hpp"
#include "model/work/outcome.hpp"
#include "route/router.hpp"
#include "workload/collective/cost.hpp"

namespace weft::plan {

enum class EngineName : std::uint8_t { fluid, packet };
struct Setup {
  model::Fabric fabric;
  route::RoutingConfig routing;
  std::vector<engine::StateChange> changes;
  EngineName engine_name = EngineName::fluid;
  Where engine_where, estimate_where;  // for messages
  engine::fluid::FluidEngine fluid;
  engine::packet::PacketEngine packet;   // its seed that of the scenario
  Duration step_overhead;                // transport.step_overhead
  workload::Library library;             // collectives
  std::vector<std::string> fault_lines;  // for people
  std::vector<model::Span> fault_spans;  // for the trace
  std::vector<std::string> notes;        // keys that are understood and change nothing here

  std::string_view engine_text() const;
  // What the faults have down, slow or lossy from the start.
  model::State state_at_start() const;
  // On the engine that was asked for.
  Result<engine::RunResult> run(const engine::Work& work, route::Router& router,
                                const engine::Watch& watch) const;
};

// Builds the fabric and reads `routing`, `transport`, `collectives`, `faults` and `engine`. Fails
// with every error of these sections. `engine: fluid` or `packet`, or a map with their keys: {name:
// fluid, tolerance: 1e-4, audit_every: 1000}, {name: packet, threads: 2, memoise: false}.
Result<Setup> read_setup(const model::Scenario& scenario);

// Fails with Errc::unsupported when the packet engine is asked for what only the fluid one can.
// `what` begins the message: "weft perf".
Status require_fluid(const Setup& setup, std::string_view what);

}  // namespace weft::plan
