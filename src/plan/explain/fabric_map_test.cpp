#include "plan/explain/fabric_map.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/test_approx.hpp"
#include "model/formats/build_fabric.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::plan {
namespace {

using model::testing::make_fabric;

// Every drawn node in one group, every cable in one edge or inside a group; none lost by folding.
void check_whole(const model::Fabric& fabric, const FabricMap& map, std::size_t groups_max) {
  std::set<model::NodeId> seen;
  for (const FabricMap::Group& group : map.groups)
    for (const model::NodeId node : group.nodes) CHECK(seen.insert(node).second);
  std::size_t nodes = 0, cables = 0, drawn = map.inside, in_layers = 0;
  for (const model::NodeId node : fabric.nodes())
    nodes += fabric.is_switch(node) || fabric.kind(node) == model::NodeKind::host ? 1 : 0;
  for (const model::LinkId link : fabric.links()) cables += fabric.on_wire(link) ? 1 : 0;
  for (const FabricMap::Edge& edge : map.edges) {
    drawn += edge.cables;
    CHECK(edge.upper < edge.lower);
  }
  for (const FabricMap::Layer& layer : map.layers) {
    CHECK(layer.last - layer.first <= groups_max);
    in_layers += layer.nodes;
  }
  CHECK(seen.size() == nodes);
  CHECK(in_layers == nodes);
  CHECK(2 * drawn == cables);
}

// Tags that are opened are closed, in order; attributes have their quotes.
bool is_well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (std::size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    const std::size_t end = svg.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = svg.substr(at + 1, end - at - 1);
    if (std::ranges::count(tag, '"') % 2 != 0) return false;
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
  }
  return open.empty();
}

TEST_CASE("bundles have the highest and the mean load of their links, in JSON too") {
  const auto fabric = make_fabric("{generator: ai_zone, racks: 2, hosts_per_rack: 1, spines: 1}");
  const std::vector<double> even(fabric.link_count(), 0.25), low(fabric.link_count(), 0.125);
  MapLoads loads{.in_interval = even, .in_run = low, .from_s = 1, .to_s = 1.5};
  const auto hot = fabric.find_link({"rtsw:1->ctsw:0", {}});
  REQUIRE(hot.has_value());
  loads.in_interval[hot->index()] = 0.75;
  const FabricMap map = fabric_map(fabric, {}, {}, map_groups_max, loads);
  double most = 0, sum = 0;
  for (const FabricMap::Edge& edge : map.edges) {
    most = std::max(most, edge.load_max);
    sum += edge.load_sum;
    CHECK(edge.load_max == (map.groups[edge.lower].name == "rtsw:1" ? 0.75 : 0.25));
  }
  // 2 cables between switches, 8 to the NICs of each host; two links each.
  CHECK(sum == approx(2 * 18 * 0.25 + 0.5));
  CHECK(most == 0.75);
  CHECK(to_json(map).find("[0,2,1,0,0,") != std::string::npos);
  CHECK(to_json(map).find(",0.75,0.5,0.125]") != std::string::npos);
  CHECK(to_json(map).find("\"from_s\":1,\"to_s\":1.5}") != std::string::npos);
}

TEST_CASE("a small zone is drawn as it is") {
  const auto fabric = make_fabric("{generator: ai_zone, racks: 4, hosts_per_rack: 2, spines: 2}");
  const FabricMap map = fabric_map(fabric, {}, {});
  check_whole(fabric, map, map_groups_max);
  REQUIRE(map.layers.size() == 3);
  CHECK(map.layers[0].role == "ctsw");
  CHECK(map.layers[1].role == "rtsw");
  CHECK(map.layers[2].role == "host");
  CHECK(map.groups.size() == 2 + 4 + 8);
  CHECK(map.edges.size() == 8 + 8);
  CHECK(map.groups[2].name == "rtsw:0");
  CHECK(map.groups[2].label == "0");
  const std::string svg = to_svg(map, "a <zone> & \"more\"");
  CHECK(is_well_formed(svg));
  CHECK(svg.find("a &lt;zone&gt; &amp; &quot;more&quot;") != std::string::npos);
  CHECK(svg == to_svg(fabric_map(fabric, {}, {}), "a <zone> & \"more\""));
}

