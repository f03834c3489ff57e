// One-way probing from outside: which probes are reported as lost, which as unknown, and in which
// window.
#include "observe/probe/one_way.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "observe/probe/test_net.hpp"

namespace weft::observe::probe {
namespace {

using namespace testing;
using Fate = TestNet::Fate;

ProberOptions one_way(std::uint64_t count) {
  ProberOptions options = options_of(count);
  options.direction = Direction::one_way;
  return options;
}

// So many flows from different ports to one responder.
std::vector<Flow> flows_of(std::uint32_t count, port::Endpoint target = far_end) {
  std::vector<Flow> out;
  for (std::uint32_t i = 0; i < count; ++i) out.push_back({.port = i, .target = target});
  return out;
}

struct OneWayBench {
  TestClock clock;
  TestNet net{clock};
  ProberCounts around;

  std::vector<WindowReport> run(const ProberOptions& options, const std::vector<Flow>& flows) {
    Prober prober(options, flows, net, clock);
    auto out = testing::run(prober, net);
    around = prober.counts();
    return out;
  }
  FlowCounts run_one(const ProberOptions& options) {
    FlowCounts out;
    for (const WindowReport& report : run(options, flows_of(1))) out.merge(report.flows[0]);
    return out;
  }
  double seconds() { return static_cast<double>(clock.now().ns) * 1e-9 - 1; }
};

// 100 probes a second of each of `flows` flows, in windows of 2 s.
ProberOptions windows_of(double flows, std::int64_t seconds) {
  ProberOptions options = one_way(0);
  options.rate = 100 * flows;
  options.duration_ns = seconds * ns_per_s;
  options.window_ns = 2 * ns_per_s;
  return options;
}

TEST_CASE("one-way: the responder's counts give the loss, also of the last probes") {
  OneWayBench bench;
  bench.net.there = [](const Message& m) {
    return Fate{.lost = m.kind == Kind::one_way && (m.sequence % 10 == 0 || m.sequence > 980)};
  };
  const FlowCounts counts = bench.run_one(one_way(1000));
  CHECK(counts.sent == 1000);
  CHECK(counts.lost == 98 + 20);
  CHECK(counts.lost_forward == 118);
  CHECK(counts.unknown == 0);
  CHECK(bench.net.responder().count(Verdict::counted) == 1000 - 118);
}

TEST_CASE("one-way: where all arrives each flow is asked about once") {
  OneWayBench bench;
  const auto reports = bench.run(one_way(100), flows_of(64));
  REQUIRE(reports.size() == 1);
  for (const FlowCounts& counts : reports[0].flows) CHECK(counts.answered == 100);
  CHECK(bench.net.asks == 64);
}

TEST_CASE("one-way: 13 dead flows of 64 are lost, the others are not") {
  OneWayBench bench;
  bench.net.carries = [](const port::Outgoing& out) { return out.port % 5 != 0; };
  const auto reports = bench.run(one_way(20), flows_of(64));
  REQUIRE(reports.size() == 1);
  std::uint64_t sent = 0, lost = 0;
  for (std::uint32_t i = 0; i < 64; ++i) {
    const FlowCounts& counts = reports[0].flows[i];
    CHECK(counts.lost == (i % 5 == 0 ? 20 : 0));
    CHECK(counts.unknown == 0);
    CHECK(counts.heard);
    sent += counts.sent;
    lost += counts.lost;
  }
  CHECK(sent == 1280);
  CHECK(lost == 260);
}

TEST_CASE("one-way: a flow alone is asked about by spare ports") {
  OneWayBench bench;
  bench.net.carries = [](const port::Outgoing& out) { return out.port == 3; };
  ProberOptions options = one_way(100);
  FlowCounts counts = bench.run_one(options);
  CHECK(counts.unknown == 100);
  CHECK(counts.why == Unknown::responder_silent);
  CHECK(counts.lost == 0);
  OneWayBench other;
  other.net.carries = bench.net.carries;
  options.spare_ports = {1, 2, 3};
  counts = other.run_one(options);
  CHECK(counts.lost == 100);
  CHECK(counts.lost_forward == 100);
  CHECK(counts.unknown == 0);
}

TEST_CASE("one-way: a dead way back loses no probe") {
  OneWayBench bench;
  bench.net.carries_back = [](const port::Outgoing& out) { return out.port >= 8; };
  const auto reports = bench.run(windows_of(16, 10), flows_of(16));
  REQUIRE(reports.size() == 5);
  for (const WindowReport& report : reports)
    for (const FlowCounts& counts : report.flows) {
      CHECK(counts.lost == 0);
      CHECK(counts.unknown == 0);
    }
}

TEST_CASE("one-way: a class that the network drops is asked about in another class") {
  OneWayBench bench;
  bench.net.carries = [](const port::Outgoing& out) { return out.dscp != 26; };
  std::vector<Flow> flows = flows_of(2);
  flows[1] = flows[0];
  flows[1].dscp = 26;
  const auto reports = bench.run(one_way(100), flows);
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].flows[0].lost == 0);
  CHECK(reports[0].flows[1].lost == 100);
}

