// Direct: every pair at once, each part straight between its owner and the others. All-reduce is a
// reduce-scatter and an all-gather. send_recv: every rank to the next one.
#include "workload/collective/exchange.hpp"

namespace weft::workload {
namespace {

Stage shift(const Job& job) {
  Stage stage{.name = "send"};
  for (Rank r = 0; r < job.size(); ++r)
    stage.flows.push_back({job.node(r), job.node((r + 1) % job.size()), job.bytes()});
  set_flow_latency(job, stage);
  return stage;
}

Result<std::vector<Stage>> direct_stages(const Job& job) {
  std::vector<Stage> stages;
  if (job.op() == Op::send_recv) stages.push_back(shift(job));
  if (job.op() == Op::all_reduce || job.op() == Op::reduce_scatter)
    stages.push_back(all_pairs(job, "scatter", job.share()));
  if (job.op() == Op::all_reduce || job.op() == Op::all_gather)
    stages.push_back(all_pairs(job, "gather", job.share()));
  return stages;
}

}  // namespace

constinit const Algorithm algo::direct{
    "direct", {Op::all_reduce, Op::all_gather, Op::reduce_scatter, Op::send_recv}, direct_stages};

}  // namespace weft::workload
