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
  // What goes to nic:2 stands still, and the pause frames for nic:0 wait behind what comes to it.
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
  CHECK(refused.error().text().find("headroom of s:0 (4 ports)") != std::string::npos);
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
