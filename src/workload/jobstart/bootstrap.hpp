// How long the communicators of a job take to come up over the front-end network.
#pragma once

#include <cstdint>
#include <span>

#include "base/config.hpp"
#include "base/units.hpp"

namespace weft::workload {

// How ranks tell each other about themselves once the ring stands. `ring`: one way round, as NCCL
// up to 2.27; `both_ways`: both ways round at a time, half the steps (NCCL 2.28); `tree`: recursive
// doubling, which NCCL does not do - what a tree would save.
enum class BootstrapExchange : std::uint8_t { ring, both_ways, tree };

// Durations are declared, not measured, unless a source stands beside them.
struct BootstrapModel {
  // Ranks that share one root, 0: all (one root, NCCL before 2.23). PyTorch and XLA choose 128 with
  // ncclCommInitRankScalable (pytorch/pytorch#144794, openxla/xla#21273).
  std::uint32_t ranks_per_root = 0;
  BootstrapExchange exchange = BootstrapExchange::ring;
  // All-gathers over the ring: 3 (NVIDIA/nccl#251), each of
  // about 100 bytes a rank (NVIDIA/nccl#1791).
  std::uint32_t exchanges = 3;
  Bytes entry{100};
  Rate rate = 100_Gbps;            // of a front-end NIC
  Duration message = 20_us;        // software at both ends of one TCP message
  Duration root_service = 20_us;   // root: to accept and read a rank's report, or to answer one
  Duration store_service = 20_us;  // key-value store: to answer one rank's request for the root ids
};

// `groups` communicators of `ranks` each that start together (the tensor-parallel groups of a job).
struct Communicators {
  std::uint64_t ranks = 1;
  std::uint64_t groups = 1;
};

struct BootstrapTime {
  double store_s = 0;     // ranks learn where the roots are
  double root_s = 0;      // ranks report to their root, which names each its ring neighbour
  double connect_s = 0;   // ranks connect to their neighbours
  double exchange_s = 0;  // ranks gather what all others say about themselves
  double total_s() const { return store_s + root_s + connect_s + exchange_s; }
  BootstrapTime& operator+=(const BootstrapTime& other);
};

// With n ranks, r roots of m = ceil(n / r) ranks, round trip R of the slowest pair of ring
// neighbours, s = root_service, and n x groups ranks asking one store:
//   store     R + n x groups x store_service
//   root      3/2 R + m' s            a TCP connection and the report; one thread takes them in
//   turn
//             + m (R + s) + R/2       it connects to each rank, in turn, and answers
//             (m' = m, or m + 1 with several roots: neighbours across a border report to both)
//   connect   R
//   exchange  `exchanges` times  steps (R/2 + message) + passed x entry / rate, where
//             ring: steps = passed = n - 1;  both_ways: both ceil((n - 1) / 2);
//             tree: ceil(log2 n) steps, n - 1 entries passed
// The steps of a ring take as long as its slowest edge, which each entry passes or waits behind.
// 0 for a single rank. Every rank is taken to start at the same time; processes, CUDA contexts,
// topology search and the connections of the back end are left out.
BootstrapTime bootstrap_time(const BootstrapModel& model, const Communicators& communicators,
                             Duration round_trip);

// All communicators of a job, which each rank creates one kind after another (world, tp, cp, ...).
BootstrapTime job_bootstrap_time(const BootstrapModel& model, std::span<const Communicators> kinds,
                                 Duration round_trip);

// Bytes that every edge of the ring of one communicator carries, each way there is, in all
// exchanges: the part of exchange_s that grows with the network's load.
double exchange_bytes(const BootstrapModel& model, std::uint64_t ranks);

// Reads a `bootstrap:` section with the keys of BootstrapModel; exchange is ring, both_ways or
// tree. A null section gives the defaults; errors go to the list.
BootstrapModel read_bootstrap(const Config& section, Errors& errors);

}  // namespace weft::workload
