// A window of a whole zone: 9,072 directed links between switches, 2.3 million probes.
#include <benchmark/benchmark.h>

#include <string_view>

#include "adapt/sim/test_probing.hpp"
#include "adapt/sim/twin.hpp"
#include "base/check.hpp"
#include "model/formats/build_fabric.hpp"
#include "observe/localise/localise.hpp"
#include "route/router.hpp"

namespace weft::observe::localise {
namespace {

struct Zone {
  Zone() : fabric(make()), router(*route::Router::create(fabric, {.scheme = "e_ecmp"}, 1)) {
    auto made = adapt::sim::testing::make_plan(router, {}, 1);
    WEFT_CHECK(made.has_value());
    plan = *std::move(made);
  }
  static Fabric make() {
    auto section = parse_yaml(
        "{generator: ai_zone, racks: 252, hosts_per_rack: 2, gpus_per_host: 8, spines: 18}", "b");
    WEFT_CHECK(section.has_value());
    auto made = model::build_fabric(*section);
    WEFT_CHECK(made.has_value());
    return *std::move(made);
  }
  Fabric fabric;
  route::Router router;
  adapt::sim::TwinPlan plan;
};
const Zone& zone() {
  static const Zone one;
  return one;
}

// Good links lose up to 1e-5, ten hosts stall, a link loses 0.5 %; `spine` loses 1 % on top.
adapt::sim::Twin twin_of(bool spine) {
  const Fabric& fabric = zone().fabric;
  adapt::sim::Twin twin(fabric, 1, 1);
  Rng rng(1);
  for (const LinkId link : fabric.links())
    if (fabric.on_wire(link)) twin.set_loss(link, 1e-5 * rng.uniform());
  for (std::size_t i = 0; i < 10; ++i) twin.set_stalls(fabric.hosts()[50 * i], {.per_s = 0.5});
  const std::vector<NodeId>& spines = fabric.role(fabric.find_role("ctsw")).nodes;
  twin.set_loss(fabric.out(spines[3])[7], 0.005);
  if (spine)
    for (const LinkId out : fabric.out(spines[9])) {
      twin.set_loss(out, 0.01);
      twin.set_loss(model::reverse(out), 0.01);
    }
  return twin;
}

void localise_zone(benchmark::State& state) {
  auto twin = twin_of(state.range(0) != 0);
  const EvidenceSet evidence = twin.observe(zone().plan, {0}, 10_s).evidence;
  const Localiser localiser(zone().fabric);
  for (auto _ : state) {
    const Report report = localiser.run(evidence);
    benchmark::DoNotOptimize(report.verdicts.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(evidence.rows.size()));
}
BENCHMARK(localise_zone)->ArgName("spine")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void build_localiser(benchmark::State& state) {
  for (auto _ : state) {
    const Localiser localiser(zone().fabric);
    benchmark::DoNotOptimize(&localiser);
  }
}
BENCHMARK(build_localiser)->Unit(benchmark::kMillisecond);

void twin_window(benchmark::State& state) {
  auto twin = twin_of(false);
  for (auto _ : state) {
    const auto seen = twin.observe(zone().plan, {0}, 10_s);
    benchmark::DoNotOptimize(seen.evidence.rows.data());
  }
}
BENCHMARK(twin_window)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weft::observe::localise
