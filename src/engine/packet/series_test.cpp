// Time series: bounded, and their integral is what the counters say.
#include "base/test_approx.hpp"
#include "engine/packet/test_kit.hpp"

namespace weft::engine::packet::testing {
namespace {

double integral(const Series& series) {
  double sum = 0, before = 0;
  for (std::size_t i = 0; i < series.time_s.size(); ++i) {
    sum += series.value[i] * (series.time_s[i] - before);
    before = series.time_s[i];
  }
  return sum;
}

const Series& find(const PacketRunResult& result, std::string_view name) {
  const auto found = std::ranges::find(result.series, name, &Series::name);
  REQUIRE_MESSAGE(found != result.series.end(), name);
  return *found;
}

TEST_CASE("samples are bounded, evenly spaced, and integrate to the bytes sent") {
  const Fabric fabric = star(equal(3));
  const Load load = Load{}
                        .add(fabric, 0, 2, 600 * payload)
                        .add(fabric, 1, 2, 600 * payload, 20 * us)
                        .add(fabric, 2, 0, payload, 300 * us);
  for (const std::size_t samples_max : {7u, 8u, 50u, 1000u})
    for (const std::uint32_t threads : {1u, 2u}) {
      CAPTURE(samples_max);
      Options options;
      options.threads = threads;
      options.series = {.interval = 1_us,
                        .links = {"s:0->nic:2", "nic:0->s:0"},
                        .flows = {"0", "1"},
                        .samples_max = samples_max};
      const PacketRunResult result = run(fabric, load, options);
      CHECK(result.complete);
      CHECK(result.series.size() == 6);
      for (const Series& series : result.series) {
        CAPTURE(series.name);
        CHECK(series.time_s.size() <= samples_max);
        CHECK(series.time_s.size() >= std::min<std::size_t>(samples_max, 300) / 2 - 1);
        REQUIRE(series.value.size() == series.time_s.size());
        for (std::size_t i = 0; i < series.time_s.size(); ++i)
          CHECK(series.time_s[i] == approx(series.time_s[0] * static_cast<double>(i + 1)));
      }
      const LinkCounters& first = result.links[link(fabric, "nic:0->s:0").index()];
      // ACKs of the last message come after the last sample, maybe.
      const auto near = [](std::uint64_t bytes) {
        return approx(static_cast<double>(bytes)).epsilon(0.002);
      };
      CHECK(integral(find(result, "rate nic:0->s:0")) == near(first.bytes));
      CHECK(integral(find(result, "rate message 0")) == near(600 * payload));
      CHECK(integral(find(result, "rate message 1")) == near(600 * payload));
      const Series& queue = find(result, "queue s:0->nic:2");
      CHECK(queue.unit == "B");
      const double most = std::ranges::max(queue.value);
      CHECK(most <= result.links[link(fabric, "s:0->nic:2").index()].queue_max);
      if (samples_max == 1000)
        CHECK(most > 0.97 * result.links[link(fabric, "s:0->nic:2").index()].queue_max);
      for (const double rate : find(result, "rate s:0->nic:2").value)
        CHECK(rate <= 50e9 + full_bytes / (1e-6 * 1));
    }
}

TEST_CASE("sampling changes no result") {
  const Fabric fabric = fat_tree();
  Options options;
  options.pfc = fixed_pfc();
  const Load load = permutation(fabric, 100 * payload, 7);
  const std::string digest = run(fabric, load, options).digest;
  options.series = {.interval = 137_ns, .links = {"core:0->agg:0"}, .flows = {"3"}};
  CHECK(run(fabric, load, options).digest == digest);
}

TEST_CASE("series of what does not exist are refused") {
  const Fabric fabric = star(equal(2));
  const Load load = Load{}.add(fabric, 0, 1, payload);
  const auto refusal = [&](SeriesOptions series) {
    Options options;
    options.series = std::move(series);
    const auto result = try_run(fabric, load, Setting{.options = options});
    return result.has_value() ? std::string("accepted") : result.error().text();
  };
  CHECK(refusal({.interval = 1_us, .flows = {"1"}}).find("message 1 does not exist") !=
        std::string::npos);
  CHECK(refusal({.interval = 1_us, .links = {"nic:0->nic:1"}}) != "accepted");
  CHECK(refusal({.interval = 1_us, .links = {"nic:0->s:0"}, .flows = {"0"}}) == "accepted");
}

// The rates of the series, sampled at the recorder's interval, are a second hand.
TEST_CASE("loads in intervals: what the series say, on any number of threads, and nothing else") {
  const Fabric fabric = star(equal(3));
  const Load load = Load{}
                        .add(fabric, 0, 2, 600 * payload)
                        .add(fabric, 1, 2, 600 * payload, 20 * us)
                        .add(fabric, 2, 0, payload, 300 * us);
  const std::string names[] = {"s:0->nic:2", "nic:0->s:0", "nic:2->s:0"};
  Options plain;
  const PacketRunResult without = run(fabric, load, plain);
  CHECK(without.loads.bytes.empty());
  for (const std::size_t most : {2u, 16u, 64u}) {
    CAPTURE(most);
    Options options;
    options.load_windows = most;
    const PacketRunResult one = run(fabric, load, options);
    options.threads = 2;
    const PacketRunResult two = run(fabric, load, options);
    CHECK(one.digest == without.digest);
    CHECK(one.loads.bytes == two.loads.bytes);
    CHECK(one.loads.bytes.size() <= most);
    CHECK(one.loads.bytes.size() >= most / 2);
    options.series = {.interval = Duration{static_cast<std::int64_t>(one.loads.width)},
                      .links = {names[0], names[1], names[2]},
                      .samples_max = 1000};
    const PacketRunResult seen = run(fabric, load, options);
    for (const std::string& name : names) {
      const Series& rate = find(seen, "rate " + name);
      const std::uint32_t id = link(fabric, name).value;
      const auto at = std::ranges::find(one.loads.links, id) - one.loads.links.begin();
      const auto k = static_cast<std::size_t>(at);
      REQUIRE(k < one.loads.links.size());
      CHECK(one.loads.total[k] == static_cast<float>(one.links[id].bytes));
      for (std::size_t i = 0; i < std::min(rate.value.size(), one.loads.bytes.size() - 1); ++i)
        CHECK(rate.value[i] * seconds(one.loads.width) ==
              approx(static_cast<double>(one.loads.bytes[i][k])).epsilon(1e-6));
    }
  }
}

}  // namespace
}  // namespace weft::engine::packet::testing
