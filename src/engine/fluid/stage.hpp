// How stages of a collective become transfers, and how fast they could be at best.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/fluid/network.hpp"
#include "engine/jobs/stage_cost.hpp"
#include "workload/collective/cost.hpp"
#include "workload/collective/traffic.hpp"

namespace weft::engine::fluid {

// The parts of one coupled transfer whose size, `bytes`, is that of the largest edge.
std::vector<Part> chain_parts(const workload::Chain& chain, const Router& router, double& bytes);

// "gpu:0 has no live path to gpu:8", or "" where there is one in the router's present state.
std::string describe_dead_path(NodeId from, NodeId to, Router& router);
// The first such pair of the stage's chains and flows; "" where all have a path. Ends that are
// switches are passed over.
std::string describe_dead_path(const workload::Stage& stage, Router& router);

// Per rank: how much later than the others it enters. Empty: nobody is late.
struct LateRanks {
  std::span<const NodeId> ranks;
  std::span<const Duration> late;
};

// Seconds by which `rank` enters late; 0 when it is not named.
double late_of(const LateRanks& ranks, NodeId rank);

// When the chain's transfer has to start, counted from the first rank's entry, so that it ends in
// isolation exactly when the message-by-message ring does (workload::ring_time). Chains that are
// no rings start with their last rank, which is an upper bound.
double chain_delay_s(const LateRanks& ranks, const workload::Chain& chain, Router& router);

}  // namespace weft::engine::fluid
