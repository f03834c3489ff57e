// Many replicas, whole or split into prefill and decode, and the router before them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "workload/serving/replica.hpp"
#include "workload/serving/requests.hpp"
#include "workload/serving/step_time.hpp"

namespace weft::workload {

// round_robin   one after another
// least_tokens  where the prompts and generated tokens of unfinished requests are fewest
// prefix        where the prefix was seen first, unless that replica holds a whole step's tokens
//               more than twice the least; else as least_tokens
enum class RoutePolicy : std::uint8_t { round_robin, least_tokens, prefix };
inline constexpr std::array<std::string_view, 3> route_policy_names{"round_robin", "least_tokens",
                                                                    "prefix"};

struct Cluster {
  ServingLimits limits;
  RoutePolicy route = RoutePolicy::round_robin;
  std::uint32_t replicas = 1;
  std::uint32_t decode_replicas = 0;  // above 0: `replicas` only prefill
  std::uint64_t kv_bytes_per_token = 0;
  // By replica, those that decode last: how many times as long its slowest GPU computes; empty: all
  // as the profile says.
  std::vector<double> slowdown = {};
};

struct RequestTimes {
  Time arrival;
  Time scheduled;    // first, on the replica that prefills
  Time prefilled;    // the first token exists
  Time first_token;  // the client may have it: keys and values are where decoding goes on
  Time last_token;
  std::uint32_t input = 0, output = 0;
  std::uint32_t replica = 0, decode_replica = 0;
  bool ended = false;

  Duration queue() const { return scheduled - arrival; }
  Duration prefill() const { return prefilled - scheduled; }
  Duration transfer() const { return first_token - prefilled; }
  Duration ttft() const { return first_token - arrival; }  // the sum of these three
  Duration e2e() const { return last_token - arrival; }
  // Seconds between tokens; 0 for one token.
  double tpot_s() const {
    return output > 1 ? (last_token - first_token).seconds() / (output - 1) : 0;
  }
};

struct ServingRun {
  std::vector<RequestTimes> requests;   // as in the trace
  std::vector<ReplicaCounts> replicas;  // those that decode last
  std::uint64_t kv_bytes_moved = 0;
  std::uint64_t ended = 0;  // requests
  Time end;                 // of the last token
};

inline constexpr std::uint64_t kv_blocks_max = std::uint64_t{1} << 26;

// The cluster as a state machine. Whoever runs it has the clock, and the network that takes keys
// and values from replicas that prefill to those that decode.
class ServingCluster {
 public:
  // The keys and values of a prompt.
  struct Transfer {
    std::uint32_t request;
    std::uint32_t from, to;  // replica that prefills, replica that decodes
    std::uint64_t bytes;
  };

  // `requests` by arrival; they and `times` must outlive the cluster. Fails: Errc::infeasible on a
  // request that no replica's cache can hold.
  static Result<ServingCluster> create(const std::vector<InferenceRequest>& requests,
                                       const StepTimes& times, Cluster cluster);
  ServingCluster(ServingCluster&&) noexcept;
  ServingCluster& operator=(ServingCluster&&) noexcept;
  ~ServingCluster();

  // Of an arrival or a replica's step; `never`: nothing happens before a transfer is delivered.
  Time next() const;
  // Goes on to next(), and does one thing of that time: an arrival, else a step.
  void step();
  // Those that began in the last step().
  std::vector<Transfer> take_transfers();
  // Not before the last step(), nor after next().
  void deliver(std::uint32_t request, Time now);
  bool ended() const;  // all requests have
  // Fails: Errc::infeasible where requests take longer than 92 days.
  Result<ServingRun> take_result();

 private:
  class State;
  explicit ServingCluster(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// All requests, on a network that delivers every transfer after `latency`. Fails: as create() and
// take_result().
Result<ServingRun> serve(const std::vector<InferenceRequest>& requests, const StepTimes& times,
                         const Cluster& cluster, Duration latency = {});

}  // namespace weft::workload
