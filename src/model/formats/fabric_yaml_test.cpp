#include "model/formats/fabric_yaml.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/rng.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::model {
namespace {

using namespace testing;

Result<Fabric> read_nodes(std::string_view yaml, const FabricLimits& limits = {}) {
  auto section = parse_yaml(yaml, "f.yaml");
  REQUIRE_MESSAGE(section.has_value(), yaml);
  return read_fabric_nodes(*section, limits);
}
Fabric accept(std::string_view yaml) {
  auto fabric = read_nodes(yaml);
  REQUIRE_MESSAGE(fabric.has_value(), (fabric ? "" : fabric.error().text()));
  return *std::move(fabric);
}
std::string refuse_nodes(std::string_view yaml, const FabricLimits& limits = {}) {
  const auto fabric = read_nodes(yaml, limits);
  return fabric ? "accepted" : fabric.error().text();
}
Fabric again(const Fabric& fabric) {
  const auto document = parse_yaml(to_fabric_yaml(fabric), "exported.yaml");
  REQUIRE_MESSAGE(document.has_value(), (document ? "" : document.error().text()));
  REQUIRE(document->find("fabric") != nullptr);
  auto back = read_fabric_nodes(*document->find("fabric"));
  REQUIRE_MESSAGE(back.has_value(), (back ? "" : back.error().text()));
  return *std::move(back);
}

// nic:0 --- tor:0 --- nic:1
//             |
//           nic:2, nic:3 at half the rate
constexpr std::string_view five_nodes = R"(
rate: 400 Gbps
nodes:
  - {role: nic, count: 4}
  - {role: tor}
links:
  - nic:0..1--tor:0
  - {link: nic:2..3--tor:0, rate: 200 Gbps, latency: 2 us}
)";

TEST_CASE("five nodes written by hand") {
  const Fabric f = accept(five_nodes);
  CHECK(f.nics().size() == 4);
  CHECK(count(f, "tor") == 1);
  CHECK(f.cable_count() == 4);
  CHECK(f.rate(link(f, "nic:1->tor:0")) == 400_Gbps);
  CHECK(f.latency(link(f, "nic:1->tor:0")) == 500_ns);
  CHECK(f.rate(link(f, "tor:0->nic:3")) == 200_Gbps);
  CHECK(f.latency(link(f, "tor:0->nic:3")) == 2_us);
  CHECK(f.scopes().size() == 1);
  CHECK(f.name(f.scope(node(f, "nic:2"))) == "zone:0");
}

TEST_CASE("hosts, ranges in step, names, parallel cables, interfaces") {
  const Fabric f = accept(R"(
scopes:
  - {kind: zone, name: east}
  - {kind: rack, count: 2, parent: east}
nodes:
  - {role: host, count: 2, scope: "rack:0..1"}
  - {role: gpu, count: 4, host: host:0, rail: 0..3, nic: "nic:0..3"}
  - {role: nic, count: 4, host: host:0, rail: 0..3}
  - {role: nic, count: 1, host: host:1, plane: 1}
  - {kind: pcie_switch, role: pcie, count: 2, host: "host:0..1"}
  - {role: tor, name: tor-a, scope: rack:0}
links:
  - {pairs: "nic:3..4--pcie:0..1", rate: 256 Gbps, latency: 0 s}
  - {link: nic:0--tor-a, rate: 100 Gbps, count: 3}
  - {link: tor-a--nic:4, rate: 100 Gbps, interface_a: Ethernet1/7, interface_b: r3}
)");
  CHECK(f.name(f.enclosing(node(f, "host:1"), ScopeKind::rack)) == "rack:1");
  CHECK(f.scope(node(f, "gpu:2")) == f.scope(node(f, "host:0")));
  CHECK(f.rail(node(f, "gpu:2")) == 2);
  CHECK(f.plane(node(f, "nic:4")) == 1);
  CHECK(f.nic_of(node(f, "gpu:3")) == node(f, "nic:3"));
  CHECK(f.host_of(node(f, "pcie:1")) == node(f, "host:1"));
  CHECK(f.links_between(node(f, "nic:3"), node(f, "pcie:0")).size() == 1);
  CHECK(f.links_between(node(f, "nic:4"), node(f, "pcie:0")).empty());
  CHECK(f.links_between(node(f, "nic:0"), node(f, "tor-a")).size() == 3);
  CHECK(f.interface_name(link(f, "tor-a->nic:4")) == "Ethernet1/7");
  CHECK(f.interface_name(link(f, "nic:4->tor-a")) == "r3");
  CHECK(digest(again(f)) == digest(f));
}

