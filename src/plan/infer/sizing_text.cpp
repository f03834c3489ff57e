#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json_text.hpp"
#include "base/line_plot.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "plan/infer/sizing.hpp"

namespace weft::plan {
namespace {

std::string replicas_text(const SizingTrial& trial) {
  return trial.decode == 0 ? std::to_string(trial.prefill)
                           : fmt::format("{}+{}", trial.prefill, trial.decode);
}

std::string milliseconds_text(const std::optional<double>& seconds) {
  if (!seconds) return "-";
  return std::isinf(*seconds) ? "never" : fmt::format("{:.2f}", *seconds * 1e3);
}

// "ttft p99", or "chat ttft p99": a column of every bar.
std::vector<std::string> bar_titles(const std::vector<Attainment>& objectives) {
  std::vector<std::string> out;
  for (const Attainment& one : objectives) {
    const std::string whose = one.request_class.empty() ? "" : one.request_class + " ";
    if (one.ttft_bar) out.push_back(fmt::format("{}ttft p{:g}", whose, one.percentile));
    if (one.tpot_bar) out.push_back(fmt::format("{}tpot p{:g}", whose, one.percentile));
  }
  return out;
}

void add_bars(const std::vector<Attainment>& objectives, std::vector<std::string>& cells) {
  for (const Attainment& one : objectives) {
    if (one.ttft_bar) cells.push_back(milliseconds_text(one.ttft_s));
    if (one.tpot_bar) cells.push_back(milliseconds_text(one.tpot_s));
  }
}

std::string cost_text(const InferReport& report) {
  return report.cost_per_million_output_tokens
             ? fmt::format("{:.2f}", *report.cost_per_million_output_tokens)
             : "-";
}

// By size, as the search went through them is of no interest to a reader.
std::vector<const SizingTrial*> by_size(const Sizing& sizing) {
  std::vector<const SizingTrial*> out;
  for (const SizingTrial& one : sizing.trials) out.push_back(&one);
  std::ranges::stable_sort(
      out, {}, [](const SizingTrial* one) { return std::pair(one->replicas(), one->prefill); });
  return out;
}

std::string answer_text(const Sizing& sizing) {
  if (!sizing.answer) {
    const auto full = std::ranges::find(sizing.trials, false, &SizingTrial::fits);
    return full == sizing.trials.end()
               ? fmt::format("NOT ENOUGH: {} replicas miss the objectives\n", sizing_replicas_max)
               : fmt::format("NOT ENOUGH: more replicas do not fit: {}\n", full->why);
  }
  const SizingTrial& best = sizing.trials[*sizing.answer];
  const std::string prefill = best.decode == 0 ? "" : fmt::format("{} prefill and ", best.prefill);
  std::string out = prefill + (best.decode == 0 ? counted(best.prefill, "replica")
                                                : counted(best.decode, "decode replica"));
  out += fmt::format(" on {} meet the objectives, {:.1f} % busy\n",
                     counted(best.report.gpus, "GPU"), 100 * best.report.busy);
  return out + objective_lines(best.report.objectives);
}

}  // namespace

std::string to_table(const Sizing& sizing) {
  std::vector<Table::Head> heads{{"replicas"}, {"GPUs"}, {"kept"}};
  const auto fitting = std::ranges::find(sizing.trials, true, &SizingTrial::fits);
  const std::vector<std::string> titles = fitting == sizing.trials.end()
                                              ? std::vector<std::string>()
                                              : bar_titles(fitting->report.objectives);
  for (const std::string& title : titles) heads.push_back({title});
  heads.insert(heads.end(), {{"busy"}, {"cost/M"}, {"", Table::Align::left}});
  Table table(heads);
  for (const SizingTrial* one : by_size(sizing)) {
    std::vector<std::string> cells{replicas_text(*one)};
    if (!one->fits) {
      cells.resize(heads.size() - 1, "-");
      cells.emplace_back("does not fit");
    } else {
      cells.push_back(std::to_string(one->report.gpus));
      cells.push_back(fmt::format("{:.2f} %", 100 * one->report.kept()));
      add_bars(one->report.objectives, cells);
      cells.push_back(fmt::format("{:.1f} %", 100 * one->report.busy));
      cells.push_back(cost_text(one->report));
      cells.emplace_back(one->holds ? "keeps all" : "misses");
    }
    table.add(std::move(cells));
  }
  return table.text() + "\n" + answer_text(sizing);
}

std::string to_json(const Sizing& sizing) {
  JsonList trials;
  for (const SizingTrial& one : sizing.trials) {
    JsonObject trial;
    trial.add("replicas", one.prefill)
        .add("decode_replicas", one.decode)
        .add("fits", one.fits)
        .add("holds", one.holds);
    if (one.fits)
      trial.add("report", JsonText{to_json(one.report)});
    else
      trial.add("why", one.why);
    trials.add(trial);
  }
  return JsonObject().add("answer", sizing.answer).add("trials", trials).text();
}

std::string to_table(const GoodputCurve& curve) {
  std::vector<Table::Head> heads{{"requests/s"}, {"goodput/s"}, {"kept"}};
  for (const std::string& title : bar_titles(curve.points.front().report.objectives))
    heads.push_back({title});
  heads.insert(heads.end(), {{"busy"}, {"cost/M"}});
  Table table(heads);
  for (const CurvePoint& one : curve.points) {
    std::vector<std::string> cells{fmt::format("{:.3f}", one.rate_per_s),
                                   fmt::format("{:.3f}", one.goodput_per_s),
                                   fmt::format("{:.2f} %", 100 * one.kept)};
    add_bars(one.report.objectives, cells);
    cells.push_back(fmt::format("{:.1f} %", 100 * one.report.busy));
    cells.push_back(cost_text(one.report));
    table.add(std::move(cells));
  }
  std::string out = table.text() + "\n";
  if (curve.capacity_per_s == 0)
    return out + fmt::format("not even {:.3g} requests/s keep the objectives\n",
                             curve.points.front().rate_per_s);
  out += fmt::format("{:.3f} requests/s keep the objectives", curve.capacity_per_s);
  out += curve.over_per_s ? fmt::format(", {:.3f} do not\n", *curve.over_per_s)
                          : std::string("; no more were tried\n");
  return out;
}

std::string to_json(const GoodputCurve& curve) {
  JsonList points;
  for (const CurvePoint& one : curve.points)
    points.add(JsonObject()
                   .add("rate_per_s", one.rate_per_s)
                   .add("goodput_per_s", one.goodput_per_s)
                   .add("kept", one.kept)
                   .add("holds", one.holds)
                   .add("report", JsonText{to_json(one.report)}));
  return JsonObject()
      .add("capacity_per_s", curve.capacity_per_s)
      .add("over_per_s", curve.over_per_s)
      .add("points", points)
      .text();
}

std::string to_svg(const std::vector<GoodputCurve>& curves) {
  LinePlot plot{.x_title = "requests/s asked for",
                .y_title = "requests/s that keep their objectives",
                .lines = {},
                .diagonal = true};
  for (const GoodputCurve& curve : curves) {
    LinePlot::Line& line = plot.lines.emplace_back();
    line.name = fmt::format("{}: {:.3g}/s", curve.name.empty() ? "capacity" : curve.name,
                            curve.capacity_per_s);
    for (const CurvePoint& point : curve.points)
      line.points.push_back(
          {.x = point.rate_per_s,
           .y = point.goodput_per_s,
           .filled = point.holds,
           .title = fmt::format("{:.3g}/s asked for, {:.3g}/s kept, {:.1f} %", point.rate_per_s,
                                point.goodput_per_s, 100 * point.kept)});
  }
  return to_svg(plot);
}

}  // namespace weft::plan
