// Jobs and data sets over regions: where each job runs, and which copies that needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "plan/regions/life_cycle.hpp"

namespace weft::plan::regions {

inline constexpr std::uint32_t regions_max = 64, items_max = 100'000, data_per_job_max = 16;

struct Region {
  std::string name;
  double gpus = 0;
  std::string site = {};  // of the backbone; empty: as the region is named
  std::int32_t utc = 0;   // hours that its clocks are ahead
};
struct DataSet {
  std::string name;
  double bytes = 0;
  std::uint64_t at = 0;  // regions that hold it: bit r is region r
};
struct Job {
  std::string name;
  double gpus = 0;
  std::vector<std::uint32_t> data;  // all of them must be where it runs
  std::uint64_t within = 0;         // regions that may run it
};
struct Problem {
  std::vector<Region> regions;
  std::vector<DataSet> data;
  std::vector<Job> jobs;
  LifeCycle life_cycle;
};

// A YAML file with regions: [{name, gpus}], data: [{name, bytes, at: [region, ...]}] and jobs:
// [{name, gpus, data: [set, ...], within: [region, ...]}]. data: and jobs: may instead name a CSV
// file, its path relative to the file, with these columns; lists are separated by ';'. And what
// makes traffic between regions: docs/commands/regions.md, "Traffic". Fails with
// every error found: unknown or double names, a data set that is nowhere, a job that no region can
// hold, more demand than supply, numbers out of bounds.
Result<Problem> read_problem(std::string_view yaml, const std::string& file);

struct Copy {
  std::uint32_t data, from, to;  // `from`: the first region that holds it
};
struct Plan {
  std::vector<std::uint32_t> region;  // of each job
  std::vector<Copy> copies;           // by data set, then region
  double bytes = 0;                   // of all copies
  // No plan needs fewer bytes: the value of the Lagrangian at `prices`, bytes per GPU and region.
  // `exhaustive`: all plans were looked through, and this is the best.
  double bound = 0;
  bool exhaustive = false;
  std::vector<double> prices;
  std::vector<double> load;       // GPUs by region
  std::vector<double> home_load;  // where each job runs where its largest data set is first held
};

struct SearchOptions {
  double effort = 1;  // of 1 CPU second or so
  std::uint64_t seed = 1;
};

// The plan of least bytes that the search finds, and a bound. Same problem and options: the same
// plan. Fails: Errc::infeasible where no plan was found that keeps within all regions' GPUs; the
// message says by how little the best one did not.
// Model: every job runs in one region, within its GPUs, with copies of all its data sets; copies
// are kept. After Choudhury et al., "MAST: Global Scheduling of ML Training across Geo-Distributed
// Datacenters at Hyperscale", OSDI 2024, whose scheduler decides more (priorities, time); published
// figures of it are not reproduced.
Result<Plan> plan_regions(const Problem& problem, const SearchOptions& options);

// What is wrong with a plan, by definition and not by the search's own books; "" for nothing.
std::string check_plan(const Problem& problem, const Plan& plan);
// The Lagrangian's value at prices: a bound for any prices that are not negative.
double bound_at(const Problem& problem, const std::vector<double>& prices);

// What the jobs, placed by the plan, send between regions, hour by hour of a day in UTC. Rows of
// one pair, cause and class are one demand; by cause, then sites. What stays within a site is
// counted, and no demand. Cost: O(rows x regions).
Traffic traffic_of(const Problem& problem, const Plan& plan);
// src,dst,rate,class,cause,time, as `weft te` and `weft bulk` read them. `replication`: with it, or
// without, where it goes as transfers.
enum class Replication : std::uint8_t { as_demands, as_transfers };
std::string demands_csv(const Traffic& traffic, Replication replication);
// id,src,dst,size,release,deadline, as `weft bulk` reads them: one for each data set, to all sites
// that get a copy, with the part that is due on one day.
std::string transfers_csv(const Problem& problem, const Plan& plan);

std::string to_table(const Problem& problem, const Plan& plan);
std::string to_json(const Problem& problem, const Plan& plan);
// data,bytes,from,to
std::string copies_csv(const Problem& problem, const Plan& plan);

}  // namespace weft::plan::regions
