#include "model/formats/astra_network.hpp"

#include <cstdio>
#include <string>

#include "base/file.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::model {
namespace {

using namespace testing;

Fabric network(std::string_view yaml) {
  auto fabric = read_astra_network(yaml, "net.yml");
  REQUIRE_MESSAGE(fabric.has_value(), (fabric ? "" : fabric.error().text()));
  return *std::move(fabric);
}

std::string refused(std::string_view yaml) {
  const auto fabric = read_astra_network(yaml, "net.yml");
  return fabric ? "accepted" : fabric.error().text();
}

// Hops between NPUs, those between a NIC and its own switch left out.
int distance(const Fabric& f, std::string_view from, std::string_view to) {
  return hops_from(f, node(f, from))[node(f, to).index()] - 2;
}

TEST_CASE("a ring: cables between neighbours") {
  //  nic:0 - npu:0 -- npu:1 -- npu:2 -- npu:3 -+
  //            +-------------------------------+
  const Fabric f = network(
      "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50.0 ]  # GB/s\nlatency: [ 500.0 ]  # "
      "ns\n");
  CHECK(count(f, "gpu") == 4);
  CHECK(count(f, "nic") == 4);
  CHECK(count(f, "npu") == 4);
  CHECK(tier_size(f, "npu->npu") == 8);
  // "GB/s" are 2^30 bytes per second.
  CHECK(f.rate(link(f, "npu:3->npu:0")).bps == (std::int64_t{1} << 30) * 50 * 8);
  CHECK(f.latency(link(f, "npu:0->npu:1")) == 500_ns);
  CHECK(f.rate(link(f, "nic:0->npu:0")) == f.rate(link(f, "npu:0->npu:1")) * 2);
  CHECK(f.latency(link(f, "nic:0->npu:0")) == Duration{});
  CHECK(distance(f, "nic:0", "nic:3") == 1);
  CHECK(distance(f, "nic:0", "nic:2") == 2);
  CHECK(f.nic_of(node(f, "gpu:3")) == node(f, "nic:3"));
}

TEST_CASE("rings of one, two and three") {
  CHECK(
      network("{topology: [Ring], npus_count: [1], bandwidth: [1], latency: [0]}").gpus().size() ==
      1);
  CHECK(tier_size(network("{topology: Ring, npus_count: 2, bandwidth: 1, latency: 0}"),
                  "npu->npu") == 2);
  CHECK(tier_size(network("{topology: Ring, npus_count: 3, bandwidth: 1, latency: 0}"),
                  "npu->npu") == 6);
}

TEST_CASE("one switch: NICs stand on it, in one rack") {
  const Fabric f =
      network("{topology: [Switch], npus_count: [8], bandwidth: [400], latency: [250]}");
  CHECK(count(f, "npu") == 0);
  CHECK(tier_size(f, "nic->switch") == 8);
  CHECK(f.latency(link(f, "nic:7->switch:0")) == 250_ns);
  CHECK(f.enclosing(node(f, "nic:0"), ScopeKind::rack) ==
        f.enclosing(node(f, "nic:7"), ScopeKind::rack));
}

TEST_CASE("three dimensions: rank is mixed radix, dimension 0 innermost") {
  const Fabric f = network(
      "topology: [Ring, FullyConnected, Switch]\nnpus_count: [2, 4, 3]\n"
      "bandwidth: [200, 100, 50]\nlatency: [50, 500, 2000]\n");
  CHECK(f.gpus().size() == 24);
  // 12 pairs, 6 groups of 6 pairs, 8 switches of 3.
  CHECK(tier_size(f, "npu->npu") == 2 * (12 + 6 * 6));
  CHECK(count(f, "switch") == 8);
  CHECK(tier_size(f, "npu->switch") == 24);
  CHECK(f.latency(link(f, "npu:0->npu:1")) == 50_ns);
  CHECK(f.latency(link(f, "npu:0->npu:6")) == 500_ns);  // 6 = 0 + 2 * 3
  CHECK(f.links_between(node(f, "npu:0"), node(f, "npu:8")).empty());
  CHECK(f.latency(link(f, "npu:0->switch:0")) == Duration{2'000'000});
  CHECK(f.latency(link(f, "npu:16->switch:0")) == Duration{2'000'000});
  CHECK(distance(f, "nic:0", "nic:23") == 4);  // 1 ring, 1 direct, 2 over a switch
  CHECK(f.rate(link(f, "nic:0->npu:0")).bps == (std::int64_t{1} << 30) * 8 * (200 + 3 * 100 + 50));
}

TEST_CASE("a scenario names the file") {
  const std::string path = "astra_network_test.yml";
  const std::string text = "topology: [Switch]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n";
  REQUIRE(write_file(path, text).has_value());
  const Fabric f = make_fabric("{file: " + path + "}");
  std::remove(path.c_str());
  CHECK(f.gpus().size() == 4);
}

TEST_CASE("mistakes are named with their place") {
  CHECK(contains(refused("{topology: [Rign], npus_count: [2], bandwidth: [1], latency: [0]}"),
                 "net.yml:1:13: unknown topology \"Rign\" (did you mean \"Ring\"?)"));
  CHECK(contains(refused("{topology: [Ring], npus_count: [2, 3], bandwidth: [1], latency: [0]}"),
                 "network.npus_count has 2 values, topology has 1"));
  CHECK(contains(refused("{topology: [Ring], npus_count: [0], bandwidth: [1], latency: [0]}"),
                 "npus_count is 0"));
  CHECK(contains(refused("{topology: [Ring], npus_count: [2], bandwidth: [0], latency: [0]}"),
                 "bandwidth (2^30 B/s) is 0"));
  CHECK(contains(refused("{topology: [Ring], npus_count: [2], bandwidth: [1], latency: [-1]}"),
                 "latency (ns) is -1"));
  CHECK(contains(refused("{topology: [Ring], npus_count: [2], bandwidth: [1]}"),
                 "network.latency is missing"));
  CHECK(contains(refused("{topology: [Ring], npus_count: [2], bandwidth: [1], latency: [0], x: 1}"),
                 "\"x\""));
  CHECK(contains(refused("{topology: [Ring, Ring], npus_count: [9999, 9999], bandwidth: [1, 1], "
                         "latency: [0, 0]}"),
                 "GPUs, more than"));
  CHECK(contains(refused("{topology: [FullyConnected], npus_count: [99999], bandwidth: [1], "
                         "latency: [0]}"),
                 "links, more than"));
  CHECK(refused("{topology: [], npus_count: [], bandwidth: [], latency: []}") != "accepted");
  CHECK(refused("[1, 2]") != "accepted");
}

TEST_CASE("every prefix of a file is a fabric or an error") {
  const std::string text =
      "topology: [ Ring, Switch ]\nnpus_count: [ 2, 2 ]\nbandwidth: [ 50.0, 1.5 ]\n"
      "latency: [ 500.0, 2 ]\n";
  for (std::size_t n = 0; n <= text.size(); ++n) {
    const auto fabric = read_astra_network(text.substr(0, n), "net.yml");
    CHECK((fabric.has_value() || !fabric.error().what.empty()));
  }
}

}  // namespace
}  // namespace weft::model
