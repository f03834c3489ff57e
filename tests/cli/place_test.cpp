// weft place: options that contradict each other, and what it writes, read back.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.hpp"
#include "run_weft.hpp"

namespace weft::cli_test {
namespace {

using nlohmann::json;

constexpr const char* four_pods =
    "fabric: {generator: three_tier, pods: 4, racks: 4, gpus_per_host: 8}\n";

std::string error_of(const std::vector<std::string>& more) {
  const Scratch scratch;
  scratch.write("f.yaml", four_pods);
  scratch.write("feeds.csv", "name,feed\npod:[0-1],a\npod:2,b\n");
  scratch.write("twice.csv", "start,a,2\nstart,a,2\n");
  std::vector<std::string> arguments{"place", "--fabric", "f.yaml"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = scratch.run(arguments);
  CHECK(outcome.status == 2);
  CHECK(outcome.out == "");
  return outcome.err;
}

}  // namespace

TEST_CASE("place: errors name the conflict") {
  CHECK(error_of({}).contains("--gpus N for one job, or --jobs FILE"));
  CHECK(error_of({"--gpus", "8", "--busy", "host99"}).contains("unknown host \"host99\""));
  CHECK(error_of({"--gpus", "8", "--busy", "a=host[0-3]", "--busy", "b=rack:1"})
            .contains("host2 is in use by \"a\" and by \"b\""));
  CHECK(error_of({"--gpus", "8", "--free", "host[0-3]", "--busy", "host3"})
            .contains("host3 is listed as free and as busy"));
  CHECK(error_of({"--gpus", "80", "--within", "zone"}).contains("none has more than 8 free"));
  CHECK(error_of({"--gpus", "8", "--within", "planet"}).contains("unknown place \"planet\""));
  CHECK(error_of({"--gpus", "8", "--spread", "power"}).contains("--feeds FILE"));
  CHECK(error_of({"--gpus", "8", "--spread", "power", "--feeds", "feeds.csv"})
            .contains("host24 has no feed"));
  CHECK(error_of({"--gpus", "0"}).contains("--gpus: 0 is too few; write at least 1"));
  CHECK(error_of({"--gpus", "8", "--model", "llama3-8b", "--order", "tp=8", "--batch", "0"})
            .contains("--batch: 0 is too few"));
  CHECK(error_of({"--gpus", "9999"}).contains("9999 GPUs requested, but the fabric has 256"));
  CHECK(error_of({"--gpus", "8", "--rankfile", "slrum"}).contains("did you mean \"slurm\""));
  CHECK(error_of({"--jobs", "twice.csv"}).contains("twice.csv:2:1: job \"a\" starts, but runs"));
  CHECK(error_of({"--gpus", "64", "--model", "llama3-8b", "--order", "tp=8,pp=3", "--batch", "8"})
            .contains("use a multiple of 24 GPUs"));
}

TEST_CASE("place and validate plan leave out what the file has down from the start") {
  const Scratch scratch;
  const auto with = [&](const char* faults) {
    scratch.write("f.yaml", std::string(four_pods) + faults);
    return scratch.run({"validate", "plan", "--fabric", "f.yaml", "--out", "plan.csv"});
  };
  const auto names = [](std::string_view text, std::string_view name) {
    return text.contains(std::string(name) + ",") || text.contains(std::string(name) + "|") ||
           text.contains(std::string(name) + "-");
  };
  CHECK(with("").status == 0);
  CHECK(names(scratch.read("plan.csv"), "nic:8"));
  const Outcome plan = with(
      "faults: [{kind: host_down, host: \"host:1\"}, {kind: host_down, host: \"host:5\", at: 5 "
      "s},\n"
      "  {kind: link_down, link: \"nic:20--rtsw:1\"}]\n");
  REQUIRE_MESSAGE(plan.status == 0, plan.err);
  CHECK_FALSE(names(scratch.read("plan.csv"), "nic:8"));   // of host:1
  CHECK_FALSE(names(scratch.read("plan.csv"), "nic:20"));  // its cable
  CHECK(names(scratch.read("plan.csv"), "nic:40"));        // not yet
  CHECK(scratch.run({"place", "--fabric", "f.yaml", "--gpus", "248"}).status == 0);
  const Outcome all = scratch.run({"place", "--fabric", "f.yaml", "--gpus", "256"});
  CHECK(all.status != 0);
  CHECK(all.err.contains("1 host down from the start by the file's faults: host1"));
  CHECK_MESSAGE(all.err.contains("31"), all.err);
  const Outcome named = scratch.run({"place", "--fabric", "f.yaml", "--gpus", "248", "--json"});
  CHECK(named.out.contains("host0"));
  CHECK_FALSE(named.out.contains("host1\""));
}

TEST_CASE("place: as many ranks as GPUs were asked for") {
  const Scratch scratch;
  scratch.write("f.yaml", four_pods);
  const Outcome out =
      scratch.run({"place", "--fabric", "f.yaml", "--gpus", "7", "--rankfile", "openmpi"});
  CHECK(std::ranges::count(out.out, '\n') == 7);
  CHECK(out.out.contains("rank 6="));
}

TEST_CASE("place: the rank files say what the JSON says") {
  const Scratch scratch;
  scratch.write("f.yaml", four_pods);
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"place",
                                       "--fabric",
                                       "f.yaml",
                                       "--gpus",
                                       "128",
                                       "--busy",
                                       "rack:1,rack:6,host20",
                                       "--model",
                                       "llama3-8b",
                                       "--order",
                                       "tp=8,pp=4,dp=4",
                                       "--batch",
                                       "64"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = scratch.run(arguments);
    CHECK(outcome.status == 0);
    return outcome.out;
  };
  const json said = json::parse(run({"--json"}));
  CHECK(said["hosts"].size() == 16);
  CHECK(said["order"]["zone_bytes"] >= said["order"]["zone_bytes_bound"]);
  CHECK(said["order"]["zone_bytes"] <= said["order"]["best_plain_bytes"]);
  CHECK(run({"--json"}) == run({"--json", "--threads", "2"}));
  const std::string slurm = run({"--rankfile", "slurm"}), torch = run({"--rankfile", "pytorch"});
  const std::string mpi = run({"--rankfile", "openmpi"});
  const auto by_rank = split(slurm, '\n'), by_node = split(torch, '\n'), slots = split(mpi, '\n');
  REQUIRE(by_rank.size() == 129);
  for (std::size_t rank = 0; rank < 128; ++rank) {
    const std::string host = said["hosts"][rank / 8];
    CHECK(by_rank[rank] == host);
    CHECK(by_node[rank / 8] == std::to_string(rank / 8) + " " + host);
    CHECK(slots[rank] ==
          "rank " + std::to_string(rank) + "=" + host + " slot=" + std::to_string(rank % 8));
  }
}

}  // namespace weft::cli_test
