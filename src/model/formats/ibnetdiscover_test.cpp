#include "model/formats/ibnetdiscover.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include "base/file.hpp"
#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "base/test_folder.hpp"
#include "base/test_skip.hpp"
#include "model/formats/test_fabric.hpp"
#include "os/run_program.hpp"

namespace weft::model {
namespace {

using namespace testing;

// What ibnetdiscover would print of a fabric, written from its manual page and nothing of the
// reader: records in an arbitrary order, a Ca for each NIC, GUIDs that say nothing.
class IbWriter {
 public:
  explicit IbWriter(const Fabric& fabric) : fabric_(fabric) {}

  std::string write(std::uint64_t seed) {
    std::vector<NodeId> devices;
    for (const NodeId node : fabric_.nodes())
      if (is_device(node)) devices.push_back(node);
    Rng rng(seed);
    for (std::size_t i = devices.size(); i > 1; --i)
      std::swap(devices[i - 1], devices[rng.below(i)]);
    std::string out =
        "#\n# Topology file: generated on Mon Nov 23 09:12:42 2026\n#\n"
        "# Initiated from node 0000000000200000 port 0000000000200000\n";
    for (const NodeId device : devices) out += record(device);
    return out;
  }
  static std::string plain(std::string name) {
    std::ranges::replace(name, ':', '-');
    return name;
  }
  static std::string nic_name(const Fabric& fabric, NodeId nic) {
    const auto nics = fabric.nics_of(fabric.host_of(nic));
    return plain(fabric.name(fabric.host_of(nic))) + " mlx5_" +
           std::to_string(std::ranges::find(nics, nic) - nics.begin());
  }
  bool is_device(NodeId node) const {
    return fabric_.is_switch(node) || fabric_.role_name(node) == "nic";
  }
  static std::string speed(Rate rate) {
    const std::map<std::int64_t, std::string> names{
        {50, "2xEDR"}, {100, "4xEDR"}, {200, "4xHDR"}, {400, "4xNDR"}, {800, "4xXDR"}};
    return names.at(rate.bps / 1'000'000'000);
  }

 private:
  std::vector<LinkId> wires(NodeId node) const {
    std::vector<LinkId> out;
    for (const LinkId link : fabric_.out(node))
      if (is_device(fabric_.to(link)) && fabric_.on_wire(link)) out.push_back(link);
    return out;
  }
  int port(LinkId link) const {
    const auto all = wires(fabric_.from(link));
    return static_cast<int>(std::ranges::find(all, link) - all.begin()) + 1;
  }
  std::string guid(NodeId node) const {
    return fmt::format("{:016x}", 0x2c903'0000'0000u + node.value * 0x9e37u % 0xfffff1u);
  }
  std::string id(NodeId node) const {
    return fmt::format("\"{}-{}\"", fabric_.is_switch(node) ? 'S' : 'H', guid(node));
  }
  std::string description(NodeId node) const {
    return fabric_.is_switch(node) ? "MF0;" + plain(fabric_.name(node)) + ":MQM9700/U1"
                                   : nic_name(fabric_, node);
  }
  std::string record(NodeId node) const {
    const auto links = wires(node);
    const bool is_switch = fabric_.is_switch(node);
    std::string out = fmt::format(
        "\nvendid=0x2c9\ndevid=0xd2f2\n{}guid=0x{}\n{}\t{} {}\t\t# \"{}\"{}\n",
        is_switch ? "switch" : "ca", guid(node), is_switch ? "Switch" : "Ca", links.size(),
        id(node), description(node), is_switch ? " enhanced port 0 lid 5 lmc 0" : "");
    for (const LinkId link : links) {
      const NodeId to = fabric_.to(link);
      const std::string far = fmt::format("{}[{}]{}", id(to), port(reverse(link)),
                                          fabric_.is_switch(to) ? "" : "(" + guid(to) + ") ");
      if (is_switch)
        out += fmt::format("[{}]\t{}\t\t# \"{}\" lid 7 {}\n", port(link), far, description(to),
                           speed(fabric_.rate(link)));
      else
        out += fmt::format("[{}]({}) \t{}\t\t# lid 7 lmc 0 \"{}\" lid 9 {}\n", port(link),
                           guid(node), far, description(to), speed(fabric_.rate(link)));
    }
    return out;
  }

  const Fabric& fabric_;
};

// Every link of the network by the names of its ends, with its rate.
std::multiset<std::string> wires_of(const Fabric& fabric) {
  const auto name = [&](NodeId node) {
    return fabric.is_switch(node) ? IbWriter::plain(fabric.name(node))
                                  : IbWriter::nic_name(fabric, node);
  };
  std::multiset<std::string> out;
  const IbWriter devices(fabric);
  for (const LinkId link : fabric.links())
    if (fabric.on_wire(link) && devices.is_device(fabric.from(link)) &&
        devices.is_device(fabric.to(link)))
      out.insert(fmt::format("{} -> {} {}", name(fabric.from(link)), name(fabric.to(link)),
                             fabric.rate(link).bps));
  return out;
}

Fabric import_ib(std::string_view text, const std::string& keys = "") {
  const TestFolder folder;
  const std::string path = folder.path() + "/cluster.txt";
  REQUIRE(write_file(path, text).has_value());
  return make_fabric("{file: " + path + keys + "}");
}
std::size_t scopes_of(const Fabric& fabric, ScopeKind kind) {
  return static_cast<std::size_t>(std::ranges::count(fabric.scopes(), kind, &Fabric::Scope::kind));
}

TEST_CASE("what a fabric's ibnetdiscover says makes the same fabric, link by link") {
  struct Case {
    std::string_view yaml;
    std::size_t racks, pods;
    std::map<std::string, std::size_t> roles;
  };
  const std::array cases{
      Case{"{generator: ai_zone, racks: 12, spines: 4, uplink: 800 Gbps}",
           12,
           0,
           {{"leaf", 12}, {"spine", 4}}},
      Case{"{generator: rail_optimized, groups: 3, hosts_per_group: 4, uplink: 400 Gbps}",
           3,
           0,
           {{"leaf", 24}}},
      Case{"{generator: fat_tree, k: 4}", 8, 4, {{"leaf", 8}, {"spine", 8}, {"core", 4}}},
      Case{"{generator: hpn, pods: 2, segments: 2, hosts_per_segment: 2, aggs: 2, cores: 2}",
           4,
           2,
           {{"leaf", 64}}},
      Case{"{generator: multi_plane, planes: 2, racks: 3, link: 800 Gbps, uplink: 400 Gbps}",
           3,
           0,
           {}},
      Case{"{generator: dragonfly, p: 2, a: 4, h: 2, g: 9}", 0, 0, {{"leaf", 36}}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.yaml);
    const Fabric fabric = make_fabric(c.yaml);
    const std::string text = IbWriter(fabric).write(1);
    const std::string keys =
        fmt::format(", gpus_per_host: {}", fabric.gpus_of(fabric.hosts()[0]).size());
    const Fabric back = import_ib(text, keys);
    CHECK(wires_of(back) == wires_of(fabric));
    CHECK(back.hosts().size() == fabric.hosts().size());
    CHECK(back.gpus().size() == fabric.gpus().size());
    if (c.racks > 0) CHECK(scopes_of(back, ScopeKind::rack) == c.racks);
    CHECK(scopes_of(back, ScopeKind::pod) == c.pods);
    for (const auto& [role, n] : c.roles) CHECK_MESSAGE(count(back, role) == n, role);
    for (const std::string& note : back.notes()) CHECK_MESSAGE(note.empty(), note);
    // Neither the order of the records nor, therefore, where the run began is of consequence.
    CHECK(digest(import_ib(IbWriter(fabric).write(2), keys)) == digest(back));
  }
}

TEST_CASE("rails are those of the leaf a NIC goes to") {
  const Fabric fabric =
      make_fabric("{generator: rail_optimized, groups: 2, hosts_per_group: 12, uplink: 400 Gbps}");
  const Fabric back = import_ib(IbWriter(fabric).write(3));
  for (const LinkId link : back.links())
    if (back.role_name(back.from(link)) == "nic" && back.is_switch(back.to(link)))
      CHECK(back.rail(back.from(link)) == back.rail(back.to(link)));
  CHECK(back.name(back.hosts()[2]) == "host-2");  // and not host-10
}

//   gpu1  gpu2  store1
//      \   |   /
//        leaf1
std::string one_leaf(std::string_view from = "", std::string_view to = "") {
  std::string text =
      "Switch\t8 \"S-00000000000000a1\"\t\t# \"MF0;leaf1:MQM8790/U1\" base port 0 lid 1 lmc 0\n"
      "[1]\t\"H-0000000000000011\"[1](12) \t\t# \"gpu1 mlx5_0\" lid 2 4xHDR\n"
      "[2]\t\"H-0000000000000021\"[1](22) \t\t# \"gpu2 mlx5_0\" lid 2 4xHDR\n"
      "[3]\t\"H-0000000000000031\"[1](32) \t\t# \"store1 HCA-1\" lid 2 4xEDR\n"
      "\n"
      "Ca\t1 \"H-0000000000000011\"\t\t# \"gpu1 mlx5_0\"\n"
      "[1](12) \t\"S-00000000000000a1\"[1]\t\t# lid 2 lmc 0 \"leaf\" lid 1 4xHDR\n"
      "Ca\t1 \"H-0000000000000021\"\t\t# \"gpu2 mlx5_0\"\n"
      "[1](22) \t\"S-00000000000000a1\"[2]\t\t# lid 2 lmc 0 \"leaf\" lid 1 4xHDR\n"
      "Ca\t2 \"H-0000000000000031\"\t\t# \"store1 HCA-1\"\n"
      "[1](32) \t\"S-00000000000000a1\"[3]\t\t# lid 2 lmc 0 \"leaf\" lid 1 4xEDR\n";
  if (!from.empty()) {
    const std::size_t at = text.find(from);
    REQUIRE(at != text.npos);
    text.replace(at, from.size(), to);
  }
  return text;
}

TEST_CASE("widths and speeds are data rates") {
  // Lanes times signalling rate less line coding, as tables of the standard give them.
  const std::map<std::string, double> gbps{
      {"4xSDR", 8},   {"4xDDR", 16},  {"4xQDR", 32},  {"4xFDR10", 40}, {"4xFDR", 54.545454544},
      {"4xEDR", 100}, {"4xHDR", 200}, {"4xNDR", 400}, {"4xXDR", 800},  {"2xNDR", 200},
      {"1xQDR", 8},   {"12xQDR", 96}, {"2xHDR", 100}, {"8xNDR", 800}};
  for (const auto& [name, rate] : gbps) {
    std::string text = one_leaf();
    for (std::size_t at = 0; (at = text.find("4xHDR", at)) != text.npos; at += name.size())
      text.replace(at, 5, name);
    const auto cabling = read_ibnetdiscover(text, "t");
    REQUIRE_MESSAGE(cabling.has_value(), name);
    CHECK(static_cast<double>(cabling->cables[0].rate.bps) == approx(rate * 1e9));
  }
}

TEST_CASE("names, and what is odd, are told") {
  // A second adapter of store1, a router, an aggregation node, a looped cable, a slow one.
  const std::string more =
      "Ca\t1 \"H-0000000000000041\"\t\t# \"store1 HCA-2\"\n"
      "[1](42) \t\"S-00000000000000a1\"[4]\t\t# lid 2 lmc 0 \"leaf\" lid 1 4xEDR\n"
      "Ca\t1 \"H-0000000000000051\"\t\t# \"Mellanox Technologies Aggregation Node\"\n"
      "[1](52) \t\"S-00000000000000a1\"[5]\t\t# lid 2 lmc 0 \"leaf\" lid 1 4xHDR\n"
      "Ca\t1 \"H-0000000000000061\"\t\t# \"MT4123 ConnectX6 Mellanox Technologies\"\n"
      "[1](62) \t\"S-00000000000000a1\"[8]\t\t# lid 2 lmc 0 \"leaf\" lid 1 2xHDR\n";
  const std::string ports =
      "[4]\t\"H-0000000000000041\"[1](42) \t\t# \"store1 HCA-2\" lid 2 4xEDR\n"
      "[5]\t\"H-0000000000000051\"[1](52) \t\t# \"Aggregation\" lid 2 4xHDR\n"
      "[6]\t\"S-00000000000000a1\"[7]\t\t# \"leaf\" lid 1 4xHDR\n"
      "[7]\t\"S-00000000000000a1\"[6]\t\t# \"leaf\" lid 1 4xHDR\n"
      "[8]\t\"H-0000000000000061\"[1](62) \t\t# \"MT4123\" lid 2 2xHDR\n";
  const Fabric fabric = import_ib("# Topology file: generated on Mon\n" +
                                  one_leaf("\n\n", "\n" + ports + "\n") + more);
  CHECK(fabric.hosts().size() == 3);
  CHECK(fabric.name(fabric.hosts()[0]) == "H-0000000000000061");
  CHECK(fabric.name(fabric.hosts()[2]) == "gpu2");
  CHECK(fabric.interface_name(link(fabric, "nic:2->leaf1")) == "mlx5_0");
  CHECK(fabric.interface_name(link(fabric, "leaf1->nic:2")) == "2");
  CHECK(fabric.name(fabric.role(fabric.find_role("other")).nodes[0]) == "store1");
  CHECK(count(fabric, "other_nic") == 2);
  const std::array said{"aggregation nodes, left out: H-0000000000000051",
                        "names no host, each taken as a host: H-0000000000000061",
                        "do not have 1 NICs (nics_per_host): store1 (2)",
                        "to itself, left out: leaf1[6]--leaf1[7]",
                        "leaf--nic not of 200 Gbps, as most are: leaf1[8]--"};
  REQUIRE(fabric.notes().size() == said.size());
  for (std::size_t i = 0; i < said.size(); ++i)
    CHECK_MESSAGE(contains(fabric.notes()[i], said[i]), fabric.notes()[i]);
}

TEST_CASE("keys that the file leaves to the scenario") {
  const TestFolder folder;
  const std::string path = folder.path() + "/x.ibnet";
  std::string text = one_leaf();  // as old versions print it, without width and speed
  for (std::size_t at; (at = text.find(" 4x")) != text.npos;) text.erase(at, 6);
  REQUIRE(write_file(path, text).has_value());
  CHECK(contains(refusal("{file: " + path + "}"), "x.ibnet:2:1: the cable has no rate"));
  const Fabric fabric = make_fabric("{file: " + path + ", rate: 16 Gbps, latency: 1 us}");
  CHECK(fabric.rate(link(fabric, "nic:0->leaf1")).bps == 16'000'000'000);
  CHECK(fabric.latency(link(fabric, "nic:0->leaf1")) == 1_us);
  CHECK(contains(refusal("{file: " + path + ", rate: 16 Gbps, nics_per_host: 2}"),
                 "no host has 2 NICs"));
  CHECK(contains(refusal("{file: " + path + ", link: 16 Gbps}"), "rates of links"));
  CHECK(contains(refusal("{file: " + path + ", rates: 16 Gbps}"), "unknown key \"rates\""));
}

TEST_CASE("mistakes are named with their place") {
  struct Mistake {
    std::string_view from, to, place, what;
  };
  const std::array mistakes{
      Mistake{"Ca\t1 \"H-0000000000000021", "Cb\t1 \"H-0000000000000021", "t:8:1: ", "not a line"},
      Mistake{"[2]\t", "2\t", "t:3:1: ", "not a line"},
      Mistake{"[2]\t", "[2\t", "t:3:", "not a port"},
      Mistake{"[2]\t", "[9]\t", "t:3:1: ", "port 9 of a node of 8 ports"},
      Mistake{"[2]\t", "[1]\t", "t:3:1: ", "is there twice"},
      Mistake{"(22) \t\t#", "(2z) \t\t#", "t:3:", "not a port"},
      Mistake{"\"H-0000000000000021\"[1]", "\"X-0000000000000021\"[1]", "t:3:", "not a port"},
      Mistake{"\"H-0000000000000021\"[1]", "\"H-0000000000000099\"[1]",
              "t:3:1: ", "no lines of its"},
      Mistake{"\"H-0000000000000021\"[1]", "\"H-0000000000000021\"[7]", "t:3:1: ", "not connected"},
      Mistake{"\"S-00000000000000a1\"[2]", "\"S-00000000000000a1\"[1]",
              "t:3:1: ", "leads to port 1 of S-00000000000000a1"},
      Mistake{"lid 2 4xHDR", "lid 2 4xNDR", "t:2:1: ", "rate differs from that on line 7"},
      Mistake{"lid 2 4xHDR", "lid 2 3xHDR", "t:2:", "unknown width and speed \"3xHDR\""},
      Mistake{"lid 2 4xHDR", "lid 2 4x???", "t:2:", "unknown width and speed"},
      Mistake{"lid 2 4xHDR", "4xHDR", "t:2:", "lid NUMBER"},
      Mistake{"# \"gpu1 mlx5_0\" lid 2 4xHDR", "# gpu1", "t:2:", "lid NUMBER"},
      Mistake{"Switch\t8", "Switch\tx", "t:1:", "not a node"},
      Mistake{"Ca\t1 \"H-0000000000000021", "Ca\t1 \"H-0000000000000011",
              "t:8:6: ", "first on line 6"},
  };
  for (const Mistake& m : mistakes) {
    CAPTURE(m.to);
    const auto read = read_ibnetdiscover(one_leaf(m.from, m.to), "t");
    REQUIRE(!read.has_value());
    CHECK_MESSAGE(contains(read.error().text(), m.place), read.error().text());
    CHECK_MESSAGE(contains(read.error().text(), m.what), read.error().text());
  }
  CHECK(!read_ibnetdiscover("", "t").has_value());
  CHECK(!read_ibnetdiscover("[1]\t\"S-1\"[1]\t# \"x\" lid 1 4xHDR\n", "t").has_value());
}

TEST_SUITE_BEGIN("needs ibsim");

// The real ibnetdiscover, over a fabric that ibsim simulates from what the writer above wrote. Its
// speeds end at EDR.
TEST_CASE("the real tool says of a fabric what the writer says") {
  const std::string library = "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so";
  for (const std::string& path :
       {std::string("/usr/bin/ibsim"), library, std::string("/usr/sbin/ibnetdiscover")})
    if (!std::filesystem::exists(path)) return skip_test(path + " is not there (ibsim-utils)");
  const Fabric fabric = make_fabric(
      "{generator: rail_optimized, groups: 2, hosts_per_group: 4, host: a100, nics_per_host: 4, "
      "link: 100 Gbps, uplink: 100 Gbps}");
  const TestFolder folder;
  REQUIRE(write_file(folder.path() + "/net", IbWriter(fabric).write(1)).has_value());
  const std::string script = fmt::format(
      "sleep 30 | ibsim -s {0} > {0}.log 2>&1 & for i in 1 2 3 4 5 6 7 8 9; do sleep 0.3; "
      "LD_PRELOAD={1} ibnetdiscover $OPTION > {0}.out 2> {0}.err && break; done; cat {0}.out",
      folder.path() + "/net", library);
  for (const std::string_view option : {"", "-g", "-f"}) {
    CAPTURE(option);
    const auto ran = run_program(
        {.argv = {"/bin/sh", "-c", script},
         .environment = {"PATH=/usr/sbin:/usr/bin:/bin", fmt::format("OPTION={}", option),
                         fmt::format("IBSIM_SOCKNAME=weft{}", getpid())},
         .output_bytes_max = 1 << 20});
    REQUIRE(ran.has_value());
    REQUIRE_MESSAGE(is_ibnetdiscover(ran->output), ran->output);
    CHECK(wires_of(import_ib(ran->output, ", host: a100")) == wires_of(fabric));
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace weft::model
