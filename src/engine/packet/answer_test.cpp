// Receivers that answer several packets with one acknowledgement.
#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "engine/packet/test_kit.hpp"

namespace weft::engine::packet::testing {
namespace {

constexpr Ps ack_time = 1'280, wire = us;  // of 64 B at 400 Gb/s; of a cable

Options gathering(Reliability reliability, std::uint32_t every, Duration delay = 1000_us) {
  Options options;
  options.reliability = reliability;
  options.ack_every = every;
  options.ack_delay = delay;
  return options;
}

constexpr std::array both{Reliability::goback_n, Reliability::selective};

std::uint64_t acks(const Fabric& fabric, const PacketRunResult& result) {
  return result.links[link(fabric, "nic:1->s:0").index()].control;
}

TEST_CASE("an acknowledgement for every N packets, and one for the last") {
  const Fabric fabric = chain(equal(2));
  for (const Reliability reliability : both) {
    for (const std::uint64_t packets : {1u, 3u, 4u, 40u, 41u, 1003u}) {
      const Load load = Load{}.add(fabric, 0, 1, packets * payload);
      for (const std::uint32_t every : {1u, 2u, 4u, 256u}) {
        CAPTURE(packets);
        CAPTURE(every);
        const PacketRunResult result = run(fabric, load, gathering(reliability, every));
        CHECK(acks(fabric, result) == (packets + every - 1) / every);
        CHECK(result.counters.hops == 2 * (packets + acks(fabric, result)));
        // The line is never idle; the last packet is acknowledged at once.
        const Ps arrived = (packets + 1) * full + 2 * wire;
        CHECK(result.messages[0].arrived == arrived);
        CHECK(result.messages[0].end == arrived + 2 * (ack_time + wire));
      }
    }
  }
}

TEST_CASE("who may send no more is answered: a window of W packets costs a round trip each time") {
  const Fabric fabric = chain(equal(2));
  const Ps round_trip = 2 * (full + wire + ack_time + wire);
  for (const Reliability reliability : both) {
    for (const std::int64_t window : {1, 3, 10}) {
      CAPTURE(window);
      Options options = gathering(reliability, 256);
      options.window = packets_of(window);
      const auto packets = static_cast<std::uint64_t>(window);
      const Load load = Load{}.add(fabric, 0, 1, 7 * packets * payload);
      const PacketRunResult result = run(fabric, load, options);
      CHECK(result.messages[0].end == 7 * (round_trip + (packets - 1) * full));
      CHECK(acks(fabric, result) == 7);
    }
  }
}

TEST_CASE("a packet waits for its acknowledgement no longer than the delay") {
  // Packets arrive every 83.2 ns; those up to 2 us after the first are answered 2 us after it.
  const Fabric fabric = chain(equal(2));
  constexpr std::uint64_t packets = 500;
  const Load load = Load{}.add(fabric, 0, 1, packets * payload);
  for (const Reliability reliability : both) {
    const PacketRunResult result = run(fabric, load, gathering(reliability, 1000, 2_us));
    std::uint64_t groups = 1;  // the last ends with the message
    const std::uint64_t each = 2 * us / full + 1;
    for (std::uint64_t first = 0; first + each < packets; first += each) ++groups;
    CHECK(acks(fabric, result) == groups);
    CHECK(result.messages[0].arrived == (packets + 1) * full + 2 * wire);
  }
}

TEST_CASE("the end of a message is acknowledged, though others follow") {
  const Fabric fabric = chain(equal(2));
  for (const Reliability reliability : both) {
    Load load = Load{}.add(fabric, 0, 1, 10 * payload);
    for (int i = 0; i < 3; ++i) load.drafts.push_back({.connection = 0, .bytes = 10 * payload});
    const PacketRunResult result = run(fabric, load, gathering(reliability, 256));
    CHECK(acks(fabric, result) == 4);
    for (std::uint64_t m = 0; m < 4; ++m)
      CHECK(result.messages[m].end == (10 * (m + 1) + 1) * full + 2 * wire + 2 * (ack_time + wire));
  }
}

TEST_CASE("marks are answered at once under selective repeat") {
  // Two senders, one receiver: all that waits behind more than four packets is marked.
  const Fabric fabric = leaf_spine(1, 3, 1);
  Options options = gathering(Reliability::selective, 256);
  options.ecn = {.on = true, .kmin = packets_of(4), .kmax = packets_of(4), .pmax = 1};
  const Load load = incast(fabric, 2, 50 * payload);
  const PacketRunResult result = run(fabric, load, options);
  CHECK(result.counters.ecn_marks > 80);
  const std::uint64_t control_packets = result.links[link(fabric, "nic:2->leaf:0").index()].control;
  CHECK(control_packets >= result.counters.ecn_marks);
  CHECK(control_packets <= result.counters.ecn_marks + 2);
}

TEST_CASE("gathered: lost packets cost what they cost when each is acknowledged") {
  // As in loss_test.cpp: N s / (1 - p) + R + (p + q) 25 us; the last packet asks for its answer.
  const Fabric fabric = chain(equal(2));
  constexpr std::uint64_t packets = 20'000, seeds = test_effort(6);
  const Load load = Load{}.add(fabric, 0, 1, packets * payload);
  for (const Balance balance : {Balance::path, Balance::spray}) {
    for (const double loss : {1e-3, 1e-2}) {
      for (const std::uint32_t every : {4u, 32u}) {
        CAPTURE(loss);
        CAPTURE(every);
        double sum = 0, sent = 0;
        for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
          Setting setting{.options = gathering(Reliability::selective, every, 25_us)};
          setting.options.balance = balance;
          setting.options.seed = seed;
          StateChange lossy{{0}, {}};
          for (const char* name : {"s:0->nic:1", "nic:1->s:0"})
            lossy.state.set(link(fabric, name), {.loss = loss});
          setting.changes = {lossy};
          const PacketRunResult result = run(fabric, load, setting);
          REQUIRE(result.complete);
          CHECK(result.counters.retransmissions >= result.counters.drops);
          CHECK(result.counters.retransmissions <= result.counters.drops + every);
          sum += static_cast<double>(result.messages[0].end);
          sent += static_cast<double>(packets + result.counters.retransmissions);
        }
        // The line is never idle but for the wait for the last packets.
        const double busy = sent * full, runs = seeds;
        CHECK(sum >= busy);
        CHECK(sum / runs <= busy / runs + 60.0 * us);
        CHECK(sum / runs == approx(packets / (1 - loss) * full).epsilon(0.05));
      }
    }
  }
}

TEST_CASE("NSCC: gathered answers leave completion within 2 % and a third of the hops") {
  const Fabric fabric = fat_tree();
  const Load load = permutation(fabric, 1000 * payload, 5);
  Options options;
  options.reliability = Reliability::selective;
  options.balance = Balance::spray;
  options.congestion = Congestion::nscc;
  options.overflow = Overflow::trim;
  options.round_trip_queues = true;
  options.ecn = {.on = true, .pmax = 1};
  options.scheduler = {.weights = {4160, 0}, .ack_class = 1, .control_class = 1};
  const PacketRunResult each = run(fabric, load, options);
  options.ack_every = 4;
  options.ack_delay = 25_us;
  const PacketRunResult gathered = run(fabric, load, options);
  CHECK(gathered.complete);
  CHECK(mean_time(gathered) == approx(mean_time(each)).epsilon(0.02));
  CHECK(gathered.counters.hops < each.counters.hops * 7 / 10);
  CHECK(gathered.counters.hops > each.counters.hops * 6 / 10);
  CHECK(gathered.counters.timeouts == 0);
}

}  // namespace
}  // namespace weft::engine::packet::testing
