// What stages of a collective cost before anybody competes for the fabric.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.hpp"
#include "engine/jobs/jobs.hpp"
#include "route/router.hpp"
#include "workload/collective/cost.hpp"
#include "workload/collective/traffic.hpp"

namespace weft::engine {

using route::Router;

// Two switches, or a GPU and its NVSwitch: neighbours that no router is asked about.
bool is_cable(const Fabric& fabric, NodeId from, NodeId to);
// Parallel cables between neighbours share the bytes by what they can carry. False, with nothing
// appended, when all are down.
bool append_cable(NodeId from, NodeId to, const Router& router, std::vector<route::Hop>& out);

// Whose latency counts: of the paths that the router gives now, that of the first QP, which it may
// have to assign first; or of the shortest paths, whatever the router would choose.
enum class PathChoice : std::uint8_t { present, shortest };

// What a stage's steps cost beyond their bytes: latency_steps across the network and inner_steps
// inside hosts. Network latency is the mean over a chain's edges, since each chunk passes all of
// them; the maximum over chains and independent flows; that from the first rank to any other for an
// exchange.
class StageLatency {
 public:
  StageLatency(const workload::Stage& stage, Router& router,
               PathChoice paths = PathChoice::present);

  // `step_overhead`: software, of every step.
  double seconds(Duration step_overhead) const;
  // Beyond the lead of a call: the overhead, and what paths are longer than the call's path_s.
  double beyond_s(const workload::CallCost& call, Duration step_overhead) const;

 private:
  double outer_steps_, inner_steps_;
  double outside_s_ = 0, inside_s_ = 0;
};

// How the stages share the cost of a call: its lead by their steps, where one over the network
// counts like step_weight inside a host, and its bytes by the time of their busiest host-side link.
std::vector<workload::StageShare> stage_shares(const workload::Traffic& traffic,
                                               const Fabric& fabric);

// What a collective takes at best.
struct TrafficFloor {
  double latency_s = 0;  // of its stages
  // Every stage at the speed of its busiest host-side link (NVLink, PCIe, NIC port), as if the
  // fabric had no limit.
  double bytes_s = 0;
  double seconds() const { return latency_s + bytes_s; }
};
// With `cost` what the library needs, and latency beyond it; without, at line rate.
TrafficFloor traffic_floor(const workload::Traffic& traffic, Duration step_overhead,
                           const std::optional<workload::CallCost>& cost, Router& router,
                           PathChoice paths);

}  // namespace weft::engine
