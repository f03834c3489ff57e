// NICs of several ports, on planes of their own: packets that spread leave by all of them.
#include "engine/packet/test_kit.hpp"

namespace weft::engine::packet::testing {
namespace {

// One spine a plane: nothing is overtaken, and times follow by arithmetic.
Fabric four_planes() { return multi_plane(4, 2, 1, 1); }

Options spread(Balance balance) {
  Options options;
  options.reliability = Reliability::selective;
  options.balance = balance;
  return options;
}

// Packets on their way from nic:0, then over three switches, and the last acknowledgement back.
Ps time_of(Ps packets) { return (packets + 3) * full + 4 * us + 4 * (us + 1'280); }

std::vector<std::uint64_t> packets_by_plane(const Fabric& fabric, const PacketRunResult& result) {
  std::vector<std::uint64_t> out;
  for (const LinkId id : fabric.out(fabric.nics()[0]))
    if (fabric.on_wire(id)) out.push_back(result.links[id.index()].packets);
  return out;
}

TEST_CASE("a message over four ports takes a quarter of the time on each") {
  const Fabric fabric = four_planes();
  const Load load = Load{}.add(fabric, 0, 1, 400 * payload);
  for (const Balance balance : {Balance::spray, Balance::adaptive}) {
    const PacketRunResult result = run(fabric, load, spread(balance));
    CHECK(result.complete);
    CHECK(last_end(result) == time_of(100));
    CHECK(packets_by_plane(fabric, result) == std::vector<std::uint64_t>{100, 100, 100, 100});
  }
  // One that keeps to its path has one port.
  CHECK(last_end(run(fabric, load, spread(Balance::path))) == time_of(400));
}

TEST_CASE("several connections share all ports of their NIC") {
  const Fabric fabric = four_planes();
  Load load;
  for (int i = 0; i < 10; ++i) load.add(fabric, 0, 1, 40 * payload);
  CHECK(last_end(run(fabric, load, spread(Balance::spray))) == time_of(100));
}

TEST_CASE("credit and acknowledgements leave by all ports") {
  const Fabric fabric = four_planes();
  Options options = spread(Balance::spray);
  options.admission = Admission::pull;
  const PacketRunResult result = run(fabric, Load{}.add(fabric, 0, 1, 4000 * payload), options);
  CHECK(result.complete);
  std::uint64_t least = UINT64_MAX, most = 0;
  for (const LinkId id : fabric.out(fabric.nics()[1])) {
    if (!fabric.on_wire(id)) continue;
    least = std::min(least, result.links[id.index()].control);
    most = std::max(most, result.links[id.index()].control);
  }
  CHECK(least > 1700);  // a quarter of 4,000 acknowledgements and nearly as many credits, by chance
  CHECK(most < 2100);
}

TEST_CASE("congestion control starts from the rate of all ports") {
  const Fabric fabric = four_planes();
  const Load load = Load{}.add(fabric, 0, 1, 4000 * payload);
  for (const Congestion congestion : {Congestion::nscc, Congestion::dcqcn}) {
    Options options = spread(Balance::spray);
    options.congestion = congestion;
    CHECK(last_end(run(fabric, load, options)) == time_of(1000));
  }
}

TEST_CASE("a dead port: the others carry what it had") {
  const Fabric fabric = four_planes();
  const Load load = Load{}.add(fabric, 0, 1, 300 * payload);
  Setting setting{.options = spread(Balance::spray)};
  State state;
  state.set(link(fabric, "nic:0->leaf:4"), {.health = Health::down});
  SUBCASE("from the start") {
    setting.changes = {{{}, state}};
    const PacketRunResult result = run(fabric, load, setting);
    CHECK(last_end(result) == time_of(100));
    CHECK(packets_by_plane(fabric, result) == std::vector<std::uint64_t>{100, 100, 0, 100});
  }
  SUBCASE("it dies, and comes back") {
    setting.changes = {{{2'000'000}, state}, {{4'000'000}, {}}};
    setting.options.ack_timeout = 100_us;
    const PacketRunResult result = run(fabric, load, setting);
    CHECK(result.complete);
    CHECK(result.messages[0].end > time_of(75));
    const auto packets = packets_by_plane(fabric, result);
    CHECK(packets[2] > 24);
    CHECK(packets[2] < packets[1]);
  }
}

TEST_CASE("REPS leaves a plane that is full; blind spraying does not") {
  const Fabric fabric = multi_plane(2, 2, 4, 4);
  State state;
  for (int spine = 0; spine < 4; ++spine)
    state.set(link(fabric, "leaf:0->spine:" + std::to_string(spine)), {.rate_factor = 0.2});
  const auto end = [&](Balance balance) {
    Setting setting{.options = spread(balance), .changes = {{{}, state}}};
    setting.options.congestion = Congestion::nscc;
    setting.options.ecn = {.on = true, .kmin = packets_of(5), .kmax = packets_of(20), .pmax = 1};
    const PacketRunResult result = run(fabric, permutation(fabric, 2000 * payload, 4), setting);
    CHECK(result.complete);
    return result.end;
  };
  CHECK(end(Balance::reps) * 10 < end(Balance::spray) * 9);
}

}  // namespace
}  // namespace weft::engine::packet::testing
