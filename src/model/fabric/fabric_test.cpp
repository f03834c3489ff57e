#include "model/fabric/fabric.hpp"

#include <algorithm>

#include "model/fabric/state.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::model {
namespace {

using namespace testing;

//  gpu:0 - pcie:0 - nic:0     leaf:0 === spine:0 --- leaf:1 (called tor-b)
//  gpu:1 -   |    - nic:1
//          host:0
struct Small {
  FabricBuilder builder;
  ScopeId zone = builder.add_scope(ScopeKind::zone, ScopeId{});
  ScopeId rack = builder.add_scope(ScopeKind::rack, zone);
  NodeId host = builder.add_node({NodeKind::host, "host", rack});
  NodeId gpu0 = builder.add_node({NodeKind::gpu, "gpu", rack, host, 0});
  NodeId gpu1 = builder.add_node({NodeKind::gpu, "gpu", rack, host, 1});
  NodeId nic0 = builder.add_node({NodeKind::nic, "nic", rack, host, 0});
  NodeId nic1 = builder.add_node({NodeKind::nic, "nic", rack, host, 1});
  NodeId pcie = builder.add_node({NodeKind::pcie_switch, "pcie", rack, host});
  NodeId spine = builder.add_node({NodeKind::fabric_switch, "spine", zone, {}, no_lane, 3});
  NodeId leaf0 = builder.add_node({NodeKind::fabric_switch, "leaf", rack});
  NodeId leaf1 = builder.add_node({NodeKind::fabric_switch, "leaf", rack, {}, 5, no_lane, "tor-b"});
  CableId up1 = builder.add_circuit(leaf0, spine, {400_Gbps, 500_ns});
  CableId up2 = builder.add_circuit(spine, leaf0, {200_Gbps, 0_ps, "et0", "et1"});
  CableId up3 = builder.add_circuit(leaf1, spine, {100_Gbps, 0_ps});

