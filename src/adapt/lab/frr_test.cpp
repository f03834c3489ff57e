#include "adapt/lab/frr.hpp"

#include <doctest/doctest.h>

#include <string>

#include "adapt/lab/extras.hpp"
#include "adapt/lab/lab_test_fabric.hpp"

namespace weft::adapt::lab {
namespace {

using testing::make_fabric;
using testing::make_plan_of;
using testing::two_by_two;

bool has_line(const std::string& text, std::string_view line) {
  return ("\n" + text).find("\n" + std::string(line) + "\n") != std::string::npos;
}

TEST_CASE("a rack switch speaks to every spine and announces its NICs") {
  const model::Fabric fabric = make_fabric(two_by_two);
  const LabPlan plan = make_plan_of(fabric);
  const LabNodeId id = testing::node(plan, fabric, "rtsw:0");
  const LabNode& node = plan.nodes[id];
  const std::string text = bgpd_config(plan, id, "/d", {.bfd = true, .paths_max = 2});
  CHECK(has_line(text, "router bgp " + std::to_string(node.asn)));
  CHECK(has_line(text, "  network 10.0.0.1/32"));
  CHECK(has_line(text, "  network " + ipv4_text(node.loopback) + "/32"));
  CHECK(has_line(text, "  maximum-paths 2"));
  CHECK(has_line(text, " neighbor FABRIC bfd profile weft"));
  std::size_t neighbours = 0;
  for (const EndId end : node.ends) {
    if (plan.cables[end.cable].to_host) continue;
    ++neighbours;
    const std::string peer = ipv4_text(plan.end(end.peer()).address);
    CHECK(has_line(
        text, " neighbor " + peer + " remote-as " + std::to_string(plan.node_of(end.peer()).asn)));
  }
  CHECK(neighbours == 2);
  CHECK(text.find("bfd\n profile") == std::string::npos);  // bfdd's, which bgpd would not know
  CHECK(has_line(bfdd_config(node, "/d", {.bfd = true, .bfd_interval_ms = 300}),
                 "  transmit-interval 300"));
}

TEST_CASE("daemons keep to their own directory and namespace") {
  const model::Fabric fabric = make_fabric(two_by_two);
  const LabPlan plan = make_plan_of(fabric);
  const LabNode& node = plan.nodes[LabNodeId(0)];
  const ProcessSpec spec = frr_process(node, "bgpd", "/run/weft-lab/test/rtsw-0");
  CHECK(spec.netns == node.netns);
  CHECK(spec.argv.front() == "/usr/lib/frr/bgpd");
  for (std::size_t i = 1; i < spec.argv.size(); ++i)
    if (spec.argv[i].starts_with("/")) CHECK(spec.argv[i].starts_with("/run/weft-lab/test/rtsw-0"));
}

TEST_CASE("draining asks first and shuts down later, and each step has its reverse") {
  const model::Fabric fabric = make_fabric(two_by_two);
  const LabPlan plan = make_plan_of(fabric);
  const LabNodeId id = testing::node(plan, fabric, "ctsw:1");
  const auto of_switch = [&](DrainStep step) { return drain_switch_commands(plan, id, step)[2]; };
  CHECK(of_switch(DrainStep::soft_on) == "bgp graceful-shutdown");
  CHECK(of_switch(DrainStep::hard_on) == "neighbor FABRIC shutdown");
  CHECK(of_switch(DrainStep::hard_off) == "no " + of_switch(DrainStep::hard_on));
  CHECK(of_switch(DrainStep::soft_off) == "no " + of_switch(DrainStep::soft_on));
  const EndId end = plan.nodes[id].ends.front();
  const std::string peer = ipv4_text(plan.end(end.peer()).address);
  CHECK(drain_cable_commands(plan, id, {end}, DrainStep::hard_on)[2] ==
        "neighbor " + peer + " shutdown");
  CHECK(drain_cable_commands(plan, id, {end}, DrainStep::soft_off)[3] ==
        "no neighbor " + peer + " route-map DRAIN out");
}

TEST_CASE("lines of a daemon's log become RFC 5424 messages; others are dropped") {
  CHECK(forwarded_line("2024/05/01 12:00:00 BGP: [M59KS-A3ZXZ] neighbor 10.128.0.1 Up",
                       "2024-05-01T12:00:00Z", "rtsw:0") ==
        "<189>1 2024-05-01T12:00:00Z rtsw:0 BGP - - - [M59KS-A3ZXZ] neighbor 10.128.0.1 Up");
  CHECK(forwarded_line("2024/05/01 12:00:00 BGP: [X] neighbor 1.2.3.4 Down", "t", "h")
            .starts_with("<187>1 "));
  CHECK(forwarded_line("2026/11/27 06:15:37 WATCHFRR: [T58XM-TP956][EC 268435457] zebra state -> "
                       "unresponsive : no response yet to ping sent 6 seconds ago",
                       "t", "h") ==
        "<187>1 t h watchfrr - - - [T58XM-TP956][EC 268435457] zebra state -> unresponsive : no "
        "response yet to ping sent 6 seconds ago");
  for (const char* line : {"", "no log", "a b c d", "2024/05/01 12:00:00 no colon"})
    CHECK(forwarded_line(line, "t", "h").empty());
}

}  // namespace
}  // namespace weft::adapt::lab
