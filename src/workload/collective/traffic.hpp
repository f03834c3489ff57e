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
  std::uint32_t window = 1;    // all_to_all: rounds of an Exchange that a rank has open at once
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

// Pairwise exchange. In round k each rank sends to the rank k / host_size hosts and k % host_size
// places further, and receives from the rank as far before; it has at most `window` rounds open and
// opens the next one when the lowest is complete both ways. A message starts when its round is open
// at both ends. A window as wide as there are rounds is everything at once.
// Not enumerated: ranks * rounds messages.
struct Exchange {
  std::vector<NodeId> ranks;  // host by host, host_size each
  double bytes_per_pair = 0;
  std::vector<double> matrix;  // as in Request, its diagonal unused; empty: bytes_per_pair
  std::uint32_t window = 1;
  std::uint32_t host_size = 1;    // divides the ranks; 1: hosts do not matter
  std::uint32_t first_round = 1;  // with host_size: those of its own host only, or none of them
  std::uint32_t end_round = 0;    // at most as many as there are ranks

  std::uint32_t size() const { return static_cast<std::uint32_t>(ranks.size()); }
  std::uint32_t round_count() const { return end_round - first_round; }
  // Positions in `ranks`.
  std::uint32_t receiver(std::uint32_t from, std::uint32_t round) const {
    return moved(from, round / host_size, round % host_size);
  }
  std::uint32_t sender(std::uint32_t to, std::uint32_t round) const {
    return moved(to, size() / host_size - round / host_size, host_size - round % host_size);
  }
  double bytes(std::uint32_t from, std::uint32_t to) const {
    return matrix.empty() ? bytes_per_pair : matrix[std::size_t{from} * ranks.size() + to];
  }
  // Calls visit(from, to, bytes) for every message with bytes, round by round.
  template <class Visit>
  void for_each_message(Visit visit) const {
    for (std::uint32_t round = first_round; round < end_round; ++round)
      for (std::uint32_t from = 0; from < size(); ++from)
        if (const std::uint32_t to = receiver(from, round); bytes(from, to) > 0)
          visit(ranks[from], ranks[to], bytes(from, to));
  }

 private:
  std::uint32_t moved(std::uint32_t at, std::uint32_t hosts, std::uint32_t places) const {
    const std::uint32_t host = (at / host_size + hosts) % (size() / host_size);
    return host * host_size + (at % host_size + places) % host_size;
  }
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
  // Every chain does the whole operation, on a part of the data of its own: bytes may move from one
  // chain to another.
  bool divisible = false;
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
