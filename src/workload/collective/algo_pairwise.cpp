// All-to-all by pairwise exchange: rounds of one send and one receive, `window` rounds at a time.
#include <algorithm>
#include <vector>

#include "workload/collective/algorithm.hpp"

namespace weft::workload {
namespace {

std::uint32_t window_of(const Job& job) { return std::min(job.request.window, job.size() - 1); }

Result<std::vector<Stage>> pairwise_stages(const Job& job) {
  Stage stage{.name = "pairwise"};
  stage.exchanges.push_back({.ranks = job.request.ranks,
                             .bytes_per_pair = job.request.matrix.empty() ? job.share() : 0,
                             .matrix = job.request.matrix,
                             .window = window_of(job)});
  // A window of messages costs latency once.
  const std::uint32_t turns = (job.size() - 2) / window_of(job) + 1;
  (job.layout.host_count() > 1 ? stage.latency_steps : stage.inner_steps) = turns;
  return std::vector{std::move(stage)};
}

// Round d waits, on both sides, for rounds up to d - window. Those up to d - 2 window were waited
// for by round d - window. Pairs of 0 bytes keep their message: the ranks meet all the same.
void pairwise_messages(const Job& job, MessageWriter& out) {
  const std::uint32_t n = job.size(), window = window_of(job);
  const auto& matrix = job.request.matrix;
  out.set_blocks(n * n);
  const auto index = [&](Rank from, std::uint32_t d) { return (d - 1) * n + from; };
  std::vector<MessageIndex> after;
  for (std::uint32_t d = 1; d < n; ++d)
    for (Rank from = 0; from < n; ++from) {
      const Rank to = (from + d) % n;
      after.clear();
      const std::uint32_t last = d > window ? d - window : 0;
      for (std::uint32_t r = last > window ? last - window + 1 : 1; r <= last; ++r)
        for (const Rank rank : {from, to}) {
          after.push_back(index(rank, r));
          after.push_back(index((rank + n - r) % n, r));
        }
      const std::uint32_t block = from * n + to;
      out.add({from, to, matrix.empty() ? job.share() : matrix[block], Message::Action::copy},
              std::span(&block, 1), after);
    }
}

}  // namespace

constinit const Algorithm algo::pairwise{
    "pairwise", {Op::all_to_all}, pairwise_stages, pairwise_messages};

}  // namespace weft::workload
