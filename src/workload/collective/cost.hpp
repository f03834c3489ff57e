// What a collective costs: the one model behind `weft perf`, `run`, `trace` and `sweep`, on every
// engine.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/config.hpp"
#include "workload/collective/nic.hpp"
#include "workload/collective/timing.hpp"
#include "workload/collective/tuner.hpp"

namespace weft::workload {

// The library that runs the collectives, as `collectives:` of a scenario describes it.
struct Library {
  // nccl: calibrated to published nccl-tests rows. line_rate: nothing but bytes at the rate of the
  // links and the latency of paths, which closed forms describe.
  enum class Cost : std::uint8_t { nccl, line_rate } cost = Cost::nccl;
  std::string system;  // a name of system_names(); empty: what the fabric says
  std::optional<Transport> transport;
  std::optional<Duration> launch, step;  // System::host_latency, network_latency
  std::optional<Nic> nic;                // instead of `step`
  // Reacts to the state of the network: what QPs and channels carry, and the algorithm where it is
  // the library's choice, follow the capacity of the paths.
  bool adaptive = false;
  // Whose all-to-all: NCCL's, message by message, or DeepEP's kernels (HybridEP's are alike), which
  // keep the NICs busy. Not of the scenario: a training plan says so of its experts.
  enum class AllToAll : std::uint8_t { nccl, deepep } all_to_all = AllToAll::nccl;
};

// Reads cost, system, transport, launch, step, nic and adaptive; the errors go to the list.
Library read_library(const Config& section, Errors& errors);

// A group of ranks as the model sees it.
struct Machine {
  System system;
  GroupShape shape;
  bool operator==(const Machine&) const = default;
};
// Fails: as system_of() and shape_of(), and Errc::unknown on a name of no system.
Result<Machine> machine_of(const Library& library, const Fabric& fabric,
                           std::span<const NodeId> ranks);

// What one call costs that has its hosts, and a fabric without limits, to itself.
// From: docs/collectives-timing.md.
struct CallCost {
  double lead_s = 0;   // launch and hops, before the first byte
  double bytes_s = 0;  // bytes at the pace of protocol, channels, NVLinks and NICs
  // What a network link carries for each byte of data: headers, and what else keeps a NIC from its
  // line rate (System::nic_efficiency).
  double wire_bytes = 1;
  // Of each step over the network: the latency of the path that the lead has in it.
  double path_s = measured_path.seconds();

  double seconds() const { return lead_s + bytes_s; }
};

// One call as the library runs it.
struct PlannedCall {
  Pick pick;
  CallCost cost;
};
// Fails: as pick() and predict(). Cost: O(1).
Result<PlannedCall> plan_call(const Machine& machine, Op op, double bytes, const TunerRules& rules);

// An all-to-all of DeepEP's kernels between hosts: 43 to 46 of 50 GB/s a NIC on 16 to 64 GPUs
// (DeepEP's README, normal kernels, H800 and ConnectX-7), one step over the network.
CallCost deepep_cost(const Machine& machine, double bytes);

// Stages run one after another; each takes its shares of a call's lead and of its bytes' time. On a
// fabric with limits:
//   seconds = sum over stages (lead_s * lead + max(bytes_s * bytes, what the fabric needs))
// so that contention comes on top of what the library needs, and nothing is counted twice.
struct StageShare {
  double lead = 0, bytes = 0;
};

}  // namespace weft::workload
