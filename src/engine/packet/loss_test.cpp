// Lost packets under selective repeat: what they cost, when their sender learns of them, and that
// nothing else is sent again.
#include <cmath>

#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "engine/packet/test_kit.hpp"

namespace weft::engine::packet::testing {
namespace {

constexpr Ps control = 1'280, latency = us;  // of 64 B at 400 Gb/s

Options selective(Balance balance = Balance::path) {
  Options options;
  options.reliability = Reliability::selective;
  options.balance = balance;
  return options;
}

Options nscc() {
  Options options = selective(Balance::spray);
  options.congestion = Congestion::nscc;
  options.ecn.on = true;
  return options;
}

// Each direction of a cable by its own name.
StateChange lossy(const Fabric& fabric, std::initializer_list<std::string_view> links, double loss,
                  Ps at = 0) {
  StateChange out{{static_cast<std::int64_t>(at)}, {}};
  for (const std::string_view name : links) out.state.set(link(fabric, name), {.loss = loss});
  return out;
}

double packets_for(std::uint64_t bytes) { return std::ceil(static_cast<double>(bytes) / payload); }

TEST_CASE("one flow over a lossy cable takes as long as its lost packets sent once more") {
  // 80 MB at 400 Gb/s; both directions of the second cable lose packets.
  const Fabric fabric = chain(equal(2));
  constexpr std::uint64_t bytes = 80'000'000, seeds = test_effort(10);
  const Load load = Load{}.add(fabric, 0, 1, bytes);
  for (const Balance balance : {Balance::path, Balance::spray}) {
    for (const double loss : {1e-4, 1e-3, 1e-2}) {
      for (const Bytes window : {Bytes{0}, Bytes{256 << 10}}) {
        double worst = 0, sum = 0, expected = 0;
        for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
          Setting setting{.options = selective(balance), .changes = {}, .routing = {}, .seed = 1};
          setting.options.window = window;
          setting.options.seed = seed;
          setting.changes = {lossy(fabric, {"s:0->nic:1", "nic:1->s:0"}, loss)};
          const PacketRunResult result = run(fabric, load, setting);
          REQUIRE(result.complete);
          const double sent = packets_for(bytes) + static_cast<double>(result.counters.drops);
          const double ideal = sent * microseconds(full) + microseconds(4 * latency + full);
          worst = std::max(worst, microseconds(result.messages[0].end) / ideal);
          sum += microseconds(result.messages[0].end) / static_cast<double>(seeds);
          expected = packets_for(bytes) / (1 - loss) * microseconds(full) +
                     microseconds(4 * latency + full);
          CHECK(result.counters.retransmissions <= result.counters.drops + 3);
        }
        CAPTURE(loss);
        CAPTURE(window.count);
        // The mean of all seeds scatters by a few lost packets, far below 5 %.
        CHECK(sum == approx(expected).epsilon(0.05));
        CHECK(worst <= 1.05);
      }
    }
  }
}

// 80 MB at 400 Gb/s with the timer that NICs have, 4.096 us x 2^12. A lost packet is known of when
// the next one has reached the receiver and its NACK is back; what was sent until then is sent
// again: W = R / s packet times, R from its start to the NACK. The receiver says so once: where the
// packet is lost again, or nothing follows it, the sender waits for its timer T. A message of N
// packets meets N p / (1 - p) losses, N p^2 / (1 - p) of them of a packet that was sent before:
//   t = N s + N p / (1 - p) W s + (N p^2 / (1 - p) + p) T
TEST_CASE("go-back-N with the timer of a NIC, as its closed form says") {
  const Fabric fabric = chain(equal(2));
  constexpr std::uint64_t bytes = 80'000'000, seeds = test_effort(40);
  const Load load = Load{}.add(fabric, 0, 1, bytes);
  const double n = packets_for(bytes), s = microseconds(full);
  const double back = microseconds(2 * full + full + 2 * control + 4 * latency);
  for (const double loss : {1e-4, 1e-3, 1e-2}) {
    CAPTURE(loss);
    double sum = 0, timeouts = 0, timer = 0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      Setting setting{.options = {}, .changes = {lossy(fabric, {"s:0->nic:1"}, loss)}};
      setting.options.seed = seed;
      timer = static_cast<double>(setting.options.ack_timeout.ps) / us;
      const PacketRunResult result = run(fabric, load, setting);
      REQUIRE(result.complete);
      sum += microseconds(result.messages[0].end);
      timeouts += static_cast<double>(result.counters.timeouts);
    }
    const auto runs = static_cast<double>(seeds);
    // Timeouts are few and long: their number is compared on its own, within 4 standard errors, and
    // the mean time with as many of them as there were.
    const double timeouts_expected = runs * (n * loss * loss / (1 - loss) + loss);
    CHECK(std::abs(timeouts - timeouts_expected) <= 4 * std::sqrt(timeouts_expected) + 1);
    const double expected = n * s + n * loss / (1 - loss) * back + timeouts / runs * timer;
    MESSAGE("loss " << loss << ": mean " << sum / runs << " us, closed form " << expected
                    << ", timeouts " << timeouts << ", closed form " << timeouts_expected);
    CHECK(sum / runs == approx(expected).epsilon(0.05));
  }
}

