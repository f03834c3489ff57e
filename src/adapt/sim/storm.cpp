#include "adapt/sim/storm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "adapt/sim/storm_background.hpp"
#include "adapt/sim/storm_context.hpp"
#include "adapt/sim/storm_plan.hpp"
#include "adapt/sim/storm_scripts.hpp"
#include "adapt/sim/storm_voice.hpp"
#include "model/events/entity.hpp"

namespace weft::adapt::sim {

using observe::telemetry::Dialect;

namespace {

constexpr std::uint64_t lines_max = 50'000'000;
constexpr std::uint32_t faults_max = 100'000;
constexpr double hours_max = 24 * 366;

Status check(const StormOptions& options) {
  const auto share = [](double value) { return value >= 0 && value <= 1; };
  const auto refuse = [](std::string_view what, std::string_view range) {
    return fail(Errc::value, {}, fmt::format("{} must be in {}", what, range),
                "use a value in this range");
  };
  if (options.faults > faults_max) return refuse("faults", fmt::format("[0, {}]", faults_max));
  if (options.lines > lines_max) return refuse("lines", fmt::format("[0, {}]", lines_max));
  if (!(options.hours >= 0.1 && options.hours <= hours_max))
    return refuse("hours", fmt::format("[0.1, {}]", hours_max));
  if (!share(options.adjacent)) return refuse("adjacent", "[0, 1]");
  if (!share(options.lost) || options.lost > 0.9) return refuse("the lost share", "[0, 0.9]");
  if (!share(options.doubled)) return refuse("the doubled share", "[0, 1]");
  if (!share(options.starved)) return refuse("the starved share", "[0, 1]");
  if (options.ports_per_card < 2) return refuse("ports per card", "[2, 2^32)");
  if (options.start.ns < 0 || options.start.ns > timestamp_ns_max / 2)
    return refuse("the start", "[1970, 2115]");
  return {};
}

// A cable by all its names; that of a NIC may also be told by the NIC.
void add_cable(const model::Fabric& fabric, model::CableId cable, std::vector<model::Entity>& out) {
  const model::LinkId link = model::forward(cable), back = model::reverse(link);
  out.push_back(model::entity(cable));
  for (const model::LinkId each : {link, back}) {
    out.push_back(model::port_of(each));
    out.push_back(model::entity(each));
    if (fabric.kind(fabric.from(each)) == model::NodeKind::nic)
      out.insert(out.begin(), model::entity(fabric.from(each)));
  }
}

// All that an answer may name, the best first: docs/storm.md, "Truth".
std::vector<model::Entity> answers(const model::Fabric& fabric, const StormFault& fault) {
  switch (fault.type) {
    case ProblemType::port_flap:
    case ProblemType::optic:
    case ProblemType::cable:
    case ProblemType::host_nic:
    case ProblemType::congestion: {
      std::vector<model::Entity> out;
      add_cable(fabric, fault.cables.front(), out);
      if (fault.type == ProblemType::congestion)
        out.push_back(model::entity(fabric.host_of(fault.nodes.front())));
      return out;
    }
    case ProblemType::line_card:
      return {model::card_of(fault.nodes.front(), fault.card)};
    case ProblemType::power:
    case ProblemType::zone:
      return {model::entity(fault.scope)};
    case ProblemType::misconfiguration: {
      std::vector<model::Entity> out;
      for (const model::NodeId node : fault.nodes) out.push_back(model::entity(node));
      return out;
    }
    default:
      return {model::entity(fault.nodes.front())};
  }
}

model::Episode truth_of(const model::Fabric& fabric, const StormFault& fault, std::size_t index,
                        Timestamp start) {
  model::Episode out;
  out.id = fmt::format("f{}", index + 1);
  out.kind = to_text(fault.type);
  for (const model::Entity& entity : answers(fabric, fault))
    out.entities.push_back(name(fabric, entity));
  out.start = {start.ns + fault.start};
  out.end = {start.ns + fault.end};
  if (fault.change != 0) out.attrs.emplace_back("change", fmt::format("CHG{}", fault.change));
  return out;
}

}  // namespace

std::map<std::string, Dialect> storm_dialects(const model::Fabric& fabric,
                                              const StormOptions& options) {
  constexpr std::array<Dialect, 6> in_turn{Dialect::sonic, Dialect::eos,  Dialect::frr,
                                           Dialect::junos, Dialect::nxos, Dialect::cumulus};
  std::map<std::string, Dialect> out;
  std::vector<std::string> names;
  for (const auto& role : fabric.roles()) {
    out[role.name] = Dialect::host;
    if (role.kind == model::NodeKind::fabric_switch) names.push_back(role.name);
  }
  // By name from the end: "rtsw" before "ctsw".
  std::ranges::sort(names, std::ranges::greater{});
  for (std::size_t i = 0; i < names.size(); ++i) out[names[i]] = in_turn[i % in_turn.size()];
  for (const auto& [role, dialect] : options.dialects) out[role] = dialect;
  return out;
}

Result<Storm> generate_storm(const model::Fabric& fabric, const StormOptions& options) {
  WEFT_TRY_STATUS(check(options));
  for (const auto& [role, dialect] : options.dialects)
    if (!fabric.find_role(role).valid())
      return fail(Errc::unknown, {}, fmt::format("the fabric has no role {}", quote(role)),
                  "use a role of its switches");
  const StormContext context(fabric, options.ports_per_card);
  if (context.switches.empty())
    return fail(Errc::infeasible, {}, "this fabric has no switches", "use a fabric with a network");
  WEFT_TRY(const std::vector<StormFault> faults, plan_storm(context, options));
  StormVoice voice(context, options);
  StormScripts scripts(context, faults, voice);
  for (std::size_t i = 0; i < faults.size(); ++i) scripts.tell(i);

  Storm out;
  out.fault_lines = voice.size();
  if (options.lines != 0 && out.fault_lines > options.lines)
    return fail(Errc::infeasible, {},
                fmt::format("the faults alone produce {} lines", out.fault_lines),
                fmt::format("request {} lines, or omit the number", 2 * out.fault_lines));
  const std::uint64_t lines = options.lines != 0 ? options.lines : 2 * out.fault_lines;
  tell_background(context, options, faults, scripts, voice, lines);
  out.lines = voice.take();
  std::ranges::stable_sort(out.lines, {}, &StormLine::received);
  for (std::size_t i = 0; i < faults.size(); ++i)
    out.truth.push_back(truth_of(fabric, faults[i], i, options.start));
  out.end = {options.start.ns + static_cast<std::int64_t>(options.hours * 3600e9)};
  return out;
}

model::RecordSet to_records(const model::Fabric& fabric, const Storm& storm, StormFormat format) {
  model::RecordSet out;
  std::size_t logged = 0;
  out.rows.reserve(storm.lines.size());
  std::map<std::string, std::uint32_t> known;
  const auto intern = [&](const char* key, std::string value) {
    const auto [at, is_new] = known.emplace(key + value, 0);
    if (is_new) at->second = out.add_attributes({{key, std::move(value)}});
    return at->second;
  };
  for (const StormLine& line : storm.lines) {
    model::Record row;
    row.t = {line.t};
    row.until = {line.until};
    row.received = {line.received};
    row.entity = line.entity;
    row.kind = line.kind;
    row.source = line.source;
    row.value = line.value;
    const bool raw = format == StormFormat::syslog && line.source == model::Source::syslog;
    row.id =
        out.add_id(raw ? fmt::format("s{}", ++logged) : fmt::format("r{}", out.rows.size() + 1));
    using observe::telemetry::Reason;
    if (line.reason != Reason::none)
      row.attrs = intern("reason", std::string(to_text(line.reason)));
    if (line.change != 0) row.attrs = intern("change", fmt::format("CHG{}", line.change));
    if (line.stray != 0)
      row.attrs =
          intern("entity", fmt::format("{}/Ethernet1/{}", fabric.name(line.speaker), line.stray));
    out.rows.push_back(row);
  }
  return out;
}

}  // namespace weft::adapt::sim
