// `weft probe` without a network: plans, the simulated fabric, and what is refused.
#include <doctest/doctest.h>

#include <algorithm>

#include "run_weft.hpp"

using weft::cli_test::Outcome;
using weft::cli_test::Scratch;

namespace {

constexpr const char* probe_zone =
    "fabric: {generator: ai_zone, racks: 8, hosts_per_rack: 2, gpus_per_host: 2, spines: 4, "
    "link: 400 Gbps}\n";

Outcome plan(const Scratch& scratch) {
  return scratch.run({"probe", "plan", "--fabric", "z.yaml", "--crossings", "4000", "--json"});
}

}  // namespace

TEST_CASE("probe: what the simulated fabric loses is found, and is what its file says") {
  const Scratch scratch;
  scratch.write("z.yaml", std::string(probe_zone) +
                              "faults:\n"
                              "  - {kind: link_lossy, link: \"ctsw:1->rtsw:3\", at: 20 s, "
                              "until: 40 s, loss: 0.01}\n");
  const Outcome planned = plan(scratch);
  REQUIRE_MESSAGE(planned.status == 0, planned.err);
  scratch.write("plan.jsonl", planned.out);
  const std::vector<std::string> probe{"probe",   "--twin",     "--fabric", "z.yaml",
                                       "--plan",  "plan.jsonl", "--json",   "--truth",
                                       "t.jsonl", "--duration", "1 min"};
  const Outcome seen = scratch.run(probe);
  REQUIRE_MESSAGE(seen.status == 0, seen.err);
  CHECK(scratch.run(probe).out == seen.out);
  CHECK(scratch.read("t.jsonl") ==
        R"({"id":"f1","kind":"link_lossy","entities":["ctsw:1->rtsw:3"],)"
        R"("start":"1970-01-01T00:00:20Z","end":"1970-01-01T00:00:40Z","attrs":{"rate":"0.01"}})"
        "\n");
  scratch.write("e.jsonl", seen.out);
  const Outcome found = scratch.run({"localise", "e.jsonl", "--fabric", "z.yaml"});
  REQUIRE_MESSAGE(found.status == 0, found.err);
  CHECK(found.out.find("link ctsw:1->rtsw:3  loss") != std::string::npos);
  const Outcome minutes =
      scratch.run({"sli", "e.jsonl", "--fabric", "z.yaml", "--episodes", "t.jsonl"});
  CHECK_MESSAGE(minutes.status == 0, minutes.err);
}

TEST_CASE("probe: a dead link is routed around in 0.3 s, a dead rack is not") {
  const Scratch scratch;
  scratch.write("z.yaml", probe_zone);
  scratch.write("plan.jsonl", plan(scratch).out);
  const auto lost = [&](const std::string& fault) {
    scratch.write("z.yaml", std::string(probe_zone) + "faults:\n  - " + fault + "\n");
    const Outcome seen = scratch.run(
        {"probe", "--twin", "--fabric", "z.yaml", "--plan", "plan.jsonl", "--duration", "10 s"});
    REQUIRE_MESSAGE(seen.status == 0, seen.err);
    return std::stoul(seen.out.substr(seen.out.find("flows: ") + 7));
  };
  const auto cable = lost("{kind: link_down, link: \"rtsw:0--ctsw:1\", at: 1 s}");
  const auto one_way = lost("{kind: link_lossy, link: \"rtsw:0->ctsw:1\", at: 1 s, loss: 1}");
  const auto rack = lost("{kind: switch_down, switch: \"rtsw:0\", at: 1 s}");
  // Each link is crossed 400 times a second and more; one that loses with its carrier on stays in
  // use.
  CHECK(cable >= 400 * 0.3);
  CHECK(one_way >= 400 * 9);
  CHECK(one_way > 10 * cable);
  CHECK(rack > 4 * one_way);
}

TEST_CASE(
    "probe: faults that only a simulated network has; with routes planned a black hole shows") {
  const Scratch scratch;
  scratch.write("z.yaml", probe_zone);
  const Outcome planned = scratch.run({"probe", "plan", "--fabric", "z.yaml", "--crossings", "1000",
                                       "--flows", "4", "--routes", "4", "--json"});
  REQUIRE_MESSAGE(planned.status == 0, planned.err);
  scratch.write("plan.jsonl", planned.out);
  const char* const hole = "faults:\n  - {kind: blackhole, switch: \"ctsw:1\", to: \"host:5\"}\n";
  scratch.write("z.yaml", std::string(probe_zone) + hole);
  const Outcome seen =
      scratch.run({"probe", "--twin", "--fabric", "z.yaml", "--plan", "plan.jsonl", "--duration",
                   "20 s", "--window", "1 s", "--truth", "t.jsonl", "--json"});
  REQUIRE_MESSAGE(seen.status == 0, seen.err);
  CHECK(scratch.read("t.jsonl").find(R"("kind":"blackhole","entities":["ctsw:1"])") !=
        std::string::npos);
  scratch.write("e.jsonl", seen.out);
  scratch.write("z.yaml", probe_zone);
  const Outcome found =
      scratch.run({"localise", "e.jsonl", "--fabric", "z.yaml", "--truth", "t.jsonl", "--json"});
  REQUIRE_MESSAGE(found.status == 0, found.err);
  CHECK_MESSAGE(found.out.find(R"("destination":"host:5")") != std::string::npos, found.out);
}

TEST_CASE("probe: wrong input is refused") {
  const Scratch scratch;
  scratch.write("z.yaml", probe_zone);
  scratch.write("empty.jsonl", "");
  scratch.write("key", "000102030405060708090a0b0c0d0e0f\n");
  const auto refuses = [&](std::vector<std::string> arguments, const char* what) {
    arguments.insert(arguments.begin(), "probe");
    const Outcome outcome = scratch.run(arguments);
    CHECK(outcome.status == 2);
    CHECK_MESSAGE(outcome.err.find(what) != std::string::npos, outcome.err);
  };
  refuses({"127.0.0.1", "--count", "1"}, "--key");
  refuses({"--key", "key"}, "nothing to probe");
  refuses({"300.1.1.1", "--key", "key"}, "300.1.1.1");
  refuses({"--twin", "--fabric", "z.yaml"}, "needs a probe plan");
  refuses({"--twin", "--plan", "empty.jsonl"}, "needs a fabric");
  refuses({"--twin", "--fabric", "z.yaml", "--plan", "empty.jsonl"}, "the plan is empty");
  refuses({"--twin", "--fabric", "z.yaml", "--plan", "empty.jsonl", "--duration", "1 us"},
          "--duration");
  refuses({"plan", "--fabric", "none.yaml"}, "none.yaml");
  scratch.write("self.jsonl", "{\"src\":\"nic:0\",\"dst\":\"nic:0\",\"sport\":5}\n");
  refuses({"--twin", "--fabric", "z.yaml", "--plan", "self.jsonl"}, "nic:0 to nic:0");
  scratch.write("switch.jsonl", "{\"src\":\"nic:0\",\"dst\":\"ctsw:0\",\"sport\":5}\n");
  refuses({"--twin", "--fabric", "z.yaml", "--plan", "switch.jsonl"}, "ctsw:0");
}
