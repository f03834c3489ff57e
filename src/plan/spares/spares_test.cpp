#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <span>

#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "model/formats/test_fabric.hpp"
#include "plan/spares/hosts_out.hpp"
#include "plan/spares/plan.hpp"

namespace weft::plan::spares {
namespace {

// 4 zones of 24 racks of 2 hosts.
const model::Fabric& zones_of_48() {
  static const model::Fabric fabric = model::testing::make_fabric(
      "{generator: three_tier, pods: 4, racks: 24, hosts_per_rack: 2, gpus_per_host: 1, "
      "oversubscription: 1}");
  return fabric;
}

Outages outages_of(const std::string& section, const model::Fabric& fabric = zones_of_48()) {
  Errors errors;
  Outages out = read_outages(fabric, *parse_yaml(section, "test.yaml"), errors);
  REQUIRE_MESSAGE(errors.empty(), (errors.empty() ? "" : errors[0].text()));
  return out;
}

// P(n > s) of a Poisson variable, term by term.
double poisson_above(double mean, std::uint32_t s) {
  double sum = 0;
  for (std::uint32_t k = s + 1; k < s + 5000; ++k)
    sum += std::exp(k * std::log(mean) - mean - std::lgamma(k + 1.0));
  return sum;
}

TEST_CASE("single hosts: the number out is a Poisson variable") {
  for (const double mean : {0.3, 9.0, 380.0, 2000.0}) {
    CAPTURE(mean);
    const HostsOut out(std::array{Batch{mean / 24, 24, 1}}, 6000);
    CHECK(out.mean() == approx(mean));
    for (const std::uint32_t s : {0u, static_cast<std::uint32_t>(mean),
                                  static_cast<std::uint32_t>(mean + 3 * std::sqrt(mean))}) {
      CHECK(out.above(s) == approx(poisson_above(mean, s)).epsilon(1e-9));
      // Up-crossings of a Poisson level: failures that find exactly s out.
      const double exactly_s = std::exp(s * std::log(mean) - mean - std::lgamma(s + 1.0));
      CHECK(out.crossings_per_hour(s) ==
            approx(mean / 24 * exactly_s).epsilon(1e-6).scale(mean * 1e-7));
    }
  }
  // More than there are: what is cut off counts as all of them.
  CHECK(HostsOut(std::array{Batch{1000, 24, 1}}, 100).above(99) == approx(1));
}

TEST_CASE("events of several sizes: the sum of independent Poisson variables, by convolution") {
  const std::array batches{Batch{0.3, 10, 1}, Batch{0.02, 50, 3}, Batch{0.001, 200, 17}};
  constexpr std::size_t size = 200;
  std::vector<double> p(size, 0);
  p[0] = 1;
  for (const Batch& batch : batches) {
    std::vector<double> sum(size, 0);
    const double mean = batch.per_hour * batch.repair_h;
    for (std::size_t events = 0; events * batch.hosts < size; ++events) {
      const auto k = static_cast<double>(events);
      const double share = std::exp(k * std::log(mean) - mean - std::lgamma(k + 1));
      for (std::size_t at = events * batch.hosts; at < size; ++at)
        sum[at] += share * p[at - events * batch.hosts];
    }
    p = sum;
  }
  const HostsOut out(batches, size - 1);
  double above = 1;
  for (std::uint32_t s = 0; s < 100; ++s) {
    above -= p[s];
    CHECK(out.above(s) == approx(above).epsilon(1e-9));
  }
  CHECK(mean_above(out.tail(), 0) == approx(out.mean()).epsilon(1e-9));
}

constexpr const char* three_kinds =
    "{events: [{name: host, unit: host, per_year: 3, repair: 24 h, shape: SHAPE}, "
    "{name: rack, unit: rack, per_year: 0.1, repair: 10 h, shape: SHAPE}, "
    "{name: power, hosts: 16, per_year: 0.05, repair: 8 h, shape: SHAPE}]}";

std::string with(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what))
    text.replace(at, what.size(), by);
  return text;
}

TEST_CASE("simulated without crews and lemons: the closed form, whatever the repair's shape") {
  for (const char* shape : {"constant", "exponential", "lognormal"}) {
    CAPTURE(std::string(shape));
    const Outages outages = outages_of(with(three_kinds, "SHAPE", shape));
    const SparePlan plan = plan_spares(outages, simulate(outages, {.years = 4000, .threads = 4}));
    // 1 % of the hosts are out, which do not fail meanwhile.
    CHECK(plan.simulated->mean == approx(plan.out).epsilon(0.015));
    for (const Level& level : plan.levels) {
      CAPTURE(level.target);
      CHECK(std::abs(static_cast<int>(*level.simulated) - static_cast<int>(level.spares)) <= 1);
      // At a level of many out, fewer are left to fail: a third at 19 of 192, of which 16 by one
      // cause.
      const double ratio =
          plan.simulated->crossings_per_year[level.spares] / level.shortages_per_year;
      CHECK(ratio < 1.02);
      CHECK(ratio > (level.spares < 10 ? 0.92 : 0.65));
    }
  }
}

