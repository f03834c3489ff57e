// weft flows: both forms of flow sets, both engines.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "run_weft.hpp"

using namespace weft;
using cli_test::Outcome;
using cli_test::Scratch;
using nlohmann::json;

namespace {

//   ctsw:0  ctsw:1        8 GPUs; every link 400 Gb/s and 1 us
//    |   \  /   |
//   rtsw:0  rtsw:1
//  nic:0..3  nic:4..7
constexpr const char* flows_fabric =
    "fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 4, spines: 2, "
    "link: 400 Gbps, latency: 1 us}\n";

constexpr const char* chain_csv =
    "id,src,dst,bytes,after\n"
    "1,0,1,2 MB,\n"
    "2,1,2,2 MB,1\n"
    "3,2,3,2 MB,2\n";
constexpr const char* chain_matrix =
    "Nodes 8\n"
    "Connections 3\n"
    "Triggers 2\n"
    "0->1 id 1 start 0 size 2000000 send_done_trigger 1\n"
    "1->2 id 2 trigger 1 size 2000000 send_done_trigger 2\n"
    "2->3 id 3 trigger 2 size 2000000\n"
    "trigger id 1 oneshot\n"
    "trigger id 2 oneshot\n";

class Flows {
 public:
  explicit Flows(const std::string& flows) {
    scratch_.write("f.yaml", flows_fabric);
    scratch_.write("flows", flows);
  }
  void write(const std::string& file, const std::string& text) { scratch_.write(file, text); }
  Outcome run(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"flows", "--fabric", "f.yaml", "--flows", "flows"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return scratch_.run(arguments);
  }
  json result(std::vector<std::string> more = {}) const {
    more.emplace_back("--json");
    const Outcome outcome = run(more);
    REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
    return json::parse(outcome.out);
  }

 private:
  Scratch scratch_;
};

void refuses(const Flows& flows, const std::vector<std::string>& more, const std::string& message) {
  const Outcome outcome = flows.run(more);
  CAPTURE(outcome.err);
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.find(message) != std::string::npos);
}

}  // namespace

TEST_CASE("a connection matrix and the same flows as CSV give the same result") {
  const json csv = Flows(chain_csv).result();
  CHECK(csv["flows"][2]["id"] == "3");
  CHECK(csv["flows"][1]["start_s"] == csv["flows"][0]["end_s"]);
  CHECK(Flows(chain_matrix).result() == csv);
  CHECK(Flows(std::string("\n# a comment\n") + chain_matrix).result() == csv);
}

TEST_CASE("a connection matrix is refused with line and column") {
  refuses(Flows("Nodes 9\nConnections 0\n"), {}, "flows:1:1: 9 nodes, but the fabric has 8 GPUs");
  refuses(Flows("Nodes 8\nConnections 2\n0->1 id 1 start 0 size 5\n"), {},
          "flows:2:1: the header declares 2 connections, but the file has 1");
  refuses(Flows("Nodes 8\nConnections 1\n0->8 id 1 start 0 size 5\n"), {}, "flows:3:4: \"8\"");
  const Flows late("Nodes 8\nConnections 1\n0->1 id 1 start 5 size 5\n");
  refuses(late, {}, "flows:3:17: the start \"5\" has no unit");
  refuses(late, {"--start-unit", "hours"}, "\"hours\" is not a unit");
  CHECK(late.result({"--start-unit", "us"})["flows"][0]["start_s"] == 5e-6);
  CHECK(late.result({"--start-unit", "ns"})["flows"][0]["start_s"] == 5e-9);
  refuses(Flows(chain_csv), {"--start-unit", "us"}, "where times have units");
}