TEST_CASE("without a window the line never idles: each lost packet costs one packet's time") {
  const Fabric fabric = chain(equal(2));
  constexpr std::uint64_t packets = 20'000;
  const Load load = Load{}.add(fabric, 0, 1, packets * payload);
  int exact = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Setting setting{.options = selective(), .changes = {lossy(fabric, {"s:0->nic:1"}, 1e-3)}};
    setting.options.seed = seed;
    const PacketRunResult result = run(fabric, load, setting);
    REQUIRE(result.counters.drops > 5);
    CHECK(result.counters.retransmissions == result.counters.drops);
    const Ps busy = (packets + result.counters.drops + 1) * full + 2 * latency;
    CHECK(result.messages[0].arrived >= busy);
    // A packet lost among the last 50 is not known of when the others have been sent.
    CHECK(result.messages[0].arrived < busy + 30 * us);
    exact += result.messages[0].arrived == busy ? 1 : 0;
  }
  CHECK(exact >= 8);
}

TEST_CASE("the packet behind a lost one tells of it, as soon as it is acknowledged") {
  // All 40 packets are sent before the first acknowledgement is back.
  const Fabric fabric = chain(equal(2));
  const Load load = Load{}.add(fabric, 0, 1, 40 * payload);
  const auto acknowledged = [](std::uint64_t packet) {
    return (packet + 2) * full + 2 * control + 4 * latency;
  };
  int told = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Setting setting{.options = selective(), .changes = {lossy(fabric, {"s:0->nic:1"}, 0.02)}};
    setting.options.seed = seed;
    const PacketRunResult result = run(fabric, load, setting);
    if (result.counters.drops != 1 || result.counters.timeouts > 0) continue;
    ++told;
    const Ps repeated = result.messages[0].arrived - (2 * full + 2 * latency);
    REQUIRE(repeated >= acknowledged(1));
    CHECK((repeated - acknowledged(1)) % full == 0);
    CHECK(repeated <= acknowledged(39));
  }
  CHECK(told > 20);
}

TEST_CASE("a packet that nothing follows is sent again after three round trips, or 25 us") {
  // One packet, lost again and again by chance: after r repeats it has waited
  // T + 2 T + .. + 2^(r-1) T, each from the step of 2^17 ps in which it was sent.
  for (const Duration wire : {1_us, 10_us}) {
    const Fabric fabric = chain(equal(2), wire);
    const Load load = Load{}.add(fabric, 0, 1, payload);
    const auto one_way = static_cast<Ps>(wire.ps);
    const Ps round_trip = 2 * (2 * one_way + full + control);
    const Ps wait = std::max(25 * us, 3 * round_trip);
    std::uint64_t most = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      Setting setting{.options = selective(), .changes = {lossy(fabric, {"nic:0->s:0"}, 0.6)}};
      setting.options.seed = seed;
      const PacketRunResult result = run(fabric, load, setting);
      REQUIRE(result.complete);
      CHECK(result.counters.timeouts == result.counters.drops);
      Ps sent = 0;
      for (std::uint64_t r = 0; r < result.counters.drops; ++r)
        sent = (sent >> 17 << 17) + std::min(wait << r, Ps{16'777'216'000});
      CHECK(result.messages[0].arrived == sent + 2 * (full + one_way));
      most = std::max(most, result.counters.drops);
    }
    CHECK(most >= 4);
  }
}

TEST_CASE("a gap of N: the Nth acknowledgement behind a lost packet tells of it, fewer do not") {
  // As above, all 40 packets are sent before the first acknowledgement is back.
  const Fabric fabric = chain(equal(2));
  const Load load = Load{}.add(fabric, 0, 1, 40 * payload);
  for (const std::uint32_t gap : {1u, 5u}) {
    int told = 0, waited = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      Setting setting{.options = selective(), .changes = {lossy(fabric, {"s:0->nic:1"}, 0.02)}};
      setting.options.seed = seed;
      setting.options.retransmit_gap = gap;
      const PacketRunResult result = run(fabric, load, setting);
      if (result.counters.drops != 1) continue;
      if (result.counters.timeouts > 0) {  // fewer than `gap` packets were behind it
        ++waited;
        continue;
      }
      ++told;
      // Packet k is acknowledged at (k + 2) full + 2 control + 4 us; the lost one was `gap` before.
      const Ps repeated = result.messages[0].arrived - (2 * full + 2 * us);
      CHECK((repeated - (2 * full + 2 * control + 4 * latency)) % full == 0);
      CHECK(repeated >= (gap + 2) * full + 2 * control + 4 * latency);
    }
    CHECK(told > 40);
    CHECK((gap > 1) == (waited > 2));
  }
}

