#include "plan/scale/scale_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/csv.hpp"
#include "base/json_text.hpp"
#include "base/markup.hpp"
#include "base/text.hpp"

namespace weft::plan::scale {
namespace {

constexpr std::array kinds{PolicyKind::reactive, PolicyKind::predictive, PolicyKind::hybrid};

bool has_curve(const Study& study, PolicyKind kind) {
  return std::ranges::count(study.outcomes, kind, [](const Outcome& o) { return o.policy.kind; }) >
         1;
}

std::string hours_text(double hours) {
  return std::isnan(hours) ? "-" : fmt::format("{:.0f}", hours);
}

Timestamp time_of(const Study& study, std::size_t step) {
  return {study.series.start.ns + static_cast<std::int64_t>(step) * study.series.step_ns};
}

std::string comparison(const Study& study) {
  std::vector<Table::Head> heads{{"violated", Table::Align::right}};
  for (const PolicyKind kind : kinds) {
    if (!has_curve(study, kind)) continue;
    heads.push_back({fmt::format("{}, hours", to_text(kind))});
    if (kind != PolicyKind::reactive) heads.push_back({"of reactive"});
  }
  Table table(heads);
  for (const double percent : study.at) {
    std::vector<std::string> cells{fmt::format("{:g} %", percent)};
    const double reactive = hours_at(study.outcomes, PolicyKind::reactive, percent / 100);
    for (const PolicyKind kind : kinds) {
      if (!has_curve(study, kind)) continue;
      const double hours = hours_at(study.outcomes, kind, percent / 100);
      cells.push_back(hours_text(hours));
      if (kind != PolicyKind::reactive)
        cells.push_back(std::isnan(hours / reactive) ? "-"
                                                     : fmt::format("{:.3f}", hours / reactive));
    }
    table.add(std::move(cells));
  }
  return table.text();
}

// The first of each kind, or the one of a curve that comes nearest to the middle of `at`.
std::vector<const Outcome*> shown_outcomes(const Study& study) {
  const double wanted = study.at.empty() ? 0.01 : study.at[study.at.size() / 2] / 100;
  std::vector<const Outcome*> out;
  for (const Outcome& outcome : study.outcomes) {
    const auto same = std::ranges::find(out, outcome.policy.kind,
                                        [](const Outcome* o) { return o->policy.kind; });
    if (same == out.end())
      out.push_back(&outcome);
    else if (std::abs(outcome.violated - wanted) < std::abs((*same)->violated - wanted))
      *same = &outcome;
  }
  return out;
}

constexpr double svg_width = 1'100, panel_height = 150, svg_left = 70, svg_top = 30;
constexpr std::size_t columns_max = 1'000;

// The step of the highest utilisation among those of a column.
struct Bar {
  double demand = 0, capacity = 0;
  bool violated = false;
};

std::size_t steps_each(const Outcome& outcome) {
  return (outcome.serving.size() + columns_max - 1) / columns_max;
}

std::vector<Bar> bars_of(const Study& study, const Outcome& outcome) {
  const std::size_t steps = outcome.serving.size(), each = steps_each(outcome);
  std::vector<Bar> out;
  for (std::size_t first = 0; first < steps; first += each) {
    Bar bar;
    for (std::size_t i = first; i < std::min(steps, first + each); ++i) {
      const double demand = study.demand.values[study.from + i];
      const double capacity = study.service.limit * study.service.capacity * outcome.serving[i];
      if (i == first || demand * bar.capacity > bar.demand * capacity)
        bar = {.demand = demand, .capacity = capacity, .violated = demand > capacity};
    }
    out.push_back(bar);
  }
  return out;
}

// One panel: demand as an area, capacity as a line, violated columns marked.
class Panel {
 public:
  Panel(const Study& study, const Outcome& outcome, double top)
      : outcome_(outcome), top_(top), bars_(bars_of(study, outcome)) {
    for (const Bar& bar : bars_) most_ = std::max({most_, bar.demand, bar.capacity});
  }

  std::string text() const {
    std::string area = fmt::format("M{:.1f},{:.1f}", svg_left, y(0)), line, marks;
    for (std::size_t i = 0; i < bars_.size(); ++i) {
      area += fmt::format("L{:.1f},{:.1f}", x(i), y(bars_[i].demand));
      line += fmt::format("{}{:.1f},{:.1f}", i == 0 ? "M" : "L", x(i), y(bars_[i].capacity));
      if (bars_[i].violated)
        marks += fmt::format("M{:.1f},{:.1f}v{:.1f}", x(i), y(0), -panel_height);
    }
    area += fmt::format("L{:.1f},{:.1f}Z", x(bars_.size() - 1), y(0));
    std::string out = fmt::format(
        "<text x=\"{}\" y=\"{:.0f}\" class=\"t\">{}: {:.2f} % violated, {:.0f} "
        "replica-hours</text>\n",
        svg_left, top_ - 8, escape_markup(to_text(outcome_.policy)), 100 * outcome_.violated,
        outcome_.replica_hours);
    out += fmt::format(
        "<path class=\"v\" d=\"{}\"/>\n<path class=\"d\" d=\"{}\"/>\n"
        "<path class=\"c\" d=\"{}\"/>\n",
        marks, area, line);
    for (const double share : {0.0, 0.5, 1.0})
      out +=
          fmt::format("<text x=\"{}\" y=\"{:.1f}\" class=\"a\" text-anchor=\"end\">{:.0f}</text>\n",
                      svg_left - 6, y(share * most_) + 4, share * most_);
    return out;
  }
  double x(std::size_t bar) const {
    return svg_left + (svg_width - svg_left - 10) * static_cast<double>(bar) /
                          static_cast<double>(std::max<std::size_t>(1, bars_.size() - 1));
  }

