// Events through twenty rules on one core: of a device whose ports, sessions and counters speak.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/config.hpp"
#include "base/rng.hpp"
#include "model/formats/build_fabric.hpp"
#include "observe/detect/detector.hpp"

namespace {

namespace detect = weft::observe::detect;
using weft::model::EventKind;
using weft::port::Metric;

weft::model::Fabric zone() {
  const auto section =
      weft::parse_yaml("{generator: ai_zone, racks: 144, spines: 4, link: 400 Gbps}", "bench");
  WEFT_CHECK(section.has_value());
  auto fabric = weft::model::build_fabric(*section);
  WEFT_CHECK(fabric.has_value());
  return *std::move(fabric);
}

// The built-in rules and as many of the same with other names as make twenty.
detect::Rules twenty_rules() {
  detect::Rules rules = detect::default_rules();
  for (std::size_t i = 0; rules.size() < 20; ++i) {
    rules.push_back(rules[i]);
    rules.back().name += "_too";
  }
  return rules;
}

// `per_s` events a second of event time; half of them counters and values, a quarter about links
// and sessions, the rest about devices and their parts.
std::vector<detect::Event> events_of(const weft::model::Fabric& fabric, std::int64_t per_s) {
  constexpr std::size_t count = 500'000;
  constexpr std::array kinds{EventKind::link_down,  EventKind::bgp_down, EventKind::link_up,
                             EventKind::bgp_up,     EventKind::info,     EventKind::asic_error,
                             EventKind::crc_errors, EventKind::info};
  constexpr std::array metrics{Metric::in_errors, Metric::rx_power_dbm, Metric::in_octets,
                               Metric::celsius};
  weft::Rng rng(1);
  const auto spine = fabric.role(fabric.find_role("ctsw")).nodes.front();
  const auto links = fabric.out(spine);
  std::vector<detect::Event> out;
  out.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto port = weft::model::port_of(links[rng.below(links.size())]);
    const bool is_sample = rng.below(2) == 0;
    out.push_back({.t = {static_cast<std::int64_t>(i) * (weft::ns_per_s / per_s)},
                   .entity = port,
                   .signal = is_sample ? detect::signal(metrics[rng.below(metrics.size())])
                                       : detect::signal(kinds[rng.below(kinds.size())]),
                   .value = static_cast<double>(rng.below(10)),
                   .serial = i});
  }
  return out;
}

void detect_events(benchmark::State& state) {
  const weft::model::Fabric fabric = zone();
  const detect::Rules rules = twenty_rules();
  const auto events = events_of(fabric, state.range(0));
  std::size_t told = 0;
  for (auto _ : state) {
    detect::Detector detector(fabric, rules, {});
    std::size_t since = 0;
    for (const detect::Event& event : events) {
      detector.take(event);
      if (++since % 1024 == 0) told += detector.poll().singles.size();
    }
    told += detector.finish().detections.size();
  }
  benchmark::DoNotOptimize(told);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(events.size()));
}
BENCHMARK(detect_events)->Arg(1'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

}  // namespace
