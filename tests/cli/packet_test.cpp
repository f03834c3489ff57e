// What the packet engine says on the command line: the same bytes on any number of threads, and no
// trouble without a word.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "run_weft.hpp"

using namespace weft;
using cli_test::Outcome;
using cli_test::Scratch;
using nlohmann::json;

namespace {

// 16 racks of 8 NICs and 8 spines; every link 400 Gb/s and 1 us.
constexpr const char* packet_zone =
    "fabric: {generator: ai_zone, racks: 16, hosts_per_rack: 1, gpus_per_host: 8, spines: 8, "
    "link: 400 Gbps, latency: 1 us}\n";

// 512 flows of random ends and sizes.
std::string random_flows() {
  std::string out = "id,src,dst,bytes\n";
  Rng rng(7);
  for (int i = 0; i < 512; ++i) {
    const std::uint64_t src = rng.below(128), dst = (src + 1 + rng.below(127)) % 128;
    out += fmt::format("flow-{},{},{},{} B\n", i, src, dst, 2'000 + rng.below(300'000));
  }
  return out;
}

struct Scenario {
  std::string name, text;
};

const std::vector<Scenario>& scenarios() {
  static const std::string spine_down =
      "{kind: switch_down, switch: ctsw:2, at: 10 us, until: 30 us}";
  static const std::vector<Scenario> all{
      {"DCQCN, dynamic PFC, 4 QPs, slow receivers, a lossy cable, a spine down",
       "routing: {scheme: e_ecmp, qps: 4, message_mode: split}\n"
       "transport: {cc: dcqcn, pfc: {alpha: 0.125}, buffers: {rtsw: 32 MB, ctsw: 32 MB, nic: 2 MB},"
       " last_packet: exact, receive_rate: 0.8, ack_timeout: 200 us}\n"
       "faults: [{kind: link_lossy, link: \"rtsw:0->ctsw:1\", loss: 0.01}, " +
           spine_down + "]\n"},
      {"NSCC, spray, trimming, small buffers, a spine down",
       "routing: {scheme: spray}\n"
       "transport: {name: nscc, overflow: trim, ack_timeout: 200 us, "
       "buffers: {rtsw: {per_port: 100 kB}, ctsw: {per_port: 100 kB}}}\n"
       "faults: [" +
           spine_down + "]\n"},
      {"EQDS, trimming", "transport: {name: eqds, buffers: {others: {per_port: 100 kB}}}\n"},
      {"HPCC, PFC, 2 classes",
       "transport: {name: hpcc, pfc: true, "
       "classes: {weights: [8320 B, 4160 B], ack: 1, control: 1}}\n"},
      {"CTS, 4 QPs", "routing: {scheme: e_ecmp, qps: 4}\ntransport: {name: cts}\n"},
      {"adaptive, selective, slow receivers",
       "routing: {scheme: adaptive}\ntransport: {buffers: 64 MB, receive_rate: 0.9}\n"},
      {"REPS, PFC", "routing: {scheme: reps}\ntransport: {name: nscc, pfc: true}\n"},
      {"flowlets, DCQCN, series",
       "routing: {scheme: flowlet}\n"
       "transport: {cc: dcqcn, buffers: 64 MB, "
       "series: {interval: 5 us, links: [\"rtsw:0->ctsw:1\"], flows: [flow-7]}}\n"}};
  return all;
}

#ifdef WEFT_SANITIZED
constexpr std::array thread_counts = {"1", "3"};
#else
constexpr std::array thread_counts = {"1", "2", "3", "8"};
#endif

}  // namespace