TEST_CASE("the packet engine: one flow takes the time of its packets and of a round trip") {
  // 489 packets of 4160 B at 83.2 ns, one more store and forward, 4 us there and back, and the ACK
  // of 64 B over two links.
  const json result = Flows("id,src,dst,bytes\na,0,1,2 MB\n").result({"--engine", "packet"});
  CHECK(result["flows"][0]["end_s"].get<double>() ==
        approx((489 * 0.0832 + 0.0832 + 4 + 2 * 0.00128) * 1e-6).epsilon(1e-9));
  const json& packet = result["packet"];
  CHECK(packet["payload_bytes"]["sent"] == packet["payload_bytes"]["received"]);
  CHECK(packet["drops"] == 0);
  CHECK(packet["hops"] == 2 * (489 + 2));  // an acknowledgement after 256 packets and at the end
}

TEST_CASE("the packet engine: chains wait for acknowledgements, and repeat bit by bit") {
  const Flows flows(chain_matrix);
  const json result = flows.result({"--engine", "packet"});
  CHECK(result["flows"][1]["start_s"] == result["flows"][0]["end_s"]);
  CHECK(result["flows"][2]["start_s"] == result["flows"][1]["end_s"]);
  CHECK(flows.result({"--engine", "packet"}) == result);
  CHECK(flows.result({"--engine", "packet", "--threads", "2"}) == result);
}

TEST_CASE("the packet engine stops at --end, says who is not over and how far, and fails") {
  const Flows flows(chain_csv);
  const Outcome outcome = flows.run({"--engine", "packet", "--end", "60 us"});
  CHECK(outcome.status == 1);
  CHECK(outcome.out.find("3 flows, 1 finished") != std::string::npos);
  CHECK(outcome.err.find("weft: flow 2 (nic:1 to nic:2, 2000000 B): ") != std::string::npos);
  CHECK(outcome.err.find("of 489 packets acknowledged") != std::string::npos);
  CHECK(outcome.err.find("weft: flow 3 (nic:2 to nic:3, 2000000 B) waits") != std::string::npos);
  CHECK(outcome.err.find("flow 1 ") == std::string::npos);
  refuses(flows, {"--end", "60 us"}, "the fluid engine always runs to completion");
  refuses(flows, {"--engine", "packet", "--end", "60"}, "no unit");
}

TEST_CASE("the packet engine: flows in several parts end with their last one") {
  const std::vector<std::string> split{"--engine", "packet",       "--set", "routing.scheme=e_ecmp",
                                       "--set",    "routing.qps=4"};
  const json result = Flows(chain_csv).result(split);
  CHECK(result["flows"].size() == 3);
  CHECK(result["flows"][1]["start_s"] == result["flows"][0]["end_s"]);
  std::vector<std::string> cut = split;
  cut.insert(cut.end(), {"--end", "60 us"});
  const Outcome outcome = Flows(chain_csv).run(cut);
  CHECK(outcome.status == 1);
  CHECK(outcome.err.find("weft: flow 2, part 1 of 4 (nic:1 to nic:2, 500000 B)") !=
        std::string::npos);
}

TEST_CASE("the packet engine: flows without a way are listed, and the exit status says so") {
  const Flows flows("id,src,dst,bytes,after\nfar,0,5,1 MB,\nnext,0,1,1 MB,far\nnear,2,3,1 MB,\n");
  const Outcome outcome = flows.run(
      {"--engine", "packet", "--set", "faults=[{kind: switch_down, role: ctsw, count: 2}]"});
  CHECK(outcome.status == 1);
  CHECK(outcome.out.find("3 flows, 1 finished") != std::string::npos);
  CHECK(outcome.err.find("weft: flow far (nic:0 to nic:5, 1000000 B)") != std::string::npos);
  CHECK(outcome.err.find("weft: flow next (nic:0 to nic:1, 1000000 B) waits") != std::string::npos);
  CHECK(outcome.err.find("flow near") == std::string::npos);
  refuses(flows, {"--engine", "paket"}, "did you mean \"packet\"");
}

