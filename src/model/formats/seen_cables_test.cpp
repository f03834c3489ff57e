#include "model/formats/seen_cables.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/formats/cable_list.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::model {
namespace {

// Three leaves, two spines, a host of two NICs at each leaf.
const Fabric& zone() {
  static const Fabric fabric = testing::make_fabric(
      "{generator: ai_zone, racks: 3, hosts_per_rack: 1, gpus_per_host: 2, spines: 2}");
  return fabric;
}

std::string device(const Fabric& fabric, NodeId node) {
  const NodeId host = fabric.is_switch(node) ? NodeId() : fabric.host_of(node);
  return fabric.name(host.valid() ? host : node);
}

SeenCable::End end_of(const Fabric& fabric, LinkId link) {
  return {device(fabric, fabric.from(link)), fabric.interface_name(link)};
}

// All cables on the wire, as each end sees them.
std::vector<SeenCable> all_seen(const Fabric& fabric) {
  std::vector<SeenCable> out;
  for (const LinkId link : ids<LinkId>(fabric.link_count()))
    if (fabric.on_wire(link)) out.push_back({end_of(fabric, link), end_of(fabric, reverse(link))});
  return out;
}

std::string told(const CableDiff& diff) {
  std::string out = fmt::format("{} {} {}", diff.confirmed, diff.unverified, diff.outside);
  for (const CableDiff::Row& row : diff.rows)
    out += fmt::format("; {} {} {} {}", to_text(row.kind), row.port, row.seen, row.said);
  return out;
}

SeenCable::End port_to(std::string_view from, std::string_view to) {
  const auto link = zone().find_link({fmt::format("{}->{}", from, to), {}});
  REQUIRE(link.has_value());
  return end_of(zone(), *link);
}
std::string text(const SeenCable::End& end) { return end.device + "/" + end.port; }

TEST_CASE("all cables as they are: no difference, from both ends or from one") {
  const auto seen = all_seen(zone());
  REQUIRE(seen.size() == 24);
  CHECK(told(compare_cables(zone(), seen, {})) == "12 0 0");
  const auto once = each_once(seen);
  CHECK(once.size() == 12);
  CHECK(told(compare_cables(zone(), once, {})) == "12 0 0");
}

TEST_CASE("two cables swapped at one end: both ports of both lead elsewhere, none is missing") {
  auto seen = each_once(all_seen(zone()));
  const auto at = [&](std::string_view a, std::string_view b) {
    return std::ranges::find_if(seen, [&](const SeenCable& cable) {
      return (cable.a == port_to(a, b) || cable.b == port_to(a, b));
    });
  };
  const auto one = at("ctsw:0", "rtsw:1"), two = at("ctsw:1", "rtsw:2");
  std::swap(one->b, two->b);
  const CableDiff diff = compare_cables(zone(), seen, {});
  CHECK(diff.confirmed == 10);
  REQUIRE(diff.rows.size() == 4);
  CHECK(std::ranges::all_of(
      diff.rows, [](const auto& row) { return row.kind == CableDiff::Kind::elsewhere; }));
  CHECK(diff.rows[0].port == text(port_to("ctsw:0", "rtsw:1")));
  CHECK(diff.rows[0].seen == text(port_to("rtsw:2", "ctsw:1")));
  CHECK(diff.rows[0].said == text(port_to("rtsw:1", "ctsw:0")));
}

TEST_CASE("what nobody sees is missing where both ends were heard, else not verified") {
  std::vector<SeenCable> seen{{port_to("rtsw:0", "ctsw:0"), port_to("ctsw:0", "rtsw:0")}};
  CHECK(told(compare_cables(zone(), seen, {})) == "1 11 0");
  const std::vector<std::string> heard{"rtsw:0", "rtsw:1", "ctsw:0", "ctsw:1"};
  const CableDiff diff = compare_cables(zone(), seen, heard);
  CHECK(diff.unverified == 8);  // six of hosts, two of rtsw:2
  REQUIRE(diff.rows.size() == 3);
  CHECK(diff.rows[0].kind == CableDiff::Kind::missing);
  CHECK(diff.rows[0].port + " " + diff.rows[0].said ==
        text(port_to("rtsw:0", "ctsw:1")) + " " + text(port_to("ctsw:1", "rtsw:0")));
}

TEST_CASE("domain names, devices outside, ports that the fabric does not have") {
  const SeenCable::End up = port_to("rtsw:0", "ctsw:0"), down = port_to("ctsw:0", "rtsw:0");
  const auto ask = [&](SeenCable::End a, SeenCable::End b) {
    const std::vector<SeenCable> seen{{std::move(a), std::move(b)}};
    CableDiff diff = compare_cables(zone(), seen, {});
    diff.unverified = 0;
    std::erase_if(diff.rows, [](const auto& row) { return row.kind == CableDiff::Kind::missing; });
    return told(diff);
  };
  CHECK(ask({"rtsw:0.dc1.example.net", up.port}, down) == "1 0 0");
  CHECK(ask({"rtsw:0", "mgmt0"}, {"oob-switch", "7"}) == "0 0 1");
  CHECK(ask({"x", "1"}, {"y", "1"}) == "0 0 1");
  CHECK(ask(up, {"x", "1"}) == fmt::format("0 0 0; elsewhere {} x/1 {}", text(up), text(down)));
  CHECK(ask({"rtsw:0", "odd1"}, {"rtsw:1", "odd2"}) == "0 0 0; extra rtsw:0/odd1 rtsw:1/odd2 ");
  // A host that names its port by an address: the switch's end and the device decide.
  const SeenCable::End nic = port_to("rtsw:1", "nic:2");
  CHECK(ask(nic, {"host:1", "00:11:22:33:44:55"}) == "1 0 0");
  CHECK(ask(nic, {"host:2", "00:11:22:33:44:55"}).starts_with("0 0 0; elsewhere rtsw:1/"));
}

TEST_CASE("the list that is written is one that is read") {
  const std::vector<SeenCable> seen{{{"gpu1", "mlx5_0"}, {"leaf1", "Ethernet1"}},
                                    {{"gpu2", "mlx5_0"}, {"leaf1", "odd \"2\""}}};
  const auto read = read_cable_list(to_cable_list(seen), "cables.csv", {});
  REQUIRE_MESSAGE(read.has_value(), (read ? "" : read.error().text()));
  REQUIRE(read->cables.size() == 2);
  CHECK(read->devices.size() == 3);
}

}  // namespace
}  // namespace weft::model