TEST_CASE("weft flows --json on the packet engine: the same bytes on 1, 2, 3 and 8 threads") {
  Scratch scratch;
  scratch.write("flows.csv", random_flows());
  for (const Scenario& scenario : scenarios()) {
    CAPTURE(scenario.name);
    scratch.write("f.yaml", packet_zone + scenario.text);
    Outcome alone;
    for (const char* threads : thread_counts) {
      CAPTURE(threads);
      const Outcome outcome = scratch.run({"flows", "--fabric", "f.yaml", "--flows", "flows.csv",
                                           "--engine", "packet", "--threads", threads, "--json"});
      if (alone.out.empty()) alone = outcome;
      CHECK_MESSAGE(outcome.status == 0, outcome.err);
      CHECK(outcome.err == alone.err);
      // Not the texts, which are long: what differs is a key or two.
      const bool same = outcome.out == alone.out;
      CHECK_MESSAGE(same, json::diff(json::parse(alone.out), json::parse(outcome.out)).dump());
    }
    const json packet = json::parse(alone.out)["packet"];
    CHECK(packet["drops_link"] <= packet["drops"]);
    CHECK(packet["hops"] > 50'000);
  }
}

TEST_CASE("weft run --json on the packet engine: the same bytes on 1, 2, 3 and 8 threads") {
  Scratch scratch;
  const std::string jobs =
      "jobs: [{name: a, collective: all_reduce, algorithm: ring, bytes: 1 MiB, gpus: 64}, "
      "{name: b, collective: all_to_all, bytes: 64 KiB, gpus: 32}]\n";
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    CAPTURE(scenarios()[i].name);
    scratch.write("s.yaml", packet_zone + scenarios()[i].text + jobs);
    std::string alone;
    for (const char* threads : thread_counts) {
      const Outcome outcome =
          scratch.run({"run", "s.yaml", "--set", "engine=packet", "--threads", threads, "--json"});
      REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
      if (alone.empty()) alone = outcome.out;
      const bool same = outcome.out == alone;
      CHECK_MESSAGE(same, json::diff(json::parse(alone), json::parse(outcome.out)).dump());
    }
  }
}

// The figures are those of an engine that went through all open losses at each acknowledgement,
// which took up to ten times as long.
TEST_CASE("thousands of lost packets at once: what each acknowledgement tells of") {
  struct Case {
    std::string name, routing, transport;
    double makespan_s, mean_s;
    std::uint64_t drops, drops_control, retransmissions, timeouts;
  };
  const Case cases[] = {
      {"spray", "spray", "ack_every: 1", 852.834816e-6, 714.559312e-6, 35334, 0, 35334, 9387},
      {"reps", "reps", "ack_every: 1", 1334.655488e-6, 738.005136e-6, 11781, 0, 11781, 9120},
      {"adaptive", "adaptive", "ack_every: 1", 709.048832e-6, 663.408752e-6, 46808, 0, 46808, 3509},
      {"a gap of 5", "spray", "ack_every: 1, retransmit: {gap: 5}", 868.17024e-6, 821.511056e-6,
       27136, 0, 27136, 11473},
      {"gathered", "spray", "ack_every: 4", 880.491008e-6, 734.451968e-6, 35127, 0, 35127, 9190},
      {"NSCC", "reps", "ack_every: 1, name: nscc, overflow: drop", 829.221632e-6, 552.42064e-6,
       3525, 0, 3525, 2100},
      {"a lossy spine", "spray", "ack_every: 1", 1265.155584e-6, 860.819616e-6, 35367, 712, 35367,
       9636},
      {"a lossy spine, gathered", "adaptive", "ack_every: 16", 816.527872e-6, 709.652784e-6, 46629,
       635, 46638, 3323},
      {"a lossy spine, a short timer", "spray",
       "ack_every: 1, ack_timeout: 100 us, retransmit: {gap: 3}", 883.235584e-6, 799.688448e-6,
       31330, 762, 31334, 14153}};
  Scratch scratch;
  std::string flows = "id,src,dst,bytes\n";
  for (int i = 0; i < 16; ++i) flows += fmt::format("f{0},{0},127,2 MB\n", i);
  scratch.write("incast.csv", flows);
  for (const Case& c : cases) {
    CAPTURE(c.name);
    scratch.write("f.yaml",
                  packet_zone +
                      fmt::format("routing: {{scheme: {}}}\n"
                                  "transport: {{{}, buffers: {{rtsw: {{per_port: 100 kB}}}}}}\n",
                                  c.routing, c.transport) +
                      (c.drops_control == 0 ? ""
                                            : "faults: [{kind: switch_lossy, switch: \"ctsw:1\", "
                                              "loss: 0.5}]\n"));
    const Outcome outcome = scratch.run(
        {"flows", "--fabric", "f.yaml", "--flows", "incast.csv", "--engine", "packet", "--json"});
    REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
    const json result = json::parse(outcome.out);
    CHECK(result["makespan_s"].get<double>() == approx(c.makespan_s).epsilon(1e-12));
    CHECK(result["fct_s"]["mean"].get<double>() == approx(c.mean_s).epsilon(1e-12));
    const json& packet = result["packet"];
    CHECK(packet["drops"] == c.drops);
    CHECK(packet["drops_control"] == c.drops_control);
    CHECK(packet["retransmissions"] == c.retransmissions);
    CHECK(packet["timeouts"] == c.timeouts);
  }
}

