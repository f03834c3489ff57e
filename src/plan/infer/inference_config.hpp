// The `inference:` section of a scenario.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "workload/collective/tuner.hpp"
#include "workload/serving/cluster.hpp"
#include "workload/serving/profile.hpp"
#include "workload/serving/requests.hpp"

namespace weft::plan {

// Links where no fabric is given: rate 0 is infinitely fast.
struct StatedLink {
  Rate rate;
  Duration latency;
};

// What requests of one class should keep, at a percentile of them.
struct Objective {
  std::string request_class;  // empty: all that no other objective names
  std::optional<Duration> ttft, tpot;
  double percentile = 99;
};

struct InferenceConfig {
  workload::ServedModel model;
  workload::KernelProfile profile;
  bool is_roofline = false;
  std::uint32_t tp = 1;
  workload::TunerRules all_reduce;        // of a replica's ranks
  std::optional<Bytes> all_reduce_up_to;  // larger ones are the tuner's
  Where all_reduce_where;
  workload::Cluster cluster;  // without its links
  std::optional<StatedLink> link, kv_link;
  workload::RequestTrace trace;
  std::vector<Objective> objectives;
  std::optional<double> gpu_hour;  // what a GPU costs an hour, in the user's currency
  std::vector<std::string> notes;
};

// Reads the section and all files that it names, paths relative to the scenario's folder. `run` is
// the JSON record of a vLLM run (engine_kwargs, model_shape, num_gpu_blocks, block_size); the
// section's own keys have precedence.
// Fails with every error of the section, else with those of the files.
Result<InferenceConfig> read_inference(const model::Scenario& scenario);

// The record alone, as values of the section's keys. Fails: Errc::parse, Errc::value.
Result<Config> read_run_record(std::string_view text, const std::string& file);

}  // namespace weft::plan
