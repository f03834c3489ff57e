// One replica: vLLM's scheduler as a state machine. It is told of requests and asked for its next
// step; it knows neither other replicas nor the network.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/units.hpp"
#include "workload/serving/kv_blocks.hpp"
#include "workload/serving/requests.hpp"
#include "workload/serving/step_time.hpp"

namespace weft::workload {

inline constexpr Time never{std::numeric_limits<std::int64_t>::max()};

struct ReplicaCounts {
  std::uint64_t steps = 0, preemptions = 0;
  std::uint64_t computed_tokens = 0;  // with what was computed again
  std::uint64_t cached_tokens = 0;    // found in the prefix cache
  Duration busy;                      // of the first stage
};

class Replica {
 public:
  // prefill: requests end with their first token, and keep their blocks until let_go(). decode:
  // requests come with their prompt's keys and values and one token.
  enum class Role : std::uint8_t { whole, prefill, decode };
  // `times` must outlive it. `slowdown`: as StepTimes::of has it.
  Replica(const StepTimes& times, const ServingLimits& limits, Role role, double slowdown = 1);

  // At or after the last step, and not after the next one.
  void submit(std::uint32_t id, const InferenceRequest& request, Time now);
  void let_go(std::uint32_t id, Time now);
  // Blocks for all tokens that a request ever has here.
  bool can_hold(const InferenceRequest& request) const;

  // When it ends a step or begins one after idleness; `never`: when it is idle.
  Time next() const { return next_; }
  struct Delivery {
    std::uint32_t id;
    std::uint32_t tokens;  // of the request, so far
    bool last;
  };
  // Goes on to next(). What was delivered then, and which requests were scheduled for the first
  // time; until the next call.
  void step();
  std::span<const Delivery> delivered() const { return delivered_; }
  std::span<const std::uint32_t> started() const { return started_; }

  // Prompt and generated tokens of all requests that are not finished.
  std::uint64_t load_tokens() const { return load_; }
  const ReplicaCounts& counts() const { return counts_; }
  std::uint32_t free_blocks() const { return cache_.free_count(); }

 private:
  using Index = std::uint32_t;
  struct Job {
    std::uint32_t id = 0, input = 0, output = 0;
    std::uint32_t prefix_tokens = 0, group = 0;
    std::uint32_t computed = 0;                // tokens whose keys and values are there
    std::uint32_t promised = 0, produced = 0;  // tokens generated: scheduled, delivered
    std::uint32_t keyed = 0;                   // blocks that can be found again
    std::uint32_t epoch = 0;
    bool received = false;  // its prompt's keys and values come over the network
    bool started = false;
    std::vector<KvBlocks::Block> blocks, old_blocks;
  };
  struct Item {
    Index job;
    std::uint32_t epoch;
  };
  struct Step {
    std::vector<Item> samples;  // those that get a token
    Time end;
  };

  bool launch(Time now);
  bool schedule_running(StepLoad& load, Step& step);
  void schedule_waiting(StepLoad& load, Step& step);
  void take_in(Job& job, Index index, std::uint32_t tokens, StepLoad& load, Step& step);
  std::uint32_t known_tokens(const Job& job) const {
    return job.input + (limits_.asynchronous ? job.promised : job.produced);
  }
  bool admit(Job& job, std::uint32_t total, std::uint32_t budget);
  bool allocate(Job& job, std::uint32_t tokens);
  std::uint32_t blocks_of(std::uint32_t tokens) const {
    return (tokens + limits_.block - 1) / limits_.block;
  }
  std::uint64_t key(const Job& job, std::uint32_t block) const;
  bool shares(const Job& job, std::uint32_t block) const {
    return job.group > 0 && std::uint64_t{block + 1} * limits_.block <= job.prefix_tokens;
  }
  void find_cached(const Job& job, std::uint32_t total, std::vector<KvBlocks::Block>& hits) const;
  void make_findable(Job& job);
  void release(Job& job);
  void preempt(Index index);
  void deliver(const Step& step);
  void finish(Job& job, Index index);

  const StepTimes& times_;
  double slowdown_;
  ServingLimits limits_;
  Role role_;
  std::uint32_t depth_;
  KvBlocks cache_;
  std::vector<Job> jobs_;
  std::unordered_map<std::uint32_t, Index> index_;
  std::unordered_map<std::uint64_t, std::uint32_t> groups_;  // prefix to number, from 1
  std::vector<std::vector<KvBlocks::Block>> group_blocks_;   // by number
  std::deque<Index> waiting_;
  std::vector<Index> running_;
  std::deque<Step> flying_;
  std::vector<Time> stage_free_;
  std::vector<KvBlocks::Block> hits_;
  std::vector<Delivery> delivered_;
  std::vector<std::uint32_t> started_;
  std::vector<std::vector<Item>> spare_;  // memory of steps that ended
  Time next_ = never;
  std::uint64_t load_ = 0;
  ReplicaCounts counts_;
};

}  // namespace weft::workload
