// What a replica's ranks and its KV caches send: over the scenario's fabric, or over stated links.
#pragma once

#include <vector>

#include "plan/infer/inference_config.hpp"
#include "workload/serving/step_time.hpp"

namespace weft::plan {

// Two AllReduces of every layer between the ranks of a stage, and the way from stage to stage. On
// the fabric an AllReduce costs what the one cost model of collectives says
// (workload/collective/cost), with the fabric to itself; on a stated link a ring's bytes and its
// latency once. Sets the links of the cluster and the ways of its KV caches; ranks hold equal
// shares, and each sends its own. Replicas stand on the fabric's GPUs in order of topology, those
// that prefill first.
// Fails: Errc::parse where ranks or caches need a network and none is given; Errc::infeasible where
// the fabric has too few GPUs, or its cost model does not cover them.
Result<workload::StepTimes::Communication> lay_network(const model::Scenario& scenario,
                                                       InferenceConfig& config);

}  // namespace weft::plan
