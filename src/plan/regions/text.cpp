#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/csv.hpp"
#include "base/json_text.hpp"
#include "base/percent.hpp"
#include "plan/regions/regions.hpp"

namespace weft::plan::regions {
namespace {

// As data sets are counted.
std::string in_bytes(double bytes) {
  if (bytes >= 1e15) return fmt::format("{:.4g} PB", bytes / 1e15);
  if (bytes >= 1e12) return fmt::format("{:.4g} TB", bytes / 1e12);
  return fmt::format("{:.4g} GB", bytes / 1e9);
}

// Of all regions, how full the fullest is.
double worst(const Problem& problem, const std::vector<double>& load) {
  double out = 0;
  for (std::size_t r = 0; r < load.size(); ++r)
    if (problem.regions[r].gpus > 0) out = std::max(out, load[r] / problem.regions[r].gpus);
  return out;
}

std::string traffic_table(const Traffic& traffic) {
  struct Row {
    Hourly bps{};
    std::uint8_t priority = 0;
    std::size_t pairs = 0;
  };
  std::array<Row, cause_count + 1> rows;  // and all
  for (const TrafficDemand& d : traffic.demands)
    for (Row* row : {&rows[static_cast<std::size_t>(d.cause)], &rows.back()}) {
      row->priority = d.priority;
      ++row->pairs;
      for (std::size_t h = 0; h < hours; ++h) row->bps[h] += d.bps[h];
    }
  Table table({{"traffic, Gbit/s", Table::Align::left},
               {"class"},
               {"pairs"},
               {"mean"},
               {"peak"},
               {"hour, UTC"},
               {"within a site"}});
  const auto add = [&](std::string name, const Row& row, std::string priority, double local) {
    const auto peak = std::ranges::max_element(row.bps);
    table.add(
        {std::move(name), std::move(priority), std::to_string(row.pairs),
         fmt::format("{:.3f}", std::accumulate(row.bps.begin(), row.bps.end(), 0.0) / hours * 1e-9),
         fmt::format("{:.3f}", *peak * 1e-9), fmt::format("{:02}:00", peak - row.bps.begin()),
         fmt::format("{:.3f}", local * 1e-9)});
  };
  for (std::size_t c = 0; c < cause_count; ++c)
    if (rows[c].pairs > 0 || traffic.local_bps[c] > 0)
      add(std::string(backbone::cause_names[c]), rows[c],
          rows[c].pairs > 0 ? std::to_string(rows[c].priority) : "-", traffic.local_bps[c]);
  add("all", rows.back(), "",
      std::accumulate(traffic.local_bps.begin(), traffic.local_bps.end(), 0.0));
  return "\n" + table.text();
}

JsonObject traffic_json(const Traffic& traffic) {
  JsonList demands;
  for (const TrafficDemand& d : traffic.demands)
    demands.add(JsonObject()
                    .add("src", d.from)
                    .add("dst", d.to)
                    .add("cause", d.cause)
                    .add("class", d.priority)
                    .add("bps", d.bps));
  JsonObject local;
  for (std::size_t c = 0; c < cause_count; ++c)
    local.add(backbone::cause_names[c], traffic.local_bps[c]);
  return JsonObject().add("demands", demands).add("within_sites_bps", local);
}

std::string copies_table(const Problem& problem, const Plan& plan) {
  Table list({{"data set", Table::Align::left},
              {"bytes"},
              {"from", Table::Align::left},
              {"to", Table::Align::left}});
  constexpr std::size_t shown = 40;
  for (std::size_t i = 0; i < std::min(shown, plan.copies.size()); ++i) {
    const Copy& copy = plan.copies[i];
    list.add({problem.data[copy.data].name, in_bytes(problem.data[copy.data].bytes),
              problem.regions[copy.from].name, problem.regions[copy.to].name});
  }
  std::string out = "\n" + list.text();
  if (plan.copies.size() > shown)
    out += fmt::format("... and {} more (--copies FILE writes all)\n", plan.copies.size() - shown);
  return out;
}

}  // namespace

std::string to_table(const Problem& problem, const Plan& plan) {
  std::vector<std::uint64_t> jobs(problem.regions.size(), 0), copies(problem.regions.size(), 0);
  for (const std::uint32_t r : plan.region) ++jobs[r];
  for (const Copy& copy : plan.copies) ++copies[copy.to];
  Table table({{"region", Table::Align::left},
               {"GPUs"},
               {"at home"},
               {"planned"},
               {"jobs"},
               {"copies in"}});
  for (std::size_t r = 0; r < problem.regions.size(); ++r)
    table.add({problem.regions[r].name, fmt::format("{:.0f}", problem.regions[r].gpus),
               percent(plan.home_load[r] / problem.regions[r].gpus, 1),
               percent(plan.load[r] / problem.regions[r].gpus, 1), std::to_string(jobs[r]),
               std::to_string(copies[r])});
  std::string out = table.text();
  out += fmt::format(
      "\nWith every job where its data is, the fullest region is asked for {:.2f} of its GPUs; "
      "planned, {:.2f}.\n",
      worst(problem, plan.home_load), worst(problem, plan.load));
  out += fmt::format("{} copies, {}; no plan needs fewer than {}", plan.copies.size(),
                     in_bytes(plan.bytes), in_bytes(plan.bound));
  if (plan.bytes <= plan.bound * (1 + 1e-9))
    out += plan.exhaustive ? " (all plans were compared)" : " (optimal)";
  else if (plan.bound > 0)
    out += fmt::format(" (gap {})", percent(plan.bytes / plan.bound - 1, 1));
  out += "\n";
  if (!plan.copies.empty()) out += copies_table(problem, plan);
  if (problem.life_cycle.given) out += traffic_table(traffic_of(problem, plan));
  return out;
}

std::string copies_csv(const Problem& problem, const Plan& plan) {
  std::string out = "data,bytes,from,to\n";
  for (const Copy& copy : plan.copies)
    out += fmt::format("{},{:.0f},{},{}\n", csv_cell(problem.data[copy.data].name),
                       problem.data[copy.data].bytes, csv_cell(problem.regions[copy.from].name),
                       csv_cell(problem.regions[copy.to].name));
  return out;
}

std::string to_json(const Problem& problem, const Plan& plan) {
  JsonObject jobs;
  for (std::size_t j = 0; j < problem.jobs.size(); ++j)
    jobs.add(problem.jobs[j].name, problem.regions[plan.region[j]].name);
  JsonObject regions;
  for (std::size_t r = 0; r < problem.regions.size(); ++r)
    regions.add(problem.regions[r].name, JsonObject()
                                             .add("gpus", problem.regions[r].gpus)
                                             .add("home_load", plan.home_load[r])
                                             .add("load", plan.load[r])
                                             .add("price", plan.prices[r]));
  std::vector<JsonObject> copies;
  for (const Copy& copy : plan.copies)
    copies.push_back(std::move(JsonObject()
                                   .add("data", problem.data[copy.data].name)
                                   .add("bytes", problem.data[copy.data].bytes)
                                   .add("from", problem.regions[copy.from].name)
                                   .add("to", problem.regions[copy.to].name)));
  return JsonObject()
             .add("bytes", plan.bytes)
             .add("bound", plan.bound)
             .add("exhaustive", plan.exhaustive)
             .add("regions", regions)
             .add("jobs", jobs)
             .add("copies", copies)
             .add("traffic", traffic_json(traffic_of(problem, plan)))
             .text() +
         "\n";
}

}  // namespace weft::plan::regions