TEST_CASE("one-way: a silent responder is unknown and said to be, its neighbour is not touched") {
  OneWayBench bench;
  const port::Endpoint dead{far_end.address + 1, far_end.port};
  bench.net.carries = [&](const port::Outgoing& out) { return out.to != dead; };
  std::vector<Flow> flows = flows_of(4);
  for (std::uint32_t i = 0; i < 4; ++i) flows.push_back({.port = i, .target = dead});
  const auto reports = bench.run(one_way(100), flows);
  REQUIRE(reports.size() == 1);
  for (std::uint32_t i = 0; i < 8; ++i) {
    const FlowCounts& counts = reports[0].flows[i];
    CHECK(counts.heard == (i < 4));
    CHECK(counts.unknown == (i < 4 ? 0 : 100));
    CHECK(counts.why == (i < 4 ? Unknown::none : Unknown::responder_silent));
    CHECK(counts.lost == 0);
  }
  // Questions to the dead one are bounded.
  CHECK(bench.net.asks == 4 + 4 * 8);
}

TEST_CASE("one-way: two responders at one address are not asked about each other's flows") {
  OneWayBench bench;
  const port::Endpoint second{far_end.address, static_cast<std::uint16_t>(far_end.port + 1)};
  bench.net.carries = [&](const port::Outgoing& out) { return out.to != second; };
  std::vector<Flow> flows = flows_of(1);
  flows.push_back({.port = 1, .target = second});
  const auto reports = bench.run(one_way(100), flows);
  CHECK(reports[0].flows[0].lost == 0);
  CHECK(reports[0].flows[1].lost == 0);
  CHECK(reports[0].flows[1].why == Unknown::responder_silent);
}

// Windows of 2 s; flows 0 to 7 are dead from 3 s to 7 s.
TEST_CASE("one-way: what a dead flow lost is booked into the windows in which it was dead") {
  OneWayBench bench;
  bench.net.carries = [&](const port::Outgoing& out) {
    return out.port >= 8 || bench.seconds() < 3 || bench.seconds() >= 7;
  };
  const auto reports = bench.run(windows_of(16, 14), flows_of(16));
  REQUIRE(reports.size() == 7);
  constexpr std::array<double, 7> lost{0, 100, 200, 100, 0, 0, 0};
  for (std::size_t window = 0; window < reports.size(); ++window)
    for (std::uint32_t i = 0; i < 16; ++i) {
      const FlowCounts& counts = reports[window].flows[i];
      CHECK(counts.unknown == 0);
      CHECK(static_cast<double>(counts.lost) == approx(i < 8 ? lost[window] : 0).epsilon(0.03));
    }
}

