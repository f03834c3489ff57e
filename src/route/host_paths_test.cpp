// From GPU to GPU: NVLink, PCIe, NICs and relays.
#include "route/host_paths.hpp"

#include <doctest/doctest.h>

#include "route/test_net.hpp"

namespace weft::route {
namespace {

using namespace testing;

std::vector<Hop> gpu_path(Router& router, NodeId a, NodeId b, std::uint32_t qp = 0) {
  std::vector<Hop> hops;
  router.append_gpu_path(a, b, qp, 0, hops);
  return hops;
}
std::string gpu_names(Router& router, std::size_t a, std::size_t b) {
  const auto gpus = router.fabric().gpus();
  return names(router.fabric(), links_of(gpu_path(router, gpus[a], gpus[b])));
}

TEST_CASE(
    "inside a host over NVLink; between hosts from NIC to NIC, without PCIe that cannot limit") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 2, spines: 1}");
  Router router = make_router(fabric, {});
  CHECK(gpu_names(router, 0, 5) == "gpu:0->nvswitch:0 nvswitch:0->gpu:5");
  CHECK(gpu_names(router, 3, 8 + 3) == "nic:3->rtsw:0 rtsw:0->nic:11");
  CHECK(gpu_names(router, 3, 16 + 2) ==
        "nic:3->rtsw:0 rtsw:0->ctsw:0 ctsw:0->rtsw:1 rtsw:1->nic:18");
  std::vector<Hop> hops;
  CHECK(router.append_gpu_path(fabric.gpus()[1], fabric.gpus()[1], 0, 0, hops));
  CHECK(hops.empty());
  CHECK(router.latency(fabric.gpus()[0], fabric.gpus()[5]) == 50_ns);
  CHECK(router.latency(fabric.gpus()[3], fabric.gpus()[18]) == 2_us);
}

TEST_CASE("GPUs of hosts that share an NVSwitch send over it, others over NICs or by PXN") {
  const Fabric fabric =
      make_fabric("{generator: rail_only, hosts: 4, host: gb200, hosts_per_nvlink_domain: 2}");
  Router router = make_router(fabric, {});
  CHECK(gpu_names(router, 0, 7) == "gpu:0->nvswitch:0 nvswitch:0->gpu:7");
  CHECK(router.latency(fabric.gpus()[0], fabric.gpus()[7]) == 50_ns);
  CHECK(gpu_names(router, 0, 4) == "gpu:0->nvswitch:0 nvswitch:0->gpu:4");  // also on one rail
  CHECK(gpu_names(router, 0, 8) == "nic:0->rail:0 rail:0->nic:8");
  CHECK(gpu_names(router, 0, 9) ==
        "gpu:0->nvswitch:0 nvswitch:0->gpu:1 nic:1->rail:1 rail:1->nic:9");
}

TEST_CASE("a PCIe link slower than its NIC is part of the path, in its own direction and state") {
  // 800 Gbps NIC cables behind PCIe gen 5.
  const Fabric fast = make_fabric("{generator: ai_zone, racks: 1, spines: 1, link: 800 Gbps}");
  Router router = make_router(fast, {});
  CHECK(gpu_names(router, 0, 8) ==
        "gpu:0->pcie:0 pcie:0->nic:0 nic:0->rtsw:0 rtsw:0->nic:8 nic:8->pcie:4 pcie:4->gpu:8");

  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 1, spines: 1}");
  Router slowed = make_router(fabric, {});
  State state;
  state.set(link(fabric, "gpu:0->pcie:0"), {.rate_factor = 0.5});
  slowed.set_state(state);
  CHECK(gpu_names(slowed, 0, 8) == "gpu:0->pcie:0 nic:0->rtsw:0 rtsw:0->nic:8");
  CHECK(gpu_names(slowed, 8, 0) == "nic:8->rtsw:0 rtsw:0->nic:0");
  state.set(link(fabric, "gpu:0->pcie:0"), {.health = Health::down});
  slowed.set_state(state);
  CHECK(gpu_names(slowed, 0, 8) == "");
  CHECK(gpu_names(slowed, 1, 8) == "nic:1->rtsw:0 rtsw:0->nic:8");
  slowed.set_state({});
  CHECK(gpu_names(slowed, 0, 8) == "nic:0->rtsw:0 rtsw:0->nic:8");
}

