#include "plan/run/setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/jobs/declare.hpp"
#include "engine/packet/read_options.hpp"
#include "engine/packet_jobs/estimate.hpp"
#include "model/fabric/faults.hpp"
#include "model/formats/build_fabric.hpp"

namespace weft::plan {
namespace {

// Keys of `transport:` that matter to the fluid engine, which has no queues.
constexpr std::array<std::string_view, 2> fluid_keys{"step_overhead", "mtu"};
constexpr Duration never_heard = 86'400_s * 30;  // after any run

// One section serves both engines, and is checked for both; how it goes with `routing:` matters to
// the packet engine alone.
void read_transport(const Config& given, Setup& setup, Errors& errors) {
  const Config section = engine::packet::transport_section(given);
  Reader reader(section, "transport", errors);
  setup.step_overhead = reader.duration("step_overhead", Duration{});
  const model::Fabric* fabric = setup.fabric.node_count() > 0 ? &setup.fabric : nullptr;
  std::vector<std::string> notes;
  using Runner = engine::packet::ReadContext::Runner;
  const bool packets = setup.engine_name == EngineName::packet;
  setup.packet.options = engine::packet::read_options(
      reader, {fabric, setup.routing, errors, notes, packets ? Runner::packets : Runner::other});
  setup.fluid.options.mtu = setup.packet.options.wire.mtu;
  reader.finish();
  if (packets) {
    setup.notes = std::move(notes);
    return;
  }
  for (const Config::Field& field : section.fields)
    if (std::ranges::find(fluid_keys, field.key) == fluid_keys.end())
      setup.notes.push_back(fmt::format(
          "transport.{} has no effect on the fluid engine: rates are max-min fair, without queues",
          field.key));
}

void read_fluid_engine(Reader& reader, Setup& setup) {
  setup.fluid.options.simulation.solver.tolerance = reader.number("tolerance", 0.0, 0, 0.1);
  if (!reader.flag("contention", true))
    setup.fluid.options.contention = engine::fluid::NetworkOptions::Contention::off;
  const std::int64_t audit_default = setup.fluid.options.simulation.solver.tolerance > 0 ? 1000 : 0;
  setup.fluid.options.simulation.audit_every =
      static_cast<std::uint64_t>(reader.count("audit_every", audit_default));
}

// A name, or a map with the engine's own keys. Returns the number of threads, 0 for not given.
std::uint32_t read_engine(const Config& given, Setup& setup, Errors& errors) {
  constexpr std::int64_t threads_max = 64;
  Config section = given;
  if (given.kind == Config::Kind::scalar) {
    section = Config::map(given.where);
    section.at_or_add("name") = given;
  }
  const std::vector<std::string> names{std::string(setup.fluid.name),
                                       std::string(setup.packet.name)};
  Reader reader(section, "engine", errors);
  setup.engine_name = static_cast<EngineName>(reader.choice("name", names, 0));
  setup.engine_where = reader.where("name");
  std::uint32_t threads = 0;
  if (setup.engine_name == EngineName::packet) {
    threads = static_cast<std::uint32_t>(reader.count("threads", 0, 0, threads_max));
    setup.packet.memoise =
        reader.flag("memoise", true) ? engine::packet::Memoise::on : engine::packet::Memoise::off;
    setup.packet.estimate = reader.number("estimate", 1.0, 1e-6, 1);
    constexpr double most = engine::packet::estimate_share_max;
    if (setup.packet.estimate < 1 && setup.packet.estimate > most)
      errors.push_back(
          {Errc::value,
           reader.where("estimate"),
           fmt::format("engine.estimate is {}, and half and a quarter of it run too, as "
                       "much as the whole",
                       setup.packet.estimate),
           fmt::format("choose {} or less, 0.05 to begin with, or 1 for the whole", most),
           {}});
    setup.estimate_where = reader.where("estimate");
  } else {
    read_fluid_engine(reader, setup);
  }
  reader.finish();
  return threads;
}

void check_scheme(const Setup& setup, Errors& errors) {
  const route::SchemeEngine needs = route::engine_of(setup.routing.scheme);
  const Where where = setup.routing.where;
  if (needs == route::SchemeEngine::packet && setup.engine_name == EngineName::fluid)
    errors.push_back({Errc::unsupported,
                      where,
                      fmt::format("scheme {} needs the packet engine", setup.routing.scheme),
                      "use engine: packet",
                      {}});
  if (needs == route::SchemeEngine::fluid && setup.engine_name == EngineName::packet)
    errors.push_back(
        {Errc::unsupported,
         where,
         fmt::format("scheme {} pools links, which the packet engine cannot", setup.routing.scheme),
         "use engine: fluid, or spray",
         {}});
  // Known here alone: a transport may have chosen the scheme.
  constexpr std::array<std::string_view, 3> converging{"ecmp", "e_ecmp", "te"};
  if (setup.routing.convergence &&
      std::ranges::find(converging, setup.routing.scheme) == converging.end())
    errors.push_back(
        {Errc::unsupported,
         where,
         fmt::format("convergence is not modelled for scheme {}", setup.routing.scheme),
         fmt::format("choose one of {}, or remove routing.convergence",
                     fmt::join(converging, ", ")),
         {}});
}

// What an estimate runs a part of must be alike from start to end.
void check_estimate(const Setup& setup, Errors& errors) {
  if (setup.packet.estimate >= 1) return;
  const engine::packet::Options& options = setup.packet.options;
  const auto refuse = [&](std::string_view what, std::string_view advice) {
    errors.push_back(
        {Errc::unsupported,
         setup.estimate_where,
         fmt::format("engine.estimate runs a part of the work, which does not go with {}", what),
         std::string(advice),
         {}});
  };
  const bool changes = std::ranges::any_of(
      setup.changes, [](const engine::StateChange& change) { return change.at.ps > 0; });
  if (changes)
    refuse("faults that begin or end during the run",
           "remove engine.estimate, or let faults last from 0 on");
  if (options.end != engine::packet::never) refuse("transport.end", "remove one of the two");
  if (options.series.interval > Duration{}) refuse("transport.series", "remove one of the two");
}

void add_fault_spans(const model::FaultTimeline& timeline, Setup& setup) {
  for (const auto& snapshot : timeline.snapshots) {
    if (snapshot.at.ps <= 0) continue;
    setup.fault_spans.push_back({.name = fmt::format("{} links and {} nodes affected",
                                                     snapshot.state.troubled_links().size(),
                                                     snapshot.state.troubled_nodes().size()),
                                 .category = "fault",
                                 .track = "faults",
                                 .start_s = snapshot.at.seconds(),
                                 .duration_s = 0,
                                 .args = {}});
  }
}

// Without a controller's renewals switches ignore its marks from then on.
void lapse_marks(std::vector<model::FaultTimeline::Snapshot>& changes, Time at) {
  auto first = std::ranges::lower_bound(changes, at, {}, &model::FaultTimeline::Snapshot::at);
  if (first == changes.end() || first->at != at) {
    const model::State before = first == changes.begin() ? model::State{} : std::prev(first)->state;
    first = changes.insert(first, {at, before});
  }
  for (; first != changes.end(); ++first) first->state.lapse_marks();
}

// The states of the fabric as switches and a controller hear of them.
void hear_late(Setup& setup) {
  const route::RoutingConfig& routing = setup.routing;
  model::Lateness late;
  if (routing.scheme == "te") late.seen = routing.te_dead ? never_heard : routing.te_sees;
  if (routing.convergence) {
    late.routed = routing.convergence->bgp;
    late.noticed = routing.convergence->detect;
  }
  if (routing.te_sees > Duration{} && routing.scheme != "te") {
    setup.notes.push_back(
        fmt::format("routing.te.sees has no effect with scheme {}: switches see the state as it is",
                    routing.scheme));
  }
  if (routing.te_dead && routing.scheme != "te")
    setup.notes.push_back(fmt::format(
        "routing.te.controller has no effect with scheme {}: there is none", routing.scheme));
  if (late.seen > Duration{} || routing.convergence)
    setup.changes = model::heard_late(setup.changes, late);
  if (routing.scheme == "te" && routing.te_dead)
    lapse_marks(setup.changes, Time{} + routing.te_lease);
}

void append(Errors& errors, Error error) {
  Errors more = std::move(error.more);
  error.more.clear();
  errors.push_back(std::move(error));
  for (Error& e : more) errors.push_back(std::move(e));
}

}  // namespace

Result<Setup> read_setup(const model::Scenario& scenario) {
  Setup setup;
  Errors errors;
  if (scenario.section("fabric").kind == Config::Kind::null) {
    errors.push_back({Errc::parse,
                      scenario.root.where,
                      "\"fabric:\" is missing",
                      "add e.g. fabric: {generator: ai_zone, racks: 4}",
                      {}});
  } else if (auto fabric = model::build_fabric(scenario.section("fabric"))) {
    setup.fabric = *std::move(fabric);
  } else {
    append(errors, std::move(fabric).error());
  }
  setup.routing = route::read_routing(scenario.section("routing"), errors);
  const std::uint32_t threads = read_engine(scenario.section("engine"), setup, errors);
  read_transport(scenario.section("transport"), setup, errors);
  setup.library = workload::read_library(scenario.section("collectives"), errors);
  setup.routing.weigh_qps = setup.library.adaptive;
  setup.packet.options.threads = threads;
  setup.packet.options.seed = scenario.seed;
  check_scheme(setup, errors);
  if (errors.empty()) {
    auto timeline = model::read_faults(setup.fabric, scenario.section("faults"), scenario.seed);
    if (timeline) {
      setup.changes = timeline->snapshots;
      setup.fault_lines = timeline->lines;
      add_fault_spans(*timeline, setup);
      hear_late(setup);
      check_estimate(setup, errors);
    } else {
      append(errors, std::move(timeline).error());
    }
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return setup;
}

model::State Setup::state_at_start() const {
  model::State out;
  for (const engine::StateChange& change : changes)
    if (change.at.ps <= 0) out = change.state;
  return out;
}

std::string_view Setup::engine_text() const {
  return engine_name == EngineName::fluid ? fluid.name : packet.name;
}

Result<engine::RunResult> Setup::run(const engine::Work& work, route::Router& router,
                                     const engine::Watch& watch) const {
  std::vector<model::Note> notes = engine::declare_flows(work, router);
  auto result = engine_name == EngineName::fluid ? fluid.run(work, router, changes, watch)
                                                 : packet.run(work, router, changes, watch);
  if (const std::string report = router.controller_report(); !report.empty())
    notes.push_back({model::Note::Severity::info, report});
  if (result) result->notes.insert(result->notes.end(), notes.begin(), notes.end());
  return result;
}

Status require_fluid(const Setup& setup, std::string_view what) {
  if (setup.engine_name == EngineName::fluid) return {};
  return fail(Errc::unsupported, setup.engine_where,
              fmt::format("{} does not run on the packet engine", what), "use engine: fluid");
}

}  // namespace weft::plan
