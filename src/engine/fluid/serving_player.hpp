// Replicas that serve requests, on a network that others use as well.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/fluid/network.hpp"
#include "engine/jobs/jobs.hpp"

namespace weft::engine::fluid {

// Drives a ServingCluster by the network's clock, and carries its transfers. Tags are `tag` plus
// one of 2^32 values.
class ServingPlayer {
 public:
  // Fails: as workload::ServingCluster::create(). `job` and `network` must outlive it.
  static Result<ServingPlayer> create(const ServingJob& job, std::uint64_t tag, Network& network);

  void begin() { wake(); }
  void on_timer();
  void on_delivered(std::uint64_t tag);
  // Nothing of it can happen any more: all requests have ended, or what is left waits for transfers
  // that are stalled, and the fabric will not change.
  bool is_over() const;
  // Of a transfer that is stalled.
  std::string why(std::uint64_t tag) const;
  const std::string& name() const { return job_->name; }
  // Fails: as workload::ServingCluster::take_result().
  Result<workload::ServingRun> take_result() { return cluster_.take_result(); }

 private:
  ServingPlayer(const ServingJob& job, std::uint64_t tag, Network& network,
                workload::ServingCluster cluster)
      : job_(&job), tag_(tag), network_(&network), cluster_(std::move(cluster)) {}
  void wake();
  void send(const workload::ServingCluster::Transfer& transfer);
  RouteId route(std::uint32_t from, std::uint32_t to);
  struct Ends {
    std::uint32_t from, to;  // replicas
  };

  const ServingJob* job_;
  std::uint64_t tag_;
  Network* network_;
  workload::ServingCluster cluster_;
  Time now_;                      // of its last event
  Time timer_ = workload::never;  // the earliest that is set
  std::vector<RouteId> routes_;   // by prefill and decode replica, where known
  std::vector<Ends> ends_;        // of each request's transfer, once it has begun
};

}  // namespace weft::engine::fluid
