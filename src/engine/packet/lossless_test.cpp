// Lossless means lossless; and what a headroom that is too small costs is told.
#include "base/test_effort.hpp"
#include "engine/packet/test_kit.hpp"

namespace weft::engine::packet::testing {
namespace {

TEST_CASE("1,000 random networks and loads with PFC and room for what is under way: no drop") {
  std::uint64_t pauses = 0;
  for (std::uint64_t i = 0; i < test_effort(1000); ++i) {
    const RandomCase random =
        random_case(i * losses_count + static_cast<std::uint64_t>(Losses::none_paused));
    CAPTURE(random.text);
    Setting setting{.options = random.options, .routing = random.routing};
    setting.seed = random.routing_seed;
    setting.options.threads = i % 3 == 0 ? 2 : 1;
    const PacketRunResult result =
        run(random.fabric, {random.connections, random.drafts, {}}, setting);
    CHECK(result.counters.drops == 0);
    CHECK(result.deadlocks.empty());
    if (setting.options.end == never) CHECK(result.complete);
    pauses += result.counters.pause_frames;
  }
  CHECK(pauses > test_effort(5'000));
}

TEST_CASE("headrooms one tenth too small: a saturated two-way load drops, and says so") {
  // What goes to nic:2 is stalled, and the pause frames for nic:0 wait behind what comes to it.
  const Fabric fabric = star({400_Gbps, 400_Gbps, 1_Gbps});
  Load load = Load{}.add(fabric, 0, 2, 200 * payload).add(fabric, 1, 0, 3000 * payload);
  Options options;
  options.ack_timeout = 10'000_us;
  options.pfc = fixed_pfc(2, 1);
  const PacketRunResult enough = run(fabric, load, options);
  CHECK(enough.complete);
  CHECK(enough.counters.drops == 0);
  CHECK(enough.counters.pause_frames > 0);
  options.pfc.headroom_factor = 0.9;
  const PacketRunResult small = run(fabric, load, options);
  CHECK(small.counters.drops > 0);
  CHECK(small.counters.drops_headroom == small.counters.drops);
  CHECK(small.links[link(fabric, "s:0->nic:2").index()].dropped == small.counters.drops);
  CHECK(small.complete);  // sent again
  CHECK(enough.lossless_drops.empty());
  REQUIRE(small.lossless_drops.size() == 1);
  CHECK(small.lossless_drops[0].cause == LosslessDrops::Cause::small_headroom);
  CHECK(small.lossless_drops[0].traffic_class == 0);
  CHECK(small.lossless_drops[0].port == "nic:0->s:0");
  CHECK(small.lossless_drops[0].packets == small.counters.drops);
}

// Both ways: what is needed is enough, and what the same network needs otherwise is not.
TEST_CASE("headroom by cable length, response time and HPCC's rule: enough, or drops") {
  const auto drops = [](Duration latency, auto change) {
    const Fabric fabric = star({400_Gbps, 400_Gbps, 1_Gbps}, latency);
    Load load = Load{}.add(fabric, 0, 2, 200 * payload).add(fabric, 1, 0, 3000 * payload);
    Options options;
    options.ack_timeout = 10'000_us;
    options.pfc = fixed_pfc(2, 1);
    change(options.pfc);
    const PacketRunResult result = run(fabric, load, options);
    CHECK(result.complete);
    CHECK(result.counters.pause_frames > 0);
    CHECK(result.counters.drops == result.counters.drops_headroom);
    return result.counters.drops;
  };
  const auto standard = [](Pfc&) {};
  const auto bytes = [](Bytes room) { return [room](Pfc& pfc) { pfc.headroom = room; }; };
  // 2 x 400 Gb/s x latency + 2 x 4,160 B + 64 B, at 100 m, 500 m and 2 km of fibre (5 ns a metre).
  CHECK(headroom_for(400_Gbps, 500_ns, {}) == 58'384_B);
  for (const Duration latency : {500_ns, 2'500_ns, 10'000_ns}) {
    CHECK(drops(latency, standard) == 0);
    CHECK(drops(latency, bytes(headroom_for(400_Gbps, {latency.ps * 8 / 10}, {}))) > 0);
  }
  // A port that obeys 500 ns late sends 25,000 B meanwhile.
  CHECK(headroom_for(400_Gbps, 1_us, {}, 500_ns) == 108'384_B + 25'000_B);
  CHECK(drops(1_us, [](Pfc& pfc) { pfc.response = 500_ns; }) == 0);
  CHECK(drops(1_us, [](Pfc& pfc) {
          pfc.response = 500_ns;
          pfc.headroom = 108'384_B;
        }) > 0);
  // Rate x delay x 3 is one delay more than the wire holds both ways. That is enough for two
  // packets and a frame from 8,384 B on, 168 ns at 400 Gb/s.
  const auto simulator = [](Pfc& pfc) { pfc.headroom_rule = Pfc::Rule::simulator; };
  for (const Duration latency : {168_ns, 1'000_ns, 5'000_ns}) CHECK(drops(latency, simulator) == 0);
  for (const Duration latency : {20_ns, 80_ns}) {
    CHECK(drops(latency, simulator) > 0);
    CHECK(drops(latency, standard) == 0);
  }
}

TEST_CASE("a reserve: an ingress is not paused below it, and leaves the shared memory alone") {
  // What waits for 1 Gb/s stays. Packets come each 83.2 ns from 1.0832 us on; the first goes at
  // once.
  const Fabric fabric = star({400_Gbps, 1_Gbps, 400_Gbps, 400_Gbps});
  Options options;
  options.pfc.on = true;
  options.pfc.alpha = 1e-6;  // beyond the reserve nothing may wait
  options.buffers[""].shared = 2'000'000_B;
  const std::size_t sender = link(fabric, "nic:0->s:0").index();
  for (const std::int64_t reserve : {0, 1, 7, 20}) {
    options.pfc.reserve = packets_of(reserve);
    const Ps decided = (static_cast<Ps>(reserve) + 2) * full + us, heard = decided + 1'280 + us;
    const auto pauses = [&](Ps end) {
      options.end = end;
      return run(fabric, Load{}.add(fabric, 0, 1, 100 * payload), options).links[sender].pauses;
    };
    CHECK(pauses(heard) == 0);
    CHECK(pauses(heard + 1) == 1);
  }
  // At alpha 1 one ingress may hold as much beyond its reserve R as it leaves: with M bytes of
  // memory, four headrooms H and four reserves, n packets wait when n - R > M - 4H - 4R - (n - R).
  options.pfc.alpha = 1;
  for (const std::int64_t reserve : {0, 3, 9}) {
    options.pfc.reserve = packets_of(reserve);
    const Bytes rooms =
        headroom_for(400_Gbps, 1_us, options.wire) * 3 + headroom_for(1_Gbps, 1_us, options.wire);
    const std::int64_t free_packets = 61;
    options.buffers[""].shared = rooms + packets_of(4 * reserve + free_packets);
    const auto waiting = static_cast<Ps>(free_packets / 2 + 1 + reserve);
    const Ps heard = (waiting + 1) * full + us + 1'280 + us;
    const auto pauses = [&](Ps end) {
      options.end = end;
      return run(fabric, Load{}.add(fabric, 0, 1, 100 * payload), options).links[sender].pauses;
    };
    CHECK(pauses(heard) == 0);
    CHECK(pauses(heard + 1) == 1);
  }
}

TEST_CASE("a full egress buffer drops in a lossless class, and says so; without PFC it may") {
  const Fabric fabric = star(equal(3));
  Options options;
  options.ack_timeout = 100_us;
  options.buffers[""].per_port = packets_of(10);
  const Load load = incast(fabric, 2, 100 * payload);
  const PacketRunResult lossy = run(fabric, load, options);
  CHECK(lossy.counters.drops > 0);
  CHECK(lossy.lossless_drops.empty());
  options.pfc = fixed_pfc(40, 20);
  const PacketRunResult lossless = run(fabric, load, options);
  REQUIRE(lossless.lossless_drops.size() == 1);
  CHECK(lossless.lossless_drops[0].cause == LosslessDrops::Cause::full_port);
  CHECK(lossless.lossless_drops[0].port == "s:0->nic:2");
  CHECK(lossless.lossless_drops[0].packets == lossless.counters.drops);
  CHECK(lossless.counters.drops_headroom == 0);
}

TEST_CASE("headrooms that leave no memory are refused") {
  const Fabric fabric = star(equal(4));
  Options options;
  options.pfc.on = true;
  options.buffers[""].shared = headroom_for(400_Gbps, 1_us, options.wire) * 4;
  const auto refused = try_run(fabric, incast(fabric, 3, payload), Setting{.options = options});
  REQUIRE(!refused.has_value());
  CHECK(refused.error().text().find("headroom of s:0 (4 ports, 1 class of data)") !=
        std::string::npos);
  options.buffers[""].shared = options.buffers[""].shared + 1_B;
  CHECK(try_run(fabric, incast(fabric, 3, payload), Setting{.options = options}).has_value());
}

TEST_CASE("hops are known before the run where nothing is lost, granted or credited") {
  const Fabric fabric = fat_tree();
  Options options;
  options.pfc = fixed_pfc();
  for (const Load& load : {permutation(fabric, 100'001, 5), incast(fabric, 7, 4'096),
                           all_to_all(fabric, 9'000), ring(fabric, 3, 50'000)}) {
    auto router = route::Router::create(fabric, {}, 1);
    REQUIRE(router.has_value());
    CHECK(expected_hops(make_messages(load.connections, load.drafts), *router, options) ==
          run(fabric, load, options).counters.hops);
  }
}

}  // namespace
}  // namespace weft::engine::packet::testing
