// A set of flows run to its end: what `weft flows` does.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/fluid/network.hpp"
#include "model/fabric/flow_set.hpp"

namespace weft::engine::fluid {

using model::FlowSet;

struct FlowEnd {
  double start_s = 0;
  double end_s = 0;
  bool started = false;
  bool finished = false;
};

struct FlowRunResult {
  std::vector<FlowEnd> flows;      // as in the set
  double makespan_s = 0;           // latest end
  std::vector<double> link_bytes;  // by LinkId
  std::vector<bool> usable;        // by LinkId: some flow of the set could use it
  std::string digest;
  double rate_error = 0;  // worst difference seen by audits
  Solver::Counters counters;
  std::uint64_t events = 0;
};

// By LinkId: links that some flow could use under the router's present state; of flows with `via`,
// those of their pinned paths.
std::vector<bool> usable_links(const FlowSet& set, Router& router);

// Under `split` routing a flow is one message cut into equal parts, each with a rate of its own;
// under `round_robin` the k-th flow of a pair of NICs uses QP k mod qps. A flow has ended when its
// last byte has arrived.
FlowRunResult run_flows(const FlowSet& set, Router& router, std::span<const StateChange> changes,
                        const NetworkOptions& options);

// A flow at one moment of a run.
struct FlowMoment {
  FlowEnd end;            // as of the whole run; `started` and `finished` by the moment
  double bytes_left = 0;  // not yet sent
  double rate = 0;        // bytes per second, all QPs together
};

// Where all flows are at `at`: from here a packet run can go on. Cost: that of run_flows().
std::vector<FlowMoment> flows_at(const model::FlowSet& set, Router& router,
                                 std::span<const StateChange> changes,
                                 const NetworkOptions& options, Time at);

}  // namespace weft::engine::fluid
