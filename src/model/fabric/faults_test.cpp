#include "model/fabric/faults.hpp"

#include <cmath>
#include <set>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::model {
namespace {

using namespace testing;

Fabric zone() { return make_fabric("{generator: ai_zone, racks: 4, spines: 6, gpus_per_host: 2}"); }

Result<FaultTimeline> parse_faults(const Fabric& fabric, std::string_view yaml,
                                   std::uint64_t seed = 1) {
  return read_faults(fabric, *parse_yaml(yaml, "f.yaml"), seed);
}

FaultTimeline timeline(const Fabric& fabric, std::string_view yaml, std::uint64_t seed = 1) {
  auto faults = parse_faults(fabric, yaml, seed);
  REQUIRE_MESSAGE(faults.has_value(), (faults ? "" : faults.error().text()));
  return *std::move(faults);
}

std::string faults_refusal(const Fabric& fabric, std::string_view yaml) {
  const auto faults = parse_faults(fabric, yaml);
  return faults ? "accepted" : faults.error().text();
}

std::vector<std::int64_t> times_us(const FaultTimeline& timeline) {
  std::vector<std::int64_t> out;
  for (const auto& snapshot : timeline.snapshots) out.push_back(snapshot.at.ps / 1'000'000);
  return out;
}

TEST_CASE("no faults: one healthy snapshot") {
  const Fabric f = zone();
  const auto none = read_faults(f, Config{});
  REQUIRE(none.has_value());
  CHECK(none->snapshots.size() == 1);
  CHECK(none->initial().healthy());
  CHECK(timeline(f, "[]").snapshots.size() == 1);
}

TEST_CASE("a cable fails in both directions, a link in one") {
  const Fabric f = zone();
  const LinkId there = link(f, "rtsw:3->ctsw:5");
  const auto cable = timeline(f, "[{kind: link_down, link: 'ctsw:5--rtsw:3'}]");
  CHECK(cable.initial().link(there).health == Health::down);
  CHECK(cable.initial().link(reverse(there)).health == Health::down);
  CHECK(cable.initial().troubled_links().size() == 2);
  const auto one = timeline(f, "[{kind: link_drain, link: 'rtsw:3->ctsw:5'}]");
  CHECK(one.initial().link(there).health == Health::draining);
  CHECK(one.initial().link(reverse(there)).health == Health::up);
  const auto port = timeline(f, "[{kind: link_down, link: 'ctsw:5/3'}]");
  CHECK(port.initial().troubled_links() == cable.initial().troubled_links());
}

TEST_CASE("bit errors are what the link's code and retries leave of them") {
  const Fabric f = zone();
  const LinkId up = link(f, "rtsw:0->ctsw:0");
  const auto with = [&](std::string_view more) {
    return timeline(f, fmt::format("[{{kind: link_lossy, link: 'rtsw:0--ctsw:0', {}}}]", more));
  };
  // Of 4,180 bytes on the wire, from the binomial distribution by hand (docs/fabrics.md).
  CHECK(with("ber: 1e-3").initial().link(up).loss == approx(1.3e-3).epsilon(0.02));
  CHECK(with("ber: 2.4e-4, fec: rs528").initial().link(up).loss == approx(3.9e-4).epsilon(0.02));
  CHECK(with("ber: 1e-6, fec: none").initial().link(up).loss ==
        approx(1 - std::pow(1 - 1e-6, 8 * 4180)));
  const auto retried = with("ber: 1e-3, retry: true");
  CHECK(retried.initial().link(up).loss == 0);
  CHECK(retried.initial().link(up).rate_factor == approx(1 - 1.3e-3).epsilon(1e-4));
  CHECK(retried.lines[0].find("ber 0.001, fec rs544, retried: 0.99") != std::string::npos);
  const auto refused = [&](const char* more) {
    return faults_refusal(f,
                          fmt::format("[{{kind: link_lossy, link: 'rtsw:0--ctsw:0', {}}}]", more));
  };
  CHECK(refused("ber: 1e-3, loss: 0.1").find("give one of them") != std::string::npos);
  CHECK(refused("ber: 0.6").find("not within") != std::string::npos);
  CHECK(refused("ber: 1e-3, fec: ldpc").find("rs544") != std::string::npos);
  CHECK(refused("loss: 0.1, retry: true").find("unknown key \"retry\"") != std::string::npos);
}

TEST_CASE("every kind does what it says") {
  const Fabric f = zone();
  const auto initial = [&](std::string_view yaml) { return timeline(f, yaml).initial(); };
  const LinkId up = link(f, "rtsw:0->ctsw:0");
  CHECK(initial("[{kind: link_degraded, link: 'rtsw:0--ctsw:0', factor: 0.5}]").link(up) ==
        Condition{Health::up, 0.5, 0});
  CHECK(initial("[{kind: link_lossy, link: 'rtsw:0--ctsw:0', loss: 0.01}]").link(up) ==
        Condition{Health::up, 1, 0.01});
  CHECK(initial("[{kind: switch_down, switch: ctsw:1}]").node(node(f, "ctsw:1")).health ==
        Health::down);
  CHECK(initial("[{kind: switch_drain, node: ctsw:1}]").node(node(f, "ctsw:1")).health ==
        Health::draining);
  CHECK(initial("[{kind: nic_down, nic: [nic:1, nic:2]}]").troubled_nodes().size() == 2);
  CHECK(initial("[{kind: nic_drain, nic: host:1/nic:0}]").node(node(f, "nic:2")).health ==
        Health::draining);
  const State host = initial("[{kind: host_down, host: host:1}]");
  CHECK(host.troubled_nodes().size() == 1 + 2 + 2 + 1);
  CHECK(host.node(node(f, "nic:3")).health == Health::down);
  CHECK(host.node(node(f, "fe_nic:1")).health == Health::down);
  CHECK(host.node(node(f, "fe_nic:0")).health == Health::up);
}

TEST_CASE("slow GPUs: factors of the GPU and its host multiply, links keep their rate") {
  const Fabric f = zone();  // 2 GPUs a host
  const auto t = timeline(f,
                          "- {kind: gpu_slow, gpu: [5, gpu:7], factor: 1.3}\n"
                          "- {kind: host_slow, host: host:2, factor: 2, at: 1 us, until: 3 us}\n"
                          "- {kind: gpu_slow, gpu: 4, factor: 1.5, at: 2 us}\n"
                          "- {kind: gpu_slow, gpu: 4, factor: 1.5, at: 3 us}\n");
  CHECK(times_us(t) == std::vector<std::int64_t>{0, 1, 2, 3});
  const auto slowdown = [&](std::size_t snapshot, const char* gpu) {
    return t.snapshots[snapshot].state.slowdown(f, node(f, gpu));
  };
  CHECK(slowdown(0, "gpu:5") == 1.3);
  CHECK(slowdown(0, "gpu:7") == 1.3);
  CHECK(slowdown(0, "gpu:4") == 1);
  CHECK(slowdown(1, "gpu:5") == 2.6);
  CHECK(slowdown(1, "gpu:7") == 1.3);
  CHECK(slowdown(1, "gpu:4") == 2);
  CHECK(slowdown(2, "gpu:4") == 3);
  CHECK(slowdown(3, "gpu:4") == 2.25);
  CHECK(slowdown(3, "gpu:5") == 1.3);
  CHECK(State{}.slowdown(f, node(f, "gpu:0")) == 1);
  const LiveView healthy(f, State{});
  for (const auto& snapshot : t.snapshots) {
    const LiveView live(f, snapshot.state);
    CHECK(live.bytes_per_s == healthy.bytes_per_s);
    CHECK(live.health == healthy.health);
  }
  CHECK(t.lines[0] == "gpu_slow gpu:5, gpu:7, factor 1.3");
  CHECK(t.lines[1] == "host_slow host:2, factor 2, from 1 us, until 3 us");
}

TEST_CASE("slowness of any number of faults stays finite") {
  const Fabric f = zone();
  std::string yaml;
  for (int i = 0; i < 100; ++i) yaml += "- {kind: gpu_slow, gpu: 0, factor: 1e6}\n";
  CHECK(timeline(f, yaml).initial().slowdown(f, node(f, "gpu:0")) == 1e12);
}

//  gpu:0 --pcie-- nic:0 ==== rtsw:0       a NIC's own trouble strikes ==== alone
TEST_CASE("a degraded or lossy NIC strikes its cables to the network") {
  const Fabric f = zone();
  const LinkId up = link(f, "nic:0->rtsw:0");
  const State slow = timeline(f, "[{kind: nic_degraded, nic: nic:0, factor: 0.25}]").initial();
  CHECK(slow.troubled_nodes().empty());
  CHECK(slow.troubled_links().size() == 2);
  CHECK(slow.link(up) == Condition{Health::up, 0.25, 0});
  CHECK(slow.link(reverse(up)) == Condition{Health::up, 0.25, 0});
  const auto lossy = timeline(f,
                              "- {kind: nic_lossy, role: nic, count: 2, loss: 0.01}\n"
                              "- {kind: link_lossy, link: 'nic:0->rtsw:0', loss: 0.5}\n");
  CHECK(lossy.initial().troubled_links().size() == 4);
  CHECK(lossy.initial().link(up).loss == approx(1 - 0.99 * 0.5));
  CHECK(lossy.initial().link(reverse(up)).loss == 0.01);
  CHECK(lossy.lines[0] == "nic_lossy nic:0, nic:1, loss 0.01");
}

TEST_CASE("a degraded or lossy switch strikes all its cables, a slow receiver one direction") {
  const Fabric f = zone();
  const LinkId up = link(f, "nic:0->rtsw:0");
  const auto switches = timeline(f, "[{kind: switch_degraded, switch: rtsw:0, factor: 0.5}]");
  CHECK(switches.initial().troubled_nodes().empty());
  std::size_t directions = 0;
  for (const LinkId l : f.out(f.from(reverse(up)))) {
    CHECK(switches.initial().link(l).rate_factor == 0.5);
    CHECK(switches.initial().link(reverse(l)).rate_factor == 0.5);
    directions += 2;
  }
  CHECK(switches.initial().troubled_links().size() == directions);
  CHECK(switches.lines[0] == "switch_degraded rtsw:0, factor 0.5");
  CHECK(timeline(f, "[{kind: switch_lossy, switch: rtsw:0, loss: 0.1}]").initial().link(up).loss ==
        0.1);
  const State receiver =
      timeline(f, "[{kind: nic_slow_receiver, nic: nic:0, factor: 0.25}]").initial();
  CHECK(receiver.troubled_links().size() == 1);
  CHECK(receiver.link(reverse(up)).rate_factor == 0.25);
}

//  nic:0 ---- nic:1     without a switch: one cable, struck once although both its ends are named
TEST_CASE("a cable between two degraded NICs is struck once by one fault") {
  const Fabric f = make_fabric(
      "{rate: 1 Gbps, nodes: [{role: nic, count: 2}], "
      "links: [\"nic:0--nic:1\"]}");
  const State state =
      timeline(f, "[{kind: nic_degraded, nic: [nic:0, nic:1], factor: 0.5}]").initial();
  CHECK(state.link(LinkId(0)).rate_factor == 0.5);
  CHECK(state.troubled_links().size() == 2);
}

// a: |----------|           0..20 us
// b:      |----------|      10..30 us: up again only at 30
TEST_CASE("a link is up again when all of its faults have ended") {
  const Fabric f = zone();
  const auto t = timeline(f,
                          "- {kind: link_down, link: 'rtsw:0--ctsw:0', until: 20 us}\n"
                          "- {kind: link_down, link: 'rtsw:0->ctsw:0', at: 10 us, until: 30 us}\n");
  const LinkId up = link(f, "rtsw:0->ctsw:0");
  // At 10 us nothing changes: the link is down already.
  CHECK(times_us(t) == std::vector<std::int64_t>{0, 20, 30});
  CHECK(t.snapshots[0].state.troubled_links().size() == 2);
  CHECK(t.snapshots[1].state.link(up).health == Health::down);
  CHECK(t.snapshots[1].state.link(reverse(up)).health == Health::up);
  CHECK(t.snapshots[2].state.healthy());
}

TEST_CASE("overlapping faults combine and come apart exactly") {
  const Fabric f = zone();
  const auto t = timeline(
      f,
      "- {kind: link_degraded, link: 'rtsw:0--ctsw:0', factor: 0.1, at: 1 us, until: 5 us}\n"
      "- {kind: link_degraded, link: 'rtsw:0--ctsw:0', factor: 0.7, at: 2 us, until: 4 us}\n"
      "- {kind: link_lossy, link: 'rtsw:0--ctsw:0', loss: 0.5, at: 2 us, until: 6 us}\n"
      "- {kind: link_lossy, link: 'rtsw:0--ctsw:0', loss: 0.5, at: 3 us, until: 6 us}\n"
      "- {kind: link_drain, link: 'rtsw:0--ctsw:0', at: 3 us, until: 4 us}\n");
  const LinkId up = link(f, "rtsw:0->ctsw:0");
  CHECK(times_us(t) == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6});
  CHECK(t.snapshots[0].state.healthy());
  CHECK(t.snapshots[1].state.link(up) == Condition{Health::up, 0.1, 0});
  CHECK(t.snapshots[2].state.link(up) == Condition{Health::up, 0.1 * 0.7, 0.5});
  CHECK(t.snapshots[3].state.link(up) == Condition{Health::draining, 0.1 * 0.7, 0.75});
  CHECK(t.snapshots[4].state.link(up) == Condition{Health::up, 0.1, 0.75});
  CHECK(t.snapshots[5].state.link(up) == Condition{Health::up, 1, 0.75});
  CHECK(t.snapshots[6].state.healthy());
}