// The responder cannot be reached at all from 3 s to 7 s.
TEST_CASE("one-way: a responder that comes back brings no old losses with it") {
  for (const bool way_back_only : {false, true}) {
    OneWayBench bench;
    const auto is_up = [&](const port::Outgoing&) {
      return bench.seconds() < 3 || bench.seconds() >= 7;
    };
    (way_back_only ? bench.net.carries_back : bench.net.carries) = is_up;
    const auto reports = bench.run(windows_of(4, 14), flows_of(4));
    REQUIRE(reports.size() == 7);
    for (std::size_t window = 0; window < reports.size(); ++window)
      for (const FlowCounts& counts : reports[window].flows) {
        INFO("window ", window);
        const bool silent = window == 1 || window == 2;
        CHECK(counts.unknown == (silent ? counts.sent : 0));
        CHECK(counts.why == (silent ? Unknown::responder_silent : Unknown::none));
        const double lost = window == 3 && !way_back_only ? 100 : 0;
        CHECK(static_cast<double>(counts.lost) == approx(lost).epsilon(0.03));
      }
  }
}

TEST_CASE("one-way: lost questions are asked again") {
  OneWayBench bench;
  int asks = 0;
  bench.net.there = [&](const Message& m) {
    return Fate{.lost = m.kind == Kind::ask && ++asks < 5};
  };
  const FlowCounts counts = bench.run_one(one_way(100));
  CHECK(counts.lost == 0);
  CHECK(counts.unknown == 0);
}

