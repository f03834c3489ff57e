#include "workload/collective/rounds.hpp"

#include <fmt/format.h>

namespace weft::workload {
namespace {

// A transfer of the gather, or its reverse in time and direction for a reduce-scatter: the tree
// that spreads a part from its owner becomes the one that sums it at its owner.
struct Transfer {
  Rank from, to;
};

std::uint32_t round_at(const Job& job, std::uint32_t step) {
  return job.op() == Op::all_gather ? step : rounds_over(job.size()) - 1 - step;
}

Transfer transfer(const Job& job, const GatherScheme& scheme, std::uint32_t round, Rank sender) {
  const Rank receiver = scheme.receiver(job.size(), round, sender);
  return job.op() == Op::all_gather ? Transfer{sender, receiver} : Transfer{receiver, sender};
}

}  // namespace

std::vector<Stage> build_rounds(const Job& job, const GatherScheme& scheme) {
  std::vector<Stage> stages;
  const std::uint32_t count = rounds_over(job.size());
  for (std::uint32_t step = 0; step < count; ++step) {
    const std::uint32_t round = round_at(job, step);
    const double bytes = job.share() * scheme.part_count(job.size(), round);
    Stage& stage =
        stages.emplace_back(Stage{.name = fmt::format("{} {}/{}", scheme.name, step + 1, count)});
    stage.flows.reserve(job.size());
    for (Rank r = 0; r < job.size(); ++r) {
      const auto [from, to] = transfer(job, scheme, round, r);
      stage.flows.push_back({job.node(from), job.node(to), bytes});
    }
    set_flow_latency(job, stage);
  }
  return stages;
}

}  // namespace weft::workload