TEST_CASE("the model of a GPU: of a preset, as given, or unknown") {
  const Fabric a100 = make_fabric("{generator: ai_zone, racks: 2, host: a100}");
  CHECK(a100.gpu_models().size() == 1);
  CHECK(a100.gpu_model(a100.gpus().back()) == "a100");
  const Fabric mixed = accept(R"(
nodes:
  - {role: host, count: 3}
  - {role: gpu, count: 2, host: host:0, model: h100}
  - {role: gpu, host: host:1, model: mi300x}
  - {role: gpu, host: host:2}
)");
  CHECK(mixed.gpu_model(mixed.gpus()[1]) == "h100");
  CHECK(mixed.gpu_model(mixed.gpus()[2]) == "mi300x");
  CHECK(mixed.gpu_model(mixed.gpus()[3]) == "");
  CHECK(mixed.gpu_models().size() == 3);
  for (const Fabric* f : {&a100, &mixed}) {
    const Fabric back = again(*f);
    CHECK(digest(back) == digest(*f));
    for (const NodeId gpu : f->gpus()) CHECK(back.gpu_model(gpu) == f->gpu_model(gpu));
  }
  CHECK(contains(refusal("{nodes: [{role: host}, {role: gpu, host: host:0, model: \"a b\"}]}"),
                 "the GPU model contains unsupported characters"));
  CHECK(contains(refusal("{nodes: [{role: host, model: h100}]}"), "unknown key \"model\""));
}

TEST_CASE("kinds are said where a role does not say them") {
  const Fabric f = accept(
      "{nodes: [{role: pcie, kind: pcie_switch}, {role: pcie}, {role: nvswitch, kind: "
      "fabric_switch}, {role: spine}, {role: fe_nic, kind: nic, count: 2}]}");
  CHECK(f.kind(node(f, "pcie:1")) == NodeKind::pcie_switch);
  CHECK(f.kind(node(f, "nvswitch:0")) == NodeKind::fabric_switch);
  CHECK(f.kind(node(f, "spine:0")) == NodeKind::fabric_switch);
  CHECK(f.nics().empty());
  CHECK(digest(again(f)) == digest(f));
}

TEST_CASE("every generator's fabric comes back equal") {
  for (const std::string_view yaml :
       {"{generator: ai_zone, racks: 7, spines: 3, uplinks_per_spine: 2}",
        "{generator: ai_zone, racks: 3, host: a100, gpus_per_host: 4, nics_per_host: 2}",
        "{generator: three_tier, pods: 3, racks: 4, oversubscription: 7}",
        "{generator: hpn, pods: 2, segments: 2, hosts_per_segment: 3, aggs: 4}",
        "{generator: fat_tree, k: 4}", "{generator: rail_only, hosts: 5}",
        "{generator: rail_optimized, groups: 2}", "{generator: multi_plane, racks: 3, planes: 2}",
        "{generator: dragonfly, p: 2, a: 4, h: 2, g: 9}",
        "{generator: torus, dimensions: [3, 4, 2]}"}) {
    CAPTURE(yaml);
    const Fabric f = make_fabric(yaml);
    const Fabric g = again(f);
    CHECK(digest(g) == digest(f));
    CHECK(to_fabric_yaml(g) == to_fabric_yaml(f));
    // The digest covers columns; here what is derived from them.
    CHECK(g.tiers().size() == f.tiers().size());
    for (const NodeId host : f.hosts()) CHECK(g.gpus_of(host).size() == f.gpus_of(host).size());
    for (const LinkId l : f.links()) CHECK(g.port(l) == f.port(l));
  }
}