namespace {

constexpr const char* two_racks =
    "fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 8, spines: 2, "
    "link: 400 Gbps, latency: 1 us}\n";

// Four flows each way to every port of two of each rack's.
std::string crossing_flows() {
  std::string out = "id,src,dst,bytes\n";
  for (int i = 0; i < 8; ++i)
    out += fmt::format("a{0},{0},{1},1 MB\nb{0},{2},{3},1 MB\n", i, 8 + i / 4, i + 8, i / 4);
  return out;
}

}  // namespace

TEST_CASE("a headroom that is too small: a warning names class and ports, and the status is 1") {
  Scratch scratch;
  scratch.write("flows.csv", crossing_flows());
  scratch.write("s.yaml", std::string(two_racks) +
                              "jobs: [{name: a, collective: all_to_all, bytes: 8 MB, gpus: 16}]\n");
  const auto run = [&](const std::string& factor) {
    scratch.write("f.yaml", std::string(two_racks) +
                                "routing: {scheme: spray}\ntransport: {pfc: {headroom_factor: " +
                                factor + "}, ack_timeout: 200 us}\n");
    return scratch.run(
        {"flows", "--fabric", "f.yaml", "--flows", "flows.csv", "--engine", "packet", "--json"});
  };
  const Outcome enough = run("1");
  CHECK(enough.status == 0);
  CHECK(enough.err.find("warning") == std::string::npos);
  CHECK(json::parse(enough.out)["packet"]["lossless_drops"].empty());
  const Outcome small = run("0.4");
  CHECK(small.status == 1);
  const json packet = json::parse(small.out)["packet"];
  CHECK(packet["drops"] > 0);
  CHECK(packet["drops"] == packet["drops_headroom"]);
  REQUIRE(packet["lossless_drops"].size() == 1);
  const auto line = packet["lossless_drops"][0].get<std::string>();
  CAPTURE(line);
  CHECK(line.starts_with(fmt::format("lossless class 0 lost {} packets", packet["drops"].dump())));
  CHECK(line.find("nic:0->rtsw:0 (") != std::string::npos);
  CHECK(small.err.find("weft: warning: " + line + "\n") != std::string::npos);

  const Outcome job = scratch.run(
      {"run", "s.yaml", "--set", "engine=packet", "--set", "routing.scheme=spray", "--set",
       "transport.pfc={headroom_factor: 0.05}", "--set", "transport.ack_timeout=200 us"});
  CHECK(job.status == 1);
  CHECK(job.out.find("warning: ") != std::string::npos);
  CHECK(job.out.find("lossless class 0 lost ") != std::string::npos);
}

