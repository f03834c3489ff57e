#include "route/zone.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace weft::route {
namespace {

std::unexpected<Error> refuse(const std::string& why) {
  return fail(Errc::unsupported, {},
              "traffic engineering assigns the paths of a two-tier Clos fabric: " + why,
              "use e_ecmp or spray, which work on any fabric");
}

// Fills what the zone says of NICs; `number` gets the number of each rack.
Result<std::vector<NodeId>> find_racks(const Fabric& fabric, Zone& zone,
                                       Column<NodeId, std::uint32_t>& number) {
  std::vector<NodeId> racks;
  number.resize(fabric.node_count(), Zone::none);
  zone.rack_of.resize(fabric.node_count(), Zone::none);
  zone.port_of.resize(fabric.node_count());
  for (const NodeId nic : fabric.nics())
    for (const LinkId link : fabric.out(nic)) {
      const NodeId rack = fabric.to(link);
      if (!fabric.on_wire(link)) continue;
      if (!fabric.is_switch(rack) || zone.port_of[nic].valid())
        return refuse(fmt::format("{} needs one port, to a switch", fabric.name(nic)));
      if (number[rack] == Zone::none) {
        number[rack] = static_cast<std::uint32_t>(racks.size());
        racks.push_back(rack);
      }
      zone.rack_of[nic] = number[rack];
      zone.port_of[nic] = link;
    }
  return racks;
}

}  // namespace

Result<Zone> find_zone(const Fabric& fabric) {
  Zone zone;
  Column<NodeId, std::uint32_t> number;
  WEFT_TRY(const std::vector<NodeId> racks, find_racks(fabric, zone, number));
  const auto is_rack = [&](NodeId node) { return number[node] != Zone::none; };
  Column<NodeId, std::uint32_t> first, width;  // columns of a spine
  first.resize(fabric.node_count(), 0);
  width.resize(fabric.node_count(), 0);
  std::vector<NodeId> spines;
  const auto visit = [&](NodeId rack, auto each) {
    std::unordered_map<std::uint32_t, std::uint32_t> seen;  // never iterated
    for (const LinkId link : fabric.out(rack))
      if (fabric.is_switch(fabric.to(link))) each(link, seen[fabric.to(link).value]++);
  };
  for (const NodeId rack : racks)
    visit(rack, [&](LinkId link, std::uint32_t k) {
      const NodeId spine = fabric.to(link);
      if (width[spine] == 0) spines.push_back(spine);
      width[spine] = std::max(width[spine], k + 1);
    });
  for (const NodeId spine : spines) {
    if (is_rack(spine))
      return refuse(
          fmt::format("{} has NICs, and so has a switch that it is cabled to", fabric.name(spine)));
    for (const LinkId link : fabric.out(spine))
      if (fabric.is_switch(fabric.to(link)) && !is_rack(fabric.to(link)))
        return refuse(fmt::format("{} joins {} to another tier", fabric.name(spine),
                                  fabric.name(fabric.to(link))));
    first[spine] = zone.columns;
    zone.columns += width[spine];
  }
  zone.racks = static_cast<std::uint32_t>(racks.size());
  zone.up.resize(std::size_t{zone.racks} * zone.columns);
  for (std::uint32_t r = 0; r < zone.racks; ++r)
    visit(racks[r], [&](LinkId link, std::uint32_t k) {
      zone.up[std::size_t{r} * zone.columns + first[fabric.to(link)] + k] = link;
    });
  return zone;
}

std::vector<double> zone_capacities(const Zone& zone, const Fabric& fabric,
                                    const model::State& seen) {
  const model::LiveView view(fabric, seen);
  double most = 0;
  for (const LinkId link : zone.up)
    if (link.valid()) most = std::max(most, fabric.rate(link).bytes_per_s());
  std::vector<double> out(2 * zone.up.size(), 0);
  for (std::size_t i = 0; i < zone.up.size(); ++i)
    for (const bool down : {false, true}) {
      const LinkId link = down && zone.up[i].valid() ? reverse(zone.up[i]) : zone.up[i];
      if (link.valid() && view.health[link.index()] == model::Health::up)
        out[2 * i + (down ? 1 : 0)] = view.bytes_per_s[link.index()] / most;
    }
  return out;
}

void set_capacities(Assignment& assignment, const Zone& zone, std::span<const double> capacities) {
  for (std::uint32_t r = 0; r < zone.racks; ++r)
    for (std::uint32_t c = 0; c < zone.columns; ++c) {
      const std::size_t i = std::size_t{r} * zone.columns + c;
      assignment.set_capacity(r, c, capacities[2 * i], capacities[2 * i + 1]);
    }
}

}  // namespace weft::route
