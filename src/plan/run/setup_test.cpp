#include "plan/run/setup.hpp"

#include <doctest/doctest.h>

#include "plan/run/run.hpp"

namespace weft::plan {
namespace {

constexpr std::string_view zone = "fabric: {generator: ai_zone, racks: 2, spines: 2}\n";

model::ScenarioFile scenario(const std::string& yaml) {
  auto file = model::parse_scenario(std::string(zone) + yaml, "s.yaml", {});
  REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().text()));
  return *std::move(file);
}
Setup setup_of(const std::string& yaml) {
  CAPTURE(yaml);
  auto setup = read_setup(scenario(yaml).variants.front());
  REQUIRE_MESSAGE(setup.has_value(), (setup ? "" : setup.error().text()));
  return *std::move(setup);
}
std::string error_of(const std::string& yaml) {
  const auto setup = read_setup(scenario(yaml).variants.front());
  return setup ? "" : setup.error().text();
}

TEST_CASE("setup: the engine by name or by map") {
  CHECK(setup_of("").engine_name == EngineName::fluid);
  CHECK(setup_of("engine: fluid").engine_name == EngineName::fluid);
  const Setup fluid = setup_of("engine: {tolerance: 1e-4}");
  CHECK(fluid.fluid.options.simulation.solver.tolerance == 1e-4);
  CHECK(fluid.fluid.options.simulation.audit_every == 1000);
  const Setup packet = setup_of("engine: {name: packet, threads: 2}\nseed: 7");
  CHECK(packet.engine_name == EngineName::packet);
  CHECK(packet.packet.options.threads == 2);
  CHECK(packet.packet.options.seed == 7);
  CHECK(setup_of("engine: packet").packet.options.threads == 0);
  CHECK(error_of("engine: paket") ==
        "s.yaml:2:9: engine.name: unknown name \"paket\" (did you mean \"packet\"?); choose one "
        "of: fluid, packet");
  CHECK(error_of("engine: {name: packet, tolerance: 1e-4}").find("unknown key \"tolerance\"") !=
        std::string::npos);
  CHECK(error_of("engine: {threads: 2}").find("unknown key \"threads\"") != std::string::npos);
}

TEST_CASE("setup: one transport section for both engines") {
  const std::string transport =
      "transport: {name: nscc, step_overhead: 2 us, mtu: 2 KiB, window: 1 MB, nscc: {}}";
  const Setup fluid = setup_of(transport);
  CHECK(fluid.step_overhead == 2_us);
  CHECK(fluid.fluid.options.mtu == 2_KiB);
  CHECK(fluid.routing.scheme == "spray");
  CHECK(fluid.notes.size() == 3);  // name, window, nscc
  CHECK(fluid.notes[1].starts_with("transport.window has no effect on the fluid engine"));
  const Setup packet = setup_of(transport + "\nengine: packet");
  CHECK(packet.step_overhead == 2_us);
  CHECK(packet.packet.options.wire.mtu == 2_KiB);
  CHECK(packet.packet.options.window == 1_MB);
  CHECK(packet.packet.options.balance == engine::packet::Balance::spray);
  CHECK(packet.notes.empty());
  CHECK(setup_of("transport: hpcc\nengine: packet").packet.options.congestion ==
        engine::packet::Congestion::hpcc);
  CHECK(setup_of("transport: {dcqcn: {gain: 0.1}}\nengine: packet").notes.size() == 1);
  CHECK(error_of("transport: {step_overhaed: 2 us}").find("did you mean \"step_overhead\"?") !=
        std::string::npos);
}

TEST_CASE("setup: schemes that need the other engine") {
  CHECK(error_of("routing: {scheme: flowlet}") ==
        "s.yaml:2:10: scheme flowlet needs the packet engine; use engine: packet");
  for (const std::string name : {"flowlet", "adaptive", "reps", "multipath"}) {
    CHECK(error_of("routing: {scheme: " + name + "}") != "");
    CHECK(setup_of("engine: packet\nrouting: {scheme: " + name + "}").routing.scheme == name);
  }
  CHECK(error_of("engine: packet\nrouting: {scheme: optimal}") ==
        "s.yaml:3:10: scheme optimal pools links, which the packet engine cannot; use engine: "
        "fluid, or spray");
  CHECK(setup_of("engine: packet\nrouting: {scheme: spray}").routing.scheme == "spray");
}

TEST_CASE("setup: what packets cannot do is no matter to the fluid engine") {
  CHECK(setup_of("routing: {scheme: spray, weighted: true}").routing.weighted);
  CHECK(setup_of("routing: {scheme: optimal, weighted: true}").routing.weighted);
  CHECK(setup_of("routing: {scheme: spray}\ntransport: hpcc").notes.size() == 1);
  CHECK(error_of("routing: {scheme: spray, weighted: true}\nengine: packet") ==
        "s.yaml:2:10: scheme spray ignores weights on the packet engine; remove weighted, or use "
        "ecmp or e_ecmp");
  CHECK(error_of("routing: {scheme: spray}\ntransport: hpcc\nengine: packet")
            .find("cc: hpcc compares telemetry of one path") != std::string::npos);
}

TEST_CASE("setup: an estimate needs a fabric that stays as it is") {
  CHECK(setup_of("engine: packet").packet.estimate == 1);
  CHECK(setup_of("engine: {name: packet, estimate: 0.05}").packet.estimate == 0.05);
  CHECK(error_of("engine: {name: packet, estimate: 0.6}") ==
        "s.yaml:2:34: engine.estimate is 0.6, and half and a quarter of it run too, as much as the "
        "whole; choose 0.5 or less, 0.05 to begin with, or 1 for the whole");
  CHECK(error_of("engine: {name: fluid, estimate: 0.1}").find("unknown key \"estimate\"") !=
        std::string::npos);
  const std::string estimate = "engine: {name: packet, estimate: 0.1}\n";
  const std::string refused =
      "s.yaml:2:34: engine.estimate runs a part of the work, which does not go with ";
  CHECK(setup_of(estimate + "faults: [{kind: link_down, link: 'rtsw:0--ctsw:0'}]").changes.size() ==
        1);
  CHECK(error_of(estimate + "faults: [{kind: link_down, link: 'rtsw:0--ctsw:0', at: 1 ms}]")
            .starts_with(refused + "faults that begin or end during the run"));
  CHECK(error_of(estimate + "transport: {end: 1 ms}").starts_with(refused + "transport.end"));
  CHECK(error_of(estimate + "transport: {series: {interval: 1 us, links: ['rtsw:0->ctsw:0']}}")
            .starts_with(refused + "transport.series"));
}

TEST_CASE("setup: who cannot run on packets says so") {
  const Setup packet = setup_of("engine: packet");
  const Status refused = require_fluid(packet, "weft perf");
  REQUIRE(!refused.has_value());
  CHECK(refused.error().text() ==
        "s.yaml:2:9: weft perf does not run on the packet engine; use engine: fluid");
  CHECK(require_fluid(setup_of(""), "weft perf").has_value());
}

}  // namespace
}  // namespace weft::plan
