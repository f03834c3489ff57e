#include "model/formats/graph_export.hpp"

#include <array>
#include <pugixml.hpp>

#include "model/formats/test_fabric.hpp"

namespace weft::model {
namespace {

using namespace testing;

std::size_t occurrences(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}
std::string refuse_graphml(std::string_view text) {
  const auto fabric = read_graphml(text, "g.xml");
  return fabric ? "accepted" : fabric.error().text();
}

TEST_CASE("DOT: one edge a cable, scopes as clusters, hosts closed unless asked for") {
  const Fabric f = make_fabric("{generator: ai_zone, racks: 3, spines: 2}");
  const std::string network = to_dot(f);
  CHECK(occurrences(network, " -- ") == 3 * 16 + 3 * 2);
  CHECK(contains(network, "\"rtsw:0\" -- \"ctsw:1\" [rate=\"400 Gbps\", latency=\"500 ns\"];"));
  CHECK(contains(network, "subgraph \"cluster rack:2\""));
  CHECK(!contains(network, "gpu:0"));
  const std::string all = to_dot(f, GraphDetail::all);
  CHECK(occurrences(all, " -- ") == f.cable_count());
  CHECK(occurrences(all, "shape=") == f.node_count());
  CHECK(occurrences(all, "{") == occurrences(all, "}"));
}

TEST_CASE("GraphML is XML that holds every column") {
  const Fabric f = make_fabric(R"({rate: 100 Gbps, nodes: [{role: host}, {role: gpu, host: host:0,
    rail: 2}, {role: nic, host: host:0, rail: 2, plane: 1}, {role: tor, name: tor+1}],
    links: [{link: "nic:0--tor+1", interface_a: "a<b&\"c\""}]})");
  pugi::xml_document document;
  REQUIRE(document.load_string(to_graphml(f).c_str()));
  const auto graph = document.child("graphml").child("graph");
  const auto data = [](pugi::xml_node node, const char* key) {
    return std::string(node.find_child_by_attribute("data", "key", key).child_value());
  };
  const auto node = [&](const char* id) { return graph.find_child_by_attribute("node", "id", id); };
  CHECK(data(node("gpu:0"), "nic") == "nic:0");
  CHECK(data(node("nic:0"), "rail") == "2");
  CHECK(data(node("nic:0"), "plane") == "1");
  CHECK(data(node("tor+1"), "kind") == "fabric_switch");
  CHECK(data(node("tor+1"), "scope") == "zone:0");
  CHECK(data(graph.child("edge"), "rate") == "100 Gbps");
  CHECK(data(graph.child("edge"), "interface_a") == "a<b&\"c\"");
}

// Scopes may be numbered anew, so fabrics are compared by what names and columns say.
bool same(const Fabric& a, const Fabric& b) {
  if (a.node_count() != b.node_count() || a.link_count() != b.link_count()) return false;
  for (const NodeId n : a.nodes()) {
    if (a.name(n) != b.name(n) || a.role_name(n) != b.role_name(n) || a.kind(n) != b.kind(n) ||
        a.rail(n) != b.rail(n) || a.plane(n) != b.plane(n) || a.host_of(n) != b.host_of(n) ||
        a.name(a.scope(n)) != b.name(b.scope(n)))
      return false;
    if (a.kind(n) == NodeKind::gpu &&
        (a.nic_of(n) != b.nic_of(n) || a.gpu_model(n) != b.gpu_model(n)))
      return false;
  }
  for (const LinkId l : a.links())
    if (a.from(l) != b.from(l) || a.to(l) != b.to(l) || a.rate(l) != b.rate(l) ||
        a.latency(l) != b.latency(l) || a.interface_name(l) != b.interface_name(l))
      return false;
  return true;
}

