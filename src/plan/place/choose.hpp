// Which free hosts a job gets, and why.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "plan/place/free_hosts.hpp"

namespace weft::plan::place {

struct HostRequest {
  std::uint32_t hosts = 1;
  enum class Within : std::uint8_t { anywhere, zone, rack } within = Within::anywhere;
  // The power feed of every host, by number; empty: hosts need not be spread. Else no feed gets
  // more than its share of the job, rounded up.
  std::span<const std::uint32_t> feed_of;
  std::uint32_t feeds = 0;
};

struct HostChoice {
  struct Share {
    std::uint32_t zone, hosts;
  };
  std::vector<Share> zones;
  std::vector<std::uint32_t> hosts;  // zone after zone, rack after rack; now taken
  std::vector<std::string> why;      // a line for each decision
};

// The zones: as few as can hold the job. Of several single zones the one with fewest free hosts
// (best fit), unless it had to split a whole rack. Of several sets of zones one that the job fills
// exactly; else the largest zones are taken whole, and the rest comes from the zone where it leaves
// least. Beyond 12 zones only the largest are looked at, and the tightest for the rest. Other
// rules: docs/commands/place.md. Fails: Errc::infeasible with the arithmetic of the constraint that
// cannot hold.
Result<HostChoice> choose_zones(const FreeHosts& free, const HostRequest& request);

// Takes so many free hosts of a zone: whole racks first, those with most free hosts before others,
// the rest from a rack that fits it exactly, or best. Appends them, rack after rack.
void take_racks(FreeHosts& free, std::uint32_t zone, std::uint32_t hosts,
                std::vector<std::uint32_t>& out);

// Zones, then racks. Cost: O(sets of zones + racks taken).
Result<HostChoice> choose_hosts(FreeHosts& free, const HostRequest& request);

}  // namespace weft::plan::place
