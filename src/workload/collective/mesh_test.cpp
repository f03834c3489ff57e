#include "workload/collective/mesh.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <utility>

#include "base/test_approx.hpp"
#include "workload/collective/test_fabric.hpp"
#include "workload/collective/test_kit.hpp"

namespace weft::workload {
namespace {

using Cables = std::map<std::pair<NodeId, NodeId>, double>;

TEST_CASE("rings of a mesh pass all places, and each cable equally often in each direction") {
  for (std::uint32_t members = 2; members <= 8; ++members) {
    CAPTURE(members);
    const std::uint32_t rings = mesh_ring_count(members);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> used;
    for (std::uint32_t number = 0; number < rings; ++number) {
      const auto ring = mesh_ring(members, number);
      CHECK(std::set(ring.begin(), ring.end()).size() == members);
      REQUIRE(ring.size() == members);
      for (std::size_t i = 0; i < members; ++i) ++used[{ring[i], ring[(i + 1) % members]}];
    }
    CHECK(used.size() == std::size_t{members} * (members - 1));
    for (const auto& [cable, count] : used) CHECK(count * (members - 1) == rings);
  }
  CHECK(mesh_ring_count(9) == 1);
  CHECK(mesh_ring(1, 0) == std::vector(1, 0u));
}

// Bytes of a ring by cable inside hosts.
Cables bytes_inside(const Fabric& fabric, const std::vector<NodeId>& ranks) {
  const auto traffic =
      build_traffic(fabric, {.algorithm = "ring", .ranks = ranks, .bytes = 56'000, .matrix = {}});
  REQUIRE(traffic.has_value());
  Cables out;
  for (const Chain& chain : traffic->stages.front().chains)
    for (const Edge& edge : chain.edges)
      if (fabric.host_of(edge.from) == fabric.host_of(edge.to))
        out[{edge.from, edge.to}] += edge.bytes;
  return out;
}

TEST_CASE("an all-reduce over one mesh loads all of its cables alike") {
  const Fabric fabric = test::make_fabric({.hosts = 1, .gpus = 8, .nics = 8, .is_mesh = true});
  for (std::uint32_t n = 3; n <= 8; ++n) {
    const Cables bytes = bytes_inside(fabric, test::first_gpus(fabric, n));
    CHECK(bytes.size() == n * (n - 1));
    // Each rank sends 2 (n - 1) / n of the data, to n - 1 others.
    for (const auto& [cable, sent] : bytes) CHECK(sent == approx(2 * 56'000.0 / n));
  }
}

TEST_CASE("an all-reduce over several meshes loads the cables of each alike") {
  const Fabric fabric = test::make_fabric({.hosts = 3, .gpus = 8, .nics = 8, .is_mesh = true});
  const Cables bytes = bytes_inside(fabric, test::first_gpus(fabric, 24));
  CHECK(bytes.size() == 3 * 56);
  for (const auto& [cable, sent] : bytes) CHECK(sent == approx(bytes.begin()->second));
}

TEST_CASE("an all-to-all in a mesh uses the cables to all peers at once") {
  const Fabric fabric = test::make_fabric({.hosts = 2, .gpus = 8, .nics = 8, .is_mesh = true});
  const auto exchanges = [&](std::uint32_t n) {
    const auto ranks = test::first_gpus(fabric, n);
    const auto traffic =
        build_traffic(fabric, {.op = Op::all_to_all, .ranks = ranks, .bytes = 1e6, .matrix = {}});
    REQUIRE(traffic.has_value());
    return traffic->stages.front().exchanges;
  };
  CHECK(exchanges(8).front().window == 7);
  CHECK(exchanges(16).at(0).window == 1);  // between the hosts
  CHECK(exchanges(16).at(1).window == 7);
}

TEST_CASE("meshes are those whose GPUs all have cables to each other, without an NVSwitch") {
  const Fabric mesh = test::make_fabric({.hosts = 2, .gpus = 4, .nics = 4, .is_mesh = true});
  const auto gpus = test::first_gpus(mesh, 8);
  CHECK(is_mesh(mesh, std::span(gpus).first(4)));
  CHECK_FALSE(is_mesh(mesh, std::span(gpus).subspan(2, 4)));  // of two hosts
  CHECK_FALSE(is_mesh(mesh, std::span(gpus).first(1)));
  CHECK(Layout(mesh, gpus).is_mesh(0));
  CHECK_FALSE(Layout(mesh, std::span(gpus).first(2)).is_mesh(0));  // one cable
  const Fabric switched = test::make_fabric({.hosts = 1, .gpus = 4, .nics = 4});
  CHECK_FALSE(Layout(switched, test::first_gpus(switched, 4)).is_mesh(0));
}

TEST_CASE("the fewer GPUs of a mesh take part, the fewer of their links do") {
  const System system = test::preset("mi300x");
  CHECK(ring_bytes_per_s(system, test::hosts_of(1, 8)) == system.link.ring);
  CHECK(ring_bytes_per_s(system, test::hosts_of(1, 4)) == approx(system.link.ring * 3 / 7));
  CHECK(ring_bytes_per_s(system, test::hosts_of(1, 2)) == pair_bytes_per_s(system));
  const System h100 = test::preset("h100");
  CHECK(ring_bytes_per_s(h100, test::hosts_of(1, 2)) == h100.link.ring);
  CHECK(pair_bytes_per_s(h100) == h100.link.ring);
}

TEST_CASE("the machine under a mesh is known by its cables") {
  const Fabric fabric = test::make_fabric({.hosts = 2, .gpus = 8, .nics = 8, .is_mesh = true});
  const auto system = system_of(fabric, test::first_gpus(fabric, 16), Transport::roce);
  REQUIRE(system.has_value());
  CHECK(system->generation == Generation::xgmi);
  // Cables of 400 Gbps here, of 512 in the product.
  CHECK(system->link.pair == approx(test::preset("mi300x").link.pair * 400 / 512));
  CHECK(system->link.nvls == 0);
  // One rank a host has no such cable to use, and is of the same machine.
  const std::vector<NodeId> apart{fabric.gpus()[0], fabric.gpus()[8]};
  CHECK(system_of(fabric, apart, Transport::roce)->generation == Generation::xgmi);
}

// GPUs 0 to 3 in a ring: 0 and 2 have no cable.
TEST_CASE("GPUs with cables to some of the others only are no mesh") {
  model::FabricBuilder builder;
  const NodeId host = builder.add_node({.kind = model::NodeKind::host, .role = "host"});
  std::vector<NodeId> gpus;
  for (int i = 0; i < 4; ++i)
    gpus.push_back(builder.add_node({.kind = model::NodeKind::gpu, .role = "gpu", .host = host}));
  for (std::size_t i = 0; i < 4; ++i)
    builder.add_circuit(gpus[i], gpus[(i + 1) % 4], {.rate = 200_Gbps, .latency = {}});
  const Fabric fabric = builder.freeze();
  const auto refused = system_of(fabric, gpus, Transport::roce);
  REQUIRE_FALSE(refused.has_value());
  CHECK(test::contains(refused.error().text(), "gpu:0 has no NVLink"));
  const std::vector<NodeId> pair{gpus[0], gpus[1]};
  CHECK(system_of(fabric, pair, Transport::roce)->generation == Generation::xgmi);
}

}  // namespace
}  // namespace weft::workload
