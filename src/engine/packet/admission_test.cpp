// Who may send, and when: clearances of a receiver's slots, and credit that is pulled.
#include "engine/packet/test_kit.hpp"

namespace weft::engine::packet::testing {
namespace {

Options cts(std::uint32_t channels, std::int64_t packets) {
  Options options;
  options.admission = Admission::cts;
  options.cts = {.channel_buffer = Bytes{static_cast<std::int64_t>(payload) * packets},
                 .channels = channels,
                 .queue = CtsOptions::Queue::data};
  return options;
}

TEST_CASE("CTS: no more than channels x buffer of a pair is under way") {
  const Fabric fabric = star(equal(9));
  const std::size_t to_receiver = link(fabric, "s:0->nic:8").index();
  const Load load = incast(fabric, 8, 400 * payload);
  const PacketRunResult open = run(fabric, load);
  for (const std::uint32_t channels : {1u, 2u, 4u})
    for (const std::int64_t buffer : {1, 4, 16}) {
      CAPTURE(channels);
      CAPTURE(buffer);
      const PacketRunResult result = run(fabric, load, cts(channels, buffer));
      CHECK(result.complete);
      const std::uint64_t bound = 8ull * channels * static_cast<std::uint64_t>(buffer) * full_bytes;
      CHECK(result.links[to_receiver].queue_max < bound);
      // Where that is more than the link holds in a round trip it stays busy, and the bound is met.
      if (bound < 100 * full_bytes) continue;
      CHECK(result.links[to_receiver].queue_max > bound / 2);
      CHECK(result.end < open.end + open.end / 50);
    }
  CHECK(open.links[to_receiver].queue_max > 2000 * full_bytes);
}

TEST_CASE("CTS: one slot of one packet is stop and wait, the proxy's time included") {
  const Fabric fabric = star(equal(2));
  Options options = cts(1, 1);
  options.cts.proxy_delay = 700_ns;
  const PacketRunResult result = run(fabric, Load{}.add(fabric, 0, 1, 50 * payload), options);
  // The clearance goes 700 ns after the packet has come, long after its ACK.
  const Ps round = 2 * (full + us) + 700'000 + 2 * (1'280 + us);
  CHECK(result.messages[0].arrived == 49 * round + 2 * (full + us));
}

TEST_CASE("CTS: clearances in a class of their own pass the queues of data") {
  // Two rings of incasts: what goes back to each sender meets what others send to it.
  const Fabric fabric = leaf_spine(2, 4, 1);
  Load load;
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 4; j < 8; ++j)
      load.add(fabric, i, j, 60 * payload).add(fabric, j, i, 60 * payload);
  Options options = cts(1, 4);
  options.pfc = fixed_pfc(100, 80);
  options.scheduler = {.weights = {4160, 0}, .control_class = 1};
  const PacketRunResult behind = run(fabric, load, options);
  options.cts.queue = CtsOptions::Queue::high;
  const PacketRunResult ahead = run(fabric, load, options);
  CHECK(behind.complete);
  CHECK(ahead.complete);
  CHECK(ahead.counters.drops + behind.counters.drops == 0);
  CHECK(ahead.end < behind.end);
  CHECK(mean_time(ahead) < mean_time(behind));
}

// As read_options() makes `{name: eqds}`, but for the size of the window.
Options eqds() {
  Options options;
  options.reliability = Reliability::selective;
  options.admission = Admission::pull;
  options.balance = Balance::spray;
  options.overflow = Overflow::trim;
  options.round_trip_queues = true;
  options.ecn = {.on = true, .pmax = 1};
  options.window = packets_of(256);
  options.scheduler = {.weights = {4160, 0}, .ack_class = 1, .control_class = 1};
  return options;
}

TEST_CASE("pull: an incast keeps the receiver's link busy with small buffers and no drops") {
  const Fabric fabric = star(equal(17));
  Options options = eqds();
  options.round_trip_queues = false;
  options.buffers[""] = {.per_port = packets_of(30)};
  const std::uint64_t packets = 300;
  const PacketRunResult result = run(fabric, incast(fabric, 16, packets * payload), options);
  CHECK(result.complete);
  CHECK(result.counters.drops == 0);
  CHECK(result.counters.timeouts == 0);
  // The first windows come unasked, and are trimmed; what follows comes as the link takes it.
  CHECK(result.counters.trims > 0);
  CHECK(result.counters.trims < 16 * 60);
  CHECK(result.links[link(fabric, "s:0->nic:16").index()].queue_max <=
        31 * full_bytes + 16 * packets * 64);
  const double busy = static_cast<double>(16 * packets * full) / static_cast<double>(result.end);
  CHECK(busy > 0.95);
  CHECK(busy < 1);

  // A window that fits needs no trimming at all after the first round.
  options.buffers.clear();
  const PacketRunResult deep = run(fabric, incast(fabric, 16, packets * payload), options);
  CHECK(deep.complete);
  CHECK(deep.counters.trims == 0);
  CHECK(deep.counters.retransmissions == 0);
}

