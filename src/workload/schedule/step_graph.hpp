// A training step as an operation graph: pipeline schedule, and communication in its place.
#pragma once

#include "base/result.hpp"
#include "model/work/op_graph.hpp"
#include "model/work/step_cost.hpp"

namespace weft::workload {

struct StepGraphOptions {
  // An actor is one rank, or one tensor-parallel group (where its communication has been folded).
  enum class Actors : std::uint8_t { rank, tensor_group } actors = Actors::tensor_group;
  // All data-parallel replicas, or the first alone: exact where all replicas see the same.
  enum class Replicas : std::uint8_t { all, first } replicas = Replicas::all;
};

inline constexpr std::uint32_t step_ranks_max = 1u << 22;

// One program per pipeline stage, in order; finished (OpGraph::finish). Actors are numbered as
// ranks of the default order are: dp outermost, then pp, cp and, where actors are ranks, tp.
// Peer slots are 0: next stage, 1: previous one, in a circle; there are none without a pipeline.
//
// A unit receives its input, computes (on stream 1, one unit after another), communicates and sends
// its output on; the next unit does not wait for that send. What a unit's calls have in common
// (dimension, operation, members) is one collective of all their bytes: `overlap` of them beside
// the compute, the rest behind it. Communication beside a unit starts with its compute, and one
// collective at a time moves. A stage has two buffers for messages of each direction: it receives
// while it computes, and a third message holds its sender back.
// Gathers of a stage follow each other in the order of use, from the start of the step: a chunk's
// first forward waits for the gather but for its `overlap`, and ends no sooner than that.
// Reductions follow each other in the order of last backwards: the `overlap` of each may run from
// the start of that backward, the rest from its end. Timing::serial knows no overlap. Then come
// embeddings, gradient norm and optimizer. Groups of one rank and 0 bytes leave no operation.
//
// Expert groups that do not coincide with actors make all actors that share one wait together.
//
// Fails: Errc::infeasible on too many units or ranks, with the arithmetic; Errc::value where `cost`
// contradicts itself; Errc::unsupported on tensor-parallel communication within an actor.
// Cost: O(stages * virtual stages * microbatches + ranks).
Result<model::OpGraph> build_step_graph(const model::StepCost& cost,
                                        const StepGraphOptions& options);

}  // namespace weft::workload
