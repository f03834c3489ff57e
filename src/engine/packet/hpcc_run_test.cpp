// HPCC in a network: telemetry keeps queues near nothing.
#include "engine/packet/test_kit.hpp"

namespace weft::engine::packet::testing {
namespace {

TEST_CASE("HPCC keeps an incast's queue far below what PFC alone leaves, and is about as fast") {
  const Fabric fabric = star(equal(9));
  const Load load = incast(fabric, 8, 3000 * payload);
  Options options;
  options.pfc = fixed_pfc(100, 90);
  const std::size_t last = link(fabric, "s:0->nic:8").index();
  options.series = {.interval = 10_us, .links = {"s:0->nic:8"}};
  const PacketRunResult paused = run(fabric, load, options);
  options.congestion = Congestion::hpcc;
  const PacketRunResult steered = run(fabric, load, options);
  CHECK(paused.complete);
  CHECK(steered.complete);
  CHECK(steered.counters.drops == 0);
  CHECK(steered.counters.pause_frames == 0);
  CHECK(steered.links[last].queue_max < paused.links[last].queue_max);
  // Once the first windows are through.
  const auto mean_queue = [](const PacketRunResult& result) {
    double sum = 0;
    const std::vector<double>& queue = result.series[0].value;
    for (std::size_t i = 20; i + 20 < queue.size(); ++i) sum += queue[i];
    return sum / static_cast<double>(queue.size() - 40);
  };
  CHECK(mean_queue(steered) * 20 < mean_queue(paused));
  // eta is 0.95.
  CHECK(steered.end < paused.end * 115 / 100);
}

TEST_CASE("HPCC: acknowledgements still come when there is no path any more") {
  const Fabric fabric = chain(equal(3));
  const LinkId dead = link(fabric, "s:0->s:1");
  StateChange down{{20'000'000}, {}}, up{{60'000'000}, {}};
  for (const LinkId way : {dead, model::reverse(dead)})
    down.state.set(way, {.health = Health::down});
  Options options;
  options.congestion = Congestion::hpcc;
  options.ack_timeout = 50_us;
  const Load load = Load{}.add(fabric, 0, 1, 500 * payload);
  const Ps undisturbed = run(fabric, load, options).end;
  const PacketRunResult result = run(fabric, load, {.options = options, .changes = {down, up}});
  CHECK(result.complete);
  CHECK(result.end > undisturbed + 40 * us);
}

TEST_CASE("HPCC flows share a link evenly") {
  const Fabric fabric = star(equal(5));
  Options options;
  options.congestion = Congestion::hpcc;
  const PacketRunResult result = run(fabric, incast(fabric, 4, 5000 * payload), options);
  const auto [least, most] = std::ranges::minmax(result.messages, {}, &MessageEnd::end);
  CHECK(least.end > most.end * 85 / 100);
}

}  // namespace
}  // namespace weft::engine::packet::testing