TEST_CASE("pause storms of a run of 2 ms are named, though ACK timers would run for 17 ms") {
  Scratch scratch;
  scratch.write("f.yaml", std::string(two_racks) + "transport: {pfc: true, receive_rate: 0.05}\n");
  std::string flows = "id,src,dst,bytes\n";
  for (int i = 0; i < 8; ++i) flows += fmt::format("{0},{0},{1},1 MB\n", i, i + 8);
  scratch.write("flows.csv", flows);
  const Outcome outcome = scratch.run(
      {"flows", "--fabric", "f.yaml", "--flows", "flows.csv", "--engine", "packet", "--json"});
  CHECK(outcome.status == 0);
  const json result = json::parse(outcome.out);
  CHECK(result["makespan_s"] < 0.002);
  std::size_t nics = 0;
  for (const json& line : result["packet"]["storms"])
    nics += line.get<std::string>().starts_with("nic:") ? 1 : 0;
  CHECK(nics == 8);
}

TEST_CASE("--pauses: all pauses of a run, below the ports at fault, with flows by their ids") {
  Scratch scratch;
  scratch.write("f.yaml", std::string(two_racks) + "transport: {pfc: true}\n");
  std::string flows = "id,src,dst,bytes\nvictim,7,14,1 MB\n";
  for (int i = 0; i < 7; ++i) flows += fmt::format("to-8-{0},{0},8,1 MB\n", i);
  scratch.write("flows.csv", flows);
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> args{"flows", "--fabric", "f.yaml", "--flows", "flows.csv"};
    args.insert(args.end(), more.begin(), more.end());
    return scratch.run(args);
  };
  const json plain = json::parse(run({"--engine", "packet", "--json"}).out);
  CHECK_FALSE(plain["packet"].contains("pause_trees"));
  for (const char* parts : {"1", "4"}) {
    const Outcome outcome =
        run({"--engine", "packet", "--json", "--pauses", "--ports", "--set",
             fmt::format("routing={{scheme: e_ecmp, message_mode: split, qps: {}}}", parts)});
    REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
    const json all = json::parse(outcome.out);
    const json& packet = all["packet"];
    double of_links = 0, of_trees = 0, of_ports = 0, by_port = 0;
    std::uint64_t packets = 0, of_tiers = 0, deepest = 0;
    std::map<std::string, std::uint64_t> stopped, stops;
    for (const json& port : all["ports"]) {
      const std::string name = port["port"];
      const std::size_t arrow = name.find("->");
      stopped[name] = port["pauses"];
      stops[name.substr(arrow + 2) + "->" + name.substr(0, arrow)] = port["pauses_sent"];
      by_port += port["paused_s"].get<double>();
      packets += port["packets"].get<std::uint64_t>();
      deepest = std::max(deepest, port["queue_max_bytes"].get<std::uint64_t>());
    }
    for (const json& tier : packet["tiers"]) {
      of_tiers += tier["packets"].get<std::uint64_t>();
      CHECK(tier["queue_bytes"]["max"] <= deepest);
    }
    CHECK(packets == of_tiers);
    // What one end sends stops the other.
    for (const auto& [name, count] : stops) CHECK(stopped[name] == count);
    CHECK(std::ranges::any_of(stops, [](const auto& one) { return one.second > 0; }));
    for (const json& tier : packet["tiers"]) of_links += tier["paused_total_s"].get<double>();
    bool victim = false;
    for (const json& tree : packet["pause_trees"]) {
      of_trees += tree["paused_s"].get<double>();
      for (const json& port : tree["ports"]) {
        of_ports += port["paused_s"].get<double>();
        for (const json& flow : port["flows"]) {
          CHECK(flow["stopped_s"] <= port["paused_s"]);
          victim = victim || flow["id"] == "victim";
          CHECK((flow["id"] == "victim" || flow["id"].get<std::string>().starts_with("to-8-")));
        }
      }
    }
    CHECK(of_links > 0);
    CHECK(by_port == approx(of_links).epsilon(1e-9));
    CHECK(of_trees == approx(of_links).epsilon(1e-9));
    CHECK(of_ports == approx(of_links).epsilon(1e-9));
    CHECK(packet["pause_trees"][0]["ports"][0]["port"] == "rtsw:1->nic:8");
    CHECK(victim);
  }
  CHECK(run({"--engine", "packet", "--pauses"}).out.find("rtsw:1->nic:8") != std::string::npos);
  CHECK(run({"--engine", "packet", "--ports"}).out.find("queue max") != std::string::npos);
  for (const char* option : {"--pauses", "--ports"})
    CHECK(run({option}).err.find("the fluid engine has neither") != std::string::npos);
  CHECK(run({"--compare", "--pauses"}).status == 2);
  const Outcome off = run({"--engine", "packet", "--pauses", "--set", "transport.pfc=false"});
  CHECK(off.status == 2);
  CHECK(off.err.find("transport.pfc is off") != std::string::npos);
}