// Random cables between few nodes: every folding into ranges must unfold to the same order.
TEST_CASE("any order of cables comes back") {
  Rng rng(7);
  for (int round = 0; round < 300; ++round) {
    FabricBuilder builder;
    const ScopeId zone = builder.add_scope(ScopeKind::zone, {});
    std::vector<NodeId> left, right;
    for (int i = 0; i < 4; ++i)
      left.push_back(builder.add_node({NodeKind::fabric_switch, "leaf", zone}));
    for (int i = 0; i < 4; ++i)
      right.push_back(builder.add_node({NodeKind::fabric_switch, "spine", zone}));
    const auto cables = 1 + rng.below(12);
    std::size_t a = 0, b = 0;
    for (std::uint64_t i = 0; i < cables; ++i) {
      // Steps by 0 or 1 mostly, so that runs appear.
      a = rng.below(8) == 0 ? rng.below(4) : (a + rng.below(2)) % 4;
      b = rng.below(8) == 0 ? rng.below(4) : (b + rng.below(2)) % 4;
      const Rate rate = rng.below(8) == 0 ? 100_Gbps : 400_Gbps;
      builder.add_circuit(left[a], right[b], {rate, 500_ns});
    }
    const Fabric f = builder.freeze();
    CHECK(digest(again(f)) == digest(f));
  }
}

TEST_CASE("the digest sees every column") {
  const auto with = [](std::string_view node, std::string_view extra) {
    return digest(
        accept("{scopes: [{kind: zone}, {kind: rack}], nodes: [{role: nic, count: 2}, {"
               "role: tor" +
               std::string(node) +
               "}], links: [{link: \"nic:0--tor:0\", "
               "rate: 1 Gbps" +
               std::string(extra) + "}]}"));
  };
  std::vector<std::uint64_t> seen{with("", "")};
  for (const std::string_view node : {", rail: 1", ", plane: 1", ", scope: rack:0", ", name: x"})
    seen.push_back(with(node, ""));
  for (const std::string_view extra :
       {", latency: 1 us", ", interface_a: e1", ", interface_b: e1", ", count: 2"})
    seen.push_back(with("", extra));
  std::ranges::sort(seen);
  CHECK(std::ranges::adjacent_find(seen) == seen.end());
}

