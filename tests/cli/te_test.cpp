// weft te on a zone: what it writes, read back; options and files that contradict each other.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>

#include "base/test_approx.hpp"
#include "base/text.hpp"
#include "run_weft.hpp"
#include "socket_client.hpp"

namespace weft::cli_test {
namespace {

using nlohmann::json;

constexpr const char* te_zone =
    "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 1, gpus_per_host: 4, spines: 4}\n"
    "jobs: [{name: a, gpus: 16, collective: all_reduce, bytes: 1 GiB, algorithm: ring}]\n";

// Each NIC of a rack to the same one of the next rack.
std::string shifted_flows() {
  std::string out = "src,dst,port\n";
  for (int i = 0; i < 16; ++i)
    out += "nic:" + std::to_string(i) + ",nic:" + std::to_string((i + 4) % 16) + ",50000\n";
  return out;
}

}  // namespace

TEST_CASE("te of a zone: marks are at the bound, are judged sound, and survive a failure") {
  const Scratch scratch;
  scratch.write("z.yaml", te_zone);
  scratch.write("f.csv", shifted_flows());
  const Outcome made =
      scratch.run({"te", "z.yaml", "--flows", "f.csv", "--marks", "m.csv", "--json"});
  REQUIRE_MESSAGE(made.status == 0, made.err);
  const json kind = json::parse(made.out)["kinds"][0];
  CHECK(kind["flows"] == 16);
  CHECK(kind["healthy"]["worst"] == 1);  // 4 flows of a rack, 4 uplinks
  CHECK(kind["healthy"]["bound"] == 1);
  CHECK(kind["healthy"]["hashed"] > 1);
  CHECK(scratch.read("m.csv").starts_with(
      "src,dst,port,weight,priority,uplink\nnic:0,nic:4,50000,1,0,rtsw:0->ctsw:"));
  const Outcome sound = scratch.run({"te", "z.yaml", "--check", "m.csv"});
  CHECK(sound.status == 0);
  CHECK(sound.out.contains("16 flows: worst link 1 ("));
  // A spine less: its marks are dead until they are made anew.
  const Outcome dead = scratch.run({"te", "z.yaml", "--check", "m.csv", "--fail", "ctsw:1"});
  CHECK(dead.status == 1);
  CHECK(dead.out.contains("the mark leads over a dead link"));
  CHECK(dead.out.contains("NOT SOUND"));
  const Outcome anew =
      scratch.run({"te", "z.yaml", "--flows", "f.csv", "--fail", "ctsw:1", "--only-hit", "--json"});
  const json failed = json::parse(anew.out)["kinds"][0]["failed"];
  CHECK(failed["hit"] == 4);
  CHECK(failed["moved"] == 0);
  CHECK(failed["worst"] == 2);
  // No spine at all: there is no load to state, rather than one of 0.
  const std::vector<std::string> cut{"te", "z.yaml", "--fail", "ctsw:0,ctsw:1,ctsw:2,ctsw:3"};
  const Outcome none = scratch.run(cut);
  CHECK_FALSE(none.out.contains(" 0 ns"));
  CHECK(none.out.contains(" -\n"));
  std::vector<std::string> cut_json = cut;
  cut_json.push_back("--json");
  const json nothing = json::parse(scratch.run(cut_json).out)["kinds"][0]["failed"];
  CHECK(nothing["worst"].is_null());
  CHECK(nothing["bound"].is_null());
  // All over one spine, by another hand.
  std::string heaped = "src,dst,uplink\n";
  for (int i = 0; i < 4; ++i)
    heaped += "nic:" + std::to_string(i) + ",nic:" + std::to_string(i + 4) + ",rtsw:0->ctsw:2\n";
  scratch.write("bad.csv", heaped);
  const Outcome bad = scratch.run({"te", "z.yaml", "--check", "bad.csv"});
  CHECK(bad.out.contains("worst link 4 ("));
}

TEST_CASE("te of a zone: a failure is predicted as a run of the fluid engine finds it") {
  const Scratch scratch;
  const std::string faults = "faults: [{kind: link_down, link: \"rtsw:1--ctsw:2\", at: 100 ms}]\n";
  const std::string zone =
      "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 1, gpus_per_host: 4, spines: 4}\n"
      "routing: {scheme: te, convergence: {}}\n"
      "collectives: {cost: line_rate}\n"
      "jobs: [{name: pairs, collective: send_recv, gpus: 16, bytes: 16 GiB, place: list, ranks: "
      "[0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]}]\n";
  scratch.write("z.yaml", zone);
  scratch.write("run.yaml", zone + faults);
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{},
        {"--set", "routing.te.controller=dead", "--set", "routing.te.lease=400 ms"}}) {
    std::vector<std::string> te{"te", "z.yaml", "--fail", "rtsw:1--ctsw:2", "--json"};
    std::vector<std::string> run{"run", "run.yaml", "--json"};
    te.insert(te.end(), more.begin(), more.end());
    run.insert(run.end(), more.begin(), more.end());
    const Outcome predicted = scratch.run(te), simulated = scratch.run(run);
    REQUIRE_MESSAGE(predicted.status == 0, predicted.err);
    REQUIRE_MESSAGE(simulated.status == 0, simulated.err);
    const json a = json::parse(predicted.out)["kinds"][0]["convergence"];
    const json b = json::parse(simulated.out)["variants"]["base"]["failures"][0];
    CHECK(a["flows_hit"] == b["flows_hit"]);
    CHECK(a["flows_hit"] == 2);
    CHECK(a["path_again_s"]["median"].get<double>() ==
          approx(b["path_again_s"]["median"].get<double>()));
    CHECK(a["lost_bytes"].get<double>() == approx(b["lost_bytes"].get<double>()));
    // A controller that died renewed its marks when the link did, in a run 100 ms before.
    const double earlier_s = more.empty() ? 0 : 0.1;
    const double last = b["path_again_s"]["max"].get<double>() + earlier_s;
    CHECK(a["path_again_s"]["max"].get<double>() == approx(last));
    if (more.empty())
      CHECK(a["stalled_bytes"].get<double>() == approx(b["stalled_bytes"].get<double>()));
  }
}

