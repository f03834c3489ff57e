#include "plan/infer/infer.hpp"

#include <algorithm>
#include <numeric>

#include "plan/infer/inference_config.hpp"
#include "plan/infer/network.hpp"

namespace weft::plan {
namespace {

using namespace workload;

Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  const auto rank = [&](std::size_t percent) { return values[values.size() * percent / 100]; };
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {sum / static_cast<double>(values.size()), rank(50), rank(90), rank(99)};
}

template <class Of>
Spread spread_of(const ServingRun& run, const Of& of) {
  std::vector<double> values;
  values.reserve(run.requests.size());
  for (const RequestTimes& one : run.requests) values.push_back(of(one));
  return spread_of(std::move(values));
}

// The same figures of the run that was recorded.
ServingRun recorded(const ServingRun& run, const std::vector<MeasuredRequest>& measured) {
  ServingRun out;
  out.requests = run.requests;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    out.requests[i].first_token = measured[i].first_token;
    out.requests[i].last_token = measured[i].last_token;
  }
  return out;
}

std::vector<Latency> latencies_of(const ServingRun& run,
                                  const std::vector<MeasuredRequest>& measured) {
  const auto ttft = [](const RequestTimes& one) { return one.ttft().seconds(); };
  const auto tpot = [](const RequestTimes& one) { return one.tpot_s(); };
  const auto e2e = [](const RequestTimes& one) { return one.e2e().seconds(); };
  std::vector<Latency> out{
      {"ttft", spread_of(run, ttft), {}},
      {"queue", spread_of(run, [](const RequestTimes& one) { return one.queue().seconds(); }), {}},
      {"prefill",
       spread_of(run, [](const RequestTimes& one) { return one.prefill().seconds(); }),
       {}},
      {"transfer",
       spread_of(run, [](const RequestTimes& one) { return one.transfer().seconds(); }),
       {}},
      {"tpot", spread_of(run, tpot), {}},
      {"e2e", spread_of(run, e2e), {}}};
  if (measured.empty()) return out;
  const ServingRun theirs = recorded(run, measured);
  out[0].measured = spread_of(theirs, ttft);
  out[4].measured = spread_of(theirs, tpot);
  out[5].measured = spread_of(theirs, e2e);
  return out;
}

double goodput_of(const ServingRun& run, const InferenceConfig& config) {
  const auto meets = [&](const RequestTimes& one) {
    return (!config.slo_ttft || one.ttft() <= *config.slo_ttft) &&
           (!config.slo_tpot || one.tpot_s() <= config.slo_tpot->seconds());
  };
  return static_cast<double>(std::ranges::count_if(run.requests, meets)) / run.end.seconds();
}

}  // namespace

Result<InferReport> infer(const model::Scenario& scenario) {
  WEFT_TRY(InferenceConfig config, read_inference(scenario));
  WEFT_TRY(const StepTimes::Communication communication, lay_network(scenario, config));
  const Cluster& cluster = config.cluster;
  const StepTimes times(config.profile, config.model.layers, cluster.limits, communication);
  WEFT_TRY(const ServingRun run, serve(config.trace.requests, times, cluster));
  InferReport out{.latencies = latencies_of(run, config.trace.measured),
                  .requests = run.requests.size(),
                  .replicas = cluster.replicas,
                  .decode_replicas = cluster.decode_replicas,
                  .end_s = run.end.seconds(),
                  .kv_bytes_moved = run.kv_bytes_moved,
                  .goodput = {},
                  .notes = config.notes};
  for (const RequestTimes& one : run.requests) {
    out.input_tokens += one.input;
    out.output_tokens += one.output;
  }
  double busy_s = 0;
  for (const ReplicaCounts& one : run.replicas) {
    out.steps += one.steps;
    out.preemptions += one.preemptions;
    out.cached_tokens += one.cached_tokens;
    busy_s += one.busy.seconds();
  }
  out.busy = busy_s / out.end_s / static_cast<double>(run.replicas.size());
  if (config.slo_ttft || config.slo_tpot) out.goodput = goodput_of(run, config);
  return out;
}

}  // namespace weft::plan
