// Gains against closed forms: who shares a link, and what the shared link's rate is.
#include "plan/why/why.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/test_approx.hpp"

namespace weft::plan::why {
namespace {

model::Scenario scenario_of(std::string_view text) {
  auto file = model::parse_scenario(text, "s.yaml", {});
  REQUIRE_MESSAGE(file.has_value(), file.error().text());
  return file->variants.front();
}

Answer answer_of(std::string_view text) {
  auto answer = explain(scenario_of(text), {});
  REQUIRE_MESSAGE(answer.has_value(), answer.error().text());
  return *std::move(answer);
}

double speed(const Answer& answer, std::string_view name, std::size_t job = 0) {
  for (const Answer::Gain& gain : answer.gains)
    if (gain.name == name) return gain.speed.at(job);
  FAIL("no such change: ", name);
  return 0;
}

// Both jobs cross the one uplink; alone each has a NIC's rate.
constexpr const char* shared =
    "fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 2, gpus_per_host: 1, spines: 1,"
    " latency: 0 s}\n"
    "collectives: {cost: line_rate}\n"
    "jobs:\n"
    "  - {name: a, collective: send_recv, bytes: 100 MB, place: list, ranks: [0, 2]}\n"
    "  - {name: b, collective: send_recv, bytes: 100 MB, place: list, ranks: [1, 3]}\n";

TEST_CASE("two jobs on one uplink: twice as fast without the other, and with twice the rate") {
  const Answer answer = answer_of(shared);
  for (std::size_t job = 0; job < 2; ++job) {
    CHECK(speed(answer, "no contention", job) == approx(2));
    CHECK(speed(answer, "links x 2", job) == approx(2));
  }
  REQUIRE(answer.findings.size() == 2);
  CHECK(answer.findings[0].find("2.00 times the least that its links allow") != std::string::npos);
}

// Data parallelism over two hosts: all that crosses the slow NIC waits for it, and the rest of the
// communication is inside hosts.
TEST_CASE("the critical path of a step names the link that it waits for") {
  const Answer answer = answer_of(
      "fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 1, spines: 2, latency: 0 s}\n"
      "collectives: {cost: line_rate}\n"
      "jobs: [{name: t, model: llama3-8b, parallel: {tp: 8, dp: 2}, batch: 4}]\n"
      "faults: [{kind: link_degraded, link: \"nic:3->rtsw:0\", factor: 0.1}]\n");
  const model::TrainingOutcome& step = *answer.base.jobs[0].training;
  REQUIRE(step.link_waits.has_value());
  const model::LinkWaits& waits = *step.link_waits;
  REQUIRE_FALSE(waits.links.empty());
  CHECK(waits.links[0].link == "nic:3->rtsw:0");
  const auto& dp = step.critical.communication_s[static_cast<std::size_t>(model::Dimension::dp)];
  CHECK(waits.links[0].seconds == approx(dp[static_cast<std::size_t>(model::Distance::zone)]));
  double sum =
      waits.other_links_s + waits.latency_s + waits.library_s + waits.no_path_s + waits.folded_s;
  for (const auto& [link, seconds] : waits.links) sum += seconds;
  CHECK(sum == approx(step.critical.total_s() - step.critical.compute_s).epsilon(1e-9));
}

TEST_CASE("cables between routers with a rate of their own are as much faster as NICs") {
  for (const char* fabric :
       {"generator: torus, dimensions: [2, 2], gpus_per_host: 1, torus_link: 100 Gbps",
        "generator: dragonfly, p: 1, a: 2, g: 2, h: 1, gpus_per_host: 1, local_link: 100 Gbps, "
        "global_link: 100 Gbps"}) {
    const Answer answer = answer_of(fmt::format(
        "fabric: {{{}, latency: 0 s}}\ncollectives: {{cost: line_rate}}\n"
        "jobs: [{{name: a, collective: send_recv, bytes: 100 MB, gpus: 2, place: rack_order}}]\n",
        fabric));
    CHECK(speed(answer, "links x 2") == approx(2));
  }
}

TEST_CASE("a fault costs what the link has lost") {
  const Answer answer = answer_of(
      "fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, spines: 1,"
      " latency: 0 s}\n"
      "collectives: {cost: line_rate}\n"
      "faults: [{kind: link_degraded, link: rtsw:0--ctsw:0, factor: 0.25}]\n"
      "jobs: [{name: a, collective: send_recv, bytes: 100 MB, gpus: 2, place: rack_order}]\n");
  CHECK(speed(answer, "no faults") == approx(4));
  CHECK(answer.findings[0].ends_with("Most is gained with: no contention (4.00x)"));
}

// The same by hand: the scenario with the keys that the change stands for.
TEST_CASE("more QPs and no slow ranks gain what the scenario written so gains") {
  const auto job = [](std::string_view faults, std::string_view routing) {
    return answer_of(fmt::format(
        "fabric: {{generator: ai_zone, racks: 8, hosts_per_rack: 1, spines: 4, host: h100, "
        "oversubscription: 4}}\n"
        "faults: [{}]\nrouting: {{{}}}\n"
        "jobs: [{{name: t, model: llama3-8b, parallel: {{tp: 2, dp: 32}}, batch: 256, "
        "sequence: 8192, place: rack_order}}]\n",
        faults, routing));
  };
  const auto time = [](const Answer& answer) { return model::time_of(answer.base.jobs[0]); };
  const std::string cable = "{kind: link_degraded, link: rtsw:0--ctsw:0, factor: 0.5}";
  const std::string slow = ", {kind: gpu_slow, gpu: 3, factor: 1.5}";
  const Answer base = job(cable + slow, "scheme: ecmp");
  const double healed = time(base) / time(job(cable, "scheme: ecmp"));
  const double spread = time(base) / time(job(cable + slow, "scheme: e_ecmp, qps: 4"));
  CHECK(healed > 1.1);
  CHECK(std::abs(spread - 1) > 0.001);
  CHECK(speed(base, "no slow ranks") == approx(healed));
  CHECK(speed(base, "QPs x 4") == approx(spread));
  const Answer only = job("{kind: gpu_slow, gpu: 3, factor: 1.5}", "scheme: ecmp");
  CHECK(std::ranges::none_of(only.gains, [](auto& g) { return g.name == "no slow ranks"; }));
}

TEST_CASE("what a step is bound by; changes that mean nothing are left out") {
  const auto job = [](std::string_view more) {
    return fmt::format(
        "fabric: {{generator: ai_zone, racks: 4, spines: 2, host: h100{}}}\n"
        "jobs: [{{name: t, model: llama3-8b, parallel: {{tp: 2, dp: 32}}, batch: 256, "
        "sequence: 8192, place: rack_order}}]\n",
        more);
  };
  const Answer fast = answer_of(job(""));
  CHECK(fast.findings[0].starts_with("t: compute-bound: of "));
  const Answer slow = answer_of(job(", oversubscription: 64"));
  CHECK(slow.findings[0].starts_with("t: communication-bound: of "));
  CHECK(speed(slow, "no contention") > 1.2);
  CHECK(speed(slow, "links x 2") <= speed(slow, "no contention") + 1e-9);

  const auto names = [](std::string_view text) {
    std::string out;
    const model::Scenario scenario = scenario_of(text);
    const auto list = changes(scenario);
    REQUIRE(list.has_value());
    for (const Change& change : *list) out += (out.empty() ? "" : ", ") + change.name;
    return out;
  };
  CHECK(names(shared) == "no contention, spray, QPs x 4, links x 2");
  CHECK(names(std::string(shared) + "routing: {convergence: {}}\n") ==
        "no contention, QPs x 4, links x 2");
  const std::string qps = std::string(shared) + "routing: {scheme: te, qps: ";
  CHECK(names(qps + "1024}\n") == "no contention, QPs x 4, links x 2");
  CHECK(names(qps + "1025}\n") == "no contention, links x 2");
  CHECK(names(std::string(shared) + "engine: packet\nrouting: {scheme: spray}\n") == "links x 2");
}

// TP inside each host sends nothing between racks; by the list every pair of neighbours does.
TEST_CASE("the order of ranks gains what the scenario with place: fitted gains") {
  const auto text = [](std::string_view place) {
    return fmt::format(
        "fabric: {{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 2, "
        "nics_per_host: 2, spines: 1}}\n"
        "jobs: [{{name: t, model: llama3-8b, parallel: {{tp: 2, dp: 2}}, batch: 4, {}}}]\n",
        place);
  };
  const Answer bad = answer_of(text("place: list, ranks: [0, 2, 1, 3]"));
  const Answer good = answer_of(text("place: fitted"));
  const auto time = [](const Answer& answer) { return model::time_of(answer.base.jobs[0]); };
  CHECK(speed(bad, "fitted order") == approx(time(bad) / time(good)));
  CHECK(speed(bad, "fitted order") > 1.05);
  CHECK(std::ranges::find(good.gains, "fitted order", &Answer::Gain::name) == good.gains.end());
}

}  // namespace
}  // namespace weft::plan::why