TEST_CASE("te of a zone: hashing costs what it costs a run with one QP") {
  const Scratch scratch;
  scratch.write(
      "z.yaml",
      "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 1, gpus_per_host: 4, spines: 4, "
      "latency: 0 s}\n"
      "routing: {scheme: ecmp}\n"
      "collectives: {cost: line_rate}\n"
      "jobs: [{name: pairs, collective: send_recv, gpus: 16, bytes: 16 MiB, place: list, ranks: "
      "[0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]}]\n");
  std::set<double> different;
  for (int seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    const std::string set = fmt::format("seed={}", seed);
    const Outcome te = scratch.run({"te", "z.yaml", "--set", set, "--json"});
    const Outcome run = scratch.run({"run", "z.yaml", "--set", set, "--json"});
    REQUIRE_MESSAGE(te.status == 0, te.err);
    REQUIRE_MESSAGE(run.status == 0, run.err);
    const double hashed = json::parse(te.out)["kinds"][0]["healthy"]["hashed"];
    const json job = json::parse(run.out)["variants"]["base"]["jobs"]["pairs"];
    CHECK(hashed / 50e9 == approx(job["time_s"]["mean"].get<double>()).epsilon(1e-6));
    different.insert(hashed);
  }
  CHECK(different.size() > 1);
}

TEST_CASE("te of a zone: the flows of jobs, and errors") {
  const Scratch scratch;
  scratch.write("z.yaml", te_zone);
  const Outcome jobs = scratch.run({"te", "z.yaml"});
  REQUIRE_MESSAGE(jobs.status == 0, jobs.err);
  CHECK(jobs.out.contains("stage 1"));
  const auto error = [&](std::vector<std::string> more) {
    more.insert(more.begin(), "te");
    const Outcome outcome = scratch.run(more);
    CHECK(outcome.status == 2);
    CHECK(outcome.out == "");
    return outcome.err;
  };
  CHECK(error({"z.yaml", "--gap", "1"}).contains("--gap: this option is for a backbone"));
  scratch.write("w.csv", "src,dst,capacity\nA,B,1 Gbps\n");
  CHECK(error({"w.csv", "--fail", "A"}).contains("--fail: this option is for a zone"));
  CHECK(error({"z.yaml", "--fail", "ctsw:9"}).contains("there are 4 ctsw"));
  CHECK(error({"z.yaml", "--fail", "host:0"}).contains("\"host:0\" is not a switch"));
  scratch.write("bad.csv", "src,dst\nnic:0,nic:99\n");
  CHECK(error({"z.yaml", "--flows", "bad.csv"}).contains("bad.csv:2:7"));
  scratch.write("none.yaml",
                "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 1, gpus_per_host: 4, "
                "spines: 4}\n");
  CHECK(error({"none.yaml"}).contains("jobs must be a list"));
  scratch.write("torus.yaml", "fabric: {generator: torus, dimensions: [4, 4]}\n");
  CHECK(error({"torus.yaml", "--flows", "bad.csv"}).contains("a two-tier Clos fabric"));
}

