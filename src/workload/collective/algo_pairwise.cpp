// All-to-all by pairwise exchange: every rank works through its peers, `window` at a time.
#include <algorithm>

#include "workload/collective/algorithm.hpp"

namespace weft::workload {
namespace {

std::uint32_t window_of(const Job& job) { return std::min(job.request.window, job.size() - 1); }

Result<std::vector<Stage>> build(const Job& job) {
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

void expand(const Job& job, MessageWriter& out) {
  const std::uint32_t n = job.size();
  const auto& matrix = job.request.matrix;
  out.set_blocks(n * n);
  out.set_window(window_of(job));
  for (std::uint32_t d = 1; d < n; ++d)
    for (Rank from = 0; from < n; ++from) {
      const Rank to = (from + d) % n;
      const std::uint32_t block = from * n + to;
      const double bytes = matrix.empty() ? job.share() : matrix[block];
      if (bytes > 0 || matrix.empty())
        out.add({from, to, bytes, Message::Action::copy}, std::span(&block, 1), {});
    }
}

}  // namespace

constinit const Algorithm algo::pairwise{"pairwise", {Op::all_to_all}, build, expand};

}  // namespace weft::workload
