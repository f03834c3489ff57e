#include "engine/fluid/job_run.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "engine/fluid/stage.hpp"
#include "engine/fluid/test_kit.hpp"

namespace weft::engine::fluid {
namespace {

using workload::Op;

using testing::faults_of;
using testing::make_fabric;

// n racks of one host with one GPU: every edge of a ring crosses the network.
Fabric ring_fabric(int ranks) {
  return make_fabric("{generator: ai_zone, racks: " + std::to_string(ranks) +
                     ", hosts_per_rack: 1, gpus_per_host: 1, spines: 4, link: 400 Gbps, "
                     "latency: 0 s}");
}

struct Case {
  const Fabric& fabric;
  workload::Request request;
  std::vector<StateChange> changes;
  std::map<std::size_t, Duration> late;  // by rank
  std::string scheme = "spray";          // no collisions of its own
};

std::vector<NodeId> all_gpus(const Fabric& fabric) {
  return {fabric.gpus().begin(), fabric.gpus().end()};
}

Router make_router(const Case& c) {
  auto router = Router::create(c.fabric, {.scheme = c.scheme}, 1);
  REQUIRE_MESSAGE(router.has_value(), (router ? "" : router.error().text()));
  return *std::move(router);
}

// As the engine runs it: coupled chains, lazy exchanges.
JobResult run_coupled(const Case& c) {
  auto traffic = workload::build_traffic(c.fabric, c.request);
  REQUIRE_MESSAGE(traffic.has_value(), (traffic ? "" : traffic.error().text()));
  Job job{.name = "job", .traffic = *std::move(traffic), .ranks = c.request.ranks};
  if (!c.late.empty()) job.late.assign(c.request.ranks.size(), Duration{});
  for (const auto& [rank, by] : c.late) job.late[rank] = by;
  Router router = make_router(c);
  Progress silent("", 0, Progress::Show::never);
  JobRunResult result = run_jobs({&job, 1}, {}, router, c.changes, {}, silent);
  REQUIRE(result.jobs[0].finished);
  return result.jobs[0];
}

// What a message waits for: its sender's start, and all of `after`.
struct Step {
  std::uint32_t from_rank;
  NodeId from, to;
  double bytes;
  std::vector<std::size_t> after;
};

// In each turn every rank sends what it got in the turn before.
std::vector<Step> ring_steps(const workload::Request& request) {
  const std::size_t n = request.ranks.size();
  const std::size_t turns = (request.op == Op::all_reduce ? 2 : 1) * (n - 1);
  std::vector<Step> steps;
  for (std::size_t m = 0; m < turns * n; ++m) {
    const std::size_t i = m % n;
    steps.push_back({static_cast<std::uint32_t>(i),
                     request.ranks[i],
                     request.ranks[(i + 1) % n],
                     request.bytes / static_cast<double>(n),
                     {}});
    if (m >= n) steps.back().after = {m - n, m - n - i + (i + n - 1) % n};
  }
  return steps;
}

// A round is open at both ends when all that these two sent and got, `window` rounds before, is
// there.
void append_exchange(const workload::Exchange& exchange, std::vector<Step>& steps) {
  const std::uint32_t n = exchange.size(), first = exchange.first_round;
  const std::uint32_t window = std::min(exchange.window, exchange.round_count());
  const std::size_t base = steps.size();
  for (std::uint32_t round = first; round < exchange.end_round; ++round)
    for (std::uint32_t from = 0; from < n; ++from) {
      const std::uint32_t to = exchange.receiver(from, round);
      Step step{from, exchange.ranks[from], exchange.ranks[to], exchange.bytes(from, to), {}};
      for (std::uint32_t before = first; before + window <= round; ++before)
        for (const std::uint32_t rank : {from, to})
          for (const std::uint32_t sender : {rank, exchange.sender(rank, before)})
            step.after.push_back(base + std::size_t{before - first} * n + sender);
      steps.push_back(std::move(step));
    }
}

// Message by message: each one is a transfer of its own that waits for what it depends on.
class MessageRun final : Network::Client {
 public:
  MessageRun(std::vector<Step> steps, Network& network, const Case& c)
      : steps_(std::move(steps)),
        network_(network),
        late_(c.late),
        ranks_(static_cast<std::uint32_t>(c.request.ranks.size())),
        missing_(steps_.size(), 1),  // its sender
        dependents_(steps_.size()) {
    for (std::size_t m = 0; m < steps_.size(); ++m)
      for (const std::size_t before : steps_[m].after) {
        ++missing_[m];
        dependents_[before].push_back(m);
      }
  }
  double run() {
    for (std::uint32_t r = 0; r < ranks_; ++r)
      network_.timer(late_.contains(r) ? late_.at(r).seconds() : 0, r);
    network_.run(*this);
    REQUIRE(ended_ == steps_.size());
    return network_.now();
  }

