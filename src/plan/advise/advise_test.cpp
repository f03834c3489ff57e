// Advice against arithmetic: what a transfer at half rate, or at none, loses until the horizon.
#include "plan/advise/advise.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "base/test_approx.hpp"

namespace weft::plan::advise {
namespace {

Result<Advice> advice_of(const std::string& text, double move_min, std::uint32_t moves = 1) {
  auto file = model::parse_scenario(text, "s.yaml", {});
  REQUIRE_MESSAGE(file.has_value(), file.error().text());
  return advise(file->variants.front(), {.horizon = from_seconds(3600),
                                         .move = from_seconds(60 * move_min),
                                         .moves = moves,
                                         .run = {}});
}

// One GPU and NIC a host; the fifth host is free in the first rack, the others in the second.
std::string scenario(const std::string& faults, int hosts_per_rack = 3) {
  return "fabric: {generator: ai_zone, racks: 2, hosts_per_rack: " +
         std::to_string(hosts_per_rack) +
         ", gpus_per_host: 1, spines: 8, latency: 0 s}\n"
         "collectives: {cost: line_rate}\nrouting: {scheme: spray}\n"
         "jobs:\n"
         "  - {name: a, collective: send_recv, bytes: 1 GB, place: list, ranks: [0, 1]}\n"
         "  - {name: b, collective: send_recv, bytes: 1 GB, place: list, ranks: [3, 4]}\n"
         "faults: [" +
         faults + "]\n";
}
constexpr const char* half = "{kind: nic_degraded, nic: \"nic:0\", factor: 0.5}";

const Candidate& best_of(const Result<Advice>& advice) {
  REQUIRE_MESSAGE(advice.has_value(), (advice ? "" : advice.error().text()));
  REQUIRE(!advice->rounds.front().candidates.empty());
  return advice->rounds.front().candidates.front();
}

TEST_CASE("a NIC at half rate: the move pays after its price doubled, and not before") {
  const auto advice = advice_of(scenario(half), 6);
  const Candidate& best = best_of(advice);
  CHECK(advice->struck == std::vector<std::string>{"host:0"});
  CHECK(advice->rounds[0].moves());
  CHECK(best.job == "a");
  CHECK(best.leaves == std::vector<std::string>{"host:0"});
  CHECK(best.takes == std::vector<std::string>{"host:2"});  // the free one of the same rack
  CHECK(best.stay_s == approx(2 * best.moved_s).epsilon(1e-6));
  // Two GPUs: 0.9 h at full pace for 1 h at half.
  CHECK(best.gain_gpu_hours == approx(2 * (0.9 - 0.5)).epsilon(1e-6));
  CHECK(best.pays_after_s == approx(12 * 60.0).epsilon(1e-6));
  const auto dear = advice_of(scenario(half), 31);
  CHECK(best_of(dear).gain_gpu_hours == approx(2 * (29 / 60.0 - 0.5)).epsilon(1e-6));
  CHECK(!dear->rounds[0].moves());
}

TEST_CASE("a job that never ends gains all that is left of the horizon") {
  const auto advice = advice_of(scenario("{kind: nic_down, nic: \"nic:0\"}"), 15);
  const Candidate& best = best_of(advice);
  CHECK(std::isnan(best.stay_s));
  CHECK(best.gain_gpu_hours == approx(2 * 0.75).epsilon(1e-6));
  CHECK(best.pays_after_s == approx(15 * 60.0));
}

TEST_CASE("moves one after another: each job once, then stay; struck hosts are not taken") {
  const std::string faults =
      std::string(half) + ", {kind: nic_degraded, nic: \"nic:3\", factor: 0.5}";
  const auto advice = advice_of(scenario(faults), 1, 5);
  REQUIRE(advice.has_value());
  REQUIRE(advice->rounds.size() == 3);
  CHECK(advice->rounds[0].candidates[0].job != advice->rounds[1].candidates[0].job);
  CHECK(!advice->rounds[2].moves());
  for (const Round& round : advice->rounds)
    for (const Candidate& one : round.candidates)
      for (const std::string& host : one.takes) {
        CHECK(host != "host:0");
        CHECK(host != "host:3");
      }
}

TEST_CASE("nothing is wrong, or nothing is free: stay") {
  const auto well = advice_of(scenario(""), 1);
  REQUIRE(well.has_value());
  CHECK(well->struck.empty());
  CHECK(!well->rounds[0].moves());
  // Two hosts a rack: gpu:3 is b's first, and gpu:4 is none.
  const auto full = advice_of(
      "fabric: {generator: ai_zone, racks: 1, hosts_per_rack: 2, "
      "gpus_per_host: 1, spines: 1}\n"
      "jobs: [{name: a, collective: send_recv, bytes: 1 GB, gpus: 2}]\n"
      "faults: [" +
          std::string(half) + "]\n",
      1);
  REQUIRE(full.has_value());
  CHECK(full->rounds[0].candidates.empty());
  CHECK(to_table(*full, {.horizon = from_seconds(3600), .move = {}, .moves = 1, .run = {}})
            .ends_with("Stay: no move gains within 1 h.\n"));
}

}  // namespace
}  // namespace weft::plan::advise
