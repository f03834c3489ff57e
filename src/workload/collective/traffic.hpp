// A collective operation as traffic between GPUs, which an engine puts on the fabric.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/units.hpp"
#include "model/fabric.hpp"

namespace weft::workload {

using model::Fabric;
using model::NodeId;

enum class Op : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  all_to_all,
  send_recv
};
std::string_view to_text(Op op);
std::vector<std::string> op_names();

// `bytes` follows nccl-tests: the larger of a rank's send and receive buffer (all_gather: the
// gathered result; all_to_all: what one rank sends in all, its own part included).
struct Request {
  Op op = Op::all_reduce;
  std::string algorithm = "auto";   // a name of the algorithm registry
  std::vector<NodeId> ranks;        // GPUs in rank order
  double bytes = 0;
  std::uint32_t channels = 0;       // 0: as many as the host's NICs (NVLink only: 1)
  std::uint32_t window = 1;         // all_to_all: peers in flight per rank
  // all_to_all with sizes of its own: row-major, bytes from rank i to rank j; empty: equal.
  std::vector<double> matrix;
};

// `bytes` go from one GPU to another. A switch stands at an end for in-network reduction.
struct Edge {
  NodeId from, to;
  double bytes;
};

// Edges that advance together: a pipelined ring or tree in steady state. All of them reach the
// same fraction of their bytes at the same time. Valid once the pipe is full: chunks much smaller
// than the message. `steps` is the number of chunks' worth of work each edge does in turn (2(n-1)
// for a ring all-reduce), which decides what a late rank costs.
struct Chain {
  std::vector<Edge> edges;
  std::uint32_t steps = 1;
};

// Every rank works through its peers (rank + 1, rank + 2, ...), `window` in flight, each next one
// as soon as one has ended; nobody waits for the others. Not enumerated: n (n-1) flows.
struct Exchange {
  std::vector<NodeId> ranks;
  double bytes_per_pair = 0;
  std::vector<double> matrix;       // as in Request; empty: bytes_per_pair
  std::uint32_t window = 1;
};

// Runs when the stage before it has ended on all ranks.
struct Stage {
  std::string name;                 // "ring", "inter-host halving 3/7"
  std::vector<Chain> chains;
  std::vector<Edge> flows;          // independent of each other
  std::vector<Exchange> exchanges;
  std::uint32_t latency_steps = 0;  // times the network's per-step latency, before the first byte
};

struct Traffic {
  std::string algorithm;            // what "auto" became
  std::vector<Stage> stages;
};

// Fails: Errc::unknown algorithm (with the nearest), Errc::infeasible where the algorithm cannot
// serve the ranks (NVLS across hosts, fewer than 2 ranks, a rank twice).
Result<Traffic> build_traffic(const Fabric& fabric, const Request& request);
std::vector<std::string> algorithm_names();

// Bus bandwidth per algorithm bandwidth, as nccl-tests define it: 2(n-1)/n for all_reduce, (n-1)/n
// for all_gather, reduce_scatter and all_to_all, 1 otherwise.
double busbw_factor(Op op, std::size_t ranks);

}  // namespace weft::workload
