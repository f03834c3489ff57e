// Rounds of NIC pairs that send at full rate, so that every link is crossed and none is shared.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/fabric/fabric.hpp"
#include "model/fabric/state.hpp"
#include "route/router.hpp"

namespace weft::operate::validate {

struct RoundOptions {
  std::uint32_t crossings = 3;    // of each link and direction, at least
  std::vector<bool> is_idle;      // by host, in order of fabric.hosts(): those that may send
  std::vector<bool> is_reserved;  // by cable: running jobs need it
  model::State state;             // what is down is not crossed
};

struct Flow {
  std::uint32_t round;
  model::NodeId src, dst;         // NICs
  std::uint16_t source_port = 0;  // UDP; 0: not known
  std::uint16_t path_size = 0;
  std::uint32_t path_first = 0;
};

// Why a link is crossed less often than asked for.
enum class Gap : std::uint8_t { down, reserved, no_idle_host, no_partner };
std::string_view to_text(Gap gap);

struct Rounds {
  std::vector<Flow> flows;           // by round
  std::vector<model::LinkId> links;  // paths of all flows
  std::uint32_t count = 0;
  std::uint32_t least = 0;  // no plan needs fewer rounds
  std::size_t covered = 0;  // links
  struct Uncovered {
    model::LinkId link;
    Gap why;
    std::uint32_t crossings;
  };
  std::vector<Uncovered> uncovered;  // by link

  std::span<const model::LinkId> path(const Flow& flow) const {
    return std::span(links).subspan(flow.path_first, flow.path_size);
  }
};

// Plans for fabrics whose switches stand in tiers above the NICs (ai_zone, three_tier, hpn,
// rail_optimized, fat_tree). In a round every NIC sends and receives at most one flow, and every
// link carries at most one: at each switch the NICs below that came up shift cyclically among
// themselves, or go on to the next tier, by the uplinks crossed least. Deterministic.
// Fails: Errc::infeasible when no two idle NICs have a switch between them.
// Cost: O(links) a round; 3,072 hosts in 0.2 s.
Result<Rounds> plan_rounds(const model::Fabric& fabric, const RoundOptions& options);

// Cables that the network may use between hosts of one job: of each first switch that has NICs of
// the job, and of each switch above that has such switches, where the job has others elsewhere.
std::vector<bool> cables_of_job(const model::Fabric& fabric, std::span<const model::NodeId> hosts);

// The rate of the slowest link of a path.
double planned_gbps(const model::Fabric& fabric, std::span<const model::LinkId> path);

// Sets UDP source ports (to port 4791) by which `router` sends each flow over its path. Returns the
// number of flows for which none of 4,096 ports does; theirs stay 0.
std::size_t choose_ports(route::Router& router, Rounds& rounds);

}  // namespace weft::operate::validate
