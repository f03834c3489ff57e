// `weft probe --twin`: the fabric of the file, simulated, answers; its faults are the truth.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "adapt/sim/world.hpp"
#include "adapt/sim/world_faults.hpp"
#include "base/file.hpp"
#include "base/line_reader.hpp"
#include "base/plural.hpp"
#include "cli/cli.hpp"
#include "cli/probe_args.hpp"
#include "model/events/episode.hpp"
#include "observe/probe/plan_file.hpp"
#include "plan/run/setup.hpp"

namespace weft::cli {
namespace {

namespace probe = observe::probe;
namespace sim = adapt::sim;
using model::LinkId;
using model::NodeId;

// What links without a fault lose at most, each its own share of it.
constexpr double good_loss_max = 1e-5;
constexpr double window_default_s = 10;
constexpr std::int64_t twin_windows_max = 1'000'000;

struct TwinTimes {
  std::int64_t window_ns = 0, end_ns = 0;
};

Result<TwinTimes> read_times(const ProbeArgs& args) {
  TwinTimes out;
  WEFT_TRY(out.window_ns, read_span_ns(args.window, "--window"));
  const std::string& text = args.duration.empty() ? args.window : args.duration;
  WEFT_TRY(out.end_ns, read_span_ns(text, "--duration"));
  if (out.window_ns < 1'000'000 || out.end_ns < out.window_ns ||
      out.end_ns / out.window_ns > twin_windows_max)
    return fail(Errc::value, {"--duration", 0, 0},
                fmt::format("{} in windows of {}", text, args.window),
                "use windows of 1 ms or more, and 1 to 1,000,000 of them");
  return out;
}

// Each flow with the rate of the plan; the world finds its ways.
Result<std::vector<sim::TwinFlow>> flows_of(const model::Fabric& fabric,
                                            const std::vector<probe::PlanLine>& lines) {
  std::vector<sim::TwinFlow> out;
  for (const probe::PlanLine& line : lines) {
    for (const model::NodeId end : {line.src, line.dst})
      if (fabric.kind(end) != model::NodeKind::nic || line.src == line.dst)
        return fail(Errc::value, {"--plan", 0, 0},
                    fmt::format("nobody can probe from {} to {}", fabric.name(line.src),
                                fabric.name(line.dst)),
                    "name two NICs in src and dst");
    const double window_s = line.window_s > 0 ? line.window_s : window_default_s;
    out.push_back({.src = line.src,
                   .dst = line.dst,
                   .sport = line.source_port,
                   .dport = line.target_port,
                   .per_s = static_cast<double>(line.probes) / window_s});
  }
  return out;
}

Result<std::vector<probe::PlanLine>> read_lines(const ProbeArgs& args,
                                                const model::Fabric& fabric) {
  if (args.plan.empty())
    return fail(Errc::value, {"--twin", 0, 0}, "the twin needs a probe plan",
                "make one: weft probe plan --fabric F --crossings 1000 --json > plan.jsonl");
  WEFT_TRY(LineReader lines, LineReader::open(args.plan));
  WEFT_TRY(std::vector<probe::PlanLine> plan, probe::read_plan(fabric, lines));
  if (plan.empty())
    return fail(Errc::value, {args.plan, 0, 0}, "the plan is empty", "add flows to the plan");
  return plan;
}

// The network of the file, with its faults; no people mend them.
Result<std::unique_ptr<sim::World>> make_world(const plan::Setup& setup, const Config& faults,
                                               const std::vector<probe::PlanLine>& lines,
                                               std::int64_t window_ns, std::uint64_t seed) {
  constexpr Timestamp begin{0};
  WEFT_TRY(const auto timed, sim::read_world_faults(setup.fabric, faults, begin));
  WEFT_TRY(std::vector<sim::TwinFlow> flows, flows_of(setup.fabric, lines));
  sim::WorldSettings settings{.flows = std::move(flows),
                              .good_loss_max = good_loss_max,
                              .window_ns = window_ns,
                              .steady_window_ns = window_ns,
                              .quiet_window_ns = window_ns};
  settings.operations.seed = seed;
  WEFT_TRY(auto world, sim::World::create(setup.fabric, setup.routing, settings, begin));
  for (const sim::TimedFault& fault : timed) world->net().begin_at(fault.at, fault.start);
  return world;
}

// Prints the rows of each window where they are wanted, else what they come to.
Status probe_world(sim::World& world, const TwinTimes& times, bool prints) {
  std::uint64_t sent = 0, lost = 0;
  world.take_probes();
  for (std::int64_t at = 0; at < times.end_ns;) {
    at = std::min(at + times.window_ns, times.end_ns);
    WEFT_TRY_STATUS(world.advance({at}));
    if (at == times.end_ns) world.end_window();
    for (const std::string& line : world.evidence())
      if (prints) fmt::print("{}\n", line);
    const model::EvidenceSet seen = world.take_probes();
    for (const model::Evidence& row : seen.rows) {
      if (row.leg != model::Leg::back) sent += row.sent;
      lost += row.lost;
    }
    world.records();  // nobody reads them here
  }
  if (!prints)
    fmt::print("{} of {}: {} lost\n", counted(sent, "probe"), counted(world.flow_count(), "flow"),
               lost);
  return {};
}

Status run_twin(const Common& common, const ProbeArgs& args) {
  if (args.fabric.empty())
    return fail(Errc::value, {"--twin", 0, 0}, "the twin needs a fabric", "add --fabric");
  WEFT_TRY(const TwinTimes times, read_times(args));
  WEFT_TRY(const model::LoadOptions options, common.load_options(fabric_file_keys()));
  WEFT_TRY(model::ScenarioFile file, model::load_scenario(args.fabric, options));
  model::Scenario& scenario = file.variants.front();
  // A simulated network has kinds of faults that runs have not, and reads them itself.
  Config faults;
  if (Config* section = scenario.root.find("faults"); section != nullptr)
    faults = std::exchange(*section, Config());
  WEFT_TRY(const plan::Setup setup, plan::read_setup(scenario));
  WEFT_TRY(const std::vector<probe::PlanLine> lines, read_lines(args, setup.fabric));
  WEFT_TRY(const auto world, make_world(setup, faults, lines, times.window_ns, scenario.seed));
  WEFT_TRY_STATUS(probe_world(*world, times, common.json));
  if (args.truth.empty()) return {};
  std::string truth;
  for (const model::Episode& episode : sim::episodes(setup.fabric, world->net()))
    truth += model::to_json(episode) + "\n";
  return write_file(args.truth, truth);
}

}  // namespace

int probe_twin_command(const Common& common, const ProbeArgs& args) {
  const Status status = run_twin(common, args);
  return status ? done : report(status.error());
}

}  // namespace weft::cli
