// Routing at the size of the largest published clusters.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/rng.hpp"
#include "model/fabric/state.hpp"
#include "model/formats/build_fabric.hpp"
#include "route/assign.hpp"
#include "route/fib.hpp"
#include "route/router.hpp"

namespace weft::route {
namespace {

Fabric fabric_of(const std::string& yaml) {
  auto section = parse_yaml(yaml, "bench");
  WEFT_CHECK(section.has_value());
  auto fabric = model::build_fabric(*section);
  WEFT_CHECK(fabric.has_value());
  return *std::move(fabric);
}

// 1,536 racks of 16 GPUs, 128 CTSWs, 448 ATSWs: room for 24,576 GPUs, of which jobs take 16,384.
const Fabric& three_tier() {
  static const Fabric fabric =
      fabric_of("{generator: three_tier, pods: 8, racks: 192, ctsws: 16, atsws: 28}");
  return fabric;
}

Router router_of(const Fabric& fabric, const RoutingConfig& config) {
  auto router = Router::create(fabric, config, 1);
  WEFT_CHECK(router.has_value());
  return *std::move(router);
}

// A new router, and the 16 QPs of a ring over 2,048 hosts x 8 NICs: 262,144 streams.
void ring_of_16384(benchmark::State& state, const std::string& scheme, std::uint32_t qps) {
  const Fabric& fabric = three_tier();
  constexpr std::size_t gpus = 16'384;
  std::vector<Hop> hops;
  for (auto _ : state) {
    Router router = router_of(fabric, {.scheme = scheme, .qps = qps});
    for (std::size_t i = 0; i < gpus; ++i)
      for (std::uint32_t qp = 0; qp < qps; ++qp) {
        hops.clear();
        router.append_path({fabric.nics()[i], fabric.nics()[(i + 1544) % gpus], qp}, hops);
        benchmark::DoNotOptimize(hops.data());
      }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(gpus * qps));
}
BENCHMARK_CAPTURE(ring_of_16384, e_ecmp, "e_ecmp", 16)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ring_of_16384, ecmp, "ecmp", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ring_of_16384, pinned, "pinned", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ring_of_16384, spray, "spray", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ring_of_16384, optimal, "optimal", 1)->Unit(benchmark::kMillisecond);

void gpu_ring_of_16384(benchmark::State& state) {
  const Fabric& fabric = three_tier();
  constexpr std::size_t gpus = 16'384;
  std::vector<Hop> hops;
  for (auto _ : state) {
    Router router = router_of(fabric, {.scheme = "e_ecmp"});
    for (std::size_t i = 0; i < gpus; ++i) {
      hops.clear();
      router.append_gpu_path(fabric.gpus()[i], fabric.gpus()[(i + 1) % gpus], 0, 0, hops);
      router.append_gpu_path(fabric.gpus()[i], fabric.gpus()[(i + 8) % gpus], 0, 0, hops);
      benchmark::DoNotOptimize(hops.data());
    }
  }
}
BENCHMARK(gpu_ring_of_16384)->Unit(benchmark::kMillisecond);

// One path asked for again and again: the cost of the hot loop.
void one_path(benchmark::State& state, const std::string& scheme) {
  const Fabric& fabric = three_tier();
  Router router = router_of(fabric, {.scheme = scheme, .qps = 4096});
  std::vector<Hop> hops;
  std::uint32_t qp = 0;
  for (auto _ : state) {
    hops.clear();
    router.append_path({fabric.nics()[0], fabric.nics()[20'000], qp++ % 4096}, hops);
    benchmark::DoNotOptimize(hops.data());
  }
}
BENCHMARK_CAPTURE(one_path, e_ecmp, "e_ecmp");
BENCHMARK_CAPTURE(one_path, pinned, "pinned");
BENCHMARK_CAPTURE(one_path, optimal, "optimal");

// All pairs of an AlltoAll over a zone of 4,032 GPUs.
void all_pairs_of_4032(benchmark::State& state, const std::string& scheme) {
  static const Fabric fabric = fabric_of("{generator: ai_zone, racks: 252, spines: 18}");
  Router router = router_of(fabric, {.scheme = scheme});
  std::vector<Hop> hops;
  for (auto _ : state)
    for (const NodeId a : fabric.nics())
      for (const NodeId b : fabric.nics()) {
        if (a == b) continue;
        hops.clear();
        router.append_path({a, b}, hops);
        benchmark::DoNotOptimize(hops.data());
      }
  const auto nics = static_cast<std::int64_t>(fabric.nics().size());
  state.SetItemsProcessed(state.iterations() * nics * (nics - 1));
}
BENCHMARK_CAPTURE(all_pairs_of_4032, ecmp, "ecmp")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(all_pairs_of_4032, optimal, "optimal")->Unit(benchmark::kMillisecond);

// A rack's cable fails and comes back, with one path asked for from every rack after each.
void flapping_cable(benchmark::State& state) {
  const Fabric& fabric = three_tier();
  Router router = router_of(fabric, {.scheme = "ecmp"});
  std::vector<Hop> hops;
  bool down = false;
  for (auto _ : state) {
    model::State now;
    down = !down;
    if (down) {
      const NodeId rtsw = fabric.role(fabric.find_role("rtsw")).nodes[3];
      const NodeId ctsw = fabric.role(fabric.find_role("ctsw")).nodes[3];
      now.set(fabric.links_between(rtsw, ctsw).front(), {.health = model::Health::down});
    }
    router.set_state(now);
    for (std::size_t i = 0; i < fabric.nics().size(); i += 16) {
      hops.clear();
      router.append_path({fabric.nics()[i], fabric.nics()[fabric.nics().size() - 1 - i]}, hops);
    }
  }
}
BENCHMARK(flapping_cable)->Unit(benchmark::kMillisecond);

void create_131072(benchmark::State& state) {
  static const Fabric fabric =
      fabric_of("{generator: three_tier, pods: 32, racks: 256, oversubscription: 7}");
  for (auto _ : state) {
    Router router = router_of(fabric, {.scheme = "e_ecmp"});
    benchmark::DoNotOptimize(router.resource_count());
  }
}
BENCHMARK(create_131072)->Unit(benchmark::kMillisecond);

// 8,192 NICs under 1,280 switches.
const Fabric& fat_tree_32() {
  static const Fabric fabric = fabric_of("{generator: fat_tree, k: 32}");
  return fabric;
}

Fib fib_of(const Fabric& fabric) {
  auto fib = Fib::build(fabric, {}, fabric.nics());
  WEFT_CHECK(fib.has_value());
  return *std::move(fib);
}

void fib_build_8192(benchmark::State& state) {
  const Fabric& fabric = fat_tree_32();
  std::size_t bytes = 0;
  for (auto _ : state) bytes = fib_of(fabric).bytes();
  state.counters["MB"] = static_cast<double>(bytes) * 1e-6;
}
BENCHMARK(fib_build_8192)->Unit(benchmark::kMillisecond);

// 65,536 packets between random NICs, each moved by one hop in turn.
void fib_walk_8192(benchmark::State& state) {
  const Fabric& fabric = fat_tree_32();
  const Fib fib = fib_of(fabric);
  struct Packet {
    NodeId at;
    std::uint32_t target;
  };
  Rng rng(1);
  const auto nic = [&] { return fabric.nics()[rng.below(fabric.nics().size())]; };
  std::vector<Packet> packets(1 << 16);
  for (Packet& packet : packets) packet = {nic(), fib.target(nic())};
  for (auto _ : state) {
    for (Packet& packet : packets) {
      const auto links = fib.next(packet.at, packet.target);
      packet.at = fabric.to(links[links.size() == 1 ? 0 : rng.next() % links.size()]);
      if (fabric.is_switch(packet.at)) continue;
      packet = {nic(), fib.target(nic())};
    }
    benchmark::DoNotOptimize(packets.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(packets.size()));
}
BENCHMARK(fib_walk_8192);

// 16 rings of 252 racks (Meta's zone) for each flow of a NIC, in mixed order, assigned from nothing
// (with 18 spines), or again after one of them failed.
Assignment zone_of_rings(int per_nic, bool equal) {
  constexpr std::uint32_t racks = 252;
  Rng rng(1);
  std::vector<Assignment::Flow> flows;
  std::vector<std::uint32_t> order(racks);
  for (std::uint32_t r = 0; r < racks; ++r) order[r] = r;
  const auto shuffle = [&](auto& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[rng.below(i)]);
  };
  for (int ring = 0; ring < 16 * per_nic; ++ring) {
    shuffle(order);
    for (std::uint32_t i = 0; i < racks; ++i)
      flows.push_back({order[i], order[(i + 1) % racks],
                       equal ? 1 : 0.1 + 0.0009 * static_cast<double>(rng.below(1000))});
  }
  shuffle(flows);
  Assignment out(racks, 18);
  for (const Assignment::Flow& flow : flows) out.add(flow);
  return out;
}

void assign(benchmark::State& state, bool equal, bool spine_fails) {
  Assignment start = zone_of_rings(static_cast<int>(state.range(0)), equal);
  if (spine_fails) start.solve();
  Assignment::Outcome outcome;
  for (auto _ : state) {
    state.PauseTiming();
    Assignment assignment = start;
    state.ResumeTiming();
    for (std::uint32_t r = 0; spine_fails && r < 252; ++r) assignment.set_capacity(r, 3, 0, 0);
    outcome = assignment.solve();
  }
  state.counters["worst_over_bound"] = outcome.worst / outcome.bound;
  state.counters["moved"] = outcome.moved;
}
BENCHMARK_CAPTURE(assign, equal, true, false)->Arg(1)->Arg(4)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(assign, unequal, false, false)->Arg(1)->Arg(4)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(assign, equal_spine, true, true)->Arg(1)->Arg(4)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(assign, unequal_spine, false, true)
    ->Arg(1)
    ->Arg(4)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weft::route
