// What takes hosts out of service, and how long it takes to get them back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::plan::spares {

inline constexpr double hours_per_year = 8766;  // 365.25 days

// One kind of event. It strikes units of neighbouring hosts: single ones, racks, blocks of a power
// domain, zones.
struct Outage {
  std::string name;
  double per_year = 0;  // of one unit
  double repair_h = 0;  // mean
  enum class Shape : std::uint8_t { constant, exponential, lognormal } shape = Shape::lognormal;
  struct Unit {
    std::uint32_t zone, first, count;  // hosts first to first + count - 1
  };
  std::vector<Unit> units;
};
inline constexpr double lognormal_sigma = 1.5;  // of ln(repair time)

// Hosts are numbered zone by zone, rack by rack. A zone is a zone of the fabric where it has
// several, else a pod, else a building, else all of it.
struct Zone {
  std::string name;
  std::uint32_t first, count;
};

struct Outages {
  std::vector<Zone> zones;
  std::vector<Outage> kinds;
  double target = 0.999;    // share of the time for which spares are to suffice
  std::uint32_t crews = 0;  // repairs that go on at once; 0: any number
  double lemon_share = 0;   // of hosts, which fail
  double lemon_times = 1;   // as often as others
  std::uint32_t host_count() const { return zones.back().first + zones.back().count; }
  // The closed form knows neither crews nor lemons.
  bool needs_simulation() const { return crews > 0 || lemon_share > 0; }
};

// The section `spares:` of a scenario. Errors join the list, all at once.
Outages read_outages(const model::Fabric& fabric, const Config& section, Errors& errors);

}  // namespace weft::plan::spares
