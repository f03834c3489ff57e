// What breaks in mid-run: links that go down, come back, lose packets or get slower.
#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "engine/packet/test_kit.hpp"
#include "model/fabric/goback_n.hpp"

namespace weft::engine::packet::testing {
namespace {

struct Trouble {
  const Fabric& fabric;
  State state = {};
  Trouble& down(std::string_view cable) {
    const LinkId id = link(fabric, cable);
    state.set(id, {.health = Health::down});
    state.set(model::reverse(id), {.health = Health::down});
    return *this;
  }
  Trouble& set(std::string_view direction, model::Condition condition) {
    state.set(link(fabric, direction), condition);
    return *this;
  }
};

StateChange at(Ps time, State state = {}) {
  return {{static_cast<std::int64_t>(time)}, std::move(state)};
}

Options short_timeout() {
  Options options;
  options.ack_timeout = 50_us;
  return options;
}

bool says(const PacketRunResult& result, std::string_view part) {
  return std::ranges::any_of(result.unfinished, [&](const std::string& line) {
    return line.find(part) != std::string::npos;
  });
}

// The spine that the first message's data takes, by its name.
std::string spine_of(const Fabric& fabric, const PacketRunResult& healthy) {
  for (const char* spine : {"spine:0", "spine:1"})
    if (healthy.links[link(fabric, std::string("leaf:0->") + spine).index()].packets > 0)
      return spine;
  return "";
}

TEST_CASE("a link goes down: what it held is sent again, another way, by every balance") {
  const Fabric fabric = leaf_spine(2, 2, 2);
  const Load load = Load{}.add(fabric, 0, 2, 1000 * payload).add(fabric, 1, 3, 1000 * payload);
  for (const Balance balance : {Balance::path, Balance::flowlet, Balance::spray, Balance::reps,
                                Balance::adaptive, Balance::multipath}) {
    CAPTURE(static_cast<int>(balance));
    Setting setting{.options = short_timeout()};
    setting.options.balance = balance;
    if (is_by_packet(balance)) {
      setting.options.reliability = Reliability::selective;
      setting.options.window = packets_of(100);
    }
    const PacketRunResult healthy = run(fabric, load, setting);
    const std::string spine = spine_of(fabric, healthy);
    setting.changes = {at(0), at(30 * us, Trouble{fabric}.down("leaf:0->" + spine).state)};
    std::string digest;
    for (const std::uint32_t threads : {1u, 2u}) {
      setting.options.threads = threads;
      const PacketRunResult result = run(fabric, load, setting);
      CHECK(result.complete);
      CHECK(result.counters.drops_link > 0);
      CHECK(result.counters.retransmissions >= result.counters.drops);
      // Both flows share what is left; a few timeouts come on top.
      CHECK(microseconds(result.end) < 2000 * full * 1e-6 + 50 * 6);
      if (digest.empty()) digest = result.digest;
      CHECK(result.digest == digest);
    }
  }
}

TEST_CASE(
    "selective repeat: a path that changes under packets loses none, one that dies only its own") {
  const Fabric fabric = leaf_spine(2, 2, 2);
  const Load load = Load{}.add(fabric, 0, 2, 1000 * payload);
  for (const Admission admission : {Admission::open, Admission::pull}) {
    Setting setting{.options = short_timeout()};
    setting.options.reliability = Reliability::selective;
    setting.options.window = packets_of(100);
    setting.options.admission = admission;
    const PacketRunResult healthy = run(fabric, load, setting);
    const std::string up = "leaf:0->" + spine_of(fabric, healthy);
    const State without = Trouble{fabric}.down(up).state;

    setting.changes = {at(0, without), at(30 * us)};  // the better path comes back
    const PacketRunResult moved = run(fabric, load, setting);
    CHECK(moved.complete);
    CHECK(moved.counters.drops == 0);
    CHECK(moved.counters.retransmissions == 0);
    CHECK(moved.end == healthy.end);
    const std::uint64_t later = moved.links[link(fabric, up).index()].packets;
    CHECK(later > 500);
    CHECK(later < 900);

    setting.changes = {at(0), at(30 * us, without)};
    const PacketRunResult cut = run(fabric, load, setting);
    CHECK(cut.complete);
    CHECK(cut.counters.drops_link > 0);
    CHECK(cut.counters.retransmissions == cut.counters.drops);
  }
}

TEST_CASE("what links lose: drops are of data, whatever else is lost is counted apart") {
  const Fabric fabric = star(equal(2));
  Setting setting{.options = short_timeout()};
  setting.changes = {at(0, Trouble{fabric}.set("s:0->nic:0", {.loss = 0.1}).state)};
  const Load load = Load{}.add(fabric, 0, 1, 1000 * payload);
  const PacketRunResult acks = run(fabric, load, setting);  // nothing else goes that way
  CHECK(acks.counters.drops == 0);
  CHECK(acks.counters.drops_link == 0);
  CHECK(acks.counters.drops_control > 50);
  CHECK(acks.links[link(fabric, "s:0->nic:0").index()].dropped == acks.counters.drops_control);
  setting.changes = {at(
      0, Trouble{fabric}.set("s:0->nic:0", {.loss = 0.1}).set("s:0->nic:1", {.loss = 0.1}).state)};
  const PacketRunResult both = run(fabric, load, setting);
  CHECK(both.counters.drops > 50);
  CHECK(both.counters.drops_link == both.counters.drops);
  CHECK(both.counters.drops_control > 0);
  std::uint64_t dropped = 0;
  for (const LinkCounters& counters : both.links) dropped += counters.dropped;
  CHECK(dropped == both.counters.drops + both.counters.drops_control);
}

TEST_CASE("a link goes down while it is paused: those it kept waiting go on") {
  // What nic:0 sends to nic:2 waits in front of the slow end; leaf:0 is full and stops nic:0.
  const Fabric fabric = leaf_spine(2, 2, 2);
  const Load load = Load{}.add(fabric, 0, 2, 1000 * payload);
  Setting setting{.options = short_timeout()};
  setting.options.pfc = fixed_pfc();
  const std::string spine = spine_of(fabric, run(fabric, load, setting));
  const std::string up = "leaf:0->" + spine, down = spine + "->leaf:1";
  const State slow = Trouble{fabric}.set(down, {.rate_factor = 0.001}).state;
  setting.changes = {at(0, slow)};
  setting.options.end = 100 * us;
  const PacketRunResult stopped = run(fabric, load, setting);
  REQUIRE(stopped.links[link(fabric, up).index()].paused_ps > 50 * us);
  REQUIRE(stopped.links[link(fabric, "nic:0->leaf:0").index()].paused_ps > 30 * us);

  setting.options.end = never;
  State dead;  // with the whole switch, so that nobody is left to say resume
  dead.set(node(fabric, spine), {.health = Health::down});
  for (const State& state : {Trouble{fabric}.down(up).state, dead}) {
    setting.changes.resize(1);
    setting.changes.push_back(at(100 * us, state));
    std::string digest;
    for (const std::uint32_t threads : {1u, 2u}) {
      setting.options.threads = threads;
      const PacketRunResult result = run(fabric, load, setting);
      CHECK(result.complete);
      CHECK(result.end < 220 * us);
      CHECK(result.links[link(fabric, up).index()].paused_ps < 100 * us);
      if (digest.empty()) digest = result.digest;
      CHECK(result.digest == digest);
    }
  }
}

// Frames are on the wire at the moment when the cable dies, and due while it is dead.
TEST_CASE("an outage at any moment of an incast under PFC leaves nobody paused") {
  const Fabric fabric = leaf_spine(2, 4, 1);
  Load load;
  for (std::size_t i = 0; i < 4; ++i) load.add(fabric, i, 4, 300 * payload);
  Setting setting{.options = short_timeout()};
  setting.options.pfc = fixed_pfc();
  for (const char* const cable : {"spine:0--leaf:1", "leaf:0--spine:0", "nic:1--leaf:0"}) {
    const std::string forward =
        std::string(cable).replace(std::string_view(cable).find("--"), 2, "->");
    const State both = Trouble{fabric}.down(forward).state;
    State back;
    back.set(model::reverse(link(fabric, forward)), {.health = Health::down});
    for (const State& cut : {both, back})
      for (Ps t = 2 * us; t < 20 * us; t += test_effort(8) > 4 ? us / 8 : us) {
        CAPTURE(cable);
        CAPTURE(t);
        setting.changes = {at(0), at(t, cut), at(t + 30 * us)};
        const PacketRunResult result = run(fabric, load, setting);
        CHECK(result.complete);
        CHECK(result.end < 1'000 * us);
      }
  }
}

TEST_CASE("the only link comes back: the transfer goes on; when it does not, words say so") {
  const Fabric fabric = chain(equal(3));
  const Load load = Load{}.add(fabric, 0, 1, 1000 * payload);
  const State cut = Trouble{fabric}.down("s:0->s:1").state;
  Setting setting{.options = short_timeout(), .changes = {at(0), at(20 * us, cut), at(500 * us)}};
  const PacketRunResult back = run(fabric, load, setting);
  CHECK(back.complete);
  // Some 200 packets had come; the rest goes when the link is there again.
  CHECK(back.end > 500 * us + 700 * full);
  CHECK(back.end < 500 * us + 1000 * full + 70 * us);

  setting.changes.pop_back();
  std::string digest;
  for (const std::uint32_t threads : {1u, 2u}) {
    setting.options.threads = threads;
    const PacketRunResult lost = run(fabric, load, setting);
    if (digest.empty()) digest = lost.digest;
    CHECK(lost.digest == digest);
    CHECK(!lost.complete);
    CHECK(lost.messages[0].end == never);
    REQUIRE(lost.unfinished.size() == 1);
    CHECK(says(lost, "nic:0 to nic:1, 4096000 B"));
    CHECK(says(lost, "of 1000 packets acknowledged"));
    CHECK(says(lost, "no live path"));
  }
}

TEST_CASE("a message without a path from the start waits for one") {
  const Fabric fabric = chain(equal(3));
  const Load load = Load{}.add(fabric, 0, 1, 100 * payload);
  const State cut = Trouble{fabric}.down("s:0->s:1").state;
  const Setting setting{.options = short_timeout(), .changes = {at(0, cut), at(300 * us)}};
  const PacketRunResult result = run(fabric, load, setting);
  CHECK(result.complete);
  CHECK(result.messages[0].arrived == 300 * us + 100 * full + 2 * full + 3 * us);
}

TEST_CASE("a lossy link: go-back-N as its closed form says, selective repeat much better") {
  const Fabric fabric = chain(equal(2));
  const std::uint64_t packets = 20'000;
  const double loss = 0.01;
  const Load load = Load{}.add(fabric, 0, 1, packets * payload);
  Setting setting{.options = short_timeout()};
  setting.options.ack_timeout = 20_us;
  setting.changes = {at(0, Trouble{fabric}.set("s:0->nic:1", {.loss = loss}).state)};
  const double ideal = microseconds(packets * full);
  // From a lost packet's start: to the far end, the packet behind it, and the NACK back.
  const double round_trip = static_cast<double>(2 * full + full + 2'560 + 4 * us) / full;

  const PacketRunResult goback = run(fabric, load, setting);
  CHECK(goback.complete);
  CHECK(ideal / microseconds(goback.end) ==
        approx(model::goodput_share(loss, round_trip)).epsilon(0.06));
  CHECK(goback.counters.drops_link > 150);
  CHECK(goback.links[link(fabric, "s:0->nic:1").index()].dropped == goback.counters.drops_link);

  setting.options.reliability = Reliability::selective;
  setting.options.window = packets_of(400);
  const PacketRunResult selective = run(fabric, load, setting);
  CHECK(selective.complete);
  // Nothing waits for the lost packets, which go out once more.
  CHECK(selective.end < goback.end * 8 / 10);
  CHECK(selective.counters.retransmissions == selective.counters.drops);
  CHECK(microseconds(selective.end) < ideal / (1 - loss) * 1.005);
}

TEST_CASE("CTS: a chunk whose beginning was lost is sent again in its own slot") {
  const Fabric fabric = star(equal(5));
  Setting setting{.options = short_timeout()};
  setting.options.admission = Admission::cts;
  setting.options.cts = {.channel_buffer = packets_of(8), .channels = 2};
  setting.changes = {at(0, Trouble{fabric}.set("nic:0->s:0", {.loss = 0.05}).state)};
  const PacketRunResult result = run(fabric, incast(fabric, 4, 400 * payload), setting);
  CHECK(result.complete);
  CHECK(result.counters.retransmissions > 100);
}

TEST_CASE("a link that gets slower, and fast again, carries what its rate allows") {
  const Fabric fabric = chain(equal(3));
  const std::uint64_t packets = 2000;  // 166.4 us
  const Load load = Load{}.add(fabric, 0, 1, packets * payload);
  Setting setting;
  setting.changes = {at(0),
                     at(50 * us, Trouble{fabric}.set("s:0->s:1", {.rate_factor = 0.25}).state),
                     at(90 * us)};
  const PacketRunResult result = run(fabric, load, setting);
  CHECK(result.complete);
  CHECK(result.counters.drops == 0);
  // 30 of 40 us are lost, while packets wait in s:0.
  const double expected = microseconds(packets * full + 2 * full + 3 * us) + 30;
  CHECK(microseconds(result.messages[0].arrived) == approx(expected).epsilon(0.003));
  CHECK(result.links[link(fabric, "s:0->s:1").index()].queue_max > 340 * full_bytes);
}

TEST_CASE("a run that ends before its messages says which, and how far they came") {
  const Fabric fabric = star(equal(3));
  const Load load = Load{}
                        .add(fabric, 0, 1, 100 * payload)
                        .add(fabric, 1, 2, 1000 * payload)
                        .add(fabric, 2, 0, 100 * payload, 90 * us);
  Options options;
  options.end = 50 * us;
  const PacketRunResult result = run(fabric, load, options);
  CHECK(!result.complete);
  CHECK(result.end == 50 * us);
  CHECK(result.messages[0].end != never);
  REQUIRE(result.unfinished.size() == 2);
  // Packet k is acknowledged at (k + 1) S + 4 l + 2 c: 551 of them, or one or two fewer where
  // ACKs wait for data.
  CHECK((says(result, "55") && says(result, "of 1000 packets acknowledged, 50.000 us")));
  CHECK(says(result, "message 2 (nic:2 to nic:0, 409600 B) had not started"));
}

TEST_CASE("a queue pair that hears nothing gives up after 7 timeouts; others go on") {
  const Fabric fabric = star(equal(4));
  const Load load = Load{}.add(fabric, 0, 1, 10 * payload).add(fabric, 2, 3, 4000 * payload);
  for (const Reliability reliability : {Reliability::goback_n, Reliability::selective}) {
    Setting setting{.options = short_timeout()};
    setting.options.reliability = reliability;
    setting.changes = {at(0, Trouble{fabric}.set("nic:0->s:0", {.loss = 0.999'999'999}).state)};
    const PacketRunResult result = run(fabric, load, setting);
    CHECK(!result.complete);
    CHECK(result.messages[1].end != never);
    // Selective repeat also tries each packet after round trips; that makes it give up no sooner.
    if (reliability == Reliability::goback_n) {
      CHECK(result.counters.timeouts == 8);
      CHECK(result.counters.retransmissions == 70);
    } else {
      CHECK(result.counters.timeouts > 8);
      CHECK(result.counters.retransmissions >= 80);
      CHECK(result.counters.retransmissions < 150);
    }
    REQUIRE(result.unfinished.size() == 1);
    CHECK(says(result, "0 of 10 packets acknowledged; its queue pair gave up after 7 timeouts"));
  }
}

}  // namespace
}  // namespace weft::engine::packet::testing
