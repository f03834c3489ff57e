// Cheapest ways through a network and time: data may wait at the sites between.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "plan/backbone/bulk.hpp"

namespace weft::plan::backbone {

// Shortest paths on the time-expanded network (Ford & Fulkerson, Operations Research 6, 1958) by
// dynamic programming from the deadline back: in each slot links at their price, to the next slot
// for nothing. Storage has no limit.
class TimedWays {
 public:
  TimedWays(const Wan& wan, const Slots& slots);

  // Of a transfer with one receiver, from slot `first` on, with a price for each row of Loads. Of
  // ways of one cost, those of fewest links. Cost: O(slots * links * log sites).
  void find(const Transfer& transfer, std::uint32_t first, std::span<const double> price);
  // Of the cheapest way that leaves the sender in this slot; infinite where there is none.
  double cost(std::uint32_t slot) const { return departures_[slot].cost; }
  // Its rows, in order of time.
  std::vector<std::uint32_t> rows(std::uint32_t slot) const;

 private:
  static constexpr std::uint32_t no_link = std::numeric_limits<std::uint32_t>::max();
  struct Step {
    double cost = std::numeric_limits<double>::infinity();
    std::uint32_t hops = 0;
    std::uint32_t link = no_link;  // none: waits, or has arrived

    bool operator<(const Step& other) const {
      return cost < other.cost || (cost == other.cost && hops < other.hops);
    }
  };

  void relax(std::uint32_t slot, std::span<const double> price);
  std::size_t at(std::uint32_t slot, std::uint32_t site) const {
    return slot * wan_.sites.size() + site;
  }

  const Wan& wan_;
  const Slots& slots_;
  std::vector<std::vector<std::uint32_t>> into_, out_of_;  // links by site
  std::vector<Step> steps_;       // from each site in each slot to the receiver
  std::vector<Step> departures_;  // from the sender, by slot
  std::uint32_t from_ = 0, to_ = 0, end_ = 0;
};

}  // namespace weft::plan::backbone
