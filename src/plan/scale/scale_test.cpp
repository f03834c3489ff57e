// Against closed forms, an oracle, demand that is not to be known yet, and a public series.
#include "plan/scale/scale.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numbers>

#include "base/file.hpp"
#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "base/test_skip.hpp"
#include "plan/scale/live.hpp"
#include "plan/scale/predictor.hpp"

namespace weft::plan::scale {
namespace {

constexpr std::size_t day = 1'440;

Demand minutes(std::vector<double> values) {
  Demand out{.values = std::move(values), .events = {}, .steps_a_day = day, .gaps = 0};
  out.events.resize(out.values.size());
  return out;
}

// Days and weeks with noise, and a surge each evening whose height is drawn anew.
Demand busy_weeks(std::size_t days, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<double> out;
  double surge = 0;
  for (std::size_t t = 0; t < days * day; ++t) {
    const double hour = static_cast<double>(t % day) / 60;
    if (t % day == 0) surge = 200 + 600 * rng.uniform();
    const double shape = 1 + 0.6 * std::sin((hour - 9) / 24 * 2 * std::numbers::pi);
    const double evening = std::exp(-std::pow((hour - 20) / 0.7, 2));
    out.push_back((700 * shape + surge * evening) * (0.97 + 0.06 * rng.uniform()));
  }
  return minutes(std::move(out));
}

Policy policy(std::string_view text) { return parse_policy({std::string(text), {}}).value(); }

TEST_CASE("constant demand: replicas by division, nothing violated, by every policy") {
  const Demand demand = minutes(std::vector<double>(10 * day, 1'000));
  const Service service{.capacity = 7};
  // 1000 / 7 / 0.9 = 158.7; the reactive one stays there: its target is within tolerance.
  for (const char* text : {"reactive:0.85", "predictive:0.99", "oracle"}) {
    const Outcome o = simulate(demand, 3 * day, service, policy(text));
    CHECK(o.violated == 0);
    CHECK(o.peak == 159);
    CHECK(o.replica_hours == approx(159 * 7 * 24));
  }
  // The hybrid's reactive part wants 1000 / 7 / 0.75.
  CHECK(simulate(demand, 3 * day, service, policy("hybrid:0.99")).peak == 191);
  // Half the utilisation: twice the replicas, from the start-up on and paid from the first minute.
  const Outcome half = simulate(demand, 3 * day, service, policy("reactive:0.5"));
  CHECK(half.peak == 286);
  CHECK(half.serving[14] == 159);
  CHECK(half.serving[15] == 286);
  CHECK(half.replica_hours == approx(286 * 7 * 24));
}

TEST_CASE("a step of demand: violated for as long as replicas need to start") {
  std::vector<double> values(4 * day, 100);
  for (std::size_t t = 3 * day; t < values.size(); ++t) values[t] = 1'000;
  const Demand demand = minutes(values);
  for (const std::size_t start_up : {1u, 5u, 15u, 40u}) {
    const Service service{.capacity = 10, .start_up = start_up};
    const Outcome o = simulate(demand, 2 * day, service, policy("reactive:0.6"));
    const double share = static_cast<double>(start_up) * 1'000 / (day * 100.0 + day * 1'000.0);
    CHECK(o.violated == approx(share));
    const Outcome known = simulate(demand, 2 * day, service, policy("oracle"));
    CHECK(known.violated == 0);
    // A budget that is too small is never exceeded, and violates all that follows.
    Service poor = service;
    poor.most = 50;
    const Outcome short_of = simulate(demand, 2 * day, poor, policy("reactive:0.6"));
    CHECK(short_of.peak == 50);
    CHECK(short_of.violated == approx(1'000.0 / 1'100));
  }
}

TEST_CASE("fewer replicas only where fewer were wanted all through the window") {
  std::vector<double> values(2 * day, 900);
  for (std::size_t t = day + 100; t < values.size(); ++t) values[t] = 90;
  Service service{.capacity = 10, .stabilisation = 5};
  const Outcome o = simulate(minutes(values), day, service, policy("reactive:0.9"));
  CHECK(o.asked[99] == 100);
  CHECK(o.asked[103] == 100);
  CHECK(o.asked[104] == 10);
}

TEST_CASE("nothing but the oracle knows what comes") {
  const Demand whole = busy_weeks(12, 4);
  Demand cut = whole;
  constexpr std::size_t known = 10 * day + 611;
  Rng rng(9);
  for (std::size_t t = known; t < cut.values.size(); ++t) cut.values[t] = 5'000 * rng.uniform();
  const Service service{.capacity = 10};
  for (const char* text : {"reactive:0.6", "predictive:0.99", "hybrid:0.98"}) {
    const Outcome a = simulate(whole, 7 * day, service, policy(text));
    const Outcome b = simulate(cut, 7 * day, service, policy(text));
    const auto same = [&](const auto& x, const auto& y) {
      return std::equal(x.begin(), x.begin() + (known - 7 * day), y.begin());
    };
    CHECK(same(a.asked, b.asked));
    CHECK(a.asked != b.asked);
  }
}

TEST_CASE("demand with a day and a week: prediction costs less at equal violations") {
  std::uint64_t won = 0;
  const std::uint64_t seeds = test_effort(5);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Demand demand = busy_weeks(21, seed);
    const Service service{.capacity = 10};
    std::vector<Policy> all = curve_of(PolicyKind::reactive);
    std::ranges::copy(curve_of(PolicyKind::predictive), std::back_inserter(all));
    all.push_back(policy("oracle"));
    const std::vector<Outcome> outcomes = simulate_all(demand, 8 * day, service, all, 2);
    for (const Outcome& o : outcomes)
      if (o.violated == 0) CHECK(o.replica_hours >= outcomes.back().replica_hours * 0.98);
    const double ratio = hours_at(outcomes, PolicyKind::predictive, 0.015) /
                         hours_at(outcomes, PolicyKind::reactive, 0.015);
    won += ratio < 0.95 ? 1 : 0;
  }
  CHECK(won == seeds);
}

TEST_CASE("events: what the last one of the name brought is expected of the next") {
  std::vector<double> values(20 * day, 1'000);
  std::vector<std::string> events(values.size());
  for (const std::size_t start : {9 * day + 300, 13 * day + 900, 17 * day + 100})
    for (std::size_t t = start; t < start + 120; ++t) {
      values[t] = 3'000;
      events[t] = "match";
    }
  Demand demand = minutes(values);
  const Service service{.capacity = 10};
  const Outcome blind = simulate(demand, 16 * day, service, policy("predictive:0.99"));
  demand.events = events;
  const Outcome told = simulate(demand, 16 * day, service, policy("predictive:0.99"));
  CHECK(told.violated < blind.violated);
}

TEST_CASE("curves: between neighbours, outside nothing, and dearer settings left out") {
  const auto outcome = [](double violated, double hours) {
    return Outcome{.policy = {}, .violated = violated, .replica_hours = hours};
  };
  const std::vector<Outcome> curve{outcome(0.001, 100), outcome(0.1, 50), outcome(0.05, 200)};
  CHECK(hours_at(curve, PolicyKind::reactive, 0.01) == approx(75));
  CHECK(hours_at(curve, PolicyKind::reactive, 0.1) == 50);
  CHECK(std::isnan(hours_at(curve, PolicyKind::reactive, 0.2)));
  CHECK(std::isnan(hours_at(curve, PolicyKind::oracle, 0.01)));
}

TEST_CASE("policies: what is no policy is named") {
  CHECK(to_text(policy("reactive:0.55")) == "reactive 0.55");
  CHECK(to_text(policy("oracle")) == "oracle");
  for (const char* text : {"reactiv", "reactive:2", "oracle:0.5", "predictive:x", ""})
    CHECK(!parse_policy({text, {"--policies", 0, 0}}).has_value());
}

TEST_CASE("live: fed one sample at a time, it asks for what the dry run asked for") {
  observe::forecast::Series all{.start = {1'800'000'000 * ns_per_s}, .step_ns = ns_per_hour};
  for (int t = 0; t < 24 * 14; ++t)
    all.values.push_back(300 + 200 * std::sin(t / 24.0 * 6.28) + (t * 7919) % 40);
  for (std::size_t t = 24 * 9 + 5; t < 24 * 9 + 9; ++t) all.values[t] = 0;  // an outage
  all.events.resize(all.values.size());
  const std::size_t known = std::size_t{24} * 8;
  for (const char* policy : {"hybrid:0.95", "reactive:0.6"}) {
    LiveSettings settings{.name = "shop", .step_ns = ns_per_hour};
    settings.service = {.capacity = 20, .start_up = 2, .stabilisation = 1, .step_hours = 1};
    settings.policy = parse_policy({policy, {}}).value();
    observe::forecast::Series history = all;
    history.values.resize(known);
    const auto live = LiveScaler::open(settings, history).value();
    const Outcome dry = simulate(demand_of(all), known - 1, settings.service, settings.policy);
    for (std::size_t t = known; t < all.values.size(); ++t) {
      const Timestamp at{all.start.ns + static_cast<std::int64_t>(t) * all.step_ns};
      // Samples lie a little beside their step, and come twice.
      const std::vector<Sample> samples{{{at.ns - all.step_ns}, 1}, {{at.ns + 7}, all.values[t]}};
      REQUIRE(live->push(samples).value() == 1);
      CHECK(live->wish(at).value().all() == dry.asked[t - known + 1]);
    }
  }
}

TEST_CASE("live: pools in order, gaps, what is stale, and samples that are none") {
  LiveSettings settings{.name = "shop", .step_ns = ns_per_minute};
  settings.service = {.capacity = 10, .limit = 1, .start_up = 1, .most = 12};
  settings.policy = parse_policy({"reactive:0.5", {}}).value();
  settings.pools = {{"fra1", 5}, {"ams1", 9}};
  const auto live = LiveScaler::open(settings, {}).value();
  const auto push = [&](std::int64_t minute, double value) {
    const std::vector<Sample> one{{{minute * ns_per_minute}, value}};
    return live->push(one);
  };
  const auto wish = [&](std::int64_t minute) { return live->wish({minute * ns_per_minute}); };
  CHECK(wish(0).error().text().contains("no demand yet"));
  CHECK(push(100, 40).value() == 1);
  CHECK(push(101, 40).value() == 1);
  CHECK(wish(101)->replicas ==
        std::vector<std::pair<std::string, std::uint32_t>>{{"fra1", 5}, {"ams1", 3}});
  CHECK(push(104, 100).value() == 1);  // behind a gap: 20 wanted, 12 allowed
  CHECK(wish(104)->replicas ==
        std::vector<std::pair<std::string, std::uint32_t>>{{"fra1", 5}, {"ams1", 7}});
  CHECK(wish(109).has_value());
  CHECK(wish(110).error().text().contains("the last demand of shop is of"));
  CHECK(push(99, 1).value() == 0);
  for (const double bad : {-1.0, std::nan(""), 1e300}) CHECK_FALSE(push(105, bad).has_value());
  CHECK_FALSE(push(105 + 60 * 24 * 40, 1).has_value());
  const std::vector<Sample> mixed{{{106 * ns_per_minute}, 1}, {{105 * ns_per_minute}, 1}};
  CHECK_FALSE(live->push(mixed).has_value());
  CHECK(live->last() == Timestamp{104 * ns_per_minute});
}

TEST_CASE("live: an answer of Prometheus, pushed samples, and the file of services") {
  const auto answer = [](std::string_view result) {
    return read_range_answer(R"({"status":"success","data":{"resultType":"matrix","result":)" +
                                 std::string(result) + "}}",
                             "prometheus");
  };
  const auto got = answer(R"([{"metric":{},"values":[[60,"1"],[120.5,"2.5"]]}])").value();
  REQUIRE(got.size() == 2);
  CHECK(got[1].t.ns == 120'500'000'000);
  CHECK(got[1].value == 2.5);
  CHECK(answer("[]")->empty());
  for (const char* bad : {"{}", R"([{"values":[]},{"values":[]}])", R"([{"values":[[60,1]]}])",
                          R"([{"values":[["60","1"]]}])", R"([{"values":[[1e300,"1"]]}])"})
    CHECK_FALSE(answer(bad).has_value());
  CHECK_FALSE(read_range_answer(R"({"status":"error","error":"x"})", "p").has_value());
  CHECK(read_samples("time,value\n2026-01-01T00:00:00Z,3\n", "b")->at(0).value == 3);
  CHECK(read_samples("time,value\nx,3\n", "b").error().where.text() == "b:2:1");

  const auto read = [](std::string_view services) {
    return read_live(parse_yaml("services: " + std::string(services), "s.yaml").value());
  };
  const auto one = read("[{name: shop, capacity: 40, start_up: 90 s, pools: [{site: a, max: 3}]}]");
  REQUIRE(one.has_value());
  CHECK(one->services[0].service.start_up == 2);
  CHECK(one->services[0].service.most == 3);
  CHECK(one->services[0].tenant == "default");
  for (const char* bad :
       {"[]", "[{name: shop}]", "[{name: Shop, capacity: 1}]",
        "[{name: a, capacity: 1, step: 7 s}]", "[{name: a, capacity: 1, policy: oracle}]",
        "[{name: a, capacity: 1, query: up}]",
        "[{name: a, capacity: 1, max: 5, pools: [{site: b, max: 4}]}]",
        "[{name: a, capacity: 1, min: 5, max: 4}]", "[{name: a, capacity: 1, colour: red}]",
        "[{name: a, capacity: 1}, {name: a, capacity: 1}]"})
    CHECK_FALSE(read(bad).has_value());
}

TEST_CASE("World Cup 98, 10 to 25 June, 15 minutes of start-up: hours at equal violations" *
          doctest::test_suite("needs series")) {
  const std::string path =
      std::string(WEFT_SERIES) + "/worldcup98_requests_per_min_to_19980625.csv.gz";
  if (!std::filesystem::exists(path))
    return skip_test("no World Cup series; configure with -DWEFT_SERIES=FOLDER");
  std::string text = gunzip(read_file(path).value(), path).value();
  text.replace(0, text.find('\n'), "time,value");
  // "1998-04-30 21:30:00,2"
  for (std::size_t at = text.find('\n'); at + 20 < text.size(); at = text.find('\n', at + 1)) {
    text[at + 11] = 'T';
    text.insert(at + 20, "Z");
  }
  const auto series = observe::forecast::read_series(text, path);
  REQUIRE_MESSAGE(series.has_value(), (series ? "" : series.error().text()));
  const Demand demand = demand_of(*series);
  const Timestamp start = parse_timestamp({"1998-06-10T00:00:00Z", {}}).value();
  const auto from = static_cast<std::size_t>((start.ns - series->start.ns) / series->step_ns);
  const Service service{.capacity = *std::ranges::max_element(demand.values) / 100};
  std::vector<Policy> all = curve_of(PolicyKind::reactive);
  std::ranges::copy(curve_of(PolicyKind::predictive), std::back_inserter(all));
  const std::vector<Outcome> outcomes = simulate_all(demand, from, service, all, 2);
  for (const double violated : {0.005, 0.015, 0.04}) {
    const double reactive = hours_at(outcomes, PolicyKind::reactive, violated);
    const double predictive = hours_at(outcomes, PolicyKind::predictive, violated);
    MESSAGE(fmt::format("{:.1f} % violated: {:.0f} replica-hours, reactive {:.0f}: {:.3f}",
                        100 * violated, predictive, reactive, predictive / reactive));
    CHECK(predictive / reactive <= 0.95);
  }
}

}  // namespace
}  // namespace weft::plan::scale