 private:
  void on_timer(std::uint64_t rank) override {
    for (std::size_t m = 0; m < steps_.size(); ++m)
      if (steps_[m].from_rank == rank) release(m);
  }
  void release(std::size_t m) {
    if (--missing_[m] > 0) return;
    const Part part{steps_[m].from, steps_[m].to, 0, 1, 0, 1};
    network_.send({.parts = {&part, 1}, .bytes = steps_[m].bytes, .tag = m});
  }
  void on_delivered(std::uint64_t tag) override {
    ++ended_;
    for (const std::size_t next : dependents_[tag]) release(next);
  }

  std::vector<Step> steps_;
  Network& network_;
  std::map<std::size_t, Duration> late_;
  std::uint32_t ranks_;
  std::vector<std::uint32_t> missing_;
  std::vector<std::vector<std::size_t>> dependents_;
  std::size_t ended_ = 0;
};

double run_messages(const Case& c) {
  std::vector<Step> steps;
  if (c.request.op == Op::all_to_all) {
    const auto traffic = workload::build_traffic(c.fabric, c.request);
    REQUIRE(traffic.has_value());
    for (const auto& exchange : traffic->stages[0].exchanges) append_exchange(exchange, steps);
  } else {
    REQUIRE(c.request.algorithm == "ring");
    steps = ring_steps(c.request);
  }
  Router router = make_router(c);
  Network network(router, c.changes, {});
  return MessageRun(std::move(steps), network, c).run();
}

}  // namespace

TEST_CASE("a ring equals its closed form, and its messages one by one") {
  for (const int n : {2, 3, 8, 32}) {
    const Fabric fabric = ring_fabric(n);
    for (const Op op : {Op::all_reduce, Op::all_gather, Op::reduce_scatter}) {
      const Case c{
          fabric,
          {.op = op, .algorithm = "ring", .ranks = all_gpus(fabric), .bytes = 64e6, .channels = 1}};
      const double passes = op == Op::all_reduce ? 2 : 1;
      const double closed = passes * (n - 1) / n * 64e6 / 50e9;
      CAPTURE(n);
      CHECK(run_coupled(c).iteration_s[0] == approx(closed).epsilon(1e-9));
      CHECK(run_messages(c) == approx(closed).epsilon(1e-9));
    }
  }
}

TEST_CASE("a half-rate link: the coupled ring equals the messages") {
  for (const int n : {4, 16, 64}) {
    const Fabric fabric = ring_fabric(n);
    const Case c{
        fabric,
        {.op = Op::all_reduce,
         .algorithm = "ring",
         .ranks = all_gpus(fabric),
         .bytes = 64e6,
         .channels = 1},
        faults_of(fabric, "[{kind: link_degraded, link: \"nic:1--rtsw:1\", factor: 0.5}]")};
    const double coupled = run_coupled(c).iteration_s[0];
    CAPTURE(n);
    CHECK(coupled == approx(2.0 * 2 * (n - 1) / n * 64e6 / 50e9).epsilon(1e-9));
    CHECK(coupled == approx(run_messages(c)).epsilon(1e-9));
  }
}

TEST_CASE("a late rank, alone and with a half-rate link: the coupled ring equals the messages") {
  Rng rng = Rng(5).stream("late");
  for (const int n : {4, 16, 48}) {
    const Fabric fabric = ring_fabric(n);
    for (int round = 0; round < 6; ++round) {
      Case c{fabric,
             {.op = round % 2 == 0 ? Op::all_reduce : Op::all_gather,
              .algorithm = "ring",
              .ranks = all_gpus(fabric),
              .bytes = 64e6,
              .channels = 1}};
      // From a fraction of a chunk to more than the whole operation.
      c.late[rng.below(static_cast<std::uint64_t>(n))] =
          from_seconds(std::pow(10, -5 + 3 * rng.uniform()));
      if (round >= 2)
        c.changes =
            faults_of(fabric, "[{kind: link_degraded, link: \"nic:2--rtsw:2\", factor: 0.5}]");
      CAPTURE(n);
      CAPTURE(round);
      CHECK(run_coupled(c).iteration_s[0] == approx(run_messages(c)).epsilon(1e-9));
    }
  }
}

TEST_CASE("an exchange equals its enumerated flows") {
  // Two hosts a rack under plain ECMP: collisions, shared receivers and NVLink all matter.
  const Fabric fabric = make_fabric(
      "{generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 4, spines: 6, "
      "link: 400 Gbps, latency: 0 s}");
  for (const std::uint32_t window : {1u, 3u, 40u}) {
    const Case c{fabric,
                 {.op = Op::all_to_all,
                  .algorithm = "pairwise",
                  .ranks = all_gpus(fabric),
                  .bytes = 32e6,
                  .window = window},
                 {},
                 {},
                 "ecmp"};
    CAPTURE(window);
    const JobResult coupled = run_coupled(c);
    CHECK(coupled.iteration_s[0] == approx(run_messages(c)).epsilon(1e-9));
  }
}

TEST_CASE("rounds keep receivers from being overrun: no more than `window` senders at a time") {
  const Fabric fabric = ring_fabric(16);
  for (const std::uint32_t window : {1u, 4u}) {
    const Case c{fabric,
                 {.op = Op::all_to_all,
                  .algorithm = "pairwise",
                  .ranks = all_gpus(fabric),
                  .bytes = 16e6,
                  .window = window}};
    CHECK(run_coupled(c).iteration_s[0] == approx(15e6 / 50e9).epsilon(1e-9));
  }
}

TEST_CASE("a late rank holds up an exchange by its delay at most") {
  const Fabric fabric = ring_fabric(8);
  Case c{fabric,
         {.op = Op::all_to_all, .algorithm = "pairwise", .ranks = all_gpus(fabric), .bytes = 8e6}};
  const double on_time = run_coupled(c).iteration_s[0];
  c.late[3] = 50_us;
  const double late = run_coupled(c).iteration_s[0];
  CHECK(late > on_time);
  CHECK(late <= on_time + 50e-6 * (1 + 1e-9));
}

TEST_CASE("perfect spray and the optimal split reach the roofline on a healthy zone") {
  const Fabric fabric = make_fabric(
      "{generator: ai_zone, racks: 8, hosts_per_rack: 2, gpus_per_host: 8, spines: 18, "
      "link: 400 Gbps, latency: 0 s}");
  for (const char* scheme : {"spray", "optimal"})
    for (const Op op : {Op::all_reduce, Op::all_gather, Op::reduce_scatter, Op::all_to_all}) {
      const Case c{fabric,
                   {.op = op, .ranks = all_gpus(fabric), .bytes = 1e9, .window = 128},
                   {},
                   {},
                   scheme};
      auto traffic = workload::build_traffic(fabric, c.request);
      REQUIRE(traffic.has_value());
      Router router = make_router(c);
      const Job job{.name = "job", .traffic = *traffic, .ranks = c.request.ranks};
      CAPTURE(scheme);
      CAPTURE(workload::to_text(op));
      CHECK(run_coupled(c).iteration_s[0] / traffic_floor(job.traffic, job.step_overhead, job.cost,
                                                          router, PathChoice::shortest)
                                                .seconds() ==
            approx(1).epsilon(0.005));
    }
}

TEST_CASE("iterations repeat, jobs interfere, results do not depend on the run") {
  const Fabric fabric = ring_fabric(8);
  const auto run = [&] {
    std::vector<Job> jobs;
    for (int j = 0; j < 2; ++j) {
      workload::Request request{.op = Op::all_gather,
                                .algorithm = "ring",
                                .ranks = all_gpus(fabric),
                                .bytes = 8e6,
                                .channels = 1};
      jobs.push_back({.name = "j" + std::to_string(j),
                      .traffic = *workload::build_traffic(fabric, request),
                      .ranks = request.ranks,
                      .iterations = 3});
    }
    auto router = Router::create(fabric, {.scheme = "spray"}, 1);
    Progress silent("", 0, Progress::Show::never);
    return run_jobs(jobs, {}, *router, {}, {}, silent);
  };
  const JobRunResult a = run(), b = run();
  CHECK(a.digest == b.digest);
  CHECK(a.jobs[0].iteration_s.size() == 3);
  // Two rings on the same links: each at half rate.
  CHECK(a.jobs[0].iteration_s[0] == approx(2 * 7.0 / 8 * 8e6 / 50e9).epsilon(1e-9));
}

TEST_CASE("a job whose rank is cut off is reported, not lost") {
  const Fabric fabric = ring_fabric(4);
  workload::Request request{.op = Op::all_reduce, .ranks = all_gpus(fabric), .bytes = 1e6};
  const Job job{
      .name = "cut", .traffic = *workload::build_traffic(fabric, request), .ranks = request.ranks};
  auto router = Router::create(fabric, {}, 1);
  Progress silent("", 0, Progress::Show::never);
  const auto changes = faults_of(fabric, "[{kind: switch_down, switch: \"rtsw:2\"}]");
  const JobRunResult result = run_jobs({&job, 1}, {}, *router, changes, {}, silent);
  CHECK_FALSE(result.jobs[0].finished);
  REQUIRE(!result.unfinished.empty());
  CHECK(result.unfinished[0].find("job cut") != std::string::npos);
  REQUIRE(result.jobs[0].standstill.has_value());
  CHECK(result.jobs[0].standstill->since_s == 0);
  CHECK(result.jobs[0].standstill->why.find("has no live path to") != std::string::npos);
}

TEST_CASE("a job is stalled since its last path went, whatever else changes after") {
  const Fabric fabric = ring_fabric(4);
  workload::Request request{.op = Op::all_reduce, .ranks = all_gpus(fabric), .bytes = 50e6};
  const Job job{.name = "cut",
                .traffic = *workload::build_traffic(fabric, request),
                .ranks = request.ranks,
                .iterations = 10};
  Progress silent("", 0, Progress::Show::never);
  const auto with = [&](std::string_view faults) {
    auto router = Router::create(fabric, {.scheme = "spray"}, 1);
    return run_jobs({&job, 1}, {}, *router, faults_of(fabric, faults), {}, silent);
  };
  // An iteration takes 2 x 3/4 x 1 ms; a rack goes for good in the fourth, comes back in another.
  const JobRunResult dead = with(
      "[{kind: switch_down, switch: rtsw:1, at: 5 ms},"
      " {kind: link_down, link: \"rtsw:2--ctsw:0\", at: 2 s}]");
  CHECK(dead.jobs[0].iteration_s.size() == 3);
  REQUIRE(dead.jobs[0].standstill.has_value());
  CHECK(std::abs(dead.jobs[0].standstill->since_s - 5e-3) < 1e-9);
  CHECK(std::abs(dead.makespan_s - 5e-3) < 1e-9);
  const JobRunResult twice = with(
      "[{kind: switch_down, switch: rtsw:1, at: 1 ms, until: 2 ms},"
      " {kind: switch_down, switch: rtsw:1, at: 7 ms}]");
  CHECK(std::abs(twice.jobs[0].standstill->since_s - 7e-3) < 1e-9);
  CHECK_FALSE(with("[{kind: switch_down, switch: rtsw:1, at: 1 ms, until: 2 ms}]")
                  .jobs[0]
                  .standstill.has_value());
}

TEST_CASE("a state that changes before the first byte finds the pools that were asked for") {
  const Fabric fabric = make_fabric(
      "{generator: ai_zone, racks: 16, hosts_per_rack: 2, gpus_per_host: 8, spines: 16, "
      "latency: 10 us}");
  Case c{fabric,
         {.op = Op::all_reduce,
          .algorithm = "ring",
          .ranks = all_gpus(fabric),
          .bytes = 64e6,
          .channels = 1},
         faults_of(fabric, "[{kind: switch_down, switch: \"ctsw:1\", at: 2 us}]"),
         {},
         "optimal"};
  const double late = run_coupled(c).iteration_s[0];
  c.changes = faults_of(fabric, "[{kind: switch_down, switch: \"ctsw:1\"}]");
  CHECK(late == approx(run_coupled(c).iteration_s[0]).epsilon(1e-6));
}

TEST_CASE("the completion histogram is good to 1 %") {
  TimeHistogram histogram;
  for (int i = 1; i <= 1000; ++i) histogram.add(i * 1e-6);
  CHECK(histogram.quantile(0.5) == approx(500e-6).epsilon(0.01));
  CHECK(histogram.quantile(1) == approx(1000e-6).epsilon(0.01));
  CHECK(histogram.mean() == approx(500.5e-6));
}

TEST_CASE("the busiest interval is that of the job that fills its links") {
  // 4 GPUs of 50 GB/s. For 10 ms two of them fill their links. From 20 ms on all do, for 4.5 ms.
  const Fabric fabric = ring_fabric(4);
  const Case c{fabric, {.ranks = all_gpus(fabric)}, {}, {}};
  const auto job = [&](Op op, std::vector<NodeId> ranks, double bytes, Duration start) {
    auto traffic = workload::build_traffic(
        fabric, {.op = op, .algorithm = "ring", .ranks = ranks, .bytes = bytes});
    REQUIRE_MESSAGE(traffic.has_value(), (traffic ? "" : traffic.error().text()));
    return Job{.name = "job",
               .traffic = *std::move(traffic),
               .ranks = std::move(ranks),
               .start = Time{} + start};
  };
  const std::vector<NodeId> two{fabric.gpus()[0], fabric.gpus()[1]};
  const std::vector<Job> jobs{job(Op::all_gather, two, 1e9, Duration{}),
                              job(Op::all_gather, all_gpus(fabric), 3e8, 20'000_us)};
  Router router = make_router(c);
  Progress silent("", 0, Progress::Show::never);
  const auto run = [&](std::size_t most) {
    return run_jobs(jobs, {}, router, {}, {.simulation = {.load_windows = most}}, silent);
  };
  CHECK(!run(0).busiest.has_value());
  const JobRunResult result = run(64);
  REQUIRE(result.busiest.has_value());
  const BusyInterval& busy = *result.busiest;
  CHECK(busy.to_s - busy.from_s > result.makespan_s / 64 * (1 - 1e-9));
  CHECK(busy.to_s - busy.from_s < result.makespan_s / 32);
  CHECK(busy.from_s >= 0.02);
  CHECK(busy.to_s <= result.makespan_s);
  for (const LinkId link : fabric.links())
    if (fabric.kind(fabric.from(link)) == model::NodeKind::nic && fabric.on_wire(link))
      CHECK(busy.link_bytes[link.index()] ==
            approx(50e9 * (busy.to_s - busy.from_s)).epsilon(1e-4));
  CHECK(run(64).digest == run(0).digest);  // looking on changes nothing
}

}  // namespace weft::engine::fluid
