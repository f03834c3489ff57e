#include "engine/fluid/network.hpp"

#include <doctest/doctest.h>

#include "base/test_approx.hpp"
#include "engine/fluid/flow_run.hpp"
#include "engine/fluid/test_kit.hpp"

namespace weft::engine::fluid {
namespace {

using testing::faults_of;
using testing::make_fabric;

Router make_router(const Fabric& fabric, const route::RoutingConfig& config = {}) {
  auto router = Router::create(fabric, config, 1);
  REQUIRE_MESSAGE(router.has_value(), (router ? "" : router.error().text()));
  return *std::move(router);
}

FlowSet flows_of(const Fabric& fabric, std::string_view csv) {
  auto set = model::read_flows(fabric, csv, "flows.csv");
  REQUIRE_MESSAGE(set.has_value(), (set ? "" : set.error().text()));
  return *std::move(set);
}

//      ctsw:0   ctsw:1          2 racks x 1 host x 1 GPU, all links 400 Gb/s (50 GB/s), 1 us each
//       |  \   /  |
//      rtsw:0  rtsw:1
//       nic:0   nic:1
constexpr std::string_view two_racks =
    "{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, spines: 2, "
    "link: 400 Gbps, latency: 1 us}";

}  // namespace

TEST_CASE("a flow takes bytes over rate plus the latency of its links") {
  const Fabric fabric = make_fabric(two_racks);
  Router router = make_router(fabric);
  const FlowSet set = flows_of(fabric, "id,src,dst,bytes\na,0,1,50 MB\n");
  const FlowRunResult result = run_flows(set, router, {}, {});
  CHECK(result.flows[0].end_s == approx(1e-3 + 4e-6).epsilon(1e-12));
  CHECK(result.makespan_s == result.flows[0].end_s);
}

//      ctsw:0   ctsw:1          as above, but ctsw:1 is 50 us from each rack
TEST_CASE("a flow waits for the links of its own path, not for those of the first shortest one") {
  const Fabric fabric = make_fabric(
      "{rate: 400 Gbps, latency: 1 us, "
      "nodes: [{role: nic, count: 2}, {role: rtsw, count: 2}, {role: ctsw, count: 2}], "
      "links: [{pairs: \"nic:0..1--rtsw:0..1\"}, \"rtsw:0..1--ctsw:0\", "
      "{link: \"rtsw:0..1--ctsw:1\", latency: 50 us}]}");
  constexpr double near = 4e-6, far = 102e-6;
  const auto end = [&](const char* csv, const route::RoutingConfig& config) {
    Router router = make_router(fabric, config);
    return run_flows(flows_of(fabric, csv), router, {}, {}).flows.at(0).end_s;
  };
  constexpr const char* over_1 = "id,src,dst,bytes,via\na,nic:0,nic:1,50 MB,ctsw:1\n";
  constexpr const char* over_0 = "id,src,dst,bytes,via\na,nic:0,nic:1,50 MB,ctsw:0\n";
  CHECK(end(over_0, {.scheme = "pinned"}) == approx(1e-3 + near).epsilon(1e-12));
  CHECK(end(over_1, {.scheme = "pinned"}) == approx(1e-3 + far).epsilon(1e-12));
  // Of 64 QPs some go over each spine: the last byte is that of the longest.
  constexpr const char* any = "id,src,dst,bytes\na,nic:0,nic:1,50 MB\n";
  CHECK(end(any, {.scheme = "e_ecmp", .qps = 64}) == approx(1e-3 + far).epsilon(1e-12));
  CHECK(end(any, {.scheme = "spray"}) == approx(1e-3 + (near + far) / 2).epsilon(1e-12));
}

TEST_CASE("after and start: the later one counts") {
  const Fabric fabric = make_fabric(two_racks);
  Router router = make_router(fabric);
  const FlowSet set = flows_of(fabric,
                               "id,src,dst,bytes,start,after\n"
                               "b,0,1,50 MB,0 s,a\n"
                               "a,0,1,50 MB,1 ms,\n"
                               "c,1,0,50 MB,9 ms,a\n");
  const FlowRunResult result = run_flows(set, router, {}, {});
  CHECK(result.flows[1].start_s == approx(1e-3));
  CHECK(result.flows[0].start_s == approx(2.004e-3).epsilon(1e-9));
  CHECK(result.flows[2].start_s == approx(9e-3));
}

TEST_CASE("split messages use all QPs, whole messages take turns") {
  const Fabric fabric = make_fabric(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, spines: 2, "
      "link: 400 Gbps, uplink: 200 Gbps, latency: 0 s}");
  const FlowSet one = flows_of(fabric, "id,src,dst,bytes\na,0,1,50 MB\n");
  // On one 200 Gb/s path: 2 ms. Over 64 QPs the busier uplink has a bit more than half.
  Router single = make_router(fabric, {.scheme = "e_ecmp", .qps = 1});
  CHECK(run_flows(one, single, {}, {}).makespan_s == approx(2e-3));
  Router split = make_router(fabric, {.scheme = "e_ecmp", .qps = 64});
  const double spread = run_flows(one, split, {}, {}).makespan_s;
  CHECK(spread >= 1e-3);
  CHECK(spread < 1.4e-3);
  Router turns = make_router(
      fabric, {.scheme = "e_ecmp", .qps = 64, .message_mode = route::MessageMode::round_robin});
  CHECK(run_flows(one, turns, {}, {}).makespan_s == approx(2e-3));
}

TEST_CASE("a spine that dies in mid-flow: what was in flight is sent again on the other") {
  const Fabric fabric = make_fabric(two_racks);
  const FlowSet set = flows_of(fabric, "id,src,dst,bytes,via\na,0,1,50 MB,\n");
  Router probe = make_router(fabric);
  std::vector<Hop> path;
  REQUIRE(probe.append_path({set.flows[0].src, set.flows[0].dst}, path));
  const std::string spine = fabric.name(fabric.to(path[1].link));
  const auto changes =
      faults_of(fabric, "[{kind: switch_down, switch: \"" + spine + "\", at: 0.5 ms}]");
  Router router = make_router(fabric);
  const FlowRunResult result = run_flows(set, router, changes, {});
  const double in_flight_s = 4e-6;  // rate x latency, at the same rate
  CHECK(result.flows[0].finished);
  CHECK(result.flows[0].end_s == approx(1e-3 + in_flight_s + 4e-6).epsilon(1e-9));
  // Half went over the dead spine, the rest and the loss over the other.
  CHECK(result.link_bytes[path[1].link.index()] == approx(25e6));
}

TEST_CASE("without any path a flow waits; it is listed when none comes back") {
  const Fabric fabric = make_fabric(two_racks);
  const FlowSet set = flows_of(fabric, "id,src,dst,bytes\na,0,1,50 MB\nb,1,0,50 MB\n");
  Router router = make_router(fabric);
  const auto forever = faults_of(fabric, "[{kind: nic_down, nic: \"nic:1\"}]");
  const FlowRunResult lost = run_flows(set, router, forever, {});
  CHECK_FALSE(lost.flows[0].finished);
  CHECK_FALSE(lost.flows[1].finished);
  Router again = make_router(fabric);
  const auto for_a_while = faults_of(fabric, "[{kind: nic_down, nic: \"nic:1\", until: 3 ms}]");
  const FlowRunResult late = run_flows(set, again, for_a_while, {});
  CHECK(late.flows[0].end_s == approx(4e-3 + 4e-6).epsilon(1e-9));
}

TEST_CASE("a degraded link slows its flows for as long as it lasts") {
  const Fabric fabric = make_fabric(two_racks);
  const FlowSet set = flows_of(fabric, "id,src,dst,bytes\na,0,1,50 MB\n");
  Router router = make_router(fabric);
  const auto changes = faults_of(
      fabric, "[{kind: link_degraded, link: \"nic:0--rtsw:0\", factor: 0.5, until: 1 ms}]");
  CHECK(run_flows(set, router, changes, {}).makespan_s ==
        approx(1e-3 + 0.5e-3 + 4e-6).epsilon(1e-9));
}

}  // namespace weft::engine::fluid
