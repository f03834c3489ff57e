#include "plan/backbone/te.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "base/csv.hpp"
#include "base/test_approx.hpp"
#include "base/test_skip.hpp"
#include "plan/backbone/test_wan.hpp"
#include "saddle/test_clp.hpp"

namespace weft::plan::backbone {
namespace {

//   0 --1-- 1        two ways from 0 to 3, of 1 and 2 Gbit/s
//   |       |
//   2       1
//   |       |
//   2 --2-- 3
const Wan square{.sites = {"a", "b", "c", "d"},
                 .cables = {{0, 1, 1, {}}, {0, 2, 2, "hill"}, {1, 3, 1, {}}, {2, 3, 2, "hill"}}};

// The optimum over the same paths, written down again for CLP: max t or min u, by links.
std::string mps_of(const Wan& wan, const std::vector<Demand>& demands, Objective objective) {
  const bool is_mlu = objective == Objective::mlu;
  const PathSet paths = find_paths(wan, demands, 4);
  std::string rows = "NAME t\nROWS\n N obj\n", columns = "COLUMNS\n", rhs = "RHS\n";
  for (std::size_t l = 0; l < wan.link_count(); ++l) {
    rows += fmt::format(" L l{}\n", l);
    rhs += fmt::format(" s l{} {}\n", l, is_mlu ? 0.0 : wan.gbps(l));
  }
  for (std::size_t d = 0; d < demands.size(); ++d) {
    rows += fmt::format(" {} d{}\n", is_mlu ? 'E' : 'L', d);
    rhs += fmt::format(" s d{} {:.17g}\n", d, demands[d].gbps);
    for (std::uint32_t q = paths.first_path[d]; q < paths.first_path[d + 1]; ++q) {
      columns += fmt::format(" x{} obj {}\n x{} d{} 1\n", q, is_mlu ? 0 : -1, q, d);
      for (const std::uint32_t l : paths.path(q)) columns += fmt::format(" x{} l{} 1\n", q, l);
    }
  }
  if (is_mlu) columns += " u obj 1\n";
  for (std::size_t l = 0; is_mlu && l < wan.link_count(); ++l)
    columns += fmt::format(" u l{} -{}\n", l, wan.gbps(l));
  return rows + columns + rhs + "ENDATA\n";
}

// The bound on all paths from the prices alone: Floyd and Warshall's distances.
double all_paths_bound(const Wan& wan, const std::vector<Demand>& demands,
                       const std::vector<double>& price, Objective objective) {
  const std::size_t n = wan.sites.size();
  std::vector<double> distance(n * n, std::numeric_limits<double>::infinity());
  for (std::size_t l = 0; l < wan.link_count(); ++l) {
    double& d = distance[wan.from(l) * n + wan.to(l)];
    d = std::min(d, price[l]);
  }
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        distance[i * n + j] =
            std::min(distance[i * n + j], distance[i * n + k] + distance[k * n + j]);
  double out = 0;
  for (const Demand& d : demands) {
    const double cheapest = distance[d.from * n + d.to];
    out += d.gbps * (objective == Objective::mlu ? cheapest : std::max(0.0, 1 - cheapest));
  }
  if (objective == Objective::throughput)
    for (std::size_t l = 0; l < wan.link_count(); ++l) out += wan.gbps(l) * price[l];
  return out;
}

TeAnswer solve(const Wan& wan, const std::vector<Demand>& demands, Objective objective,
               double gap = 1e-4) {
  return engineer(wan, demands, {.objective = objective, .gap = gap});
}

}  // namespace

TEST_CASE("both ways fill up; the worst link is shared out by capacity") {
  const std::vector<Demand> demands{{0, 3, 6, 3}};
  const TeAnswer most = solve(square, demands, Objective::throughput);
  CHECK(most.classes.at(0).value == approx(3).epsilon(1e-3));
  CHECK(most.load_gbps[0] == approx(1).epsilon(1e-3));
  CHECK(most.load_gbps[2] == approx(2).epsilon(1e-3));
  const TeAnswer even = solve(square, demands, Objective::mlu);
  CHECK(even.classes.at(0).value == approx(2).epsilon(1e-3));
  CHECK(even.load_gbps[0] == approx(2).epsilon(1e-2));
}

TEST_CASE("disjoint paths: fewest links first, none shared") {
  const PathSet paths = find_paths(square, {{0, 3, 1, 3}, {0, 1, 1, 3}}, 4);
  CHECK(paths.first_path == std::vector<std::uint32_t>{0, 2, 4});
  CHECK(std::ranges::equal(paths.path(0), std::vector<std::uint32_t>{0, 4}));
  CHECK(std::ranges::equal(paths.path(1), std::vector<std::uint32_t>{2, 6}));
  CHECK(std::ranges::equal(paths.path(2), std::vector<std::uint32_t>{0}));
  CHECK(std::ranges::equal(paths.path(3), std::vector<std::uint32_t>{2, 6, 5}));
}

TEST_CASE("values lie within their certificate, loads within capacity") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    const Wan wan = random_wan(8, 5, seed);
    const auto demands = gravity_demands(wan, {.load = 0.6, .seed = seed});
    for (const Objective objective : {Objective::throughput, Objective::mlu}) {
      const TeAnswer a = solve(wan, demands, objective, 1e-3);
      const ClassAnswer& one = a.classes.at(0);
      CHECK(one.gap <= 1e-3);
      const double all = all_paths_bound(wan, demands, one.price, objective);
      const bool is_capped = objective == Objective::throughput && all > one.asked_gbps;
      CHECK(one.all_paths == approx(is_capped ? one.asked_gbps : all).epsilon(1e-9));
      double worst = 0;
      for (std::size_t l = 0; l < wan.link_count(); ++l)
        worst = std::max(worst, a.load_gbps[l] / wan.gbps(l));
      if (objective == Objective::throughput) {
        CHECK(worst <= 1 + 1e-9);
        CHECK(one.value <= one.bound);
        CHECK(one.bound <= one.all_paths * (1 + 1e-9));
        CHECK(one.sent_gbps == approx(one.value).epsilon(1e-9));
      } else {
        CHECK(worst == approx(one.value).epsilon(1e-9));
        CHECK(one.value >= one.bound);
        CHECK(one.bound >= one.all_paths * (1 - 1e-9));
        CHECK(one.sent_gbps == approx(one.asked_gbps).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("classes go in strict priority: the first gets what it would get alone") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    const Wan wan = random_wan(7, 4, seed);
    const auto demands = gravity_demands(wan, {.load = 1.5, .by_class = true, .seed = seed});
    const TeAnswer a = engineer(wan, demands, {.gap = 1e-3, .by_class = true});
    REQUIRE(a.classes.size() == class_count);
    std::vector<Demand> first;
    for (const Demand& d : demands)
      if (d.priority == 0) first.push_back(d);
    const ClassAnswer alone = solve(wan, first, Objective::throughput, 1e-3).classes.at(0);
    CHECK(a.classes[0].value == alone.value);
    double sum = 0;
    for (const ClassAnswer& one : a.classes) sum += one.sent_gbps;
    const ClassAnswer together = solve(wan, demands, Objective::throughput, 1e-3).classes.at(0);
    CHECK(sum <= together.bound * (1 + 1e-9));
    for (std::size_t l = 0; l < wan.link_count(); ++l)
      CHECK(a.load_gbps[l] <= wan.gbps(l) * (1 + 1e-9));
  }
}

TEST_CASE("a failure is what a backbone without the cable would do") {
  const Wan wan = random_wan(8, 4, 3);
  const auto demands = gravity_demands(wan, {.load = 0.8});
  for (const Objective objective : {Objective::throughput, Objective::mlu}) {
    const TeAnswer a =
        engineer(wan, demands, {.objective = objective, .gap = 1e-3, .failures = true});
    REQUIRE(a.failures.size() == wan.cables.size());
    for (const FailureAnswer& one : a.failures) {
      CHECK(one.gap <= 1e-3);
      // The same paths, less those over the dead cable: by capacities that let nothing through.
      Wan rest = wan;
      rest.cables[one.cables[0]].gbps = 1e-9;
      if (objective == Objective::throughput)
        CHECK(one.value ==
              approx(solve(rest, demands, objective, 1e-3).classes[0].value).epsilon(2.1e-3));
    }
    for (std::size_t i = 1; i < a.failures.size(); ++i)
      CHECK((objective == Objective::mlu ? a.failures[i - 1].value >= a.failures[i].value
                                         : a.failures[i - 1].value <= a.failures[i].value));
  }
}

TEST_CASE("demands without a path are counted, alone or after a failure") {
  const Wan apart{.sites = {"a", "b", "c"}, .cables = {{0, 1, 1, {}}}};
  for (const Objective objective : {Objective::throughput, Objective::mlu}) {
    const TeAnswer none =
        engineer(apart, {{0, 2, 1, 3}}, {.objective = objective, .failures = true});
    CHECK(none.classes.at(0).unroutable == 1);
    CHECK(none.classes[0].value == 0);
    CHECK(none.failures.at(0).unroutable_gbps == 1);
    const TeAnswer cut =
        engineer(apart, {{0, 1, 1, 3}}, {.objective = objective, .failures = true});
    CHECK(cut.failures.at(0).unroutable_gbps == 1);
    CHECK(cut.failures[0].value == 0);
  }
  // What has no path is asked for all the same.
  const ClassAnswer half =
      solve(apart, {{0, 2, 15, 3}, {0, 1, 5, 3}}, Objective::throughput).classes.at(0);
  CHECK(half.asked_gbps == 20);
  CHECK(half.unroutable_gbps == 15);
  CHECK(half.bound == approx(1).epsilon(1e-3));
  const TeAnswer nothing = solve(apart, {{0, 2, 20, 3}}, Objective::throughput);
  CHECK(nothing.classes.at(0).asked_gbps == 20);
  CHECK(to_table(apart, nothing, {}, 0).contains("0 bps sent of 20 Gbps, no routing above 0 bps"));
}

TEST_CASE("a demand whose k paths all died goes over what is left") {
  // One cable to d: k = 1 path from a, over a - c; after its failure a - b - c - d lives.
  const Wan tail{.sites = {"a", "b", "c", "d"},
                 .cables = {{0, 1, 10, {}}, {1, 2, 10, {}}, {0, 2, 10, {}}, {2, 3, 5, {}}}};
  for (const Objective objective : {Objective::throughput, Objective::mlu}) {
    const TeAnswer a =
        engineer(tail, {{0, 3, 3, 3}}, {.objective = objective, .gap = 1e-4, .failures = true});
    REQUIRE(a.failures.size() == 4);
    for (const FailureAnswer& one : a.failures) {
      CAPTURE(one.name);
      const bool is_cut = one.name == "c--d";
      CHECK(one.unroutable_gbps == (is_cut ? 3 : 0));
      const double expected = is_cut ? 0 : objective == Objective::throughput ? 3 : 0.6;
      CHECK(one.value == approx(expected).epsilon(1e-3));
    }
  }
}

TEST_CASE("what has no path after a failure is what no walk reaches") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Wan wan = random_wan(8, 1, seed);
    const auto demands = gravity_demands(wan, {.load = 0.6, .seed = seed});
    for (const FailureAnswer& one :
         engineer(wan, demands, {.gap = 1e-2, .failures = true}).failures) {
      // Sites joined by the cables that are left, by colours until nothing changes.
      std::vector<std::uint32_t> colour(wan.sites.size());
      std::iota(colour.begin(), colour.end(), 0U);
      for (std::size_t round = 0; round < wan.sites.size(); ++round)
        for (std::uint32_t c = 0; c < wan.cables.size(); ++c)
          if (std::ranges::find(one.cables, c) == one.cables.end())
            colour[wan.cables[c].a] = colour[wan.cables[c].b] =
                std::min(colour[wan.cables[c].a], colour[wan.cables[c].b]);
      double cut = 0;
      for (const Demand& d : demands) cut += colour[d.from] == colour[d.to] ? 0 : d.gbps;
      CHECK(one.unroutable_gbps == approx(cut));
    }
  }
}

