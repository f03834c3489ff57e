#include "observe/colltrace/network.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "observe/colltrace/records.hpp"
#include "observe/colltrace/test_edges.hpp"

namespace weft::observe::colltrace {
namespace {

using test::Bad;
using test::EdgeRun;
using test::EdgeWorld;

struct Judged {
  Job job;
  NetworkReport report;
};

Judged judge_run(const EdgeRun& run) {
  JobBuilder builder;
  std::vector<std::string> files(run.traces().size());
  for (std::size_t i = 0; i < files.size(); ++i) files[i] = fmt::format("{}.ring", i);
  REQUIRE(add_rings(run.traces(), files, builder).has_value());
  Job job = builder.finish();
  const Report report = analyse(job, {});
  const std::vector<model::NodeId> gpus = run.gpus();
  auto out = judge_network(
      job, report,
      {.fabric = run.fabric(), .gpus = gpus, .probes = &run.probes(), .counters = run.counters()});
  REQUIRE(out.has_value());
  return {std::move(job), std::move(*out)};
}

// What of a set of cases was right: network or not, the part, and what was said with certainty.
struct NetworkScore {
  int cases = 0, kind_right = 0, sure = 0, sure_right = 0;
  int links = 0, link_first = 0, cards = 0, card_first = 0, sound = 0, sound_right = 0;

  void add(const EdgeRun& run, Bad bad, const NetworkReport& r) {
    const double best = std::max({r.network, r.compute, r.load, r.nothing});
    const double truth = bad == Bad::none   ? r.nothing
                         : bad == Bad::rank ? r.compute
                         : bad == Bad::load ? r.network + r.load  // without counters, either
                                            : r.network;
    const bool right = bad == Bad::load ? truth > 0.5 : truth == best;
    ++cases;
    kind_right += right;
    sure += best > 0.9 || (bad == Bad::load && truth > 0.9);
    sure_right += (best > 0.9 || (bad == Bad::load && truth > 0.9)) && right;
    const Suspect& first = r.suspects.front();
    const bool is_link = bad == Bad::up || bad == Bad::down;
    links += is_link;
    link_first += is_link && (first.entity == model::entity(run.bad_link()) ||
                              first.entity == model::entity(cable_of(run.bad_link())));
    cards += bad == Bad::card;
    const auto its_cable =
        bad == Bad::card ? cable_of(run.fabric().out(run.bad_nic()).front()) : model::CableId();
    card_first += bad == Bad::card && (first.entity == model::entity(run.bad_nic()) ||
                                       first.entity == model::entity(its_cable));
    sound += bad == Bad::none;
    sound_right += bad == Bad::none && right;
  }
  std::string text() const {
    return fmt::format("{}/{} kind, {}/{} sure, link {}/{}, card {}/{}, sound {}/{}", kind_right,
                       cases, sure_right, sure, link_first, links, card_first, cards, sound_right,
                       sound);
  }
};

NetworkScore score_of(EdgeWorld world, int seeds, std::uint64_t first_seed) {
  NetworkScore out;
  for (const Bad bad : {Bad::none, Bad::card, Bad::up, Bad::down, Bad::rank, Bad::load})
    for (int s = 0; s < seeds; ++s) {
      world.bad = bad;
      const EdgeRun run(
          world, first_seed + static_cast<std::uint64_t>(s) * 6 + static_cast<std::uint64_t>(bad));
      const Judged judged = judge_run(run);
      out.add(run, bad, judged.report);
    }
  return out;
}

TEST_CASE("figures of the page: is it the network?" * doctest::skip()) {
  for (int mode = 0; mode < 8; ++mode) {
    EdgeWorld world;
    world.has_edges = mode >= 2;
    world.has_probes = mode == 1 || mode >= 3;
    world.has_counters = mode == 4 || mode == 5;
    world.channels = mode == 5 ? 4 : 2;
    if (mode >= 6) world.shows_loss = mode - 6;  // no fault shows in probes; all do
    fmt::print("{} ranks, {}{}{}, {} channels, {} of faults lose probes: {}\n",
               world.racks * world.hosts_per_rack * world.gpus,
               world.has_edges ? "edges" : "groups", world.has_probes ? ", probes" : "",
               world.has_counters ? ", counters" : "", world.channels, world.shows_loss,
               score_of(world, 40, 7777).text());
  }
}

TEST_CASE("one bad part of a fabric: network or not, and which") {
  const auto seeds = static_cast<int>(test_effort(8));
  const NetworkScore s = score_of({.channels = 4, .has_counters = true}, seeds, 1);
  CAPTURE(s.text());
  CHECK(s.sure_right * 100 >= s.sure * 98);
  if (seeds < 8) return;  // sanitizers: too few for shares
  CHECK(s.kind_right * 100 >= s.cases * 97);
  CHECK(s.sure * 2 > s.cases);
  CHECK(s.link_first * 10 >= s.links * 9);
  CHECK(s.card_first * 10 >= s.cards * 9);
}

TEST_CASE("a fabric on which everything is equally slow shows against the cost model") {
  const Judged sound = judge_run(EdgeRun({.channels = 1, .has_probes = false}, 5));
  REQUIRE(sound.report.expected.size() == 1);
  CHECK(sound.report.expected[0].groups == 8);
  // The world's ring: 2 (n - 1) / n of the bytes at 400 Gbps. The model has NCCL's overheads.
  CHECK(sound.report.expected[0].ratio() == approx(1).epsilon(0.15));
  CHECK(sound.report.slow_fabric == 0);
  const Judged slow =
      judge_run(EdgeRun({.channels = 1, .fabric_factor = 1.6, .has_probes = false}, 5));
  CHECK(slow.report.slow_fabric / sound.report.expected[0].ratio() == approx(1.6).epsilon(0.02));
  CHECK(slow.report.nothing > 0.5);  // no part differs from its like
}

TEST_CASE("what was found is a record that names part and job") {
  const EdgeRun run({.channels = 4, .bad = Bad::down, .shows_loss = 1}, 3);
  const Judged judged = judge_run(run);
  const model::RecordSet records = to_records(run.fabric(), judged.job, "llama", judged.report);
  REQUIRE(records.rows.size() == 1);
  CHECK(records.rows[0].entity == model::entity(run.bad_link()));
  CHECK(records.rows[0].kind == model::EventKind::job_slow);
  CHECK(records.attribute(records.rows[0], "job") == "llama");
  const Judged sound = judge_run(EdgeRun({}, 4));
  CHECK(to_records(run.fabric(), sound.job, "llama", sound.report).rows.empty());
}

TEST_CASE("ranks without a place are refused") {
  const Job job{.world = 4};
  const EdgeRun run({.racks = 2, .operations = 1, .has_probes = false}, 1);
  CHECK(!judge_network(job, {}, {.fabric = run.fabric(), .gpus = {}}));
  // Places, and nothing to compare.
  const auto gpus = run.gpus();
  const auto nothing = judge_network(job, {}, {.fabric = run.fabric(), .gpus = gpus});
  REQUIRE(nothing.has_value());
  CHECK(!nothing->is_judged);
}

}  // namespace
}  // namespace weft::observe::colltrace
