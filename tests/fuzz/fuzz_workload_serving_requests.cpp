// Request traces: no input crashes; one that is accepted is in order of arrival, and is served.
#include "fuzz.hpp"
#include "workload/serving/cluster.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::workload;
  auto trace = read_requests(weft::fuzz::text_of(data, size), "fuzz");
  if (!trace) {
    WEFT_CHECK(!trace.error().what.empty());
    return 0;
  }
  WEFT_CHECK(trace->measured.empty() || trace->measured.size() == trace->requests.size());
  const KernelProfile profile;
  Cluster cluster;
  cluster.limits.max_seqs = 2;
  cluster.limits.kv_blocks = 8;
  const StepTimes times(profile, 1, cluster.limits, {});
  weft::Time before{};
  for (const InferenceRequest& one : trace->requests) {
    WEFT_CHECK(one.arrival >= before && one.input > 0 && one.output > 0);
    WEFT_CHECK(one.prefix_tokens <= one.input);
    before = one.arrival;
  }
  const auto run = serve(trace->requests, times, cluster);
  if (!run) return 0;
  for (const RequestTimes& one : run->requests)
    WEFT_CHECK(one.queue() + one.prefill() + one.transfer() == one.ttft());
  return 0;
}
