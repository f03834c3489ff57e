#include "engine/packet/reference.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "base/test_effort.hpp"
#include "engine/packet/random_case.hpp"
#include "engine/packet/test_kit.hpp"

namespace weft::engine::packet {
namespace {

using testing::chain;
using testing::equal;
using testing::star;

Connection between(const Fabric& fabric, std::size_t src, std::size_t dst) {
  return {.src = fabric.nics()[src], .dst = fabric.nics()[dst]};
}

PacketRunResult run(const Fabric& fabric, std::vector<Connection> connections,
                    const std::vector<MessageDraft>& drafts, const Options& options = {}) {
  auto router = route::Router::create(fabric, {}, 1);
  REQUIRE(router.has_value());
  const PacketRunResult result =
      run_reference(make_messages(std::move(connections), drafts), *router, options);
  CHECK(result.conservation.holds());
  return result;
}

// At 400 Gb/s: a full packet of 4160 B, a control packet or frame of 64 B.
constexpr Ps full = 83'200, control = 1'280;
constexpr Ps latency = 1'000'000;
constexpr std::uint64_t full_bytes = 4160, payload = 4096;
Bytes packets_of(std::int64_t count) { return 4160_B * count; }

TEST_CASE("one flow: serialisation of n packets, store and forward, latencies, and the last ACK") {
  for (const std::size_t links : {2u, 4u, 6u}) {
    const Fabric fabric = chain(equal(links), 1_us);
    const PacketRunResult result =
        run(fabric, {between(fabric, 0, 1)}, {{.bytes = 2'000'000, .not_before_ps = 7}});
    REQUIRE(result.complete);
    const Ps arrived = 7 + 489 * full + (links - 1) * full + links * latency;
    CHECK(result.messages[0].start == 7);
    CHECK(result.messages[0].arrived == arrived);
    CHECK(result.messages[0].end == arrived + links * (control + latency));
    CHECK(result.end == result.messages[0].end);
    CHECK(result.counters.hops == 2ull * 489 * links);
    CHECK(result.counters.buffer_max == 0);
    CHECK(result.conservation.sent == 489 * payload);
    CHECK(result.links[0].packets == 489);
    CHECK(result.links[0].bytes == 489 * full_bytes);
    CHECK(result.links[1].control == 489);
  }
}

TEST_CASE("an exact last packet is shorter by what is missing, once") {
  const Fabric fabric = chain(equal(4), 1_us);
  Options options;
  options.wire.last_packet = LastPacket::exact;
  const PacketRunResult result =
      run(fabric, {between(fabric, 0, 1)}, {{.bytes = 2'000'000}}, options);
  const Ps last = (2'000'000 - 488 * payload + 64) * 20;  // 20 ps a byte
  CHECK(result.messages[0].arrived == 488 * full + 3 * full + last + 4 * latency);
  CHECK(result.conservation.received == 2'000'000);

  // A message of one packet is never filled up.
  options.wire.last_packet = LastPacket::full;
  const PacketRunResult small = run(fabric, {between(fabric, 0, 1)}, {{.bytes = 1}}, options);
  CHECK(small.messages[0].arrived == 4 * (Ps{65} * 20 + latency));
}

TEST_CASE("a slow second link queues, and a packet that starts now no longer waits") {
  // Packet k (from 1) is at the switch at k S + l and starts there 4 (k - 1) S after the first.
  const Fabric fabric = chain({400_Gbps, 100_Gbps}, 1_us);
  const PacketRunResult result = run(fabric, {between(fabric, 0, 1)}, {{.bytes = 9 * payload}});
  CHECK(result.messages[0].arrived == full + 36 * full + 2 * latency);
  CHECK(result.links[2].queue_max == 6 * full_bytes);
  CHECK(result.counters.buffer_max == 6 * full_bytes);
}

TEST_CASE("a window of one packet is stop and wait; of a round trip it changes nothing") {
  const Fabric fabric = chain(equal(2), 1_us);
  const Ps round_trip = 2 * (full + latency + control + latency);
  Options options;
  for (const std::int64_t window : {1, 4160, 8319}) {
    options.window = Bytes{window};
    const PacketRunResult result =
        run(fabric, {between(fabric, 0, 1)}, {{.bytes = 10 * payload}}, options);
    CHECK(result.messages[0].end == 10 * round_trip);
  }
  const auto enough = static_cast<std::int64_t>((round_trip + full - 1) / full);
  options.window = packets_of(enough);
  CHECK(run(fabric, {between(fabric, 0, 1)}, {{.bytes = 999 * payload}}, options).messages[0].end ==
        998 * full + round_trip);
  options.window = packets_of(enough - 1);
  CHECK(run(fabric, {between(fabric, 0, 1)}, {{.bytes = 999 * payload}}, options).messages[0].end >
        998 * full + round_trip);
}

TEST_CASE("messages of a connection go one after the other, in the order in which they are ready") {
  const Fabric fabric = chain(equal(2), 1_us);
  const std::vector<MessageDraft> drafts{{.bytes = 4096, .not_before_ps = 2},
                                         {.bytes = 8192, .not_before_ps = 1},
                                         {.bytes = 4096, .not_before_ps = 2}};
  const PacketRunResult result = run(fabric, {between(fabric, 0, 1)}, drafts);
  const Ps way = full + 2 * latency;
  CHECK(result.messages[1].arrived == 1 + 2 * full + way);
  CHECK(result.messages[0].arrived == 1 + 3 * full + way);
  CHECK(result.messages[2].arrived == 1 + 4 * full + way);
}

TEST_CASE("dependents go when a message has arrived, or when its sender knows, and after a delay") {
  const Fabric fabric = star(equal(3), 1_us);
  const std::vector<MessageDraft> drafts{
      {.connection = 0, .bytes = 4096},
      {.connection = 1, .bytes = 4096, .delay_ns = 5, .waits = {{0, Dependent::When::arrived}}},
      {.connection = 0, .bytes = 4096, .waits = {{0}}},
      {.connection = 0, .bytes = 0, .not_before_ps = 9 * latency, .waits = {{1}, {2}}}};
  const PacketRunResult result =
      run(fabric, {between(fabric, 0, 1), between(fabric, 1, 2)}, drafts);
  CHECK(result.messages[1].start == result.messages[0].arrived + 5000);
  CHECK(result.messages[2].start == result.messages[0].end);
  CHECK(result.messages[3].start ==
        std::max({result.messages[1].end, result.messages[2].end, 9 * latency}));
  CHECK(result.messages[3].end == result.messages[3].start);
  CHECK(result.complete);
}

TEST_CASE("two flows from one NIC take turns") {
  const Fabric fabric = star(equal(3), 1_us);
  const std::vector<MessageDraft> drafts{
      {.connection = 0, .bytes = 100 * payload},
      {.connection = 1, .bytes = 100 * payload, .not_before_ps = 1}};
  const PacketRunResult result =
      run(fabric, {between(fabric, 0, 1), between(fabric, 0, 2)}, drafts);
  // The first is alone when the link takes its first packet, and joins for the second before the
  // other comes: 0 0 1 0 1 ... 0 1 1.
  const Ps way = full + 2 * latency;
  CHECK(result.messages[0].arrived == 198 * full + way);
  CHECK(result.messages[1].arrived == 200 * full + way);
}

TEST_CASE("two flows over one link: it is never idle, and its queue holds half of all") {
  // nic:0 and nic:1 to nic:2; their packets come in pairs, that of the lower link first.
  const Fabric fabric = star(equal(3), 1_us);
  const std::vector<MessageDraft> drafts{{.connection = 0, .bytes = 100 * payload},
                                         {.connection = 1, .bytes = 100 * payload}};
  const PacketRunResult result =
      run(fabric, {between(fabric, 0, 2), between(fabric, 1, 2)}, drafts);
  CHECK(result.messages[0].arrived == full + latency + 199 * full + latency);
  CHECK(result.messages[1].arrived == full + latency + 200 * full + latency);
  CHECK(result.links[5].queue_max == 100 * full_bytes);
}

// `senders` NICs send `packets` each to the last one; returns the time of the last end.
Ps incast_end(std::uint64_t senders, std::uint64_t packets) {
  return full + latency + senders * packets * full + latency + 2 * (control + latency);
}

PacketRunResult run_incast(const Fabric& fabric, std::uint64_t packets, const Options& options) {
  const std::size_t senders = fabric.nics().size() - 1;
  std::vector<Connection> connections;
  std::vector<MessageDraft> drafts;
  for (std::uint32_t i = 0; i < senders; ++i) {
    connections.push_back(between(fabric, i, senders));
    drafts.push_back({.connection = i, .bytes = packets * payload});
  }
  return run(fabric, connections, drafts, options);
}

Ps last_end(const PacketRunResult& result) {
  return std::ranges::max(result.messages, {}, &MessageEnd::end).end;
}

TEST_CASE("incast: the receiver's link is never idle, with PFC and without") {
  const Fabric fabric = star(equal(9), 1_us);
  Options options;
  CHECK(last_end(run_incast(fabric, 100, options)) == incast_end(8, 100));
  options.pfc = {.on = true, .threshold = Pfc::Threshold::fixed};
  const PacketRunResult paused = run_incast(fabric, 100, options);
  CHECK(last_end(paused) == incast_end(8, 100));
  CHECK(paused.counters.drops == 0);
  CHECK(paused.counters.pause_frames > 0);
  CHECK(paused.counters.pause_frames % 2 == 0);
}

TEST_CASE("ECN: beyond kmax every packet is marked once, up to kmin none") {
  // Packets come in pairs; k wait when the second of a pair comes, from 0 to 99.
  const Fabric fabric = star(equal(3), 1_us);
  Options options;
  options.ecn = {.on = true, .kmin = packets_of(10), .kmax = packets_of(10)};
  const PacketRunResult step = run_incast(fabric, 100, options);
  std::uint64_t expected = 0, waiting = 0;
  for (int pair = 0; pair < 100; ++pair) {
    if (pair > 0) --waiting;  // one starts as the pair comes
    for (int i = pair == 0 ? 1 : 0; i < 2; ++i, ++waiting) expected += waiting > 10 ? 1 : 0;
  }
  CHECK(step.counters.ecn_marks == expected);
  CHECK(step.links[5].ecn_marked == expected);
  options.ecn = {.on = true, .kmin = packets_of(100), .kmax = packets_of(100)};
  CHECK(run_incast(fabric, 100, options).counters.ecn_marks == 0);
}

TEST_CASE("ECN: between the thresholds the share of marks follows the queue") {
  // A queue that stays at some 20 packets: of 8 senders one at a time may send, 20 ahead.
  const Fabric fabric = star(equal(9), 1_us);
  Options options;
  options.window = packets_of(10);
  options.ecn = {.on = true, .kmin = Bytes{0}, .kmax = packets_of(100), .pmax = 0.5};
  const PacketRunResult result = run_incast(fabric, 500, options);
  // 80 packets are under way, 25 of them on the wire at least: some 53 wait, or 26 % are marked.
  const double share = static_cast<double>(result.counters.ecn_marks) / 4000;
  CHECK(share > 0.12);
  CHECK(share < 0.28);
}

// PFC. nic:0 at 400 Gb/s sends through a switch to nic:1 at 100 Gb/s: the switch gains 3 packets of
// 4, and packet k waits there at k S + l.
struct SlowReceiver {
  Fabric fabric = chain({400_Gbps, 100_Gbps}, 1_us);
  Options options;
  SlowReceiver() {
    options.pfc = {.on = true, .threshold = Pfc::Threshold::fixed, .xoff = 6_B, .xon = 5_B};
    options.pfc.xoff = packets_of(6);
    options.pfc.xon = packets_of(3);
  }
  PacketRunResult run(std::uint64_t packets) {
    return packet::run(fabric, {between(fabric, 0, 1)}, {{.bytes = packets * payload}}, options);
  }
};

TEST_CASE("PFC pauses when the ingress holds one byte more than XOFF") {
  SlowReceiver slow;
  // 9 packets leave 6 waiting: see above. The tenth would be one too many.
  CHECK(slow.run(9).counters.pause_frames == 0);
  const PacketRunResult result = slow.run(10);
  CHECK(result.counters.pause_frames == 2);
  CHECK(result.links[0].pauses == 1);
  slow.options.pfc.xoff = packets_of(6) - 1_B;
  CHECK(slow.run(9).counters.pause_frames == 2);
}

TEST_CASE(
    "a pause starts and ends when its frames arrive, and those wait for what is on the wire") {
  SlowReceiver slow;
  const PacketRunResult result = slow.run(10);
  // Packets 1 to 3 have started when the tenth arrives at 10 S + l: 7 wait. Then the way back is
  // free (ACKs arrive at the switch later). 3 wait when packet 7 starts, 24 S after the first.
  const Ps paused = 10 * full + latency + control + latency;
  const Ps room = full + latency + 24 * full;
  CHECK(result.counters.buffer_max == 7 * full_bytes);
  // Packet k is at the receiver at (1 + 4 k) S + 2 l, and its ACK (on the slow link) 4 c + l later
  // at the switch: none is on its way to nic:0 when packet 7 starts.
  for (std::uint64_t k = 1; k <= 10; ++k) {
    const Ps ack = (1 + 4 * k) * full + 3 * latency + 4 * control;
    CHECK((room < ack || room >= ack + control));
  }
  CHECK(result.links[0].paused_ps == room + control + latency - paused);
  CHECK(result.end == result.messages[0].end);
}

TEST_CASE("headroom: what still comes after a pause fits, and 1 byte less drops one packet") {
  // The pause takes effect at 10 S + 2 l + c; nic:0 starts packets at 0, S, 2 S, ..., the last at
  // or before that time; the switch then holds all that have not started.
  SlowReceiver slow;
  slow.options.ack_timeout = 1_s;
  const Ps paused = 10 * full + 2 * latency + control;
  const std::uint64_t sent = paused / full + 1;
  const Ps last_in = sent * full + latency;
  const std::uint64_t started = (last_in - (full + latency)) / (4 * full) + 1;
  const std::uint64_t held = (sent - started) * full_bytes, at_pause = 7 * full_bytes;

  slow.options.pfc.headroom = Bytes{static_cast<std::int64_t>(held - at_pause)};
  const PacketRunResult fits = slow.run(200);
  CHECK(fits.counters.drops == 0);
  CHECK(fits.counters.buffer_max == held);
  CHECK(fits.complete);

  slow.options.pfc.headroom = slow.options.pfc.headroom - 1_B;
  const PacketRunResult dropped = slow.run(200);
  CHECK(dropped.counters.drops > 0);
  CHECK(dropped.counters.drops_headroom == dropped.counters.drops);
  CHECK(dropped.counters.retransmissions > 0);
  CHECK(dropped.complete);

  slow.options.pfc.headroom = Bytes{-1};
  CHECK(slow.run(200).counters.drops == 0);
}

TEST_CASE("the default headroom is enough where nothing drains, and nine tenths of it are not") {
  // One packet leaves in 33 us. The eighth is one too many; 25 more are sent before nic:0 stops.
  SlowReceiver slow;
  slow.fabric = chain({400_Gbps, 1_Gbps}, 1_us);
  const PacketRunResult fits = slow.run(100);
  CHECK(fits.counters.drops == 0);
  CHECK(fits.counters.buffer_max == (7 + 25) * full_bytes);
  slow.options.pfc.headroom_factor = 0.9;
  const PacketRunResult dropped = slow.run(100);
  CHECK(dropped.counters.drops_headroom > 0);
  CHECK(dropped.complete);
}

TEST_CASE("dynamic thresholds follow what is left of the memory") {
  // alpha 1: an ingress alone may hold half of the pool.
  SlowReceiver slow;
  slow.options.pfc.threshold = Pfc::Threshold::dynamic;
  slow.options.pfc.alpha = 1;
  slow.options.pfc.headroom = Bytes{100'000};
  slow.options.buffers["s"].shared = Bytes{200'000} + packets_of(12);
  CHECK(slow.run(9).counters.pause_frames == 0);  // 6 of 12
  slow.options.buffers["s"].shared = Bytes{199'999} + packets_of(12);
  CHECK(slow.run(9).counters.pause_frames == 2);
  slow.options.buffers.clear();
  CHECK(slow.run(9).counters.pause_frames == 0);
}

TEST_CASE("a full buffer drops; a NACK or the timer brings back all from the hole on") {
  // At most 6 of 9 packets wait at a time: when the eighth has come, and when the ninth has.
  SlowReceiver slow;
  slow.options.pfc.on = false;
  slow.options.ack_timeout = 1_s;
  slow.options.buffers[""] = {.shared = packets_of(6)};
  CHECK(slow.run(9).counters.drops == 0);
  const auto at_receiver = [](Ps started) { return started + full + 4 * full + 2 * latency; };
  const Ps way_back = 4 * control + latency + control + latency;

  // The eighth is dropped and nothing follows it: sent again a timeout after the seventh's ACK.
  slow.options.buffers[""] = {.shared = packets_of(5)};
  const PacketRunResult tail = slow.run(8);
  CHECK(tail.counters.drops == 1);
  CHECK(tail.counters.timeouts == 1);
  CHECK(tail.counters.retransmissions == 1);
  const Ps seventh = at_receiver(24 * full);
  CHECK(tail.messages[0].arrived == at_receiver(seventh + way_back + Ps{1'000'000'000'000}));
  CHECK(tail.messages[0].end == tail.messages[0].arrived + way_back);

  // The seventh and the eighth are dropped, and the ninth, seventh on the second link, tells.
  slow.options.buffers[""] = {.shared = packets_of(4)};
  const PacketRunResult hole = slow.run(9);
  CHECK(hole.counters.drops == 2);
  CHECK(hole.counters.timeouts == 0);
  CHECK(hole.counters.retransmissions == 3);
  CHECK(hole.messages[0].arrived == at_receiver(seventh + way_back) + 8 * full);
}

TEST_CASE("a bound on the egress queue drops as one on the switch does") {
  SlowReceiver slow;
  slow.options.pfc.on = false;
  slow.options.buffers["s"] = {.per_port = packets_of(5)};
  CHECK(slow.run(9).counters.drops == 1);
  slow.options.buffers["s"] = {.per_port = packets_of(6)};
  CHECK(slow.run(9).counters.drops == 0);
}

TEST_CASE("a connection that hears nothing eight times gives up") {
  // The timer is shorter than the way: 4.2 us for the first message, 40.2 us for the second.
  Options options;
  options.ack_timeout = 1_us;
  options.window = Bytes{4160};
  const Fabric near = chain(equal(2), 1_us);
  const PacketRunResult late = run(near, {between(near, 0, 1)}, {{.bytes = 4096}}, options);
  CHECK(late.counters.timeouts == 4);
  CHECK(late.counters.retransmissions == 4);
  CHECK(late.complete);
  const Fabric far = chain(equal(2), 10_us);
  const PacketRunResult lost = run(far, {between(far, 0, 1)}, {{.bytes = 2 * payload}}, options);
  CHECK(lost.counters.timeouts == 8);
  CHECK(lost.counters.retransmissions == 7);
  CHECK(lost.messages[0].arrived == never);
  CHECK(!lost.complete);
}

TEST_CASE("a run that is cut off counts what is under way") {
  const Fabric fabric = chain(equal(2), 1_us);
  Options options;
  options.end = full + latency + 1;  // the first packet is at the switch, 13 more have started
  const PacketRunResult result =
      run(fabric, {between(fabric, 0, 1)}, {{.bytes = 100 * payload}}, options);
  CHECK(result.conservation.sent == 14 * payload);
  CHECK(result.conservation.in_flight == 14 * payload);
  CHECK(!result.complete);
  CHECK(result.end == full + latency);
}

TEST_CASE("random cases: nothing is lost or made, nothing beats the wire, lossless is lossless") {
  std::uint64_t drops = 0, marks = 0, pauses = 0, complete = 0, retransmissions = 0;
  for (std::uint64_t seed = 0; seed < test_effort(400); ++seed) {
    const RandomCase random = random_case(seed);
    CAPTURE(random.text);
    auto router = route::Router::create(random.fabric, random.routing, random.routing_seed);
    REQUIRE(router.has_value());
    const MessageSet set = make_messages(random.connections, random.drafts);
    const PacketRunResult result = run_reference(set, *router, random.options);
    CHECK(result.conservation.holds());
    const auto losses = static_cast<Losses>(seed % losses_count);
    if (losses == Losses::none_unbounded || losses == Losses::none_paused)
      CHECK(result.counters.drops == 0);
    if (losses != Losses::buffer) CHECK(result.counters.drops == result.counters.drops_headroom);
    if (result.complete) CHECK(result.conservation.in_flight == 0);
    for (const MessageEnd& message : result.messages) {
      if (message.end != never) CHECK(message.arrived <= message.end);
      if (message.arrived != never) CHECK(message.start <= message.arrived);
    }
    drops += result.counters.drops;
    marks += result.counters.ecn_marks;
    pauses += result.counters.pause_frames;
    retransmissions += result.counters.retransmissions;
    complete += result.complete ? 1 : 0;
  }
  // The cases do cover what they are for.
  CHECK(drops > test_effort(1000));
  CHECK(marks > test_effort(1000));
  CHECK(pauses > test_effort(1000));
  CHECK(retransmissions > test_effort(1000));
  CHECK(complete > test_effort(300));
  MESSAGE("drops " << drops << ", marks " << marks << ", frames " << pauses << ", sent again "
                   << retransmissions << ", complete " << complete);
}

}  // namespace
}  // namespace weft::engine::packet