TEST_CASE("one fault ends as the next begins: no gap between them") {
  const Fabric f = zone();
  const auto t = timeline(f,
                          "- {kind: switch_down, switch: ctsw:0, at: 1 us, until: 2 us}\n"
                          "- {kind: switch_down, switch: ctsw:0, at: 2 us, until: 3 us}\n");
  CHECK(times_us(t) == std::vector<std::int64_t>{0, 1, 3});
}

TEST_CASE("naming a link twice in one fault degrades it once") {
  const Fabric f = zone();
  const auto t = timeline(
      f, "[{kind: link_degraded, factor: 0.5, link: ['rtsw:0--ctsw:0', 'ctsw:0--rtsw:0']}]");
  CHECK(t.initial().link(link(f, "rtsw:0->ctsw:0")).rate_factor == 0.5);
}

TEST_CASE("count picks the first or random ones, the same ones for the same seed") {
  const Fabric f = zone();
  const auto first = timeline(f, "[{kind: switch_down, role: ctsw, count: 2}]");
  CHECK(first.initial().node(node(f, "ctsw:0")).health == Health::down);
  CHECK(first.initial().node(node(f, "ctsw:1")).health == Health::down);
  CHECK(first.initial().troubled_nodes().size() == 2);
  const char* const random = "[{kind: switch_down, role: ctsw, count: 3, pick: random}]";
  std::set<std::vector<NodeId>> seen;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::vector<NodeId> struck;
    const FaultTimeline picked = timeline(f, random, seed);
    for (const auto& [n, condition] : picked.initial().troubled_nodes()) struck.push_back(n);
    CHECK(struck.size() == 3);
    seen.insert(struck);
    const auto again = timeline(f, random, seed);
    CHECK(again.initial().troubled_nodes().contains(struck[0]));
  }
  CHECK(seen.size() > 10);  // of 20 possible sets
  const auto links = timeline(f, "[{kind: link_down, tier: rtsw->ctsw, count: 24}]");
  CHECK(links.initial().troubled_links().size() == 48);
}

