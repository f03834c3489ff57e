#include <array>

#include "model/formats/test_fabric.hpp"

namespace weft::model {
namespace {

using namespace testing;

constexpr std::array small_fabrics{
    "{generator: ai_zone, racks: 2, spines: 2, gpus_per_host: 2, uplinks_per_spine: 2}",
    "{generator: three_tier, pods: 2, racks: 2, gpus_per_host: 2, ctsws: 2, atsws: 2}",
    "{generator: hpn, pods: 2, segments: 2, hosts_per_segment: 2, gpus_per_host: 2, aggs: 2,"
    " core_uplinks: 2, cores: 2}",
    "{generator: fat_tree, k: 4}",
    "{generator: rail_optimized, groups: 2, hosts_per_group: 2, gpus_per_host: 2, spines: 2}",
    "{generator: rail_only, hosts: 2, gpus_per_host: 2}",
    "{generator: multi_plane, planes: 2, racks: 2, gpus_per_host: 2, spines: 2}",
    "{generator: dragonfly, p: 2, a: 2, h: 2, g: 3, gpus_per_host: 2}",
};

TEST_CASE("every name finds its thing again, in every generator") {
  for (const char* const yaml : small_fabrics) {
    CAPTURE(yaml);
    const Fabric f = make_fabric(yaml);
    for (const NodeId node : f.nodes()) {
      const std::string name = f.name(node);
      REQUIRE_MESSAGE(f.find_node({name, {}}).has_value(), name);
      CHECK(*f.find_node({name, {}}) == node);
    }
    for (const LinkId link : f.links()) {
      const std::string name = f.name(link);
      REQUIRE_MESSAGE(f.find_link({name, {}}).has_value(), name);
      CHECK(*f.find_link({name, {}}) == link);
      const std::string port = f.name(f.from(link)) + "/" + std::to_string(f.port(link));
      CHECK(*f.find_cable({port, {}}) == cable_of(link));
    }
    for (const CableId cable : ids<CableId>(f.cable_count()))
      CHECK(*f.find_cable({f.name(cable), {}}) == cable);
    for (const ScopeId scope : ids<ScopeId>(f.scopes().size()))
      CHECK(*f.find_scope({f.name(scope), {}}) == scope);
  }
}

TEST_CASE("a bare number is a GPU index, blanks around names do not matter") {
  const Fabric f = make_fabric(small_fabrics[0]);
  CHECK(*f.find_node({"3", {}}) == f.gpus()[3]);
  CHECK(*f.find_node({" ctsw:1 ", {}}) == node(f, "ctsw:1"));
}

TEST_CASE("scope/role:index counts inside the scope") {
  const Fabric f = make_fabric(small_fabrics[1]);  // 2 pods x 2 racks x 2 hosts x 2 GPUs
  CHECK(*f.find_node({"pod:1/rtsw:0", {}}) == node(f, "rtsw:2"));
  CHECK(*f.find_node({"rack:3/gpu:1", {}}) == node(f, "gpu:13"));
  CHECK(*f.find_node({"host:7/nic:1", {}}) == node(f, "nic:15"));
  CHECK(*f.find_node({"building:0/atsw:3", {}}) == node(f, "atsw:3"));
  CHECK(*f.find_cable({"pod:1/rtsw:0/0", {}}) == *f.find_cable({"rtsw:2/0", {}}));
}

TEST_CASE("racks that a topology calls otherwise have both names") {
  const Fabric f = make_fabric(small_fabrics[2]);
  CHECK(*f.find_scope({"segment:3", {}}) == *f.find_scope({"rack:3", {}}));
  CHECK(f.name(*f.find_scope({"rack:3", {}})) == "segment:3");
}

TEST_CASE("parallel links need their number") {
  const Fabric f = make_fabric(small_fabrics[0]);
  const auto both = f.links_between(node(f, "rtsw:0"), node(f, "ctsw:1"));
  REQUIRE(both.size() == 2);
  CHECK(*f.find_link({"rtsw:0->ctsw:1#2", {}}) == both[1]);
  CHECK(*f.find_link({"ctsw:1->rtsw:0#2", {}}) == reverse(both[1]));
  CHECK(*f.find_cable({"ctsw:1--rtsw:0#1", {}}) == cable_of(both[0]));
  const auto bare = f.find_link({"rtsw:0->ctsw:1", {}});
  REQUIRE_FALSE(bare.has_value());
  CHECK(bare.error().code == Errc::unknown);
  CHECK(bare.error().text() == "2 links run from rtsw:0 to ctsw:1; append #1 to #2 to select one");
  CHECK_FALSE(f.find_link({"rtsw:0->ctsw:1#3", {}}).has_value());
  CHECK_FALSE(f.find_link({"rtsw:0->ctsw:1#0", {}}).has_value());
}

TEST_CASE("errors say where, what and what is near") {
  const Fabric f = make_fabric(small_fabrics[0]);
  const Where where{"flows.csv", 3, 7};
  const auto node_error = [&](std::string_view text) {
    const auto found = f.find_node({text, where});
    REQUIRE_FALSE(found.has_value());
    CHECK(found.error().code == Errc::unknown);
    return found.error().text();
  };
  CHECK(contains(node_error("rtws:1"),
                 "flows.csv:3:7: unknown node \"rtws:1\" (did you mean \"rtsw\"?)"));
  CHECK(contains(node_error("ctsw:2"), "there are 2 ctsw; choose an index from 0 to 1"));
  CHECK(contains(node_error("8"), "there are 8 gpu (a bare number is a GPU index)"));
  CHECK(contains(node_error("-1"), "unknown node"));
  CHECK(contains(node_error(""), "unknown node"));
  CHECK(contains(node_error("ctsw"), "role:index"));
  CHECK(contains(node_error("ctsw:"), "role:index"));
  CHECK(contains(node_error("ctsw:99999999999999"), "role:index"));
  CHECK(contains(node_error("rack:7/rtsw:0"), "there are 2 rack"));
  CHECK(contains(node_error("rack:1/rtsw:1"), "there is 1 rtsw in rack:1"));
  CHECK(contains(node_error("rack:1/ctsw:0"), "there is no ctsw in rack:1"));
  CHECK(contains(node_error("rakc:1/rtsw:0"), "did you mean \"rack\"?"));
  CHECK(contains(node_error("/rtsw:0"), "unknown scope"));
  CHECK(node_error(std::string(100'000, 'x')).size() < 300);

  const auto link = f.find_link({"rtsw:0->rtsw:1", where});
  CHECK(contains(link.error().text(),
                 "no link connects rtsw:0 and rtsw:1; rtsw:0 is linked to nic:0"));
  CHECK(contains(f.find_link({"rtsw:0", where}).error().text(), "write it as \"a->b\""));
  CHECK(contains(f.find_cable({"rtsw:0--ctws:1", where}).error().text(), "did you mean \"ctsw\""));
  CHECK(contains(f.find_cable({"rtsw:0/99", where}).error().text(), "port on rtsw:0"));
  CHECK(contains(f.find_scope({"pod:0", where}).error().text(), "kinds zone, rack, host"));
}

TEST_CASE("given names win, and may hold what the grammar uses") {
  FabricBuilder b;
  const ScopeId zone = b.add_scope(ScopeKind::zone, ScopeId{}, "ASH1");
  const auto add = [&](std::string_view name) {
    return b.add_node({NodeKind::fabric_switch, "tor", zone, {}, no_lane, no_lane, name});
  };
  const NodeId a = add("leaf-1"), c = add("row--2/leaf"), d = add("7"), e = add("");
  b.add_circuit(a, c, {400_Gbps, 0_ps});
  b.add_circuit(c, d, {400_Gbps, 0_ps});
  const Fabric f = b.freeze();
  CHECK(f.name(a) == "leaf-1");
  CHECK(f.name(e) == "tor:3");
  CHECK(*f.find_node({"tor:0", {}}) == a);
  CHECK(*f.find_node({"7", {}}) == d);
  CHECK(*f.find_node({"ASH1/tor:1", {}}) == c);
  CHECK(*f.find_cable({"leaf-1--row--2/leaf", {}}) == CableId(0));
  CHECK(*f.find_cable({"row--2/leaf--7", {}}) == CableId(1));
  CHECK(contains(f.find_node({"leaf-2", {}}).error().text(), "did you mean \"leaf-1\"?"));
  CHECK(f.name(zone) == "ASH1");
  CHECK(*f.find_scope({"zone:0", {}}) == zone);
}

}  // namespace
}  // namespace weft::model
