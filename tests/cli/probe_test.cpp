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
        R"({"id":"f1","kind":"loss","entities":["ctsw:1->rtsw:3"],"start":"1970-01-01T00:00:20Z",)"
        R"("end":"1970-01-01T00:00:40Z","attrs":{"rate":"0.01"}})"
        "\n");
  scratch.write("e.jsonl", seen.out);
  const Outcome found = scratch.run({"localise", "e.jsonl", "--fabric", "z.yaml"});
  REQUIRE_MESSAGE(found.status == 0, found.err);
  CHECK(found.out.find("link ctsw:1->rtsw:3  loss") != std::string::npos);
  const Outcome minutes =
      scratch.run({"sli", "e.jsonl", "--fabric", "z.yaml", "--episodes", "t.jsonl"});
  CHECK_MESSAGE(minutes.status == 0, minutes.err);
}

TEST_CASE("probe: a dead link is routed around, a dead rack is not") {
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
  CHECK(lost("{kind: link_down, link: \"rtsw:0--ctsw:1\", at: 0 s}") < 30);
  CHECK(lost("{kind: switch_down, switch: \"rtsw:0\", at: 0 s}") > 1'000);
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
}
