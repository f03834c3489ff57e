#include "base/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/csv.hpp"
#include "base/json_text.hpp"
#include "base/percent.hpp"
#include "base/plural.hpp"
#include "plan/edge/measure.hpp"
#include "plan/edge/program.hpp"

namespace weft::plan::edge {
namespace {

constexpr auto left = Table::Align::left;

std::string in_bytes(double bytes) {
  if (bytes >= 1e12) return fmt::format("{:.4g} TB", bytes / 1e12);
  if (bytes >= 1e9) return fmt::format("{:.4g} GB", bytes / 1e9);
  return fmt::format("{:.4g} MB", bytes / 1e6);
}
std::string in_rate(double bps) { return human(Rate{static_cast<std::int64_t>(bps)}); }
std::string ms(double seconds) {
  return std::isfinite(seconds) ? fmt::format("{:.1f} ms", 1e3 * seconds) : "-";
}
std::string money(double value) {
  return value > 0 && value < 0.1 ? fmt::format("{:.2g}", value) : fmt::format("{:.2f}", value);
}
std::string money(const std::optional<double>& value) { return value ? money(*value) : "-"; }
// What is worth nothing is a dash.
std::string worth(double value) { return value < 0.005 ? "-" : money(value); }

const std::string& computed_at(const Problem& problem, const Way& way) {
  return way.centre == at_metro ? problem.metros[way.metro].name
                                : problem.data_centres[way.centre].name;
}
double requests_of(const Problem& problem, std::uint32_t area, std::uint32_t service,
                   double share) {
  return share * problem.areas[area].requests[service];
}

std::string site_table(const Problem& problem, const Plan& plan) {
  Table table({{"site", left},
               {"GPUs"},
               {"used"},
               {"one more saves"},
               {"uplink"},
               {"used"},
               {"1 Gbit/s more saves"},
               {"cache"}});
  const std::size_t metros = problem.metros.size();
  for (std::size_t m = 0; m < metros; ++m) {
    const Metro& metro = problem.metros[m];
    table.add({metro.name, fmt::format("{:.0f}", metro.gpus),
               percent(plan.gpus_used[m] / metro.gpus, 1), worth(plan.gpu_worth[m]),
               metro.uplink_bps > 0 ? in_rate(metro.uplink_bps) : "-",
               percent(plan.uplink_used[m] / metro.uplink_bps, 1), worth(plan.uplink_worth[m]),
               metro.cache_bytes > 0 ? in_bytes(metro.cache_bytes) : "-"});
  }
  for (std::size_t d = 0; d < problem.data_centres.size(); ++d)
    table.add({problem.data_centres[d].name, fmt::format("{:.0f}", problem.data_centres[d].gpus),
               percent(plan.gpus_used[metros + d] / problem.data_centres[d].gpus, 1),
               worth(plan.gpu_worth[metros + d]), "", "", "", ""});
  return table.text();
}

std::string way_table(const Problem& problem, const Plan& plan, std::size_t rows) {
  Table table({{"area", left},
               {"service", left},
               {"metro", left},
               {"computed at", left},
               {"share"},
               {"requests/s"},
               {"from cache"},
               {"round trip"}});
  for (std::size_t i = 0; i < std::min(rows, plan.ways.size()); ++i) {
    const Way& way = plan.ways[i];
    table.add({problem.areas[way.area].name, problem.services[way.service].name,
               problem.metros[way.metro].name, computed_at(problem, way), percent(way.share, 1),
               fmt::format("{:.0f}", requests_of(problem, way.area, way.service, way.share)),
               percent(1 - missed(problem, plan.caches, way.metro, way.service), 1),
               ms(use_of(problem, plan.caches, way).rtt_s)});
  }
  std::string out = table.text();
  if (rows < plan.ways.size())
    out += fmt::format("{} of {} rows; --rows shows more, --csv FILE writes all\n", rows,
                       plan.ways.size());
  return out;
}

std::string summary(const Problem& problem, const Plan& plan) {
  std::string out =
      fmt::format("{} {} an hour at the peak; with these caches no plan below {} (gap {:.4f} %)",
                  money(plan.cost), problem.currency, money(plan.bound), 100 * plan.gap);
  if (plan.bound_any)
    out += fmt::format(", with any split of them none below {}", money(*plan.bound_any));
  const std::size_t pairs =
      problem.metros.size() * (problem.areas.size() + problem.data_centres.size());
  out += "\nround trips: ";
  if (problem.measured > 0) out += fmt::format("{} of {} measured", problem.measured, pairs);
  if (problem.measured > 0 && problem.measured < pairs) out += ", the others ";
  if (problem.measured < pairs)
    out += fmt::format("over fibre at 2/3 of the speed of light, {:g} times the great circle",
                       problem.detour);
  return out + "\n";
}

std::string unserved_text(const Problem& problem, const Plan& plan,
                          std::optional<std::uint32_t> down) {
  if (plan.unserved.empty()) return "";
  double sum = 0;
  std::string list;
  for (const Unserved& one : plan.unserved) {
    const double requests = requests_of(problem, one.area, one.service, one.share);
    const Service& service = problem.services[one.service];
    sum += requests;
    const std::vector<std::string> full = full_sites(problem, plan, one, down);
    list += fmt::format("  {}, {}: {:.4g} requests/s ({}), {}; {}\n", problem.areas[one.area].name,
                        service.name, requests, percent(one.share, 1),
                        service.gpu_s > 0 ? fmt::format("{:.4g} GPUs", requests * service.gpu_s)
                                          : in_rate(requests * service.response_bytes * 8),
                        full.empty() ? "no site that is left is near enough"
                                     : fmt::format("full: {}", fmt::join(full, ", ")));
  }
  return fmt::format("NOT SERVED: {:.4g} requests/s; no plan leaves fewer than {:.4g}\n{}", sum,
                     plan.unserved_least, list);
}

std::string latency_table(const Problem& problem, const std::vector<Outcome>& outcomes) {
  Table table({{"round trip", left},
               {"within"},
               {"plan: median"},
               {"95 %"},
               {"nearest metro"},
               {"95 %"},
               {"in time"},
               {"data centre"},
               {"95 %"},
               {"in time"}});
  for (std::size_t s = 0; s < problem.services.size(); ++s) {
    std::vector<std::string> cells{problem.services[s].name, ms(problem.services[s].within_s)};
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      const RoundTrips& one = outcomes[i].services[s];
      cells.push_back(ms(one.median_s));
      cells.push_back(ms(one.p95_s));
      if (i > 0) cells.push_back(percent(one.within, 1));
    }
    table.add(std::move(cells));
  }
  return table.text();
}

std::string baseline_text(const Outcome& outcome, const char* what) {
  return fmt::format("{}: {} an hour, {}\n", what, money(outcome.cost),
                     std::isinf(outcome.fullest) ? outcome.fullest_name + ", which has no capacity"
                                                 : fmt::format("{} at {}", outcome.fullest_name,
                                                               percent(outcome.fullest, 0)));
}

const char* cheapest_of(const Choice& one) {
  const double cache = one.cache_cost.value_or(HUGE_VAL), metro = one.metro_cost.value_or(HUGE_VAL),
               centre = one.centre_cost.value_or(HUGE_VAL);
  if (cache <= metro && cache <= centre && one.cache_cost) return "cache";
  if (!one.metro_cost && !one.centre_cost) return "-";
  return metro <= centre ? "metro" : "data centre";
}

std::string choice_table(const Problem& problem, const std::vector<Choice>& choices,
                         std::size_t rows) {
  Table table({{"metro", left},
               {"service", left},
               {"requests/s"},
               {"cache"},
               {"hits"},
               {"saves GPUs"},
               {"uplink"},
               {"by cache"},
               {"metro"},
               {"data centre"},
               {"cheapest", left},
               {"cache pays to"},
               {"GPU pays to"}});
  for (std::size_t i = 0; i < std::min(rows, choices.size()); ++i) {
    const Choice& one = choices[i];
    const bool is_cached = one.cache_cost.has_value();
    table.add({problem.metros[one.metro].name, problem.services[one.service].name,
               fmt::format("{:.0f}", one.requests), is_cached ? in_bytes(one.cache_bytes) : "-",
               is_cached ? percent(one.hit, 1) : "-",
               is_cached ? fmt::format("{:.1f}", one.saved_gpus) : "-",
               is_cached ? in_rate(one.saved_bps) : "-", money(one.cache_cost),
               money(one.metro_cost), money(one.centre_cost), cheapest_of(one),
               money(one.cache_even), money(one.gpu_even)});
  }
  std::string out = table.text();
  if (rows < choices.size())
    out += fmt::format("{} of {} rows; --rows shows more\n", rows, choices.size());
  return out + fmt::format(
                   "costs of a million answers in {0}; cache pays up to that price per TB "
                   "and hour, a GPU at the metro per hour\n",
                   problem.currency);
}

std::string failure_text(const Problem& problem, const Plan& plan, const Failure& failure,
                         std::size_t rows) {
  const std::string& name = problem.metros[failure.metro].name;
  std::string out =
      fmt::format("\nwithout {}: {} an hour ({}), gap {:.4f} %\n", name, money(failure.plan.cost),
                  percent_change(failure.plan.cost, plan.cost, 1), 100 * failure.plan.gap);
  if (failure.moves.empty()) return out + "no requests ended there\n";
  Table table({{"area", left},
               {"service", left},
               {"requests/s"},
               {"mean round trip"},
               {"then"},
               {"go to", left}});
  for (std::size_t i = 0; i < std::min(rows, failure.moves.size()); ++i) {
    const Move& move = failure.moves[i];
    std::vector<std::string> to;
    for (const auto& [metro, share] : move.to)
      to.push_back(fmt::format("{} {}", problem.metros[metro].name, percent(share, 0)));
    if (move.unserved > 0) to.push_back("not served " + percent(move.unserved, 0));
    table.add({problem.areas[move.area].name, problem.services[move.service].name,
               fmt::format("{:.0f}", move.requests), ms(move.rtt_before_s), ms(move.rtt_s),
               fmt::format("{}", fmt::join(to, ", "))});
  }
  out += table.text();
  if (rows < failure.moves.size())
    out += fmt::format("{} of {} rows; --rows shows more\n", rows, failure.moves.size());
  out += "\n" + site_table(problem, failure.plan);
  const std::string unserved = unserved_text(problem, failure.plan, failure.metro);
  return out + (unserved.empty() ? "everything is served, every class in time\n" : unserved);
}

JsonObject plan_json(const Problem& problem, const Plan& plan, std::optional<std::uint32_t> down) {
  JsonList ways, unserved, metros, centres;
  for (const Way& way : plan.ways) {
    const Use use = use_of(problem, plan.caches, way);
    ways.add(JsonObject()
                 .add("area", problem.areas[way.area].name)
                 .add("service", problem.services[way.service].name)
                 .add("metro", problem.metros[way.metro].name)
                 .add("computed_at", computed_at(problem, way))
                 .add("share", way.share)
                 .add("requests_per_s", requests_of(problem, way.area, way.service, way.share))
                 .add("rtt_s", use.rtt_s));
  }
  for (const Unserved& one : plan.unserved)
    unserved.add(JsonObject()
                     .add("area", problem.areas[one.area].name)
                     .add("service", problem.services[one.service].name)
                     .add("share", one.share)
                     .add("requests_per_s", requests_of(problem, one.area, one.service, one.share))
                     .add("full", full_sites(problem, plan, one, down)));
  const std::size_t count = problem.metros.size();
  for (std::size_t m = 0; m < count; ++m) {
    JsonList caches;
    for (std::size_t s = 0; s < problem.services.size(); ++s)
      if (plan.caches.bytes[problem.at(m, s)] > 0)
        caches.add(JsonObject()
                       .add("service", problem.services[s].name)
                       .add("bytes", plan.caches.bytes[problem.at(m, s)])
                       .add("hit_rate", plan.caches.hit[problem.at(m, s)]));
    metros.add(JsonObject()
                   .add("name", problem.metros[m].name)
                   .add("gpus", problem.metros[m].gpus)
                   .add("gpus_used", plan.gpus_used[m])
                   .add("gpu_worth", plan.gpu_worth[m])
                   .add("uplink_bps", problem.metros[m].uplink_bps)
                   .add("uplink_used_bps", plan.uplink_used[m])
                   .add("uplink_worth_per_bps", 1e-9 * plan.uplink_worth[m])
                   .add("cache", caches));
  }
  for (std::size_t d = 0; d < problem.data_centres.size(); ++d)
    centres.add(JsonObject()
                    .add("name", problem.data_centres[d].name)
                    .add("gpus", problem.data_centres[d].gpus)
                    .add("gpus_used", plan.gpus_used[count + d])
                    .add("gpu_worth", plan.gpu_worth[count + d]));
  return JsonObject()
      .add("cost", plan.cost)
      .add("bound", plan.bound)
      .add("gap", plan.gap)
      .add("bound_any_caches", plan.bound_any)
      .add("ways", ways)
      .add("unserved", unserved)
      .add("unserved_least_requests_per_s", plan.unserved_least)
      .add("metros", metros)
      .add("data_centres", centres)
      .add("iterations", plan.iterations)
      .add("seconds", plan.seconds);
}

JsonObject outcome_json(const Problem& problem, const Outcome& outcome) {
  JsonList services;
  for (std::size_t s = 0; s < problem.services.size(); ++s)
    services.add(JsonObject()
                     .add("service", problem.services[s].name)
                     .add("median_s", outcome.services[s].median_s)
                     .add("p95_s", outcome.services[s].p95_s)
                     .add("in_time", outcome.services[s].within));
  return JsonObject()
      .add("cost", outcome.cost)
      .add("fullest", outcome.fullest)
      .add("fullest_name", outcome.fullest_name)
      .add("services", services);
}

JsonList choices_json(const Problem& problem, const Plan& plan) {
  JsonList out;
  for (const Choice& one : choices_of(problem, plan))
    out.add(JsonObject()
                .add("metro", problem.metros[one.metro].name)
                .add("service", problem.services[one.service].name)
                .add("requests_per_s", one.requests)
                .add("cache_bytes", one.cache_bytes)
                .add("hit_rate", one.hit)
                .add("saved_gpus", one.saved_gpus)
                .add("saved_bps", one.saved_bps)
                .add("cache_cost", one.cache_cost)
                .add("metro_cost", one.metro_cost)
                .add("data_centre_cost", one.centre_cost)
                .add("cheapest", cheapest_of(one))
                .add("cache_break_even", one.cache_even)
                .add("gpu_break_even", one.gpu_even));
  return out;
}

JsonObject failure_json(const Problem& problem, const Failure& failure) {
  JsonList moves;
  for (const Move& move : failure.moves) {
    JsonList to;
    for (const auto& [metro, share] : move.to)
      to.add(JsonObject().add("metro", problem.metros[metro].name).add("share", share));
    moves.add(JsonObject()
                  .add("area", problem.areas[move.area].name)
                  .add("service", problem.services[move.service].name)
                  .add("requests_per_s", move.requests)
                  .add("rtt_before_s", move.rtt_before_s)
                  .add("rtt_s", move.rtt_s)
                  .add("to", to)
                  .add("unserved", move.unserved));
  }
  return JsonObject()
      .add("metro", problem.metros[failure.metro].name)
      .add("moves", moves)
      .add("plan", plan_json(problem, failure.plan, failure.metro));
}

}  // namespace

