// What a collective library should use on the network as it is: the advice of a table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/fabric/state.hpp"
#include "operate/health/table.hpp"
#include "plan/run/jobs.hpp"
#include "plan/run/setup.hpp"
#include "workload/collective/traffic.hpp"

namespace weft::operate::health {

// One operation of a job's communicators of one shape, which call it side by side.
struct Call {
  std::string job;
  workload::Op op = workload::Op::all_reduce;
  std::vector<std::vector<model::NodeId>> groups;  // GPUs in rank order; as many in each
  double bytes = 0;                                // that the job sends, as nccl-tests count
  std::size_t ranks() const { return groups.empty() ? 0 : groups.size() * groups[0].size(); }
};
// Of all jobs, without communicators inside one host. Operations that NCCL's tuner is not asked
// about (all_to_all, send and receive) are none.
std::vector<Call> calls_of(const model::Fabric& fabric, const plan::Jobs& jobs);

struct Advised {
  std::vector<Advice> rows;
  std::size_t too_large = 0;  // calls of more than ranks_max ranks
  std::size_t no_room = 0;    // calls whose rows the table cannot hold
};
inline constexpr std::size_t ranks_max = 512;    // as repair::WhatIf
inline constexpr double advised_from = 1 << 20;  // bytes; below, latency decides and not the paths

// For each call and size, by the cost model that adaptive collectives use
// (engine::predicted_seconds): every algorithm that can serve it, ring and tree with each number of
// channels up to the library's own, the first channels staying where they are. A row is written
// where that is at least engine::least_gain_of_other faster than the library's own choice with all
// channels; with fewer channels, each of them is taken to be as fast as it was.
// Nothing on a network that is well. Fails: as route::Router::create().
// Cost: O(calls x algorithms x channels x edges x QPs x hops); 1 s for 512 ranks.
Result<Advised> advise(const plan::Setup& setup, std::span<const Call> calls,
                       const model::State& now, std::uint64_t seed);

}  // namespace weft::operate::health
