#include "workload/collective/layout.hpp"

#include <doctest/doctest.h>

#include "workload/collective/test_fabric.hpp"

namespace weft::workload {
namespace {

std::vector<Rank> members(const Layout& layout, std::uint32_t host) {
  const auto span = layout.members(host);
  return {span.begin(), span.end()};
}

// host:0  gpu 0 1 | 2 3      host:1  gpu 4 5 | 6 7       NICs by "|"
TEST_CASE("hosts by first rank, members by GPU, lanes by NIC") {
  const Fabric fabric = test::make_fabric({.hosts = 2, .gpus = 4, .nics = 2});
  const auto gpu = [&](std::size_t i) { return fabric.gpus()[i]; };
  const std::vector<NodeId> ranks{gpu(6), gpu(3), gpu(7), gpu(0), gpu(1)};
  const Layout layout(fabric, ranks);
  CHECK(layout.rank_count() == 5);
  REQUIRE(layout.host_count() == 2);
  CHECK(members(layout, 0) == std::vector<Rank>{0, 2});     // gpu 6, 7
  CHECK(members(layout, 1) == std::vector<Rank>{3, 4, 1});  // gpu 0, 1, 3
  CHECK_FALSE(layout.even());
  CHECK(layout.members_max() == 3);
  CHECK(layout.lane_count_max() == 2);
  CHECK(layout.lane(0, 0).in == 0);
  CHECK(layout.lane(0, 0).out == 2);
  CHECK(layout.lane(0, 5).in == 0);  // the only lane of this host
  CHECK(layout.lane(1, 0).out == 4);
  CHECK(layout.lane(1, 1).in == 1);
  CHECK(layout.lane(1, 1).out == 1);
}

TEST_CASE("rails are kept whatever the order of ranks inside hosts") {
  const Fabric fabric = test::make_fabric({.hosts = 3, .gpus = 4, .nics = 4, .leaves = 4});
  std::vector<NodeId> ranks = test::first_gpus(fabric, 12);
  Rng rng(3);
  rng.shuffle(std::span(ranks));
  for (const char* algorithm : {"ring", "hierarchical", "tree", "nvls_tree"}) {
    const auto traffic =
        build_traffic(fabric, {.algorithm = algorithm, .ranks = ranks, .bytes = 1, .matrix = {}});
    REQUIRE(traffic.has_value());
    for (const Stage& stage : traffic->stages)
      for (const Chain& chain : stage.chains)
        for (const Edge& e : chain.edges) {
          if (fabric.host_of(e.from) == fabric.host_of(e.to)) continue;
          CAPTURE(algorithm);
          // NIC k of every host is on leaf k.
          const auto leaf = [&](NodeId gpu) { return fabric.role_index(fabric.nic_of(gpu)) % 4; };
          CHECK(leaf(e.from) == leaf(e.to));
        }
  }
}

TEST_CASE("a group on fewer NICs than its hosts have uses those it has") {
  const Fabric fabric = test::make_fabric({.hosts = 2, .gpus = 4, .nics = 4});
  const std::vector<NodeId> ranks{fabric.gpus()[2], fabric.gpus()[6], fabric.gpus()[3]};
  const Layout layout(fabric, ranks);
  CHECK(layout.lane_count_max() == 2);
  CHECK(layout.lane(0, 1).in == 2);
  CHECK(layout.lane(1, 1).in == 1);
}

TEST_CASE("without NICs every GPU is its own lane") {
  const Fabric fabric = test::make_fabric({.hosts = 2, .gpus = 3, .nics = 0});
  const Layout layout(fabric, test::first_gpus(fabric, 6));
  CHECK(layout.lane_count_max() == 3);
  CHECK(layout.lane(1, 2).in == 5);
}

}  // namespace
}  // namespace weft::workload
