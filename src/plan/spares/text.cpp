#include "base/text.hpp"

#include <fmt/format.h>

#include "base/json_text.hpp"
#include "base/plural.hpp"
#include "plan/spares/plan.hpp"

namespace weft::plan::spares {

template <class Archive, Of<Level> T>
void fields(Archive& ar, T& level) {
  ar("target", level.target);
  ar("spares", level.spares);
  ar("shortages_per_year", level.shortages_per_year, digits(4));
  ar("mean_s", 3600 * level.hours_each, digits(4));
  ar("simulated_spares", level.simulated);
}
template <class Archive, Of<ZonePlan> T>
void fields(Archive& ar, T& zone) {
  ar("zone", zone.name);
  ar("hosts", zone.hosts);
  ar("spares", zone.spares);
  ar("spares_if_alone", zone.alone);
}
template <class Archive, Of<EventShare> T>
void fields(Archive& ar, T& event) {
  ar("event", event.name);
  ar("per_year", event.per_year, digits(6));
  ar("hosts", event.hosts);
  ar("hosts_out_mean", event.out, digits(6));
  ar("share_of_time", event.share, digits(6));
  ar("spares_without_it", event.without);
}

namespace {

std::string percent(double share) { return fmt::format("{:.6g} %", 100 * share); }

std::uint32_t alone(const SparePlan& plan) {
  std::uint32_t sum = 0;
  for (const ZonePlan& zone : plan.zones) sum += zone.alone;
  return sum;
}

std::string levels_table(const SparePlan& plan) {
  std::vector<Table::Head> heads{{"enough for"}, {"spares"}, {"shortages a year"}, {"hours each"}};
  if (plan.simulated) heads.insert(heads.begin() + 2, {"simulated"});
  Table table(heads);
  for (const Level& level : plan.levels) {
    std::vector<std::string> cells{percent(level.target), std::to_string(level.spares),
                                   fmt::format("{:.2f}", level.shortages_per_year),
                                   fmt::format("{:.1f}", level.hours_each)};
    if (level.simulated) cells.insert(cells.begin() + 2, std::to_string(*level.simulated));
    table.add(std::move(cells));
  }
  return table.text();
}

std::string events_table(const SparePlan& plan) {
  Table table({{"event", Table::Align::left},
               {"a year"},
               {"hosts each"},
               {"out in the mean"},
               {"% of the time"},
               {"spares without it"}});
  for (const EventShare& event : plan.events)
    table.add({event.name, fmt::format("{:.1f}", event.per_year), std::to_string(event.hosts),
               fmt::format("{:.2f}", event.out), fmt::format("{:.3f}", 100 * event.share),
               std::to_string(event.without)});
  return table.text();
}

std::string zones_table(const SparePlan& plan) {
  Table table({{"zone", Table::Align::left}, {"hosts"}, {"spares"}, {"by itself"}});
  for (const ZonePlan& zone : plan.zones)
    table.add({zone.name, std::to_string(zone.hosts), std::to_string(zone.spares),
               std::to_string(zone.alone)});
  return table.text();
}

// Events that spares are better not kept for: a fifth of the pool or more would stand idle for
// them, half or more of what one of them strikes.
std::string out_of_reach(const SparePlan& plan) {
  std::string text;
  for (const EventShare& event : plan.events)
    if (event.hosts > 1 && event.without + event.hosts / 2 <= plan.spares &&
        5 * event.without <= 4 * plan.spares)
      text += fmt::format(
          "{} takes {} hosts, and one is under way {:.2g} % of the time, where the target leaves "
          "{:.2g} %.\nWithout it {} suffice. Rather plan what jobs do then: shrink, wait, "
          "or "
          "run elsewhere.\n",
          event.name, event.hosts, 100 * event.share, 100 * (1 - plan.target),
          counted(event.without, "spare"));
  return text;
}

}  // namespace

std::string to_table(const SparePlan& plan) {
  std::string text = fmt::format(
      "{} among {} ({:.2f} %) suffice{} {} of the time; {:.2f} hosts are out in the "
      "mean.\n",
      counted(plan.spares, "spare"), counted(plan.hosts, "host"), 100.0 * plan.spares / plan.hosts,
      plan.spares == 1 ? "s" : "", percent(plan.target), plan.out);
  text += out_of_reach(plan);
  text += "\n" + levels_table(plan) + "\n" + events_table(plan);
  if (plan.zones.size() > 1) {
    text += "\n" + zones_table(plan);
    text += fmt::format(
        "\nOne pool for all zones needs {} spares; zones for themselves {} ({:.0f} %).\n"
        "{:.2f} hosts in the mean are replaced from another zone; {:.2f} if all spares stood in "
        "{}.\n",
        plan.spares, alone(plan), 100.0 * plan.spares / std::max(1u, alone(plan)), plan.foreign,
        plan.foreign_in_one_zone, plan.zones.front().name);
  }
  if (plan.simulated)
    text += fmt::format(
        "\nSimulated: {:.0f} years, {:.2f} hosts out in the mean, {:.2f} repairs waiting for a "
        "crew.\n",
        plan.simulated->years, plan.simulated->mean, plan.simulated->waiting);
  return text;
}

std::string to_json(const SparePlan& plan) {
  JsonObject out;
  out.add("hosts", plan.hosts)
      .add("target", plan.target)
      .add("spares", plan.spares)
      .add("hosts_out_mean", plan.out, digits(6))
      .add("levels", plan.levels)
      .add("events", plan.events)
      .add("zones", plan.zones)
      .add("foreign_mean", plan.foreign, digits(6))
      .add("foreign_mean_in_one_zone", plan.foreign_in_one_zone, digits(6));
  if (plan.simulated)
    out.add("simulated", JsonObject()
                             .add("years", plan.simulated->years)
                             .add("hosts_out_mean", plan.simulated->mean, digits(6))
                             .add("repairs_waiting_mean", plan.simulated->waiting, digits(6)));
  return out.text() + "\n";
}

}  // namespace weft::plan::spares
