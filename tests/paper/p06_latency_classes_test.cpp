// P-06: latency grows as 1 : 7 : 15 : 30 from the rack (some 5 us) to cross-rack, cross-zone and
// cross-building (network of Llama 4; secondary sources only, which leave open whether the 5 us are
// one way; ours are). The latency of each cable is our choice: checked is that paths add up cables
// and that a message pays its path once.
// Tolerance: none on latencies, which are integers; 1 ps of rounding on times.
#include <cmath>

#include "latency_classes.hpp"

namespace weft::paper {
namespace {

TEST_CASE("P-06: latency classes 1 : 7 : 15 : 30") {
  const Fabric fabric = fabric_of(latency_classes);
  route::Router router = router_of(fabric, {});
  for (const LatencyClass& published : published_classes) {
    CAPTURE(published.what);
    const model::NodeId to = node_of(fabric, published.to);
    CHECK(router.latency(fabric.nics()[0], to) == 5_us * published.ratio);
    model::FlowSet set;
    set.flows.push_back({.src = fabric.nics()[0], .dst = to, .size = 50_MB});
    const auto result = engine::fluid::run_flows(set, router, {}, {});
    const double expected = 1e-3 + 5e-6 * static_cast<double>(published.ratio);
    CHECK(std::abs(result.makespan_s - expected) < 1e-12);
  }
}

}  // namespace
}  // namespace weft::paper