TEST_CASE("no bound is above what is asked for") {
  const std::vector<Demand> demands{{0, 3, 3, 3}};  // exactly what fits
  const ClassAnswer one = solve(square, demands, Objective::throughput, 0.01).classes.at(0);
  CHECK(one.bound <= 3);
  CHECK(one.all_paths <= 3);
  CHECK(one.gap == approx(one.bound / one.value - 1));
}

TEST_CASE("cables that share a risk fail together") {
  const TeAnswer a = engineer(square, {{0, 3, 6, 3}}, {.gap = 1e-3, .failures = true});
  REQUIRE(a.failures.size() == 5);  // four cables and the group
  CHECK(std::ranges::count(a.failures, "hill", &FailureAnswer::name) == 1);
  CHECK(a.failures.front().value == approx(1).epsilon(1e-2));
}

TEST_CASE("CLP finds the same optimum" * doctest::test_suite("needs clp")) {
  if (!saddle::has_clp()) return skip_test("no clp; install the Debian package coinor-clp");
  const TestFolder folder;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    const Wan wan = random_wan(9, 6, seed);
    const auto demands = gravity_demands(wan, {.load = 0.7, .seed = seed});
    for (const Objective objective : {Objective::throughput, Objective::mlu}) {
      const ClassAnswer one = solve(wan, demands, objective, 1e-5).classes.at(0);
      const auto optimum = saddle::clp_optimum(mps_of(wan, demands, objective), folder);
      REQUIRE(optimum);
      CHECK(one.gap <= 1e-5);
      CHECK(one.value == approx(std::abs(*optimum)).epsilon(2e-5));
      CHECK(one.bound == approx(std::abs(*optimum)).epsilon(2e-5));
    }
  }
}

// Time is not tested: that of docs/commands/te.md is of the command line.
TEST_CASE("backbones of the Topology Zoo are certified" * doctest::test_suite("needs wandata")) {
  const std::string folder = WEFT_WAN_DATA;
  if (folder.empty()) return skip_test("no data; configure with -DWEFT_WAN_DATA=FOLDER");
  const std::vector<Rate> drawn{Rate{200'000'000'000}, Rate{400'000'000'000}, Rate{800'000'000'000},
                                Rate{1'600'000'000'000}};
  for (const char* name : {"UsCarrier", "Cogentco"}) {
    const auto file = load_wan(folder + "/zoo_" + name + ".csv", {.capacity = drawn});
    REQUIRE(file);
    const auto demands = gravity_demands(file->wan, {});
    for (const Objective objective : {Objective::throughput, Objective::mlu}) {
      const ClassAnswer one = solve(file->wan, demands, objective).classes.at(0);
      CHECK(one.gap <= 1e-4);
      CHECK(one.iterations <= 1000);
    }
  }
}

}  // namespace weft::plan::backbone
