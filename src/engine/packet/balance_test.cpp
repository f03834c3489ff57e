// Load balancing: who finds the idle path, and who avoids the slow one.
#include "engine/packet/test_kit.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::engine::packet::testing {
namespace {

Options selective_windowed(Balance balance) {
  Options options;
  options.reliability = Reliability::selective;
  options.balance = balance;
  options.window = packets_of(150);
  return options;
}

TEST_CASE("spraying beats ECMP where flows collide; by queue it is as good") {
  // 8 NICs a rack to 8 of the other over 8 spines: with ECMP some uplinks carry several flows.
  const Fabric fabric = leaf_spine(2, 8, 8);
  const Load load = permutation(fabric, 500 * payload, 8);
  const double ideal = microseconds(500 * full + 4 * us + 3 * full + 4 * (us + 1'280));
  double ecmp = 0, spray = 0, adaptive = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Setting setting{.seed = seed};
    ecmp += microseconds(run(fabric, load, setting).end) / 5;
    setting.options = selective_windowed(Balance::spray);
    setting.options.seed = seed;
    spray += microseconds(run(fabric, load, setting).end) / 5;
    setting.options = selective_windowed(Balance::adaptive);
    adaptive += microseconds(run(fabric, load, setting).end) / 5;
  }
  CHECK(ecmp > 1.8 * ideal);
  CHECK(spray < 1.25 * ideal);
  CHECK(adaptive < 1.1 * ideal);
  CHECK(adaptive >= 0.999 * ideal);
}

TEST_CASE("REPS leaves a slow path; blind spraying does not") {
  const Fabric fabric = leaf_spine(2, 4, 4);
  State state;
  state.set(link(fabric, "leaf:0->spine:2"), {.rate_factor = 0.2});
  const auto end = [&](Balance balance) {
    Setting setting{.options = selective_windowed(balance), .changes = {{{}, state}}};
    setting.options.congestion = Congestion::nscc;
    setting.options.window = {};
    setting.options.ecn = {.on = true, .kmin = packets_of(5), .kmax = packets_of(20), .pmax = 1};
    const PacketRunResult result = run(fabric, permutation(fabric, 2000 * payload, 4), setting);
    CHECK(result.complete);
    return result;
  };
  const PacketRunResult blind = end(Balance::spray), reps = end(Balance::reps);
  CHECK(reps.end * 10 < blind.end * 9);
  const std::size_t slow = link(fabric, "leaf:0->spine:2").index();
  CHECK(reps.links[slow].packets < blind.links[slow].packets);
}

// How many packets each link must carry: every connection's on the links of its path by the router.
std::vector<std::uint64_t> packets_by_router(const Fabric& fabric, const Load& load,
                                             const Setting& setting, std::uint64_t packets) {
  auto router = route::Router::create(fabric, setting.routing, setting.seed);
  REQUIRE(router.has_value());
  std::vector<std::uint64_t> out(fabric.link_count());
  for (const Connection& c : load.connections) {
    const auto via = std::span(load.via).subspan(c.via, c.via_count);
    std::vector<route::Hop> hops;
    REQUIRE(router->append_path({c.src, c.dst, c.qp, c.qp, via}, hops));
    for (const route::Hop& hop : hops) out[hop.link.index()] += packets;
  }
  return out;
}

void check_paths(const Fabric& fabric, const Load& load, Setting setting) {
  const auto expected = packets_by_router(fabric, load, setting, 5);
  struct Transport {
    Reliability reliability;
    Congestion congestion;
  };
  for (const auto& [reliability, congestion] :
       {Transport{Reliability::goback_n, Congestion::none},
        Transport{Reliability::selective, Congestion::none},
        Transport{Reliability::selective, Congestion::nscc}}) {
    setting.options = {};
    setting.options.reliability = reliability;
    setting.options.congestion = congestion;
    const PacketRunResult result = run(fabric, load, setting);
    CHECK(result.complete);
    for (const LinkId id : fabric.links()) {
      CAPTURE(fabric.name(id));
      CHECK(result.links[id.index()].packets == expected[id.index()]);
      // Acknowledgements come back the same way.
      CHECK((result.links[id.index() ^ 1].control > 0) == (expected[id.index()] > 0));
    }
  }
}

TEST_CASE("packets that keep to a path take the one of the router, whatever the transport") {
  const auto check = [](const Fabric& fabric, const std::string& scheme) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      CAPTURE(scheme);
      CAPTURE(seed);
      check_paths(fabric, permutation(fabric, 5 * payload, 3),
                  {.routing = {.scheme = scheme, .qps = 4}, .seed = seed});
    }
  };
  for (const std::string scheme : {"ecmp", "e_ecmp"}) {
    check(fat_tree(), scheme);
    check(leaf_spine(4, 4, 4), scheme);
    check(multi_plane(4, 4, 2, 2), scheme);
  }
  check(model::testing::make_fabric(
            "{generator: dragonfly, p: 1, a: 4, h: 2, g: 5, gpus_per_host: 1}"),
        "valiant");
}

TEST_CASE("packets take the way over a switch that somebody chose, whatever the transport") {
  const Fabric fabric = leaf_spine(4, 4, 4);
  for (int spine = 0; spine < 4; ++spine) {
    Load load = Load{}.add(fabric, 0, 15, 5 * payload);
    load.via = {node(fabric, "spine:" + std::to_string(spine))};
    load.connections[0].via_count = 1;
    check_paths(fabric, load, {});
  }
}