// This test speaks for the agents: tests/lab has real ones.
TEST_CASE("te in the service: a held request is answered by marks, and the state shows them") {
  const Scratch scratch;
  scratch.write("z.yaml", "fabric: {generator: ai_zone, racks: 2, gpus_per_host: 2, spines: 2}\n");
  scratch.write("f.csv", "src,dst\nnic:0,nic:4\n");
  scratch.write("serve.yaml", "te: {flows: none.csv, holt: 1 s}\n");
  const auto check = [&] {
    return scratch.run({"serve", "--fabric", "z.yaml", "--config", "serve.yaml", "--check"}).err;
  };
  CHECK(check().find("did you mean \"hold\"?") != std::string::npos);
  scratch.write("serve.yaml", "te: {flows: none.csv}\n");
  CHECK(check().find("none.csv: cannot open") != std::string::npos);
  scratch.write("serve.yaml", "te: {flows: f.csv}\n");
  const int service = scratch.start({"serve", "--fabric", "z.yaml", "--config", "serve.yaml",
                                     "--store", "weft.db", "--listen", "unix:api.sock"},
                                    "serve");
  httplib::Client client = socket_client(scratch.path() + "/api.sock");
  const auto is_up = [&] { return client.Get("/readyz") && client.Get("/readyz")->status == 200; };
  for (int i = 0; i < 500 && !is_up(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const auto ask = [&](const std::string& name, json report, int wait_ms = 0) {
    report["agent"] = "a";
    report["serial"] = 1;
    report["ports"] = json::array();
    const auto answer =
        client.Post("/v1/te/switches/" + name + "?wait_ms=" + std::to_string(wait_ms),
                    report.dump(), "application/json");
    REQUIRE(answer);
    CHECK_MESSAGE(answer->status == 200, answer->body);
    return json::parse(answer->body);
  };
  json done{{"epoch", ""}, {"version", 0}};
  for (const char* name : {"rtsw:0", "rtsw:1", "ctsw:0", "ctsw:1"}) {
    done["epoch"] = "";
    const json asked = ask(name, {{"done", done}});
    CHECK(asked["wants_marks"] == true);
    done["epoch"] = asked["epoch"];
    ask(name, {{"done", done}, {"marks", json::array()}});
  }
  CHECK(client.Post("/v1/te/switches/host:0", R"({"agent": "a", "serial": 1})", "application/json")
            ->status == 404);
  CHECK(client.Post("/v1/te/switches/rtsw:0", "{}", "application/json")->status == 400);
  json orders = ask("rtsw:0", {{"done", done}}, 4'000);
  for (int i = 0; i < 20 && orders["changes"].empty(); ++i)  // a renewal, before the first decision
    orders = ask("rtsw:0", {{"done", done}}, 4'000);
  REQUIRE(orders["changes"].size() == 1);
  CHECK(orders["changes"][0]["src"] == "10.0.0.1");
  CHECK(orders["changes"][0]["dst"] == "10.0.0.5");
  CHECK(orders["changes"][0]["uplink"].get<std::string>().starts_with("rtsw:0->ctsw:"));
  const Outcome shown = scratch.run({"te", "--from", "unix:api.sock"});
  CHECK_MESSAGE(shown.out.starts_with("1 flow, 0 marks; all cables up\n"), (shown.out + shown.err));
  CHECK(shown.out.find("rtsw:0  0") != std::string::npos);
  CHECK(client.Get("/metrics")->body.find("weft_te_switches_silent 0\n") != std::string::npos);
  ::kill(service, SIGTERM);
  CHECK(wait_for(service) == 0);
}

}  // namespace weft::cli_test
