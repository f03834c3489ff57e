#include "engine/packet_jobs/run.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/config.hpp"
#include "base/test_approx.hpp"
#include "engine/packet/packet_run.hpp"
#include "engine/packet_jobs/lowering.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::engine::packet {
namespace {

using workload::Op;

//   gpu - nic - rack switch - spines     one GPU a host
model::Fabric hosts_in_racks(std::uint32_t racks, std::uint32_t spines = 2,
                             std::uint32_t hosts = 1) {
  return model::testing::make_fabric(fmt::format(
      "{{generator: ai_zone, racks: {}, hosts_per_rack: {}, gpus_per_host: 1, spines: {}}}", racks,
      hosts, spines));
}

struct Collective {
  Op op = Op::all_reduce;
  std::string algorithm = "ring";
  double bytes = 1e6;
  std::uint32_t window = 1, iterations = 1;
  std::uint32_t first_gpu = 0, gpus = 4;
};

Job job_of(const model::Fabric& fabric, const Collective& c) {
  workload::Request request{.op = c.op,
                            .algorithm = c.algorithm,
                            .ranks = {},
                            .bytes = c.bytes,
                            .channels = 1,
                            .window = c.window,
                            .matrix = {}};
  const auto gpus = fabric.gpus().subspan(c.first_gpu, c.gpus);
  request.ranks.assign(gpus.begin(), gpus.end());
  auto traffic = workload::build_traffic(fabric, request);
  REQUIRE_MESSAGE(traffic.has_value(), (traffic ? "" : traffic.error().text()));
  Job job{.name = c.algorithm, .traffic = *std::move(traffic), .ranks = request.ranks};
  job.iterations = c.iterations;
  return job;
}

PacketEngine lossless() {
  PacketEngine options;
  options.options.pfc.on = true;
  options.options.window = 256_KiB;
  return options;
}

route::Router router_of(const model::Fabric& fabric, const route::RoutingConfig& config = {}) {
  auto router = route::Router::create(fabric, config, 1);
  REQUIRE(router.has_value());
  return *std::move(router);
}

RunResult run(const model::Fabric& fabric, std::span<const Job> jobs, const PacketEngine& options,
              std::span<const StateChange> changes = {}, const Watch& watch = {}) {
  route::Router router = router_of(fabric);
  auto result = options.run({jobs, {}}, router, changes, watch);
  REQUIRE_MESSAGE(result.has_value(), (result ? "" : result.error().text()));
  CHECK(result->packet->sent_bytes == result->packet->received_bytes +
                                          result->packet->dropped_bytes +
                                          result->packet->in_flight_bytes);
  return *std::move(result);
}

StateChange cut(const model::Fabric& fabric, model::CableId cable, Duration at) {
  StateChange change{Time{at.ps}, {}};
  auto yaml = parse_yaml("[{kind: link_down, link: \"" + fabric.name(cable) + "\"}]", "test.yaml");
  REQUIRE(yaml.has_value());
  auto timeline = model::read_faults(fabric, *yaml);
  REQUIRE(timeline.has_value());
  change.state = timeline->initial();
  return change;
}

TEST_CASE("ring: turns of whole packets over a path's latency") {
  const model::Fabric fabric = hosts_in_racks(4);
  const std::vector<Job> jobs{job_of(fabric, {.bytes = 4.0 * 256 * 4096})};
  const RunResult result = run(fabric, jobs, lossless());
  route::Router router = router_of(fabric);
  const double latency = router.latency(jobs[0].ranks[0], jobs[0].ranks[1]).seconds();
  const double packet = 4160 * 8 / 400e9;
  // Four links: 256 packets behind each other, the last over three more; 6 turns. On each link the
  // acknowledgements of what came the other way take their share.
  const double turn = (256 + 3) * packet + latency, acks = 256 * 64 * 8 / 400e9;
  const double time = result.jobs[0].iteration_s.at(0);
  CHECK(time >= 6 * turn);
  CHECK(time <= 6 * (turn + acks));
  CHECK(result.jobs[0].finished);
  CHECK(result.transfer_times.count() == 24);
  CHECK(result.jobs[0].stages.size() == 1);
  CHECK(result.packet->drops == 0);
  CHECK(result.packet->sent_bytes == 24 * 256 * 4096);
}

TEST_CASE("iterations that are like an earlier one are not simulated, and nothing shows it") {
  const model::Fabric fabric = hosts_in_racks(6, 1);
  const Collective kinds[] = {{.iterations = 5, .gpus = 6},
                              {.op = Op::all_to_all,
                               .algorithm = "pairwise",
                               .bytes = 6e5,
                               .window = 3,
                               .iterations = 4,
                               .gpus = 6},
                              {.algorithm = "halving_doubling", .iterations = 3, .gpus = 6}};
  for (const Collective& kind : kinds)
    for (const bool late : {false, true}) {
      std::vector<Job> jobs{job_of(fabric, kind)};
      jobs[0].start = Time{12'345};
      if (late) jobs[0].late.assign(6, 30_us);
      PacketEngine options = lossless();
      const RunResult on = run(fabric, jobs, options);
      options.memoise = Memoise::off;
      const RunResult off = run(fabric, jobs, options);
      CHECK(on.jobs[0].iteration_s == off.jobs[0].iteration_s);
      CHECK(on.jobs[0].end_s == off.jobs[0].end_s);
      CHECK(on.digest == off.digest);
      CHECK(on.link_bytes == off.link_bytes);
      CHECK(on.transfer_times.count() == off.transfer_times.count());
      CHECK(on.transfer_times.mean() == approx(off.transfer_times.mean()));
      CHECK(on.packet->hops == off.packet->hops);
      CHECK(on.packet->pause_frames == off.packet->pause_frames);
      CHECK(on.packet->sent_bytes == off.packet->sent_bytes);
      REQUIRE(on.packet->tiers.size() == off.packet->tiers.size());
      for (std::size_t t = 0; t < on.packet->tiers.size(); ++t)
        CHECK(on.packet->tiers[t].queue_histogram == off.packet->tiers[t].queue_histogram);
      REQUIRE(on.jobs[0].stages.size() == off.jobs[0].stages.size());
      for (std::size_t s = 0; s < on.jobs[0].stages.size(); ++s) {
        CHECK(on.jobs[0].stages[s].iteration == off.jobs[0].stages[s].iteration);
        CHECK(on.jobs[0].stages[s].start_s == approx(off.jobs[0].stages[s].start_s));
      }
      const std::uint64_t repeats = kind.iterations - (late ? 2 : 1);
      REQUIRE(on.notes.size() == 1);
      CHECK(on.notes[0].text.starts_with(std::to_string(repeats) + " of the "));
      CHECK(off.notes.empty());
    }
}

// The same iterations in one run, with a barrier between them: what "like new" leaves out are a few
// acknowledgements under way. With two messages of a rank at a time they take 1 % less than behind
// barriers, for a reason not found yet.
TEST_CASE("iterations one by one take as long as behind barriers in one run") {
  const model::Fabric fabric = hosts_in_racks(6, 1);
  for (const std::uint32_t window : {1u, 2u}) {
    CAPTURE(window);
    const Job job = job_of(fabric, {.op = Op::all_to_all,
                                    .algorithm = "pairwise",
                                    .bytes = 6e5,
                                    .window = window,
                                    .iterations = 3,
                                    .gpus = 6});
    route::Router router = router_of(fabric);
    MessageGraph graph;
    MessageId barrier = 0;
    std::vector<MessageId> barriers;
    for (std::uint32_t i = 0; i < 3; ++i) {
      const auto lowered =
          lower_collective({.traffic = job.traffic, .ranks = job.ranks}, router, graph);
      REQUIRE(lowered.has_value());
      // The others wait for the one before them in their rank's window.
      for (MessageId m = lowered->first[0]; i > 0 && m < lowered->first[0] + 6 * window; ++m)
        graph.wait(m, {barrier});
      std::vector<MessageEvent> ends;
      for (MessageId m = lowered->first[1]; m < lowered->first[2]; ++m) ends.push_back({m});
      barrier = graph.add_join(job.ranks[0], ends);
      barriers.push_back(barrier);
    }
    Progress silent("", 0, Progress::Show::never);
    const auto set = graph.take();
    const auto whole = run_messages(set, router, {}, lossless().options, silent);
    REQUIRE(whole.has_value());
    const RunResult apart = run(fabric, {&job, 1}, lossless());
    double start = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const double end = static_cast<double>(whole->messages[barriers[i]].arrived) * 1e-12;
      CHECK(apart.jobs[0].iteration_s[i] ==
            approx(end - start).epsilon(window == 1 ? 1e-3 : 0.011));
      start = end;
    }
  }
}

TEST_CASE("chance: every iteration draws anew, and a run gives the same again") {
  const model::Fabric fabric = hosts_in_racks(3, 2, 2);
  const std::vector<Job> jobs{job_of(fabric, {.op = Op::all_to_all,
                                              .algorithm = "pairwise",
                                              .bytes = 6e6,
                                              .window = 5,
                                              .iterations = 4,
                                              .gpus = 6})};
  PacketEngine options = lossless();
  options.options.balance = Balance::spray;
  const RunResult a = run(fabric, jobs, options), b = run(fabric, jobs, options);
  CHECK(a.digest == b.digest);
  CHECK(a.notes.empty());
  const auto& times = a.jobs[0].iteration_s;
  REQUIRE(times.size() == 4);
  CHECK(std::ranges::max(times) > std::ranges::min(times));
}

TEST_CASE("threads change nothing") {
  const model::Fabric fabric = hosts_in_racks(8, 4, 2);
  for (const char* algorithm : {"ring", "tree", "halving_doubling", "direct"}) {
    CAPTURE(std::string(algorithm));
    std::vector<Job> jobs{
        job_of(fabric, {.algorithm = algorithm, .bytes = 3e6, .iterations = 2, .gpus = 16})};
    jobs.push_back(job_of(fabric, {.op = Op::all_to_all,
                                   .algorithm = "pairwise",
                                   .bytes = 2e6,
                                   .window = 3,
                                   .iterations = 2,
                                   .gpus = 16}));
    PacketEngine options = lossless();
    const RunResult one = run(fabric, jobs, options);
    options.options.threads = 2;
    const RunResult two = run(fabric, jobs, options);
    CHECK(one.digest == two.digest);
    CHECK(one.link_bytes == two.link_bytes);
    CHECK(one.jobs[1].iteration_s == two.jobs[1].iteration_s);
  }
}

// Two GPUs exchange small messages for less than 400 us; from then on all fill their links.
TEST_CASE("the busiest interval is that of the job that fills its links") {
  const model::Fabric fabric = hosts_in_racks(8, 4, 2);
  const Watch watch{.name = "", .load_windows = 64};
  std::vector<Job> jobs{
      job_of(fabric, {.op = Op::all_gather, .bytes = 1.2e5, .iterations = 50, .gpus = 2}),
      job_of(fabric, {.op = Op::all_gather, .bytes = 16e6, .gpus = 16})};
  jobs[1].start = Time{(400_us).ps};
  const RunResult result = run(fabric, jobs, lossless(), {}, watch);
  CHECK(run(fabric, jobs, lossless()).digest == result.digest);  // looking on changes nothing
  REQUIRE(result.busiest.has_value());
  const BusyInterval& busy = *result.busiest;
  CHECK(result.jobs[0].end_s < 400e-6);
  CHECK(busy.from_s >= 400e-6 - result.makespan_s / 32);
  CHECK(busy.to_s <= result.makespan_s);
  CHECK(busy.to_s - busy.from_s >= result.makespan_s / 64 * (1 - 1e-9));
  CHECK(busy.to_s - busy.from_s <= result.makespan_s / 31);
  std::size_t nics_busy = 0;
  for (const model::LinkId link : fabric.links()) {
    const double most = fabric.rate(link).bytes_per_s() * (busy.to_s - busy.from_s);
    CHECK(busy.link_bytes[link.index()] <= most * 1.01);
    nics_busy += fabric.on_wire(link) && fabric.kind(fabric.from(link)) == model::NodeKind::nic &&
                         busy.link_bytes[link.index()] > 0.5 * most
                     ? 1
                     : 0;
  }
  CHECK(nics_busy == 16);
}

TEST_CASE("the busiest interval of iterations is the same whether they are simulated or known") {
  const model::Fabric fabric = hosts_in_racks(6, 1);
  std::vector<Job> jobs{job_of(fabric, {.iterations = 5, .gpus = 6})};
  jobs[0].start = Time{(20_us).ps};
  const Watch watch{.name = "", .load_windows = 64};
  PacketEngine options = lossless();
  const RunResult on = run(fabric, jobs, options, {}, watch);
  options.memoise = Memoise::off;
  const RunResult off = run(fabric, jobs, options, {}, watch);
  REQUIRE(on.busiest.has_value());
  REQUIRE(off.busiest.has_value());
  CHECK(on.digest == off.digest);
  CHECK(on.busiest->from_s == off.busiest->from_s);
  CHECK(on.busiest->link_bytes == off.busiest->link_bytes);
  CHECK(on.busiest->from_s > 19e-6);
}

TEST_CASE("a change of the fabric ends the likeness, and its own state has one of its own") {
  const model::Fabric fabric = hosts_in_racks(4, 1);
  std::vector<Job> jobs{job_of(fabric, {.bytes = 4e6, .iterations = 9})};
  // Degrading is exact in both engines; the spine's links to the third rack are at half rate.
  auto yaml = parse_yaml(
      "[{kind: link_degraded, link: \"rtsw:2--ctsw:0\", factor: 0.5, "
      "at: 400 us, until: 900 us}]",
      "test.yaml");
  REQUIRE(yaml.has_value());
  const auto timeline = model::read_faults(fabric, *yaml);
  REQUIRE_MESSAGE(timeline.has_value(), (timeline ? "" : timeline.error().text()));
  PacketEngine options = lossless();
  const RunResult on = run(fabric, jobs, options, timeline->snapshots);
  options.memoise = Memoise::off;
  const RunResult off = run(fabric, jobs, options, timeline->snapshots);
  CHECK(on.jobs[0].iteration_s == off.jobs[0].iteration_s);
  const auto& times = on.jobs[0].iteration_s;
  CHECK(std::ranges::max(times) > 1.7 * std::ranges::min(times));
  CHECK(times.front() == times.back());
  CHECK(!on.notes.empty());
}

TEST_CASE("jobs side by side each have their own times") {
  const model::Fabric fabric = hosts_in_racks(8, 2);
  std::vector<Job> jobs{
      job_of(fabric, {.bytes = 4e6, .iterations = 3}),
      job_of(fabric, {.algorithm = "tree", .bytes = 1e6, .iterations = 5, .first_gpu = 4})};
  jobs[1].start = Time{(100_us).ps};
  const RunResult both = run(fabric, jobs, lossless());
  const RunResult first = run(fabric, {&jobs[0], 1}, lossless());
  CHECK(both.jobs[0].iteration_s.size() == 3);
  CHECK(both.jobs[1].iteration_s.size() == 5);
  CHECK(both.jobs[0].finished);
  CHECK(both.jobs[1].finished);
  CHECK(both.jobs[1].stages.at(0).start_s == approx(100e-6));
  // Without a barrier, a rank may begin the next iteration early: at most as long as alone.
  CHECK(both.jobs[0].end_s <= 1.05 * first.jobs[0].end_s);
}

TEST_CASE("what does not finish is named, with the stage and the ends") {
  const model::Fabric fabric = hosts_in_racks(4, 1);
  const std::vector<Job> jobs{job_of(fabric, {.bytes = 4e6, .iterations = 3})};
  PacketEngine options = lossless();
  options.options.end = 100'000'000;  // ps
  const RunResult early = run(fabric, jobs, options);
  REQUIRE(!early.unfinished.empty());
  CHECK(early.unfinished[0].find("job ring, iteration 1, stage ring: a message of ") == 0);
  CHECK(!early.jobs[0].finished);
  CHECK(early.jobs[0].iteration_s.empty());
  REQUIRE(early.jobs[0].standstill.has_value());
  CHECK(std::abs(early.jobs[0].standstill->since_s - 100e-6) < 1e-12);
  CHECK(early.jobs[0].standstill->why.find("when transport.end stopped the run") !=
        std::string::npos);

  const auto cable = fabric.find_cable({"rtsw:2--ctsw:0", {}});
  REQUIRE(cable.has_value());
  const std::vector<StateChange> changes{{}, cut(fabric, *cable, 100_us)};
  const RunResult dead = run(fabric, jobs, lossless(), changes);
  REQUIRE(!dead.unfinished.empty());
  const bool says_so = std::ranges::any_of(dead.unfinished, [](const std::string& line) {
    return line.find("has no live path") != std::string::npos;
  });
  CHECK(says_so);
  REQUIRE(dead.jobs[0].standstill.has_value());
  CHECK(std::abs(dead.jobs[0].standstill->since_s - 100e-6) < 1e-12);
  CHECK(dead.jobs[0].standstill->why.find("has no live path to") != std::string::npos);
}

TEST_CASE("more messages than memory are refused, with the arithmetic") {
  const model::Fabric fabric = hosts_in_racks(64, 2);
  Collective c{.op = Op::all_to_all,
               .algorithm = "pairwise",
               .bytes = 1e6,
               .iterations = 100'000,
               .gpus = 32};
  const std::vector<Job> jobs{job_of(fabric, c), job_of(fabric, {.first_gpu = 32, .gpus = 32})};
  route::Router router = router_of(fabric);
  const auto result = lossless().run({jobs, {}}, router, {}, {});
  REQUIRE(!result.has_value());
  CHECK(result.error().text().find("million messages exceed the limit of the packet engine") !=
        std::string::npos);
  CHECK(result.error().text().find("engine: fluid") != std::string::npos);
}

}  // namespace
}  // namespace weft::engine::packet
