#include "plan/regions/regions.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/file.hpp"
#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "base/test_folder.hpp"
#include "base/test_skip.hpp"
#include "base/text.hpp"
#include "os/run_program.hpp"

namespace weft::plan::regions {
namespace {

std::uint32_t draw(Rng& rng, std::size_t n) { return static_cast<std::uint32_t>(rng.below(n)); }

struct Drawn {
  std::uint32_t regions, jobs, sets;
  double load;          // demand over supply
  bool planted;         // capacities of an answer without copies
  bool extras = false;  // jobs of two sets and of none, and some with few regions
};

// Popular sets and large jobs are rare, first regions hold more.
Problem draw_problem(const Drawn& drawn, std::uint64_t seed) {
  Rng rng(seed);
  Problem out;
  const std::uint64_t all = (std::uint64_t{1} << drawn.regions) - 1;
  std::vector<double> popular;
  for (std::uint32_t d = 0; d < drawn.sets; ++d) {
    std::uint64_t at = std::uint64_t{1}
                       << std::min(draw(rng, drawn.regions), draw(rng, drawn.regions));
    if (drawn.planted) at |= std::uint64_t{1} << draw(rng, drawn.regions);
    out.data.push_back({fmt::format("d{}", d), std::round(100 * std::exp(3 * rng.uniform())), at});
    popular.push_back(1 / (0.02 + rng.uniform()));
  }
  const double sum = std::accumulate(popular.begin(), popular.end(), 0.0);
  std::vector<double> used(drawn.regions, 0);
  double total = 0;
  for (std::uint32_t j = 0; j < drawn.jobs; ++j) {
    Job job{.name = fmt::format("j{}", j),
            .gpus = std::exp2(3 + std::floor(7 * rng.uniform() * rng.uniform())),
            .within = all};
    double x = rng.uniform() * sum;
    std::uint32_t d = 0;
    while (d + 1 < drawn.sets && (x -= popular[d]) > 0) ++d;
    job.data.push_back(d);
    if (drawn.extras && rng.below(4) == 0) {
      job.data.clear();
      if (rng.below(2) == 0) job.data = {d, (d + 1) % drawn.sets};
      std::ranges::sort(job.data);
      job.within &= ~(std::uint64_t{1} << draw(rng, drawn.regions));
    }
    std::uint64_t home = out.data[d].at;
    if (rng.below(2) == 0 && std::popcount(home) > 1) home &= home - 1;
    used[static_cast<std::size_t>(std::countr_zero(home))] += job.gpus;
    total += job.gpus;
    out.jobs.push_back(std::move(job));
  }
  std::vector<double> share;
  for (std::uint32_t r = 0; r < drawn.regions; ++r) share.push_back(0.5 + rng.uniform());
  const double shares = std::accumulate(share.begin(), share.end(), 0.0);
  for (std::uint32_t r = 0; r < drawn.regions; ++r)
    out.regions.push_back(
        {fmt::format("r{}", r), drawn.planted ? std::ceil(used[r] * 1.03) + 1
                                              : std::ceil(total / drawn.load * share[r] / shares)});
  return out;
}

// Every plan there is: bytes of the best, or a negative number where none holds all jobs.
double exhaustive(const Problem& problem) {
  const std::size_t n = problem.regions.size();
  std::vector<std::size_t> at(problem.jobs.size(), 0);
  double best = -1;
  while (true) {
    std::vector<double> load(n, 0);
    std::vector<std::uint64_t> needs(problem.data.size(), 0);
    bool fits = true;
    for (std::size_t j = 0; j < at.size(); ++j) {
      load[at[j]] += problem.jobs[j].gpus;
      fits &= (problem.jobs[j].within >> at[j] & 1) != 0;
      for (const std::uint32_t d : problem.jobs[j].data) needs[d] |= std::uint64_t{1} << at[j];
    }
    for (std::size_t r = 0; r < n; ++r) fits &= load[r] <= problem.regions[r].gpus;
    double bytes = 0;
    for (std::size_t d = 0; d < needs.size(); ++d)
      bytes += problem.data[d].bytes * std::popcount(needs[d] & ~problem.data[d].at);
    if (fits && (best < 0 || bytes < best)) best = bytes;
    std::size_t j = 0;
    while (j < at.size() && ++at[j] == n) at[j++] = 0;
    if (j == at.size()) return best;
  }
}

TEST_CASE("small problems: the best of all plans, a bound below it, books that add up") {
  int infeasible = 0, optimal = 0;
  for (std::uint64_t seed = 1; seed <= test_effort(60); ++seed) {
    const Problem problem = draw_problem(
        {.regions = 3, .jobs = 8, .sets = 4, .load = 0.8, .planted = false, .extras = true}, seed);
    const double best = exhaustive(problem);
    const auto plan = plan_regions(problem, {.effort = 0.2, .seed = seed});
    CAPTURE(seed);
    CHECK(plan.has_value() == (best >= 0));
    infeasible += best < 0;
    if (!plan) continue;
    CHECK(check_plan(problem, *plan) == "");
    CHECK(plan->bytes == approx(best));
    CHECK(plan->bound <= best * (1 + 1e-9) + 1e-6);
    CHECK(bound_at(problem, plan->prices) <= best * (1 + 1e-9) + 1e-6);
    optimal += plan->exhaustive;
    CHECK(plan->bound == plan->bytes);
    Rng rng(seed);  // any prices give a bound
    const std::vector<double> prices{10 * rng.uniform(), 10 * rng.uniform(), 10 * rng.uniform()};
    CHECK(bound_at(problem, prices) <= best * (1 + 1e-9) + 1e-6);
  }
  CHECK(static_cast<std::uint64_t>(infeasible) < test_effort(60));
  CHECK(optimal + infeasible == static_cast<int>(test_effort(60)));
}

TEST_CASE("planted answers without a copy are found") {
  for (std::uint64_t seed = 1; seed <= test_effort(4); ++seed) {
    const Problem problem =
        draw_problem({.regions = 8, .jobs = 400, .sets = 60, .load = 0.97, .planted = true}, seed);
    const auto plan = plan_regions(problem, {});
    REQUIRE(plan.has_value());
    CHECK(check_plan(problem, *plan) == "");
    CHECK(plan->bytes == 0);
  }
}

TEST_CASE("the same problem and seed: the same plan") {
  const Problem problem =
      draw_problem({.regions = 6, .jobs = 200, .sets = 40, .load = 0.9, .planted = false}, 1);
  const auto a = plan_regions(problem, {.effort = 0.1}), b = plan_regions(problem, {.effort = 0.1});
  REQUIRE(a.has_value());
  CHECK(a->region == b->region);
  CHECK(a->bound == b->bound);
}

// In the LP format: x_j_r where job j runs, y_d_r whether set d is copied to r.
std::string as_lp(const Problem& problem) {
  std::string cost = "Minimize\n obj:", rows = "Subject To\n", binaries;
  const std::size_t n = problem.regions.size();
  for (std::size_t d = 0; d < problem.data.size(); ++d)
    for (std::size_t r = 0; r < n; ++r)
      if ((problem.data[d].at >> r & 1) == 0) {
        cost += fmt::format(" + {} y_{}_{}\n", problem.data[d].bytes, d, r);
        binaries += fmt::format(" y_{}_{}\n", d, r);
      }
  for (std::size_t j = 0; j < problem.jobs.size(); ++j) {
    for (std::size_t r = 0; r < n; ++r) {
      rows += fmt::format(" + x_{}_{}", j, r);
      binaries += fmt::format(" x_{}_{}\n", j, r);
    }
    rows += " = 1\n";
    for (const std::uint32_t d : problem.jobs[j].data)
      for (std::size_t r = 0; r < n; ++r)
        if ((problem.data[d].at >> r & 1) == 0)
          rows += fmt::format(" x_{}_{} - y_{}_{} <= 0\n", j, r, d, r);
  }
  for (std::size_t r = 0; r < n; ++r) {
    for (std::size_t j = 0; j < problem.jobs.size(); ++j)
      rows += fmt::format(" + {} x_{}_{}\n", problem.jobs[j].gpus, j, r);
    rows += fmt::format(" <= {}\n", problem.regions[r].gpus);
  }
  return cost + rows + "Binaries\n" + binaries + "End\n";
}

TEST_CASE("against CBC: never more than 1.05 of what it finds in a minute" *
          doctest::test_suite("needs cbc")) {
  if (!std::filesystem::exists("/usr/bin/cbc")) {
    skip_test("cbc (Debian's coinor-cbc) is not there");
    return;
  }
  TestFolder folder;
  double worst = 0;
  // Longer by choice: -DWEFT_CBC_SECONDS=60.
  for (std::uint64_t seed = 1; seed <= (WEFT_CBC_SECONDS > 5 ? 8 : test_effort(2)); ++seed) {
    const Problem problem = draw_problem({.regions = 6,
                                          .jobs = 200,
                                          .sets = 40,
                                          .load = seed % 2 == 0 ? 0.95 : 0.9,
                                          .planted = false},
                                         seed);
    const std::string lp = folder.write("p.lp", as_lp(problem)), out = folder.file("p.sol");
    const auto run = run_program({.argv = {"/usr/bin/cbc", lp, "sec",
                                           std::to_string(WEFT_CBC_SECONDS), "solve", "solu", out},
                                  .environment = {},
                                  .patience = std::chrono::minutes(3)});
    REQUIRE(run.has_value());
    const auto solution = read_file(out);
    REQUIRE(solution.has_value());
    const auto at = solution->find("objective value");
    REQUIRE(at != std::string::npos);
    const double theirs = std::stod(solution->substr(at + 15));
    const auto plan = plan_regions(problem, {});
    REQUIRE(plan.has_value());
    CHECK(check_plan(problem, *plan) == "");
    MESSAGE("seed " << seed << ": ours " << plan->bytes << ", bound " << plan->bound << ", CBC "
                    << theirs << " " << solution->substr(0, solution->find('\n')));
    worst = std::max(worst, plan->bytes / theirs);
    CHECK(plan->bytes <= 1.05 * theirs);
    CHECK(plan->bound <= theirs * (1 + 1e-6));
  }
}

std::string error_of(const char* yaml) {
  const auto out = read_problem(yaml, "r.yaml");
  return out ? "none" : out.error().text();
}

TEST_CASE("problems from YAML and CSV, and what is wrong with them") {
  TestFolder folder;
  folder.write("jobs.csv", "name,gpus,data,within\na,8,x;y,\nb,16,,west\n");
  const std::string file =
      folder.write("p.yaml",
                   "regions: [{name: east, gpus: 32}, {name: west, gpus: 16}]\n"
                   "data: [{name: x, bytes: 2 PB, at: east}, {name: y, bytes: 1 TB, "
                   "at: [east, west]}]\njobs: jobs.csv\n");
  const auto problem = read_problem(read_file(file).value(), file);
  if (!problem) FAIL(problem.error().text());
  CHECK(problem->jobs[0].data == std::vector<std::uint32_t>{0, 1});
  CHECK(problem->jobs[0].within == 3);
  CHECK(problem->jobs[1].within == 2);
  CHECK(problem->data[0].bytes == 2e15);
  CHECK(problem->data[1].at == 3);
  const auto plan = plan_regions(*problem, {.effort = 0.01});
  REQUIRE(plan.has_value());
  CHECK(plan->bytes == 0);
  CHECK(error_of("regions: [{name: e, gpus: 4}]\ndata: [{name: x, bytes: 1 TB, at: w}]\n"
                 "jobs: [{name: a, gpus: 1, data: z}, {name: a, gpus: 1}]\n") ==
        "r.yaml:2:35: there is no region \"w\" (did you mean \"e\"?); name one of the file's "
        "regions\n"
        "r.yaml:3:33: there is no data set \"z\" (did you mean \"x\"?); name one of the file's "
        "data sets\n"
        "r.yaml:3:37: two jobs are named \"a\"; give each a name of its own");
  CHECK(error_of("regions: [{name: e, gpus: 4}]\ndata: [{name: x, bytes: 1 TB, at: e}]\n"
                 "jobs: [{name: a, gpus: 5, data: x}]\n")
            .find("needs 5 GPUs, and the largest region it may run in has 4") != std::string::npos);
  CHECK(error_of("regions: [{name: e, gpus: 4}]\ndata: [{name: x, bytes: 1 TB, at: e}]\n"
                 "jobs: [{name: a, gpus: 3, data: x}, {name: b, gpus: 3}]\n") ==
        "r.yaml:1:1: the jobs need 6 GPUs, and the regions have 4; remove jobs, or add GPUs");
  CHECK(error_of("regions: 7\n").starts_with("r.yaml:1:10: \"regions\" must be a list of 1 to 64"));
}

}  // namespace
}  // namespace weft::plan::regions
