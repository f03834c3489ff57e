// What a replica's ranks and its KV caches send: over the scenario's fabric, or over stated links.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "plan/infer/inference_config.hpp"
#include "plan/run/jobs.hpp"
#include "plan/run/setup.hpp"
#include "workload/serving/step_time.hpp"

namespace weft::plan {

struct ServingNetwork {
  workload::StepTimes::Communication communication;
  // The fabric that KV caches cross, with the jobs beside the replicas: the scenario's, or a star
  // of stated links. None: they arrive after `latency`.
  std::unique_ptr<const Setup> setup;
  Jobs jobs;
  std::vector<std::vector<NodeId>> replicas;  // ends, as engine::ServingJob has them
  std::vector<double> slowdown;               // as workload::Cluster has it
  Duration latency;
};

// Two AllReduces of every layer between the ranks of a stage, and the way from stage to stage. On
// the fabric an AllReduce costs what `weft perf` says (plan/run/lone); on a stated link a ring's
// bytes and its latency once. The jobs of the scenario are placed first; replicas stand on the free
// GPUs in order of topology, those that prefill first. Faults that slow GPUs from the start slow
// their replicas. Fails: Errc::parse where ranks, caches or jobs need a network and none is given;
// Errc::infeasible where the fabric has too few GPUs, or its cost model does not cover them, or a
// replica stands on what is down from the start or is not connected; Errc::unsupported on the
// packet engine; as read_setup() and read_jobs().
Result<ServingNetwork> lay_network(const model::Scenario& scenario, const InferenceConfig& config);

}  // namespace weft::plan
