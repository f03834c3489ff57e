#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/test_approx.hpp"
#include "plan/run/run.hpp"
#include "plan/run/test_kit.hpp"
#include "workload/jobstart/bootstrap.hpp"

namespace weft::plan {
namespace {

using testing::run;

// Four hosts of one GPU; NICs of 100 Gbps to one RSW, one storage host of 1 GB/s. One rank of the
// job sits in each host; a job of two hosts moves 2 x its bytes through storage.
std::string fabric(const std::string& storage = "storage_hosts: 1, storage_rate: 1 GB/s") {
  return fmt::format(
      "fabric: {{generator: ai_zone, racks: 2, hosts_per_rack: 2, gpus_per_host: 1, spines: 1, "
      "frontend: {{{}, latency: 0 s}}}}\n",
      storage);
}

std::string job(const std::string& name, const std::string& ranks, const std::string& more) {
  return fmt::format(
      "{{name: {}, model: {{layers: 8, hidden: 2048, ffn: 8192, heads: 16, head_size: 128, "
      "vocabulary: 32000}}, gpu: h100, parallel: {{dp: 2}}, batch: 2, sequence: 512, place: list, "
      "ranks: {}, {}}}",
      name, ranks, more);
}

std::string one(const std::string& more) { return "jobs: [" + job("a", "[0, 2]", more) + "]\n"; }

std::string two(const std::string& more) {
  return "jobs: [" + job("a", "[0, 2]", more) + ", " + job("b", "[1, 3]", more) + "]\n";
}

const model::TrainingOutcome& of(const model::Outcome& outcome, std::size_t j = 0) {
  REQUIRE_FALSE(outcome.variants[0].jobs[j].unfinished.has_value());
  return *outcome.variants[0].jobs[j].training;
}

doctest::Approx about(double seconds) { return approx(seconds).epsilon(1e-6); }

double sum_of_steps(const model::TrainingOutcome& t) {
  double sum = 0;
  for (const double s : t.step_times_s) sum += s;
  return sum;
}

}  // namespace

TEST_CASE("alone, a checkpoint takes its bytes over the slowest of NIC and storage") {
  // 2 GPUs x 1 GB through 1 GB/s.
  const model::Outcome stored = run(fabric() + one("repeat: 1, checkpoint: 1 GB"));
  CHECK(of(stored).checkpoint_s == about(2.0));
  CHECK(of(stored).checkpoint_stall_s == about(2.0));
  // Storage of 8 hosts x 25 GB/s is faster than a NIC of 12.5 GB/s; one way, so that no two parts
  // meet on a hashed uplink while another is free.
  const model::Outcome wired =
      run(fabric("storage_hosts: 8, fsws: 1, ssws: 1") + one("repeat: 1, checkpoint: 1 GB"));
  CHECK(of(wired).checkpoint_s == about(1 / 12.5));
}

TEST_CASE("two jobs on one storage host take twice as long each") {
  const model::Outcome both = run(fabric() + two("repeat: 1, checkpoint: 1 GB"));
  for (const std::size_t j : {0u, 1u}) CHECK(of(both, j).checkpoint_s == about(4.0));
}

TEST_CASE("a step whose data comes slower than it computes takes as long as the data") {
  const model::Outcome quick = run(fabric() + one("repeat: 4"));
  const double step_s = of(quick).step_time_s;
  REQUIRE(step_s < 0.5);
  const model::Outcome slow = run(fabric() + one("repeat: 4, ingest: 500 MB"));  // 1 s
  CHECK(of(slow).ingest_s == about(1.0));
  CHECK(of(slow).start_s == about(1.0));
  CHECK(of(slow).step_time_s == about(1.0));
  CHECK(of(slow).ingest_stall_s == about(1.0 - step_s));
  // Data that comes in half a step is there before it is needed.
  const auto bytes = static_cast<std::int64_t>(step_s / 4 * 1e9);
  const model::Outcome hidden = run(fabric() + one(fmt::format("repeat: 4, ingest: {} B", bytes)));
  CHECK(of(hidden).ingest_stall_s == about(0));
  CHECK(of(hidden).step_time_s == about(step_s));
}

TEST_CASE("every byte crosses the front end once") {
  const model::Outcome outcome =
      run(fabric() + one("repeat: 3, ingest: 200 MB, checkpoint: {bytes: 300 MB, every: 1}"));
  const model::VariantOutcome& v = outcome.variants[0];
  double makespan =
      of(outcome).start_s + sum_of_steps(of(outcome)) + 3 * of(outcome).checkpoint_stall_s;
  const auto carried = [&](const char* name) {  // mean load x links x capacity x time
    const auto tier = std::ranges::find(v.tiers, name, &model::TierOutcome::name);
    REQUIRE(tier != v.tiers.end());
    return tier->mean_load * static_cast<double>(tier->links) * makespan;
  };
  // 1,200 bytes are the world's start-up exchange: 3 x 100 B over each of 2 NICs, both ends.
  CHECK(carried("storage_nic->rsw") * 25e9 == about(3 * 2 * 200e6));
  CHECK(carried("rsw->storage_nic") * 25e9 == about(3 * 2 * 300e6));
  CHECK(carried("rsw->fe_nic") * 12.5e9 == about(3 * 2 * 200e6 + 600));
  CHECK(carried("fe_nic->rsw") * 12.5e9 == about(3 * 2 * 300e6 + 600));
}

TEST_CASE("an asynchronous checkpoint hides until its write outlasts the steps between") {
  const double step_s = of(run(fabric() + one("repeat: 4"))).step_time_s;
  const auto stall = [&](double write_s) {
    const auto bytes = static_cast<std::int64_t>(write_s / 2 * 1e9);
    const model::Outcome o = run(
        fabric() + one(fmt::format("repeat: 8, checkpoint: {{bytes: {} B, every: 2, mode: async, "
                                   "copy_rate: 1000 GB/s}}",
                                   bytes)));
    const double copy_s = static_cast<double>(bytes) / 1e12;
    CHECK(of(o).checkpoint_s == approx(write_s).epsilon(1e-5));
    return of(o).checkpoint_stall_s - copy_s;
  };
  CHECK(stall(1.9 * step_s) == about(0).scale(step_s));
  // Three of four checkpoints wait for the one before.
  CHECK(stall(3 * step_s) == approx(0.75 * step_s).epsilon(1e-4));
}

TEST_CASE("a degraded or dead cable of the front end slows its job by what it lacks") {
  const std::string job = one("repeat: 1, checkpoint: 1 GB");
  const auto seconds = [&](const std::string& storage, const std::string& faults) {
    return of(run(fabric(storage) + job + faults)).checkpoint_s;
  };
  CHECK(seconds("storage_hosts: 8",
                "faults: [{kind: link_degraded, tier: fe_nic->rsw, count: 4, factor: 0.25}]\n") ==
        about(4 / 12.5));
  const model::Outcome dead =
      run(fabric() + job + "faults: [{kind: switch_down, switch: rsw:0, at: 1 s}]\n");
  CHECK(dead.variants[0].jobs[0].unfinished.has_value());
}

TEST_CASE("start-up alone takes the time of the protocol") {
  const model::Outcome outcome = run(fabric() + one("repeat: 1"));
  // Closed form of bootstrap_test, without latency: world and one group of 2.
  const workload::Communicators kinds[] = {{2, 1}, {2, 1}};
  const double expected = workload::job_bootstrap_time({}, kinds, Duration{}).total_s();
  CHECK(of(outcome).bootstrap_s == approx(expected).epsilon(1e-4));
  CHECK(of(outcome).start_s == of(outcome).bootstrap_s);
}

TEST_CASE("a trace that cannot show every checkpoint says so") {
  const auto notes = [](int steps) {
    const std::string text =
        fabric() + one(fmt::format("repeat: {}, checkpoint: {{bytes: 1 KB, every: 1}}", steps));
    const model::Outcome outcome = run(text);
    std::string out;
    for (const model::Note& note : outcome.variants[0].notes) out += note.text + "\n";
    return out;
  };
  CHECK(notes(20).find("front end") == std::string::npos);
  const std::string many = notes(1100);  // and the start
  CHECK_MESSAGE(many.find("shows the first 1000 of 1101") != std::string::npos, many);
}

TEST_CASE("jobs refuse what the front end cannot do") {
  const auto says = [&](const std::string& text, const std::string& what) {
    const auto file = model::parse_scenario(text, "test.yaml", {});
    REQUIRE(file.has_value());
    const auto outcome = run_scenario(*file, {});
    REQUIRE_FALSE(outcome.has_value());
    CHECK_MESSAGE(outcome.error().text().find(what) != std::string::npos, outcome.error().text());
  };
  says(fabric() + one("checkpoint: {bytes: 1 GB, every: 3}"), "add repeat: 3");
  says(fabric() + one("checkpoint: {bytes: 1 GB, mode: async}"), "copy_rate");
  says(fabric() + one("ingest: {bytes: 1 GB, prefetch: 0}"), "prefetch");
  says(fabric() + "engine: packet\n" + one("ingest: 1 MB"), "\"ingest:\"");
}

}  // namespace weft::plan
