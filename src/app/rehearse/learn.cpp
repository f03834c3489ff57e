#include "app/rehearse/learn.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <map>

#include "app/rehearse/plan.hpp"
#include "app/rehearse/rehearse.hpp"
#include "model/events/entity.hpp"

namespace weft::app {
namespace {

using model::CauseKind;
using operate::repair::RepairRow;
using operate::repair::Resolution;

constexpr double month_ns = 30.0 * 24 * 3600 * 1e9;

bool is_fault(const RepairRow& row) {
  return row.resolution != Resolution::no_fault_found && row.resolution != Resolution::moved &&
         row.resolution != Resolution::rejected;
}

bool is_trunk(const model::Fabric& fabric, const model::Entity& entity) {
  const model::CableId cable = entity.kind == model::EntityKind::cable
                                   ? model::CableId(entity.id)
                                   : model::cable_of(model::LinkId(entity.id));
  const model::LinkId link = model::forward(cable);
  return fabric.is_switch(fabric.from(link)) && fabric.is_switch(fabric.to(link));
}

// The key of `rates:` that the repair counts for; "": none.
std::string_view key_of(const model::Fabric& fabric, const RepairRow& row) {
  const bool is_link = row.kind == CauseKind::link || row.kind == CauseKind::flap;
  if (is_link && row.resolution == Resolution::healed) return "blips_per_day";
  const auto entity = model::find_entity(fabric, {row.entity, {}});
  const bool on_cable = entity && (entity->kind == model::EntityKind::cable ||
                                   entity->kind == model::EntityKind::link);
  const bool trunk = on_cable && is_trunk(fabric, *entity);
  switch (row.kind) {
    case CauseKind::link:
      return !on_cable ? "" : trunk ? "trunk_cable" : "host_cable";
    case CauseKind::flap:
      return trunk ? "port_flap" : "";
    case CauseKind::optic:
      return trunk ? "optic" : "";
    case CauseKind::nic:
      return "host_nic";
    case CauseKind::host:
      return "host";
    case CauseKind::card:
      return "line_card";
    case CauseKind::control_plane:
      return "control_plane";
    case CauseKind::rack_device:
      return "rack_switch";
    case CauseKind::device:
      return "switch";
    default:
      return "";
  }
}

}  // namespace

PoissonInterval poisson_interval(double count) {
  using boost::math::gamma_p_inv;
  return {count > 0 ? gamma_p_inv(count, 0.025) : 0, gamma_p_inv(count + 1, 0.975)};
}

LearnedRates learn_rates(const model::Fabric& fabric, std::span<const RepairRow> rows,
                         Timestamp from, Timestamp until) {
  LearnedRates out{.from = from, .until = until};
  const RehearseModel defaults = *read_rehearse_model(Config::map());
  const RehearseParts parts(fabric, defaults.operations.ports_per_card);
  std::map<std::string_view, double> count;
  for (const RepairRow& row : rows) {
    if (row.opened < from || row.opened >= until) continue;
    out.unknown +=
        !row.entity.empty() && !model::find_entity(fabric, {row.entity, {}}).has_value() ? 1 : 0;
    const std::string_view key = is_fault(row) ? key_of(fabric, row) : "";
    if (key.empty())
      ++out.left_out;
    else
      count[key] += 1;
  }
  const RehearseModel::Rates& r = defaults.rates;
  const double cables = count["trunk_cable"];
  count["grey_loss"] = cables * r.grey / (r.grey + r.trunk_cable);
  count["trunk_cable"] = cables - count["grey_loss"];
  const double months = static_cast<double>(until.ns - from.ns) / month_ns;
  const auto add = [&](std::string_view key, std::size_t of, double periods) {
    if (of == 0) return;
    const double faults = count[key], exposure = static_cast<double>(of) * periods;
    const PoissonInterval interval = poisson_interval(faults);
    out.rates.push_back({.key = std::string(key),
                         .faults = faults,
                         .parts = of,
                         .rate = faults / exposure,
                         .low = interval.low / exposure,
                         .high = interval.high / exposure});
  };
  add("host_cable", parts.leaves.size(), months);
  add("trunk_cable", parts.trunks.size(), months);
  add("rack_switch", parts.rack_switches.size(), months);
  add("switch", parts.others.size(), months);
  add("line_card", parts.cards.size(), months);
  add("control_plane", parts.switches.size(), months);
  add("grey_loss", parts.trunks.size(), months);
  add("optic", parts.trunks.size(), months);
  add("port_flap", parts.trunks.size(), months);
  add("host_nic", parts.nics.size(), months);
  add("host", parts.hosts.size(), months);
  add("blips_per_day", parts.leaves.size() + parts.trunks.size(), 30 * months);
  return out;
}

std::string to_yaml(const LearnedRates& learned) {
  const double days = static_cast<double>(learned.until.ns - learned.from.ns) / (month_ns / 30);
  std::string out = fmt::format(
      "# Rates learned from {} to {} ({:.1f} days), for weft rehearse --model. What the fabric has "
      "none of keeps its default.\n# {} repairs are left out: no fault was found, or the model has "
      "none of that kind.\nrates:\n",
      to_text(learned.from), to_text(learned.until), days, learned.left_out);
  for (const LearnedRate& one : learned.rates)
    out += fmt::format("  {:<28}# {:.4g} of {} parts; 95 %: {:.3g} to {:.3g}\n",
                       fmt::format("{}: {:.4g}", one.key, one.rate), one.faults, one.parts, one.low,
                       one.high);
  return out;
}

}  // namespace weft::app