namespace {

struct Mistake {
  std::string_view yaml, place, what;
};
constexpr std::array mistakes{
    Mistake{"{}", "f.yaml:1:1", "no nodes"},
    Mistake{"{nodes: 3}", "f.yaml:1:9", "must be a list"},
    Mistake{"{rate: 0 Gbps, nodes: [{role: tor}]}", "f.yaml:1:8", "rate of 0"},
    Mistake{"{nodes: [{role: tor, count: 2}], links: [{link: \"tor:0--tor:1\", rate: 0 bps}]}",
            "f.yaml:1:", "rate of 0"},
    Mistake{"{nodes: [{role: tor, count: 2}], links: [\"tor:0--tor:1\"]}", "f.yaml:1:42",
            "no rate"},
    Mistake{"{rate: 1 Gbps, nodes: [{role: tor, count: 2}], links: [\"tor:0--tor:2\"]}",
            "f.yaml:1:56", "the last one is \"tor:1\""},
    Mistake{"{rate: 1 Gbps, nodes: [{role: tor, count: 2}], links: [\"tor:0--tro:1\"]}",
            "f.yaml:1:56", "did you mean \"tor:"},
    Mistake{"{rate: 1 Gbps, nodes: [{role: tor, name: leaf-a}, {role: tor}],\n"
            " links: [leaf-b--tor:1]}",
            "f.yaml:2:10", "did you mean \"leaf-a\"?"},
    Mistake{"{rate: 1 Gbps, nodes: [{role: tor}], links: [\"tor:0--tor:0\"]}", "f.yaml:1:46",
            "to itself"},
    Mistake{"{rate: 1 Gbps, nodes: [{role: tor}], links: [\"tor:0->tor:0\"]}", "f.yaml:1:46",
            "not a cable"},
    Mistake{"{rate: 1 Gbps, nodes: [{role: tor, count: 3}], links: [{pairs: \"tor:0..1--tor:2\"}]}",
            "f.yaml:1:", "2 nodes on the left, 1 on the right"},
    Mistake{"{nodes: [{role: tor, name: a}, {role: tor, name: a}]}", "f.yaml:1:50",
            "already exists"},
    Mistake{"{nodes: [{role: tor, name: \"tor:3\"}]}", "f.yaml:1:28", "index of a role"},
    Mistake{"{nodes: [{role: tor, name: \"17\"}]}", "f.yaml:1:28", "bare number"},
    Mistake{"{nodes: [{role: tor, name: a--b}]}", "f.yaml:1:28", "cannot be a name"},
    Mistake{"{nodes: [{role: tor, name: x, count: 2}]}", "f.yaml:1:28", "cannot be used for 2"},
    Mistake{"{nodes: [{role: tor, kind: fabric_swich}]}", "f.yaml:1:28",
            "did you mean \"fabric_switch\"?"},
    Mistake{"{nodes: [{role: tor}, {role: tor, kind: nvswitch}]}", "f.yaml:1:41",
            "was used for a fabric_switch before"},
    Mistake{"{nodes: [{role: gpu}]}", "f.yaml:1:10", "must be inside a host"},
    Mistake{"{nodes: [{role: card, kind: gpu}]}", "f.yaml:1:17", "role of a gpu is \"gpu\""},
    Mistake{"{nodes: [{role: nic, kind: fabric_switch}]}", "f.yaml:1:28", "role of nics"},
    Mistake{"{nodes: [{role: tor}, {role: nic, host: tor:0}]}", "f.yaml:1:41", "not a host"},
    Mistake{"{nodes: [{role: tor, host: tor:0}]}", "f.yaml:1:28", "unknown node"},
    Mistake{"{nodes: [{role: host, count: 2}, {role: nic, count: 3, host: host:0..1}]}",
            "f.yaml:1:", "names 2, but the entry has a count of 3"},
    Mistake{"{nodes: [{role: host, count: 2}, {role: nic, host: host:1}, {role: nic, host: "
            "host:0}]}",
            "f.yaml:1:79", "earlier host"},
    Mistake{"{nodes: [{role: host}, {role: nic}, {role: nic, host: host:0}]}", "f.yaml:1:55",
            "earlier host"},
    Mistake{"{nodes: [{role: host}, {role: gpu, host: host:0, nic: tor:0}, {role: tor}]}",
            "f.yaml:1:55", "not a back-end NIC"},
    Mistake{"{nodes: [{role: tor, rail: x}]}", "f.yaml:1:28", "not a rail number"},
    Mistake{"{nodes: [{role: tor, rail: 40000}]}", "f.yaml:1:28", "not a rail number"},
    Mistake{"{nodes: [{role: tor, count: 2, rail: 0..2}]}", "f.yaml:1:38", "3 numbers"},
    Mistake{"{nodes: [{role: tor, colour: red}]}", "f.yaml:1:22", "unknown key"},
    Mistake{"{node: [{role: tor}]}", "f.yaml:1:1", "did you mean \"nodes\"?"},
    Mistake{"{scopes: [{kind: rock}], nodes: [{role: tor}]}", "f.yaml:1:18",
            "did you mean \"rack\"?"},
    Mistake{"{scopes: [{kind: rack}, {kind: zone, parent: rack:0}], nodes: [{role: tor}]}",
            "f.yaml:1:46", "cannot be inside"},
    Mistake{"{scopes: [{kind: rack, name: x}, {kind: rack, name: x}], nodes: [{role: tor}]}",
            "f.yaml:1:53", "scope \"x\" already exists"},
    Mistake{"{scopes: [{kind: rack, name: \"rack:4\"}], nodes: [{role: tor}]}", "f.yaml:1:30",
            "index of a rack"},
    Mistake{"{nodes: [{role: tor, scope: rack:0}]}", "f.yaml:1:29", "unknown scope"},
};

}  // namespace

TEST_CASE("mistakes are named with their place") {
  for (const Mistake& m : mistakes) {
    CAPTURE(m.yaml);
    const std::string said = refuse_nodes(m.yaml);
    CHECK_MESSAGE(said.starts_with(m.place), said);
    CHECK_MESSAGE(contains(said, m.what), said);
  }
}