 private:
  double y(double value) const {
    return top_ + panel_height * (1 - (most_ > 0 ? value / most_ : 0));
  }

  const Outcome& outcome_;
  double top_;
  std::vector<Bar> bars_;
  double most_ = 0;
};

}  // namespace

std::string to_table(const Study& study) {
  Table table({{"policy", Table::Align::left}, {"violated"}, {"replica-hours"}, {"peak"}});
  for (const Outcome& outcome : study.outcomes)
    table.add({to_text(outcome.policy), fmt::format("{:.3f} %", 100 * outcome.violated),
               hours_text(outcome.replica_hours), std::to_string(outcome.peak)});
  std::string out = table.text() + "\n";
  if (has_curve(study, PolicyKind::reactive)) out += comparison(study) + "\n";
  out += fmt::format(
      "scored from {} on, {} steps; what demand came while utilisation was above "
      "{:g} % counts as violated\n",
      to_text(time_of(study, study.from)), study.demand.values.size() - study.from,
      100 * study.service.limit);
  if (study.demand.gaps > 0)
    out += fmt::format("{} gaps in the series: taken as the value before\n", study.demand.gaps);
  if (study.demand.outages > 0)
    out += fmt::format("{} values taken for an outage: taken as the value before\n",
                       study.demand.outages);
  if (study.demand.steps_a_day == 0)
    out += "the step does not divide a day: nothing is predicted\n";
  return out;
}

std::string to_json(const Study& study) {
  JsonList policies, compared;
  for (const Outcome& outcome : study.outcomes)
    policies.add(JsonObject()
                     .add("policy", to_text(outcome.policy))
                     .add("violated", outcome.violated)
                     .add("replica_hours", outcome.replica_hours)
                     .add("peak_replicas", outcome.peak));
  if (has_curve(study, PolicyKind::reactive))
    for (const double percent : study.at) {
      JsonObject hours;
      for (const PolicyKind kind : kinds)
        if (has_curve(study, kind))
          hours.add(to_text(kind), hours_at(study.outcomes, kind, percent / 100));
      compared.add(JsonObject().add("violated", percent / 100).add("replica_hours", hours));
    }
  return JsonObject()
             .add("from", time_of(study, study.from))
             .add("steps", study.demand.values.size() - study.from)
             .add("gaps", study.demand.gaps)
             .add("outages", study.demand.outages)
             .add("policies", policies)
             .add("at_equal_violations", compared)
             .text() +
         "\n";
}

std::string to_csv(const Study& study) {
  std::string out = "time,demand";
  for (const Outcome& outcome : study.outcomes) out += "," + csv_cell(to_text(outcome.policy));
  out += "\n";
  for (std::size_t i = 0; study.from + i < study.demand.values.size(); ++i) {
    out += fmt::format("{},{}", to_text(time_of(study, study.from + i)),
                       study.demand.values[study.from + i]);
    for (const Outcome& outcome : study.outcomes) out += fmt::format(",{}", outcome.serving[i]);
    out += "\n";
  }
  return out;
}

std::string columns_json(const Study& study) {
  JsonList policies;
  std::size_t each = 1;
  for (const Outcome* outcome : shown_outcomes(study)) {
    JsonList demand, capacity;
    for (const Bar& bar : bars_of(study, *outcome)) {
      demand.add(bar.demand, digits(6));
      capacity.add(bar.capacity, digits(6));
    }
    each = steps_each(*outcome);
    policies.add(JsonObject()
                     .add("policy", to_text(outcome->policy))
                     .add("demand", demand)
                     .add("capacity", capacity));
  }
  return JsonObject()
      .add("hours_each", study.service.step_hours * static_cast<double>(each))
      .add("policies", policies)
      .text();
}

std::string to_svg(const Study& study) {
  const std::vector<const Outcome*> shown = shown_outcomes(study);
  const double height = svg_top + static_cast<double>(shown.size()) * (panel_height + 40) + 20;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\">\n"
      "<style>svg{{background:#fff}}text{{font:12px sans-serif;fill:#222}}.t{{font-weight:600}}"
      ".d{{fill:#9db9d8}}.c{{fill:none;stroke:#1b5e20;stroke-width:1.2}}"
      ".v{{stroke:#d32f2f;stroke-width:1.2;opacity:.35}}"
      "@media(prefers-color-scheme:dark){{svg{{background:#161616}}text{{fill:#ddd}}"
      ".d{{fill:#3b5878}}.c{{stroke:#8bc34a}}}}</style>\n",
      svg_width, height);
  double top = svg_top;
  for (const Outcome* outcome : shown) {
    out += Panel(study, *outcome, top).text();
    top += panel_height + 40;
  }
  const std::size_t steps = study.demand.values.size() - study.from;
  for (const double share : {0.0, 0.5, 1.0})
    out += fmt::format(
        "<text x=\"{:.0f}\" y=\"{:.0f}\" class=\"a\" text-anchor=\"{}\">{}</text>\n",
        svg_left + share * (svg_width - svg_left - 10), top - 12,
        share == 0   ? "start"
        : share == 1 ? "end"
                     : "middle",
        to_text(time_of(
            study, study.from + static_cast<std::size_t>(share * static_cast<double>(steps - 1)))));
  out += fmt::format(
      "<text x=\"{}\" y=\"{:.0f}\" class=\"a\">area: demand; line: what replicas serve below the "
      "limit; red: violated</text>\n</svg>\n",
      svg_left, top + 6);
  return out;
}

}  // namespace weft::plan::scale
