#include "operate/triage/parts.hpp"

#include <algorithm>
#include <set>

#include "operate/triage/test_kit.hpp"

namespace weft::operate::triage {
namespace {

using testing::make_fabric;
using testing::small_zone;

std::string names(const Parts& parts, std::span<const PartId> list) {
  std::string out;
  for (const PartId part : list)
    out += (out.empty() ? "" : " ") + model::name(parts.fabric(), parts.entity(part));
  return out;
}

struct Laid {
  model::Fabric fabric;
  Parts parts;
  Suspects suspects;
  Laid(model::Fabric f, Rules::Cards cards)
      : fabric(std::move(f)), parts(fabric, cards), suspects(parts) {}

  SuspectId find(CauseKind kind, std::string_view root) const {
    for (const SuspectId id : ids<SuspectId>(suspects.size()))
      if (suspects[id].kind == kind && model::name(fabric, suspects[id].root) == root) return id;
    FAIL("no such suspect");
    return {};
  }
};

TEST_CASE("footprints follow from the fabric") {
  const Laid laid(small_zone(), {.ports = 4});
  const auto expected = [&](CauseKind kind, std::string_view root) {
    return names(laid.parts, laid.suspects.expected(laid.find(kind, root)));
  };
  CHECK(expected(CauseKind::device, "ctsw:1") ==
        "rtsw:0--ctsw:1 rtsw:1--ctsw:1 rtsw:2--ctsw:1 rtsw:3--ctsw:1 rtsw:4--ctsw:1 "
        "rtsw:5--ctsw:1 rtsw:6--ctsw:1 rtsw:7--ctsw:1");
  CHECK(expected(CauseKind::card, "ctsw:1/card:1") ==
        "rtsw:4--ctsw:1 rtsw:5--ctsw:1 rtsw:6--ctsw:1 rtsw:7--ctsw:1");
  CHECK(expected(CauseKind::rack_device, "rtsw:2") ==
        "rtsw:2--ctsw:0 rtsw:2--ctsw:1 rtsw:2--ctsw:2 rtsw:2--ctsw:3");
  CHECK(expected(CauseKind::rack, "rack:2") == expected(CauseKind::rack_device, "rtsw:2"));
  CHECK(expected(CauseKind::host, "host:4") == "nic:8--rtsw:2 nic:9--rtsw:2");
  CHECK(names(laid.parts, laid.suspects.possible(laid.find(CauseKind::rack, "rack:2"))) ==
        "nic:8--rtsw:2 nic:9--rtsw:2 nic:10--rtsw:2 nic:11--rtsw:2 rtsw:2 host:4 host:5 rack:2 "
        "rtsw:2/card:0 rtsw:2/card:1");
  CHECK(laid.suspects.expected(laid.find(CauseKind::zone, "zone:0")).size() == 32);
}

TEST_CASE("on every topology: parts and entities go both ways, and lists agree") {
  for (const char* yaml :
       {"{generator: ai_zone, racks: 4, spines: 2, link: 400 Gbps}",
        "{generator: fat_tree, k: 4, link: 100 Gbps}",
        "{generator: hpn, segments: 2, hosts_per_segment: 2, link: 200 Gbps}",
        "{generator: rail_optimized, groups: 2, hosts_per_group: 4, link: 400 Gbps}"}) {
    CAPTURE(yaml);
    const Laid laid(testing::make_fabric(yaml), {.ports = 3});
    for (const model::NodeId node : laid.fabric.nodes()) {
      const PartId part = laid.parts.of(node);
      CHECK(part.index() < laid.parts.size());
      if (laid.fabric.is_switch(node)) CHECK(laid.parts.entity(part) == model::entity(node));
    }
    for (const SuspectId suspect : ids<SuspectId>(laid.suspects.size())) {
      const auto all = laid.suspects.all(suspect);
      CHECK(std::set<PartId>(all.begin(), all.end()).size() == all.size());
      for (const PartId part : all) {
        const auto of = laid.suspects.of(part);
        CHECK(std::ranges::binary_search(of, suspect));
      }
    }
  }
}

TEST_CASE("a card beyond those of the switch is the switch; wiring inside a host is the host's") {
  const Laid laid(small_zone(), {.ports = 36});
  const auto ctsw = *laid.fabric.find_node({"ctsw:0", {}});
  CHECK(laid.parts.of_card(ctsw, 2) == laid.parts.of(ctsw));
  for (const model::LinkId link : laid.fabric.links()) {
    if (laid.fabric.on_wire(link)) continue;
    const PartId part = laid.parts.of(cable_of(link));
    const bool is_nic =
        laid.parts.is_cable(part) && laid.fabric.on_wire(forward(laid.parts.cable(part)));
    CHECK((is_nic || laid.parts.is_node(part)));
  }
}

}  // namespace
}  // namespace weft::operate::triage
