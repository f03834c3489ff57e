// What each failure of a fabric, or pair of failures, does to the jobs of a scenario.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json_text.hpp"
#include "base/progress.hpp"
#include "model/fabric/fabric.hpp"
#include "model/scenario/scenario.hpp"
#include "model/work/outcome.hpp"

namespace weft::plan::failures {

struct Options {
  std::uint32_t samples = 20;  // of a role, or of a pair of roles; all where there are no more
  bool pairs = false;          // two failures at a time as well
  bool hosts = false;          // hosts too: their jobs end
  std::uint64_t seed = 1;      // of the choice
  std::uint32_t threads = 1;
  Progress::Show progress = Progress::Show::never;
};

// One fault of a scenario, in the catalogue's words: {kind: switch_down, switch: ctsw:3}.
struct Fault {
  const char* kind;
  const char* key;
  std::string name;
};
// What can fail in one way: all switches of a role, all cables between two roles, all hosts.
struct Role {
  std::string name;  // "ctsw", "rtsw--ctsw", "host"
  std::vector<Fault> faults;
};
// Switch roles, then cables between NICs and switches or between switches, then NICs with several
// cables, then hosts, each in the fabric's order.
std::vector<Role> roles_of(const model::Fabric& fabric, bool hosts);

// One run. Times as model::time_of has them, by job; no_number where the job comes to a stop.
struct Run {
  std::string failed;  // "ctsw:3", "ctsw:3 + ctsw:7"
  std::vector<double> seconds;
  std::string stopped;  // why the first job that stops does
};

// What a role's failures, or those of two roles together, do to one job.
struct Effect {
  std::string job;
  std::uint64_t stops = 0;  // of the runs
  // Of the runs in which it ends; no_number where there are none.
  double mean_s = model::no_number, median_s = model::no_number, worst_s = model::no_number;
  std::string worst;  // what failed then; a failure that stops the job is worse than any other
};
struct Row {
  std::string role;      // "ctsw", "ctsw + rtsw--ctsw"
  std::uint64_t of = 0;  // so many failures there are
  std::vector<Run> runs;
  std::vector<Effect> effects;  // by job
  // Where not all were run: with 95 % confidence at most this share of them is worse than the
  // worst one that was (1 - 0.05^(1/n): n draws that all miss a share p have probability
  // (1 - p)^n); 0 where all were.
  double unseen_share = 0;
};

struct Result {
  std::string scenario;
  std::vector<std::string> jobs;
  std::vector<double> healthy_s;  // by job, with the scenario's own faults alone
  std::vector<Row> rows;
  std::optional<model::Estimate> estimate;  // of the healthy run, where times are estimates
};

// Runs the scenario, and once more for each failure, which holds from the start and adds to the
// scenario's own faults: routing has gone round it, and what it takes to get there is not part of
// the time. Which failures are drawn where there are more than `samples` depends on `seed`, the
// role and nothing else. Fails: as run_scenario(); Errc::value where a job does not end as it is.
// Cost: that of so many runs, `threads` at a time. Deterministic on any number of threads.
weft::Result<Result> run(const model::Scenario& scenario, const Options& options);

// A sentence for each job: the worst single failure, and what stops it.
std::vector<std::string> findings(const Result& result);
std::string to_table(const Result& result);
// role,failure,job,seconds,slowdown,stopped: a line for each run and job.
std::string to_csv(const Result& result);
std::string to_json(const Result& result);

}  // namespace weft::plan::failures
