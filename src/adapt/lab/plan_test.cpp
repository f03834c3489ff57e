#include "adapt/lab/plan.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include "adapt/lab/lab_test_fabric.hpp"

namespace weft::adapt::lab {
namespace {

using testing::make_fabric;
using testing::make_plan_of;
using testing::two_by_two;

constexpr std::array<std::string_view, 6> fabrics{
    two_by_two,
    "{generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 8, spines: 3}",
    "{generator: fat_tree, k: 4}",
    "{generator: rail_optimized, groups: 2, gpus_per_host: 4, spines: 2, hosts_per_group: 2}",
    "{nodes: [{role: nic, count: 4}, {role: tor, count: 2}], "
    "rate: 100 Gbps, links: [\"nic:0..1--tor:0\", \"nic:2..3--tor:1\", \"tor:0--tor:1\"]}",
    "{nodes: [{role: nic, count: 2}, {role: tor, count: 2}], "
    "rate: 100 Gbps, links: [\"nic:0..1--tor:0..1\", \"tor:0--tor:1\", \"tor:0--tor:1\"]}",
};

std::string refusal(std::string_view yaml, const PlanOptions& options = {}) {
  const auto plan = make_plan(make_fabric(yaml), options);
  return plan ? "accepted" : plan.error().text();
}

TEST_CASE("names, addresses and MACs are unique and fit the kernel's bounds") {
  for (const std::string_view yaml : fabrics) {
    CAPTURE(yaml);
    const model::Fabric fabric = make_fabric(yaml);
    const LabPlan plan = make_plan_of(fabric);
    std::set<std::string> netns;
    std::set<std::pair<LabNodeId, std::string>> interfaces;
    std::set<Mac> macs;
    std::set<Ipv4> addresses;
    for (const LabNode& node : plan.nodes) {
      CHECK(netns.insert(node.netns).second);
      CHECK(node.netns.size() <= 255);
      CHECK(node.netns.find_first_of("/: ") == std::string::npos);
      if (node.is_switch()) {
        CHECK(addresses.insert(node.loopback).second);
        CHECK(addresses.insert(node.management).second);
      }
    }
    std::set<std::pair<model::NodeId, Ipv4>> nics;
    for (const LabCable& cable : plan.cables)
      for (const CableEnd& end : cable.ends) {
        CHECK(!end.interface.empty());
        CHECK(end.interface.size() <= interface_length_max);
        CHECK(end.interface.find_first_of("/: ") == std::string::npos);
        CHECK(interfaces.insert({end.node, end.interface}).second);
        CHECK(macs.insert(end.mac).second);
        if (fabric.is_switch(end.device)) {
          CHECK(addresses.insert(end.address).second);
        } else {
          CHECK(end.address == fabric.address(end.device));
          nics.insert({end.device, end.address});
        }
      }
    for (const auto& [nic, address] : nics) CHECK(addresses.insert(address).second);
  }
}

TEST_CASE("both ends of a cable belong together, and every node lists its ends") {
  for (const std::string_view yaml : fabrics) {
    CAPTURE(yaml);
    const model::Fabric fabric = make_fabric(yaml);
    const LabPlan plan = make_plan_of(fabric);
    std::size_t listed = 0;
    for (std::size_t i = 0; i < plan.nodes.size(); ++i)
      for (const EndId id : plan.nodes[LabNodeId(i)].ends) {
        CHECK(plan.end(id).node == LabNodeId(i));
        CHECK(plan.end(id).link == model::reverse(plan.end(id.peer()).link));
        CHECK(fabric.from(plan.end(id).link) == plan.end(id).device);
        CHECK(plan.lab_of[plan.end(id).device] == LabNodeId(i));
        ++listed;
      }
    CHECK(listed == 2 * plan.cables.size());
    for (const LabCable& cable : plan.cables)
      if (!cable.to_host) CHECK((cable.ends[0].address ^ cable.ends[1].address) == 1);  // one /31
  }
}

TEST_CASE("the same fabric gives the same plan") {
  const model::Fabric fabric = make_fabric(fabrics[1]);
  const LabPlan a = make_plan_of(fabric);
  const LabPlan b = make_plan_of(fabric);
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    CHECK(a.nodes[LabNodeId(i)].netns == b.nodes[LabNodeId(i)].netns);
    CHECK(a.nodes[LabNodeId(i)].asn == b.nodes[LabNodeId(i)].asn);
    CHECK(a.nodes[LabNodeId(i)].hash_seed == b.nodes[LabNodeId(i)].hash_seed);
  }
}

TEST_CASE("what the smallest zone becomes") {
  const model::Fabric fabric = make_fabric(two_by_two);
  const LabPlan plan = make_plan_of(fabric);
  CHECK(plan.switch_count == 4);
  CHECK(plan.nodes.size() == 6);
  CHECK(plan.cables.size() == 6);
  const LabNode& rtsw = plan.nodes[testing::node(plan, fabric, "rtsw:1")];
  CHECK(rtsw.netns == "weft-test-rtsw-1");
  CHECK(plan.end(rtsw.ends[0]).interface == "Ethernet1-0");
  const LabNode& host = plan.nodes[testing::node(plan, fabric, "host:1")];
  CHECK(plan.end(host.ends[0]).interface == "nic0");
  CHECK(ipv4_text(plan.end(host.ends[0]).address) == "10.0.0.2");
  CHECK(testing::node(plan, fabric, "nic:1") == testing::node(plan, fabric, "host:1"));
}

TEST_CASE("seeds differ, unless they shall not") {
  const model::Fabric fabric = make_fabric(fabrics[1]);
  const auto distinct = [&](HashSeeds seeds) {
    std::set<std::uint32_t> out;
    const LabPlan plan = make_plan_of(fabric, seeds);
    for (const LabNodeId node : plan.switches()) out.insert(plan.nodes[node].hash_seed);
    return out.size();
  };
  CHECK(distinct(HashSeeds::distinct) == 7);
  CHECK(distinct(HashSeeds::equal) == 1);
}

TEST_CASE("names that a kernel could not have are replaced") {
  const model::Fabric fabric = make_fabric(
      "{rate: 1 Gbps, nodes: [{role: nic, count: 2}, {role: tor, name: \"a.b:c\"}, {role: tor, "
      "name: " +
      std::string(180, 'x') + "}, {role: tor, name: " + std::string(180, 'x') + "y}], " +
      "links: [\"nic:0--a.b:c\", \"nic:1--tor:1\", \"a.b:c--tor:1\", \"a.b:c--tor:2\", "
      "{link: \"tor:1--tor:2\", interface_a: \"a-name-of-30-characters-or-more\", "
      "interface_b: lo}]}");
  const LabPlan plan = make_plan_of(fabric);
  std::set<std::string> netns;
  for (const LabNode& node : plan.nodes) CHECK(netns.insert(node.netns).second);
  for (const LabCable& cable : plan.cables)
    for (const CableEnd& end : cable.ends) {
      CHECK(end.interface.size() <= interface_length_max);
      CHECK(end.interface != "lo");
    }
}

TEST_CASE("fabrics that cannot be a lab are refused, with what to do") {
  CHECK(refusal("{generator: ai_zone, racks: 990, hosts_per_rack: 1, gpus_per_host: 1, spines: 11}")
            .find("1001 switches, more than 1000") != std::string::npos);
  CHECK(refusal("{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, spines: 2, "
                "frontend: {}}")
            .find("remove `frontend:`") != std::string::npos);
  CHECK(refusal("{rate: 1 Gbps, nodes: [{role: nic, count: 2}], links: [\"nic:0--nic:1\"]}")
            .find("connects two NICs") != std::string::npos);
  for (const char* name : {"", "A", "a-b", "a/b", "../x", "thirteen_char"})
    CHECK(refusal(two_by_two, {.lab = name}).find("is not a valid lab name") != std::string::npos);
}

TEST_CASE("cables and directions are found by name; what is no part of the lab is not") {
  const model::Fabric fabric = make_fabric(two_by_two);
  const LabPlan plan = make_plan_of(fabric);
  const auto sender = plan.find_sender(fabric, {"ctsw:1->rtsw:0", {}});
  REQUIRE(sender.has_value());
  CHECK(plan.node_of(*sender).name == "ctsw:1");
  CHECK(plan.node_of(sender->peer()).name == "rtsw:0");
  const auto cable = plan.find_cable(fabric, {"rtsw:0--ctsw:1", {}});
  REQUIRE(cable.has_value());
  CHECK(*cable == sender->cable);
  CHECK(!plan.find_node(fabric, {"gpu:0", {}}).has_value());
  CHECK(!plan.find_node(fabric, {"rtsw:7", {}}).has_value());
  CHECK(!plan.find_cable(fabric, {"rtsw:0--rtsw:1", {}}).has_value());
}

}  // namespace
}  // namespace weft::adapt::lab
