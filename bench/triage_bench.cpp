// Correlation: normalised records in memory to cases, with everything between.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/rng.hpp"
#include "base/timestamp.hpp"
#include "model/formats/build_fabric.hpp"
#include "operate/triage/triage.hpp"

namespace {

namespace model = weft::model;
namespace triage = weft::operate::triage;
using model::EventKind;

model::Fabric zone() {
  const auto section = weft::parse_yaml(
      "{generator: ai_zone, racks: 252, spines: 18, link: 400 Gbps}", "bench.yaml");
  return *model::build_fabric(*section);
}

// Half of the records are of faults (cables, and now and then a spine), half say nothing of use or
// are bit errors; six hours, in order of receipt.
model::RecordSet storm(const model::Fabric& fabric, std::size_t count) {
  model::RecordSet set;
  weft::Rng rng(1);
  std::vector<model::LinkId> trunks;
  for (const model::LinkId link : fabric.links())
    if (fabric.is_switch(fabric.from(link)) && fabric.is_switch(fabric.to(link)))
      trunks.push_back(link);
  const auto say = [&](double s, model::LinkId link, EventKind kind) {
    model::Record row;
    row.t.ns = row.until.ns = static_cast<std::int64_t>(s * 1e9);
    row.received.ns = row.t.ns + static_cast<std::int64_t>(rng.uniform() * 2e9);
    row.entity = model::port_of(link);
    row.kind = kind;
    set.rows.push_back(row);
  };
  const auto fail = [&](double s, model::LinkId link) {
    for (const model::LinkId end : {link, reverse(link)})
      for (const auto& [after, kind] : {std::pair{0.0, EventKind::link_down},
                                        {0.2, EventKind::bgp_down},
                                        {60.0, EventKind::link_up},
                                        {62.0, EventKind::bgp_up}})
        say(s + after, end, kind);
  };
  while (set.rows.size() < count / 2) {
    const double s = rng.uniform() * 21'600;
    const model::LinkId link = trunks[rng.below(trunks.size())];
    if (rng.below(12) > 0) {
      fail(s, link);
    } else {
      for (const model::LinkId other : fabric.out(fabric.to(link))) fail(s, other);
    }
  }
  while (set.rows.size() < count)
    say(rng.uniform() * 21'600, trunks[rng.below(trunks.size())],
        rng.below(10) > 0 ? EventKind::info : EventKind::crc_errors);
  std::ranges::sort(set.rows, {}, &model::Record::received);
  for (model::Record& row : set.rows) row.id = set.add_id(std::to_string(set.ids.size()));
  return set;
}

void triage_storm(benchmark::State& state) {
  const model::Fabric fabric = zone();
  const triage::Context context(fabric, triage::default_rules());
  const model::RecordSet set = storm(fabric, static_cast<std::size_t>(state.range(0)));
  std::size_t cases = 0;
  for (auto _ : state) {
    cases = 0;
    triage::Triage engine(context, [&](const triage::Case&) { ++cases; });
    for (const model::Record& row : set.rows) engine.add(set, row, row.id);
    engine.finish();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.counters["cases"] = static_cast<double>(cases);
}
BENCHMARK(triage_storm)->Arg(200'000)->Unit(benchmark::kMillisecond);

void triage_ground(benchmark::State& state) {
  const model::Fabric fabric = zone();
  for (auto _ : state) {
    const triage::Context context(fabric, triage::default_rules());
    benchmark::DoNotOptimize(context.suspects.size());
  }
}
BENCHMARK(triage_ground)->Unit(benchmark::kMillisecond);

}  // namespace
