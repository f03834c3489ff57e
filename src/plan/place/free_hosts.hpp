// Which hosts of a fabric are free, counted so that choosing among them costs little.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/fabric/fabric.hpp"

namespace weft::plan::place {

// Hosts, racks and zones are numbered from 0: host i is Fabric::hosts()[i]. A zone is what jobs had
// better stay inside: the fabric's zones where it has several, else its pods, else its buildings,
// else its regions, else everything.
class FreeHosts {
 public:
  // All hosts are free.
  explicit FreeHosts(const model::Fabric& fabric);

  std::uint32_t host_count() const { return static_cast<std::uint32_t>(rack_of_.size()); }
  std::uint32_t zone_count() const { return static_cast<std::uint32_t>(zones_.size()); }
  std::uint32_t zone_size(std::uint32_t zone) const { return zones_[zone].size; }
  std::uint32_t rack_size_max() const { return rack_size_max_; }
  std::uint32_t zone_of(std::uint32_t host) const { return racks_[rack_of_[host]].zone; }
  std::uint32_t rack_of(std::uint32_t host) const { return rack_of_[host]; }
  const std::string& zone_name(std::uint32_t zone) const { return zones_[zone].name; }

  bool is_free(std::uint32_t host) const { return free_[host]; }
  std::uint32_t free_count() const { return free_count_; }
  std::uint32_t free_in_zone(std::uint32_t zone) const { return zones_[zone].free; }
  std::uint32_t free_in_rack(std::uint32_t rack) const { return racks_[rack].free; }
  // Racks of the zone with exactly so many free hosts, at least 1: how many, and the first of them.
  std::uint32_t racks_with(std::uint32_t zone, std::uint32_t free) const {
    return zones_[zone].count[free];
  }
  std::uint32_t first_rack_with(std::uint32_t zone, std::uint32_t free) const;
  const std::vector<std::uint32_t>& hosts_of_rack(std::uint32_t rack) const {
    return racks_[rack].hosts;
  }
  const std::vector<std::uint32_t>& racks_of_zone(std::uint32_t zone) const {
    return zones_[zone].racks;
  }

  // Cost: O(1). The host must be free, or not be.
  void take(std::uint32_t host) { change(host, false); }
  void release(std::uint32_t host) { change(host, true); }

 private:
  struct Rack {
    std::uint32_t zone = 0, number = 0;  // its number inside the zone
    std::uint32_t free = 0;
    std::vector<std::uint32_t> hosts;
  };
  struct Zone {
    std::string name;
    std::uint32_t size = 0, free = 0;
    std::vector<std::uint32_t> racks;
    std::vector<std::uint32_t> count;              // racks by free hosts
    std::vector<std::vector<std::uint64_t>> with;  // by free hosts: a bit for each rack
  };
  void change(std::uint32_t host, bool free);

  std::vector<Zone> zones_;
  std::vector<Rack> racks_;
  std::vector<std::uint32_t> rack_of_;
  std::vector<bool> free_;
  std::uint32_t free_count_ = 0, rack_size_max_ = 0;
};

}  // namespace weft::plan::place