TEST_CASE("lines tell each fault in words") {
  const Fabric f = zone();
  const auto t = timeline(
      f,
      "- {kind: link_degraded, link: 'rtsw:0--ctsw:0', factor: 0.5, at: 1 us, until: 2 us}\n"
      "- {kind: switch_down, role: ctsw, count: 6}\n"
      "- {kind: link_down, link: 'rtsw:0->ctsw:0'}\n");
  CHECK(t.lines[0] == "link_degraded rtsw:0--ctsw:0, factor 0.5, from 1 us, until 2 us");
  CHECK(t.lines[1] == "switch_down ctsw:0, ctsw:1, ctsw:2, ctsw:3 and 2 more");
  CHECK(t.lines[2] == "link_down rtsw:0->ctsw:0");
}

TEST_CASE("mistakes, all at once and with their positions") {
  const Fabric f = zone();
  const auto says = [&](std::string_view yaml, std::string_view part) {
    const std::string text = faults_refusal(f, yaml);
    CHECK_MESSAGE(contains(text, part), text);
  };
  says("{kind: link_down}", "\"faults\" must be a list");
  says("[3]", "faults[0] must be a map");
  says("[{}]", "\"kind\" is missing");
  says("[{kind: link_dwon, link: x}]", "did you mean \"link_down\"?");
  says("[{kind: link_down}]", "link_down has no target");
  says("[{kind: link_down, link: 'rtsw:0--ctsw:9'}]", "f.yaml:1:26: \"ctsw:9\": there are 6 ctsw");
  says("[{kind: link_down, link: [[1]]}]", "plain values");
  says("[{kind: switch_down, switch: nic:0}]", "nic:0 is a nic, not a fabric_switch");
  says("[{kind: switch_down, switch: ctws:0}]", "did you mean \"ctsw\"?");
  says("[{kind: switch_down, link: 'a--b'}]", "unknown key \"link\"");
  says("[{kind: link_degraded, link: 'rtsw:0--ctsw:0'}]", "\"factor\" is missing");
  says("[{kind: link_degraded, link: 'rtsw:0--ctsw:0', factor: 0}]", "0 is not within");
  says("[{kind: link_degraded, link: 'rtsw:0--ctsw:0', factor: 1.5}]", "1.5 is not within");
  says("[{kind: link_lossy, link: 'rtsw:0--ctsw:0', loss: 1}]", "1 is not within");
  says("[{kind: link_down, link: 'rtsw:0--ctsw:0', factor: 0.5}]", "unknown key \"factor\"");
  says("[{kind: switch_down, switch: ctsw:0, at: 5}]", "no unit");
  says("[{kind: switch_down, switch: ctsw:0, at: 5 s, until: 5 s}]", "ends at 5 s but starts");
  says("[{kind: switch_down, role: ctsw, count: 7}]", "7 requested, but there are only 6");
  says("[{kind: switch_down, role: ctsw, count: 0}]", "0 is not within");
  says("[{kind: switch_down, count: 1}]", "\"role\" is missing");
  says("[{kind: switch_down, role: nic, count: 1}]", "not a role of kind fabric_switch");
  says("[{kind: link_down, tier: rtsw-ctsw, count: 1}]", "did you mean \"rtsw->ctsw\"?");
  says("[{kind: switch_down, role: ctsw, count: 1, pick: best}]", "unknown name \"best\"");
  says("[{kind: switch_down, role: ctsw, count: 1, switch: ctsw:0}]", "unknown key \"switch\"");
  says("[{kind: gpu_slow, gpu: 3, factor: 0.9}]", "0.9 is not within");
  says("[{kind: gpu_slow, gpu: 3, factor: 2e6}]", "is not within");
  says("[{kind: gpu_slow, gpu: 3, factor: nan}]", "f.yaml:1:35: ");
  says("[{kind: gpu_slow, gpu: 3}]", "\"factor\" is missing");
  says("[{kind: gpu_slow, gpu: 99, factor: 2}]", "f.yaml:1:24: \"99\"");
  says("[{kind: gpu_slow, gpu: host:0, factor: 2}]", "host:0 is a host, not a gpu");
  says("[{kind: host_slow, gpu: 3, factor: 2}]", "unknown key \"gpu\"");
  says("[{kind: nic_degraded, nic: nic:0, factor: 2}]", "2 is not within");
  says("[{kind: nic_lossy, nic: nic:0, loss: 1}]", "1 is not within");
  says("[{kind: nic_degraded, nic: fe_nic:0, factor: 0.5}]",
       "fe_nic:0 has no cables to the network");
  says("- {kind: nope}\n- {kind: switch_down, switch: ctsw:77}\n", "f.yaml:1:10: ");
  says("- {kind: nope}\n- {kind: switch_down, switch: ctsw:77}\n", "f.yaml:2:31: ");
}

