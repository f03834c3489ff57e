#include "model/formats/cable_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/file.hpp"
#include "base/test_folder.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::model {
namespace {

using namespace testing;

std::string device_of(const Fabric& fabric, NodeId node) {
  std::string name = fabric.name(fabric.is_switch(node) ? node : fabric.host_of(node));
  std::ranges::replace(name, ':', '.');
  return name;
}
std::string port_of(const Fabric& fabric, LinkId link) {
  const NodeId node = fabric.from(link);
  if (fabric.is_switch(node)) return fmt::format("Ethernet1/{}", fabric.port(link));
  const auto nics = fabric.nics_of(fabric.host_of(node));
  return fmt::format("nic{}/{}", std::ranges::find(nics, node) - nics.begin(), fabric.port(link));
}
bool is_network(const Fabric& fabric, LinkId link) {
  return fabric.on_wire(link) && fabric.role_name(fabric.from(link)) != "fe_nic" &&
         fabric.role_name(fabric.to(link)) != "fe_nic";
}

// Header, then a cable a line: device, port, device, port, rate, length.
struct ListForm {
  std::string_view header;
  std::string (*line)(std::string a, std::string a_port, std::string b, std::string b_port,
                      Rate rate);
};
const std::array list_forms{
    ListForm{"a_device,a_port,b_device,b_port,rate,length,kind\n",
             [](auto a, auto ap, auto b, auto bp, Rate r) {
               return fmt::format("{},{},{},{},{} Gbps,30 m,aoc\n", a, ap, b, bp,
                                  r.bps / 1'000'000'000);
             }},
    ListForm{"side_a_device,side_a_type,side_a_name,side_b_device,side_b_type,side_b_name,type,"
             "status,length,length_unit\n",
             [](auto a, auto ap, auto b, auto bp, Rate) {
               return fmt::format("{},dcim.interface,{},{},dcim.interface,{},aoc,connected,98,ft\n",
                                  b, bp, a, ap);
             }},
    ListForm{"ID,Label,Termination A,Termination B,Device A,Device B,Status,Type,Length\n",
             [](auto a, auto ap, auto b, auto bp, Rate) {
               return fmt::format("1,\"x, y\",{},{},{},{},Connected,AOC,30 Meters\n", ap, bp, a, b);
             }},
};

std::string list_of(const Fabric& fabric, const ListForm& form) {
  std::string out(form.header);
  for (std::size_t i = fabric.link_count(); i > 0; --i) {  // any order
    const LinkId link(i - 1);
    if (fabric.from(link) > fabric.to(link) || !is_network(fabric, link)) continue;
    out += form.line(device_of(fabric, fabric.from(link)), port_of(fabric, link),
                     device_of(fabric, fabric.to(link)), port_of(fabric, reverse(link)),
                     fabric.rate(link));
  }
  return out;
}
std::multiset<std::string> network_of(const Fabric& fabric) {
  std::multiset<std::string> out;
  for (const LinkId link : fabric.links())
    if (is_network(fabric, link))
      out.insert(fmt::format("{} -> {} {}", device_of(fabric, fabric.from(link)),
                             device_of(fabric, fabric.to(link)), fabric.rate(link).bps));
  return out;
}

Result<Fabric> try_list(std::string_view text, const std::string& keys = "",
                        std::string_view roles = "") {
  const TestFolder folder;
  const std::string path = folder.path() + "/cables.csv";
  REQUIRE(write_file(path, text).has_value());
  REQUIRE(write_file(folder.path() + "/roles.csv", roles).has_value());
  const std::string more = roles.empty() ? "" : ", roles: " + folder.path() + "/roles.csv";
  return try_fabric("{file: " + path + more + keys + "}");
}
std::string refuse_list(std::string_view text, const std::string& keys = "",
                        std::string_view roles = "") {
  const auto fabric = try_list(text, keys, roles);
  return fabric ? "accepted" : fabric.error().text();
}

TEST_CASE("a fabric's cables in each form make the same fabric, link by link") {
  for (const std::string_view yaml :
       {"{generator: ai_zone, racks: 12, spines: 4, uplink: 400 Gbps}",
        "{generator: rail_optimized, groups: 3, hosts_per_group: 4, uplink: 400 Gbps}",
        "{generator: multi_plane, planes: 2, racks: 3, link: 800 Gbps, uplink: 400 Gbps}",
        "{generator: fat_tree, k: 4}"}) {
    for (const ListForm& form : list_forms) {
      CAPTURE(yaml);
      CAPTURE(form.header);
      const Fabric fabric = make_fabric(yaml);
      std::string roles = "device,role\n";
      for (const NodeId node : fabric.nodes())
        if (fabric.is_switch(node))
          roles += device_of(fabric, node) + "," + fabric.role_name(node) + "\n";
      const auto back = try_list(list_of(fabric, form),
                                 fmt::format(", gpus_per_host: {}, rate: 400 Gbps",
                                             fabric.gpus_of(fabric.hosts()[0]).size()),
                                 roles);
      REQUIRE_MESSAGE(back.has_value(), back.error().text());
      CHECK(network_of(*back) == network_of(fabric));
      CHECK(back->gpus().size() == fabric.gpus().size());
      CHECK(back->nics().size() == fabric.nics().size());
      CHECK(back->notes().empty());
      for (const Fabric::Role& role : fabric.roles())
        if (role.kind == NodeKind::fabric_switch)
          CHECK(count(*back, role.name) == role.nodes.size());
      for (const ScopeKind kind : {ScopeKind::rack, ScopeKind::pod})
        CHECK(std::ranges::count(back->scopes(), kind, &Fabric::Scope::kind) ==
              std::ranges::count(fabric.scopes(), kind, &Fabric::Scope::kind));
    }
  }
}

constexpr std::string_view two_hosts =
    "a_device,a_port,b_device,b_port,rate,length,kind\n"
    "dgx 1,eth0,Leaf 1,1,400 Gbps,,\n"
    "dgx 2,eth0,Leaf 1,2,400 Gbps,300 m,smf\n"
    "mystery,x,Leaf 1,3,400 Gbps,3000 cm,\n"
    "dgx 2,psu1,pdu-a,1,,,power\n";

TEST_CASE("hosts and switches are told apart by role, name and number of NICs") {
  CHECK(contains(refuse_list(two_hosts), "cables.csv:4:1: is \"mystery\" a host or a switch?"));
  const auto by_count = try_list(two_hosts, ", nics_per_host: 1");
  REQUIRE(by_count.has_value());
  CHECK(by_count->hosts().size() == 3);
  CHECK(by_count->name(by_count->hosts()[0]) == "dgx_1");
  CHECK(contains(by_count->notes()[0], "power and console cables, left out: line 5"));
  const auto by_role = try_list(two_hosts, "", "device,role\nmystery,border\n");
  REQUIRE(by_role.has_value());
  CHECK(by_role->hosts().size() == 2);
  CHECK(count(*by_role, "border") == 1);
  CHECK(by_role->role_name(node(*by_role, "Leaf_1")) == "leaf");
  const auto ignored = try_list(two_hosts, "", "device,role\nmystery,ignore\n");
  REQUIRE(ignored.has_value());
  CHECK_FALSE(ignored->find_node({"mystery", {}}).has_value());
  // 500 ns hold 100 m; 200 m more are 1 us.
  CHECK(ignored->latency(link(*ignored, "nic:0->Leaf_1")) == 500_ns);
  CHECK(ignored->latency(link(*ignored, "nic:1->Leaf_1")) == 1500_ns);
}

// Two leaves under two spines, leaf1 with three cables up; bay-sw and leaf3 have storage only, one
// under a spine, the other under leaf1.
TEST_CASE("what is odd is told, and where storage stands") {
  const auto fabric = try_list(
      "a_device,a_port,b_device,b_port\n"
      "gpu1,a,leaf1,1\ngpu1,b,leaf2,1\ngpu2,a,leaf1,2\ngpu2,b,leaf2,2\n"
      "leaf1,5,spine1,1\nleaf1,6,spine1,2\nleaf1,7,spine2,1\n"
      "leaf2,5,spine1,3\nleaf2,6,spine2,2\n"
      "store1,a,bay-sw,1\nbay-sw,2,spine1,9\n"
      "store2,a,leaf3,1\nleaf3,2,leaf1,8\n"
      "gpu1,c,gpu2,c\ngpu3,a,leaf1,9\n"
      "spare-sw1,1,spare-sw2,1\nleaf2,20,leaf2,21\n",
      ", rate: 100 Gbps, nics_per_host: 3");
  REQUIRE_MESSAGE(fabric.has_value(), fabric.error().text());
  const auto role = [&](std::string_view name) { return fabric->role_name(node(*fabric, name)); };
  CHECK(role("leaf1") == "leaf");
  CHECK(role("spine2") == "spine");
  CHECK(role("bay-sw") == "leaf");
  CHECK(role("leaf3") == "spine");
  CHECK(role("spare-sw1") == "unconnected");
  CHECK(role("gpu3") == "other");
  std::string notes;
  for (const std::string& note : fabric->notes()) notes += note + "\n";
  for (const std::string_view part :
       {"because they do not have 3 NICs (nics_per_host): store1 (1), store2 (1), gpu3 (1)\n",
        "from a device to itself, left out: leaf2[20]--leaf2[21]\n",
        "cables between two hosts: gpu1[c]--gpu2[c]\n",
        "switches that are connected to no host: spare-sw1, spare-sw2\n",
        "leaf switches with more or less than 4 cables upwards: leaf2 (2), bay-sw (1)\n"})
    CHECK_MESSAGE(contains(notes, part), notes);
}

TEST_CASE("mistakes in a list are named with their place") {
  const std::string head = "a_device,a_port,b_device,b_port,rate,length\n";
  const auto says = [&](std::string_view lines, std::string_view place, std::string_view what,
                        std::string_view roles = "") {
    const std::string said = refuse_list(head + std::string(lines), "", roles);
    CHECK_MESSAGE(contains(said, place), said);
    CHECK_MESSAGE(contains(said, what), said);
  };
  says("", "cables.csv:1:1: ", "no cable");
  says("gpu1,1,leaf1,1,400,\n", "cables.csv:2:16: ", "no unit");
  says("gpu1,1,leaf1,1,0 Gbps,\n", "cables.csv:2:16: ", "above 0");
  says("gpu1,1,leaf1,1,,\n", "cables.csv:2:1: ", "the cable has no rate");
  says("gpu1,1,leaf1,1,1 Gbps,30\n", "cables.csv:2:23: ", "\"30\" is not a length");
  says("gpu1,1,leaf1,1,1 Gbps,30 yd\n", "cables.csv:2:23: ", "not a length");
  says("gpu1,1,leaf1,1,1 Gbps,\nleaf1,1,gpu1,2,1 Gbps,\n",
       "cables.csv:3:7: ", "port \"1\" of \"leaf1\" already has the cable of line 2");
  says("gpu1,,leaf1,1,1 Gbps,\n", "cables.csv:2:6: ", "missing");
  says("gpu1,\"1,2\",leaf1,1,1 Gbps,\n", "cables.csv:2:6: ", "several");
  says("gpu1,1,leaf 1,1,1 Gbps,\ngpu1,2,leaf_1,2,1 Gbps,\n", "cables.csv:3:8: ", "both called");
  says("gpu1,1,leaf1,1,1 Gbps,\n", "roles.csv:2:1: ", "\"leaf2\" has no cable",
       "device,role\nleaf2,leaf\n");
  says("gpu1,1,leaf1,1,1 Gbps,\n", "roles.csv:2:7: ", "cannot have the role \"nic\"",
       "device,role\nleaf1,nic\n");
  says("gpu1,1,leaf1,1,1 Gbps,\n", "roles.csv:3:1: ", "has a role already",
       "device,role\nleaf1,leaf\nleaf1,tor\n");
  says("gpu1,1,leaf1\n", "cables.csv:2:1: ", "3 cells");
  const std::string netbox =
      "side_a_device,side_a_type,side_a_name,side_b_device,side_b_type,side_b_name,status\n";
  CHECK(contains(refuse_list(netbox + "gpu1,dcim.interface,1,panel,dcim.rearport,4,\n"),
                 "cables.csv:2:29: the cable ends at \"dcim.rearport\""));
  const auto planned = try_list(netbox +
                                    "gpu1,dcim.interface,1,leaf1,dcim.interface,1,connected\n"
                                    "gpu1,dcim.powerport,p,pdu1,dcim.poweroutlet,4,connected\n"
                                    "gpu2,dcim.interface,1,leaf1,dcim.interface,2,planned\n",
                                ", rate: 100 Gbps");
  REQUIRE(planned.has_value());
  CHECK(planned->hosts().size() == 1);
  CHECK(contains(planned->notes()[0], "left out: line 3"));
  CHECK(contains(planned->notes()[1], "not connected, left out: line 4"));
  CHECK(contains(refuse_list(two_hosts, ", role: x.csv"), "did you mean \"roles\"?"));
  CHECK(contains(refuse_list("a_device,b_device\n"), "column \"a_port\" is missing"));
}

TEST_CASE("numbers in names count, and clean names are names") {
  CHECK(natural_less("n9", "n10"));
  CHECK(natural_less("n09a", "n9b"));
  CHECK_FALSE(natural_less("n10", "n9"));
  CHECK(natural_less("a", "a1"));
  CHECK(natural_less("n1", "n01") != natural_less("n01", "n1"));
  for (const std::string_view text : {"a b", "rack:3", "a--b", "x..y", "7", "", "\xff", "->", "-"})
    CHECK_MESSAGE(check_name({clean_name(text), {}}).has_value(), text);
  CHECK(check_name({clean_name(std::string(500, 'x')), {}}).has_value());
}

}  // namespace
}  // namespace weft::model
