// PFC beyond one link: back-pressure from slow hosts, victims, priorities, and circles of pauses.
#include "engine/packet/test_kit.hpp"

namespace weft::engine::packet::testing {
namespace {

TEST_CASE("links that stand still for most of the traffic are named, however late timers are") {
  const Fabric fabric = star(equal(4));
  for (const Ps start : {Ps{0}, 20'000 * us})
    for (const Duration ack_timeout : {300_us, 16'777_us}) {
      CAPTURE(start);
      CAPTURE(ack_timeout.ps);
      Options options;
      options.pfc = fixed_pfc();
      options.receive_rate = 0.05;
      options.ack_timeout = ack_timeout;
      const PacketRunResult result =
          run(fabric, Load{}.add(fabric, 0, 3, 500 * payload, start), options);
      REQUIRE(result.complete);
      CHECK(last_end(result) < start + 1'000 * us);
      const Ps paused = result.links[link(fabric, "nic:0->s:0").index()].paused_ps;
      CHECK(paused > (last_end(result) - start) / 2);
      REQUIRE(result.storms.size() == 2);
      CHECK(result.storms[0].starts_with("nic:0->s:0 was paused for "));
      CHECK(result.storms[1].starts_with("s:0->nic:3 was paused for "));
    }
}

TEST_CASE("a receiver at nine tenths of line rate is no storm") {
  const Fabric fabric = star(equal(4));
  Options options;
  options.pfc = fixed_pfc();
  options.receive_rate = 0.9;
  const PacketRunResult result = run(fabric, Load{}.add(fabric, 0, 3, 5000 * payload), options);
  CHECK(result.counters.pause_frames > 0);
  CHECK(result.storms.empty());
}

TEST_CASE("slow receivers push back through NIC and switch, and finish at their own rate") {
  const Fabric fabric = star(equal(3));
  Options options;
  options.pfc = fixed_pfc();
  options.receive_rate = 0.25;
  const std::uint64_t packets = 400;
  const PacketRunResult result =
      run(fabric, Load{}.add(fabric, 0, 2, packets * payload).add(fabric, 1, 2, packets * payload),
          options);
  REQUIRE(result.complete);
  CHECK(result.counters.drops == 0);
  // Nothing drains before the first packet has come over two links; then one in 4 packet times.
  const Ps drained = 2 * (full + us) + 2 * packets * 4 * full;
  for (const MessageEnd& m : result.messages)
    CHECK(microseconds(m.arrived) == doctest::Approx(microseconds(drained)).epsilon(0.01));
  CHECK(std::max(result.messages[0].arrived, result.messages[1].arrived) == drained);
  CHECK(result.links[link(fabric, "s:0->nic:2").index()].pauses > 0);
  CHECK(result.links[link(fabric, "nic:0->s:0").index()].pauses > 0);
  CHECK(result.links[link(fabric, "nic:1->s:0").index()].pauses > 0);
  CHECK(result.links[link(fabric, "s:0->nic:0").index()].pauses == 0);
}

//   nic:0 .. nic:3 -- s:0 ==1600 Gb/s== s:1 -- nic:4, nic:5
struct TwoSwitches {
  Fabric fabric;
  TwoSwitches() {
    FabricBuilder builder;
    std::array<NodeId, 2> s;
    for (NodeId& node : s) node = builder.add_node({NodeKind::fabric_switch, "s", {}});
    for (std::size_t i = 0; i < 6; ++i)
      builder.add_circuit(builder.add_node({NodeKind::nic, "nic", {}}), s[i / 4],
                          {.rate = 400_Gbps, .latency = 1_us});
    builder.add_circuit(s[0], s[1], {.rate = 1600_Gbps, .latency = 1_us});
    fabric = builder.freeze();
  }
  // nic:0 .. nic:2 to nic:4, and from nic:3 to nic:5 a flow that no link has too little for.
  PacketRunResult run_victim(const Options& options, std::uint8_t victim_class) const {
    Load load;
    for (std::size_t i = 0; i < 3; ++i) load.add(fabric, i, 4, 500 * payload);
    load.add(fabric, 3, 5, 500 * payload, 0, victim_class);
    PacketRunResult result = run(fabric, load, options);
    CHECK(result.complete);
    CHECK(result.counters.drops == 0);
    return result;
  }
  // Of the victim where nobody is in its way.
  static constexpr Ps alone = 500 * full + full / 4 + full + 3 * us;
};

TEST_CASE("head-of-line blocking: with PFC a flow suffers from an incast elsewhere") {
  const TwoSwitches net;
  Options options;
  const Ps free = net.run_victim(options, 0).messages[3].arrived;
  CHECK(free >= TwoSwitches::alone);
  CHECK(free < TwoSwitches::alone + full);  // it may meet a packet of another on the trunk
  options.pfc = fixed_pfc();
  const PacketRunResult paused = net.run_victim(options, 0);
  CHECK(paused.links[link(net.fabric, "s:0->s:1").index()].pauses > 0);
  CHECK(paused.messages[3].arrived > TwoSwitches::alone * 3 / 2);
}

TEST_CASE("pauses are by class: a flow in another one is not stopped, nor are ACKs") {
  const TwoSwitches net;
  Options options;
  options.pfc = fixed_pfc();
  options.scheduler.weights = {4160, 4160};
  const PacketRunResult result = net.run_victim(options, 1);
  CHECK(result.links[link(net.fabric, "s:0->s:1").index()].pauses > 0);
  CHECK(result.links[link(net.fabric, "nic:0->s:0").index()].pauses > 0);
  CHECK(result.links[link(net.fabric, "nic:3->s:0").index()].pauses == 0);
  // At each of two switches a packet of the other class may go first.
  CHECK(result.messages[3].arrived < TwoSwitches::alone + 4 * full);
}

TEST_CASE("ACKs of a class of their own pass data that is paused") {
  // nic:0 sends to nic:1, and nic:1 to nic:2, which drains slowly: nic:1 may not send data.
  const Fabric fabric = star({400_Gbps, 400_Gbps, 25_Gbps});
  Options options;
  options.pfc = fixed_pfc();
  options.window = packets_of(1);
  const auto first_end = [&] {
    Load load = Load{}.add(fabric, 1, 2, 100 * payload).add(fabric, 0, 1, 20 * payload, 10 * us);
    // Many connections, so that the window does not bound what waits at the switch.
    for (int i = 0; i < 60; ++i) load.add(fabric, 1, 2, payload);
    const PacketRunResult result = run(fabric, load, options);
    CHECK(result.complete);
    CHECK(result.links[link(fabric, "nic:1->s:0").index()].pauses > 0);
    return result.messages[1].end - result.messages[1].start;
  };
  const Ps round_trip = 2 * (full + us) + 2 * (1'280 + us);
  CHECK(first_end() > 21 * round_trip);
  options.scheduler = {.weights = {4160, 0}, .ack_class = 1, .control_class = 1};
  const Ps own_class = first_end();
  CHECK(own_class >= 20 * round_trip);
  CHECK(own_class < 20 * round_trip + 40 * full);
}

TEST_CASE("classes share a link as their weights say; strict ones come first") {
  const Fabric fabric = star(equal(3));
  const std::uint64_t n = 1200;
  const auto ends = [&](std::vector<std::uint32_t> weights) {
    Options options;
    options.scheduler.weights = std::move(weights);
    const PacketRunResult result = run(
        fabric, Load{}.add(fabric, 0, 2, n * payload, 0, 0).add(fabric, 1, 2, n * payload, 0, 1),
        options);
    CHECK(result.complete);
    return std::array{static_cast<double>(result.messages[0].arrived - 2 * us) / full,
                      static_cast<double>(result.messages[1].arrived - 2 * us) / full};
  };
  const auto near = [](double packets) { return doctest::Approx(packets).epsilon(0.01); };
  CHECK(ends({4160, 4160})[0] == near(2 * n));
  CHECK(ends({3 * 4160, 4160})[0] == near(n * 4.0 / 3));
  CHECK(ends({3 * 4160, 4160})[1] == near(2 * n));
  CHECK(ends({2 * 4160, 6 * 4160})[1] == near(n * 4.0 / 3));
  CHECK(ends({4160, 0})[1] == near(n));
  CHECK(ends({4160, 0})[0] == near(2 * n));
  CHECK(ends({0, 4160})[0] == near(n));
  CHECK(ends({0, 0})[1] == near(n));  // of two strict ones the higher number
}

//        s:0 --- s:1        nic:i -- s:i; nic:i sends to nic:i+2 by way of s:i+1, so that every
//          \     /          link of the ring carries what its own NIC sends and what comes over
//           s:2             the link before it
struct Triangle {
  Fabric fabric;
  Load load;
  Triangle() {
    FabricBuilder builder;
    std::array<NodeId, 3> s;
    for (NodeId& node : s) node = builder.add_node({NodeKind::fabric_switch, "s", {}});
    for (std::size_t i = 0; i < 3; ++i)
      builder.add_circuit(builder.add_node({NodeKind::nic, "nic", {}}), s[i],
                          {.rate = 400_Gbps, .latency = 1_us});
    for (std::size_t i = 0; i < 3; ++i)
      builder.add_circuit(s[i], s[(i + 1) % 3], {.rate = 400_Gbps, .latency = 1_us});
    fabric = builder.freeze();
    for (std::uint32_t i = 0; i < 3; ++i) {
      load.add(fabric, i, (i + 2) % 3, 5000 * payload);
      load.via.push_back(s[(i + 1) % 3]);
      load.connections[i].via = i;
      load.connections[i].via_count = 1;
    }
  }
};

TEST_CASE("a circle of pauses stops the run, and is named") {
  const Triangle net;
  Options options;
  options.pfc = fixed_pfc(2, 1);
  std::string digest;
  for (const std::uint32_t threads : {1u, 2u, 3u}) {
    options.threads = threads;
    const PacketRunResult result = run(net.fabric, net.load, options);
    CHECK(!result.complete);
    CHECK(result.unfinished.size() == 3);
    CHECK(result.counters.drops == 0);
    CHECK(result.conservation.in_flight > 0);
    REQUIRE(result.deadlocks.size() == 1);
    std::vector<LinkId> circle = result.deadlocks[0].circle;
    CHECK(result.deadlocks[0].since <= result.end);
    REQUIRE(circle.size() == 3);
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(net.fabric.to(circle[i]) == net.fabric.from(circle[(i + 1) % 3]));
    std::ranges::sort(circle);
    CHECK(circle == std::vector{link(net.fabric, "s:0->s:1"), link(net.fabric, "s:1->s:2"),
                                link(net.fabric, "s:2->s:0")});
    if (digest.empty()) digest = result.digest;
    CHECK(result.digest == digest);
  }
  options.threads = 1;
  options.pfc = fixed_pfc(20'000, 10'000);
  const PacketRunResult roomy = run(net.fabric, net.load, options);
  CHECK(roomy.complete);
  CHECK(roomy.deadlocks.empty());
}

TEST_CASE("a deadlock is found before any timer, and says since when nothing has moved") {
  const Triangle net;
  Options options;
  options.pfc = fixed_pfc(2, 1);
  for (const Duration ack_timeout : {500_us, 16'777_us})
    for (const std::uint32_t threads : {1u, 2u, 3u, 8u}) {
      options.ack_timeout = ack_timeout;
      options.threads = threads;
      const PacketRunResult result = run(net.fabric, net.load, options);
      REQUIRE(result.deadlocks.size() == 1);
      const Ps since = result.deadlocks[0].since;
      CHECK(result.end == 200 * us);
      CHECK(result.counters.timeouts == 0);
      // Stopped then, the circle has sent as much as at the end.
      Options short_options = options;
      short_options.end = since;
      const PacketRunResult stopped = run(net.fabric, net.load, short_options);
      for (const LinkId id : result.deadlocks[0].circle) {
        CHECK(stopped.links[id.index()].packets > 0);
        CHECK(stopped.links[id.index()].packets == result.links[id.index()].packets);
      }
      CHECK(stopped.deadlocks.empty());
      CHECK(microseconds(since) < 20);
    }
}

}  // namespace
}  // namespace weft::engine::packet::testing
