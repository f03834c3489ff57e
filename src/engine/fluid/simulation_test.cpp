#include "engine/fluid/simulation.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/rng.hpp"
#include "base/test_approx.hpp"

namespace weft::engine::fluid {
namespace {

struct Log final : Simulation::Listener {
  std::vector<std::pair<std::uint64_t, double>> ends;
  std::map<std::uint64_t, std::function<void()>> timers;
  std::function<void(std::uint64_t)> on_end = [](std::uint64_t) {};
  Simulation* sim = nullptr;
  void on_flow_end(FlowId, std::uint64_t tag) override {
    ends.emplace_back(tag, sim->now());
    on_end(tag);
  }
  void on_timer(std::uint64_t tag) override { timers.at(tag)(); }
};

const std::vector<Hop> first{{LinkId(0), 1}};
const std::vector<Hop> second{{LinkId(1), 1}};

}  // namespace

TEST_CASE("two flows share, then the longer one speeds up") {
  const std::vector<double> capacity{10};
  Simulation sim(capacity, {});
  Log log;
  log.sim = &sim;
  sim.start(first, 10, 1);
  sim.start(first, 30, 2);
  sim.run(log);
  REQUIRE(log.ends.size() == 2);
  CHECK(log.ends[0] == std::pair<std::uint64_t, double>(1, 2));
  CHECK(log.ends[1].second == approx(4));
  CHECK(sim.carried()[0] == approx(40));
}

TEST_CASE("an empty flow and one without hops end where they start") {
  const std::vector<double> capacity{10, 0};
  Simulation sim(capacity, {});
  Log log;
  log.sim = &sim;
  sim.start(first, 0, 1);
  sim.start({}, 1e9, 2);
  sim.start(second, 0, 3);  // nothing to send: no need of capacity
  sim.run(log);
  CHECK(log.ends.size() == 3);
  CHECK(log.ends.back().second == 0);
}

TEST_CASE("a dead link stalls its flow; moving it resends what was lost") {
  const std::vector<double> capacity{10, 10};
  Simulation sim(capacity, {});
  Log log;
  log.sim = &sim;
  const FlowId flow = sim.start(first, 100, 1);
  log.timers[1] = [&] { sim.set_capacity(LinkId(0), 0); };
  log.timers[2] = [&] {
    CHECK(sim.bytes_left(flow) == approx(50));
    sim.move(flow, second, 5);
  };
  sim.timer(5, 1);
  sim.timer(8, 2);
  sim.run(log);
  CHECK(log.ends.at(0).second == approx(8 + 5.5));
  CHECK(sim.carried()[0] == approx(50));
  CHECK(sim.carried()[1] == approx(55));
}

TEST_CASE("a flow without capacity stays active and is not lost") {
  const std::vector<double> capacity{0};
  Simulation sim(capacity, {});
  Log log;
  log.sim = &sim;
  sim.start(first, 1, 1);
  sim.run(log);
  CHECK(log.ends.empty());
  CHECK(sim.active_count() == 1);
}

TEST_CASE("what is started in answer to an end begins at that instant") {
  const std::vector<double> capacity{10};
  Simulation sim(capacity, {});
  Log log;
  log.sim = &sim;
  log.on_end = [&](std::uint64_t tag) {
    if (tag < 5) sim.start(first, 10, tag + 1);
  };
  sim.start(first, 10, 1);
  sim.run(log);
  CHECK(log.ends.size() == 5);
  CHECK(log.ends.back().second == approx(5));
}

TEST_CASE("timers go off by time, those of one time in the order in which they were set") {
  struct Order final : Simulation::Listener {
    Simulation* sim = nullptr;
    std::vector<std::pair<double, std::uint64_t>> set, seen;
    void on_flow_end(FlowId, std::uint64_t) override {}
    void add(double at) {
      sim->timer(at, set.size());
      set.emplace_back(at, set.size());
    }
    void on_timer(std::uint64_t tag) override {
      seen.emplace_back(sim->now(), tag);
      if (set.size() < 20'000) add(sim->now() + static_cast<double>(tag % 3));
    }
  };
  Simulation sim(std::vector<double>{}, {});
  Order order;
  order.sim = &sim;
  for (std::uint32_t i = 0; i < 10'000; ++i)
    order.add(i * 7919 % 3001 + 1);  // more times than 1,024
  sim.run(order);
  std::ranges::sort(order.set);
  CHECK(order.seen == order.set);
}

TEST_CASE("random runs: bytes are conserved, audits agree, reruns are identical") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto once = [&] {
      Rng rng = Rng(seed).stream("runs");
      const std::vector<double> capacity(30, 1e9);
      Simulation sim(capacity, {.solver = {}, .audit_every = 3});
      Log log;
      log.sim = &sim;
      double crossings = 0;
      const auto start = [&](std::uint64_t tag) {
        std::vector<Hop> path;
        for (std::uint64_t h = 0; h < 4; ++h)
          path.push_back({LinkId(static_cast<std::size_t>(h * 7 + rng.below(7))), 1});
        const double bytes = static_cast<double>(1 + rng.below(64)) * 16e6;
        crossings += 4 * bytes;
        sim.start(path, bytes, tag);
      };
      for (std::uint64_t i = 0; i < 60; ++i) start(i);
      log.on_end = [&](std::uint64_t tag) {
        if (tag < 200) start(tag + 60);
      };
      sim.run(log);
      double carried = 0;
      for (const double bytes : sim.carried()) carried += bytes;
      CHECK(carried == approx(crossings).epsilon(1e-12));
      CHECK(sim.rate_error() < 1e-9);
      CHECK(sim.active_count() == 0);
      return log.ends;
    };
    CHECK(once() == once());
  }
}

// A link is full while anything is under way over it. So the second hand is a queue that works
// without a pause: what it carries in an interval is its capacity times the time it is busy there.
TEST_CASE("bytes by interval are those of 100 runs of links that are full while they are busy") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed);
    constexpr std::size_t most = 8, links = 3;
    const std::vector<double> capacity(links, 10);
    Simulation sim(capacity, {.load_windows = most});
    Log log;
    log.sim = &sim;
    std::vector<std::vector<std::pair<double, double>>> busy(links);  // from, to; ascending
    double at = 0, last = 0;
    const std::uint64_t flows = 1 + rng.below(40);
    for (std::uint64_t f = 0; f < flows; ++f) {
      // Now and then nothing for long, or a change of speed by orders of magnitude.
      at += rng.below(8) == 0 ? 50 * rng.uniform() : rng.uniform() * (seed % 2 == 0 ? 0.01 : 1);
      const std::size_t link = rng.below(links);
      const double bytes = 20 * rng.uniform();
      log.timers[f] = [&sim, link, bytes, f] {
        sim.start(std::vector{Hop{LinkId(link), 1}}, bytes, f);
      };
      sim.timer(at, f);
      if (busy[link].empty() || busy[link].back().second < at) busy[link].push_back({at, at});
      last = std::max(last, busy[link].back().second += bytes / capacity[link]);
    }
    sim.timer(last + 1'000, 99);  // a change of the fabric after everything
    log.timers[99] = [] {};
    sim.run(log);
    const LoadWindows& windows = sim.windows();
    CAPTURE(seed);
    CHECK(windows.size() <= most);
    CHECK(windows.size() >= most / 2);
    CHECK(static_cast<double>(windows.size() + 1) * windows.width_s() >= last * (1 - 1e-9));
    for (std::size_t i = 0; i < windows.size(); ++i)
      for (std::size_t link = 0; link < links; ++link) {
        const double from = windows.width_s() * static_cast<double>(i);
        double expected = 0;
        for (const auto& [a, b] : busy[link])
          expected += 10 * std::max(0.0, std::min(b, from + windows.width_s()) - std::max(a, from));
        CHECK(windows.bytes(i)[link] == approx(expected).epsilon(1e-5).scale(10));
      }
  }
}

}  // namespace weft::engine::fluid
