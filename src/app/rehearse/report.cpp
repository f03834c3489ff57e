// What a rehearsal came to, for people and machines.
#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "app/rehearse/rehearse.hpp"
#include "base/json_text.hpp"
#include "base/plural.hpp"
#include "model/events/case.hpp"

namespace weft::app {
namespace {

using model::CauseKind;

double ratio(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole);
}

// What a fault can be counted as: a count that a rehearsal does not have is 0.
constexpr std::array<std::string_view, 10> problem_types{
    to_text(CauseKind::link),          to_text(CauseKind::optic),
    to_text(CauseKind::flap),          to_text(CauseKind::card),
    to_text(CauseKind::device),        to_text(CauseKind::nic),
    to_text(CauseKind::host),          to_text(CauseKind::rack_device),
    to_text(CauseKind::control_plane), "blip"};

RehearseReport::Problem problem_of(const RehearseReport& r, std::string_view type) {
  const auto at = r.problems.find(std::string(type));
  return at == r.problems.end() ? RehearseReport::Problem{} : at->second;
}

using Figures = std::vector<RehearseFigure>;

void add_share(Figures& out, std::string name, std::uint64_t part, std::uint64_t whole) {
  if (whole > 0) out.push_back({std::move(name), ratio(part, whole)});
}

void add_minutes(Figures& out, const RehearseReport& r) {
  std::uint64_t faults = 0, found = 0, named = 0, inside = 0, across = 0;
  for (const auto& [type, p] : r.problems) {
    faults += p.faults;
    found += p.found;
    named += p.named;
    inside += p.bad_inside;
    across += p.bad_across;
  }
  const auto add = [&](std::string name, std::uint64_t value) {
    out.push_back({std::move(name), static_cast<double>(value)});
  };
  add("bad_minutes", inside + across);
  add("bad_minutes.inside", inside);
  add("bad_minutes.across", across);
  for (const std::string_view type : problem_types) {
    const RehearseReport::Problem p = problem_of(r, type);
    add(fmt::format("bad_minutes.{}", type), p.bad_inside + p.bad_across);
  }
  add_share(out, "bad_minutes.with_case_share", r.bad_known, inside + across);
  add("faults", faults);
  for (const std::string_view type : problem_types)
    add(fmt::format("faults.{}", type), problem_of(r, type).faults);
  add("blips", r.blips);
  add("blips.repairs", r.blip_repairs);
  add("blips.drains", r.blip_drains);
  add_share(out, "found_share", found, faults);
  add_share(out, "named_share", named, faults);
  add("cases", r.cases);
  add("cases.false", r.cases_false);
}

// Over all problems: a mean of means, weighed by their counts.
void add_repairs(Figures& out, const RehearseReport& r) {
  std::uint64_t repairs = 0, healed = 0;
  double count = 0, sum_s = 0;
  Figures times;
  for (const operate::repair::ProblemAccount& p : r.ledger.problems) {
    repairs += p.repairs;
    healed += p.healed.count;
    if (p.whole.count == 0) continue;
    count += static_cast<double>(p.whole.count);
    sum_s += p.whole.mean_s * static_cast<double>(p.whole.count);
    const std::string type(to_text(p.kind));
    times.push_back({"time_to_repair_s." + type, p.whole.mean_s});
    times.push_back({"time_to_repair_s." + type + ".p90", p.whole.p90_s});
  }
  out.push_back({"repairs", static_cast<double>(repairs)});
  out.push_back({"repairs.healed", static_cast<double>(healed)});
  out.push_back({"repairs.no_fault_found", static_cast<double>(r.ledger.no_fault_found)});
  if (count > 0) out.push_back({"time_to_repair_s", sum_s / count});
  out.insert(out.end(), times.begin(), times.end());
}

}  // namespace

