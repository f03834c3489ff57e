// Good and bad minutes of racks, from what faults lost where.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "adapt/sim/operations.hpp"
#include "base/timestamp.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::app {

// The loss of a rack in a minute is the mean over that minute of what its packets would lose:
//   across   sum over its uplinks that lose: loss x the uplink's share of the rack's uplink rate,
//            and of cables further up loss x share of that tier's rate, for every rack
//   inside   sum over its NICs that are cut off or lose: loss / NICs of the rack; across too
// Packets take uplinks in proportion to their rates (ideal ECMP over those in use when all is
// well), and what several faults lose adds up. A minute belongs to the fault that lost most of it.
class Minutes {
 public:
  struct Bad {
    std::uint32_t fault = 0;
    bool is_across = false;
  };
  Minutes(const model::Fabric& fabric, const std::vector<model::Entity>& rack_switches,
          const adapt::sim::Operations& net, Timestamp from, Timestamp until);

  // Rack-minutes of one kind, good and bad.
  std::uint64_t count() const { return racks_.size() * static_cast<std::uint64_t>(minutes_); }
  // Those that lost more than that, in order of rack, kind and minute.
  std::vector<Bad> bad(double loss) const;

 private:
  struct Cell {
    std::uint32_t rack = 0;
    bool is_across = false;
    std::int64_t minute = 0;
    friend auto operator<=>(const Cell&, const Cell&) = default;
  };
  struct Rack {
    double uplink_bps = 0;
    double nics = 0;
  };
  void add(const adapt::sim::Operations::Harm& harm);
  void add_cable(const adapt::sim::Operations::Harm& harm, model::CableId cable);
  void add(std::uint32_t rack, bool is_across, double share,
           const adapt::sim::Operations::Harm& harm);
  std::uint32_t rack_of(model::NodeId node) const;

  const model::Fabric& fabric_;
  const adapt::sim::Operations& net_;
  Timestamp from_;
  std::int64_t minutes_;
  std::vector<Rack> racks_;
  std::map<model::ScopeId, std::uint32_t> index_;         // of racks
  std::map<model::NodeId, std::uint32_t> rack_of_;        // of first switches
  std::map<Cell, std::map<std::uint32_t, double>> lost_;  // by fault
};

}  // namespace weft::app