// `count` faults of one kind, 1 us apart, each lasting `us`.
Config many(int count, std::string_view fault_yaml, int us) {
  Config list = Config::list();
  for (int i = 0; i < count; ++i) {
    Config fault = *parse_yaml(fault_yaml, "f.yaml");
    fault.at_or_add("at") = Config::scalar(std::to_string(i) + " us");
    fault.at_or_add("until") = Config::scalar(std::to_string(i + us) + " us");
    list.items.push_back(std::move(fault));
  }
  return list;
}

TEST_CASE("too many faults are refused, not swallowed") {
  const Fabric f = zone();  // 24 cables from RTSWs to CTSWs
  const FaultLimits limits{.faults = 100, .strikes = 500, .overlap = 10, .exceptions = 1000};
  const auto says = [&](const Config& list, std::string_view part) {
    const auto faults = read_faults(f, list, 1, limits);
    REQUIRE_FALSE(faults.has_value());
    CHECK_MESSAGE(contains(faults.error().text(), part), faults.error().text());
  };
  const char* const drain = "{kind: switch_drain, switch: ctsw:0}";
  const char* const random = "{kind: link_down, tier: rtsw->ctsw, count: 5, pick: random}";
  says(many(101, drain, 1), "101 faults, more than 100");
  says(many(51, random, 1), "hit 510 links and nodes, more than 500");
  says(many(50, random, 5), "more than 1000 state changes");
  says(many(11, drain, 1000), "more than 10 simultaneous faults");
  CHECK(read_faults(f, many(10, drain, 1000), 1, limits).has_value());
}

