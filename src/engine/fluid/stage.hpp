// How stages of a collective become transfers, and how fast they could be at best.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/fluid/network.hpp"
#include "workload/collective/traffic.hpp"

namespace weft::engine::fluid {

double exchange_bytes(const workload::Exchange& exchange, std::uint32_t from, std::uint32_t to);

// The parts of one coupled transfer whose size, `bytes`, is that of the largest edge.
std::vector<Part> chain_parts(const workload::Chain& chain, const Router& router, double& bytes);

// Latency of the present path between two ends; 0 where there is none.
double edge_latency_s(NodeId from, NodeId to, Router& router);

// What a stage's steps cost beyond their bytes: latency_steps across the network and inner_steps
// inside hosts, each with the software overhead. Network latency is the mean over a chain's edges,
// since each chunk passes all of them; the maximum over chains and independent flows; that from the
// first rank to any other for an exchange.
double stage_latency_s(const workload::Stage& stage, Duration step_overhead, Router& router);

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

// Lower bound of one run of the traffic: every stage at the speed of its busiest host-side link
// (NVLink, PCIe, NIC port), as if the fabric had no limit, plus the stages' latency.
// The latter part of traffic_floor_s() alone.
double traffic_latency_s(const workload::Traffic& traffic, Duration step_overhead, Router& router);
double traffic_floor_s(const workload::Traffic& traffic, Duration step_overhead, Router& router);

}  // namespace weft::engine::fluid
