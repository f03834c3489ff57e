// Flat, also called one-shot: everybody sends all it has to everybody who wants it, in one step. An
// all-reduce moves n - 1 times the data, which only pays where latency is all.
#include "workload/collective/exchange.hpp"

namespace weft::workload {
namespace {

Stage from_root(const Job& job) {
  Stage stage{.name = "flat"};
  for (Rank r = 1; r < job.size(); ++r)
    stage.flows.push_back({job.node(0), job.node(r), job.bytes()});
  set_flow_latency(job, stage);
  return stage;
}

Result<std::vector<Stage>> flat_stages(const Job& job) {
  if (job.op() == Op::broadcast) return std::vector{from_root(job)};
  const double bytes = job.op() == Op::all_reduce ? job.bytes() : job.share();
  return std::vector{all_pairs(job, "flat", bytes)};
}

}  // namespace

constinit const Algorithm algo::flat{
    "flat", {Op::all_reduce, Op::all_gather, Op::broadcast}, flat_stages};

}  // namespace weft::workload
