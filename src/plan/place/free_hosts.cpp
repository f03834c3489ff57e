#include "plan/place/free_hosts.hpp"

#include <algorithm>
#include <bit>
#include <map>

#include "base/check.hpp"
#include "model/fabric/zones.hpp"

namespace weft::plan::place {
namespace {

using model::ScopeId;
using model::ScopeKind;

}  // namespace

FreeHosts::FreeHosts(const model::Fabric& fabric) {
  const ScopeKind kind = model::zone_kind(fabric).value_or(ScopeKind::region);
  std::map<ScopeId, std::uint32_t> zone_number;
  std::map<std::pair<ScopeId, ScopeId>, std::uint32_t> rack_number;
  for (const model::NodeId host : fabric.hosts()) {
    const ScopeId zone = fabric.enclosing(host, kind);
    const auto [z, new_zone] = zone_number.emplace(zone, zone_count());
    if (new_zone)
      zones_.push_back({.name = zone.valid() ? fabric.name(zone) : "the fabric",
                        .racks = {},
                        .count = {},
                        .with = {}});
    const ScopeId rack = fabric.enclosing(host, ScopeKind::rack);
    const auto [r, new_rack] =
        rack_number.emplace(std::pair(zone, rack), static_cast<std::uint32_t>(racks_.size()));
    if (new_rack) {
      racks_.push_back({.zone = z->second,
                        .number = static_cast<std::uint32_t>(zones_[z->second].racks.size()),
                        .hosts = {}});
      zones_[z->second].racks.push_back(r->second);
    }
    racks_[r->second].hosts.push_back(host_count());
    rack_of_.push_back(r->second);
  }
  for (const Rack& rack : racks_)
    rack_size_max_ = std::max(rack_size_max_, static_cast<std::uint32_t>(rack.hosts.size()));
  for (Zone& zone : zones_) {
    zone.count.assign(rack_size_max_ + 1, 0);
    zone.count[0] = static_cast<std::uint32_t>(zone.racks.size());
    zone.with.assign(rack_size_max_ + 1,
                     std::vector<std::uint64_t>((zone.racks.size() + 63) / 64, 0));
  }
  free_.assign(rack_of_.size(), false);
  for (std::uint32_t host = 0; host < host_count(); ++host) {
    release(host);
    ++zones_[zone_of(host)].size;
  }
}

std::uint32_t FreeHosts::first_rack_with(std::uint32_t zone, std::uint32_t free) const {
  const std::vector<std::uint64_t>& bits = zones_[zone].with[free];
  const auto word = std::ranges::find_if(bits, [](std::uint64_t w) { return w != 0; });
  WEFT_CHECK(word != bits.end());
  return zones_[zone].racks[static_cast<std::size_t>(word - bits.begin()) * 64 +
                            static_cast<std::size_t>(std::countr_zero(*word))];
}

void FreeHosts::change(std::uint32_t host, bool free) {
  WEFT_CHECK(free_[host] != free);
  free_[host] = free;
  Rack& rack = racks_[rack_of_[host]];
  Zone& zone = zones_[rack.zone];
  const auto move = [&](std::uint32_t& count) { free ? ++count : --count; };
  const std::uint64_t bit = std::uint64_t{1} << rack.number % 64;
  zone.with[rack.free][rack.number / 64] &= ~bit;
  --zone.count[rack.free];
  move(rack.free);
  move(zone.free);
  move(free_count_);
  zone.with[rack.free][rack.number / 64] |= bit;
  ++zone.count[rack.free];
}

}  // namespace weft::plan::place
