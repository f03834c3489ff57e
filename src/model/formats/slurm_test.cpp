#include "model/formats/slurm.hpp"

#include <array>

#include "model/formats/test_fabric.hpp"

namespace weft::model {
namespace {

using namespace testing;

SlurmOptions options() {
  return {.host = host_preset("h100", 8, 8), .link = 400_Gbps, .uplink = {}, .limits = {}};
}
Fabric read_slurm(std::string_view text) {
  auto fabric = read_slurm_topology(text, "topology.conf", options());
  REQUIRE_MESSAGE(fabric.has_value(), (fabric ? "" : fabric.error().text()));
  return *std::move(fabric);
}
std::string refuse_slurm(std::string_view text, std::size_t most = 1000) {
  const auto tree = parse_slurm_topology(text, "t.conf", most);
  return tree ? "accepted" : tree.error().text();
}

//        top
//       /   \       .
//      s0    s1     of tux0-3, tux4-5
constexpr std::string_view two_leaves =
    "# a comment\n"
    "SwitchName=s0 Nodes=tux[0-3] LinkSpeed=100 # another\n"
    "switchname=s1 \\\n"
    "  nodes=tux4,tux5\n"
    "\n"
    "SwitchName=top Switches=s[0-1]\n";

TEST_CASE("a tree of switches becomes a fabric") {
  const Fabric f = read_slurm(two_leaves);
  CHECK(f.hosts().size() == 6);
  CHECK(f.gpus().size() == 48);
  CHECK(f.name(f.hosts()[4]) == "tux4");
  CHECK(count(f, "leaf") == 2);
  CHECK(count(f, "spine") == 1);
  CHECK(bps_towards(f, node(f, "s0"), "nic") == 32 * 400'000'000'000);
  CHECK(f.rate(link(f, "s0->top")) == 400_Gbps * 32);
  CHECK(f.rate(link(f, "s1->top")) == 400_Gbps * 16);
  CHECK(f.name(f.enclosing(node(f, "tux5"), ScopeKind::rack)) == "s1");
  CHECK(f.name(f.enclosing(node(f, "tux5"), ScopeKind::pod)) == "top");
  REQUIRE(f.notes().size() == 2);
  CHECK(contains(f.notes()[0], "assumed 400 Gbps from each NIC"));
  CHECK(contains(f.notes()[0], "no oversubscription"));
  CHECK(f.notes()[1].starts_with("topology.conf:2:12: LinkSpeed=100 of switch s0 has no unit"));
}

TEST_CASE("what was imported is exported alike") {
  const auto text = to_slurm_topology(read_slurm(two_leaves));
  REQUIRE_MESSAGE(text.has_value(), (text ? "" : text.error().text()));
  CHECK(*text ==
        "SwitchName=top Switches=s[0-1]\n"
        "SwitchName=s0 Nodes=tux[0-3]\n"
        "SwitchName=s1 Nodes=tux[4-5]\n");
  CHECK(*to_slurm_topology(read_slurm(*text)) == *text);
}

TEST_CASE("spines shared by leaves") {
  const Fabric f = read_slurm(
      "SwitchName=l0 Nodes=n[0-1]\nSwitchName=l1 Nodes=n[2-3]\n"
      "SwitchName=sp0 Switches=l[0-1]\nSwitchName=sp1 Switches=l[0-1]\n");
  CHECK(count(f, "spine") == 2);
  CHECK(f.rate(link(f, "l0->sp1")) == 400_Gbps * 8);
  CHECK(f.scope(node(f, "sp0")) == f.scope(node(f, "sp1")));
  CHECK(!f.enclosing(node(f, "n0"), ScopeKind::pod).valid());
  CHECK(*to_slurm_topology(f) ==
        "SwitchName=region0 Switches=l[0-1]\nSwitchName=l0 Nodes=n[0-1]\n"
        "SwitchName=l1 Nodes=n[2-3]\n");
}

TEST_CASE("every generator exports a tree that reads back with its hosts") {
  for (const std::string_view yaml :
       {"{generator: ai_zone, racks: 5}", "{generator: three_tier, pods: 2, racks: 3}",
        "{generator: hpn, segments: 2, hosts_per_segment: 4, aggs: 2}",
        "{generator: fat_tree, k: 4}", "{generator: rail_only, hosts: 5}",
        "{generator: dragonfly, p: 2, a: 4, h: 2, g: 9}"}) {
    CAPTURE(yaml);
    const Fabric f = make_fabric(yaml);
    const auto text = to_slurm_topology(f);
    REQUIRE_MESSAGE(text.has_value(), (text ? "" : text.error().text()));
    const Fabric back = read_slurm(*text);
    CHECK(back.hosts().size() == f.hosts().size());
    CHECK(*to_slurm_topology(back) == *text);
  }
  CHECK(contains(*to_slurm_topology(make_fabric("{generator: ai_zone, racks: 5}")),
                 "SwitchName=zone0 Switches=rack[0-4]\nSwitchName=rack0 Nodes=host[0-1]\n"));
}

TEST_CASE("hosts beside inner places get a leaf of their own") {
  const Fabric f = make_fabric(R"({scopes: [{kind: zone}, {kind: rack, parent: zone:0}],
    nodes: [{role: host}, {role: host, scope: rack:0}]})");
  CHECK(*to_slurm_topology(f) ==
        "SwitchName=zone0-hosts Nodes=host0\nSwitchName=zone0 Switches=zone0-hosts,rack0\n"
        "SwitchName=rack0 Nodes=host1\n");
}

TEST_CASE("names that Slurm could not tell apart are refused") {
  const auto twins =
      to_slurm_topology(make_fabric("{nodes: [{role: host}, {role: host, name: host0}]}"));
  REQUIRE(!twins.has_value());
  CHECK(contains(twins.error().text(), "would both be called host0"));
  const auto odd = to_slurm_topology(make_fabric("{nodes: [{role: host, name: a@b}]}"));
  REQUIRE(!odd.has_value());
  CHECK(contains(odd.error().text(), "do not allow"));
  CHECK(!to_slurm_topology(make_fabric("{nodes: [{role: nic}]}")).has_value());
}

TEST_CASE("mistakes are named with their place") {
  struct Mistake {
    std::string_view text, place, what;
  };
  const std::array mistakes{
      Mistake{"", "t.conf:1:1", "no switch"},
      Mistake{"SwitchName=a", "t.conf:1:12", "no children"},
      Mistake{"SwitchName=a Nodes=n1 Switches=b", "t.conf:1:12", "both nodes and switches"},
      Mistake{"Nodes=n1", "t.conf:1:1", "no SwitchName"},
      Mistake{"SwitchName=a Nodse=n1", "t.conf:1:14", "did you mean \"nodes\"?"},
      Mistake{"SwitchName=a Nodes=n1 Nodes=n2", "t.conf:1:23", "duplicate"},
      Mistake{"SwitchName=a Nodes=n1\nhello", "t.conf:2:1", "not Key=Value"},
      Mistake{"Include other.conf", "t.conf:1:1", "included lines"},
      Mistake{"BlockName=b1 Nodes=n[0-3]\nSwitchName=s Nodes=m", "t.conf:1:1", "both SwitchName"},
      Mistake{"BlockName=b1 Nodes=n[0-3]\nBlockSizes=4,6", "t.conf:2:12", "not a multiple of 4"},
      Mistake{"BlockName=b1 Nodes=n[0-3]\nBlockSizes=x", "t.conf:2:12", ""},
      Mistake{"SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2", "t.conf:2:12", "on line 1"},
      Mistake{"SwitchName=a Nodes=n[1-2],n2", "t.conf:1:20", "\"n2\" is under"},
      Mistake{"SwitchName=a Nodes=n1\nSwitchName=b Nodes=n1", "t.conf:2:20", "and under a"},
      Mistake{"SwitchName=leaf1 Nodes=n1\nSwitchName=b Switches=leef1", "t.conf:2:23",
              "did you mean \"leaf1\"?"},
      Mistake{"SwitchName=a Nodes=n1\nSwitchName=b Switches=a,a", "t.conf:2:23", "child twice"},
      Mistake{"SwitchName=a Switches=b\nSwitchName=b Switches=a", "t.conf:1:12",
              "its own ancestor"},
      Mistake{"SwitchName=a Switches=a", "t.conf:1:12", "its own ancestor"},
      Mistake{"SwitchName=a Nodes=a", "t.conf:1:12", "a switch and a node"},
      Mistake{"SwitchName=a Nodes=n[3-1]", "t.conf:1:22", "not a range"},
      Mistake{"SwitchName=a Nodes=n[0-1000]", "t.conf:1:", "more than 1000"},
      Mistake{"SwitchName=a Nodes=n--1", "t.conf:1:20", "cannot be a name"},
  };
  for (const Mistake& m : mistakes) {
    CAPTURE(m.text);
    const std::string said = refuse_slurm(m.text);
    CHECK_MESSAGE(said.starts_with(m.place), said);
    CHECK_MESSAGE(contains(said, m.what), said);
  }
}

TEST_CASE("options and sizes are checked") {
  SlurmOptions o = options();
  o.link = {};
  CHECK(!read_slurm_topology(two_leaves, "t", o).has_value());
  o = options();
  o.limits.nodes = 100;
  CHECK(contains(read_slurm_topology(two_leaves, "t", o).error().text(), "limits are 100"));
  o = options();
  o.link = {INT64_MAX};
  CHECK(contains(read_slurm_topology(two_leaves, "t", o).error().text(), "9e18"));
  o = options();
  o.uplink = 100_Gbps;
  CHECK(read_slurm_topology(two_leaves, "t", o)
            ->rate(link(*read_slurm_topology(two_leaves, "t", o), "s0->top")) == 100_Gbps);
  std::string deep = "SwitchName=s0 Nodes=n0\n";
  for (int i = 1; i < 5; ++i)
    deep += "SwitchName=s" + std::to_string(i) + " Switches=s" + std::to_string(i - 1) + "\n";
  CHECK(contains(read_slurm_topology(deep, "t", options()).error().text(), "5 levels above"));
}

}  // namespace
}  // namespace weft::model
