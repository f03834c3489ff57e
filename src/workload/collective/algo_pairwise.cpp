// All-to-all by pairwise exchange: rounds of one send and one receive, `window` rounds at a time.
// What stays inside hosts goes beside what crosses the network, as NCCL's schedule of peers has it.
#include <algorithm>
#include <vector>

#include "workload/collective/algorithm.hpp"

namespace weft::workload {
namespace {

// The ranks, host by host.
std::vector<Rank> order_of(const Job& job) {
  std::vector<Rank> order;
  for (std::uint32_t h = 0; h < job.layout.host_count(); ++h)
    order.insert(order.end(), job.layout.members(h).begin(), job.layout.members(h).end());
  return order;
}

// Between hosts and inside them; one for all where hosts hold different numbers of ranks.
std::vector<Exchange> exchanges_of(const Job& job) {
  const std::uint32_t n = job.size();
  const bool even = job.layout.even();
  const std::uint32_t local = even ? job.layout.members_max() : 1;
  Exchange all{.ranks = {},
               .bytes_per_pair = job.request.matrix.empty() ? job.share() : 0,
               .matrix = {},
               .window = job.request.window,
               .host_size = local,
               .end_round = n};
  const std::vector<Rank> order = order_of(job);
  for (const Rank r : order) all.ranks.push_back(job.node(r));
  if (!job.request.matrix.empty())
    for (const Rank from : order)
      for (const Rank to : order)
        all.matrix.push_back(job.request.matrix[std::size_t{from} * n + to]);
  // In a mesh each peer has a cable of its own: one after the other would leave the rest idle.
  const std::uint32_t inside_window =
      job.layout.is_mesh(0) ? std::max(all.window, local - 1) : all.window;
  if (local == n && n > 1) all.window = inside_window;
  if (local == 1 || local == n) return {std::move(all)};
  Exchange inside = all;
  inside.window = inside_window;
  all.first_round = inside.end_round = local;
  return {std::move(all), std::move(inside)};
}

// A window of messages costs latency once.
std::uint32_t turns_of(const Exchange& exchange) {
  const std::uint32_t window = std::min(exchange.window, exchange.round_count());
  return (exchange.round_count() - 1) / window + 1;
}

Result<std::vector<Stage>> pairwise_stages(const Job& job) {
  Stage stage{.name = "pairwise"};
  stage.exchanges = exchanges_of(job);
  const std::uint32_t turns = turns_of(stage.exchanges.front());
  (job.layout.host_count() > 1 ? stage.latency_steps : stage.inner_steps) = turns;
  return std::vector{std::move(stage)};
}

}  // namespace

constinit const Algorithm algo::pairwise{"pairwise", {Op::all_to_all}, pairwise_stages};

}  // namespace weft::workload
