#include "plan/failures/failures.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "base/test_approx.hpp"

namespace weft::plan::failures {
namespace {

model::Scenario scenario(const std::string& routing, int spines, const std::string& more = "") {
  const auto file = model::parse_scenario(
      fmt::format("fabric: {{generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 4, "
                  "spines: {}, latency: 0 s}}\n"
                  "routing: {{scheme: {}}}\ncollectives: {{cost: line_rate}}\n"
                  "jobs: [{{name: a2a, collective: all_to_all, gpus: 32, bytes: 64 MiB}}]\n{}",
                  spines, routing, more),
      "s.yaml", {});
  REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().text()));
  return file->variants.front();
}

Result failures_of(const model::Scenario& s, const Options& options) {
  auto result = run(s, options);
  REQUIRE_MESSAGE(result.has_value(), (result ? "" : result.error().text()));
  return *std::move(result);
}

const Row& row_of(const Result& result, const std::string& role) {
  const auto row = std::ranges::find(result.rows, role, &Row::role);
  REQUIRE_MESSAGE(row != result.rows.end(), role);
  return *row;
}

}  // namespace

// 8 NICs of a rack share 4 uplinks of the same rate, 24 of 31 messages leave the rack: uplinks
// bind. Spraying spreads what is left over: without one of S equal spines every rack keeps (S - 1)
// / S of its uplinks, without two (S - 2) / S. A single cable down does that to one rack, and
// AlltoAll waits for it.
TEST_CASE("spraying loses what the capacity loses") {
  const model::Scenario s = scenario("spray", 4);
  const Result result = failures_of(s, {.samples = 1000, .pairs = true});
  const double healthy = result.healthy_s[0];
  const auto check = [&](const char* role, std::uint64_t of, double factor) {
    CAPTURE(role);
    const Row& row = row_of(result, role);
    CHECK(row.of == of);
    REQUIRE(row.runs.size() == of);
    CHECK(row.unseen_share == 0);
    CHECK(row.effects[0].stops == 0);
    for (const Run& r : row.runs) CHECK(r.seconds[0] / healthy == approx(factor).epsilon(1e-6));
    CHECK(row.effects[0].mean_s == approx(factor * healthy).epsilon(1e-6));
    CHECK(row.effects[0].median_s == approx(factor * healthy).epsilon(1e-6));
  };
  check("ctsw", 4, 4.0 / 3);
  check("rtsw--ctsw", 16, 4.0 / 3);
  check("ctsw + ctsw", 6, 4.0 / 2);
  // A rack without its switch, and a GPU without its NIC's cable, are cut off.
  CHECK(row_of(result, "rtsw").effects[0].stops == 4);
  CHECK(row_of(result, "nic--rtsw").effects[0].stops == 32);
  CHECK(row_of(result, "nic--rtsw").runs[0].stopped.find("no live path") != std::string::npos);
  // Two cables of one rack leave half of it (6 pairs in each of 4 racks). In two racks they leave
  // 3/4 of each, and between those racks 1/2 where the cables lead to different spines.
  const Row& two = row_of(result, "rtsw--ctsw + rtsw--ctsw");
  CHECK(two.of == 120);
  CHECK(two.effects[0].worst_s / healthy >= approx(2).epsilon(1e-6));
  const std::string said = findings(result)[0];
  CHECK(said.find("a2a: ") == 0);
  CHECK(said.find("1.333 times the time") != std::string::npos);
  CHECK(said.find("stopped by rtsw (4 of 4 runs), nic--rtsw (32 of 32 runs)") != std::string::npos);
}

TEST_CASE("the failure of both spines parts the zone; faults of the scenario stay") {
  const Result pairs = failures_of(scenario("spray", 2), {.samples = 100, .pairs = true});
  CHECK(row_of(pairs, "ctsw").effects[0].stops == 0);
  CHECK(row_of(pairs, "ctsw + ctsw").of == 1);
  CHECK(row_of(pairs, "ctsw + ctsw").effects[0].stops == 1);
  CHECK(row_of(pairs, "ctsw + ctsw").effects[0].worst == "ctsw:0 + ctsw:1");

  const Result single =
      failures_of(scenario("spray", 2, "faults: [{kind: switch_down, switch: \"ctsw:0\"}]\n"),
                  {.samples = 100});
  const Row& spines = row_of(single, "ctsw");
  CHECK(spines.effects[0].stops == 1);  // ctsw:1; the other one is down already
  CHECK(spines.effects[0].mean_s == approx(single.healthy_s[0]));
  CHECK(spines.effects[0].worst == "ctsw:1");
}

TEST_CASE("samples are different members of the whole, the same for a seed, on any threads") {
  const model::Scenario s = scenario("ecmp", 4);
  const Result all = failures_of(s, {.samples = 1000, .pairs = true, .threads = 3});
  const Result few = failures_of(s, {.samples = 7, .pairs = true, .seed = 5, .threads = 1});
  const Result same = failures_of(s, {.samples = 7, .pairs = true, .seed = 5, .threads = 4});
  const Result other = failures_of(s, {.samples = 7, .pairs = true, .seed = 6});
  CHECK(to_json(few) == to_json(same));
  CHECK(to_csv(few) != to_csv(other));
  for (const Row& row : few.rows) {
    CAPTURE(row.role);
    const Row& whole = row_of(all, row.role);
    CHECK(row.of == whole.of);
    CHECK(row.runs.size() == std::min<std::uint64_t>(7, row.of));
    std::set<std::string> names;
    for (const Run& r : row.runs) {
      CHECK(names.insert(r.failed).second);
      const auto found = std::ranges::find(whole.runs, r.failed, &Run::failed);
      REQUIRE(found != whole.runs.end());
      CHECK((found->seconds[0] == r.seconds[0] ||
             (std::isnan(found->seconds[0]) && std::isnan(r.seconds[0]))));
    }
    if (row.runs.size() == row.of)
      CHECK(row.unseen_share == 0);
    else  // so large a share is missed by all draws once in 20 times
      CHECK(std::pow(1 - row.unseen_share, static_cast<double>(row.runs.size())) == approx(0.05));
  }
  // Every pair once: 16 cables have 120.
  std::set<std::string> pairs;
  for (const Run& r : row_of(all, "rtsw--ctsw + rtsw--ctsw").runs) pairs.insert(r.failed);
  CHECK(pairs.size() == 120);
}

TEST_CASE("roles of a fabric: switches, cables, NICs with several of them, hosts") {
  const auto names = [](const char* fabric, bool hosts) {
    const auto file = model::parse_scenario(
        fmt::format(
            "fabric: {}\njobs: [{{name: a, collective: all_reduce, gpus: 16, bytes: 1 MiB}}]",
            fabric),
        "s.yaml", {});
    Options options{.samples = 1, .hosts = hosts};
    std::string out;
    for (const Row& row : failures_of(file->variants.front(), options).rows)
      out += fmt::format("{}:{} ", row.role, row.of);
    return out;
  };
  CHECK(names("{generator: ai_zone, racks: 2, spines: 3}", false) ==
        "ctsw:3 rtsw:2 rtsw--ctsw:6 nic--rtsw:32 ");
  CHECK(names("{generator: hpn, segments: 1, hosts_per_segment: 4, aggs: 2}", true)
            .find("nic:32 host:4") != std::string::npos);
}

TEST_CASE("a scenario that does not end as it is is refused") {
  const auto result =
      run(scenario("spray", 1, "faults: [{kind: switch_down, switch: \"ctsw:0\"}]\n"), {});
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().what.find("job a2a does not end as it is") != std::string::npos);
}

}  // namespace weft::plan::failures
