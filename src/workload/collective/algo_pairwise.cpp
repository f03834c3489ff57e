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
  if (local == 1 || local == n) return {std::move(all)};
  Exchange inside = all;
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

// Round d waits, on both sides, for rounds up to d - window. Those up to d - 2 window were waited
// for by round d - window. Pairs of 0 bytes keep their message: the ranks meet all the same.
void pairwise_messages(const Job& job, MessageWriter& out) {
  const std::uint32_t n = job.size();
  const std::vector<Rank> order = order_of(job);
  out.set_blocks(n * n);
  std::vector<MessageIndex> after;
  MessageIndex base = 0;  // of the exchange's first message
  for (const Exchange& exchange : exchanges_of(job)) {
    const std::uint32_t first = exchange.first_round;
    const std::uint32_t window = std::min(exchange.window, exchange.round_count());
    const auto index = [&](std::uint32_t from, std::uint32_t d) {
      return base + (d - first) * n + from;
    };
    for (std::uint32_t d = first; d < exchange.end_round; ++d)
      for (std::uint32_t from = 0; from < n; ++from) {
        const std::uint32_t to = exchange.receiver(from, d);
        after.clear();
        const std::uint32_t end = std::max(d + 1, first + window) - window;
        for (std::uint32_t r = std::max(first + window, end) - window; r < end; ++r)
          for (const std::uint32_t rank : {from, to}) {
            after.push_back(index(rank, r));
            after.push_back(index(exchange.sender(rank, r), r));
          }
        const std::uint32_t block = order[from] * n + order[to];
        out.add({order[from], order[to], exchange.bytes(from, to), Message::Action::copy},
                std::span(&block, 1), after);
      }
    base += exchange.round_count() * n;
  }
}

}  // namespace

constinit const Algorithm algo::pairwise{
    "pairwise", {Op::all_to_all}, pairwise_stages, pairwise_messages};

}  // namespace weft::workload
