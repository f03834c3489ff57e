// What jobs and data sets send between regions in the life of a model: where data comes from, how
// it is kept fresh, where checkpoints go, who asks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/backbone/wan.hpp"

namespace weft::plan::regions {

using backbone::Cause;
using backbone::cause_count;

inline constexpr std::size_t hours = 24;
inline constexpr double day_seconds = 86'400;
using Hourly = std::array<double, hours>;

// Something sent every `every` seconds, within `within` of that, beginning at `at` of the day. A
// part of the period only where the period divides a day.
struct Period {
  double every = day_seconds, within = day_seconds, at = 0;
};
// New data, `bytes` a day, which follow the users' day at `from`; to the data set's first region.
struct Ingest {
  std::uint32_t data = 0, from = 0;
  double bytes = 0;
};
// What changed, from the data set's first region to all others that hold it.
struct Freshness {
  std::uint32_t data = 0;
  double bytes = 0;  // each period
  Period period;
};
struct Checkpoints {
  std::uint32_t job = 0;
  double bytes = 0;      // each period
  std::uint64_t to = 0;  // regions
  Period period;
};
// Users at a region ask a job: prompts one way, tokens the other, in the mean of a day and
// following it. With `prefill`, prompts go to that job, and its KV cache to the one that decodes.
struct Inference {
  std::uint32_t job = 0, users = 0;
  double prompt_tokens_per_s = 0, tokens_per_s = 0, bytes_per_token = 0;
  std::optional<std::uint32_t> prefill;
  double kv_bytes_per_token = 0;
};
struct Other {
  std::uint32_t from = 0, to = 0;
  double bps = 0;
};
struct LifeCycle {
  std::vector<Ingest> ingest;
  std::vector<Freshness> freshness;
  std::vector<Checkpoints> checkpoints;
  std::vector<Inference> inference;
  std::vector<Other> other;
  double replication_seconds = day_seconds;  // in which a copy is made
  Hourly day{};                              // users by hour of their clocks; mean 1
  // By cause: 1 is served first. Whoever waits, then what a job would lose, then data.
  std::array<std::uint8_t, cause_count> classes{3, 4, 3, 2, 1, 4};
  bool given = false;  // the file says something of it
};

struct TrafficDemand {
  std::string from, to;  // sites
  Cause cause = Cause::other;
  std::uint8_t priority = 4;  // 1 to 4
  Hourly bps{};               // mean of each hour
};
struct Traffic {
  std::vector<TrafficDemand> demands;
  std::array<double, cause_count> local_bps{};  // within sites, in the mean of the day
};

}  // namespace weft::plan::regions
