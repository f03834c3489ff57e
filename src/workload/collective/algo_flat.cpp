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

// In an all-reduce everybody gets the others' input and sums for itself; no sum is sent on.
void expand_all_reduce(const Job& job, MessageWriter& out) {
  const std::uint32_t n = job.size();
  out.set_blocks(1);
  const std::uint32_t whole = 0;
  for (std::uint32_t d = 1; d < n; ++d)
    for (Rank from = 0; from < n; ++from)
      out.send({from, (from + d) % n, job.bytes(), Message::Action::reduce_input},
               std::span(&whole, 1));
  out.end_step();
}

void flat_messages(const Job& job, MessageWriter& out) {
  if (job.op() == Op::all_reduce) return expand_all_reduce(job, out);
  if (job.op() == Op::all_gather) {
    out.set_blocks(job.size());
    return expand_all_pairs(job, Whose::sender, Message::Action::copy, out);
  }
  out.set_blocks(1);
  const std::uint32_t whole = 0;
  for (Rank r = 1; r < job.size(); ++r)
    out.add({0, r, job.bytes(), Message::Action::copy}, std::span(&whole, 1), {});
}

}  // namespace

constinit const Algorithm algo::flat{
    "flat", {Op::all_reduce, Op::all_gather, Op::broadcast}, flat_stages, flat_messages};

}  // namespace weft::workload
