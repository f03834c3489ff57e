// What build_fabric refuses, that it is deterministic, and that no input breaks it.
#include "model/formats/build_fabric.hpp"

#include <algorithm>
#include <array>

#include "base/file.hpp"
#include "base/rng.hpp"
#include "base/test_folder.hpp"
#include "model/formats/fabric_yaml.hpp"
#include "model/formats/graph_export.hpp"
#include "model/formats/test_fabric.hpp"
#include "model/generate/host.hpp"

namespace weft::model {
namespace {

using namespace testing;

constexpr std::array small_sections{
    "{generator: ai_zone, racks: 2, spines: 2, gpus_per_host: 2, latency: 1 us}",
    "{generator: three_tier, pods: 2, racks: 2, gpus_per_host: 2, atsws: 2, oversubscription: 3}",
    "{generator: hpn, pods: 2, segments: 2, hosts_per_segment: 2, gpus_per_host: 2, aggs: 2}",
    "{generator: fat_tree, k: 4, host: a100}",
    "{generator: rail_optimized, groups: 2, hosts_per_group: 2, gpus_per_host: 2}",
    "{generator: rail_only, hosts: 2, gpus_per_host: 2, nics_per_host: 1}",
    "{generator: multi_plane, planes: 2, racks: 2, gpus_per_host: 2, link: 800 Gbps}",
    "{generator: dragonfly, p: 2, a: 2, h: 2, g: 3, gpus_per_host: 2, radix: 5}",
    "{generator: torus, dimensions: [3, 2], gpus_per_host: 2, radix: 5}",
};

TEST_CASE("every generator has a row and a small example here") {
  std::vector<std::string> seen;
  for (const char* const yaml : small_sections)
    seen.push_back(parse_yaml(yaml, "t")->find("generator")->text);
  CHECK(seen == generator_names());
}

TEST_CASE("the same section gives the same columns, another one others") {
  std::vector<std::uint64_t> digests;
  for (const char* const yaml : small_sections) {
    digests.push_back(digest(make_fabric(yaml)));
    CHECK(digest(make_fabric(yaml)) == digests.back());
  }
  std::ranges::sort(digests);
  CHECK(std::ranges::adjacent_find(digests) == digests.end());
}

TEST_CASE("any two NICs of a rail are connected, and zero latency is zero") {
  for (const char* const yaml : small_sections) {
    CAPTURE(yaml);
    auto section = *parse_yaml(yaml, "test.yaml");
    section.at_or_add("latency") = Config::scalar("0 s");
    const Fabric f = *build_fabric(section);
    const auto hops = hops_from(f, f.nics()[0]);
    for (const NodeId nic : f.nics())
      if (f.rail(nic) == f.rail(f.nics()[0])) CHECK(hops[nic.index()] >= 0);
    for (const LinkId l : f.links())
      if (f.is_switch(f.from(l)) || f.is_switch(f.to(l))) CHECK(f.latency(l).ps == 0);
  }
}

TEST_CASE("sections that say nothing or too much") {
  CHECK(contains(refusal("{}"), "\"generator\", \"file\" or \"nodes\""));
  CHECK(contains(refusal("[1, 2]"), "must be a map"));
  CHECK(contains(refusal("ai_zone"), "must be a map"));
  CHECK_FALSE(build_fabric(Config{}).has_value());
  CHECK(contains(refusal("{generator: ai_zoen, racks: 2}"), "did you mean \"ai_zone\"?"));
  CHECK(contains(refusal("{generator: [a]}"), "unknown generator"));
  CHECK(contains(refusal("{generator: ai_zone, racks: 2, nodes: []}"), "unknown key \"nodes\""));
}

TEST_CASE("all errors come at once, with their positions") {
  const std::string text = refusal(
      "generator: ai_zone\n"
      "racks: 0\n"
      "link: 400\n"
      "hots_per_rack: 2\n"
      "spines: many\n"
      "oversubscription: 2\n"
      "uplink: 400 Gbps\n"
      "host: h10\n");
  for (const char* const part :
       {"test.yaml:2:8: fabric.racks: 0 is not within 1 .. 1000000",
        "test.yaml:3:7: fabric.link: rate \"400\" has no unit",
        "test.yaml:4:1: unknown key \"hots_per_rack\" in fabric (did you mean \"hosts_per_rack\"?)",
        "test.yaml:5:9: fabric.spines: \"many\" is not a number",
        "test.yaml:6:19: \"oversubscription\" and \"uplink\" both set",
        "test.yaml:8:7: unknown host \"h10\" (did you mean \"h100\"?)"})
    CHECK_MESSAGE(contains(text, part), text);
}

TEST_CASE("values that make no sense") {
  const auto says = [](std::string_view yaml, std::string_view part) {
    const std::string text = refusal(yaml);
    CHECK_MESSAGE(contains(text, part), text);
    CHECK_MESSAGE(text.starts_with("test.yaml:"), text);
  };
  says("{generator: ai_zone}", "\"racks\" is missing");
  says("{generator: ai_zone, racks: 2, spines: 0}", "0 is not within");
  says("{generator: ai_zone, racks: 1e30}", "out of range");
  says("{generator: ai_zone, racks: nan}", "not a number");
  says("{generator: ai_zone, racks: -3}", "negative");
  says("{generator: ai_zone, racks: 2.5}", "not a whole number");
  says("{generator: ai_zone, racks: 2, link: 0 Gbps}", "\"link\" must be above 0");
  says("{generator: ai_zone, racks: 2, latency: 5}", "no unit");
  says("{generator: ai_zone, racks: 2, latency: -1 us}", "negative");
  says("{generator: ai_zone, racks: 2, oversubscription: 0}", "0 is not within");
  says("{generator: ai_zone, racks: 2, oversubscription: inf}", "not a number");
  says("{generator: ai_zone, racks: 2, gpus_per_host: 0}", "0 is not within 1 .. 1024");
  says("{generator: ai_zone, racks: 2, nics_per_host: 9999}", "9999 is not within 1 .. 1024");
  says("{generator: ai_zone, racks: 65536, hosts_per_rack: 2}",
       "racks 65536 x hosts_per_rack 2 x gpus_per_host 8 makes 1048576 GPUs, more than 1000000");
  says("{generator: ai_zone, racks: 1000, spines: 100000}", "rtsw--ctsw 100000000");
  says("{generator: ai_zone, racks: 20, radix: 18}", "rtsw:0 needs 34 ports, but radix is 18");
  says("{generator: ai_zone, racks: 20, radix: 18}", "ctsw:0 needs 20 ports, but radix is 18");
  says("{generator: three_tier, racks: 2}", "\"pods\" is missing");
  says("{generator: three_tier, pods: 2, racks: 2, atsws: 0}", "2 pods without ATSWs");
  says("{generator: three_tier, pods: 1, racks: 2, oversubscription: 7}", "there are none");
  says("{generator: three_tier, pods: 1000, racks: 1000}", "makes 16000000 GPUs");
  says("{generator: hpn, pods: 2, cores: 0}", "2 pods without cores");
  says("{generator: hpn, pods: 2, cores: 481}", "only 480 uplinks");
  says("{generator: hpn, planes: 7}", "do not divide evenly over 7 planes");
  says("{generator: fat_tree, k: 5}", "k = 5 is odd");
  says("{generator: fat_tree, k: 4, gpus_per_host: 3}", "3 NICs per host do not divide");
  says("{generator: fat_tree, k: 4096}", "GPUs, more than");
  says("{generator: rail_optimized, groups: 0}", "0 is not within");
  says("{generator: rail_only, hosts: 200000}", "makes 1600000 GPUs");
  says("{generator: multi_plane, racks: 2, planes: 65}", "65 is not within 1 .. 64");
  says("{generator: dragonfly, p: 4, a: 2, h: 1, g: 4}", "give g <= a * h + 1 = 3");
  says("{generator: dragonfly, p: 4, gpus_per_host: 3, g: 2}", "do not divide the p = 4");
  says("{generator: torus}", "give 1 to 6 sizes");
  says("{generator: torus, dimensions: [4, 0]}", "a dimension of 0 routers");
  says("{generator: torus, dimensions: [10000, 10000, 10000]}", "GPUs, more than");
  says("{generator: dragonfly, p: 1000000, a: 10000, h: 10000, g: 1000000}", "GPUs, more than");
}

TEST_CASE("extreme but allowed ratios give a rate of at least 1 bit/s") {
  const Fabric f =
      make_fabric("{generator: ai_zone, racks: 1, link: 1 bps, oversubscription: 1000000}");
  CHECK(f.rate(link(f, "rtsw:0->ctsw:0")).bps == 1);
}

TEST_CASE("files: relative to the naming file, nested, and endless") {
  const TestFolder folder;
  const std::string& dir = folder.path();
  REQUIRE(write_file(dir + "/base.yaml", "fabric: {generator: ai_zone, racks: 2}\njobs: []\n"));
  REQUIRE(write_file(dir + "/outer.yaml", "fabric: {file: base.yaml}\n"));
  REQUIRE(write_file(dir + "/self.yaml", "fabric: {file: self.yaml}\n"));
  REQUIRE(write_file(dir + "/none.yaml", "seed: 1\n"));
  REQUIRE(write_file(dir + "/tree.conf",
                     "SwitchName=s0 Switches=s[1-2]\nSwitchName=s1 Nodes=n[0-1]\n"
                     "SwitchName=s2 Nodes=n[2-3]\n"));
  const auto from = [&](std::string_view yaml) {
    return build_fabric(*parse_yaml(yaml, dir + "/scenario.yaml"));
  };
  CHECK(from("{file: outer.yaml}")->gpus().size() == 32);
  CHECK(from("{file: " + dir + "/outer.yaml}")->gpus().size() == 32);
  CHECK(from("{file: tree.conf, gpus_per_host: 4}")->gpus().size() == 16);
  const Fabric graph = *from("{file: outer.yaml}");
  REQUIRE(write_file(dir + "/graph.graphml", to_graphml(graph)));
  CHECK(from("{file: graph.graphml}")->gpus().size() == 32);
  CHECK(contains(from("{file: self.yaml}").error().text(), "refer to each other"));
  CHECK(contains(from("{file: none.yaml}").error().text(), "no \"fabric\" section"));
  CHECK(contains(from("{file: nowhere.yaml}").error().text(), "scenario.yaml:1:8: "));
  CHECK(contains(from("{file: base.yaml, racks: 3}").error().text(), "unknown key \"racks\""));
  CHECK(contains(from("{file: [base.yaml]}").error().text(), "single value"));
}

TEST_CASE("explicit nodes go to their own reader") {
  const Fabric f = make_fabric(
      "{rate: 400 Gbps, nodes: [{role: nic, count: 4}, {role: tor}], links: ['nic:0..3--tor:0']}");
  CHECK(f.nics().size() == 4);
  CHECK(tier_size(f, "nic->tor") == 4);
}

TEST_CASE("a host file decides what is in a host") {
  const auto device = [](int bus, const char* type) {
    return "<pci busid=\"0000:0" + std::to_string(bus) + ":00.0\" class=\"" + type +
           "\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"";
  };
  std::string xml = "<system version=\"1\"><cpu numaid=\"0\">" + device(1, "0x060400") + ">";
  for (const int bus : {2, 3, 4}) xml += device(bus, "0x030200") + "/>";
  for (const int bus : {5, 6, 7}) xml += device(bus, "0x020700") + "/>";
  const TestFolder folder;
  const std::string path = folder.write("host.xml", xml + "</pci></cpu></system>");
  const Fabric f = make_fabric("{generator: ai_zone, racks: 2, host: " + path + "}");
  CHECK(f.gpus().size() == 2 * 2 * 3);
  CHECK(tier_size(f, "nic->rtsw") == 12);
  CHECK(contains(refusal("{generator: ai_zone, racks: 2, gpus_per_host: 4, host: " + path + "}"),
                 "the host file has 3"));
}

TEST_CASE("a host file that is not there") {
  CHECK(contains(refusal("{generator: ai_zone, racks: 2, host: no/such.xml}"), "test.yaml:1:38: "));
}

TEST_CASE("host presets: rates per direction, wires of every part") {
  struct Expected {
    const char* name;
    Rate nvlink, nic;
  };
  for (const Expected& e :
       {Expected{"a100", 2400_Gbps, 200_Gbps}, Expected{"h100", 3600_Gbps, 400_Gbps},
        Expected{"h200", 3600_Gbps, 400_Gbps}, Expected{"b200", 7200_Gbps, 400_Gbps},
        Expected{"b300", 7200_Gbps, 800_Gbps}}) {
    const std::string yaml = std::string("{generator: ai_zone, racks: 1, host: ") + e.name + "}";
    const Fabric f = make_fabric(yaml);
    CHECK(f.rate(link(f, "gpu:3->nvswitch:0")) == e.nvlink);
    CHECK(f.rate(link(f, "nic:3->rtsw:0")) == e.nic);
    for (std::uint32_t i = 0; i < 16; ++i) CHECK(f.nic_of(f.gpus()[i]) == f.nics()[i]);
    CHECK(count(f, "pcie") == 2 * 4);
    CHECK(count(f, "nvswitch") == 2);
  }
  CHECK(host_preset_names().size() == 8);
  CHECK(count(make_fabric("{generator: ai_zone, racks: 1, gpus_per_host: 1}"), "nvswitch") == 0);
}

TEST_CASE("MI300X: GPUs are cabled one to each other") {
  const Fabric f = make_fabric("{generator: ai_zone, racks: 1, host: mi300x}");
  CHECK(count(f, "nvswitch") == 0);
  CHECK(f.rate(link(f, "gpu:0->gpu:7")) == 512_Gbps);
  CHECK(f.rate(link(f, "gpu:6->gpu:3")) == 512_Gbps);
  CHECK(f.rate(link(f, "nic:3->rtsw:0")) == 400_Gbps);
  CHECK_FALSE(f.find_link({"gpu:7->gpu:8", {}}));  // of two hosts
  for (std::uint32_t i = 0; i < 16; ++i) CHECK(f.nic_of(f.gpus()[i]) == f.nics()[i]);
  const Fabric few = make_fabric("{generator: ai_zone, racks: 1, host: mi300x, gpus_per_host: 4}");
  // Each of two hosts has less: cables of the mesh, of GPUs, NICs and PCIe switches, and uplinks.
  constexpr std::size_t less = 28 - 6 + 4 + 4 + 2 + 4;
  CHECK(few.cable_count() == f.cable_count() - 2 * less);
  CHECK(contains(refusal("{generator: ai_zone, racks: 1, host: mi300x, gpus_per_host: 9}"),
                 "test.yaml:1:61: the GPUs of mi300x are cabled one to each other, 8 at most"));
  CHECK(
      contains(refusal("{generator: ai_zone, racks: 2, host: mi300x, hosts_per_nvlink_domain: 2}"),
               "have no NVSwitch that hosts could share"));
}

// Replaces, removes and adds scalars at random.
void mutate(Config& section, Rng& rng) {
  static constexpr std::array values{
      "0",      "1",    "3",      "7",      "-1",    "1e30", "nan",     "0.5",  "2 Ki",
      "999999", "4096", "100 ms", "0 s",    "1 bps", "x",    "",        "~",    "gb200",
      "h100",   "hpn",  "[1]",    "{a: 1}", "true",  "9e18", "1000000", "b200", "fat_tree"};
  static constexpr std::array keys{"racks",
                                   "pods",
                                   "spines",
                                   "k",
                                   "p",
                                   "a",
                                   "h",
                                   "g",
                                   "planes",
                                   "link",
                                   "uplink",
                                   "radix",
                                   "host",
                                   "aggs",
                                   "atsws",
                                   "oversubscription",
                                   "cores",
                                   "ctsws",
                                   "groups",
                                   "hosts",
                                   "nodes",
                                   "file",
                                   "hosts_per_rack",
                                   "latency",
                                   "gpus_per_host",
                                   "nics_per_host",
                                   "generator",
                                   "segments"};
  const auto value = [&] { return *parse_yaml(values[rng.below(values.size())], "mutant.yaml"); };
  switch (rng.below(3)) {
    case 0:
      section.fields[rng.below(section.fields.size())].value = value();
      break;
    case 1:
      section.at_or_add(keys[rng.below(keys.size())]) = value();
      break;
    default:
      if (section.fields.size() > 1)
        section.fields.erase(section.fields.begin() +
                             static_cast<std::ptrdiff_t>(rng.below(section.fields.size())));
  }
}

TEST_CASE("random mutations give a fabric or a message, never anything else") {
  Rng rng(20240804);
  int built = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    Config section = *parse_yaml(small_sections[rng.below(small_sections.size())], "mutant.yaml");
    for (std::uint64_t i = rng.below(4); i-- > 0;) mutate(section, rng);
    if (const Config* gpus = section.find("gpus_per_host"); gpus == nullptr)
      section.at_or_add("gpus_per_host") = Config::scalar("2");
    // Keeps the built ones small; the bounds themselves are tested above.
    const bool large = std::ranges::any_of(section.fields, [](const Config::Field& field) {
      return field.value.text == "999999" || field.value.text == "4096" ||
             field.value.text == "2 Ki" || field.value.text == "1000000";
    });
    if (large && round % 50 != 0) continue;
    const auto fabric = build_fabric(section);
    if (fabric) {
      ++built;
      CHECK(fabric->link_count() <= static_cast<std::size_t>(link_count_max));
      CHECK(fabric->gpus().size() <= static_cast<std::size_t>(gpu_count_max));
    } else {
      ++refused;
      CHECK_FALSE(fabric.error().what.empty());
    }
  }
  CHECK(built > 200);
  CHECK(refused > 500);
}

}  // namespace
}  // namespace weft::model
