#include "plan/edge/edge.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <list>
#include <numeric>
#include <span>
#include <unordered_map>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "base/test_folder.hpp"
#include "base/test_skip.hpp"
#include "plan/edge/measure.hpp"
#include "plan/edge/program.hpp"
#include "saddle/test_clp.hpp"

namespace weft::plan::edge {
namespace {

struct Drawn {
  std::uint32_t areas, metros, centres, services;
  double slack = 1.5;  // supply over demand
};

// Every service can reach every site; classes cut some ways off.
Problem draw_problem(const Drawn& drawn, std::uint64_t seed) {
  Rng rng(seed);
  const auto number = [&](double from, double to) { return from + (to - from) * rng.uniform(); };
  Problem out;
  double gpus = 0, bits = 0;
  for (std::uint32_t s = 0; s < drawn.services; ++s) {
    Service service{.name = fmt::format("s{}", s), .within_s = number(0.05, 0.12)};
    service.response_bytes = number(1e4, 1e6);
    service.gpu_s = s % 3 == 2 ? 0 : number(0.05, 2);
    if (s % 2 == 0)
      service.content = {.share = number(0.3, 1),
                         .objects = 1000 + rng.below(100'000),
                         .object_bytes = service.response_bytes,
                         .zipf = number(0.5, 1.2)};
    out.services.push_back(service);
  }
  for (std::uint32_t a = 0; a < drawn.areas; ++a) {
    Area area{.name = fmt::format("a{}", a)};
    for (const Service& service : out.services) {
      area.requests.push_back(rng.below(5) == 0 ? 0 : number(10, 1000));
      gpus += area.requests.back() * service.gpu_s;
      bits += area.requests.back() * service.response_bytes * 8;
    }
    out.areas.push_back(std::move(area));
  }
  const auto sites = static_cast<double>(drawn.metros + drawn.centres);
  for (std::uint32_t m = 0; m < drawn.metros; ++m)
    out.metros.push_back({.name = fmt::format("m{}", m),
                          .gpus = gpus / sites * drawn.slack * number(0.7, 1.3),
                          .gpu_price = number(2, 6),
                          .cache_bytes = number(0, 1e10),
                          .cache_price = number(0, 1),
                          .uplink_bps = bits / drawn.metros * drawn.slack * number(0.7, 1.3),
                          .uplink_price = number(0, 0.05)});
  for (std::uint32_t d = 0; d < drawn.centres; ++d)
    out.data_centres.push_back({.name = fmt::format("d{}", d),
                                .gpus = gpus / sites * drawn.slack * number(0.7, 1.3),
                                .gpu_price = number(1, 3)});
  for (std::uint32_t i = 0; i < drawn.areas * drawn.metros; ++i)
    out.to_metro.push_back(number(0.001, 0.05));
  for (std::uint32_t i = 0; i < drawn.metros * drawn.centres; ++i)
    out.to_centre.push_back(number(0.005, 0.06));
  out.direct.assign(out.areas.size() * drawn.centres, 0.05);
  return out;
}

// The same problem by another hand: straight from the definitions, as rows of an MPS file. Every
// request must be served, so there is no penalty.
std::string mps_of(const Problem& p, const std::vector<double>& hit) {
  std::string rows = "NAME t\nROWS\n N cost\n", columns = "COLUMNS\n", rhs = "RHS\n";
  const auto row = [&](char kind, const std::string& name, double value) {
    rows += fmt::format(" {} {}\n", kind, name);
    rhs += fmt::format(" b {} {:.17g}\n", name, value);
  };
  for (std::size_t m = 0; m < p.metros.size(); ++m) {
    row('L', fmt::format("gm{}", m), p.use_max * p.metros[m].gpus);
    row('L', fmt::format("up{}", m), p.use_max * p.metros[m].uplink_bps / 1e6);
  }
  for (std::size_t d = 0; d < p.data_centres.size(); ++d)
    row('L', fmt::format("gd{}", d), p.use_max * p.data_centres[d].gpus);
  std::size_t count = 0;
  for (std::size_t a = 0; a < p.areas.size(); ++a)
    for (std::size_t s = 0; s < p.services.size(); ++s) {
      const Service& service = p.services[s];
      const double asked = p.areas[a].requests[s];
      if (asked == 0) continue;
      row('E', fmt::format("d{}s{}", a, s), asked);  // columns are requests per second
      for (std::size_t m = 0; m < p.metros.size(); ++m) {
        const double miss = 1 - service.content.share * hit[m * p.services.size() + s];
        const double near = p.to_metro[a * p.metros.size() + m];
        const auto column = [&](double hourly, const std::string& loads) {
          columns += fmt::format(" x{0} cost {1:.17g}\n x{0} d{2}s{3} 1\n", count, hourly, a, s);
          columns += fmt::format(fmt::runtime(loads), fmt::arg("x", fmt::format("x{}", count)));
          ++count;
        };
        if (service.gpu_s > 0 && near <= service.within_s)
          column(miss * service.gpu_s * p.metros[m].gpu_price + 3.6 * near * p.delay_price,
                 fmt::format(" {{x}} gm{} {:.17g}\n", m, miss * service.gpu_s));
        for (std::size_t d = 0; d < p.data_centres.size(); ++d) {
          const double far = p.to_centre[m * p.data_centres.size() + d];
          if (near + far > service.within_s) continue;
          const double gigabytes = miss * service.response_bytes * 3600e-9;
          column(miss * service.gpu_s * p.data_centres[d].gpu_price +
                     gigabytes * p.metros[m].uplink_price +
                     3.6 * (near + miss * far) * p.delay_price,
                 fmt::format(" {{x}} gd{} {:.17g}\n {{x}} up{} {:.17g}\n", d, miss * service.gpu_s,
                             m, miss * service.response_bytes * 8e-6));
        }
      }
    }
  return rows + columns + rhs + "ENDATA\n";
}

// Requests that a list of the least recently used objects answers, after as many to fill it.
double simulated_hits(std::uint64_t objects, double zipf, std::size_t cached, std::uint64_t seed) {
  std::vector<double> below(objects);
  double sum = 0;
  for (std::uint64_t i = 0; i < objects; ++i)
    below[i] = sum += 1 / std::pow(static_cast<double>(i + 1), zipf);
  Rng rng(seed);
  std::list<std::uint64_t> recent;
  std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> where;
  constexpr int requests = 100'000;
  int hits = 0;
  for (int i = 0; i < 2 * requests; ++i) {
    const auto object = static_cast<std::uint64_t>(
        std::ranges::lower_bound(below, rng.uniform() * sum) - below.begin());
    if (const auto it = where.find(object); it != where.end()) {
      hits += i >= requests;
      recent.splice(recent.begin(), recent, it->second);
      continue;
    }
    recent.push_front(object);
    where[object] = recent.begin();
    if (recent.size() <= cached) continue;
    where.erase(recent.back());
    recent.pop_back();
  }
  return static_cast<double>(hits) / requests;
}

}  // namespace

TEST_CASE("random problems: plans add up, and their prices prove the bound") {
  int split = 0;
  for (std::uint64_t seed = 1; seed <= test_effort(24); ++seed) {
    CAPTURE(seed);
    const Problem problem = draw_problem({6, 4, 2, 4}, seed);
    const Plan plan = plan_edge(problem);
    CHECK(check_plan(problem, plan) == "");
    CHECK(plan.unserved.empty());
    CHECK(plan.bound <= plan.cost * (1 + 1e-9));
    CHECK(plan.gap <= 1e-4);
    CHECK(bound_at(problem, plan.caches, {}, plan.prices) >= plan.bound * (1 - 1e-9));
    CHECK(bound_at(problem, plan.caches, {}, plan.prices) <= plan.cost * (1 + 1e-9));
    // Any prices are a bound, if a worse one.
    CHECK(bound_at(problem, plan.caches, {}, std::vector<double>(plan.prices.size(), 0.0)) <=
          plan.cost * (1 + 1e-9));
    REQUIRE(plan.bound_any);
    CHECK(*plan.bound_any <= plan.bound);
    // Even splits cost no less, but for what the rounds stop at.
    Caches even = plan.caches;
    for (std::size_t m = 0; m < problem.metros.size(); ++m)
      for (std::size_t s = 0; s < problem.services.size(); ++s) {
        const Content& content = problem.services[s].content;
        if (content.share <= 0) continue;
        even.bytes[problem.at(m, s)] = problem.metros[m].cache_bytes / 2;
        even.hit[problem.at(m, s)] =
            Popularity(content.objects, content.zipf)
                .hit_rate(even.bytes[problem.at(m, s)] / content.object_bytes);
      }
    const Plan other = plan_edge(problem, {.caches = even});
    CHECK(plan.cost <= other.cost * (1 + 1.1e-3));
    split += plan.cost < other.cost * (1 - 1e-3);
    CHECK(*plan.bound_any <= other.cost);
    CHECK(plan_edge(problem).prices == plan.prices);
  }
  CHECK(split > 0);
}

TEST_CASE("CLP finds the same cost, from a model of its own" * doctest::test_suite("needs clp")) {
  if (!saddle::has_clp()) return skip_test("no clp; install the Debian package coinor-clp");
  const TestFolder folder;
  for (std::uint64_t seed = 1; seed <= test_effort(24); ++seed) {
    CAPTURE(seed);
    Problem problem = draw_problem({8, 4, 2, 3, seed % 2 == 0 ? 1.05 : 1.5}, seed);
    problem.use_max = seed % 3 == 0 ? 0.97 : 1;
    const Caches caches = whole_caches(problem);
    const Plan plan = plan_edge(problem, {.caches = caches});
    const auto optimum = saddle::clp_optimum(mps_of(problem, caches.hit), folder);
    CHECK(plan.unserved.empty() == optimum.has_value());
    if (!optimum) continue;
    CHECK(plan.bound <= *optimum * (1 + 1e-6));
    CHECK(plan.cost >= *optimum * (1 - 1e-6));
    CHECK(plan.cost <= *optimum * (1 + 1.1e-4));
  }
}

TEST_CASE("small problems: no plan in twelfths is cheaper, and one comes near") {
  for (std::uint64_t seed = 1; seed <= test_effort(8); ++seed) {
    CAPTURE(seed);
    Problem problem = draw_problem({2, 2, 1, 1, 1.3}, seed);
    problem.areas[0].requests[0] = 100;
    problem.areas[1].requests[0] = 150;
    problem.services[0].within_s = 1;
    const Plan plan = plan_edge(problem);
    if (!plan.unserved.empty()) continue;
    std::vector<Way> ways;
    for (const std::uint32_t a : {0U, 1U})
      for (const std::uint32_t m : {0U, 1U})
        for (const std::uint32_t c : {0U, at_metro}) ways.push_back({a, 0, m, c, 0});
    constexpr int parts = 12;
    double best = 1e300;
    // All divisions of both areas over their four ways.
    std::vector<std::array<int, 4>> divisions;
    for (int i = 0; i <= parts; ++i)
      for (int j = 0; i + j <= parts; ++j)
        for (int k = 0; i + j + k <= parts; ++k) divisions.push_back({i, j, k, parts - i - j - k});
    std::array<Use, 8> use;
    for (std::size_t w = 0; w < 8; ++w) use[w] = use_of(problem, plan.caches, ways[w]);
    for (const auto& first : divisions)
      for (const auto& second : divisions) {
        double cost = 0, gpus[3] = {}, uplink[2] = {};
        for (std::size_t w = 0; w < 8; ++w) {
          const double share = (w < 4 ? first[w] : second[w - 4]) / double(parts);
          cost += share * use[w].cost();
          gpus[ways[w].centre == at_metro ? ways[w].metro : 2] += share * use[w].gpus;
          uplink[ways[w].metro] += share * use[w].uplink_bps;
        }
        bool fits = gpus[2] <= problem.data_centres[0].gpus;
        for (std::size_t m = 0; m < 2; ++m)
          fits &= gpus[m] <= problem.metros[m].gpus && uplink[m] <= problem.metros[m].uplink_bps;
        if (fits) best = std::min(best, cost);
      }
    CHECK(plan.cost <= best * (1 + 1e-4));
    CHECK(plan.bound <= best);
    CHECK(plan.cost >= best * 0.9);
  }
}

TEST_CASE("hit rates: closed form for equal popularity, a simulated LRU list, an exact sum") {
  const Popularity equal(1000, 0);
  for (const double cached : {1.0, 100.0, 500.0, 990.0})
    CHECK(equal.hit_rate(cached) == approx(cached / 1000).epsilon(1e-6));
  CHECK(equal.hit_rate(0) == 0);
  CHECK(equal.hit_rate(2000) == 1);
  std::uint64_t seed = 1;
  constexpr std::array exponents{0.9, 0.0, 0.6, 1.3};
  for (const double zipf : std::span(exponents).first(test_effort(exponents.size())))
    for (const std::size_t cached : {20U, 200U, 1000U}) {
      CAPTURE(zipf);
      CAPTURE(cached);
      const double hits = simulated_hits(5000, zipf, cached, seed++);
      CHECK(std::abs(Popularity(5000, zipf).hit_rate(static_cast<double>(cached)) - hits) < 0.01);
    }
  // A catalogue that is grouped, against Che's equations with each rank alone.
  for (const double zipf : {0.7, 1.0, 1.2}) {
    constexpr int objects = 50'000;
    std::vector<double> p;
    for (int i = 1; i <= objects; ++i) p.push_back(std::pow(i, -zipf));
    const double sum = std::accumulate(p.begin(), p.end(), 0.0);
    const double time = 20'000;
    double cached = 0, hit = 0;
    for (const double each : p) {
      cached += 1 - std::exp(-each / sum * time);
      hit += each / sum * (1 - std::exp(-each / sum * time));
    }
    CHECK(Popularity(objects, zipf).hit_rate(cached) == approx(hit).epsilon(1e-4));
  }
}

TEST_CASE("caches go to where the next byte saves most") {
  Problem problem = draw_problem({1, 1, 1, 1}, 1);
  problem.services.assign(3, problem.services[0]);
  problem.services[1].content.zipf = 0;  // equal: worth the same per object
  problem.services[2].content.share = 0;
  problem.areas[0].requests.assign(3, 100);
  problem.metros[0].cache_bytes = 500 * problem.services[0].content.object_bytes;
  for (Service& service : problem.services) service.content.objects = 2000;
  const double object = problem.services[0].content.object_bytes;
  const Caches split = split_caches(problem, {3.0, 2.0, 0.0});
  CHECK(split.bytes[2] == 0);
  CHECK(split.bytes[0] + split.bytes[1] == approx(500 * object).epsilon(1e-6));
  const auto saved = [&](double first) {
    const Content& a = problem.services[0].content;
    return 3 * Popularity(2000, a.zipf).hit_rate(first) +
           2 * Popularity(2000, 0).hit_rate(500 - first);
  };
  double best = 0;
  for (int first = 0; first <= 500; first += 5) best = std::max(best, saved(first));
  CHECK(saved(split.bytes[0] / object) >= best * (1 - 1e-4));
}

namespace {

constexpr const char* small_yaml = R"(detour: 1.5
delay_price: 0
services: [{name: chat, within: 30 ms, response: 1 MB, gpu_time: 100 ms}]
areas: [{name: a, at: [50, 8], requests: {chat: 100}}, {name: b, at: [48, 2], requests: {chat: 50}}]
metros:
  - {name: m, at: [50, 8], gpus: 8, gpu_price: 3, uplink: 1 Gbps}
  - {name: n, at: [48, 2], gpus: 4, gpu_price: 5, uplink: 1 Gbps}
data_centres: [{name: d, at: [52, 5], gpus: 100, gpu_price: 2}]
)";

Problem small_problem() {
  auto problem = read_problem(small_yaml, "t.yaml");
  REQUIRE(problem);
  return *std::move(problem);
}

std::string error_of(const std::string& text) {
  const auto problem = read_problem(text, "t.yaml");
  return problem ? "" : problem.error().text();
}
std::string error_of(const std::string& from, const std::string& to) {
  std::string text = small_yaml;
  REQUIRE(text.find(from) != std::string::npos);
  return error_of(text.replace(text.find(from), from.size(), to));
}
bool contains(const std::string& text, std::string_view piece) {
  return text.find(piece) != std::string::npos;
}

}  // namespace

TEST_CASE("a plan by hand: uplinks carry the cheap part, GPUs of metros the rest") {
  const Problem problem = small_problem();
  const Plan plan = plan_edge(problem);
  CHECK(check_plan(problem, plan) == "");
  // Each uplink holds 125 of 1 MB a second: b's 50 go to the data centre, and so do 100 of a.
  CHECK(plan.cost == approx(15 * 2).epsilon(1e-4));
  CHECK(!plan.bound_any);
  // 0.3 Gbit/s: 37.5 requests/s each; the others of a at m (3), of b at m or n.
  Problem narrow = problem;
  for (Metro& metro : narrow.metros) metro.uplink_bps = 3e8;
  const Plan after = plan_edge(narrow);
  CHECK(check_plan(narrow, after) == "");
  // 7.5 GPUs at d; 7.5 at m, which has 8.
  CHECK(after.cost == approx(7.5 * 2 + 7.5 * 3).epsilon(2e-4));
  // One more Gbit/s: 125 requests/s, 12.5 GPUs, each 1 cheaper.
  CHECK(after.uplink_worth[0] == approx(12.5).epsilon(1e-2));
  CHECK(after.gpu_worth[0] == approx(0).epsilon(1e-2));
}

TEST_CASE("what finds no room is not served, and that is proven") {
  Problem problem = small_problem();
  for (Metro& metro : problem.metros) metro.uplink_bps = 1e8;  // 12.5 requests/s each
  // 120 at metros and 25 behind them: 5 of 150 are left.
  const Plan plan = plan_edge(problem);
  CHECK(check_plan(problem, plan) == "");
  double left = 0;
  for (const Unserved& one : plan.unserved)
    left += one.share * problem.areas[one.area].requests[one.service];
  CHECK(left == approx(5).epsilon(1e-2));
  CHECK(plan.unserved_least == approx(5).epsilon(1e-2));
  REQUIRE(!plan.unserved.empty());
  CHECK(full_sites(problem, plan, plan.unserved[0], {}) ==
        std::vector<std::string>{"GPUs of m", "GPUs of n", "uplink of m", "uplink of n"});
  CHECK(contains(to_table(problem, plan, nullptr, 20), "NOT SERVED: 5 requests/s"));
}

TEST_CASE("a metro that fails: its users go elsewhere, or are not served") {
  const Problem problem = small_problem();
  const Plan plan = plan_edge(problem);
  const Failure failure = without_metro(problem, plan, 0, {});
  CHECK(check_plan(problem, failure.plan) == "");
  CHECK(failure.plan.unserved.empty());  // 125 by n's uplink, 25 at n
  CHECK(failure.plan.cost == approx(12.5 * 2 + 2.5 * 5).epsilon(2e-4));
  REQUIRE(!failure.moves.empty());
  for (const Way& way : failure.plan.ways) CHECK(way.metro == 1);
  const Move& move = failure.moves[0];
  REQUIRE(move.to.size() == 1);
  CHECK(move.to[0].first == 1);
  CHECK(move.to[0].second == approx(1).epsilon(1e-6));
  CHECK(move.rtt_s > move.rtt_before_s - 1e-9);
  const auto map = to_svg(problem, plan, &failure);
  REQUIRE(map);
  CHECK(contains(*map, ">m (down)</text>"));
  CHECK(contains(*map, "a to n: 100 requests/s"));
  CHECK(!contains(*map, "a to m:"));
  CHECK(!to_svg(draw_problem({2, 2, 1, 1}, 1), plan, nullptr));
}

TEST_CASE("round trips, simpler plans and what pays, by hand") {
  Problem problem = small_problem();
  // Frankfurt's and Paris' latitudes or so: 2 degrees north and 6 west, 491 km by the cosine rule.
  const double radian = 3.14159265358979 / 180;
  const double angle =
      std::acos(std::sin(50 * radian) * std::sin(48 * radian) +
                std::cos(50 * radian) * std::cos(48 * radian) * std::cos(6 * radian));
  CHECK(problem.rtt(0, 1) == approx(2 * 1.5 * 6371 * angle / 199'861.639).epsilon(1e-6));
  CHECK(problem.rtt(0, 0) == 0);
  const Plan plan = plan_edge(problem);
  const Outcome nearest = outcome_of(problem, plan, Rule::nearest);
  CHECK(nearest.cost == approx(10 * 3 + 5 * 5));
  CHECK(nearest.fullest == approx(1.25));  // 10 GPUs of 8, 5 of 4
  CHECK(nearest.services[0].median_s == 0);
  const Outcome centre = outcome_of(problem, plan, Rule::data_centre);
  CHECK(centre.cost == approx(30));
  CHECK(centre.services[0].median_s ==
        approx(std::min(problem.rtt_direct(0, 0), problem.rtt_direct(1, 0))));
  CHECK(centre.services[0].p95_s ==
        approx(std::max(problem.rtt_direct(0, 0), problem.rtt_direct(1, 0))));
  problem.services[0].content = {.share = 1, .objects = 1000, .object_bytes = 1e6, .zipf = 0};
  for (Metro& metro : problem.metros) {
    metro.cache_bytes = 5e8;
    metro.cache_price = 100;
    metro.uplink_price = 0.01;
  }
  const Plan cached = plan_edge(problem);
  CHECK(check_plan(problem, cached) == "");
  const std::vector<Choice> choices = choices_of(problem, cached);
  REQUIRE(!choices.empty());
  const Choice& one = choices[0];
  CHECK(one.hit == approx(0.5).epsilon(1e-6));
  CHECK(one.saved_gpus == approx(one.requests * 0.5 * 0.1));
  CHECK(one.saved_bps == approx(one.requests * 0.5 * 8e6));
  CHECK(*one.metro_cost == approx(1e5 / 3600 * 3));
  CHECK(*one.centre_cost == approx(1e5 / 3600 * 2 + 1e6 * 1e-3 * 0.01));
  // Half a GB at 100 per TB and hour answers half of the requests.
  CHECK(*one.cache_cost == approx(0.05 / (one.requests * 0.5 * 3600 / 1e6)));
  // At its even price the cache costs what the data centre does; the GPU at the metro likewise.
  const double others = std::min(*one.metro_cost, *one.centre_cost);
  CHECK(*one.cache_cost * *one.cache_even / 100 == approx(others));
  CHECK(*one.metro_cost * *one.gpu_even / 3 == approx(*one.centre_cost));
}

TEST_CASE("problem files: what is wrong is told with its place") {
  CHECK(error_of(small_yaml) == "");
  CHECK(contains(error_of("within: 30 ms", "within: 0 ms"), "no time to answer in"));
  CHECK(contains(error_of("name: n,", "name: m,"), "are named \"m\""));
  CHECK(contains(error_of("at: [52, 5], ", ""), "no round trip between"));
  CHECK(contains(error_of("at: [52, 5]", "at: [95, 5]"), "no latitude and longitude"));
  CHECK(contains(error_of("chat: 100", "chat: 100, talk: 1"), "talk"));
  CHECK(contains(error_of("gpus: 4, gpu_price: 5", "gpus: 4"), "gpu_price"));
  CHECK(contains(error_of("gpu_time: 100 ms", "gpu_time: 100 ms, cacheable: 0.5"), "objects"));
  // Where only far sites have GPUs: the nearest is named.
  std::string far =
      error_of("{name: m, at: [50, 8], gpus: 8, gpu_price: 3", "{name: m, at: [50, 8], gpus: 0");
  CHECK(far == "");
  far = error_of("at: [50, 8], requests", "at: [-35, 140], requests");
  CHECK(contains(far, "t.yaml:4:9: area \"a\" cannot be served \"chat\" within 30 ms"));
  CHECK(contains(far, "the nearest that can answer, \"m\", is"));
}

TEST_CASE("measured round trips, either way, over places") {
  const TestFolder folder;
  const std::string yaml = std::string("rtt: rtt.csv\n") + small_yaml;
  const auto read = [&](const std::string& csv) {
    folder.write("rtt.csv", csv);
    return read_problem(yaml, folder.file("t.yaml"));
  };
  const auto problem = read("from,to,rtt\na,m,7 ms\nd,m,9 ms\nb,d,11 ms\n");
  REQUIRE(problem);
  CHECK(problem->rtt(0, 0) == 0.007);
  CHECK(problem->rtt_on(0, 0) == 0.009);
  CHECK(problem->rtt_direct(1, 0) == 0.011);
  CHECK(problem->measured == 2);
  CHECK(contains(read("from,to,rtt\na,m,7 ms\nm,a,8 ms\n").error().text(), "a second round trip"));
  CHECK(contains(read("from,to,rtt\na,b,7 ms\n").error().text(), "two of a kind"));
  CHECK(contains(read("from,to,rtt\na,q,7 ms\n").error().text(), "there is no \"q\""));
  CHECK(contains(read("from,to,rtt\na,m,7\n").error().text(), "7"));
}

}  // namespace weft::plan::edge
