#include "observe/probe/prober.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "observe/probe/test_net.hpp"

namespace weft::observe::probe {
namespace {

using namespace testing;
using Fate = TestNet::Fate;

struct Bench {
  TestClock clock;
  TestNet net{clock};

  FlowCounts run_one(const ProberOptions& options) {
    Prober prober(options, {{.target = far_end}}, net, clock);
    FlowCounts out;
    for (const WindowReport& report : run(prober, net)) out.merge(report.flows[0]);
    counts = prober.counts();
    return out;
  }
  ProberCounts counts;
};

TEST_CASE("all answered: network time is the round trip less the responder's own") {
  Bench bench;
  const FlowCounts counts = bench.run_one(options_of(1000));
  CHECK(counts.sent == 1000);
  CHECK(counts.answered == 1000);
  CHECK(counts.lost == 0);
  CHECK(counts.late == 0);
  CHECK(counts.rtt.total() == 1000);
  CHECK(counts.rtt.quantile_ns(0.5) == approx(10'000).epsilon(1.0 / 30));
}

TEST_CASE("sequence numbers tell on which leg probes were lost") {
  Bench bench;
  bench.net.there = [](const Message& m) { return Fate{.lost = m.sequence % 10 == 0}; };
  bench.net.back = [](const Message& m) { return Fate{.lost = m.sequence % 25 == 1}; };
  const FlowCounts counts = bench.run_one(options_of(1002));
  CHECK(counts.sent == 1002);
  CHECK(counts.lost == 100 + 41);
  CHECK(counts.lost_forward == 100);
  CHECK(counts.answered == 1002 - 141);
}

TEST_CASE("random loss on both legs over many windows adds up") {
  Bench bench;
  Rng rng(7);
  std::uint64_t there = 0, back = 0;
  bench.net.there = [&](const Message&) {
    const bool lost = rng.below(100) == 0;
    there += lost ? 1 : 0;
    return Fate{.lost = lost, .delay_ns = 5'000 + static_cast<std::int64_t>(rng.below(40'000))};
  };
  bench.net.back = [&](const Message&) {
    const bool lost = rng.below(50) == 0;
    back += lost ? 1 : 0;
    return Fate{.lost = lost};
  };
  ProberOptions options = options_of(50'000);
  options.window_ns = 1'200 * ns_per_ms;
  const FlowCounts counts = bench.run_one(options);
  CHECK(counts.lost == there + back);
  REQUIRE(counts.lost_forward.has_value());
  // Overtaking at the edges of windows may move a probe or two.
  CHECK(static_cast<double>(*counts.lost_forward) ==
        approx(static_cast<double>(there)).epsilon(0.02));
}

TEST_CASE("where nothing comes back the direction is not known") {
  Bench bench;
  bench.net.there = [](const Message& m) { return Fate{.lost = m.sequence > 500}; };
  const FlowCounts counts = bench.run_one(options_of(1000));
  CHECK(counts.lost == 500);
  CHECK_FALSE(counts.lost_forward.has_value());
}

TEST_CASE("the window in which a dead way comes back has its losses on that way") {
  for (const bool is_there : {true, false}) {
    CAPTURE(is_there);
    Bench bench;
    // Dead from the middle of the first window to that of the third, of 12,000 probes each.
    const auto dies = [](const Message& m) {
      return Fate{.lost = m.sequence > 6'000 && m.sequence <= 30'000};
    };
    (is_there ? bench.net.there : bench.net.back) = dies;
    ProberOptions options = options_of(48'000);
    options.window_ns = 1'200 * ns_per_ms;
    Prober prober(options, {{.target = far_end}}, bench.net, bench.clock);
    const std::vector<WindowReport> reports = run(prober, bench.net);
    REQUIRE(reports.size() >= 4);
    // The first is reported before the way comes back.
    CHECK_FALSE(reports[0].flows[0].lost_forward.has_value());
    for (const std::size_t i : {1u, 2u}) {
      const FlowCounts& counts = reports[i].flows[0];
      CHECK(counts.lost == approx(i == 1 ? 12'000 : 6'000).epsilon(0.01));
      REQUIRE(counts.lost_forward.has_value());
      CHECK(*counts.lost_forward == (is_there ? counts.lost : 0));
    }
    CHECK(reports[3].flows[0].lost == 0);
    CHECK(reports[3].flows[0].lost_forward == 0);
  }
}

TEST_CASE("late is not lost, and too late is") {
  Bench bench;
  bench.net.back = [](const Message& m) {
    const std::int64_t delay = m.sequence % 4 == 1   ? 101 * ns_per_ms
                               : m.sequence % 4 == 2 ? 1'000 * ns_per_ms
                               : m.sequence % 4 == 3 ? 1'200 * ns_per_ms
                                                     : 5'000;
    return Fate{.delay_ns = delay};
  };
  const FlowCounts counts = bench.run_one(options_of(4000));
  CHECK(counts.late == 2000);
  CHECK(counts.lost == 1000);
  CHECK(counts.lost_forward == 0);
  CHECK(counts.answered == 3000);
  CHECK(bench.counts.stale > 0);
}

TEST_CASE("a slow responder is not a slow network") {
  Bench bench;
  bench.net.dwell_ns = 400 * ns_per_ms;
  const FlowCounts counts = bench.run_one(options_of(100));
  CHECK(counts.late == 0);
  CHECK(counts.rtt.quantile_ns(0.99) == approx(10'000).epsilon(1.0 / 30));
}

TEST_CASE("duplicates are counted once each, replayed requests not answered") {
  Bench bench;
  bench.net.back = [](const Message& m) { return Fate{.copies = m.sequence % 5 == 0 ? 3 : 1}; };
  const FlowCounts counts = bench.run_one(options_of(100));
  CHECK(counts.answered == 100);
  CHECK(counts.duplicates > 30);
  CHECK(counts.duplicates <= 40);  // some come after the end
  Bench other;
  other.net.there = [](const Message&) { return Fate{.copies = 2}; };
  CHECK(other.run_one(options_of(100)).duplicates == 0);
  CHECK(other.net.responder().count(Verdict::replayed) == 100);
}

// The second hand of flip_shows: each bit of a probe, one after another.
TEST_CASE("of all flips of a bit, those that show are damage with its direction, others losses") {
  const auto flipping = [] {
    return [n = std::size_t{0}](std::span<std::byte> bytes) mutable {
      const std::size_t bit = n++ - 64;  // the first ones make the flow known
      if (bit < 8 * wire_bytes) bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    };
  };
  const auto probed = [](Bench& bench) {
    Prober prober(options_of(3000), {{.target = far_end}}, bench.net, bench.clock);
    FlowCounts counts;
    for (const WindowReport& report : run(prober, bench.net)) counts.merge(report.flows[0]);
    CHECK(counts.sent == 3000);
    CHECK(counts.answered + counts.lost + counts.damaged() == 3000);
    return counts;
  };
  Bench there;
  there.net.mangle = flipping();
  const FlowCounts forward = probed(there);
  const double shown = static_cast<double>(forward.damaged_forward) / 8 / (wire_bytes + 28);
  CHECK(shown == approx(flip_shows));
  CHECK(forward.damaged_back == 0);
  CHECK(forward.lost == 8 * (5 + 12) + 1);  // magic, version, session, flow; a probe that asks
  CHECK(forward.lost_forward == forward.lost);
  Bench back;
  back.net.mangle_back = flipping();
  const FlowCounts answers = probed(back);
  CHECK(answers.damaged_forward == 0);
  CHECK(answers.lost == 8 * (5 + 16));  // magic, version, both numbers of the probe
  CHECK(answers.lost_forward == 0);
}

TEST_CASE("damage is no loss, also where both happen on both ways") {
  Bench bench;
  bench.net.there = [](const Message& m) { return TestNet::Fate{.lost = m.sequence % 10 == 3}; };
  bench.net.back = [](const Message& m) { return TestNet::Fate{.lost = m.sequence % 10 == 5}; };
  const auto each = [](std::size_t nth) {
    return [n = std::size_t{0}, nth](std::span<std::byte> bytes) mutable {
      if (++n % nth == 0) bytes[120] ^= std::byte{16};
    };
  };
  bench.net.mangle = each(7);       // of 9,000: 1,285
  bench.net.mangle_back = each(8);  // of 7,715: 964, of which a tenth was lost before
  Prober prober(options_of(10'000), {{.target = far_end}}, bench.net, bench.clock);
  FlowCounts counts;
  for (const WindowReport& report : run(prober, bench.net)) counts.merge(report.flows[0]);
  CHECK(counts.damaged_forward == 1285);
  CHECK(counts.answered + counts.lost + counts.damaged() == 10'000);
  REQUIRE(counts.lost_forward.has_value());
  CHECK(*counts.lost_forward == 1000);
  CHECK(counts.damaged_back > 800);
  CHECK(counts.damaged_back <= 964);
}

TEST_CASE("a damaged answer from elsewhere, or to a probe of another run, is nobody's") {
  Bench bench;
  Prober prober(options_of(1000), {{.target = far_end}}, bench.net, bench.clock);
  bench.net.back = [](const Message&) { return TestNet::Fate{.lost = true}; };
  for (int i = 0; i < 100; ++i) {
    prober.step();
    bench.net.wait(prober.wake_at(), prober.wake());
  }
  REQUIRE(bench.net.replies().size() > 10);
  WireBytes damaged = bench.net.replies()[5];
  damaged[100] ^= std::byte{1};
  bench.net.inject(damaged, {far_end.address + 1, far_end.port});
  Message other;
  REQUIRE(decode(bench.net.replies()[6], key, other) == Fault::none);
  other.session += 1;
  other.flow += 1;
  encode(other, key, damaged);
  damaged[100] ^= std::byte{1};
  bench.net.inject(damaged);
  FlowCounts counts;
  for (const WindowReport& report : run(prober, bench.net)) counts.merge(report.flows[0]);
  CHECK(counts.damaged() == 0);
  CHECK(counts.lost == 1000);
  CHECK(prober.counts().damaged == 2);
}

TEST_CASE("answers that are truncated, forged, replayed or from the future change nothing") {
  Bench bench;
  Prober prober(options_of(1000), {{.target = far_end}}, bench.net, bench.clock);
  for (int i = 0; i < 200; ++i) {
    prober.step();
    bench.net.wait(prober.wake_at(), prober.wake());
  }
  REQUIRE(bench.net.replies().size() > 50);
  const WireBytes genuine = bench.net.replies()[20];
  Message message;
  REQUIRE(decode(genuine, key, message) == Fault::none);
  const auto inject = [&](Message changed, port::Endpoint from = far_end) {
    WireBytes bytes;
    encode(changed, key, bytes);
    bench.net.inject(bytes, from);
  };
  bench.net.inject(std::span(genuine).first(wire_bytes - 1));
  WireBytes forged;
  encode(message, Key{1, 1}, forged);
  bench.net.inject(forged);
  bench.net.inject(genuine);  // replayed
  Message changed = message;
  changed.probe = 1'000'000;
  inject(changed);  // from the future
  changed = message;
  changed.sequence += 1;
  inject(changed);  // of no probe
  changed = message;
  changed.session += 1;
  inject(changed);  // of another run
  inject(message, {far_end.address + 1, far_end.port});
  changed = message;
  changed.kind = Kind::probe;
  inject(changed);
  bench.net.inject(std::vector<std::byte>(request_bytes_max + 100));
  FlowCounts counts;
  for (const WindowReport& report : run(prober, bench.net)) counts.merge(report.flows[0]);
  CHECK(counts.answered == 1000);
  CHECK(counts.lost == 0);
  CHECK(counts.duplicates == 1);
  const ProberCounts& around = prober.counts();
  CHECK(around.truncated == 1);
  CHECK(around.forged == 1);
  CHECK(around.future == 1);
  CHECK(around.misplaced == 3);
  CHECK(around.requests == 1);
  CHECK(around.oversized == 1);
}

TEST_CASE("a clock of the day that steps moves nothing") {
  for (const std::int64_t step_s : {-30, 30}) {
    Bench bench;
    bench.net.there = [&](const Message& m) {
      if (m.sequence == 300) bench.clock.wall_offset += step_s * ns_per_s;
      return Fate{};
    };
    const FlowCounts counts = bench.run_one(options_of(1000));
    CHECK(counts.answered == 1000);
    CHECK(counts.rtt.quantile_ns(0) == approx(10'000).epsilon(1.0 / 30));
    CHECK(counts.rtt.quantile_ns(1) == approx(10'000).epsilon(1.0 / 30));
  }
}

TEST_CASE("a responder that starts anew does not make losses of its own") {
  Bench bench;
  bench.net.there = [&](const Message& m) {
    if (m.sequence == 500) bench.net.restart_responder();
    return Fate{};
  };
  FlowCounts counts = bench.run_one(options_of(1000));
  CHECK(counts.lost == 0);
  CHECK(counts.lost_forward == 0);
}

TEST_CASE("probes are spread evenly: no two closer than half a slot, none far from its time") {
  Bench bench;
  ProberOptions options = options_of(1000);
  options.rate = 1000;
  bench.run_one(options);
  const auto& times = bench.net.send_times();
  for (std::size_t i = 1; i < times.size(); ++i) {
    const std::int64_t gap = times[i] - times[i - 1];
    CHECK(gap >= 500'000);
    CHECK(gap <= 1'500'000);
  }
  CHECK(times.back() - times.front() == approx(999'000'000).epsilon(0.01));
}

TEST_CASE("after a sleep probes are not sent in a burst") {
  Bench bench;
  ProberOptions options = options_of(0);
  options.rate = 1000;
  options.duration_ns = ns_per_s;
  Prober prober(options, {{.target = far_end}}, bench.net, bench.clock);
  for (int step = 0; !prober.done(); ++step) {
    prober.step();
    if (step == 300) bench.clock.set(bench.clock.now().ns + 50 * ns_per_ms);
    bench.net.wait(prober.wake_at(), prober.wake());
  }
  const auto& times = bench.net.send_times();
  // Two may leave together, and then half a slot passes.
  for (std::size_t i = 2; i < times.size(); ++i) CHECK(times[i] - times[i - 2] >= 400'000);
  CHECK(times.size() == approx(1000).epsilon(0.01));  // and none is left out
  CHECK(prober.counts().lateness_max_ns >= 45 * ns_per_ms);
}

TEST_CASE("a host that slept long or whose queues overflowed says so") {
  Bench bench;
  Prober prober(options_of(5000), {{.target = far_end}}, bench.net, bench.clock);
  for (int step = 0; step < 200; ++step) {
    prober.step();
    bench.net.wait(prober.wake_at(), prober.wake());
  }
  bench.net.dropped_count = 5;
  const auto reports = run(prober, bench.net);
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].self == WindowReport::Self::starved);
  CHECK(reports[0].dropped == 5);
}

TEST_CASE("windows: each probe counts in that of its sending") {
  Bench bench;
  ProberOptions options = options_of(0);
  options.rate = 1000;
  options.duration_ns = 5 * ns_per_s;
  options.window_ns = 2 * ns_per_s;
  bench.net.there = [](const Message& m) {
    return Fate{.lost = m.sequence > 1000 && m.sequence <= 1100};
  };
  Prober prober(options, {{.target = far_end}}, bench.net, bench.clock);
  const auto reports = run(prober, bench.net);
  REQUIRE(reports.size() == 3);
  CHECK(reports[0].flows[0].sent == approx(2000).epsilon(0.002));
  CHECK(reports[0].flows[0].lost == 100);
  CHECK(reports[0].flows[0].lost_forward == 100);
  CHECK(reports[1].flows[0].lost == 0);
  CHECK(reports[2].length_ns == approx(1e9).epsilon(0.01));
  CHECK(reports[1].start.ns - reports[0].start.ns == approx(2e9).epsilon(0.01));
}

TEST_CASE("as fast as answers come: no more on the way than asked for") {
  Bench bench;
  ProberOptions options = options_of(0);
  options.rate = 0;
  options.in_flight_max = 256;
  options.duration_ns = ns_per_s / 2;
  bench.net.there = [](const Message&) { return Fate{.delay_ns = 2 * ns_per_ms}; };
  const FlowCounts counts = bench.run_one(options);
  CHECK(counts.lost == 0);
  // 256 a round trip of 2 ms.
  CHECK(counts.sent > 30'000);
  CHECK(counts.sent < 65'000);
}

TEST_CASE("no room in the system's queue: the same numbers are given again") {
  Bench bench;
  bench.net.sends_max = 10;
  ProberOptions options = options_of(100);
  Prober prober(options, {{.target = far_end}}, bench.net, bench.clock);
  for (int step = 0; step < 50; ++step) {
    prober.step();
    bench.net.wait(prober.wake_at(), prober.wake());
  }
  CHECK(prober.sent() == 10);
  bench.net.sends_max = SIZE_MAX;
  FlowCounts counts;
  for (const WindowReport& report : run(prober, bench.net)) counts.merge(report.flows[0]);
  CHECK(counts.sent == 100);
  CHECK(counts.lost == 0);
  CHECK(counts.lost_forward == 0);
}

TEST_CASE("many flows and ports get even shares") {
  Bench bench;
  std::vector<Flow> flows;
  for (std::uint32_t i = 0; i < 60; ++i) flows.push_back({.port = i % 7, .target = far_end});
  ProberOptions options = options_of(0);
  options.rate = 0;
  options.duration_ns = static_cast<std::int64_t>(test_effort(ns_per_s / 5));
  bench.net.stamps = true;
  Prober prober(options, flows, bench.net, bench.clock);
  std::uint64_t least = UINT64_MAX, most = 0;
  for (const WindowReport& report : run(prober, bench.net))
    for (const FlowCounts& counts : report.flows) {
      least = std::min(least, counts.sent);
      most = std::max(most, counts.sent);
    }
  CHECK(least > 20);
  CHECK(most - least <= 20);
}

}  // namespace
}  // namespace weft::observe::probe
