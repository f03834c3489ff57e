// Which probes the twin is asked: flows with their paths.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/events/evidence.hpp"
#include "observe/probe/targets.hpp"
#include "route/router.hpp"

namespace weft::adapt::sim {

using model::EvidenceSet;
using model::Fabric;
using model::LinkId;
using model::NodeId;

// Probes with one 5-tuple and class.
struct TwinFlow {
  NodeId src, dst;  // NICs
  std::uint16_t sport = 0, dport = observe::probe::default_port;
  std::uint8_t traffic_class = 0;                   // in TwinPlan::classes
  std::uint32_t forward_first = 0, back_first = 0;  // paths, in TwinPlan::links
  std::uint16_t forward_size = 0, back_size = 0;    // back_size 0: nobody answers (one-way)
  double per_s = 0;
};

struct TwinPlan {
  std::vector<TwinFlow> flows;
  std::vector<LinkId> links;
  std::vector<std::string> classes{"0"};

  std::span<const LinkId> forward(const TwinFlow& flow) const {
    return {links.data() + flow.forward_first, flow.forward_size};
  }
  std::span<const LinkId> back(const TwinFlow& flow) const {
    return {links.data() + flow.back_first, flow.back_size};
  }
};

struct PlanOptions {
  std::uint32_t peers = 14;  // other hosts that each host probes
  std::uint32_t ports = 18;  // source ports for each of them
  double per_host = 450;     // probes a second, over all classes
  std::vector<std::string> classes{"0"};
  std::uint32_t choices = 4;  // paths tried for each flow; the one over the idlest links is taken
};

// Every host probes other hosts in other racks, from random NICs, over links that so far have few
// flows. The router should hash QPs (e_ecmp): ports are looked up as QPs.
// Fails: Errc::infeasible with fewer than two racks. Cost: flows x choices x hops.
Result<TwinPlan> make_plan(route::Router& router, const PlanOptions& options, std::uint64_t seed);

// Moves up to half of the flows of each host next to a suspect link onto that link, as far as
// shortest paths allow; the rates stay. Cost: O(flows + moved flows x hops).
void aim(TwinPlan& plan, route::Router& router, std::span<const LinkId> suspects);

}  // namespace weft::adapt::sim