Figures figures(const RehearseReport& r) {
  Figures out;
  add_minutes(out, r);
  add_repairs(out, r);
  const auto add = [&](std::string name, double value) { out.push_back({std::move(name), value}); };
  add_share(out, "offenders.recall", r.lemons_found, r.lemons);
  add_share(out, "offenders.precision", r.lemons_found, r.offenders);
  add("offenders.replaced", static_cast<double>(r.replaced));
  add("visits", static_cast<double>(r.visits));
  add("drains", static_cast<double>(r.drains));
  std::uint64_t refused = 0;
  for (const auto& [guard, count] : r.refused) refused += count;
  add("drains.refused", static_cast<double>(refused));
  add("drained_cable_hours", r.drained_cable_hours);
  return out;
}

std::string to_json(const RehearseReport& r) {
  JsonObject problems, refused;
  for (const auto& [name, p] : r.problems)
    problems.add(name, JsonObject()
                           .add("faults", p.faults)
                           .add("found", p.found)
                           .add("named", p.named)
                           .add("bad_inside", p.bad_inside)
                           .add("bad_across", p.bad_across));
  for (const auto& [guard, count] : r.refused) refused.add(guard, count);
  return JsonObject()
      .add("span_s", 86400.0 * r.days)
      .add("seed", r.seed)
      .add("rack_minutes", r.rack_minutes)
      .add("bad_with_case", r.bad_known)
      .add("problems", problems)
      .add("blips", r.blips)
      .add("blip_repairs", r.blip_repairs)
      .add("blip_drains", r.blip_drains)
      .add("lines", r.lines)
      .add("ticks", r.ticks)
      .add("cases", r.cases)
      .add("cases_false", r.cases_false)
      .add("refused", refused)
      .add("offenders", JsonObject()
                            .add("planted", r.lemons)
                            .add("found", r.lemons_found)
                            .add("named", r.offenders)
                            .add("recall", ratio(r.lemons_found, r.lemons), decimals(4))
                            .add("precision", ratio(r.lemons_found, r.offenders), decimals(4))
                            .add("replaced", r.replaced))
      .add("cost", JsonObject()
                       .add("visits", r.visits)
                       .add("drains", r.drains)
                       .add("drained_cable_hours", r.drained_cable_hours, decimals(2)))
      .add("ledger", JsonText{operate::repair::to_json(r.ledger)})
      .text();
}

std::string to_table(const RehearseReport& r) {
  std::string out = fmt::format("{}, seed {}: {}, {} ({} false), {}\n\n", counted(r.days, "day"),
                                r.seed, counted(r.lines, "line"), counted(r.cases, "case"),
                                r.cases_false, counted(r.blips, "single carrier loss"));
  out += fmt::format("{:<16}{:>8}{:>8}{:>8}{:>14}{:>14}\n", "problem", "faults", "found", "named",
                     "bad inside", "bad across");
  std::uint64_t bad = 0;
  for (const auto& [name, p] : r.problems) {
    out += fmt::format("{:<16}{:>8}{:>8}{:>8}{:>14}{:>14}\n", name, p.faults, p.found, p.named,
                       p.bad_inside, p.bad_across);
    bad += p.bad_inside + p.bad_across;
  }
  out += fmt::format(
      "\nBad rack-minutes: {} of {} ({:.4f} %), {:.1f} % of them with a case about the cause.\n",
      bad, 2 * r.rack_minutes, 100 * (1 - ratio(2 * r.rack_minutes - bad, 2 * r.rack_minutes)),
      100 * ratio(r.bad_known, bad));
  out += fmt::format(
      "Repeat offenders: {} of {} planted found, {} named in all (recall {:.2f}, precision "
      "{:.2f}); {} replaced.\n",
      r.lemons_found, r.lemons, r.offenders, ratio(r.lemons_found, r.lemons),
      ratio(r.lemons_found, r.offenders), r.replaced);
  out += fmt::format("Cost: {} visits, {} drains, {:.1f} cable-hours drained.\n", r.visits,
                     r.drains, r.drained_cable_hours);
  for (const auto& [guard, count] : r.refused)
    out += fmt::format("Drains rejected by guard \"{}\": {}\n", guard, count);
  out += fmt::format(
      "Single carrier losses: {}, with {} repairs opened and {} drains; none of them is in the "
      "ledger.\n",
      r.blips, r.blip_repairs, r.blip_drains);
  return out + "\n" + operate::repair::to_table(r.ledger);
}

}  // namespace weft::app