// Random faults against the definition: at each snapshot, combine what is active, one by one.
TEST_CASE("every snapshot is the combination of the active faults") {
  const Fabric f = zone();
  Rng rng(11);
  for (int round = 0; round < 200; ++round) {
    struct Active {
      std::int64_t at, until;
      std::string target;
      bool down;
    };
    std::vector<Active> faults;
    std::string yaml;
    for (int i = 0; i < 8; ++i) {
      Active a;
      a.at = static_cast<std::int64_t>(rng.below(6));
      a.until = a.at + 1 + static_cast<std::int64_t>(rng.below(6));
      a.target = "ctsw:" + std::to_string(rng.below(3));
      a.down = rng.below(2) == 0;
      faults.push_back(a);
      yaml += "- {kind: switch_" + std::string(a.down ? "down" : "drain") +
              ", switch: " + a.target + ", at: " + std::to_string(a.at) +
              " us, until: " + std::to_string(a.until) + " us}\n";
    }
    const auto t = timeline(f, yaml);
    CHECK(t.snapshots.back().state.healthy());
    for (std::int64_t now = 0; now < 12; ++now) {
      const FaultTimeline::Snapshot* current = nullptr;
      for (const auto& snapshot : t.snapshots)
        if (snapshot.at.ps <= now * 1'000'000) current = &snapshot;
      REQUIRE(current != nullptr);
      for (const char* const name : {"ctsw:0", "ctsw:1", "ctsw:2"}) {
        Health expected = Health::up;
        for (const Active& a : faults)
          if (a.target == name && a.at <= now && now < a.until)
            expected = std::max(expected, a.down ? Health::down : Health::draining);
        CHECK(current->state.node(node(f, name)).health == expected);
      }
    }
  }
}

