// What a fabric amounts to: counts, radix, oversubscription, bisection, paths, blast radius.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/fabric/fabric.hpp"
#include "model/fabric/state.hpp"

namespace weft::plan {

// a / b in lowest terms; 0 / 0 where neither side exists.
struct Ratio {
  std::int64_t over = 0, under = 0;
  double value() const { return static_cast<double>(over) / static_cast<double>(under); }
  friend bool operator==(const Ratio&, const Ratio&) = default;
};
Ratio ratio_of(Rate over, Rate under);

struct FabricFacts {
  struct RoleFacts {
    std::string name;
    model::NodeKind kind;
    std::size_t count = 0;
    std::uint32_t ports_min = 0, ports_max = 0;  // cables per node
    Rate capacity_min, capacity_max;             // their sum per node, one direction
  };
  struct TierFacts {
    std::string name;
    std::size_t links = 0;
    Rate rate_min, rate_max;
    Rate capacity;  // sum over the links
    Duration latency_min, latency_max;
  };
  // Capacity of one switch towards the NICs (down), away from them (up), and to switches as far
  // from the NICs as itself (peer). Distance counts cables.
  struct SwitchTier {
    std::string role;
    std::uint32_t level_min = 0, level_max = 0;  // 1: NICs attach here; 0: no NIC in reach
    std::size_t switches = 0;
    std::size_t out_of_service = 0;  // of them, down or draining; the rest counts below
    std::size_t cut_off = 0;         // in service and built with cables up, of which none is
    Rate down, up, peer;             // of the switch with the largest down / up
    Ratio worst, best;               // down / up; under 0 at the top, and where cut off
    bool uniform = true;             // all switches of the role have these capacities
  };
  // The least capacity that parts the first half of the NICs, in scope order, from the second: the
  // most that the one can send to the other. Hosts stay whole where there are several.
  struct Bisection {
    Rate capacity;
    Rate nics;                         // that the smaller half can send
    std::size_t sending = 0, all = 0;  // NICs in that half, and in both
    Ratio share() const { return ratio_of(capacity, nics); }
  };
  // Between two NICs, through switches only.
  struct PathFacts {
    std::string what;                   // "same rack", "farthest", ...
    std::string from, to;               // names of the NICs
    std::uint32_t hops = 0;             // links on a shortest path; 0 when unreachable
    std::uint64_t shortest = 0;         // number of shortest paths, saturating
    std::uint64_t disjoint = 0;         // paths that share no cable
    std::uint64_t disjoint_inside = 0;  // ... except the NICs' own cables
    Duration latency;                   // of the fastest shortest path
  };
  // What one failed switch takes. Shares are of the capacity that NICs have towards the level of
  // the failed switch, each hop divided by capacity.
  struct Loss {
    std::string role;
    std::size_t switches = 0, examined = 0;  // fewer examined: evenly spaced samples
    std::string worst;                       // the switch that the figures are of
    std::size_t nics_cut_off = 0;            // without any live cable to a switch
    std::size_t nics_affected = 0;           // lose part or all of that capacity
    std::size_t racks_affected = 0;
    double rack_share_min = 0, rack_share_max = 0;  // lost, over the affected racks
  };

  std::size_t nodes = 0, links = 0, gpus = 0, nics = 0, hosts = 0, racks = 0;
  std::vector<RoleFacts> roles;
  std::vector<TierFacts> tiers;
  std::vector<SwitchTier> switch_tiers;
  std::optional<Bisection> bisection;  // absent: see `notes`
  std::vector<PathFacts> paths;
  std::vector<Loss> losses;
  std::vector<std::string> notes;  // what was sampled or left out, and why
};

// Cost: O(nodes + links) for counts; O(links) for each examined failure (at most 4 a role) and each
// pair of NICs. Bisection and paths by Dinic's algorithm with a bound on its work; where the bound
// is hit the figure is left out and a note says so.
//
// Roles and tiers are as built. Everything else is of `state`: what is down or draining carries
// nothing, and a degraded link what is left of its rate; loss is not capacity.
FabricFacts explain(const model::Fabric& fabric, const model::State& state = {});

// What a later state of the fabric leaves: switch_tiers, bisection and notes on it alone.
FabricFacts explain_capacity(const model::Fabric& fabric, const model::State& state);
// Its tables for the terminal, and its JSON object.
std::string capacity_table(const FabricFacts& facts);
std::string capacity_json(const FabricFacts& facts);

// Tables for the terminal.
std::string to_table(const FabricFacts& facts);
// One JSON object, keys in a fixed order; rates in bits/s, times in microseconds.
std::string to_json(const FabricFacts& facts);

}  // namespace weft::plan
