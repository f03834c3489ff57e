// What one training step costs each role, before it meets a fabric: workload/parallel fills it,
// workload/schedule turns it into an operation graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/work/op_graph.hpp"
#include "model/work/rank_grid.hpp"

namespace weft::model {

// `calls` equal collectives within one group, one after another.
struct CommWork {
  Dimension dimension = Dimension::tp;
  CollectiveOp op = CollectiveOp::all_gather;
  double bytes = 0;  // of each call, per rank, as nccl-tests count
  std::uint32_t calls = 1;
  // Share of the communication that can run beside the compute of the same unit, in [0, 1]; the
  // rest comes after it.
  double overlap = 0;
  // Who communicates: ranks along the dimension's own axis (ep: an expert group). Of dp also: ranks
  // with the same experts, or all replicas of the dense parameters, along dp and cp together.
  enum class Members : std::uint8_t { axis, expert_data, replicas } members = Members::axis;
  // An expert exchange whose `bytes` count one copy of a token for each of its experts, while only
  // one travels to each host that has any of them; experts 0: all of them travel. Experts are in
  // equal groups, of which a token may use some only.
  struct OncePerHost {
    std::uint32_t experts = 0, per_token = 0, groups = 1, groups_per_token = 1;
  } once = {};
};

// Forward or backward of one chunk for one micro-batch, on one rank.
struct UnitCost {
  double compute_s = 0;
  std::vector<CommWork> comms;
  // Communication inside hosts that has been timed already, exposed part only; see Folded.
  struct Inner {
    Dimension dimension;
    double seconds;
  };
  std::vector<Inner> inner;
};

// The layers of one virtual pipeline stage.
struct ChunkCost {
  UnitCost forward, backward;
  std::vector<CommWork> gather;  // parameters, once a step, before the chunk's first forward
  std::vector<CommWork> reduce;  // gradients, once a step, after the chunk's last backward
};

struct StepCost {
  std::uint32_t tp = 1, cp = 1, pp = 1, dp = 1, ep = 1;
  std::array<Axis, axis_count> order{Axis::tp, Axis::cp, Axis::pp, Axis::dp};
  std::uint32_t virtual_stages = 1;  // chunks per pipeline stage
  std::uint32_t microbatches = 1;
  // By stage, then by virtual stage: chunk v of stage s holds virtual stage v * pp + s.
  std::vector<ChunkCost> chunks;
  double activation_bytes = 0;      // between virtual stages, each way, per rank and micro-batch
  std::vector<double> optimizer_s;  // by stage
  // Whether parameters are gathered while earlier chunks compute, and gradients reduced while later
  // backwards run; else all gathers come first, and all reductions last.
  enum class Timing : std::uint8_t { overlapped, serial };
  Timing gather = Timing::overlapped, reduce = Timing::overlapped;
  // Seconds of compute lost per second of communication that runs beside it; no overlap share or
  // compute time has it yet.
  double interference = 0;
  // All-reduce of word embeddings' gradients between first and last stage; 0: not tied.
  double embedding_bytes = 0;
  // A small all-reduce over all ranks before the optimizer (gradient norm): everybody waits.
  double norm_bytes = 0;

  const ChunkCost& chunk(std::uint32_t stage, std::uint32_t v) const {
    return chunks[std::size_t{stage} * virtual_stages + v];
  }
};

}  // namespace weft::model
