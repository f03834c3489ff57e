// Which pairs to probe from which source ports, so that every directed link is crossed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "model/fabric/fabric.hpp"
#include "model/fabric/state.hpp"
#include "observe/probe/routes.hpp"
#include "observe/probe/targets.hpp"
#include "route/router.hpp"

namespace weft::observe::probe {

inline constexpr std::size_t plan_flows_max = 1'000'000;

// Distinct flows over each link. One alone cannot tell losses of a link from those of its ends,
// four can; routes and hash buckets that fail alone need more. 64, unless that were more than
// 4,096 flows in all, but no less than 4.
std::uint32_t usual_flows_each(const model::Fabric& fabric);
// Flows over each transit route: 4, which the localiser needs to tell a lost route, unless these
// were more than 32,768 flows in all: then none, and routes are crossed as it happens.
std::uint32_t usual_routes_each(const model::Fabric& fabric);

struct PlanOptions {
  std::uint64_t crossings = 1;               // of each link in a window
  std::uint32_t flows_each = 0;              // over each link at least; 0: usual_flows_each()
  std::optional<std::uint32_t> routes_each;  // over each transit route; none: usual_routes_each()
  std::int64_t window_ns = 10 * ns_per_s;
  double rate_max = 0;            // probes a second of one host; 0: no bound
  PortRange ports{49152, 65535};  // to choose source ports from
  std::uint16_t target_port = default_port;
  std::uint64_t seed = 1;
};

// Probes from `src` to `dst` and their answers. The paths stand in Plan::links: the way there, then
// the way back.
struct PlannedFlow {
  model::NodeId src, dst;  // NICs
  std::uint16_t source_port = 0;
  std::uint32_t path_first = 0;
  std::uint16_t forward_size = 0, back_size = 0;
  std::optional<Timestamp> learned;  // when the way was found out, where that is said
};

// How often links are crossed in a window, and routes by how many flows.
struct Coverage {
  struct Tier : Crossed {
    model::TierId tier;
  };
  std::vector<Tier> tiers;           // by id; those with links that can be probed
  std::vector<model::LinkId> below;  // by id
  std::size_t unreachable = 0;       // live links that no two NICs have between them
  // Only where PlanOptions::routes_each asks for some; ingress routes are counted, not asked for.
  Crossed transit, ingress;
  std::vector<Route> routes_below;  // transit, by destination

  Crossed total() const;  // of all tiers
};

struct Plan {
  std::vector<PlannedFlow> flows;  // by source
  std::vector<model::LinkId> links;
  std::uint64_t probes = 0;                      // of each flow in a window
  double host_rate_mean = 0, host_rate_max = 0;  // probes a second, over hosts that probe
  Coverage coverage;

  std::span<const model::LinkId> forward(const PlannedFlow& flow) const {
    return {links.data() + flow.path_first, flow.forward_size};
  }
  std::span<const model::LinkId> back(const PlannedFlow& flow) const {
    return {links.data() + flow.path_first + flow.forward_size, flow.back_size};
  }
};

// Covers each live link between switches and NICs by at least `flows_each` flows, and each transit
// route by `routes_each`, by the hash that `router` models, then evens out the hosts' shares; each
// flow is probed as often as the link with the fewest flows needs, or as the rate allows. The
// router is left in `state`: what it says is down is neither crossed nor probed. Deterministic.
// Method: for each route, then each link, that has too few flows yet, pairs whose shortest paths
// may cross it try ports until some do; of these the flow is taken that crosses most such routes or
// links on both ways. Fails: Errc::infeasible when no two NICs are joined, Errc::value where
// routes need more flows than a plan may have. Cost: about 5 us a link or route and equal-cost
// choice of it.
Result<Plan> make_plan(route::Router& router, const model::State& state,
                       const PlanOptions& options);

// A way that was learned, by a sweep, rather than modelled.
struct LearnedFlow {
  model::NodeId src, dst;
  std::uint16_t source_port = 0;
  route::Path forward, back;         // back empty: not known, and not counted
  std::optional<Timestamp> learned;  // as PlannedFlow::learned
};
// The one shortest way from a switch to a NIC; empty: there are several, or none.
route::Path only_way(route::Router& router, model::NodeId at, model::NodeId dst);
// Completes ways (`forward`) that were seen only up to a switch with several next hops, since some
// switch swallows what goes to `dst`. Each is led over that next hop which no whole way to `dst`
// passes, though ways to others pass it and all links from there to `dst`; where that is one hop,
// so many whole ways go to `dst` that none of them would pass it by chance (1 in 10,000), and one
// way is left from there. All others are removed. What a switch does to such flows is then found by
// probing them. Cost: O(links of all ways + partial x hops).
void complete_ways(route::Router& router, std::span<const LearnedFlow> whole,
                   std::vector<LearnedFlow>& partial);

// The same from learned ways: of those whose links are all live, as few as cover what any of them
// crosses, links `flows_each` and transit routes `routes_each` times where they can, those with
// most that is uncovered first, of these the one whose host has the fewest flows yet. Rates are not
// evened out beyond that. Fails: Errc::infeasible when none is left. Cost: O(links of all ways *
// flows of a host * log flows).
Result<Plan> make_plan(route::Router& router, const model::State& state,
                       std::span<const LearnedFlow> learned, const PlanOptions& options);

}  // namespace weft::observe::probe