  Small() {
    for (const NodeId part : {gpu0, gpu1, nic0, nic1, host})
      builder.add_circuit(part, pcie, {256_Gbps, 0_ps});
  }
};

TEST_CASE("columns hold what was added") {
  Small s;
  const Fabric f = s.builder.freeze();
  CHECK(f.node_count() == 9);
  CHECK(f.cable_count() == 8);
  CHECK(f.link_count() == 16);
  CHECK(f.kind(s.leaf1) == NodeKind::fabric_switch);
  CHECK(f.role_name(s.leaf1) == "leaf");
  CHECK(f.role_index(s.leaf1) == 1);
  CHECK(f.rail(s.leaf1) == 5);
  CHECK(f.plane(s.leaf1) == no_lane);
  CHECK(f.plane(s.spine) == 3);
  CHECK(f.host_of(s.gpu1) == s.host);
  CHECK(f.host_of(s.host) == s.host);
  CHECK_FALSE(f.host_of(s.spine).valid());
  CHECK(f.enclosing(s.gpu0, ScopeKind::zone) == s.zone);
  CHECK(f.enclosing(s.gpu0, ScopeKind::rack) == s.rack);
  CHECK_FALSE(f.enclosing(s.spine, ScopeKind::rack).valid());
  CHECK_FALSE(f.find_role("ctsw").valid());
}

TEST_CASE("a cable is two links, forward from the first end") {
  Small s;
  const Fabric f = s.builder.freeze();
  const LinkId there = forward(s.up2);
  CHECK(f.from(there) == s.spine);
  CHECK(f.to(there) == s.leaf0);
  CHECK(f.from(reverse(there)) == s.leaf0);
  CHECK(f.to(reverse(there)) == s.spine);
  CHECK(f.rate(reverse(there)) == 200_Gbps);
  CHECK(f.latency(forward(s.up1)) == 500_ns);
  CHECK(cable_of(reverse(there)) == s.up2);
}

TEST_CASE("out() lists each node's links in id order, at their port numbers") {
  Small s;
  const Fabric f = s.builder.freeze();
  std::size_t seen = 0;
  for (const NodeId node : f.nodes()) {
    const auto out = f.out(node);
    CHECK(std::ranges::is_sorted(out));
    for (std::size_t port = 0; port < out.size(); ++port) {
      CHECK(f.from(out[port]) == node);
      CHECK(f.port(out[port]) == port);
    }
    seen += out.size();
  }
  CHECK(seen == f.link_count());
}

TEST_CASE("tiers partition the links by the roles at their ends") {
  Small s;
  const Fabric f = s.builder.freeze();
  std::size_t seen = 0;
  for (const Fabric::Tier& tier : f.tiers()) {
    CHECK(std::ranges::is_sorted(tier.links));
    for (const LinkId link : tier.links) {
      CHECK(f.role_id(f.from(link)) == tier.from);
      CHECK(f.role_id(f.to(link)) == tier.to);
      CHECK(f.tiers()[f.tier_id(link)].name == tier.name);
    }
    seen += tier.links.size();
  }
  CHECK(seen == f.link_count());
  CHECK(tier_size(f, "leaf->spine") == 3);
  CHECK(tier_size(f, "spine->leaf") == 3);
  CHECK(tier_size(f, "gpu->pcie") == 2);
}

TEST_CASE("interfaces keep given names, else are named by their port") {
  Small s;
  const Fabric f = s.builder.freeze();
  CHECK(f.interface_name(forward(s.up2)) == "et0");
  CHECK(f.interface_name(reverse(forward(s.up2))) == "et1");
  CHECK(f.interface_name(forward(s.up1)) == "Ethernet1/0");
  CHECK(f.interface_name(f.out(s.gpu0)[0]) == "port0");
}

TEST_CASE("GPUs spread evenly over NICs at equal distance") {
  Small s;
  const Fabric f = s.builder.freeze();
  CHECK(f.nic_of(s.gpu0) == s.nic0);
  CHECK(f.nic_of(s.gpu1) == s.nic1);
  CHECK(f.address(s.nic1) == 0x0A000002u);
  CHECK(std::ranges::equal(f.gpus_of(s.host), std::array{s.gpu0, s.gpu1}));
  CHECK(std::ranges::equal(f.nics_of(s.host), std::array{s.nic0, s.nic1}));
}

TEST_CASE("a chosen NIC overrides the rule") {
  Small s;
  s.builder.set_nic(s.gpu0, s.nic1);
  const Fabric f = s.builder.freeze();
  CHECK(f.nic_of(s.gpu0) == s.nic1);
}

TEST_CASE("the nearest NIC by PCIe wins, NVLink does not count") {
  // gpu:0 - pcie:0 - nic:1,  gpu:1 - pcie:1 - nic:0,  pcie:0 - host - pcie:1; an NVSwitch joins
  // both GPUs, and gpu:2 hangs on the NVSwitch alone.
  FabricBuilder b;
  const ScopeId rack = b.add_scope(ScopeKind::rack, ScopeId{});
  const NodeId host = b.add_node({NodeKind::host, "host", rack});
  std::array<NodeId, 3> gpus, nics;
  for (NodeId& gpu : gpus) gpu = b.add_node({NodeKind::gpu, "gpu", rack, host});
  for (NodeId& nic : nics) nic = b.add_node({NodeKind::nic, "nic", rack, host});
  const NodeId nvswitch = b.add_node({NodeKind::nvswitch, "nvswitch", rack, host});
  for (const NodeId gpu : gpus) b.add_circuit(gpu, nvswitch, {3600_Gbps, 0_ps});
  for (std::size_t i = 0; i < 2; ++i) {
    const NodeId pcie = b.add_node({NodeKind::pcie_switch, "pcie", rack, host});
    b.add_circuit(gpus[i], pcie, {256_Gbps, 0_ps});
    b.add_circuit(nics[1 - i], pcie, {256_Gbps, 0_ps});
    b.add_circuit(pcie, host, {256_Gbps, 0_ps});
  }
  const Fabric f = b.freeze();
  CHECK(f.nic_of(gpus[0]) == nics[1]);
  CHECK(f.nic_of(gpus[1]) == nics[0]);
  CHECK(f.nic_of(gpus[2]) == nics[2]);  // none is reachable: the least used
}

TEST_CASE("hosts without NICs and NICs without hosts") {
  FabricBuilder b;
  const ScopeId rack = b.add_scope(ScopeKind::rack, ScopeId{});
  const NodeId host = b.add_node({NodeKind::host, "host", rack});
  const NodeId gpu = b.add_node({NodeKind::gpu, "gpu", rack, host});
  const NodeId nic = b.add_node({NodeKind::nic, "nic", rack});
  const Fabric f = b.freeze();
  CHECK_FALSE(f.nic_of(gpu).valid());
  CHECK(f.nics_of(host).empty());
  CHECK(f.nics().size() == 1);
  CHECK_FALSE(f.host_of(nic).valid());
}

TEST_CASE("an empty fabric") {
  const Fabric f = FabricBuilder{}.freeze();
  CHECK(f.node_count() == 0);
  CHECK(f.gpus().empty());
  CHECK_FALSE(f.find_node({"0", {}}).has_value());
}

TEST_CASE("the builder is empty after freeze") {
  Small s;
  (void)s.builder.freeze();
  CHECK(s.builder.node_count() == 0);
  CHECK_FALSE(s.builder.has_name("tor-b"));
}

TEST_CASE("state keeps exceptions only and counts changes") {
  State state;
  CHECK(state.healthy());
  const LinkId link(3);
  state.set(link, {Health::down});
  CHECK(state.version() == 1);
  state.set(link, {Health::down});
  CHECK(state.version() == 1);
  CHECK(state.link(link).health == Health::down);
  CHECK(state.link(LinkId(4)) == Condition{});
  CHECK_FALSE(state.healthy());
  const State copy = state;
  state.set(link, {});
  CHECK(state.version() == 2);
  CHECK(state.healthy());
  CHECK(copy.link(link).health == Health::down);
}

TEST_CASE("a link is as bad as the worst of itself and its ends") {
  Small s;
  const Fabric f = s.builder.freeze();
  State state;
  state.set(s.leaf0, {Health::draining, 0.5, 0});
  state.set(forward(s.up1), {Health::up, 0.5, 0});
  state.set(s.leaf1, {Health::down});
  const LiveView view(f, state);
  const LinkId up1 = forward(s.up1), up2 = forward(s.up2), up3 = forward(s.up3);
  CHECK(view.health[up1.index()] == Health::draining);
  CHECK(view.bytes_per_s[up1.index()] == 400e9 / 8 * 0.25);
  CHECK(view.bytes_per_s[reverse(up1).index()] == 400e9 / 8 * 0.5);
  CHECK(view.bytes_per_s[up2.index()] == 200e9 / 8 * 0.5);
  CHECK(view.usable(up1));
  for (const LinkId link : {up3, reverse(up3)}) {
    CHECK(view.health[link.index()] == Health::down);
    CHECK(view.bytes_per_s[link.index()] == 0);
    CHECK_FALSE(view.usable(link));
  }
  CHECK(view.bytes_per_s[f.out(s.gpu0)[0].index()] == 256e9 / 8);
}

TEST_CASE("down wins over degraded, whichever comes first") {
  Small s;
  const Fabric f = s.builder.freeze();
  State state;
  state.set(forward(s.up1), {Health::down});
  state.set(s.spine, {Health::up, 0.5, 0});
  const LiveView view(f, state);
  CHECK(view.health[forward(s.up1).index()] == Health::down);
  CHECK(view.bytes_per_s[forward(s.up1).index()] == 0);
}

}  // namespace
}  // namespace weft::model
