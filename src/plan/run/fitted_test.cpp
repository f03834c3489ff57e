// place: fitted against what Slurm does: the same free hosts in the order of their names.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/rng.hpp"
#include "base/test_effort.hpp"
#include "plan/run/test_kit.hpp"

namespace weft::plan {
namespace {

// Four pods of 32 hosts, of which other jobs leave `free` in each. They keep the network busy.
struct Fragments {
  std::array<std::uint32_t, 4> free;
  std::string_view parallel;
  std::uint32_t batch, oversubscription;
};

std::string scenario_of(const Fragments& job, std::uint64_t seed) {
  constexpr std::uint32_t racks = 16, rack_hosts = 2, gpus = 8;
  Rng rng(seed);
  std::vector<std::uint32_t> taken;
  for (std::uint32_t pod = 0; pod < job.free.size(); ++pod) {
    std::array<std::uint32_t, racks> order{};
    for (std::uint32_t r = 0; r < racks; ++r) order[r] = pod * racks + r;
    rng.shuffle(std::span<std::uint32_t>(order));
    std::vector<std::uint32_t> hosts;
    for (const std::uint32_t rack : order)
      for (std::uint32_t h = 0; h < rack_hosts; ++h) hosts.push_back(rack * rack_hosts + h);
    std::sort(hosts.begin() + job.free[pod], hosts.end());
    for (std::size_t i = job.free[pod]; i < hosts.size(); ++i)
      for (std::uint32_t g = 0; g < gpus; ++g) taken.push_back(hosts[i] * gpus + g);
  }
  return fmt::format(R"(
fabric: {{generator: three_tier, pods: 4, racks: 16, oversubscription: {}}}
routing: {{scheme: e_ecmp, qps: 4}}
jobs:
  - {{name: company, collective: all_reduce, gpus: {}, bytes: 256 MiB, repeat: 60,
      place: list, ranks: [{}]}}
  - {{name: job, model: llama3-8b, parallel: {}, batch: {}, place: rack_order}}
compare:
  in order of names: {{}}
  fitted: {{jobs.1.place: fitted}}
)",
                     job.oversubscription, taken.size(), fmt::join(taken, ", "), job.parallel,
                     job.batch);
}

}  // namespace

TEST_CASE("under contention a fitted job's step is shorter, and never longer") {
  const std::vector<Fragments> jobs{
      {{28, 20, 10, 6}, "{tp: 8, pp: 4, dp: 16}", 64, 7},
      {{30, 14, 12, 8}, "{tp: 8, pp: 8, dp: 8}", 32, 7},
      {{23, 19, 13, 9}, "{tp: 8, cp: 2, pp: 4, dp: 8}", 32, 7},
      {{27, 25, 9, 3}, "{tp: 8, pp: 2, dp: 32}", 64, 14},
      {{15, 17, 15, 17}, "{tp: 8, pp: 16, dp: 4}", 32, 14},
      {{20, 18, 14, 12}, "{tp: 8, pp: 4, dp: 16}", 64, 28},
      {{32, 32, 0, 0}, "{tp: 8, pp: 4, dp: 16}", 64, 7},
      {{16, 16, 16, 16}, "{tp: 8, pp: 4, dp: 16}", 64, 7},
      {{31, 17, 9, 7}, "{tp: 8, dp: 64}", 64, 7},
      {{29, 11, 13, 11}, "{tp: 4, pp: 4, dp: 32}", 64, 7},
  };
  double sum = 0;
  const std::size_t count = test_effort(jobs.size());
  for (std::size_t i = 0; i < count; ++i) {
    const model::Outcome outcome = testing::run(scenario_of(jobs[i], i));
    const auto step = [&](std::size_t variant) {
      const auto& rows = outcome.variants[variant].jobs;
      const auto job = std::ranges::find(rows, "job", &model::JobOutcome::name);
      return job->training->step_time_s;
    };
    const double ratio = step(1) / step(0);
    MESSAGE(jobs[i].parallel, ": ", ratio);
    CHECK(ratio <= 1.01);
    sum += ratio;
  }
  MESSAGE("mean ", sum / static_cast<double>(count));
  if (count == jobs.size()) CHECK(sum / static_cast<double>(count) <= 0.95);
}

TEST_CASE("fitted takes whole free hosts, and says where they do not suffice") {
  const auto error = [](const std::string& jobs) {
    const auto file = model::parse_scenario(
        "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 4, spines: 2}\n" +
            jobs,
        "test.yaml", {});
    REQUIRE(file.has_value());
    const auto outcome = run_scenario(*file, {});
    return outcome ? std::string() : outcome.error().text();
  };
  CHECK(error("jobs: [{name: a, collective: all_reduce, bytes: 1 MiB, gpus: 10, place: fitted}]") ==
        "");
  // The first job has part of a host, which is free no more.
  CHECK(error("jobs: [{name: a, collective: all_reduce, bytes: 1 MiB, gpus: 2},\n"
              "  {name: b, collective: all_reduce, bytes: 1 MiB, gpus: 30, place: fitted}]") ==
        "test.yaml:3:68: place: fitted: 8 hosts requested, but only 7 of 8 are free; use another "
        "place:");
}

}  // namespace weft::plan
