// Paths of one pair of NICs that share no link, and candidates for UGAL.
#include <doctest/doctest.h>

#include "base/test_effort.hpp"
#include "model/fabric/max_flow.hpp"
#include "route/test_net.hpp"

namespace weft::route {
namespace {

using namespace testing;

std::vector<Path> disjoint(Router& router, NodeId src, NodeId dst, std::uint32_t count) {
  std::vector<Path> paths;
  router.append_disjoint_paths(src, dst, count, paths);
  return paths;
}

bool between_switches(const Fabric& fabric, LinkId l) {
  return fabric.is_switch(fabric.from(l)) && fabric.is_switch(fabric.to(l));
}

// Each a way from src to dst; how often links of each kind are used at most.
struct Use {
  int between = 0, of_nic = 0;
};
Use check_paths(const Fabric& fabric, NodeId src, NodeId dst, const std::vector<Path>& paths) {
  std::map<LinkId, int> load;
  for (const Path& path : paths) {
    NodeId at = src;
    for (const LinkId l : path) {
      CHECK(fabric.from(l) == at);
      at = fabric.to(l);
      ++load[l];
    }
    CHECK(at == dst);
  }
  Use use;
  for (const auto& [l, count] : load) {
    int& most = between_switches(fabric, l) ? use.between : use.of_nic;
    most = std::max(most, count);
  }
  return use;
}

TEST_CASE("disjoint paths: as many as a fat tree has, on one port") {
  const Fabric fabric = make_fabric("{generator: fat_tree, k: 8}");
  Router router = make_router(fabric, {});
  const NodeId src = fabric.nics().front(), dst = fabric.nics().back();
  for (const std::uint32_t count : {0u, 1u, 3u, 4u, 9u}) {
    const std::vector<Path> paths = disjoint(router, src, dst, count);
    CHECK(paths.size() == std::min(count, 4u));  // 4 links up from an edge switch
    CHECK(check_paths(fabric, src, dst, paths).between <= 1);
  }
  CHECK(disjoint(router, src, dst, 4) == disjoint(router, src, dst, 4));
  CHECK(disjoint(router, src, src, 4).empty());
  CHECK(disjoint(router, src, fabric.nics()[1], 4).size() == 1);  // over one switch
}

TEST_CASE("disjoint paths: HPN's two ports are used evenly, and after a failure the other one") {
  const Fabric fabric = make_fabric("{generator: hpn, segments: 2, hosts_per_segment: 4, aggs: 4}");
  Router router = make_router(fabric, {});
  const NodeId src = fabric.nics()[0], dst = fabric.nics()[32];
  const std::vector<Path> paths = disjoint(router, src, dst, 4);
  REQUIRE(paths.size() == 4);
  const Use use = check_paths(fabric, src, dst, paths);
  CHECK(use.between == 1);
  CHECK(use.of_nic == 2);
  State state;
  set_health(state, fabric.out(src).back(), Health::down);
  router.set_state(state);
  for (const Path& path : disjoint(router, src, dst, 4))
    CHECK(path.front() != fabric.out(src).back());
  state.set(src, {.health = Health::down});
  router.set_state(state);
  CHECK(disjoint(router, src, dst, 4).empty());
}

TEST_CASE("disjoint paths: pairs do not all begin at the first uplink") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 2, spines: 16}");
  Router router = make_router(fabric, {});
  std::set<LinkId> used;
  for (std::size_t i = 0; i < 16; ++i)
    for (const Path& path : disjoint(router, fabric.nics()[i], fabric.nics()[16 + i], 2))
      used.insert(path[1]);
  CHECK(used.size() > 10);
}