TEST_CASE("fabrics come back from GraphML") {
  for (const std::string_view yaml :
       {"{generator: ai_zone, racks: 12, spines: 3, uplinks_per_spine: 2}",
        "{generator: three_tier, pods: 3, racks: 4, oversubscription: 7}",
        "{generator: hpn, pods: 2, segments: 2, hosts_per_segment: 3, aggs: 4}",
        "{generator: fat_tree, k: 4}", "{generator: multi_plane, racks: 3, planes: 2}",
        "{generator: dragonfly, p: 2, a: 4, h: 2, g: 9}",
        "{generator: torus, dimensions: [3, 4, 2]}"}) {
    CAPTURE(yaml);
    const Fabric f = make_fabric(yaml);
    const auto back = read_graphml(to_graphml(f), "g.xml");
    REQUIRE_MESSAGE(back.has_value(), (back ? "" : back.error().text()));
    CHECK(same(f, *back));
    CHECK(to_graphml(*back) == to_graphml(f));
  }
}

constexpr std::string_view foreign = R"(<graphml>
  <key id="d0" for="edge" attr.name="rate" attr.type="string"/>
  <key id="d1" for="node" attr.name="label" attr.type="string"/>
  <graph edgedefault="undirected">
    <node id="0"><data key="d1">Bern</data></node>
    <node id="1"/>
    <edge source="0" target="1"><data key="d0">10 Gbps</data></edge>
    <edge source="1" target="0"/>
  </graph>
</graphml>)";

TEST_CASE("graphs of other programs become switches") {
  const auto fabric = read_graphml(foreign, "g.xml", {.rate = 1_Gbps, .limits = {}});
  REQUIRE_MESSAGE(fabric.has_value(), (fabric ? "" : fabric.error().text()));
  CHECK(count(*fabric, "switch") == 2);
  CHECK(fabric->rate(link(*fabric, "n0->n1#1")) == 10_Gbps);
  CHECK(fabric->rate(link(*fabric, "n0->n1#2")) == 1_Gbps);
  CHECK(refuse_graphml(foreign).starts_with("g.xml:8:6: the link has no rate"));
}

TEST_CASE("mistakes are named with their place") {
  struct Mistake {
    std::string_view body, place, what;
  };
  const std::array mistakes{
      Mistake{"<node/>", "g.xml:1:", "has no id"},
      Mistake{"<node id='a'/><node id='a'/>", "g.xml:1:", "duplicate id"},
      Mistake{"<node id='leaf1'/><edge source='leaf1' target='leaf2'/>",
              "g.xml:1:", "did you mean \"leaf1\"?"},
      Mistake{"<hyperedge/>", "g.xml:1:", "<hyperedge> inside <graph>"},
      Mistake{"<node id='a'><port/></node>", "g.xml:1:", "<port> inside <node>"},
      Mistake{"<node id='a'><data key='x'>1</data></node>", "g.xml:1:", "no <key> declares"},
      Mistake{"<node id='a--b'/>", "g.xml:1:", "cannot be a name"},
      Mistake{"", "g.xml:1:1", "no nodes"},
  };
  for (const Mistake& m : mistakes) {
    CAPTURE(m.body);
    const std::string said =
        refuse_graphml("<graphml><graph>" + std::string(m.body) + "</graph></graphml>");
    CHECK_MESSAGE(said.starts_with(m.place), said);
    CHECK_MESSAGE(contains(said, m.what), said);
  }
  const auto with = [](std::string_view name, std::string_view value) {
    return "<graphml><key id='k' attr.name='" + std::string(name) +
           "'/><graph>\n<node id='a'><data key='k'>" + std::string(value) +
           "</data></node></graph></graphml>";
  };
  CHECK(refuse_graphml(with("kind", "swich")).starts_with("g.xml:2:"));
  CHECK(contains(refuse_graphml(with("scope", "zone:x")), "not a place"));
  CHECK(contains(refuse_graphml(with("scope", "rack:0/zone:0")), "scope"));
  CHECK(contains(refuse_graphml(with("rail", "-3")), "not a rail number"));
  CHECK(contains(refuse_graphml("<graphml><graph>"), "not valid XML"));
  CHECK(contains(refuse_graphml("<x/>"), "no <graph>"));
}

}  // namespace
}  // namespace weft::model