TEST_CASE("the front end is drawn below the hosts") {
  const auto fabric =
      make_fabric("{generator: ai_zone, racks: 2, hosts_per_rack: 1, spines: 1, frontend: {}}");
  const FabricMap map = fabric_map(fabric, {}, {});
  check_whole(fabric, map, map_groups_max);
  std::string order;
  for (const FabricMap::Layer& layer : map.layers) order += layer.role + " ";
  CHECK(order == "ctsw rtsw host storage rsw fsw ssw ");
}

TEST_CASE("large fabrics are folded, by racks, pods or runs, and lose nothing") {
  for (const char* yaml :
       {"{generator: ai_zone, racks: 252, spines: 18}",
        "{generator: three_tier, pods: 4, racks: 16}", "{generator: fat_tree, k: 16}",
        "{generator: multi_plane, racks: 64, spines: 64, planes: 2}",
        "{generator: torus, dimensions: [4, 4, 8]}",
        "{generator: dragonfly, p: 2, a: 4, h: 2, g: 9}",
        "{generator: torus, dimensions: [4, 4, 8]}"}) {
    CAPTURE(yaml);
    auto section = parse_yaml(yaml, "fabric.yaml");
    REQUIRE(section.has_value());
    const auto built = model::build_fabric(*section);
    REQUIRE_MESSAGE(built.has_value(), (built ? "" : built.error().text()));
    for (const std::size_t most : {std::size_t{1}, std::size_t{7}, map_groups_max}) {
      const FabricMap map = fabric_map(*built, {}, {}, most);
      check_whole(*built, map, most);
      CHECK(is_well_formed(to_svg(map, yaml)));
    }
  }
  const auto zone = make_fabric("{generator: ai_zone, racks: 252, spines: 18}");
  const FabricMap map = fabric_map(zone, {}, {});
  CHECK(map.groups[18].name == "rack:0 to rack:6");
  CHECK(map.groups[18].label == "0-6");
  CHECK(map.layers[1].last - map.layers[1].first == 36);
  CHECK(map.layers[0].folded.empty());
  CHECK(map.layers[1].folded == "by 7 racks");
  CHECK(fabric_map(zone, {}, {}, 9).layers[0].folded == "by 2");
}

TEST_CASE("faults and owners show where they are") {
  const auto fabric = make_fabric("{generator: ai_zone, racks: 60, hosts_per_rack: 2, spines: 2}");
  model::State state;
  state.set(*fabric.find_node({"ctsw:1", {}}), {.health = model::Health::down});
  state.set(*fabric.find_link({"rtsw:3->ctsw:0", {}}), {.health = model::Health::down});
  state.set(*fabric.find_link({"ctsw:0->rtsw:4", {}}), {.loss = 0.01});
  HostOwners owners{.of = std::vector<std::uint32_t>(120, HostOwners::free),
                    .names = {"llama", "bert"}};
  owners.of[4] = 0;  // rack 2
  owners.of[5] = 1;
  owners.of[7] = 1;  // rack 3
  const FabricMap map = fabric_map(fabric, state, owners);
  check_whole(fabric, map, map_groups_max);
  CHECK(map.groups[1].down == 1);
  std::size_t down = 0, degraded = 0;
  for (const FabricMap::Edge& edge : map.edges) {
    down += edge.down;
    degraded += edge.degraded;
  }
  CHECK(down == 1);
  CHECK(degraded == 1);
  const FabricMap::Layer& hosts = map.layers.back();
  CHECK(map.groups[hosts.first + 1].name == "rack:2 to rack:3");
  CHECK(map.groups[hosts.first + 1].owned == std::vector<std::size_t>{1, 2, 1});
  const std::string svg = to_svg(map, "jobs");
  CHECK(is_well_formed(svg));
  for (const char* words :
       {"4 host, 1 llama, 2 bert, 1 free", ">bert</text>", "1 down", "1 degraded"})
    CHECK_MESSAGE(svg.find(words) != std::string::npos, words);
}

}  // namespace
}  // namespace weft::plan
