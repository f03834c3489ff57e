// The fluid solver's hot paths: drains of concurrent flows, and a windowed exchange.
#include <benchmark/benchmark.h>

#include "base/hash.hpp"
#include "clos/instance.hpp"
#include "engine/fluid/simulation.hpp"

namespace {

using weft::engine::fluid::FlowId;
using weft::engine::fluid::Hop;
using weft::engine::fluid::LinkId;
using weft::engine::fluid::Simulation;

struct Quiet final : Simulation::Listener {
  void on_flow_end(FlowId, std::uint64_t) override {}
  void on_timer(std::uint64_t) override {}
};

// Up to 8,000 flows of the instance that SimGrid is compared on.
void drain(benchmark::State& state) {
  weft::bench::ClosInstance in;
  in.flows = static_cast<int>(state.range(0));
  const int racks = in.hosts / in.hosts_per_rack;
  const int up = 2 * in.hosts, down = up + racks * in.spines;
  std::vector<double> capacity(static_cast<std::size_t>(down + racks * in.spines), 50e9);
  for (std::size_t i = static_cast<std::size_t>(up); i < capacity.size(); ++i) capacity[i] = 25e9;
  for (auto _ : state) {
    Simulation simulation(capacity, {});
    Quiet quiet;
    weft::bench::for_each_flow(in, [&](int src, int dst, int spine, long long bytes) {
      const int a = up + src / in.hosts_per_rack * in.spines + spine;
      const int b = down + dst / in.hosts_per_rack * in.spines + spine;
      const Hop hops[] = {
          {LinkId(src), 1}, {LinkId(a), 1}, {LinkId(b), 1}, {LinkId(in.hosts + dst), 1}};
      simulation.start(hops, static_cast<double>(bytes), 0);
    });
    simulation.run(quiet);
    benchmark::DoNotOptimize(simulation.now());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(drain)->Arg(1000)->Arg(8000)->Unit(benchmark::kMillisecond);

// Flows between 32 NICs of one switch, so that many have the same path.
void drain_few_nics(benchmark::State& state, Simulation::Options::Bundles bundles) {
  constexpr std::uint64_t nics = 32;
  const std::vector<double> capacity(2 * nics, 50e9);
  for (auto _ : state) {
    Simulation simulation(capacity, {.solver = {}, .bundles = bundles});
    Quiet quiet;
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(state.range(0)); ++i) {
      const std::uint64_t draw = weft::mix64(i);
      const std::uint64_t src = draw % nics, dst = nics + draw / nics % nics;
      const Hop hops[] = {{LinkId(src), 1}, {LinkId(dst), 1}};
      simulation.start(hops, static_cast<double>(draw >> 32), 0);
    }
    simulation.run(quiet);
    benchmark::DoNotOptimize(simulation.now());
  }
}
using Bundles = Simulation::Options::Bundles;
BENCHMARK_CAPTURE(drain_few_nics, bundles, Bundles::on)
    ->Arg(4'000)
    ->Arg(16'000)
    ->Arg(64'000)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(drain_few_nics, single_flows, Bundles::off)
    ->Arg(4'000)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

// Each of 256 ranks keeps one message in flight, through hashed spines.
struct Exchange final : Simulation::Listener {
  static constexpr int ranks = 256, per_rack = 16, spines = 18;
  Simulation& simulation;
  std::vector<int> next = std::vector<int>(ranks, 1);
  explicit Exchange(Simulation& s) : simulation(s) {}
  void send(int rank) {
    if (next[static_cast<std::size_t>(rank)] == ranks) return;
    const int peer = (rank + next[static_cast<std::size_t>(rank)]++) % ranks;
    const int spine =
        static_cast<int>(weft::mix64(static_cast<std::uint64_t>(rank * ranks + peer)) % spines);
    const int up = 2 * ranks, down = up + ranks / per_rack * spines;
    const Hop hops[] = {{LinkId(rank), 1},
                        {LinkId(up + rank / per_rack * spines + spine), 1},
                        {LinkId(down + peer / per_rack * spines + spine), 1},
                        {LinkId(ranks + peer), 1}};
    simulation.start(hops, 1e6, static_cast<std::uint64_t>(rank));
  }
  void on_flow_end(FlowId, std::uint64_t rank) override { send(static_cast<int>(rank)); }
  void on_timer(std::uint64_t) override {}
};

void exchange(benchmark::State& state) {
  constexpr std::size_t links =
      2 * Exchange::ranks + 2 * Exchange::ranks / Exchange::per_rack * Exchange::spines;
  const std::vector<double> capacity(links, 50e9);
  for (auto _ : state) {
    Simulation simulation(capacity, {});
    Exchange listener(simulation);
    for (int rank = 0; rank < Exchange::ranks; ++rank) listener.send(rank);
    simulation.run(listener);
    benchmark::DoNotOptimize(simulation.now());
  }
  state.SetItemsProcessed(state.iterations() * Exchange::ranks * (Exchange::ranks - 1));
}
BENCHMARK(exchange)->Unit(benchmark::kMillisecond);

}  // namespace
