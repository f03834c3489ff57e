// The packet engine's rate, in packet hops (a packet of any kind that crosses a link) per second:
// a random permutation of 2 MB a host on a full-bisection fat tree, with PFC, ECN marking, DCQCN
// and all counters.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <numeric>

#include "base/rng.hpp"
#include "engine/packet/packet_run.hpp"
#include "model/formats/build_fabric.hpp"

namespace {

using namespace weft;
using namespace weft::engine::packet;

MessageSet permutation(const model::Fabric& fabric) {
  const std::size_t hosts = fabric.nics().size();
  std::vector<std::uint32_t> order(hosts);
  std::iota(order.begin(), order.end(), 0u);
  Rng(1).stream("permutation").shuffle(std::span(order));
  MessageSet set;
  for (std::size_t i = 0; i < hosts; ++i) {
    set.connections.push_back(
        {.src = fabric.nics()[order[i]], .dst = fabric.nics()[order[(i + 1) % hosts]]});
    set.messages.push_back({.connection = static_cast<std::uint32_t>(i), .bytes = 2'000'000});
  }
  set.messages.push_back({});
  return set;
}

// Arguments: k of the fat tree (k^3 / 4 hosts), threads.
void run(benchmark::State& state, const Options& base, const char* scheme) {
  const auto config = parse_yaml(
      fmt::format("{{generator: fat_tree, k: {}, link: 400 Gbps, latency: 1 us}}", state.range(0)),
      "bench");
  const auto fabric = model::build_fabric(*config);
  route::RoutingConfig routing;
  routing.scheme = scheme;
  const MessageSet set = permutation(*fabric);
  Options options = base;
  options.threads = static_cast<std::uint32_t>(state.range(1));
  std::int64_t hops = 0;
  for (auto _ : state) {
    auto router = route::Router::create(*fabric, routing, 1);
    Progress progress("", 0, Progress::Show::never);
    const auto result = run_messages(set, *router, {}, options, progress);
    if (!result || !result->complete) state.SkipWithError("the run did not complete");
    if (result) hops += static_cast<std::int64_t>(result->counters.hops);
  }
  state.SetItemsProcessed(hops);
}

void pfc_ecn_dcqcn(benchmark::State& state) {
  Options options;
  options.pfc.on = true;
  options.pfc.threshold = Pfc::Threshold::fixed;
  options.ecn.on = true;
  options.congestion = Congestion::dcqcn;
  run(state, options, "ecmp");
}
BENCHMARK(pfc_ecn_dcqcn)->Args({8, 1})->Args({16, 1})->Args({32, 1})->Unit(benchmark::kMillisecond);
BENCHMARK(pfc_ecn_dcqcn)->Args({16, 2})->Unit(benchmark::kMillisecond)->UseRealTime();

void nscc_spray(benchmark::State& state) {
  Options options;
  options.reliability = Reliability::selective;
  options.congestion = Congestion::nscc;
  options.balance = Balance::spray;
  options.ecn.on = true;
  run(state, options, "spray");
}
BENCHMARK(nscc_spray)->Args({8, 1})->Args({16, 1})->Unit(benchmark::kMillisecond);
BENCHMARK(nscc_spray)->Args({16, 2})->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