TEST_CASE("GPUs that share a NIC share it, and their PCIe link stays out") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 2, spines: 1, nics_per_host: 4}");
  Router router = make_router(fabric, {});
  CHECK(fabric.nic_of(fabric.gpus()[0]) == fabric.nic_of(fabric.gpus()[1]));
  CHECK(gpu_names(router, 1, 8) == "nic:0->rtsw:0 rtsw:0->nic:4");
}

TEST_CASE("a failed NVLink stops the pair; other pairs go on") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 1, spines: 1}");
  Router router = make_router(fabric, {});
  State state;
  set_health(state, link(fabric, "gpu:2->nvswitch:0"), Health::down);
  router.set_state(state);
  CHECK(gpu_names(router, 2, 3) == "");
  CHECK(gpu_names(router, 4, 3) == "gpu:4->nvswitch:0 nvswitch:0->gpu:3");
  CHECK(!router.check_connected(fabric.gpus()[2], fabric.gpus()[3]).has_value());
}

// gpu:0 --- gpu:1   two GPUs cabled directly, a third one only over PCIe; two NVSwitches for others
TEST_CASE("NVLink stripes over switches; PCIe serves where NVLink is not cabled") {
  model::FabricBuilder b;
  const model::ScopeId none{};
  const NodeId host = b.add_node({NodeKind::host, "host", none});
  std::vector<NodeId> gpu;
  for (int i = 0; i < 4; ++i) gpu.push_back(b.add_node({NodeKind::gpu, "gpu", none, host}));
  const NodeId x = b.add_node({NodeKind::nvswitch, "nvswitch", none, host});
  const NodeId y = b.add_node({NodeKind::nvswitch, "nvswitch", none, host});
  const NodeId pcie = b.add_node({NodeKind::pcie_switch, "pcie", none, host});
  for (const NodeId s : {x, y})
    for (const NodeId g : {gpu[0], gpu[1]}) b.add_circuit(g, s, {400_Gbps, {}});
  b.add_circuit(gpu[1], gpu[2], {400_Gbps, {}});
  for (const NodeId g : gpu) b.add_circuit(g, pcie, {100_Gbps, {}});
  b.add_circuit(pcie, host, {100_Gbps, {}});
  const Fabric fabric = b.freeze();
  Router router = make_router(fabric, {});
  const std::vector<Hop> striped = gpu_path(router, gpu[0], gpu[1]);
  REQUIRE(striped.size() == 4);
  for (const Hop& hop : striped) CHECK(hop.share == 0.5);
  CHECK(gpu_names(router, 1, 2) == "gpu:1->gpu:2");
  CHECK(gpu_names(router, 0, 2) == "gpu:0->pcie:0 pcie:0->gpu:2");  // GPUs do not forward
  CHECK(gpu_names(router, 0, 3) == "gpu:0->pcie:0 pcie:0->gpu:3");
  State state;
  set_health(state, link(fabric, "gpu:0->nvswitch:1"), Health::down);
  router.set_state(state);
  CHECK(gpu_names(router, 0, 1) == "gpu:0->nvswitch:0 nvswitch:0->gpu:1");
}

// Two NVLink islands in one host, each GPU with a NIC on one switch.
TEST_CASE("GPUs of one host that share no NVLink use PCIe, though their NICs would meet") {
  model::FabricBuilder b;
  const model::ScopeId none{};
  const NodeId s = b.add_node({NodeKind::fabric_switch, "s", none});
  const NodeId host = b.add_node({NodeKind::host, "host", none});
  const NodeId pcie = b.add_node({NodeKind::pcie_switch, "pcie", none, host});
  std::vector<NodeId> island;
  for (int i = 0; i < 2; ++i)
    island.push_back(b.add_node({NodeKind::nvswitch, "nvswitch", none, host}));
  for (std::size_t i = 0; i < 4; ++i) {
    const NodeId gpu = b.add_node({NodeKind::gpu, "gpu", none, host});
    const NodeId nic = b.add_node({NodeKind::nic, "nic", none, host});
    b.add_circuit(gpu, island[i / 2], {400_Gbps, {}});
    b.add_circuit(gpu, pcie, {100_Gbps, {}});
    b.add_circuit(nic, pcie, {100_Gbps, {}});
    b.add_circuit(nic, s, {100_Gbps, {}});
  }
  const Fabric fabric = b.freeze();
  Router router = make_router(fabric, {});
  CHECK(gpu_names(router, 0, 1) == "gpu:0->nvswitch:0 nvswitch:0->gpu:1");
  CHECK(gpu_names(router, 0, 2) == "gpu:0->pcie:0 pcie:0->gpu:2");
}