TEST_CASE("pull: senders to one receiver get equal shares") {
  const Fabric fabric = star(equal(5));
  Options options = eqds();
  options.round_trip_queues = false;
  const PacketRunResult result = run(fabric, incast(fabric, 4, 500 * payload), options);
  const auto [least, most] = std::ranges::minmax(result.messages, {}, &MessageEnd::end);
  CHECK(least.end > most.end * 97 / 100);
}

TEST_CASE("pull: each NIC gives credit as fast as its own link") {
  // To a NIC of 100 Gb/s, from one that could send four times as much, and back.
  const Fabric fabric = star({400_Gbps, 100_Gbps, 400_Gbps});
  const std::uint64_t packets = 2'000;
  Load load;
  load.add(fabric, 0, 1, packets * payload).add(fabric, 1, 2, packets * payload);
  load.add(fabric, 2, 0, packets * payload);
  const PacketRunResult result = run(fabric, load, eqds());
  CHECK(result.complete);
  // Trimmed is at most the first window, 68 packets of 400 Gb/s in the round trip of 100 Gb/s.
  CHECK(result.counters.trims <= 68);
  const auto takes = [&](std::size_t message, double packet_ps) {
    const double line = static_cast<double>(packets) * packet_ps;
    CHECK(static_cast<double>(result.messages[message].arrived) > line);
    CHECK(static_cast<double>(result.messages[message].arrived) < 1.08 * line);
  };
  takes(0, 4. * full);
  takes(1, 4. * full);
  takes(2, full);
}

TEST_CASE("pull: a trimmed packet is given credit without another request") {
  const Fabric fabric = star(equal(3));
  Options options = eqds();
  options.round_trip_queues = false;
  options.buffers[""] = {.per_port = packets_of(8)};
  const std::uint64_t packets = 40;  // less than the first window
  const PacketRunResult result = run(fabric, incast(fabric, 2, packets * payload), options);
  CHECK(result.complete);
  CHECK(result.counters.retransmissions == result.counters.trims);
  CHECK(result.counters.trims > 20);
  // The last header comes when all are sent, credit goes back and the packet comes. By a NACK, a
  // request and credit it would be 4 us later.
  const Ps header = (packets + 1) * full + 2 * us;
  const Ps last = std::ranges::max(result.messages, {}, &MessageEnd::arrived).arrived;
  CHECK(last > header + 4 * us);
  CHECK(last < header + 4 * us + 12 * full);
}

TEST_CASE("pull: an idle queue pair sends its first window unasked again") {
  const Fabric fabric = star(equal(2));
  Load load;
  load.add(fabric, 0, 1, 20 * payload);
  load.drafts.push_back({.connection = 0, .bytes = 20 * payload, .not_before_ps = 100 * us});
  load.drafts.push_back({.connection = 0, .bytes = 20 * payload, .not_before_ps = 200 * us});
  const PacketRunResult result = run(fabric, load, eqds());
  for (const MessageEnd& message : result.messages)
    CHECK(message.arrived - message.start == result.messages[0].arrived);
  // 52 packets are a round trip; three messages of 20 are more than one first window.
  CHECK(result.messages[0].arrived == 20 * full + full + 2 * us);
}

TEST_CASE("pull: on an oversubscribed fabric credit follows what the core takes") {
  const Fabric fabric = leaf_spine(4, 8, 2);  // 4:1
  const Load load = permutation(fabric, 500 * payload, 8);
  Options options = eqds();
  const PacketRunResult result = run(fabric, load, options);
  options.ecn.on = false;
  const PacketRunResult blind = run(fabric, load, options);
  CHECK(result.complete);
  CHECK(blind.complete);
  CHECK(blind.counters.trims > 32 * 500);  // each packet, in the mean, more than once
  CHECK(result.counters.trims < blind.counters.trims / 4);
  const double ideal = 4. * 500 * full;
  CHECK(static_cast<double>(result.end) > ideal);
  CHECK(static_cast<double>(result.end) < 1.15 * ideal);
  CHECK(result.end < blind.end);

  // Nothing is held back where the core takes all.
  const Fabric even = leaf_spine(4, 8, 8);
  const Load even_load = permutation(even, 500 * payload, 8);
  const PacketRunResult unmarked = run(even, even_load, options);
  options.ecn.on = true;
  const double longer =
      static_cast<double>(run(even, even_load, options).end) / static_cast<double>(unmarked.end);
  CHECK(std::abs(longer - 1) < 0.02);
}

}  // namespace
}  // namespace weft::engine::packet::testing
