// A fault on a real fabric is found, healed and drained around: as an operator would, with the
// built `weft` alone.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "base/test_skip.hpp"
#include "base/text.hpp"
#include "lab_kit.hpp"

using namespace weft;
using namespace weft::lab_test;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

class Loop : public TestLab {
 public:
  // Probes by the plan for 3 s; what the localiser makes of it.
  std::vector<json> find() {
    scratch().write("evidence.jsonl", on_hosts([](int host) {
                      return std::vector<std::string>{"probe",
                                                      "--plan",
                                                      "plan.jsonl",
                                                      "--fabric",
                                                      "zone.yaml",
                                                      "--from",
                                                      fmt::format("host:{}", host),
                                                      "--addresses",
                                                      "addresses.csv",
                                                      "--key",
                                                      "key",
                                                      "--one-way",
                                                      "--duration",
                                                      "3 s",
                                                      "--window",
                                                      "3 s",
                                                      "--json"};
                    }));
    const Outcome outcome =
        scratch().run({"localise", "evidence.jsonl", "--fabric", "zone.yaml", "--json"});
    CHECK_MESSAGE(outcome.status == 0, outcome.err);
    std::vector<json> verdicts;
    for (const std::string_view line : split(outcome.out, '\n'))
      if (!line.empty())
        if (json verdict = json::parse(line); verdict["kind"] != "insufficient_evidence")
          verdicts.push_back(std::move(verdict));
    return verdicts;
  }
};

TEST_CASE("a silent loss and flipped bits are found, healed and drained around") {
  if (skips_without_lab()) return;
  Loop loop;
  loop.up();
  loop.learn("4000", "3 s");
  CHECK(loop.find().empty());

  Rng rng(doctest::getContextOptions()->rand_seed);  // --rand-seed=N
  const auto any = [&](int count) { return rng.below(static_cast<std::uint64_t>(count)); };
  std::string link = fmt::format("ctsw:{}->rtsw:{}", any(spine_count), any(rack_count));
  if (any(2) == 1) link = link.substr(8) + "->" + link.substr(0, 6);
  CHECK(loop.lab({"fault", "link_lossy", link, "--rate", "1%"}).status == 0);
  // On real packets, over kernels that check what they check: a fifth of the flips is lost.
  std::string other = link;
  while (other == link) other = fmt::format("rtsw:{}->ctsw:{}", any(rack_count), any(spine_count));
  CHECK(loop.lab({"fault", "corrupt", other, "--rate", "5%"}).status == 0);
  const std::vector<json> verdicts = loop.find();
  std::set<std::pair<std::string, std::string>> found;
  for (const json& verdict : verdicts) {
    found.emplace(verdict["kind"], verdict["entity"]);
    CAPTURE(verdict.dump());
    const double planted = verdict["kind"] == "corruption" ? 0.042  // 84 % of 5 %
                           : verdict["entity"] == other    ? 0.008  // the rest
                                                           : 0.01;
    // The interval is one of 95 %, so one draw in twenty lies outside: the draw itself is judged,
    // by five standard deviations.
    const double loss = verdict["loss"];
    const double sigma = std::sqrt(planted * (1 - planted) / verdict["probes"].get<double>());
    CHECK(std::abs(loss - planted) < 5 * sigma);
    CHECK(verdict["loss_interval"][0] < loss);
    CHECK(verdict["loss_interval"][1] > loss);
  }
  const std::set<std::pair<std::string, std::string>> wanted{
      {"loss", link}, {"corruption", other}, {"loss", other}};
  CHECK((found == wanted));
  CHECK(loop.lab({"heal", "all"}).status == 0);

  // A thousand packets a second, over all paths, while a spine leaves and comes back.
  const int flow = loop.start(0,
                              {"probe", "10.0.0.8", "--key", "key", "--rate", "1000", "--duration",
                               "5 s", "--window", "6 s", "--ports", "49152-49183", "--json"},
                              "drain.jsonl");
  std::this_thread::sleep_for(200ms);
  const std::string spine = fmt::format("ctsw:{}", any(spine_count));
  CHECK(loop.lab({"drain", spine}).status == 0);
  CHECK(loop.lab({"undrain", spine}).status == 0);
  CHECK(cli_test::wait_for(flow) == 0);
  std::uint64_t sent = 0, lost = 0;
  const std::string rows = loop.scratch().read("drain.jsonl");
  for (const std::string_view line : split(rows, '\n')) {
    if (line.empty()) continue;
    const json row = json::parse(line);
    if (row["leg"] != "back") sent += row["sent"].get<std::uint64_t>();
    lost += row["lost"].get<std::uint64_t>();
    if (row["lost"] != 0) MESSAGE(line);
  }
  CHECK(sent >= 4'000);
  CHECK(lost == 0);
  loop.down();
}

// Rounds of real packets, each flow on its planned path; one direction of a cable carries 70 %.
TEST_CASE("validate: a slow link is named by rounds that were run in the lab, and nothing else") {
  if (skips_without_lab()) return;
  const Scratch scratch;
  const std::string name = fmt::format("v{}", ::getpid() % 1'000'000);
  struct Down {
    const Scratch& scratch;
    const std::string& name;
    ~Down() { scratch.run({"lab", "down", "--name", name}); }
  } const down{scratch, name};
  scratch.write("zone.yaml", fabric);
  const Outcome up = scratch.run({"lab", "up", "zone.yaml", "--routing", "static", "--name", name});
  REQUIRE_MESSAGE(up.status == 0, up.err);
  REQUIRE(scratch.run({"validate", "plan", "--fabric", "zone.yaml", "--out", "plan.csv"}).status ==
          0);
  const auto judge = [&] {
    const Outcome run = scratch.run({"validate", "run", "--plan", "plan.csv", "--lab", name,
                                     "--length", "200 ms", "--out", "rates.csv"});
    REQUIRE_MESSAGE(run.status == 0, run.err);
    const Outcome out = scratch.run({"validate", "judge", "--fabric", "zone.yaml", "--plan",
                                     "plan.csv", "rates.csv", "--json"});
    return json::parse(out.out);
  };
  const json sound = judge();
  CHECK_MESSAGE(sound["links"].empty(), sound.dump());
  CHECK_MESSAGE(sound["hosts"].empty(), sound.dump());
  CHECK(sound["unjudged"].empty());
  CHECK(sound["missing"] == 0);
  // More than any machine sends by 64 packets of a flow a millisecond; what comes after is not
  // disturbed.
  const Outcome refused =
      scratch.run({"validate", "run", "--plan", "plan.csv", "--lab", name, "--rate", "20 Gbps",
                   "--length", "50 ms", "--out", "refused.csv"});
  CHECK(refused.status == 2);
  CHECK_MESSAGE(refused.err.find("in each of 10 attempts") != std::string::npos, refused.err);
  CHECK_FALSE(scratch.has("refused.csv"));
  REQUIRE(scratch
              .run({"lab", "fault", "link_degraded", "ctsw:1->rtsw:2", "--rate", "14 Mbps",
                    "--name", name})
              .status == 0);
  // A machine that stalls can only lower a share: the best of three counts.
  double share = 0;
  for (int run = 0; run < 3 && share < 0.63; ++run) {
    const json slow = judge();
    REQUIRE_MESSAGE(slow["links"].size() == 1, slow.dump());
    CHECK(slow["links"][0]["link"] == "ctsw:1->rtsw:2");
    share = std::max(share, slow["links"][0]["share"].get<double>());
    CHECK_MESSAGE(slow["hosts"].empty(), slow.dump());
  }
  CHECK(share == approx(0.7).epsilon(0.1));
}

}  // namespace