TEST_CASE("rail-only: other rails are reached over NVLink at the source (PXN)") {
  const Fabric fabric = make_fabric("{generator: rail_only, hosts: 4}");
  Router router = make_router(fabric, {});
  CHECK(path_of(router, {fabric.nics()[0], fabric.nics()[11]}).empty());
  const Path path = links_of(gpu_path(router, fabric.gpus()[0], fabric.gpus()[8 + 3]));
  REQUIRE(path.size() == 4);
  CHECK(fabric.name(path[0]) == "gpu:0->nvswitch:0");
  CHECK(fabric.name(path[1]) == "nvswitch:0->gpu:3");
  CHECK(fabric.from(path[2]) == fabric.nics()[3]);
  CHECK(fabric.to(path[3]) == fabric.nics()[8 + 3]);
  CHECK(links_of(gpu_path(router, fabric.gpus()[3], fabric.gpus()[8 + 3])).size() == 2);
  CHECK(router.latency(fabric.gpus()[0], fabric.gpus()[11]) == 1_us + 50_ns);
  CHECK(router.check_connected(fabric.gpus()[0], fabric.gpus()[11]).has_value());
}

TEST_CASE("a failed NIC is not replaced by a relay") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 2, spines: 2}");
  Router router = make_router(fabric, {});
  State state;
  state.set(fabric.nics()[0], {.health = Health::down});
  router.set_state(state);
  CHECK(gpu_names(router, 0, 16) == "");
  CHECK(!gpu_names(router, 1, 16).empty());
}

TEST_CASE("GPUs without a NIC use that of another; without any there is no way") {
  model::FabricBuilder b;
  const model::ScopeId none{};
  const NodeId s = b.add_node({NodeKind::fabric_switch, "s", none});
  std::vector<NodeId> gpu, nic;
  for (int h = 0; h < 2; ++h) {
    const NodeId host = b.add_node({NodeKind::host, "host", none});
    for (int i = 0; i < 2; ++i) gpu.push_back(b.add_node({NodeKind::gpu, "gpu", none, host}));
    nic.push_back(b.add_node({NodeKind::nic, "nic", none, host}));
    const NodeId nvswitch = b.add_node({NodeKind::nvswitch, "nvswitch", none, host});
    for (std::size_t i = gpu.size() - 2; i < gpu.size(); ++i)
      b.add_circuit(gpu[i], nvswitch, {400_Gbps, {}});
    b.add_circuit(nic.back(), s, {400_Gbps, {}});
  }
  const NodeId lonely_host = b.add_node({NodeKind::host, "host", none});
  const NodeId lonely = b.add_node({NodeKind::gpu, "gpu", none, lonely_host});
  const Fabric fabric = b.freeze();
  Router router = make_router(fabric, {});
  CHECK(gpu_names(router, 0, 2) == "nic:0->s:0 s:0->nic:1");
  CHECK(gpu_path(router, gpu[0], lonely).empty());
  CHECK(
      router.check_connected(gpu[0], lonely).error().what ==
      "gpu:0 and gpu:4 are not connected: gpu:4 has no NIC, and no NVLink or PCIe to another GPU");
}

TEST_CASE("a switch may be an end, as for reductions in the network") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 2, spines: 2}");
  Router router = make_router(fabric, {});
  const NodeId spine = node(fabric, "ctsw:1");
  CHECK(names(fabric, links_of(gpu_path(router, fabric.gpus()[4], spine))) ==
        "nic:4->rtsw:0 rtsw:0->ctsw:1");
  CHECK(names(fabric, links_of(gpu_path(router, spine, fabric.gpus()[20]))) ==
        "ctsw:1->rtsw:1 rtsw:1->nic:20");
}

}  // namespace
}  // namespace weft::route