TEST_CASE("--from-fluid: packets take over where the fluid engine has come to") {
  const Flows chain(chain_csv);
  const json packets = chain.result({"--engine", "packet"});
  // From the start on it is the packet engine's own run.
  CHECK(chain.result({"--engine", "packet", "--from-fluid", "0 us"})["digest"] ==
        packets["digest"]);
  // 2 MB at 400 Gb/s are 40 us, and 2 links 2 us: at 60 us the first flow is over and the second
  // has sent 18 us of its 40.
  const json from = chain.result({"--engine", "packet", "--from-fluid", "60 us"});
  const json fluid = chain.result({"--engine", "fluid"});
  CHECK(from["flows"][0] == fluid["flows"][0]);
  CHECK(from["flows"][1]["start_s"] == fluid["flows"][1]["start_s"]);
  const std::int64_t left = from["packet"]["payload_bytes"]["sent"].get<std::int64_t>();
  CHECK(left >= 2'000'000 + 1'100'000);  // of the second, and all of the third
  CHECK(left <= 2'000'000 + 1'100'000 + 2 * 4096);
  const double end = from["flows"][2]["end_s"].get<double>();
  CHECK(end > fluid["flows"][2]["end_s"].get<double>());
  CHECK(end < packets["flows"][2]["end_s"].get<double>());
  // Behind the end nothing is left to do.
  CHECK(chain.result({"--engine", "packet", "--from-fluid", "1 s"})["flows"] == fluid["flows"]);
  refuses(chain, {"--engine", "fluid", "--from-fluid", "1 us"}, "--from-fluid");
}

TEST_CASE(
    "slowdown: a flow alone takes its ideal time on either engine, two on one NIC twice that") {
  // One after the other, of 1 byte and more, over links of three speeds.
  Rng rng(7);
  std::string alone = "id,src,dst,bytes,after\n";
  for (int i = 0; i < 40; ++i) {
    const auto src = rng.below(8), dst = (src + 1 + rng.below(7)) % 8;
    const auto bytes = 1 + rng.below(std::uint64_t{10} << rng.below(20));
    alone += std::to_string(i) + "," + std::to_string(src) + "," + std::to_string(dst) + "," +
             std::to_string(bytes) + " B," + (i > 0 ? std::to_string(i - 1) : "") + "\n";
  }
  Flows flows(alone);
  flows.write(
      "f.yaml",
      std::string(flows_fabric) +
          "faults:\n"
          "  - {kind: link_degraded, link: \"nic:1->rtsw:0\", factor: 0.25}\n"
          "  - {kind: link_degraded, tier: ctsw->rtsw, count: 2, pick: random, factor: 0.5}\n"
          "transport: {last_packet: exact}\n");
  for (const char* engine : {"fluid", "packet"}) {
    const json result = flows.result({"--engine", engine});
    std::size_t count = 0;
    for (const json& one : result["slowdown"]) {
      count += one["flows"].get<std::size_t>();
      CHECK(one["p50"].get<double>() == approx(1).epsilon(1e-6));
      CHECK(one["max"].get<double>() == approx(1).epsilon(1e-6));
    }
    CHECK(count == 40);
    for (const json& flow : result["flows"])
      CHECK(flow["end_s"].get<double>() - flow["start_s"].get<double>() ==
            approx(flow["ideal_s"].get<double>()).epsilon(1e-6));
  }
  // What no acknowledgement comes back for has no ideal time.
  Flows one_way("id,src,dst,bytes\na,0,4,4 MB\n");
  one_way.write("f.yaml", std::string(flows_fabric) +
                              "faults:\n"
                              "  - {kind: link_down, link: \"rtsw:1->ctsw:0\"}\n"
                              "  - {kind: link_down, link: \"rtsw:1->ctsw:1\"}\n");
  const Outcome outcome = one_way.run({"--engine", "packet", "--end", "1 ms", "--json"});
  CHECK(json::parse(outcome.out)["flows"][0]["ideal_s"].is_null());
  // 4 MB at 400 Gb/s: 80 us, and 2 us for two links. Two of them: 162 us.
  const json two = Flows("id,src,dst,bytes\na,0,2,4 MB\nb,1,2,4 MB\n").result();
  CHECK(two["flows"][0]["ideal_s"].get<double>() == approx(82e-6));
  CHECK(two["slowdown"][0]["bytes_max"] == 1e7);
  CHECK(two["slowdown"][0]["p99"].get<double>() == approx(162.0 / 82));
}

