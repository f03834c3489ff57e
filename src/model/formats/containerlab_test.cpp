#include "model/formats/containerlab.hpp"

#include <doctest/doctest.h>

#include <set>

#include "model/formats/test_fabric.hpp"

namespace weft::model {

using namespace testing;

// The keys of https://containerlab.dev/manual/topo-def-file: name, topology with kinds, nodes
// (each of a kind) and links (two endpoints "node:interface" each).
TEST_CASE("a containerlab topology has every device and cable once, each interface once") {
  for (const char* yaml :
       {"{generator: ai_zone, racks: 2, spines: 3}", "{generator: fat_tree, k: 4}",
        "{generator: hpn, segments: 2, hosts_per_segment: 2, aggs: 2}"}) {
    CAPTURE(yaml);
    const Fabric fabric = make_fabric(yaml);
    const auto text = to_containerlab(fabric);
    REQUIRE(text.has_value());
    const auto root = parse_yaml(*text, "weft.clab.yml");
    REQUIRE(root.has_value());
    CHECK(root->find("name")->text == "weft");
    const Config& topology = *root->find("topology");
    std::size_t switches = 0, cables = 0;
    for (const NodeId node : fabric.nodes()) switches += fabric.is_switch(node);
    for (const CableId cable : ids<CableId>(fabric.cable_count()))
      cables += fabric.on_wire(forward(cable));
    const Config& nodes = *topology.find("nodes");
    CHECK(nodes.fields.size() == switches + fabric.hosts().size());
    for (const Config::Field& node : nodes.fields) {
      CHECK(node.value.find("kind")->text == "linux");
      CHECK(topology.find("kinds")->find("linux")->find("image") != nullptr);
    }
    std::set<std::string> ends;
    for (const Config& link : topology.find("links")->items) {
      REQUIRE(link.find("endpoints")->items.size() == 2);
      for (const Config& end : link.find("endpoints")->items) {
        const std::size_t at = end.text.find(":eth");
        REQUIRE(at != std::string::npos);
        CHECK(nodes.find(end.text.substr(0, at)) != nullptr);
        CHECK(end.text.substr(at) != ":eth0");
        CHECK(ends.insert(end.text).second);
      }
    }
    CHECK(ends.size() == 2 * cables);
  }
}

TEST_CASE("names that containerlab could not tell apart are refused") {
  const Fabric fabric = make_fabric(
      "{nodes: [{name: a.b, role: sw, kind: fabric_switch}, {name: a_b, role: sw, kind: "
      "fabric_switch}], links: [{link: a.b--a_b, rate: 1 Gbps}]}");
  const auto text = to_containerlab(fabric);
  REQUIRE_FALSE(text.has_value());
  CHECK(text.error().text().contains("\"a.b\" and \"a_b\" are both \"a-b\""));
}

}  // namespace weft::model
