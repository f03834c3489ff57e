#include "operate/repair/what_if.hpp"

#include "base/test_approx.hpp"
#include "model/scenario/scenario.hpp"
#include "operate/repair/test_kit.hpp"

namespace weft::operate::repair {
namespace {

using testing::part;

struct Lab {
  explicit Lab(std::string_view yaml) {
    auto file = model::parse_scenario(yaml, "lab.yaml", {});
    REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().text()));
    const model::Scenario& scenario = file->variants.front();
    auto read = plan::read_setup(scenario);
    REQUIRE_MESSAGE(read.has_value(), (read ? "" : read.error().text()));
    setup = std::make_unique<plan::Setup>(*std::move(read));
    if (scenario.section("jobs").kind == Config::Kind::null) return;
    auto placed = plan::read_jobs(*setup, scenario.section("jobs"), 1);
    REQUIRE_MESSAGE(placed.has_value(), (placed ? "" : placed.error().text()));
    jobs = *std::move(placed);
  }
  Impact predict(const std::vector<std::string>& out, const std::vector<std::string>& drain,
                 WhatIf::Options options = {}) const {
    const auto parts = [&](const std::vector<std::string>& names) {
      std::vector<Entity> found;
      for (const std::string& name : names) found.push_back(part(setup->fabric, name));
      return found;
    };
    auto impact = WhatIf(*setup, jobs, 1, options).predict(parts(out), parts(drain));
    REQUIRE_MESSAGE(impact.has_value(), (impact ? "" : impact.error().text()));
    return *std::move(impact);
  }

  std::unique_ptr<plan::Setup> setup;
  plan::Jobs jobs;
};

//   ctsw:0 .. ctsw:3      4 NICs of 400 Gbps under each rack's 4 uplinks of 400 Gbps
//      | \ / |
//   rtsw:0  rtsw:1
constexpr std::string_view two_racks =
    "fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 2, gpus_per_host: 2, spines: 4, "
    "link: 400 Gbps}\n";

TEST_CASE("without jobs the bound is the share of the capacity that is left") {
  const Lab lab(two_racks);
  const Impact none = lab.predict({}, {"rtsw:0--ctsw:0"});
  CHECK(none.method == Impact::Method::bounded);
  // Three of four uplinks.
  CHECK(none.jobs.front().slowdown == approx(4.0 / 3).epsilon(0.01));
  // From three to two.
  const Impact more = lab.predict({"ctsw:1"}, {"ctsw:0"});
  CHECK(more.jobs.front().slowdown == approx(1.5).epsilon(0.01));
  CHECK(more.forecast().slowdown_max == approx(1.5).epsilon(0.01));
  CHECK(more.forecast().worst == "all");
}

TEST_CASE("a drain of what is out already changes nothing") {
  const Lab lab(two_racks);
  const Impact same = lab.predict({"ctsw:0"}, {"rtsw:0--ctsw:0"});
  CHECK(same.jobs.front().slowdown == 1);
  CHECK(same.forecast().stalled == 0);
}

TEST_CASE("a job that loses its last way stalls; one that had none is not changed") {
  const Lab lab(std::string(two_racks) +
                "jobs: [{name: ring, collective: all_reduce, gpus: 8, bytes: 64 MiB}]\n");
  const std::vector<std::string> three{"ctsw:0", "ctsw:1", "ctsw:2"};
  const Impact stalled = lab.predict(three, {"ctsw:3"});
  CHECK(stalled.method == Impact::Method::simulated);
  CHECK(stalled.forecast().jobs == 1);
  CHECK(stalled.forecast().stalled == 1);
  CHECK(lab.predict({"rtsw:0"}, {"ctsw:3"}).forecast().stalled == 0);
}

TEST_CASE("jobs are simulated as they are: one inside a rack does not feel the spines") {
  const Lab lab(
      "fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 2, gpus_per_host: 2, spines: 4, "
      "link: 400 Gbps}\nrouting: {scheme: e_ecmp, qps: 16}\n"
      "jobs: [{name: near, collective: all_to_all, place: list, ranks: [0, 2], bytes: 64 MiB}, "
      "{name: far, collective: all_to_all, place: list, ranks: [1, 3, 5, 7], bytes: 1 GiB}]\n");
  const Impact impact = lab.predict({"ctsw:0", "ctsw:1"}, {"ctsw:2"});
  REQUIRE(impact.jobs.size() == 2);
  CHECK(impact.jobs[0].slowdown == approx(1));
  CHECK(impact.jobs[1].slowdown > 1.2);
  CHECK(impact.wall_s < 1);
  const Impact bound = lab.predict({"ctsw:0", "ctsw:1"}, {"ctsw:2"}, {.ranks_max = 2});
  CHECK(bound.method == Impact::Method::bounded);
  CHECK(bound.jobs[0].slowdown == 1);
  CHECK(bound.jobs[1].slowdown == approx(2).epsilon(0.01));
}

TEST_CASE("a zone of 252 racks: 18 spines spare two for 16 GPUs, and not a third") {
  const Lab lab(
      "fabric: {generator: ai_zone, racks: 252, hosts_per_rack: 2, gpus_per_host: 8, spines: 18, "
      "link: 400 Gbps}\n");
  const Impact second = lab.predict({"ctsw:0"}, {"ctsw:1"});
  CHECK(second.jobs.front().slowdown == approx(1).epsilon(0.001));
  const Impact third = lab.predict({"ctsw:0", "ctsw:1"}, {"ctsw:2"});
  CHECK(third.jobs.front().slowdown == approx(16.0 / 15).epsilon(0.001));
  MESSAGE("wall " << second.wall_s << " s, " << third.wall_s << " s");
  CHECK(third.wall_s < 5);  // under a second where the machine is not shared
}

}  // namespace
}  // namespace weft::operate::repair