TEST_CASE("the wait for a packet that nothing follows is what `retransmit` says") {
  const Fabric fabric = chain(equal(2));
  const Load load = Load{}.add(fabric, 0, 1, payload);
  const Ps round_trip = 2 * (2 * us + full + control);
  struct Case {
    std::uint32_t round_trips;
    Duration least;
    Ps wait;
  };
  for (const Case& c :
       {Case{3, 0_us, 3 * round_trip}, Case{10, 0_us, 10 * round_trip}, Case{1, 40_us, 40 * us}}) {
    int repeated = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      Setting setting{.options = selective(), .changes = {lossy(fabric, {"nic:0->s:0"}, 0.5)}};
      setting.options.seed = seed;
      setting.options.retransmit_round_trips = c.round_trips;
      setting.options.retransmit_least = c.least;
      const PacketRunResult result = run(fabric, load, setting);
      if (result.counters.drops != 1) continue;
      ++repeated;
      CHECK(result.messages[0].arrived == c.wait + 2 * (full + us));
    }
    CHECK(repeated > 2);
  }
}

TEST_CASE("lost acknowledgements cost nothing but the wait for the last one") {
  const Fabric fabric = chain(equal(2));
  const Load load = Load{}.add(fabric, 0, 1, 5000 * payload);
  for (const Balance balance : {Balance::path, Balance::spray}) {
    Setting setting{.options = selective(balance)};
    setting.options.window = packets_of(64);
    const PacketRunResult clean = run(fabric, load, setting);
    setting.changes = {lossy(fabric, {"nic:1->s:0"}, 0.02)};
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      setting.options.seed = seed;
      const PacketRunResult result = run(fabric, load, setting);
      CHECK(result.counters.drops == 0);
      CHECK(result.counters.retransmissions <= 3);
      CHECK(result.messages[0].arrived < clean.messages[0].arrived + 5 * us);
      CHECK(result.messages[0].end < clean.messages[0].end + 35 * us);
    }
  }
}

TEST_CASE("spray, no losses: nothing is sent again; with losses, what was lost and nothing else") {
  // Rack 0 sends to rack 1; one uplink of four loses packets, and no acknowledgements.
  const Fabric fabric = leaf_spine(2, 8, 4);
  Load load;
  for (std::size_t i = 0; i < 8; ++i) load.add(fabric, i, 8 + (3 * i + 1) % 8, 500 * payload);
  for (const Balance balance : {Balance::path, Balance::spray, Balance::reps, Balance::flowlet,
                                Balance::adaptive, Balance::multipath}) {
    for (const Congestion congestion : {Congestion::none, Congestion::nscc}) {
      CAPTURE(static_cast<int>(balance));
      CAPTURE(static_cast<int>(congestion));
      Setting setting{.options = nscc()};
      setting.options.balance = balance;
      setting.options.congestion = congestion;
      const PacketRunResult clean = run(fabric, load, setting);
      CHECK(clean.counters.retransmissions == 0);
      setting.changes = {lossy(fabric, {"leaf:0->spine:0"}, 0.02)};
      const PacketRunResult result = run(fabric, load, setting);
      REQUIRE(result.complete);
      CHECK(result.counters.drops > 0);
      CHECK(result.counters.retransmissions == result.counters.drops);
      CHECK(mean_time(result) < 1.5 * mean_time(clean));
    }
  }
}

TEST_CASE("full buffers: what was dropped is sent again, and nothing else, within milliseconds") {
  // 8 NICs send to one; 10 packets fit behind each port.
  const Fabric fabric = leaf_spine(3, 4, 2);
  const Load load = incast(fabric, 8, 100 * payload);
  for (const Balance balance :
       {Balance::path, Balance::spray, Balance::reps, Balance::adaptive, Balance::flowlet}) {
    CAPTURE(static_cast<int>(balance));
    Options options = selective(balance);
    options.window = packets_of(20);
    options.buffers[""] = {.per_port = packets_of(10)};
    const PacketRunResult result = run(fabric, load, options);
    CHECK(result.complete);
    CHECK(result.counters.drops > 100);
    CHECK(result.counters.retransmissions == result.counters.drops);
    CHECK(last_end(result) < Ps{10} * 800 * full);
  }
}

