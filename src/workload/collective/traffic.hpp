// A collective operation as traffic between GPUs, which an engine puts on the fabric.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/units.hpp"
#include "model/fabric/fabric.hpp"
#include "model/work/op_graph.hpp"

namespace weft::workload {

using model::Fabric;
using model::NodeId;

using Op = model::CollectiveOp;
std::string_view to_text(Op op);
std::vector<std::string> op_names();

// What a request may hold at most.
inline constexpr std::uint32_t channel_count_max = 1024;
inline constexpr double collective_bytes_max = 1e18;  // per rank

// `bytes` follows nccl-tests: the larger of a rank's send and receive buffer (all_gather: the
// gathered result; all_to_all: what one rank sends in all, its own part included). The root of a
// broadcast is rank 0. In send_recv every rank sends to the next and the last to the first; a
// one-way send is a broadcast between two ranks.
struct Request {
  Op op = Op::all_reduce;
  std::string algorithm = "auto";  // a name of the algorithm registry
  std::vector<NodeId> ranks;       // GPUs in rank order
  double bytes = 0;
  std::uint32_t channels = 0;  // 0: as many as one host has NICs (NVLink only: 1)
  std::uint32_t window = 1;    // all_to_all: rounds that a rank has open at once
  // all_to_all with sizes of its own: row-major, bytes from rank i to rank j; empty: equal.
  std::vector<double> matrix;
};

// `bytes` go from one GPU to another. In-network reduction puts a switch at an end: then the two
// are neighbours (two switches, or a GPU and its NVSwitch) or a GPU and the first switch behind
// its NIC. Parallel cables between neighbours share the bytes by their rate.
struct Edge {
  NodeId from, to;
  double bytes;
};

// Edges that advance together: a pipelined ring or tree in steady state. All of them reach the
// same fraction of their bytes at the same time. Valid once the pipe is full: chunks much smaller
// than the message. `steps` is the number of chunks' worth of work each edge does in turn (2(n-1)
// for a ring all-reduce), which decides what a late rank costs; 1 is a stream without such turns
// (trees, broadcast, in-network reduction).
// A stream says the order of its edges for those who send it piece by piece: a piece leaves along
// an edge when it has come over all edges of the chain that end where this one begins and have a
// lower level. A ring in turns has no levels: each edge passes on what the one before it brought in
// the turn before; where the ring passes a node a second time, that node lends its NIC, in the same
// turn.
struct Chain {
  std::vector<Edge> edges;
  std::uint32_t steps = 1;
  std::vector<std::uint32_t> levels = {};  // of streams, by edge
};

// Pairwise exchange. In round k each rank sends to rank + k and receives from rank - k; it has at
// most `window` rounds open and opens the next one when the lowest is complete both ways. A message
// starts when its round is open at both ends. A window of n-1 or more is everything at once.
// Not enumerated: n (n-1) messages.
struct Exchange {
  std::vector<NodeId> ranks;
  double bytes_per_pair = 0;
  std::vector<double> matrix;  // as in Request, its diagonal unused; empty: bytes_per_pair
  std::uint32_t window = 1;
};

// Runs when the stage before it has ended on all ranks.
struct Stage {
  std::string name;  // "ring", "inter-host halving 3/7"
  std::vector<Chain> chains;
  std::vector<Edge> flows;  // independent of each other
  std::vector<Exchange> exchanges;
  // Messages in sequence on the longest dependency path, which cost latency whatever the size:
  // those that cross the network, and those inside a host.
  std::uint32_t latency_steps = 0;
  std::uint32_t inner_steps = 0;
};

// Edges and flows carry more than 0 bytes; a request of 0 bytes leaves stages of latency alone.
struct Traffic {
  std::string algorithm;  // what "auto" became
  std::vector<Stage> stages;
};

// Fails: Errc::unknown algorithm (with the nearest); Errc::value for bytes, channels, window or
// matrix out of range; Errc::infeasible where the ranks make no group (fewer than 2, one twice, not
// a GPU) or the algorithm cannot serve them (NVLS across hosts), with the reason.
// Cost: O(ranks * channels) for rings and trees, O(ranks * log ranks) for step-wise algorithms;
// 16 bytes an edge.
Result<Traffic> build_traffic(const Fabric& fabric, const Request& request);
// The name that "auto" stands for in this request. Fails as build_traffic does.
Result<std::string> default_algorithm(const Fabric& fabric, const Request& request);
// All names that Request::algorithm takes, "auto" first.
std::vector<std::string> algorithm_names();

// Bus bandwidth per algorithm bandwidth, as nccl-tests define it: 2(n-1)/n for all_reduce, (n-1)/n
// for all_gather, reduce_scatter and all_to_all, 1 otherwise.
double busbw_factor(Op op, std::size_t ranks);

}  // namespace weft::workload