// The most there can be when links between switches carry one path, those of NICs all.
std::int64_t disjoint_bound(const Fabric& fabric, const std::vector<LinkId>& usable, NodeId src,
                            NodeId dst) {
  std::map<NodeId, std::uint32_t> index;
  for (const LinkId l : usable) {
    index.try_emplace(fabric.from(l), static_cast<std::uint32_t>(index.size()));
    index.try_emplace(fabric.to(l), static_cast<std::uint32_t>(index.size()));
  }
  if (!index.contains(src) || !index.contains(dst)) return 0;
  model::MaxFlow flow(index.size());
  for (const LinkId l : usable)
    flow.add_edge(index[fabric.from(l)], index[fabric.to(l)],
                  between_switches(fabric, l) ? 1 : 1000, 0);
  return flow.run(index[src], index[dst], 1'000'000).value();
}

TEST_CASE("disjoint paths: as many as the max flow on random graphs") {
  Rng rng(5);
  for (std::uint64_t round = 0; round < test_effort(300); ++round) {
    CAPTURE(round);
    const Fabric fabric = random_fabric(rng);
    Router router = make_router(fabric, {});
    router.set_state(random_state(fabric, rng));
    for (const NodeId src : fabric.nics())
      for (const NodeId dst : fabric.nics()) {
        if (src == dst) continue;
        const std::vector<Path> paths = disjoint(router, src, dst, 1000);
        std::vector<LinkId> usable;
        if (std::vector<Hop> hops; router.append_path({src, dst}, hops))
          router.append_usable({src, dst}, usable);
        CHECK(check_paths(fabric, src, dst, paths).between <= 1);
        CHECK(std::set<Path>(paths.begin(), paths.end()).size() == paths.size());
        CHECK(paths.empty() == usable.empty());
        if (!paths.empty() && paths[0].size() > 2)
          CHECK(static_cast<std::int64_t>(paths.size()) ==
                disjoint_bound(fabric, usable, src, dst));
      }
  }
}

TEST_CASE("candidate paths: minimal ones and detours on a dragonfly, each once") {
  const Fabric fabric =
      make_fabric("{generator: dragonfly, p: 2, a: 4, h: 2, g: 9, gpus_per_host: 2}");
  Router router = make_router(fabric, {.scheme = "ugal"});
  const NodeId src = fabric.nics().front(), dst = fabric.nics().back();
  std::vector<Path> minimal, detours;
  router.append_candidate_paths(src, dst, 0, 8, minimal, detours);
  CHECK(minimal.size() == 1);  // one cable between two groups
  CHECK(detours.size() > 3);
  CHECK(detours.size() <= 7);  // the other groups
  CHECK(std::set<Path>(detours.begin(), detours.end()).size() == detours.size());
  check_paths(fabric, src, dst, minimal);
  check_paths(fabric, src, dst, detours);
  std::vector<Path> more_minimal, more_detours;
  router.append_candidate_paths(src, dst, 1, 8, more_minimal, more_detours);
  CHECK(more_minimal == minimal);
  CHECK(more_detours != detours);  // another QP
  Router clos = make_router(fabric, {.scheme = "ecmp"});
  clos.append_candidate_paths(src, dst, 0, 8, minimal, detours);
  CHECK(minimal.size() == 1);
}

TEST_CASE("candidate paths: no detours between two groups, none at all when cut off") {
  const Fabric fabric =
      make_fabric("{generator: dragonfly, p: 2, a: 2, h: 1, g: 2, gpus_per_host: 2}");
  Router router = make_router(fabric, {.scheme = "ugal"});
  const NodeId src = fabric.nics().front(), dst = fabric.nics().back();
  std::vector<Path> minimal, detours;
  router.append_candidate_paths(src, dst, 0, 8, minimal, detours);
  CHECK(!minimal.empty());
  CHECK(detours.empty());
  State state;
  state.set(dst, {.health = Health::down});
  router.set_state(state);
  minimal.clear();
  router.append_candidate_paths(src, dst, 0, 8, minimal, detours);
  CHECK(minimal.empty());
  CHECK(detours.empty());
}

}  // namespace
}  // namespace weft::route
