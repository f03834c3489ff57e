// P-07: at 400 Gbps and 5, 35, 75 and 150 us, 0.25, 1.75, 3.75 and 7.5 MB are on the way
// (bandwidth-delay product of the classes of P-06). Ours is what the fluid engine holds to be in
// flight: a flow whose cable fails sends that much again over the other cable. Tolerance: 1 byte of
// rounding. With loss recovery by go-back-N a real NIC sends a round trip's worth again; we count
// one way.
#include <cmath>

#include "latency_classes.hpp"

namespace weft::paper {
namespace {

using engine::StateChange;
using model::FlowSet;

// Bytes that leave nic:0 beyond the flow's own when its cable fails on the way.
double sent_again(const Fabric& fabric, model::NodeId to) {
  route::Router router = router_of(fabric, {});
  FlowSet set;
  set.flows.push_back({.src = fabric.nics()[0], .dst = to, .size = 50_MB});
  std::vector<route::Hop> hops;
  REQUIRE(router.append_path({fabric.nics()[0], to}, hops));
  std::vector<StateChange> changes(2);
  changes[1].at = Time{(500_us).ps};
  changes[1].state.set(hops[0].link, {.health = model::Health::down});
  const auto result = engine::fluid::run_flows(set, router, changes, {});
  REQUIRE(result.flows[0].finished);
  double sent = -50e6;
  for (const model::LinkId link : fabric.out(fabric.nics()[0]))
    sent += result.link_bytes[link.index()];
  return sent;
}

TEST_CASE("P-07: bytes in flight at 400 Gbps") {
  const Fabric fabric = fabric_of(latency_classes);
  for (const LatencyClass& published : published_classes) {
    CAPTURE(published.what);
    const double ours = sent_again(fabric, node_of(fabric, published.to));
    CHECK(std::abs(ours - published.bdp_mb * 1e6) < 1);
  }
}

}  // namespace
}  // namespace weft::paper