std::string to_table(const Problem& problem, const Plan& plan, const Failure* failure,
                     std::size_t rows) {
  std::vector<Outcome> outcomes;
  for (const Rule rule : {Rule::plan, Rule::nearest, Rule::data_centre})
    outcomes.push_back(outcome_of(problem, plan, rule));
  return site_table(problem, plan) + "\n" + way_table(problem, plan, rows) + "\n" +
         summary(problem, plan) + unserved_text(problem, plan, {}) + "\n" +
         latency_table(problem, outcomes) + baseline_text(outcomes[1], "all at the nearest metro") +
         baseline_text(outcomes[2], "all at the nearest data centre") + "\n" +
         choice_table(problem, choices_of(problem, plan), rows) +
         (failure != nullptr ? failure_text(problem, plan, *failure, rows) : "");
}

std::string to_json(const Problem& problem, const Plan& plan, const Failure* failure) {
  JsonObject out = plan_json(problem, plan, {});
  out.add("currency", problem.currency)
      .add("plan", outcome_json(problem, outcome_of(problem, plan, Rule::plan)))
      .add("nearest_metro", outcome_json(problem, outcome_of(problem, plan, Rule::nearest)))
      .add("nearest_data_centre",
           outcome_json(problem, outcome_of(problem, plan, Rule::data_centre)))
      .add("cache_or_compute", choices_json(problem, plan));
  if (failure != nullptr) out.add("down", failure_json(problem, *failure));
  return out.text() + "\n";
}

std::string ways_csv(const Problem& problem, const Plan& plan) {
  std::string out = "area,service,metro,computed_at,share,requests_per_s,from_cache,rtt_ms\n";
  for (const Way& way : plan.ways)
    out += fmt::format(
        "{},{},{},{},{:.6f},{:.6g},{:.6f},{:.4f}\n", csv_cell(problem.areas[way.area].name),
        csv_cell(problem.services[way.service].name), csv_cell(problem.metros[way.metro].name),
        csv_cell(computed_at(problem, way)), way.share,
        requests_of(problem, way.area, way.service, way.share),
        1 - missed(problem, plan.caches, way.metro, way.service),
        1e3 * use_of(problem, plan.caches, way).rtt_s);
  for (const Unserved& one : plan.unserved)
    out += fmt::format("{},{},,,{:.6f},{:.6g},,\n", csv_cell(problem.areas[one.area].name),
                       csv_cell(problem.services[one.service].name), one.share,
                       requests_of(problem, one.area, one.service, one.share));
  return out;
}

}  // namespace weft::plan::edge