TEST_CASE("--from-fluid: flows that go on as packets keep their ids") {
  Scratch scratch;
  scratch.write("f.yaml", std::string(two_racks) + "transport: {pfc: true}\n");
  scratch.write("flows.csv",
                "id,src,dst,bytes\nover,0,9,10 kB\na,1,8,40 MB\nb,2,8,40 MB\nc,3,8,40 MB\n");
  const Outcome outcome =
      scratch.run({"flows", "--fabric", "f.yaml", "--flows", "flows.csv", "--engine", "packet",
                   "--from-fluid", "100 us", "--end", "400 us", "--pauses", "--json"});
  CHECK(outcome.status == 1);
  CHECK(outcome.err.find("flow a (nic:1 to nic:8, ") != std::string::npos);
  const json result = json::parse(outcome.out);
  const json& ports = result["packet"]["pause_trees"][0]["ports"];
  std::size_t found = 0;
  for (const json& port : ports)
    for (const json& flow : port["flows"]) {
      CHECK(port["port"] == (flow["id"] == "a"   ? "nic:1->rtsw:0"
                             : flow["id"] == "b" ? "nic:2->rtsw:0"
                                                 : "nic:3->rtsw:0"));
      ++found;
    }
  CHECK(found > 0);
}

TEST_CASE("series of flows are asked for by the ids of the file") {
  Scratch scratch;
  scratch.write("flows.csv", "id,src,dst,bytes\nweights,0,9,1 MB\n0,1,10,2 MB\n");
  const auto run = [&](const std::string& flows, const std::string& more) {
    scratch.write("f.yaml", std::string(two_racks) + more +
                                "transport: {series: {interval: 1 us, flows: [" + flows + "]}}\n");
    return scratch.run(
        {"flows", "--fabric", "f.yaml", "--flows", "flows.csv", "--engine", "packet", "--json"});
  };
  const Outcome outcome = run("weights, 0", "");
  REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
  const json series = json::parse(outcome.out)["packet"]["series"];
  REQUIRE(series.size() == 2);
  CHECK(series[0]["name"] == "rate flow weights");
  CHECK(series[1]["name"] == "rate flow 0");
  const auto bytes = [&](std::size_t i) {
    double sum = 0;
    for (const json& rate : series[i]["value"]) sum += rate.get<double>() * 1e-6;
    return sum;
  };
  CHECK(bytes(0) == approx(1e6).epsilon(0.01));
  CHECK(bytes(1) == approx(2e6).epsilon(0.01));
  const Outcome split = run("weights", "routing: {scheme: e_ecmp, qps: 2, message_mode: split}\n");
  CHECK(json::parse(split.out)["packet"]["series"][1]["name"] == "rate flow weights, part 2 of 2");
  const Outcome refused = run("1", "");
  CHECK(refused.status == 2);
  CHECK(refused.err.find("flow \"1\" does not exist") != std::string::npos);
}

TEST_CASE("a flow of 20 TB is one of 20 TB") {
  Scratch scratch;
  scratch.write("f.yaml", two_racks);
  scratch.write("flows.csv", "id,src,dst,bytes\nhuge,0,9,20 TB\n");
  const Outcome outcome = scratch.run({"flows", "--fabric", "f.yaml", "--flows", "flows.csv",
                                       "--engine", "packet", "--end", "50 us"});
  CHECK(outcome.status == 1);
  CHECK(outcome.err.find(" of 4882812500 packets acknowledged") != std::string::npos);
}
