#include "observe/colltrace/network.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/test_effort.hpp"
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
  auto out = judge_network(job, report,
                           {.fabric = run.fabric(),
                            .gpus = gpus,
                            .probes = &run.probes(),
                            .counters = run.counters()});
  REQUIRE(out.has_value());
  return {std::move(job), std::move(*out)};
}

// What of a set of cases was right: network or not, the part, and what was said with certainty.
struct Score {
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

Score score_of(EdgeWorld world, int seeds, std::uint64_t first_seed) {
  Score out;
  for (const Bad bad : {Bad::none, Bad::card, Bad::up, Bad::down, Bad::rank, Bad::load})
    for (int s = 0; s < seeds; ++s) {
      world.bad = bad;
      const EdgeRun run(world, first_seed + static_cast<std::uint64_t>(s) * 6 +
                                   static_cast<std::uint64_t>(bad));
      const Judged judged = judge_run(run);
      out.add(run, bad, judged.report);
    }
  return out;
}

TEST_CASE("figures of the page: is it the network?" * doctest::skip()) {
  for (const bool is_large : {false, true})
    for (int mode = 0; mode < 6; ++mode) {
      EdgeWorld world;
      if (is_large) {
        world.racks = 64;
        world.spines = 18;
        world.gpus = 4;
        world.operations = 16;
      }
      world.has_edges = mode != 0 && mode != 1;
      world.has_probes = mode == 1 || mode == 3 || mode == 5 || mode == 4;
      world.has_counters = mode >= 4;
      world.channels = mode == 5 ? 4 : 2;
      const Score score = score_of(world, is_large ? 10 : 40, 7777);
      MESSAGE((is_large ? "512 ranks " : "64 ranks ")
              << (world.has_edges ? "edges " : "groups ") << (world.has_probes ? "probes " : "")
              << (world.has_counters ? "counters " : "") << world.channels << ": " << score.text());
    }
}

}  // namespace
}  // namespace weft::observe::colltrace
