// weft explain and weft export: a fabric that is written and read again has the same facts.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "run_weft.hpp"

using namespace weft;
using cli_test::Outcome;
using cli_test::Scratch;
using nlohmann::json;

namespace {

constexpr const char* fabric_zone =
    "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 8, spines: 3}\n";

json facts(const Scratch& scratch, const std::string& file) {
  const Outcome outcome = scratch.run({"explain", file, "--json"});
  REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
  return json::parse(outcome.out)["fabric"];
}

void check_export(const Scratch& scratch, const std::string& format, const std::string& file) {
  const Outcome outcome = scratch.run({"export", "zone.yaml", "--to", format, "-o", file});
  REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
  CHECK(outcome.out.empty());
  CHECK(scratch.run({"export", "zone.yaml", "--to", format}).out == scratch.read(file));
}

}  // namespace

TEST_CASE("explain: counts and oversubscription that paper and pencil give") {
  // 4 racks x 2 hosts x 8 GPUs; 16 NICs down and 3 links up per RTSW: 16/3.
  const Scratch scratch;
  scratch.write("zone.yaml", fabric_zone);
  const json fabric = facts(scratch, "zone.yaml");
  CHECK(fabric["gpus"] == 64);
  CHECK(fabric["hosts"] == 8);
  CHECK(fabric["racks"] == 4);
  const Outcome text = scratch.run({"explain", "zone.yaml"});
  CHECK(text.status == 0);
  CHECK(text.out.find("64 GPUs, 64 NICs, 8 hosts, 4 racks") != std::string::npos);
  CHECK(text.out.find("5.33") != std::string::npos);
  const Outcome more = scratch.run({"explain", "zone.yaml", "--set", "fabric.racks=6", "--json"});
  CHECK(json::parse(more.out)["fabric"]["gpus"] == 96);
}

TEST_CASE("export to YAML and GraphML and back keeps every fact") {
  const Scratch scratch;
  scratch.write("zone.yaml", fabric_zone);
  const json before = facts(scratch, "zone.yaml");
  check_export(scratch, "yaml", "f.yaml");
  check_export(scratch, "graphml", "f.graphml");
  scratch.write("again-yaml.yaml", "fabric: {file: f.yaml}\n");
  scratch.write("again-graphml.yaml", "fabric: {file: f.graphml}\n");
  CHECK(facts(scratch, "f.yaml") == before);
  CHECK(facts(scratch, "again-yaml.yaml") == before);
  CHECK(facts(scratch, "again-graphml.yaml") == before);
  check_export(scratch, "dot", "f.dot");
  CHECK(scratch.read("f.dot").find("graph") == 0);
}

TEST_CASE("Slurm keeps which hosts hang on which switch") {
  const Scratch scratch;
  scratch.write("zone.yaml", fabric_zone);
  check_export(scratch, "slurm", "topology.conf");
  scratch.write("again.yaml", "fabric: {file: topology.conf}\n");
  const json again = facts(scratch, "again.yaml");
  CHECK(again["hosts"] == 8);
}

TEST_CASE("Slurm's blocks read back and written again are the same blocks") {
  const Scratch scratch;
  scratch.write("zone.yaml", fabric_zone);
  check_export(scratch, "slurm-blocks", "topology.conf");
  CHECK(scratch.read("topology.conf").ends_with("BlockSizes=2\n"));
  scratch.write("again.yaml", "fabric: {file: topology.conf}\n");
  CHECK(facts(scratch, "again.yaml")["hosts"] == 8);
  CHECK(scratch.run({"export", "again.yaml", "--to", "slurm-blocks"}).out ==
        scratch.read("topology.conf"));
}

TEST_CASE("all generators are exported and read back") {
  const Scratch scratch;
  for (const char* keys : {"three_tier, pods: 2, racks: 2", "hpn, pods: 1, segments: 1",
                           "fat_tree, k: 4", "rail_optimized, groups: 2", "rail_only, hosts: 4",
                           "multi_plane, racks: 2", "dragonfly, g: 3"}) {
    CAPTURE(keys);
    scratch.write("zone.yaml", std::string("fabric: {generator: ") + keys + "}\n");
    const json before = facts(scratch, "zone.yaml");
    for (const char* format : {"yaml", "graphml"}) {
      const std::string file = std::string("f.") + format;
      check_export(scratch, format, file);
      scratch.write("again.yaml", "fabric: {file: " + file + "}\n");
      CHECK(facts(scratch, "again.yaml") == before);
    }
  }
}
