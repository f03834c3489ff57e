#include "plan/run/setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/faults.hpp"
#include "model/generate.hpp"

namespace weft::plan {
namespace {

// Keys of `transport:` that the packet engine will use; the fluid limit has no queues.
constexpr std::array packet_keys{"pfc", "cc", "ecn", "mtu"};

void read_transport(const Config& section, Setup& setup, Errors& errors) {
  Reader reader(section, "transport", errors);
  setup.step_overhead = reader.duration("step_overhead", Duration{});
  for (const char* key : packet_keys)
    if (reader.has(key))
      setup.notes.push_back(fmt::format(
          "transport.{} does not change the fluid engine: rates are max-min fair, without queues",
          key));
  reader.finish();
}

void read_engine(const Config& section, Setup& setup, Errors& errors) {
  const std::vector<std::string> names{"fluid"};
  const auto check = [&](const Config& name) {
    if (name.text == "fluid") return;
    if (name.text == "packet") {
      errors.push_back({Errc::unsupported,
                        name.where,
                        "the packet engine is not in this version",
                        "use engine: fluid",
                        {}});
    } else {
      errors.push_back(
          {Errc::unknown,
           name.where,
           fmt::format("unknown engine \"{}\"{}", name.text, did_you_mean(name.text, names)),
           "use engine: fluid",
           {}});
    }
  };
  if (section.kind == Config::Kind::null) return;
  if (section.kind == Config::Kind::scalar) return check(section);
  Reader reader(section, "engine", errors);
  if (const Config* name = reader.child("name")) check(*name);
  setup.engine.solver.tolerance = reader.number("tolerance", 0.0, 0, 0.1);
  const std::int64_t audit_default = setup.engine.solver.tolerance > 0 ? 1000 : 0;
  setup.engine.audit_every = static_cast<std::uint64_t>(reader.count("audit_every", audit_default));
  reader.finish();
}

// A rate loses nothing to dropped packets: what a sender does about them is not in the model.
void note_losses(const model::FaultTimeline& timeline, Setup& setup) {
  const bool lossy = std::ranges::any_of(timeline.snapshots, [](const auto& snapshot) {
    const model::State& state = snapshot.state;
    return std::ranges::any_of(state.troubled_links(),
                               [](const auto& link) { return link.second.loss > 0; });
  });
  if (lossy)
    setup.notes.push_back(
        "link_lossy does not change the fluid engine: it has no packets to lose; "
        "use link_degraded with the share of the rate that is left");
}

void add_fault_spans(const model::FaultTimeline& timeline, Setup& setup) {
  for (const auto& snapshot : timeline.snapshots) {
    if (snapshot.at.ps <= 0) continue;
    setup.fault_spans.push_back({.name = fmt::format("{} links and {} nodes in trouble",
                                                     snapshot.state.troubled_links().size(),
                                                     snapshot.state.troubled_nodes().size()),
                                 .category = "fault",
                                 .track = "faults",
                                 .start_s = snapshot.at.seconds(),
                                 .duration_s = 0,
                                 .args = {}});
  }
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
                      "there is no \"fabric:\"",
                      "add e.g. fabric: {generator: ai_zone, racks: 4}",
                      {}});
  } else if (auto fabric = model::build_fabric(scenario.section("fabric"))) {
    setup.fabric = *std::move(fabric);
  } else {
    append(errors, std::move(fabric).error());
  }
  setup.routing = route::read_routing(scenario.section("routing"), errors);
  read_transport(scenario.section("transport"), setup, errors);
  read_engine(scenario.section("engine"), setup, errors);
  if (errors.empty()) {
    auto timeline = model::read_faults(setup.fabric, scenario.section("faults"), scenario.seed);
    if (timeline) {
      setup.changes = timeline->snapshots;
      setup.fault_lines = timeline->lines;
      add_fault_spans(*timeline, setup);
      note_losses(*timeline, setup);
    } else {
      append(errors, std::move(timeline).error());
    }
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return setup;
}

}  // namespace weft::plan