TEST_CASE("faults seen late: at every moment the state as it was so long ago") {
  const Fabric f = zone();
  const FaultTimeline t =
      timeline(f,
               "- {kind: switch_down, switch: ctsw:0, until: 4 us}\n"  // known from the start
               "- {kind: switch_down, switch: ctsw:1, at: 2 us, until: 3 us}\n"
               "- {kind: switch_drain, switch: ctsw:1, at: 9 us}\n");
  for (const std::int64_t late : {1, 2, 5}) {
    const Duration by{late * 1'000'000};
    const auto seen = heard_late(t.snapshots, {.seen = by, .routed = by * 2, .noticed = 500_ns});
    CHECK(std::ranges::is_sorted(seen, {}, [](const auto& s) { return s.at; }));
    const auto at = [](const auto& snapshots, std::int64_t us) -> const State& {
      const State* current = &snapshots.front().state;
      for (const auto& snapshot : snapshots)
        if (snapshot.at.ps <= us * 1'000'000) current = &snapshot.state;
      return *current;
    };
    for (std::int64_t us = 0; us < 20; ++us)
      for (const char* const name : {"ctsw:0", "ctsw:1"}) {
        CAPTURE(us);
        const NodeId n = node(f, name);
        CHECK(at(seen, us).node(n) == at(t.snapshots, us).node(n));
        const auto before = [&](std::int64_t past) {
          return at(t.snapshots, std::max<std::int64_t>(0, us - past)).node(n);
        };
        // Who hears before the routes does not count on what they avoid.
        Condition heard = before(late);
        heard.health = before(2 * late).health == Health::down ? Health::down : heard.health;
        CHECK(at(seen, us).seen().node(n) == heard);
        CHECK(at(seen, us).routed().node(n) == before(2 * late));
        // Half a microsecond after the change that happened now, or long after the others.
        CHECK(at(seen, us).noticed().node(n) == before(1));
      }
  }
  CHECK(heard_late({}, {.seen = 1_us}).empty());
  CHECK(&t.initial().seen() == &t.initial());
  for (const auto& snapshot : heard_late(t.snapshots, {.seen = 500_us}))
    CHECK(snapshot.state.is_settled() == (snapshot.at == Time{} || snapshot.at == Time{} + 509_us));
}

}  // namespace
}  // namespace weft::model
