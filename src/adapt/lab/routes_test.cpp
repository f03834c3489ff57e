#include "adapt/lab/routes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "adapt/lab/lab_test_fabric.hpp"

namespace weft::adapt::lab {
namespace {

using testing::make_fabric;
using testing::make_plan_of;
using testing::two_by_two;

std::size_t group_of(const Routes& routes, Ipv4 address) {
  for (std::size_t g = 0; g < routes.groups().size(); ++g)
    if (std::ranges::binary_search(routes.groups()[g].addresses, address)) return g;
  return routes.groups().size();
}

// Names of the next switches from `at` towards a NIC.
std::vector<std::string> next(const model::Fabric& fabric, const LabPlan& plan,
                              const Routes& routes, std::string_view at, Ipv4 address) {
  std::vector<std::string> out;
  for (const EndId end :
       routes.next_hops(testing::node(plan, fabric, at), group_of(routes, address)))
    out.push_back(plan.node_of(end.peer()).name);
  std::ranges::sort(out);
  return out;
}

using Names = std::vector<std::string>;
constexpr Ipv4 nic0 = 0x0A000001, nic1 = 0x0A000002;

TEST_CASE("routes of the smallest zone, drained and not") {
  const model::Fabric fabric = make_fabric(two_by_two);
  const LabPlan plan = make_plan_of(fabric);
  const Routes all = Routes::shortest(plan);
  CHECK(all.groups().size() == 2);
  CHECK(next(fabric, plan, all, "rtsw:0", nic1) == Names{"ctsw:0", "ctsw:1"});
  CHECK(next(fabric, plan, all, "ctsw:0", nic1) == Names{"rtsw:1"});
  CHECK(next(fabric, plan, all, "rtsw:1", nic1).empty());

  const LabNodeId ctsw0 = testing::node(plan, fabric, "ctsw:0");
  const Routes without = Routes::shortest(plan, {.nodes = {ctsw0}, .cables = {}});
  CHECK(next(fabric, plan, without, "rtsw:0", nic1) == Names{"ctsw:1"});
  CHECK(next(fabric, plan, without, "ctsw:1", nic0) == Names{"rtsw:0"});
}

TEST_CASE("a drained cable leaves its far end a detour that no packet between NICs meets") {
  const model::Fabric fabric =
      make_fabric("{generator: ai_zone, racks: 3, hosts_per_rack: 1, gpus_per_host: 1, spines: 2}");
  const LabPlan plan = make_plan_of(fabric);
  const auto cable = plan.find_cable(fabric, {"rtsw:0--ctsw:0", {}});
  REQUIRE(cable.has_value());
  const Routes routes = Routes::shortest(plan, {.nodes = {}, .cables = {*cable}});
  CHECK(next(fabric, plan, routes, "rtsw:1", nic0) == Names{"ctsw:1"});
  CHECK(next(fabric, plan, routes, "ctsw:0", nic0) == Names{"rtsw:1", "rtsw:2"});
  const Routes met = routes.met_by_traffic(plan);
  CHECK(next(fabric, plan, met, "ctsw:0", nic0).empty());
  CHECK(next(fabric, plan, met, "ctsw:0", nic1) == Names{"rtsw:1"});
  CHECK(next(fabric, plan, met, "rtsw:1", nic0) == Names{"ctsw:1"});
}

//   nic:0   nic:1    both NICs on both switches
//    | \   / |
//    |  \ /  |
//   tor:0  tor:1
//      \   /
//      tor:2 -- nic:2
TEST_CASE("a NIC on two switches is reached through both, and through one when one is drained") {
  const model::Fabric fabric = make_fabric(
      "{rate: 1 Gbps, nodes: [{role: nic, count: 3}, {role: tor, count: 3}], links: "
      "[\"nic:0..1--tor:0..1\", \"nic:2--tor:2\", \"tor:0..1--tor:2\"]}");
  const LabPlan plan = make_plan_of(fabric);
  const Routes all = Routes::shortest(plan);
  CHECK(all.groups().size() == 2);
  CHECK(next(fabric, plan, all, "tor:2", nic0) == Names{"tor:0", "tor:1"});
  const Routes without =
      Routes::shortest(plan, {.nodes = {testing::node(plan, fabric, "tor:0")}, .cables = {}});
  CHECK(next(fabric, plan, without, "tor:2", nic0) == Names{"tor:1"});
  // What hangs on a drained switch alone still hangs there.
  const Routes last =
      Routes::shortest(plan, {.nodes = {testing::node(plan, fabric, "tor:2")}, .cables = {}});
  CHECK(next(fabric, plan, last, "tor:0", 0x0A000003) == Names{"tor:2"});
}

// Every path that the next hops make leads to the NIC's switch in as many steps as the distance.
TEST_CASE("next hops are the shortest paths, and all of them") {
  for (const char* yaml : {"{generator: fat_tree, k: 4}",
                           "{generator: ai_zone, racks: 5, hosts_per_rack: 1, gpus_per_host: 2, "
                           "spines: 3}"}) {
    const model::Fabric fabric = make_fabric(yaml);
    const LabPlan plan = make_plan_of(fabric);
    const Routes routes = Routes::shortest(plan);
    for (std::size_t g = 0; g < routes.groups().size(); ++g) {
      const std::vector<int> distance = switch_distances(plan, routes.groups()[g].attached);
      for (const LabNodeId at : plan.switches()) {
        std::set<EndId> nearer;
        for (const EndId end : plan.nodes[at].ends) {
          const LabNodeId to = plan.end(end.peer()).node;
          if (plan.nodes[to].is_switch() && distance[to.index()] == distance[at.index()] - 1)
            nearer.insert(end);
        }
        const auto hops = routes.next_hops(at, g);
        CHECK(std::set<EndId>(hops.begin(), hops.end()) == nearer);
        CHECK(routes.reaches(at, g));
      }
    }
  }
}

std::set<std::uint32_t> asns(const LabPlan& plan, const model::Fabric& fabric,
                             std::string_view role) {
  std::set<std::uint32_t> out;
  for (const LabNodeId node : plan.switches())
    if (fabric.role_name(plan.nodes[node].node) == role) out.insert(plan.nodes[node].asn);
  return out;
}

TEST_CASE("spines of a zone share an ASN, racks have one each") {
  const model::Fabric fabric =
      make_fabric("{generator: ai_zone, racks: 4, hosts_per_rack: 1, gpus_per_host: 1, spines: 3}");
  const LabPlan plan = make_plan_of(fabric);
  CHECK(asns(plan, fabric, "rtsw").size() == 4);
  CHECK(asns(plan, fabric, "ctsw").size() == 1);
}

// An ASN that stands in a path twice makes BGP refuse the path.
TEST_CASE("no shortest path between NICs visits an ASN twice") {
  for (const char* yaml :
       {"{generator: fat_tree, k: 4}", "{generator: fat_tree, k: 6}",
        "{generator: ai_zone, racks: 4, hosts_per_rack: 1, gpus_per_host: 1, spines: 3}",
        // A chain of hostless switches of one role: they must not share.
        "{rate: 1 Gbps, nodes: [{role: nic, count: 2}, {role: tor, count: 2}, {role: mid, count: "
        "3}], links: [\"nic:0--tor:0\", \"nic:1--tor:1\", \"tor:0--mid:0\", \"mid:0--mid:1\", "
        "\"mid:1--mid:2\", \"mid:2--tor:1\"]}"}) {
    CAPTURE(yaml);
    const model::Fabric fabric = make_fabric(yaml);
    const LabPlan plan = make_plan_of(fabric);
    const Routes routes = Routes::shortest(plan);
    // Depth first over all paths; these fabrics are small.
    const auto walk = [&](auto&& self, LabNodeId at, std::size_t group,
                          std::vector<std::uint32_t> met) -> void {
      CHECK(std::ranges::find(met, plan.nodes[at].asn) == met.end());
      met.push_back(plan.nodes[at].asn);
      for (const EndId end : routes.next_hops(at, group))
        self(self, plan.end(end.peer()).node, group, met);
    };
    for (std::size_t g = 0; g < routes.groups().size(); ++g)
      for (const NicGroup& from : routes.groups())
        for (const LabNodeId start : from.attached) walk(walk, start, g, {});
  }
}

}  // namespace
}  // namespace weft::adapt::lab