TEST_CASE("flowlets: a flow keeps its port while it talks") {
  const Fabric fabric = leaf_spine(2, 1, 8);
  const auto ports = [&](Ps pause) {
    Load load = Load{}.add(fabric, 0, 1, 10 * payload);
    for (std::uint32_t m = 1; m < 20; ++m)
      load.drafts.push_back({.bytes = 10 * payload, .not_before_ps = m * pause});
    Options options;
    options.balance = Balance::flowlet;
    options.flowlet_gap = 5_us;
    const PacketRunResult result = run(fabric, load, options);
    CHECK(result.complete);
    CHECK(result.counters.retransmissions == 0);
    std::size_t used = 0;
    for (int spine = 0; spine < 8; ++spine)
      used +=
          result.links[link(fabric, "leaf:0->spine:" + std::to_string(spine)).index()].packets > 0
              ? 1
              : 0;
    return used;
  };
  CHECK(ports(4 * us) == 1);
}

TEST_CASE("flowlets: a flow that begins takes the least queue") {
  // Both flows of nic:0 and nic:1 talk at once: the second finds the first one's port busy.
  const Fabric fabric = leaf_spine(2, 4, 4);
  Load load;
  for (std::size_t i = 0; i < 4; ++i) load.add(fabric, i, 4 + i, 300 * payload, i * 3 * full);
  Options options;
  options.balance = Balance::flowlet;
  options.flowlet_gap = 3_us;
  const PacketRunResult flowlet = run(fabric, load, options);
  // The queue that a flow at line rate leaves is short: not every collision shows, most do.
  double ecmp = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed)
    ecmp += microseconds(run(fabric, load, Setting{.seed = seed}).end) / 8;
  CHECK(microseconds(flowlet.end) < ecmp);
}

TEST_CASE("multipath: messages of one connection take paths without a common link") {
  const Fabric fabric = leaf_spine(2, 1, 4);
  Load load = Load{}.add(fabric, 0, 1, 50 * payload);
  for (int m = 1; m < 8; ++m) load.drafts.push_back({.bytes = 50 * payload});
  Options options;
  options.balance = Balance::multipath;
  options.paths = 4;
  const PacketRunResult result = run(fabric, load, options);
  CHECK(result.complete);
  for (int spine = 0; spine < 4; ++spine) {
    const std::string name = "leaf:0->spine:" + std::to_string(spine);
    CHECK(result.links[link(fabric, name).index()].packets == 100);
  }
}

TEST_CASE("multipath: the path with the least outstanding gets the next message") {
  // One of two paths is slow: it gets fewer messages, and the whole is faster than half and half.
  const Fabric fabric = leaf_spine(2, 1, 2);
  Setting setting;
  setting.options.balance = Balance::multipath;
  setting.options.paths = 2;
  State state;
  state.set(link(fabric, "leaf:0->spine:1"), {.rate_factor = 0.1});
  setting.changes = {{{}, state}};
  Load load = Load{}.add(fabric, 0, 1, 20 * payload);
  for (std::uint32_t m = 1; m < 60; ++m)
    load.drafts.push_back({.bytes = 20 * payload, .not_before_ps = Ps{m} * 20 * full});
  const PacketRunResult result = run(fabric, load, setting);
  CHECK(result.complete);
  const std::uint64_t slow = result.links[link(fabric, "leaf:0->spine:1").index()].packets;
  CHECK(slow > 0);
  CHECK(slow < 60 * 20 / 3);
}

Fabric dragonfly() {
  return model::testing::make_fabric(
      "{generator: dragonfly, p: 2, a: 4, h: 2, g: 9, gpus_per_host: 1, link: 400 Gbps, "
      "latency: 500 ns}");
}

TEST_CASE("UGAL: detours where minimal paths are full, minimal ones where they are not") {
  const Fabric fabric = dragonfly();
  REQUIRE(fabric.nics().size() == 72);
  const auto end = [&](const char* scheme, std::size_t shift, std::uint64_t packets) {
    Setting setting{.routing = {.scheme = scheme}};
    if (std::string_view(scheme) == "ugal") setting.options.balance = Balance::ugal;
    setting.options.flowlet_gap = 2_us;
    setting.options.window = packets_of(20);  // or much is sent again after a change of path
    const PacketRunResult result =
        run(fabric, permutation(fabric, packets * payload, shift), setting);
    CHECK(result.complete);
    return result.end;
  };
  // Adversarial: all 8 NICs of a group send to the next group, over its one global cable.
  CHECK(end("ugal", 8, 300) * 5 < end("minimal", 8, 300) * 4);
  // Benign: to the next NIC, mostly inside the group.
  CHECK(end("ugal", 1, 60) * 4 < end("valiant", 1, 60) * 3);
}

TEST_CASE("a dragonfly with one lossless class deadlocks, which is told") {
  // Minimal paths (local, global, local) need two classes to be free of circles.
  const Fabric fabric = dragonfly();
  Setting setting{.routing = {.scheme = "minimal"}};
  setting.options.window = packets_of(100);
  const Load load = permutation(fabric, 300 * payload, 8);
  CHECK(run(fabric, load, setting).complete);
  setting.options.pfc = fixed_pfc();
  const PacketRunResult result = run(fabric, load, setting);
  CHECK(!result.complete);
  CHECK(result.counters.drops == 0);
  REQUIRE(result.deadlocks.size() == 1);
  const std::vector<LinkId>& circle = result.deadlocks[0].circle;
  REQUIRE(circle.size() > 2);
  for (std::size_t i = 0; i < circle.size(); ++i)
    CHECK(fabric.to(circle[i]) == fabric.from(circle[(i + 1) % circle.size()]));
}

}  // namespace
}  // namespace weft::engine::packet::testing
