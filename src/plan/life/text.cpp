#include "base/text.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/json_text.hpp"
#include "base/plural.hpp"
#include "plan/life/report.hpp"

namespace weft::plan::life {

template <class Archive, Of<Estimate> T>
void fields(Archive& ar, T& estimate) {
  ar("mean", estimate.mean, digits(8));
  ar("within_95", estimate.within, digits(4));
}
template <class Archive, Of<PartShare> T>
void fields(Archive& ar, T& part) {
  ar("part", part.part);
  ar("share", part.share, digits(8));
  ar("seconds", 3600 * part.hours, digits(6));
}
template <class Archive, Of<GroupCost> T>
void fields(Archive& ar, T& group) {
  ar("group", group.group);
  ar("interruptions", group.interruptions, digits(6));
  ar("cost", group.cost, digits(6));
}
template <class Archive, Of<WhatIfResult> T>
void fields(Archive& ar, T& what_if) {
  ar("what_if", what_if.name);
  ar("goodput", what_if.goodput);
  ar("change", what_if.change);
}
template <class Archive, Of<SurfacePoint> T>
void fields(Archive& ar, T& point) {
  ar("stall_s", point.stall_s, digits(6));
  ar("every_s", point.every_s, digits(6));
  ar("longest_stop_s", point.longest_stop_s, digits(6));
}

namespace {

std::string percent(double share, int decimals = 2) {
  return fmt::format("{:.{}f}", 100 * share, decimals);
}
// "15 min", "90 s", "3 h".
std::string span(double seconds) {
  if (seconds < 120) return fmt::format("{:.3g} s", seconds);
  if (seconds < 7200) return fmt::format("{:.1f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string parts_table(const LifeReport& report) {
  Table table({{"where the time goes", Table::Align::left}, {"% of the time"}, {"hours"}});
  for (const PartShare& part : report.parts)
    if (part.share > 0)
      table.add({part.part, percent(part.share), fmt::format("{:.1f}", part.hours)});
  return table.text();
}

std::string groups_table(const LifeReport& report) {
  Table table({{"interrupted by", Table::Align::left}, {"times"}, {"% of the time"}});
  for (const GroupCost& group : report.groups)
    if (group.interruptions > 0)
      table.add({group.group, fmt::format("{:.1f}", group.interruptions), percent(group.cost)});
  return table.text();
}

std::string closed_text(const LifeReport& report) {
  return fmt::format(
      "Checkpoints every {} ({}), {} of stall each.\n"
      "Closed form, with as many hosts as it takes: {} %; to first order {} %.\n"
      "Best interval {} ({} %); Young's estimate {}.\n",
      span(report.every_s), report.life.every_s ? "as given" : "the best",
      span(report.life.stall_s), percent(report.closed), percent(report.first_order),
      span(report.best_s), percent(report.best), span(report.young_s));
}

std::string what_if_table(const LifeReport& report) {
  Table table({{"what if", Table::Align::left}, {"goodput %"}, {"change"}, {"95 % within"}});
  for (const WhatIfResult& what_if : report.what_ifs)
    table.add({what_if.name, percent(what_if.goodput.mean),
               fmt::format("{:+.2f}", 100 * what_if.change.mean),
               "+-" + percent(what_if.change.within, 3)});
  return table.text();
}

std::string surface_table(const LifeReport& report) {
  std::vector<Table::Head> heads{{"stall"}};
  for (const SurfacePoint& point : report.surface) {
    if (point.stall_s != report.surface.front().stall_s) break;
    heads.push_back({point.every_s ? span(*point.every_s) : "best"});
  }
  Table table(heads);
  for (std::size_t at = 0; at < report.surface.size(); at += heads.size() - 1) {
    std::vector<std::string> cells{span(report.surface[at].stall_s)};
    for (std::size_t i = at; i < at + heads.size() - 1; ++i) {
      const auto& stop = report.surface[i].longest_stop_s;
      cells.push_back(stop ? span(*stop) : "none");
    }
    table.add(std::move(cells));
  }
  return fmt::format(
             "Longest stop for an interruption, from its cause to the next step, with which {} % "
             "is reached,\nby stall and interval of checkpoints (none: not even if stops took no "
             "time):\n\n",
             percent(*report.surface_goodput, 1)) +
         table.text();
}

}  // namespace

std::string to_table(const LifeReport& report) {
  const Life& life = report.life;
  std::string text = fmt::format(
      "{} and {}, {:g} days, {}: goodput {} % +- {} (9 of 10 runs: {} to {}).\n"
      "{:.1f} +- {:.1f} interruptions a run",
      counted(life.hosts, "host"), counted(life.spares, "spare"), life.days,
      counted(life.runs, "run"), percent(report.goodput.mean), percent(report.goodput.within),
      percent(report.low), percent(report.high), report.interruptions.mean,
      report.interruptions.within);
  if (life.calibrate)
    text += fmt::format(", rates times {:.4f} to have {:g}", report.scale, *life.calibrate);
  text += ".\n";
  if (!life.source.empty())
    text += fmt::format(
        "Rates: {}.\nNot published, and assumed by the file: checkpoint interval and stall, "
        "detection, share of hangs,\nlocalisation, swap, restart, length of planned stops and "
        "manual work, repair, spares.\n",
        life.source);
  text += "\n" + parts_table(report) + "\n" + groups_table(report) + "\n";
  text += fmt::format("{:.1f} hosts replaced, {:.1f} waits for hosts", report.swaps, report.waits);
  if (life.retire_after > 0) text += fmt::format(", {:.1f} hosts retired", report.retired);
  text += " a run.\n" + closed_text(report);
  if (!report.what_ifs.empty()) text += "\n" + what_if_table(report);
  if (report.surface_goodput) text += "\n" + surface_table(report);
  return text;
}

std::string to_json(const LifeReport& report) {
  const Life& life = report.life;
  JsonObject out;
  out.add("hosts", life.hosts)
      .add("spares", life.spares)
      .add("span_s", 86400 * life.days)
      .add("runs", life.runs)
      .add_if("rates", life.source)
      .add("rates_times", report.scale, digits(6))
      .add("goodput", report.goodput)
      .add("goodput_p5", report.low, digits(6))
      .add("goodput_p95", report.high, digits(6))
      .add("interruptions", report.interruptions)
      .add("parts", report.parts)
      .add("groups", report.groups)
      .add("hosts_replaced", report.swaps, digits(6))
      .add("waits", report.waits, digits(6))
      .add("hosts_retired", report.retired, digits(6))
      .add("every_s", report.every_s, digits(6))
      .add("closed_form", report.closed, digits(6))
      .add("first_order", report.first_order, digits(6))
      .add("best_every_s", report.best_s, digits(6))
      .add("best_closed_form", report.best, digits(6))
      .add("young_every_s", report.young_s, digits(6))
      .add("what_ifs", report.what_ifs);
  if (report.surface_goodput)
    out.add("surface",
            JsonObject().add("goodput", *report.surface_goodput).add("points", report.surface));
  return out.text() + "\n";
}

}  // namespace weft::plan::life
