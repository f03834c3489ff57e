// All-reduce by recursive halving, then recursive doubling (Rabenseifner). Halving goes to the
// nearest rank first, with the largest message; doubling comes back the same way. Where the ranks
// are no power of two, the first ones pair up: the even one hands all its data to the odd one, sits
// out, and gets the result at the end.
#include <fmt/format.h>

#include <bit>

#include "workload/collective/algorithm.hpp"

namespace weft::workload {
namespace {

struct Shape {
  std::uint32_t active;  // the power of two that works
  std::uint32_t folded;  // pairs that count as one
  std::uint32_t rounds;  // log2(active)

  // The rank that works as number v.
  Rank rank(std::uint32_t v) const { return v < folded ? 2 * v + 1 : v + folded; }
};

Shape halving_shape(std::uint32_t n) {
  const std::uint32_t active = std::bit_floor(n);
  return {active, n - active, static_cast<std::uint32_t>(std::bit_width(active)) - 1};
}

enum class Fold : std::uint8_t { in, out };

Stage fold_stage(const Job& job, const Shape& shape, Fold fold) {
  Stage stage{.name = fold == Fold::in ? "fold in" : "fold out"};
  for (std::uint32_t v = 0; v < shape.folded; ++v) {
    const NodeId even = job.node(2 * v), odd = job.node(2 * v + 1);
    stage.flows.push_back(fold == Fold::in ? Edge{even, odd, job.bytes()}
                                           : Edge{odd, even, job.bytes()});
  }
  set_flow_latency(job, stage);
  return stage;
}

// Everybody exchanges `bytes` with the rank 2^bit away.
Stage exchange_stage(const Job& job, const Shape& shape, std::uint32_t bit, std::string name) {
  Stage stage{.name = std::move(name)};
  const double bytes = job.bytes() / static_cast<double>(2u << bit);
  for (std::uint32_t v = 0; v < shape.active; ++v)
    stage.flows.push_back({job.node(shape.rank(v)), job.node(shape.rank(v ^ 1u << bit)), bytes});
  set_flow_latency(job, stage);
  return stage;
}

Result<std::vector<Stage>> halving_doubling_stages(const Job& job) {
  const Shape shape = halving_shape(job.size());
  std::vector<Stage> stages;
  if (shape.folded > 0) stages.push_back(fold_stage(job, shape, Fold::in));
  for (std::uint32_t i = 0; i < shape.rounds; ++i)
    stages.push_back(
        exchange_stage(job, shape, i, fmt::format("halving {}/{}", i + 1, shape.rounds)));
  for (std::uint32_t i = shape.rounds; i-- > 0;)
    stages.push_back(exchange_stage(job, shape, i,
                                    fmt::format("doubling {}/{}", shape.rounds - i, shape.rounds)));
  if (shape.folded > 0) stages.push_back(fold_stage(job, shape, Fold::out));
  return stages;
}

}  // namespace

constinit const Algorithm algo::halving_doubling{
    "halving_doubling", {Op::all_reduce}, halving_doubling_stages};

}  // namespace weft::workload
