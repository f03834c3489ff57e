// `weft infer`: from a scenario to latencies, throughput and errors against a record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "plan/infer/inference_config.hpp"
#include "workload/serving/cluster.hpp"

namespace weft::plan {

// Seconds, infinite where no request ended; percentiles by nearest rank.
struct Spread {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0;
  std::vector<double> quantiles;  // of 0 %, 1 %, ... 100 %; none without requests
};

struct Latency {
  std::string_view name;
  Spread ours;
  std::optional<Spread> measured;
};

// How well one objective was kept. A request that never ended kept none.
struct Attainment {
  std::string request_class;  // empty: of all others
  double percentile = 0;
  std::uint64_t requests = 0, met = 0;   // that kept both
  std::optional<double> ttft_s, tpot_s;  // at the percentile, where there is a bar
  std::optional<double> ttft_bar, tpot_bar;
  bool holds() const {
    return (!ttft_bar || *ttft_s <= *ttft_bar) && (!tpot_bar || *tpot_s <= *tpot_bar);
  }
};

// A job that ran beside the replicas until all requests had ended.
struct JobBeside {
  std::string name;
  std::vector<double> steps_s;    // or iterations
  std::optional<double> alone_s;  // its step while nothing is served
};

struct InferReport {
  std::vector<Latency> latencies;  // ttft, its queue, prefill and transfer, tpot, e2e
  std::uint64_t requests = 0, input_tokens = 0, output_tokens = 0;
  std::uint64_t steps = 0, preemptions = 0, cached_tokens = 0;
  std::uint32_t replicas = 0, decode_replicas = 0;
  double end_s = 0;  // of the last token
  double busy = 0;   // share of the time until then, of all replicas
  std::uint64_t kv_bytes_moved = 0;
  std::uint32_t gpus = 0;         // of all replicas
  std::optional<double> goodput;  // requests a second that meet the objectives
  std::vector<Attainment> objectives;
  // In the currency of gpu_hour, for all GPUs until the last token.
  std::optional<double> cost_per_million_output_tokens;
  std::uint64_t unfinished = 0;  // requests that never ended; latencies are of the others
  std::string why_unfinished;
  std::vector<JobBeside> jobs;
  std::vector<std::string> notes;

  bool holds() const;   // every objective, and all requests ended
  double kept() const;  // share of the requests that have an objective
};

// Requests of the section, served on the fabric beside the scenario's jobs, under its faults. Jobs
// with a model or a workload repeat their step until all requests have ended, unless `repeat` says
// how often. Fails: as read_inference(), lay_network() and serve().
Result<InferReport> infer(const model::Scenario& scenario);
// The same for a section that was read, and then perhaps changed.
Result<InferReport> infer(const model::Scenario& scenario, const InferenceConfig& config);

std::string to_table(const InferReport& report);
// "chat: ttft p99 180.20 ms of 200, ...: 99.10 % of 400 requests keep both", a line each.
std::string objective_lines(const std::vector<Attainment>& objectives);
// Seconds, bytes, tokens; keys in a fixed order.
std::string to_json(const InferReport& report);
// {"ttft": [101 values], ...} in seconds, for distributions.
std::string quantiles_json(const InferReport& report);

}  // namespace weft::plan