TEST_CASE("crews: machines and repairmen, solved as a birth and death process") {
  const std::uint32_t hosts = 192;
  constexpr std::array<std::uint32_t, 3> sizes{6, 4, 20};
  for (const std::uint32_t crews : std::span(sizes).first(test_effort(sizes.size()))) {
    CAPTURE(crews);
    const Outages outages = outages_of(
        "{crews: " + std::to_string(crews) +
        ", events: [{name: host, unit: host, per_year: 7, repair: 24 h, shape: exponential}]}");
    const Simulated simulated = simulate(outages, {.years = 10'000, .threads = 4});
    std::vector<double> p{1};
    const double fail = 7 / hours_per_year, repair = 1.0 / 24;
    for (std::uint32_t k = 1; k <= hosts; ++k)
      p.push_back(p.back() * (hosts - k + 1) * fail / (std::min(k, crews) * repair));
    const double total = std::accumulate(p.begin(), p.end(), 0.0);
    double mean = 0, waiting = 0, below = 0;
    std::uint32_t quantile = 0;
    for (std::uint32_t k = 0; k <= hosts; ++k) {
      mean += k * p[k] / total;
      waiting += (k > crews ? k - crews : 0) * p[k] / total;
      if (below < 0.999) quantile = k;
      below += p[k] / total;
    }
    CHECK(simulated.mean == approx(mean).epsilon(0.01));
    CHECK(simulated.waiting == approx(waiting).epsilon(0.05).scale(0.1));
    CHECK(std::abs(static_cast<int>(enough_for(simulated.above, 0.999)) -
                   static_cast<int>(quantile)) <= 1);
  }
}

TEST_CASE("lemons: two kinds of hosts, each up and out in turn") {
  const Outages outages = outages_of(
      "{lemons: {share: 0.25, times: 9}, "
      "events: [{name: host, unit: host, per_year: 20, repair: 72 h, shape: constant}]}");
  const double per_hour = 20 / hours_per_year / (0.75 + 0.25 * 9);
  double mean = 0;
  for (const auto& [hosts, times] : {std::pair{144.0, 1.0}, std::pair{48.0, 9.0}})
    mean += hosts * per_hour * times * 72 / (1 + per_hour * times * 72);
  CHECK(simulate(outages, {.years = 1000, .threads = 4}).mean == approx(mean).epsilon(0.01));
}

TEST_CASE("the pool stands where it serves most: no other spread leaves fewer hosts short") {
  const Outages outages = outages_of(
      "{target: 0.99, events: [{name: host, unit: host, per_year: 20, repair: 24 h}, "
      "{name: power, hosts: 16, per_year: 2, repair: 8 h}]}");
  const SparePlan plan = plan_spares(outages, {});
  REQUIRE(plan.zones.size() == 4);
  const HostsOut zone(
      std::array{Batch{20 * 48 / hours_per_year, 24, 1}, Batch{2 * 3 / hours_per_year, 8, 16}}, 48);
  double best = 1e9;
  const std::uint32_t n = plan.spares;
  for (std::uint32_t a = 0; a <= n; ++a)
    for (std::uint32_t b = 0; a + b <= n; ++b)
      for (std::uint32_t c = 0; a + b + c <= n; ++c)
        best =
            std::min(best, mean_above(zone.tail(), a) + mean_above(zone.tail(), b) +
                               mean_above(zone.tail(), c) + mean_above(zone.tail(), n - a - b - c));
  CHECK(plan.foreign == approx(best).epsilon(1e-9));
  std::uint32_t sum = 0;
  for (const ZonePlan& z : plan.zones) sum += z.spares;
  CHECK(sum == n);
  CHECK(plan.foreign_in_one_zone > plan.foreign);
}

TEST_CASE("an event that the target leaves no time for is named") {
  // 12 x 0.3 x 8 h a year are 0.3 % of the time.
  const Outages outages =
      outages_of(with(with(three_kinds, "SHAPE", "constant"), "per_year: 0.05", "per_year: 0.3"));
  const std::string table = to_table(plan_spares(outages, {}));
  CHECK(table.find("power takes 16 hosts") != std::string::npos);
  CHECK(table.find("rack takes") == std::string::npos);
}

TEST_CASE("the same seed gives the same bytes on any number of threads") {
  const Outages outages = outages_of(with(three_kinds, "SHAPE", "lognormal"));
  const auto json = [&](std::uint32_t threads, std::uint64_t seed) {
    return to_json(
        plan_spares(outages, simulate(outages, {.years = 300, .seed = seed, .threads = threads})));
  };
  CHECK(json(1, 1) == json(3, 1));
  CHECK(json(1, 1) != json(1, 2));
}

TEST_CASE("wrong sections say all that is wrong") {
  const auto errors_of = [](const std::string& section) {
    Errors errors;
    read_outages(zones_of_48(), *parse_yaml(section, "test.yaml"), errors);
    return errors.size();
  };
  CHECK(errors_of("{}") == 1);
  CHECK(errors_of("{target: 1.5, events: [{name: a, unit: shelf, per_year: -1, repair: 4}]}") == 4);
  CHECK(errors_of("{events: [{name: a, per_year: 1, repair: 4 h}]}") == 1);
  CHECK(errors_of("{events: [{name: a, unit: host, hosts: 3, per_year: 1, repair: 4 h}]}") == 1);
  CHECK(errors_of("{events: [{name: a, hosts: 500, per_year: 1, repair: 4 h}]}") == 1);
  CHECK(errors_of("{lemon: {share: 0.1}, events: [{name: a, unit: host, per_year: 1, repair: 4 h}, "
                  "{name: a, unit: host, per_year: 1, repair: 4 h}]}") == 2);
}

}  // namespace
}  // namespace weft::plan::spares