TEST_CASE("one-way: probes that a question overtakes are not lost") {
  OneWayBench bench;
  bench.net.there = [](const Message& m) {
    return Fate{.delay_ns = m.kind == Kind::ask ? 5'000 : 300 * ns_per_ms};
  };
  const auto reports = bench.run(windows_of(4, 6), flows_of(4));
  REQUIRE(reports.size() == 3);
  for (const WindowReport& report : reports)
    for (const FlowCounts& counts : report.flows) {
      CHECK(counts.lost == 0);
      CHECK(counts.unknown == 0);
    }
}

TEST_CASE("one-way: a prober that wakes late after a window still asks about all of it") {
  OneWayBench bench;
  bench.net.there = [](const Message& m) {
    return Fate{.delay_ns = m.kind == Kind::ask ? 300 * ns_per_ms : 5'000};
  };
  Prober prober(windows_of(4, 8), flows_of(4), bench.net, bench.clock);
  std::vector<WindowReport> reports;
  bool slept = false;
  while (!prober.done()) {
    prober.step();
    while (auto report = prober.take_report()) reports.push_back(std::move(*report));
    bench.net.wait(prober.wake_at(), prober.wake());
    if (!slept && bench.seconds() >= 1.99) {
      slept = true;
      bench.clock.set(bench.clock.now().ns + 950 * ns_per_ms);  // less than "too busy to tell"
    }
  }
  while (auto report = prober.take_report()) reports.push_back(std::move(*report));
  REQUIRE(reports.size() == 4);
  for (const WindowReport& report : reports) {
    CHECK(report.self == WindowReport::Self::well);
    for (const FlowCounts& counts : report.flows) {
      CHECK(counts.unknown == 0);
      CHECK(counts.lost == 0);
    }
  }
}

TEST_CASE("one-way: a responder that starts anew makes no losses, and its windows are unknown") {
  OneWayBench bench;
  bool restarted = false;
  bench.net.there = [&](const Message&) {
    if (!restarted && bench.seconds() >= 7) {
      bench.net.restart_responder();
      restarted = true;
    }
    return Fate{};
  };
  const auto reports = bench.run(windows_of(4, 16), flows_of(4));
  REQUIRE(reports.size() == 8);
  for (std::size_t window = 0; window < reports.size(); ++window)
    for (const FlowCounts& counts : reports[window].flows) {
      INFO("window ", window);
      CHECK(counts.lost == 0);
      // The window of the restart, and the next, which cannot know that its number was untouched.
      const bool after = window == 3 || window == 4;
      CHECK(counts.why == (after ? Unknown::forgotten : Unknown::none));
    }
}

TEST_CASE("one-way: random loss over many windows is exact in each") {
  OneWayBench bench;
  Rng rng(11);
  std::map<std::pair<std::uint32_t, std::int64_t>, std::uint64_t> lost;  // by port, window
  std::map<std::uint32_t, bool> last;
  bench.net.carries = [&](const port::Outgoing& out) {
    Message message;
    REQUIRE(decode(out.payload, key, message) == Fault::none);
    const bool dead = out.port == 5 && bench.seconds() >= 4;
    const bool passes = !dead && rng.below(20) != 0;
    if (message.kind == Kind::one_way && !passes)
      ++lost[{out.port, static_cast<std::int64_t>(bench.seconds() / 2)}];
    return passes;
  };
  bench.net.carries_back = [&](const port::Outgoing&) { return rng.below(20) != 0; };
  const auto reports = bench.run(windows_of(8, 20), flows_of(8));
  REQUIRE(reports.size() == 10);
  for (std::size_t window = 0; window < reports.size(); ++window)
    for (std::uint32_t i = 0; i < 8; ++i) {
      const FlowCounts& counts = reports[window].flows[i];
      CHECK(counts.unknown == 0);
      CHECK(counts.lost == lost[{i, static_cast<std::int64_t>(window)}]);
    }
}

TEST_CASE("one-way: answers that are replayed, forged, foreign or from elsewhere change nothing") {
  OneWayBench bench;
  bench.net.there = [](const Message& m) {
    return Fate{.lost = m.kind == Kind::one_way && m.sequence % 2 == 0};
  };
  Prober prober(one_way(100), flows_of(2), bench.net, bench.clock);
  for (int step = 0; step < 10'000 && bench.net.replies().empty(); ++step) {
    prober.step();
    bench.net.wait(prober.wake_at(), prober.wake());
  }
  REQUIRE_FALSE(bench.net.replies().empty());
  Message message;
  REQUIRE(decode(bench.net.replies().front(), key, message) == Fault::none);
  const auto inject = [&](Message changed, port::Endpoint from = far_end) {
    changed.count = 100;
    WireBytes bytes;
    encode(changed, key, bytes);
    bench.net.inject(bytes, from);
  };
  Message changed = message;
  changed.probe = 1'000'000;
  inject(changed);  // to no question
  changed = message;
  changed.sequence += 1;
  inject(changed);
  changed = message;
  changed.flow += 1;
  inject(changed);
  changed = message;
  changed.session += 1;
  inject(changed);
  inject(message, {far_end.address + 1, far_end.port});
  WireBytes forged;
  encode(message, Key{1, 1}, forged);
  bench.net.inject(forged);
  FlowCounts counts;
  for (const WindowReport& report : run(prober, bench.net)) counts.merge(report.flows[0]);
  CHECK(counts.sent == 100);
  CHECK(counts.lost == 50);
  CHECK(prober.counts().future == 1);
  CHECK(prober.counts().misplaced == 4);
  CHECK(prober.counts().forged == 1);
}

TEST_CASE("one-way: what comes damaged is told of, and not as lost") {
  OneWayBench bench;
  bench.net.there = [](const Message& m) {
    return Fate{.lost = m.kind == Kind::one_way && m.sequence % 10 == 4};
  };
  bench.net.mangle = [n = 0](std::span<std::byte> bytes) mutable {
    if (++n % 7 == 0) bytes[200] ^= std::byte{4};
  };
  Prober prober(one_way(700), flows_of(1), bench.net, bench.clock);
  FlowCounts counts;
  for (const WindowReport& report : run(prober, bench.net)) counts.merge(report.flows[0]);
  CHECK(counts.sent == 700);
  CHECK(counts.unknown == 0);
  CHECK(counts.lost == 70);
  CHECK(counts.damaged_forward == 90);  // each seventh of the 630 that were not lost
  CHECK(counts.damaged_back == 0);
}

}  // namespace
}  // namespace weft::observe::probe
