#include "engine/packet/read_options.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string_view>

#include "model/formats/test_fabric.hpp"

namespace weft::engine::packet {
namespace {

using model::Fabric;

// 2 racks of 16 NICs, 2 spines: an rtsw has 18 ports, a ctsw 2.
const Fabric& zone() {
  static const Fabric fabric = model::testing::make_fabric(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 2, gpus_per_host: 8, spines: 2, "
      "link: 400 Gbps, latency: 1 us}");
  return fabric;
}

struct Outcome {
  Options options;
  route::RoutingConfig routing;
  std::string errors;
  std::vector<std::string> notes;
};

Outcome read(std::string_view yaml, std::string_view routing = "{}") {
  const auto parsed = parse_yaml(yaml, "t.yaml");
  const auto routing_section = parse_yaml(routing, "r.yaml");
  REQUIRE(parsed.has_value());
  REQUIRE(routing_section.has_value());
  Outcome out;
  Errors errors;
  out.routing = route::read_routing(*routing_section, errors);
  const Config section = transport_section(*parsed);
  Reader reader(section, "transport", errors);
  out.options = read_options(reader, {&zone(), out.routing, errors, out.notes});
  reader.finish();
  for (const Error& error : errors) out.errors += error.text() + "\n";
  return out;
}

Options accepted(std::string_view yaml, std::string_view routing = "{}") {
  CAPTURE(yaml);
  Outcome out = read(yaml, routing);
  CHECK(out.errors == "");
  return out.options;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

TEST_CASE("transport: the timer of selective repeat") {
  const Options given =
      accepted("{reliability: selective, retransmit: {gap: 3, round_trips: 5, at_least: 1 ms}}");
  CHECK(given.retransmit_gap == 3);
  CHECK(given.retransmit_round_trips == 5);
  CHECK(given.retransmit_least == 1000_us);
  CHECK(accepted("{}").retransmit_round_trips == 3);
  const Outcome unused = read("{retransmit: {round_trips: 5}}");
  CHECK(unused.errors == "");
  REQUIRE(unused.notes.size() == 1);
  CHECK(contains(unused.notes[0], "transport.retransmit has no effect without reliability"));
  CHECK(contains(read("{retransmit: {round_trips: 0}}").errors, "round_trips"));
  CHECK(contains(read("{retransmit: {rounds: 2}}").errors, "unknown key"));
}

TEST_CASE("transport: how many packets one acknowledgement answers") {
  const auto is = [](std::string_view yaml, std::uint32_t every, Duration delay) {
    const Options options = accepted(yaml);
    CHECK(options.ack_every == every);
    CHECK(options.ack_delay == delay);
  };
  for (const char* name : {"roce", "cts"}) is(name, 256, 25_us);
  for (const char* name : {"nscc", "eqds"}) is(name, 4, 25_us);
  is("hpcc", 1, 25_us);
  CHECK_FALSE(accepted("hpcc").gathers_acks());
  CHECK_FALSE(accepted("{ack_every: 1}").gathers_acks());
  is("{window: 512 KiB}", 31, 25_us);
  is("{name: nscc, window: 16 KiB}", 1, 25_us);
  is("{ack_delay: 3 us}", 256, 3_us);
  is("{cc: dcqcn, ack_delay: 3 us}", 256, 3_us);
  is("{name: cts, ack_delay: 3 us}", 256, 3_us);
  is("{name: nscc, ack_delay: 3 us}", 4, 3_us);
  is("{name: eqds, ack_delay: 3 us}", 4, 3_us);
  is("{name: nscc, mtu: 1 kB, header: 24 B, ack_delay: 3 us}", 16, 3_us);
  is("{name: nscc, mtu: 1000 B, header: 25 B, ack_delay: 3 us}", 16, 3_us);
  is("{ack_every: 8}", 8, 25_us);
  is("{ack_every: 8, ack_timeout: 20 us}", 8, 5_us);
  is("{ack_every: 1000, ack_delay: 7 us}", 1000, 7_us);
  CHECK(accepted("{ack_every: 8}").gathers_acks());
  CHECK(accepted("{name: hpcc, ack_every: 2}").gathers_acks());
  CHECK_FALSE(accepted("{ack_delay: 0 s}").gathers_acks());
  CHECK(contains(read("{ack_every: 0}").errors, "ack_every"));
  CHECK(contains(read("{ack_every: 1001}").errors, "ack_every"));
}

TEST_CASE("transport: nothing given is plain RoCE without bounds") {
  const Options none = accepted("{}");
  CHECK(none.transport == "roce");
  CHECK(none.reliability == Reliability::goback_n);
  CHECK(none.congestion == Congestion::none);
  CHECK(none.admission == Admission::open);
  CHECK(none.balance == Balance::path);
  CHECK(none.overflow == Overflow::drop);
  CHECK(none.wire.mtu == 4096_B);
  CHECK(none.wire.header == 64_B);
  CHECK(!none.pfc.on);
  CHECK(!none.ecn.on);
  CHECK(none.buffers.empty());
  CHECK(none.end == never);
  CHECK(none.scheduler.weights == std::vector<std::uint32_t>{1});
  Errors errors;
  std::vector<std::string> notes;
  route::RoutingConfig routing;
  const Config null;
  Reader reader(null, "transport", errors);
  CHECK(read_options(reader, {nullptr, routing, errors, notes}).transport == "roce");
  CHECK(errors.empty());
}

TEST_CASE("transport: presets, by short form and by name") {
  const Options hpcc = accepted("hpcc");
  CHECK(hpcc.congestion == Congestion::hpcc);
  CHECK(hpcc.reliability == Reliability::goback_n);
  const Outcome nscc = read("{name: nscc}");
  CHECK(nscc.errors == "");
  CHECK(nscc.options.congestion == Congestion::nscc);
  CHECK(nscc.options.reliability == Reliability::selective);
  CHECK(nscc.options.balance == Balance::spray);
  CHECK(nscc.options.ecn.on);
  CHECK(nscc.routing.scheme == "spray");
  const Outcome one_path = read("nscc", "{scheme: ecmp}");
  CHECK(one_path.options.balance == Balance::path);
  CHECK(one_path.options.reliability == Reliability::selective);
  CHECK(one_path.routing.scheme == "ecmp");
  const Outcome credit = read("{name: eqds}");  // as NSCC: switches that trim, and marks
  CHECK(credit.options.round_trip_queues);
  CHECK(credit.options.ecn.on);
  CHECK(credit.options.scheduler.control_class == 1);
  CHECK(credit.notes == nscc.notes);
  CHECK(!accepted("{name: eqds, ecn: false}").ecn.on);
  const Options eqds = accepted("{name: eqds, buffers: 64 MB}");
  CHECK(!eqds.round_trip_queues);
  CHECK(eqds.admission == Admission::pull);
  CHECK(eqds.overflow == Overflow::trim);
  CHECK(eqds.reliability == Reliability::selective);
  CHECK(eqds.balance == Balance::spray);
  const Options cts = accepted("cts");
  CHECK(cts.admission == Admission::cts);
  CHECK(cts.reliability == Reliability::goback_n);
  CHECK(cts.scheduler.weights == std::vector<std::uint32_t>{4160, 0});
  CHECK(cts.scheduler.control_class == 1);
  const Options plain_cts = accepted("{name: cts, cts: {queue: data, channels: 8}}");
  CHECK(plain_cts.scheduler.weights.size() == 1);
  CHECK(plain_cts.cts.channels == 8);
}

TEST_CASE("transport: the routing scheme decides how packets spread") {
  const auto balance = [](std::string_view scheme) {
    return accepted("{}", "{scheme: " + std::string(scheme) + "}").balance;
  };
  CHECK(balance("ecmp") == Balance::path);
  CHECK(balance("e_ecmp") == Balance::path);
  CHECK(balance("pinned") == Balance::path);
  CHECK(balance("valiant") == Balance::path);
  CHECK(balance("ugal_g") == Balance::path);
  CHECK(balance("ugal") == Balance::ugal);
  CHECK(balance("spray") == Balance::spray);
  CHECK(balance("reps") == Balance::reps);
  CHECK(balance("flowlet") == Balance::flowlet);
  CHECK(balance("adaptive") == Balance::adaptive);
  CHECK(balance("multipath") == Balance::multipath);
  const Options reps =
      accepted("{}", "{scheme: reps, entropies: 128, paths: 2, flowlet_gap: 20 us}");
  CHECK(reps.reliability == Reliability::selective);  // packets overtake each other
  CHECK(reps.ecn.on);                                 // whose marks choose
  CHECK(reps.entropies == 128);
  CHECK(reps.paths == 2);
  CHECK(reps.flowlet_gap == 20_us);
  CHECK(accepted("{}", "{scheme: flowlet}").reliability == Reliability::goback_n);
  const Outcome forced = read("{reliability: go_back_n}", "{scheme: spray}");
  CHECK(forced.errors == "");
  CHECK(forced.options.reliability == Reliability::goback_n);
  REQUIRE(forced.notes.size() == 1);
  CHECK(contains(forced.notes[0], "reordered by scheme"));
}

TEST_CASE("transport: every key") {
  const Options all = accepted(
      "{name: roce, cc: dcqcn, overflow: trim, reliability: selective, mtu: 1024 B, header: 80 B, "
      "control: 90 B, pause_frame: 72 B, last_packet: exact, "
      "buffers: {rtsw: 64 MB, ctsw: {shared: 1 GB, per_port: 8 MB}, others: 2 MB}, "
      "pfc: {alpha: 0.25, resume_offset: 4 kB, headroom: 100 kB, headroom_factor: 1.5, "
      "response: 600 ns, reserve: 4 kB}, "
      "ecn: {kmin: 5 kB, kmax: 200 kB, pmax: 0.01}, "
      "dcqcn: {preset: paper, alpha_timer: 40 us, decrease_timer: 41 us, increase_timer: 42 us, "
      "cnp_interval: 43 us, gain: 0.01, additive: 40 Mbps, hyper: 400 Mbps, minimum: 1 Gbps, "
      "byte_counter: 1 MB}, window: 1 MB, ack_timeout: 2 ms, ack_every: 9, ack_delay: 3 us, "
      "message_rate: 2e8, "
      "receive_rate: 0.5, classes: {weights: [8 kB, 4 kB, 0], data: 0, ack: 1, control: 2}, "
      "series: {interval: 10 us, links: [\"rtsw:0->ctsw:1\"], flows: [7, a], samples_max: 1000}, "
      "end: 5 ms}");
  CHECK(all.congestion == Congestion::dcqcn);
  CHECK(all.overflow == Overflow::trim);
  CHECK(all.reliability == Reliability::selective);
  CHECK(all.wire.mtu == 1024_B);
  CHECK(all.wire.header == 80_B);
  CHECK(all.wire.control == 90_B);
  CHECK(all.wire.pause == 72_B);
  CHECK(all.wire.last_packet == LastPacket::exact);
  CHECK(all.buffers.at("rtsw").shared == 64_MB);
  CHECK(all.buffers.at("rtsw").per_port == 0_B);
  CHECK(all.buffers.at("ctsw").shared == 1000_MB);
  CHECK(all.buffers.at("ctsw").per_port == 8_MB);
  CHECK(all.buffers.at("").shared == 2_MB);
  CHECK(all.pfc.on);
  CHECK(all.pfc.threshold == Pfc::Threshold::dynamic);
  CHECK(all.pfc.alpha == 0.25);
  CHECK(all.pfc.resume_offset == 4000_B);
  CHECK(all.pfc.headroom == 100'000_B);
  CHECK(all.pfc.headroom_factor == 1.5);
  CHECK(all.pfc.response == 600_ns);
  CHECK(all.pfc.reserve == 4000_B);
  CHECK(all.pfc.headroom_rule == Pfc::Rule::standard);
  CHECK(all.ecn.on);
  CHECK(all.ecn.kmin == 5000_B);
  CHECK(all.ecn.kmax == 200'000_B);
  CHECK(all.ecn.pmax == 0.01);
  CHECK(all.dcqcn.preset == DcqcnOptions::Preset::paper);
  CHECK(all.dcqcn.alpha_timer == 40_us);
  CHECK(all.dcqcn.decrease_timer == 41_us);
  CHECK(all.dcqcn.increase_timer == 42_us);
  CHECK(all.dcqcn.cnp_interval == 43_us);
  CHECK(all.dcqcn.gain == 0.01);
  CHECK(all.dcqcn.additive.bps == 40'000'000);
  CHECK(all.dcqcn.hyper.bps == 400'000'000);
  CHECK(all.dcqcn.minimum == 1_Gbps);
  CHECK(all.dcqcn.byte_counter == 1_MB);
  CHECK(all.window == 1_MB);
  CHECK(all.ack_timeout == Duration{2'000'000'000});
  CHECK(all.ack_every == 9);
  CHECK(all.ack_delay == 3_us);
  CHECK(all.message_rate == 2e8);
  CHECK(all.receive_rate == 0.5);
  CHECK(all.scheduler.weights == std::vector<std::uint32_t>{8000, 4000, 0});
  CHECK(all.scheduler.data_class == 0);
  CHECK(all.scheduler.ack_class == 1);
  CHECK(all.scheduler.control_class == 2);
  CHECK(all.series.interval == 10_us);
  CHECK(all.series.links == std::vector<std::string>{"rtsw:0->ctsw:1"});
  CHECK(all.series.flows == std::vector<std::string>{"7", "a"});
  CHECK(all.series.samples_max == 1000);
  CHECK(all.end == 5'000'000'000);
}

TEST_CASE("transport: every key of the other transports") {
  const Options other =
      accepted("{name: hpcc, hpcc: {eta: 0.9, max_stage: 0, additive: 80 B}, pfc: {xoff: 100 kB}}");
  CHECK(other.hpcc.eta == 0.9);
  CHECK(other.hpcc.max_stage == 0);
  CHECK(other.hpcc.additive == 80_B);
  CHECK(other.pfc.threshold == Pfc::Threshold::fixed);
  CHECK(other.pfc.xoff == 100'000_B);
  CHECK(other.pfc.xon == 80'000_B);
  const Options third = accepted(
      "{name: nscc, nscc: {target_delay: 9 us}, buffers: 32 MB, pfc: {xoff: 1 MB, xon: 1 MB}}");
  CHECK(third.nscc.target_delay == 9_us);
  CHECK(third.buffers.at("").shared == 32_MB);
  CHECK(third.pfc.xon == third.pfc.xoff);
  const Options fourth = accepted(
      "{name: cts, cts: {channel_buffer: 4 MiB, channels: 2, queue: high, proxy_delay: 1 us}}");
  CHECK(fourth.cts.channel_buffer == 4_MiB);
  CHECK(fourth.cts.channels == 2);
  CHECK(fourth.cts.queue == CtsOptions::Queue::high);
  CHECK(fourth.cts.proxy_delay == 1_us);
}

TEST_CASE("transport: pfc: true without memory pauses at 15 packets, with memory at its share") {
  const Options fixed = accepted("{pfc: true, mtu: 1 kB, header: 0 B}");
  CHECK(fixed.pfc.on);
  CHECK(fixed.pfc.threshold == Pfc::Threshold::fixed);
  CHECK(fixed.pfc.xoff == 15'000_B);
  CHECK(fixed.pfc.xon == 12'000_B);
  CHECK(accepted("{pfc: true, buffers: 64 MB}").pfc.threshold == Pfc::Threshold::dynamic);
  CHECK(accepted("{pfc: true, buffers: {rtsw: {per_port: 1 MB}}}").pfc.threshold ==
        Pfc::Threshold::fixed);
  CHECK(!accepted("{pfc: false}").pfc.on);
  CHECK(accepted("{cc: dcqcn}").ecn.on);
  CHECK(accepted("{ecn: true}").ecn.on);
  CHECK(!accepted("{cc: none, ecn: false}").ecn.on);
  const Outcome half = read("{pfc: true, buffers: {rtsw: 64 MB}}");
  CHECK(half.errors == "");
  REQUIRE(half.notes.size() == 1);
  CHECK(half.notes[0].starts_with("ctsw have no limited shared memory"));
}

// Headroom at 400 Gbps and 1 us: 2 x 50,000 B on the wire, 2 packets of 4,160 B and a pause frame.
TEST_CASE("transport: headrooms that leave no memory, with the arithmetic") {
  const Bytes room = headroom_for(400_Gbps, 1_us, {});
  CHECK(room == 108'384_B);
  CHECK(read("{pfc: true, buffers: {rtsw: 1 MB}}").errors ==
        "t.yaml:1:22: the headroom of rtsw:0 takes 18 ports x 108384 B = 1950912 B, but its memory "
        "has 1000000 B; increase its memory, or set pfc.headroom\n");
  // 18 x 108,384 B and one packet of 4,160 B just fit.
  CHECK(read("{pfc: true, buffers: {rtsw: 1955072 B}}").errors == "");
  CHECK(read("{pfc: true, buffers: {rtsw: 1955071 B}}").errors != "");
  CHECK(read("{pfc: {headroom: 10 kB}, buffers: 1 MB}").errors == "");
  // 18 ports of 150,000 B; and with a reserve of 2,000 B and a packet of 4,160 B.
  CHECK(read("{pfc: {headroom_rule: hpcc}, buffers: 2704160 B}").errors == "");
  CHECK(read("{pfc: {headroom_rule: hpcc}, buffers: 2704159 B}").errors != "");
  CHECK(read("{pfc: {headroom_rule: hpcc, reserve: 2 kB}, buffers: 2740160 B}").errors == "");
  CHECK(read("{pfc: {headroom_rule: hpcc, reserve: 2 kB}, buffers: 2740159 B}")
            .errors.find("the headroom and reserve of rtsw:0 takes 18 ports x 152000 B") !=
        std::string::npos);
  CHECK(read("{pfc: {response: 500 ns}, buffers: 2405071 B}").errors != "");
  CHECK(read("{pfc: {response: 500 ns}, buffers: 2405072 B}").errors == "");
  CHECK(read("{pfc: {headroom: 10 kB, headroom_factor: 10}, buffers: 1 MB}").errors != "");
  CHECK(read("{pfc: false, buffers: {rtsw: 1 MB}}").errors == "");  // no headroom without pauses
}

struct Refusal {
  std::string_view yaml, part;
};

constexpr Refusal refusals[] = {
    {"rocee", "unknown name \"rocee\" (did you mean \"roce\"?)"},
    {"{name: tcp}", "choose one of: roce, hpcc, cts, nscc, eqds"},
    {"{cc: timely}", "choose one of: none, dcqcn, hpcc, nscc"},
    {"{overflow: pause}", "choose one of: drop, trim"},
    {"{reliability: none}", "choose one of: go_back_n, selective"},
    {"{pfcc: true}", "unknown key \"pfcc\" in transport (did you mean \"pfc\"?)"},
    {"{mtu: 63 B}", "mtu 63 B is not within 64 B .. 65535 B"},
    {"{mtu: 1 TB}", "mtu 1 TB is not within"},
    {"{mtu: 65 kB, header: 1 kB}", "make packets above 65535 B"},
    {"{header: 9000000 TB}", "header"},
    {"{control: 0}", "control 0 B is not within 1 B"},
    {"{last_packet: half}", "choose one of: full, exact"},
    {"{buffers: 4 kB}", "switches buffer 4 kB, less than one packet of 4160 B"},
    {"{mtu: 9 kB, buffers: {rtsw: {per_port: 9 kB}}}", "rtsw buffer 9 kB, less than one packet"},
    {"{buffers: {rtsw: {per_port: 5 GB}}}", "more than 4 GiB for one port"},
    {"{buffers: {rtws: 64 MB}}", "has the role \"rtws\" (did you mean \"rtsw\"?); choose among"},
    {"{buffers: {nic: 64 MB}}", "has the role \"nic\""},
    {"{buffers: {rtsw: {share: 1 MB}}}", "unknown key \"share\" in transport.buffers.rtsw"},
    {"{buffers: {rtsw: [1 MB]}}", "transport.buffers.rtsw must be a single value"},
    {"{buffers: [64 MB]}", "transport.buffers must be a single value"},
    {"{buffers: {\"\": 64 MB}}", "has the role \"\""},
    {"{pfc: 1}", "transport.pfc"},
    {"{pfc: [true]}", "transport.pfc must be a map"},
    {"{pfc: {xoff: 1 kB}}", "pfc.xoff 1 kB is not within a full packet (4160 B)"},
    {"{pfc: {xoff: 100 kB, xon: 101 kB}}", "pfc.xon (101 kB) is above pfc.xoff (100 kB)"},
    {"{pfc: {xon: 50 kB}}", "pfc.xon without pfc.xoff"},
    {"{pfc: {xoff: 1 MB, alpha: 1}}", "pfc.xoff and pfc.alpha are mutually exclusive"},
    {"{pfc: {alpha: 1}}", "pfc.alpha needs shared memory"},
    {"{pfc: {alpha: 0}, buffers: 64 MB}", "0 is not within"},
    {"{pfc: {xoff: 1 MB, reserve: 4 kB}}", "pfc.xoff and pfc.reserve are mutually exclusive"},
    {"{pfc: {reserve: 4 kB}}", "pfc.reserve needs shared memory"},
    {"{pfc: {reserve: 5 GB}, buffers: 1 TB}", "pfc.reserve 5 GB is above 4 GiB"},
    {"{pfc: {headroom: 10 kB, headroom_rule: hpcc}}", "are mutually exclusive"},
    {"{pfc: {headroom_rule: vendor}}", "choose one of: standard, hpcc"},
    {"{pfc: {response: 2 ms}}", "pfc.response is above 1 ms"},
    {"{pfc: {headroom: 5 GB}}", "pfc.headroom 5 GB is above 4 GiB"},
    {"{pfc: {headroom_factor: -1}}", "-1 is not within"},
    {"{ecn: {kmin: 2 MB, kmax: 1 MB}}", "ecn.kmin (2 MB) is above ecn.kmax (1 MB)"},
    {"{ecn: {kmin: 2 MB}}", "ecn needs both kmin and kmax"},
    {"{ecn: {pmax: 0}}", "0 is not within"},
    {"{ecn: {pmax: 1.5}}", "1.5 is not within"},
    {"{cc: dcqcn, dcqcn: {gain: 0}}", "0 is not within"},
    {"{cc: dcqcn, dcqcn: {alpha_timer: 0}}", "dcqcn.alpha_timer is not within 1 ns"},
    {"{cc: dcqcn, dcqcn: {additive: 0}}", "dcqcn.additive is 0"},
    {"{cc: dcqcn, dcqcn: {byte_counter: 10 B}}", "dcqcn.byte_counter is below 1 kB"},
    {"{cc: dcqcn, dcqcn: {minimum: 401 Gbps}}", "dcqcn.minimum 401 Gbps is above the rate of"},
    {"{cc: dcqcn, dcqcn: {preset: mine}}", "choose one of: paper, reference"},
    {"{name: hpcc, hpcc: {eta: 1.1}}", "1.1 is not within"},
    {"{name: cts, cts: {channels: 65}}", "65 is not within 1 .. 64"},
    {"{name: cts, cts: {channel_buffer: 1 kB}}", "cts.channel_buffer is not within"},
    {"{window: 4 KiB}", "a window of 4 KiB is too small for a packet of 4160 B"},
    {"{ack_timeout: 0}", "ack_timeout is 0"},
    {"{message_rate: -1}", "-1 is not within"},
    {"{receive_rate: 0}", "0 is not within"},
    {"{receive_rate: 2}", "2 is not within"},
    {"{end: 0}", "transport.end is 0"},
    {"{classes: {weights: [5 kB, 5 kB], data: 2}}", "classes.data is 2, but weights has 2 classes"},
    {"{classes: {ack: 1}}", "classes.ack is 1, but weights has 1 classes"},
    {"{classes: {weights: [0, 0, 0, 0, 0, 0, 0, 0, 0]}}", "9 classes; at most 8 are supported"},
    {"{classes: {weights: [5 kB, 1 B]}}", "a weight of 1 B is below a full packet"},
    {"{classes: {weights: [many]}}", "many"},
    {"{series: {interval: 1 us}}", "series selects neither links nor flows"},
    {"{series: {links: [\"rtsw:0->ctsw:0\"]}}", "\"interval\" is missing"},
    {"{series: {interval: 0, flows: [1]}}", "series.interval is below 1 ns"},
    {"{series: {interval: 1 us, links: [\"rtsw:0->ctsw:9\"]}}", "ctsw:9"},
    {"{series: {interval: 1 us, flows: [1], samples_max: 1}}", "1 is not within"},
};

TEST_CASE("transport: values that cannot be") {
  for (const auto& [yaml, part] : refusals) {
    CAPTURE(yaml);
    const Outcome out = read(yaml);
    CAPTURE(out.errors);
    CHECK(contains(out.errors, part));
    CHECK(std::ranges::count(out.errors, '\n') == 1);
    CHECK(out.errors.starts_with("t.yaml:1:"));
  }
}

TEST_CASE("transport: settings that contradict each other") {
  struct Contradiction {
    std::string_view yaml, routing, part;
  };
  const Contradiction contradictions[] = {
      {"{cc: hpcc, reliability: selective}", "{}", "does not work with selective retransmission"},
      {"{name: nscc, cc: hpcc}", "{}", "does not work with selective retransmission"},
      {"{name: hpcc}", "{scheme: flowlet}", "scheme flowlet changes the path"},
      {"{name: eqds}", "{scheme: multipath}", "under scheme multipath they keep to paths"},
      {"{name: eqds}", "{scheme: ugal}", "under scheme ugal they keep to paths"},
      {"{name: hpcc}", "{scheme: multipath}", "scheme multipath changes the path"},
      {"{name: nscc, reliability: go_back_n}", "{scheme: ecmp}", "use reliability: selective"},
      {"{name: eqds, cc: dcqcn, buffers: 64 MB}", "{}", "lets the receiver set the sending rate"},
      {"{name: eqds, reliability: go_back_n, buffers: 64 MB}", "{scheme: ecmp}",
       "retransmits single packets"},
      {"{cc: dcqcn, ecn: false}", "{}", "cc: dcqcn depends on ECN marks, but ecn is off"},
      {"{name: nscc, ecn: false}", "{}", "cc: nscc depends on ECN marks"},
      {"{ecn: false}", "{scheme: reps}", "scheme reps depends on ECN marks"},
      {"{name: cts, classes: {weights: [5 kB]}}", "{}", "needs a separate class"},
      {"{name: cts, reliability: selective}", "{}", "clears chunks that come in order"},
      {"{name: cts}", "{scheme: spray}", "clears chunks that come in order"},
      {"{}", "{scheme: spray, weighted: true}",
       "scheme spray ignores weights on the packet engine"},
  };
  for (const auto& [yaml, routing, part] : contradictions) {
    CAPTURE(yaml);
    const Outcome out = read(yaml, routing);
    CAPTURE(out.errors);
    CHECK(contains(out.errors, part));
    CHECK(std::ranges::count(out.errors, '\n') == 1);
  }
}

TEST_CASE("transport: what is understood and changes nothing is noted") {
  for (const auto& [yaml, part] :
       {Refusal{"{dcqcn: {gain: 0.01}}", "transport.dcqcn has no effect without cc: dcqcn"},
        Refusal{"{hpcc: {eta: 0.9}}", "transport.hpcc has no effect without cc: hpcc"},
        Refusal{"{nscc: {target_delay: 1 us}}", "transport.nscc has no effect without cc: nscc"},
        Refusal{"{cts: {channels: 1}}", "transport.cts has no effect without name: cts"},
        Refusal{"{ack_every: 1, ack_delay: 3 us}", "ack_delay has no effect where each packet"},
        Refusal{"{name: hpcc, ack_delay: 3 us}", "ack_delay has no effect where each packet"},
        Refusal{"{ack_every: 8, ack_delay: 0 s}", "ack_every has no effect with ack_delay: 0"},
        Refusal{"{name: nscc, pfc: true, overflow: trim}", "none trims"}}) {
    CAPTURE(yaml);
    const Outcome out = read(yaml);
    CHECK(out.errors == "");
    REQUIRE(out.notes.size() == 1);
    CHECK(contains(out.notes[0], part));
  }
}

TEST_CASE("transport: all mistakes at once, and positions without a fabric too") {
  const Outcome many = read("{name: x, cc: y, mtu: 1 B, window: 1 B, pfc: {xof: 1}, end: soon}");
  CHECK(std::ranges::count(many.errors, '\n') == 6);
}

}  // namespace
}  // namespace weft::engine::packet
