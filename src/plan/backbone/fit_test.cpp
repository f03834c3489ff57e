// Against a closed form, demands that are known, and measured matrices.
#include "plan/backbone/fit.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "base/test_skip.hpp"
#include "plan/backbone/test_wan.hpp"

namespace weft::plan::backbone {
namespace {

// What counters read where these demands go on the first of their paths: one demand at a time, by
// definition.
std::vector<Counter> counters_of(const Wan& wan, const std::vector<Demand>& demands,
                                 const PathSet& paths) {
  std::vector<Counter> out(wan.link_count());
  for (std::uint32_t link = 0; link < wan.link_count(); ++link) {
    out[link].link = link;
    for (std::size_t d = 0; d < demands.size(); ++d) {
      const auto path = paths.path(paths.first_path[d]);
      if (std::ranges::find(path, link) != path.end()) out[link].gbps += demands[d].gbps;
    }
  }
  return out;
}

std::vector<Demand> all_pairs(const Wan& wan, double gbps) {
  std::vector<Demand> out;
  for (std::uint32_t a = 0; a < wan.sites.size(); ++a)
    for (std::uint32_t b = 0; b < wan.sites.size(); ++b)
      if (a != b) out.push_back({a, b, gbps});
  return out;
}

// Rates in proportion to what leaves a site times what reaches one: all that edge counters say.
std::vector<Demand> gravity_of(const Wan& wan, const std::vector<Demand>& demands) {
  std::vector<double> out_of(wan.sites.size(), 0), into(wan.sites.size(), 0);
  double all = 0;
  for (const Demand& d : demands) {
    out_of[d.from] += d.gbps;
    into[d.to] += d.gbps;
    all += d.gbps;
  }
  std::vector<Demand> out = demands;
  for (Demand& d : out) d.gbps = out_of[d.from] * into[d.to] / all;
  return out;
}

}  // namespace

TEST_CASE("one link too many: the closed form of the nearest demands in relative entropy") {
  // A chain a, b, c, d with demands a>b, b>c and a>c: x, y, z with x + z = 6 and y + z = 3. The
  // nearest to (1, 1, 1) has x y = z, for the derivatives ln x, ln y, ln z are l, m, l + m.
  Wan wan{.sites = {"a", "b", "c"}, .cables = {{0, 1, 10, {}}, {1, 2, 10, {}}}};
  const std::vector<Demand> demands{{0, 1, 1}, {1, 2, 1}, {0, 2, 1}};
  const PathSet paths = find_paths(wan, demands, 1);
  const CounterFit fit = fit_demands(wan, demands, paths, {{0, 6}, {2, 3}}, {.tolerance = 1e-10});
  // (6 - z)(3 - z) = z
  const double z = 5 - std::sqrt(7);
  CHECK(fit.demands[2].gbps == approx(z).epsilon(1e-8));
  CHECK(fit.demands[0].gbps == approx(6 - z).epsilon(1e-8));
  CHECK(fit.demands[1].gbps == approx(3 - z).epsilon(1e-8));
  CHECK(fit.worst_before == approx(2.0 / 3));
}

TEST_CASE("random backbones: all counters met, and what is right already is left alone") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Wan wan = random_wan(10, 4, seed);
    std::vector<Demand> truth = all_pairs(wan, 0);
    Rng rng(seed);
    for (Demand& d : truth) d.gbps = static_cast<double>(1 + rng.below(100));
    const PathSet paths = find_paths(wan, truth, 1);
    const auto counters = counters_of(wan, truth, paths);
    const CounterFit same = fit_demands(wan, truth, paths, counters);
    CHECK(same.rounds == 0);
    const CounterFit fit = fit_demands(wan, all_pairs(wan, 1), paths, counters);
    CHECK(fit.worst <= 1e-4);
    const auto check = counters_of(wan, fit.demands, paths);
    for (std::size_t c = 0; c < counters.size(); ++c)
      CHECK(std::abs(check[c].gbps - counters[c].gbps) <= 2e-4 * counters[c].gbps);
  }
}

TEST_CASE("counters that no demands explain, and counters of 0") {
  Wan wan{.sites = {"a", "b", "c"}, .cables = {{0, 1, 10, {}}, {1, 2, 10, {}}}};
  const std::vector<Demand> demands{{0, 2, 1}};
  const PathSet paths = find_paths(wan, demands, 1);
  const CounterFit fit = fit_demands(wan, demands, paths, {{0, 2}, {2, 4}}, {.rounds_max = 500});
  CHECK(fit.worst > 0.2);
  CHECK(to_table(wan, {{0, 2}, {2, 4}}, fit, 5).contains("no demands on these paths agree"));
  const CounterFit none = fit_demands(wan, demands, paths, {{0, 0}});
  CHECK(none.demands[0].gbps < 1e-3);
}

TEST_CASE("counters as a file: parallel cables share one, mistakes are named") {
  const Wan wan{.sites = {"a", "b"}, .cables = {{0, 1, 10, {}}, {0, 1, 10, {}}}};
  const auto read = [&](const char* rows) {
    return read_counters(std::string("src,dst,rate\n") + rows, "c.csv", wan);
  };
  const auto two = read("a,b,3 Gbps\n").value();
  REQUIRE(two.size() == 2);
  CHECK(two[1].gbps == 1.5);
  CHECK(read("a,b,3 Gbps\na,b,3 Gbps\n").error().where.text() == "c.csv:3:1");
  CHECK(read("a,x,3 Gbps\n").error().text().contains("c.csv:2:3"));
  CHECK_FALSE(read("").has_value());
}

TEST_CASE("measured matrices: counters met within 1 %, and how far pairs are off") {
  const std::string folder = WEFT_WAN_DATA;
  if (folder.empty()) return skip_test("no data; configure with -DWEFT_WAN_DATA=FOLDER");
  const Wan wan = load_wan(folder + "/abilene_links.csv").value().wan;
  const auto text = read_text(folder + "/abilene_tm_5min_20040301-07.csv.gz").value();
  const Series series = read_series(text, "tm", wan).value();
  double worst = 0, before = 0, off = 0, prior_off = 0, all = 0;
  for (std::size_t i = 0; i < series.times.size(); i += 144) {
    const auto truth = demands_at(series, series.times[i]).value();
    const PathSet paths = find_paths(wan, truth, 1);
    const auto prior = gravity_of(wan, truth);
    const CounterFit fit = fit_demands(wan, prior, paths, counters_of(wan, truth, paths));
    worst = std::max(worst, fit.worst);
    before = std::max(before, fit.worst_before);
    for (std::size_t d = 0; d < truth.size(); ++d) {
      off += std::abs(fit.demands[d].gbps - truth[d].gbps);
      prior_off += std::abs(prior[d].gbps - truth[d].gbps);
      all += truth[d].gbps;
    }
  }
  MESSAGE("worst counter off by " << 100 * worst << " %, " << 100 * before
                                  << " % before; pairs off by " << 100 * off / all << " %, "
                                  << 100 * prior_off / all << " % before");
  CHECK(worst <= 0.01);
  CHECK(off < prior_off);
}

}  // namespace weft::plan::backbone
