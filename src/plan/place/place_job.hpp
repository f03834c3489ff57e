// Hosts for a job, in rank order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "plan/place/choose.hpp"
#include "plan/place/host_grid.hpp"

namespace weft::plan::place {

struct JobPlacement {
  std::vector<std::uint32_t> hosts;  // the k-th has ranks k G to k G + G - 1; now taken
  std::vector<HostChoice::Share> zones;
  std::vector<std::string> why;
  struct Order {
    // Bytes of a step between zones: ours, the least possible, the best plain order's.
    std::int64_t cost = 0, bound = 0, plain_cost = 0;
    std::string plain_name;
    std::int64_t rack_cost = 0;  // bytes of a step between racks, those between zones among them
    std::int64_t gap() const { return cost - bound; }
  };
  std::optional<Order> order;  // none without a grid
};

// "1.2 GB of a step cross zones, at least 1.1 GB whatever the order (gap 9.1 %), ..."
std::string order_text(const JobPlacement::Order& order);

// Chooses zones, orders the ranks over them, then chooses racks inside the zones and orders the
// ranks over those. Where the zones have more free hosts than the job needs, the order decides how
// many each of them gives. Without a grid, hosts stand zone by zone and rack by rack.
// Fails: as choose_zones.
Result<JobPlacement> place_job(FreeHosts& free, const HostRequest& request, const HostGrid* grid,
                               const Rng& rng);

}  // namespace weft::plan::place