TEST_CASE("512 hosts under NSCC spray, one cable loses 1 %: only its own packets are late") {
  const Fabric fabric = leaf_spine(32, 16, 16);
  const Load load = permutation(fabric, 2'000'000, 16 * 5 + 3);
  Setting setting{.options = nscc()};
  const PacketRunResult clean = run(fabric, load, setting);
  REQUIRE(clean.counters.retransmissions == 0);
  std::vector<Ps> times;
  for (const MessageEnd& m : clean.messages) times.push_back(m.end - m.start);
  std::ranges::nth_element(times, times.begin() + 256);
  for (std::uint64_t seed = 1; seed <= test_effort(3); ++seed) {
    setting.options.seed = seed;
    setting.changes = {lossy(fabric, {"leaf:3->spine:5", "spine:5->leaf:3"}, 0.01)};
    const PacketRunResult result = run(fabric, load, setting);
    REQUIRE(result.complete);
    CHECK(result.counters.drops > 0);
    const double most = microseconds(last_end(result));
    MESSAGE("clean mean " << mean_time(clean) << " us, lossy mean " << mean_time(result)
                          << " us, most " << most << " us, " << result.counters.drops << " drops, "
                          << result.counters.retransmissions << " sent again");
    CHECK(mean_time(result) < 1.02 * mean_time(clean));
    CHECK(most < 3 * microseconds(times[256]));
  }
}

TEST_CASE("credit that gets lost is asked for again after round trips") {
  const Fabric fabric = leaf_spine(4, 4, 4);
  const Load load = permutation(fabric, 500 * payload, 5);
  Setting setting{.options = selective(Balance::spray)};
  setting.options.admission = Admission::pull;
  setting.options.overflow = Overflow::trim;
  setting.options.scheduler = {.weights = {4160, 0}, .control_class = 1};
  const PacketRunResult clean = run(fabric, load, setting);
  setting.changes = {lossy(fabric, {"leaf:0->spine:0", "spine:0->leaf:0"}, 0.05)};
  const PacketRunResult result = run(fabric, load, setting);
  CHECK(result.complete);
  CHECK(result.counters.drops > 0);
  CHECK(mean_time(result) < 1.5 * mean_time(clean));
  CHECK(last_end(result) < last_end(clean) + 200 * us);
}

TEST_CASE("an outage of every path holds credit back no longer than data") {
  const Fabric fabric = leaf_spine(2, 2, 1);
  Load load;
  for (std::size_t i = 0; i < 2; ++i) load.add(fabric, i, 2 + i, 800 * payload);
  for (const char* const out : {"spine:0", "leaf:1"}) {
    CAPTURE(out);
    Ps ends[2] = {};
    for (const Admission admission : {Admission::open, Admission::pull}) {
      Setting setting{.options = selective(Balance::spray)};
      setting.options.window = packets_of(100);
      setting.options.admission = admission;
      StateChange dead{{20'000'000}, {}};
      dead.state.set(node(fabric, out), {.health = Health::down});
      setting.changes = {{}, dead, {{200'000'000}, {}}};
      const PacketRunResult result = run(fabric, load, setting);
      CHECK(result.complete);
      CHECK(result.counters.drops_link > 0);
      ends[admission == Admission::pull ? 1 : 0] = last_end(result);
    }
    CHECK(ends[1] < ends[0] + 100 * us);
  }
}

TEST_CASE("a spine dies under spray: what it held is sent again after round trips") {
  const Fabric fabric = leaf_spine(2, 4, 4);
  Load load;
  for (std::size_t i = 0; i < 4; ++i) load.add(fabric, i, 4 + i, 2000 * payload);
  for (const Balance balance : {Balance::spray, Balance::reps, Balance::adaptive}) {
    CAPTURE(static_cast<int>(balance));
    Setting setting{.options = selective(balance)};
    setting.options.window = packets_of(100);
    const PacketRunResult clean = run(fabric, load, setting);
    StateChange dead{{30'000'000}, {}};
    dead.state.set(node(fabric, "spine:2"), {.health = Health::down});
    setting.changes = {{}, dead};
    const PacketRunResult result = run(fabric, load, setting);
    CHECK(result.complete);
    CHECK(result.counters.drops_link > 0);
    CHECK(result.counters.retransmissions >= result.counters.drops);
    // Three of four spines are left.
    CHECK(last_end(result) < last_end(clean) * 4 / 3 + 60 * us);
  }
}

}  // namespace
}  // namespace weft::engine::packet::testing