TEST_CASE("all mistakes come at once, and not without end") {
  const auto fabric = read_nodes("{nodes: [{role: tor, name: 1}, {role: gpu}, {rail: 1}]}");
  REQUIRE(!fabric.has_value());
  CHECK(fabric.error().more.size() == 2);
  std::string many = "{rate: 1 Gbps, nodes: [{role: tor}], links: [";
  for (int i = 0; i < 1000; ++i) many += "\"tor:0--tor:9\", ";
  const auto flood = read_nodes(many + "]}");
  REQUIRE(!flood.has_value());
  CHECK(flood.error().more.size() < 110);
}

TEST_CASE("short texts do not ask for large fabrics") {
  const FabricLimits limits{.nodes = 1000, .links = 5000};
  CHECK(contains(refuse_nodes("{nodes: [{role: tor, count: 1001}]}", limits), "limit of 1000"));
  CHECK(contains(refuse_nodes("{nodes: [{role: a, count: 600}, {role: b, count: 600}]}", limits),
                 "600 and 600 more exceed the limit of 1000"));
  CHECK(
      contains(refuse_nodes("{rate: 1 Gbps, nodes: [{role: a, count: 100}, {role: b, count: 100}], "
                            "links: [\"a:0..99--b:0..99\"]}",
                            limits),
               "limit of 5000"));
  CHECK(contains(refuse_nodes("{rate: 1 Gbps, nodes: [{role: a, count: 2}], "
                              "links: [{link: \"a:0--a:1\", count: 9 G}]}"),
                 "is not within"));
  CHECK(contains(refuse_nodes("{nodes: [{role: tor, count: 1e30}]}"), "out of range"));
  CHECK(read_nodes("{rate: 1 Gbps, nodes: [{role: a, count: 50}, {role: b, count: 50}], "
                   "links: [\"a:0..49--b:0..49\"]}",
                   limits)
            .has_value());
}

TEST_CASE("16,384 GPUs go out and come back in seconds") {
  const Fabric f = make_fabric("{generator: three_tier, pods: 8, racks: 128, oversubscription: 7}");
  CHECK(f.gpus().size() == 16'384);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(digest(again(f)) == digest(f));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
}

TEST_CASE("NVL72: 18 hosts share an NVLink domain, and the fabric's own file keeps it") {
  const Fabric f = make_fabric("{generator: ai_zone, racks: 2, hosts_per_rack: 18, host: gb200}");
  REQUIRE(f.gpus().size() == 144);
  CHECK(count(f, "nvswitch") == 2);
  CHECK(f.rate(link(f, "gpu:71->nvswitch:0")) == 7200_Gbps);
  CHECK(f.rate(link(f, "nvswitch:1->gpu:72")) == 7200_Gbps);
  const Fabric back = again(f);
  CHECK(digest(back) == digest(f));
  for (const Fabric* fabric : {&f, &back})
    for (std::size_t a = 0; a < 144; a += 7) {
      const NodeId gpu = fabric->gpus()[a];
      CHECK(fabric->gpus_of_domain(fabric->domain_of(gpu)).size() == 72);
      for (std::size_t b = 0; b < 144; ++b)
        CHECK(fabric->share_domain(gpu, fabric->gpus()[b]) == (a / 72 == b / 72));
    }
  // Domains may be smaller than a rack, and larger.
  for (const auto& [hosts, switches] : {std::pair{2, 18}, {3, 12}, {36, 1}}) {
    const Fabric other =
        make_fabric(fmt::format("{{generator: ai_zone, racks: 2, hosts_per_rack: 18, host: gb200, "
                                "hosts_per_nvlink_domain: {}}}",
                                hosts));
    CHECK(count(other, "nvswitch") == static_cast<std::size_t>(switches));
    CHECK(other.gpus_of_domain(other.domain_of(other.gpus()[5])).size() ==
          static_cast<std::size_t>(4 * hosts));
  }
  CHECK(contains(refusal("{generator: ai_zone, racks: 5, host: gb200}"),
                 "test.yaml:1:38: 10 hosts do not fill NVLink domains of 18"));
}

}  // namespace
}  // namespace weft::model
