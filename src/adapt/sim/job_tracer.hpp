// Collective traces of jobs on a simulated network, with known truth.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "adapt/sim/world.hpp"
#include "base/result.hpp"
#include "observe/colltrace/ring.hpp"

namespace weft::adapt::sim {

struct TracedJob {
  std::string name;
  std::vector<NodeId> gpus;  // by rank
};

// Each job calls AllReduce every 25 ms, on rings over its hosts in the order of its ranks: one
// channel for each rank of a host, which crosses the network from the NIC of that rank to the NIC
// of its like on the next host. What an edge waits for the network follows from the state of its
// path as routing gives it: bytes by the slowest link, what go-back-N leaves of that under its loss
// (model::goodput_share), delays; times 5 % of noise. All members wait for the slowest edge. Where
// an edge has no way, or a host is dead, the call under way never ends, and the job is stalled
// until that is over. A rank computes as long as any other. Deterministic by seed and time.
class JobTracer {
 public:
  static constexpr std::int64_t look_every_ns = 30 * ns_per_s;
  static constexpr std::int64_t hang_ns = 120 * ns_per_s;  // as weft serve has it

  // `world` must outlive it. Jobs on one host have nothing to say of the network, and are left out.
  JobTracer(World& world, std::vector<TracedJob> jobs, std::uint64_t seed);

  // What libweft-nccl.so of each process would hold now, by rank.
  std::vector<observe::colltrace::RingTrace> rings(const TracedJob& job);
  // What colltrace finds in the rings of all jobs and in what probes met since the last look: as
  // lines of records, of kind job_slow, queue_depth or job_hang. Fails: as judge_network().
  Result<std::vector<std::string>> look();
  const std::vector<TracedJob>& jobs() const { return jobs_; }

 private:
  struct Edge;
  std::vector<Edge> edges_of(const TracedJob& job);
  observe::colltrace::RingTrace begin_ring(const TracedJob& job, std::uint32_t rank,
                                           std::int64_t first_call) const;

  World& world_;
  std::vector<TracedJob> jobs_;
  std::uint64_t seed_;
  struct Stall {
    Timestamp since;
    bool is_told = false;
  };
  std::map<std::string, Stall> stalled_;  // by job
};

}  // namespace weft::adapt::sim
