// A set of flows run to its end: what `weft flows` does.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "engine/fluid/network.hpp"

namespace weft::engine::fluid {

// Flows between NICs, in file order. Everything an engine needs to know of them.
struct FlowSet {
  struct Flow {
    std::string id;
    NodeId src, dst;  // NICs
    Bytes size;
    Time start;                            // not before
    std::uint32_t after = none;            // index of the flow that must end first
    std::uint32_t via = 0, via_count = 0;  // into `via`
  };
  static constexpr std::uint32_t none = UINT32_MAX;
  std::vector<Flow> flows;
  std::vector<NodeId> via;
};

// Reads the CSV `id,src,dst,bytes,start,after,via` (start, after and via may be missing or empty).
// Ends are GPUs (bare index or name: their NIC is meant) or NICs. Fails with every error up to a
// hundred, each with line and column: unknown nodes, flows from a node to itself, ids that stand
// twice, `after` of an unknown flow or in a circle (the circle is named).
Result<FlowSet> read_flows(const Fabric& fabric, std::string_view text, const std::string& file);

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

// Under `split` routing a flow is one message cut into equal parts, each with a rate of its own;
// under `round_robin` the k-th flow of a pair of NICs uses QP k mod qps. A flow has ended when its
// last byte has arrived.
FlowRunResult run_flows(const FlowSet& set, Router& router, std::span<const StateChange> changes,
                        const Simulation::Options& options);

}  // namespace weft::engine::fluid
