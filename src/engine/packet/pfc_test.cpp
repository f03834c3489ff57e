// PFC beyond one link: back-pressure from slow hosts, victims, priorities, and circles of pauses.
#include <fmt/format.h>

#include "base/test_approx.hpp"
#include "engine/packet/test_kit.hpp"

namespace weft::engine::packet::testing {
namespace {

TEST_CASE("links that are paused for most of the traffic are named, however late timers are") {
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
    CHECK(microseconds(m.arrived) == approx(microseconds(drained)).epsilon(0.01));
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
  options.class_counters = true;
  const PacketRunResult result = net.run_victim(options, 1);
  CHECK(result.links[link(net.fabric, "s:0->s:1").index()].pauses > 0);
  CHECK(result.links[link(net.fabric, "nic:0->s:0").index()].pauses > 0);
  CHECK(result.links[link(net.fabric, "nic:3->s:0").index()].pauses == 0);
  // At each of two switches a packet of the other class may go first.
  CHECK(result.messages[3].arrived < TwoSwitches::alone + 4 * full);

  const std::size_t trunk = link(net.fabric, "s:0->s:1").index();
  const LinkCounters &port = result.links[trunk], &incast = result.class_links[2 * trunk],
                     &victim = result.class_links[2 * trunk + 1];
  CHECK(incast.packets == 1500);
  CHECK(victim.packets == 500);
  CHECK(victim.bytes == 500 * full_bytes);
  CHECK(victim.pauses == 0);
  CHECK(victim.paused_ps == 0);
  CHECK(incast.pauses == port.pauses);
  CHECK(incast.paused_ps == port.paused_ps);
  CHECK(victim.queue_max <= packets_of(1).count);
  CHECK(incast.queue_max <= port.queue_max);
  CHECK(incast.queue_max + victim.queue_max >= port.queue_max);
  options.class_counters = false;
  CHECK(net.run_victim(options, 1).digest == result.digest);
}

TEST_CASE("each class of data has a headroom of its own: no switch holds more than its memory") {
  // When the second class comes, the first one has filled the memory and its headrooms.
  const Fabric fabric = star(equal(8), 10_us);
  Options options;
  options.scheduler.weights = {4160, 4160};
  options.pfc = {.on = true, .threshold = Pfc::Threshold::dynamic, .alpha = 8};
  options.buffers[""].shared = 20'000'000_B;
  Load load;
  for (std::size_t i = 0; i < 7; ++i)
    load.add(fabric, i, 7, 8'000'000).add(fabric, i, 7, 8'000'000, 600 * us, 1);
  const PacketRunResult result = run(fabric, load, options);
  CHECK(result.complete);
  CHECK(result.counters.drops == 0);
  CHECK(result.counters.buffer_max > 10'000'000);
  CHECK(result.counters.buffer_max <= 20'000'000);
  // 8 x 2 x (2 x 10 us x 50 GB/s + 2 x 4,160 B + 64 B)
  options.buffers[""].shared = 16'134'144_B;
  const auto refused = try_run(fabric, load, {.options = options});
  REQUIRE(!refused.has_value());
  CHECK(refused.error().text().find("(8 ports, 2 classes of data) needs 16134144 B") !=
        std::string::npos);
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
  const auto near = [](double packets) { return approx(packets).epsilon(0.01); };
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

// Pause trees. ------------------------------------------------------------------------------------

const PauseTree::Port* port_of(const PauseTree& tree, std::string_view name) {
  const auto found = std::ranges::find(tree.ports, name, &PauseTree::Port::name);
  return found == tree.ports.end() ? nullptr : &*found;
}

// The port that paused `tree.ports[i]`.
std::string above(const PauseTree& tree, std::string_view name) {
  auto i = static_cast<std::size_t>(port_of(tree, name) - tree.ports.data());
  const std::uint32_t depth = tree.ports[i].depth;
  while (i > 0 && tree.ports[i].depth >= depth) --i;
  return tree.ports[i].name;
}

// Every picosecond of a pause is in one place, and every pause is below what made it.
void check_sums(const Fabric& fabric, const PacketRunResult& result) {
  std::vector<Ps> paused(fabric.link_count());
  for (const PauseTree& tree : result.pause_trees) {
    REQUIRE(!tree.ports.empty());
    CHECK(tree.ports[0].depth == 0);
    CHECK((tree.ports[0].paused_ps == 0 || tree.ports[0].circle));
    Ps sum = 0;
    for (std::size_t i = 0; i < tree.ports.size(); ++i) {
      const PauseTree::Port& port = tree.ports[i];
      sum += port.paused_ps;
      if (port.link < paused.size()) paused[port.link] += port.paused_ps;
      if (i == 0) continue;
      CHECK(port.depth >= 1);
      CHECK(port.depth <= tree.ports[i - 1].depth + 1);
      for (const auto& [message, held] : port.held) CHECK(held <= port.paused_ps);
    }
    CHECK(tree.paused_ps == sum);
  }
  for (std::size_t l = 0; l < paused.size(); ++l) {
    CAPTURE(fabric.name(LinkId(l)));
    CHECK(paused[l] == result.links[l].paused_ps);
  }
}

TEST_CASE("pause tree: by hand, one sender above a slow port") {
  // One packet takes 16 packet times out of the slow port. The switch pauses nic:0 when the third
  // waits, behind the one on the wire, and lets it go on when one is left: an exact period.
  const Fabric fabric = star({400_Gbps, 25_Gbps});
  Options options;
  options.pfc = fixed_pfc(2, 1);
  options.pause_trees = true;
  const PacketRunResult result =
      run(fabric, Load{}.add(fabric, 0, 1, 100 * payload, 10 * us), options);
  check_sums(fabric, result);
  REQUIRE(result.pause_trees.size() == 1);
  const PauseTree& tree = result.pause_trees[0];
  REQUIRE(tree.ports.size() == 2);
  CHECK(tree.ports[0].name == "s:0->nic:1");
  CHECK(tree.ports[0].pauses == 0);
  CHECK(tree.ports[1].name == "nic:0->s:0");
  CHECK(tree.ports[1].depth == 1);
  CHECK(tree.ports[1].pauses == result.links[link(fabric, "nic:0->s:0").index()].pauses);
  REQUIRE(tree.ports[1].held.size() == 1);
  CHECK(tree.ports[1].held[0].first == 0);
  // It had something to send in all pauses but, when it had sent its last packet, the last one.
  CHECK(tree.ports[1].held[0].second <= tree.ports[1].paused_ps);
  CHECK(tree.ports[1].held[0].second > tree.ports[1].paused_ps / 2);
  // The first packet is there after 83.2 ns and 1 us, and leaves at once; the next three wait. The
  // pause comes back after the frame and 1 us.
  Options early = options;
  const Ps decided = 10 * us + 4 * full + us, heard = decided + 1'280 + us;
  early.end = heard;
  CHECK(run(fabric, Load{}.add(fabric, 0, 1, 100 * payload, 10 * us), early).pause_trees.empty());
  early.end = heard + 1'000;
  const PacketRunResult begun =
      run(fabric, Load{}.add(fabric, 0, 1, 100 * payload, 10 * us), early);
  check_sums(fabric, begun);
  REQUIRE(begun.pause_trees.size() == 1);
  CHECK(begun.pause_trees[0].paused_ps == 1'000);
  CHECK(begun.pause_trees[0].ports[1].held == std::vector{std::pair{0u, Ps{1'000}}});
}

TEST_CASE("pause tree: incast over two tiers hangs below the receiver's port, victims too") {
  // nic:0, nic:3 and nic:7, each in a rack of its own, send to nic:6; nic:1, beside nic:0, sends to
  // nic:8, which nobody else does, over the same spine.
  const Fabric fabric = leaf_spine(3, 3, 1, 400_Gbps);
  Options options;
  options.pfc = fixed_pfc();
  options.pause_trees = true;
  Load load;
  load.add(fabric, 0, 6, 800 * payload).add(fabric, 3, 6, 800 * payload);
  load.add(fabric, 7, 6, 800 * payload).add(fabric, 1, 8, 800 * payload);
  std::string digest;
  for (const std::uint32_t threads : {1u, 2u, 3u}) {
    options.threads = threads;
    const PacketRunResult result = run(fabric, load, options);
    check_sums(fabric, result);
    const PauseTree& tree = result.pause_trees.at(0);
    Ps all = 0;  // before the first pause comes to the spine, its port may be a root
    for (const PauseTree& one : result.pause_trees) all += one.paused_ps;
    CHECK(static_cast<double>(tree.paused_ps) > 0.98 * static_cast<double>(all));
    CHECK(tree.ports[0].name == "leaf:2->nic:6");
    CHECK(above(tree, "nic:7->leaf:2") == "leaf:2->nic:6");
    CHECK(above(tree, "spine:0->leaf:2") == "leaf:2->nic:6");
    CHECK(above(tree, "leaf:0->spine:0") == "spine:0->leaf:2");
    CHECK(above(tree, "leaf:1->spine:0") == "spine:0->leaf:2");
    CHECK(above(tree, "nic:0->leaf:0") == "leaf:0->spine:0");
    CHECK(above(tree, "nic:3->leaf:1") == "leaf:1->spine:0");
    CHECK(above(tree, "nic:1->leaf:0") == "leaf:0->spine:0");
    const auto& victim = port_of(tree, "nic:1->leaf:0")->held;
    CHECK(std::ranges::any_of(victim, [](const auto& held) { return held.first == 3; }));
    std::string text;
    for (const PauseTree& one : result.pause_trees)
      for (const PauseTree::Port& port : one.ports) {
        text += fmt::format("{} {} {} {};", port.depth, port.name, port.pauses, port.paused_ps);
        for (const auto& [message, ps] : port.held) text += fmt::format(" {}:{}", message, ps);
      }
    if (digest.empty()) digest = text + result.digest;
    CHECK(text + result.digest == digest);
  }
  options.pause_trees = false;
  const PacketRunResult without = run(fabric, load, options);
  CHECK(without.pause_trees.empty());
  CHECK(digest.ends_with(without.digest));
}

TEST_CASE("pause trees: a slow host is the root; a circle says that it is one") {
  const Fabric fabric = star(equal(3));
  Options options;
  options.pfc = fixed_pfc();
  options.pause_trees = true;
  options.receive_rate = 0.25;
  const PacketRunResult slow = run(fabric, Load{}.add(fabric, 0, 2, 400 * payload), options);
  check_sums(fabric, slow);
  REQUIRE(slow.pause_trees.size() == 1);
  CHECK(slow.pause_trees[0].ports[0].name == "nic:2->host");
  CHECK(above(slow.pause_trees[0], "s:0->nic:2") == "nic:2->host");
  CHECK(above(slow.pause_trees[0], "nic:0->s:0") == "s:0->nic:2");

  const Triangle net;
  options.receive_rate = 0;
  options.pfc = fixed_pfc(2, 1);
  const PacketRunResult stuck = run(net.fabric, net.load, options);
  check_sums(net.fabric, stuck);
  REQUIRE(stuck.deadlocks.size() == 1);
  // All began at once and each because of the next, so that any of the three may stand first.
  REQUIRE(stuck.pause_trees.size() == 1);
  const std::vector<PauseTree::Port>& ports = stuck.pause_trees[0].ports;
  REQUIRE(ports.size() == 6);
  CHECK(std::ranges::count(ports, true, &PauseTree::Port::circle) == 1);
  CHECK(ports[0].circle);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string own = fmt::format("s:{}->s:{}", i, (i + 1) % 3);
    CHECK(std::ranges::count(ports, own, &PauseTree::Port::name) == 1);
    CHECK(above(stuck.pause_trees[0], fmt::format("nic:{}->s:{}", i, i)) == own);
  }
}

TEST_CASE("pause trees of random runs hold every pause once, on any number of threads") {
  std::size_t trees = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    RandomCase random =
        random_case(i * losses_count + static_cast<std::uint64_t>(Losses::none_paused));
    CAPTURE(random.text);
    Setting setting{.options = random.options, .routing = random.routing};
    setting.seed = random.routing_seed;
    setting.options.pause_trees = true;
    if (i % 4 == 0) {
      setting.changes = {{Time{20'000'000}, {}}, {Time{90'000'000}, {}}};
      for (const LinkId id : random.fabric.links())
        if (random.fabric.is_switch(random.fabric.from(id)) &&
            random.fabric.is_switch(random.fabric.to(id))) {
          setting.changes[0].state.set(id, {.health = Health::down});
          break;
        }
    }
    std::size_t ports = 0;
    for (const std::uint32_t threads : {1u, 3u}) {
      setting.options.threads = threads;
      const PacketRunResult result =
          run(random.fabric, {random.connections, random.drafts, {}}, setting);
      check_sums(random.fabric, result);
      std::size_t count = 0;
      for (const PauseTree& tree : result.pause_trees) count += tree.ports.size();
      if (threads > 1) CHECK(count == ports);
      ports = count;
      trees += result.pause_trees.size();
    }
  }
  CHECK(trees > 20);
}

}  // namespace
}  // namespace weft::engine::packet::testing
