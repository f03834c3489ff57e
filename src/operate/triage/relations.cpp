#include "operate/triage/relations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "operate/triage/relation_fit.hpp"

namespace weft::operate::triage {
namespace {

using Alarm = AlarmHistory::Alarm;

RelationProblem problem_of(const AlarmHistory& h, double memory_s) {
  RelationProblem out{.kinds = h.kinds, .places = h.places, .duration_s = h.duration_s()};
  out.exposure.assign(h.kinds, 0);
  std::size_t oldest = 0;
  for (std::size_t i = 0; i < h.alarms.size(); ++i) {
    const Alarm& now = h.alarms[i];
    out.alarms.push_back(now.kind);
    out.exposure[now.kind] += static_cast<double>(h.near[now.place].size());
    while (h.alarms[oldest].t_s < now.t_s - memory_s) ++oldest;
    for (std::size_t j = oldest; j < i; ++j) {
      const Alarm& then = h.alarms[j];
      if (then.kind == now.kind || then.t_s >= now.t_s) continue;
      if (std::ranges::binary_search(h.near[then.place], now.place))
        out.reasons.push_back(
            {static_cast<std::uint32_t>(j), then.kind * h.kinds + now.kind, now.t_s - then.t_s});
    }
    out.first.push_back(out.reasons.size());
  }
  return out;
}

}  // namespace

Status check(const AlarmHistory& history) {
  const auto refuse = [](std::string what) {
    return fail(Errc::value, {}, std::move(what),
                "give alarms in order, with known kinds and places");
  };
  if (history.near.size() != history.places)
    return refuse(
        fmt::format("{} places and {} neighbourhoods", history.places, history.near.size()));
  double last = -std::numeric_limits<double>::infinity();
  for (const Alarm& alarm : history.alarms) {
    if (alarm.kind >= history.kinds || alarm.place >= history.places || !(alarm.t_s >= last))
      return refuse(
          fmt::format("alarm of kind {} at place {} at {} s", alarm.kind, alarm.place, alarm.t_s));
    last = alarm.t_s;
  }
  return {};
}

std::vector<KindEdge> learn_relations(const AlarmHistory& history, const RelationOptions& options) {
  const RelationProblem problem = problem_of(history, options.memory_s);
  RelationFit fit(problem, options.memory_s);
  return fit_edges(fit, problem, options);
}

EdgeScore score_edges(const std::vector<KindEdge>& edges, const std::vector<std::uint8_t>& truth,
                      std::uint32_t kinds) {
  const auto hits = static_cast<double>(std::ranges::count_if(
      edges, [&](const KindEdge& e) { return truth[std::size_t{e.from} * kinds + e.to] != 0; }));
  const auto real = static_cast<double>(
      std::ranges::count_if(truth, [](std::uint8_t edge) { return edge != 0; }));
  return {edges.empty() ? 0 : hits / static_cast<double>(edges.size()), real > 0 ? hits / real : 0};
}

std::size_t fold(const AlarmHistory& history, const std::vector<KindEdge>& edges,
                 const RelationOptions& options) {
  const RelationProblem problem = problem_of(history, options.memory_s);
  RelationFit fit(problem, options.memory_s);
  fit.set(edges);
  fit.run(options.rounds);
  const std::vector<std::uint32_t> reason = fit.likeliest();
  std::size_t roots = 0;
  for (std::uint32_t i = 0; i < reason.size(); ++i) roots += reason[i] == i ? 1 : 0;
  return roots;
}

}  // namespace weft::operate::triage
