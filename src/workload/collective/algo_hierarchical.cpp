// Hierarchical: reduce-scatter inside every host, a ring per rail between hosts on the parts,
// all-gather inside every host. The network carries 1/L of the data per GPU, L being the GPUs of a
// host, and every ring between hosts stays on the NICs of one rail.
#include <fmt/format.h>

#include "workload/collective/algorithm.hpp"

namespace weft::workload {
namespace {

// Ranks by (host, place in the host): ranks[host * places + place].
struct Grid {
  std::uint32_t hosts, places;
  std::vector<Rank> ranks;

  explicit Grid(const Layout& layout) : hosts(layout.host_count()), places(layout.members_max()) {
    for (std::uint32_t h = 0; h < hosts; ++h)
      for (const Rank r : layout.members(h)) ranks.push_back(r);
  }
  Rank at(std::uint32_t host, std::uint32_t place) const { return ranks[host * places + place]; }
};

enum class Along : std::uint8_t { host, rail };

std::uint32_t length(const Grid& grid, Along along) {
  return along == Along::host ? grid.places : grid.hosts;
}
std::uint32_t ring_count(const Grid& grid, Along along) {
  return along == Along::host ? grid.hosts : grid.places;
}
Rank member(const Grid& grid, Along along, std::uint32_t ring, std::uint32_t i) {
  return along == Along::host ? grid.at(ring, i) : grid.at(i, ring);
}
// A phase: turns `first` to `last` - 1 of rings along hosts or rails. As in a plain ring, the first
// `length - 1` turns reduce and the others copy.
struct Phase {
  std::string_view name;
  Along along;
  std::uint32_t first, last;
};

std::vector<Phase> phases_of(const Grid& grid, Op op) {
  const std::uint32_t inner = grid.places - 1, outer = grid.hosts - 1;
  const std::uint32_t rail_first = op == Op::all_gather ? outer : 0;
  const std::uint32_t rail_last = op == Op::reduce_scatter ? outer : 2 * outer;
  std::vector<Phase> phases;
  if (op != Op::all_gather && inner > 0) phases.push_back({"scatter", Along::host, 0, inner});
  if (outer > 0) phases.push_back({"rails", Along::rail, rail_first, rail_last});
  if (op != Op::reduce_scatter && inner > 0)
    phases.push_back({"gather", Along::host, inner, 2 * inner});
  return phases;
}

Stage stage_of(const Job& job, const Grid& grid, const Phase& phase) {
  const std::uint32_t steps = phase.last - phase.first, n = length(grid, phase.along);
  const double step_bytes = job.share() * (phase.along == Along::host ? grid.hosts : 1);
  Stage stage{.name = fmt::format("hierarchical {}", phase.name)};
  for (std::uint32_t ring = 0; ring < ring_count(grid, phase.along); ++ring) {
    Chain& chain = stage.chains.emplace_back(Chain{.edges = {}, .steps = steps});
    chain.edges.reserve(n);
    for (std::uint32_t i = 0; i < n; ++i)
      chain.edges.push_back({job.node(member(grid, phase.along, ring, i)),
                             job.node(member(grid, phase.along, ring, (i + 1) % n)),
                             step_bytes * steps});
  }
  (phase.along == Along::rail ? stage.latency_steps : stage.inner_steps) = steps;
  return stage;
}

Result<std::vector<Stage>> hierarchical_stages(const Job& job) {
  if (!job.layout.even())
    return cannot(
        "hierarchical",
        fmt::format("{} ranks on {} hosts, up to {} on one host: the rails have unequal lengths",
                    job.size(), job.layout.host_count(), job.layout.members_max()),
        "put the same number of ranks on every host, or use ring");
  const Grid grid(job.layout);
  std::vector<Stage> stages;
  for (const Phase& phase : phases_of(grid, job.op())) stages.push_back(stage_of(job, grid, phase));
  return stages;
}

}  // namespace

constinit const Algorithm algo::hierarchical{
    "hierarchical", {Op::all_reduce, Op::all_gather, Op::reduce_scatter}, hierarchical_stages};

}  // namespace weft::workload