TEST_CASE("slowdown: a flow alone on a NIC of four planes takes its ideal time on either engine") {
  Flows flows("id,src,dst,bytes,after\na,0,4,16 MiB,\nb,0,4,1 MiB,a\nc,0,4,64 KiB,b\n");
  flows.write(
      "f.yaml",
      "fabric: {generator: multi_plane, planes: 4, racks: 2, hosts_per_rack: 4, spines: 1,\n"
      "         gpus_per_host: 1, latency: 1 us}\n"
      "transport: {reliability: selective, last_packet: exact}\n");
  const auto first_end = [&](const char* engine, const char* scheme) {
    const json result =
        flows.result({"--engine", engine, "--set", std::string("routing.scheme=") + scheme});
    for (const json& flow : result["flows"]) {
      // REPS keeps to entropies that have come back, also where these are of one port.
      if (std::string_view(scheme) == "reps" && flow["id"] != "a") continue;
      CHECK(flow["end_s"].get<double>() - flow["start_s"].get<double>() ==
            approx(flow["ideal_s"].get<double>()).epsilon(0.002));
    }
    return result["flows"][0]["end_s"].get<double>();
  };
  const double fluid = first_end("fluid", "spray");
  for (const char* scheme : {"spray", "reps", "adaptive"})
    CHECK(first_end("packet", scheme) == approx(fluid).epsilon(0.05));
}

// Hashes that meet are what the fluid engine is for: with queues that hold what the windows allow
// and nothing that pauses, packets end as it says.
TEST_CASE("ECMP without PFC: the mean completion of a permutation is within 10 %") {
  std::string flows = "id,src,dst,bytes\n";
  for (int i = 0; i < 128; ++i)  // one cycle through all
    flows += std::to_string(i) + "," + std::to_string(i * 37 % 128) + "," +
             std::to_string((i + 1) * 37 % 128) + ",8 MB\n";
  Flows permutation(flows);
  permutation.write("f.yaml",
                    "fabric: {generator: fat_tree, k: 8, link: 400 Gbps, latency: 1 us}\n"
                    "routing: {scheme: ecmp}\n"
                    "transport: {pfc: false, window: 512 KiB}\n");
  for (const char* seed : {"1", "2", "3"}) {
    const json result = permutation.result({"--compare", "--seed", seed});
    const double fluid = result["fluid"]["fct_s"]["mean"];
    const double packet = result["packet"]["fct_s"]["mean"];
    CHECK(packet > fluid);
    CHECK(packet < 1.1 * fluid);
  }
}

TEST_CASE("--compare runs both engines, and its rows add up to the difference") {
  const Flows flows(chain_csv);
  const json result = flows.result({"--compare"});
  const double fluid = result["fluid"]["fct_s"]["mean"];
  const double packet = result["packet"]["fct_s"]["mean"];
  const json& surplus = result["mean_surplus_s"];
  const double sum = surplus["headers"].get<double>() + surplus["round_trip"].get<double>() +
                     surplus["sent_again"].get<double>() + surplus["rest"].get<double>();
  CHECK(packet > fluid);
  CHECK(sum * 1e6 == approx((packet - fluid) * 1e6));
  // Nothing disturbs these flows: headers and round trips are the whole difference.
  CHECK(surplus["rest"].get<double>() * 1e6 == approx(0).scale(1).epsilon(1e-3));
  const json spray = Flows("id,src,dst,bytes\na,0,5,2 MB\n")
                         .result({"--compare", "--set", "routing.scheme=spray"});
  CHECK(spray["mean_surplus_s"]["rest"].get<double>() * 1e6 == approx(0).scale(1).epsilon(0.2));
  const Outcome text = flows.run({"--compare"});
  CHECK(text.out.find("completion: mean") != std::string::npos);
  CHECK(text.out.find("round trip of the last packet") != std::string::npos);
  refuses(flows, {"--compare", "--engine", "fluid"}, "excludes");
}
