#include "workload/schedule/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/check.hpp"

namespace weft::workload {
namespace {

using Pass = Unit::Pass;

Status check(const PipelineShape& shape, std::uint32_t stage) {
  if (shape.stages == 0 || shape.virtual_stages == 0 || shape.microbatches == 0)
    return fail(Errc::value, {}, "a pipeline without stages, chunks or micro-batches");
  if (stage >= shape.stages)
    return fail(Errc::value, {}, fmt::format("stage {} of a pipeline of {}", stage, shape.stages));
  // Units in double: the product of three 32-bit sizes may not fit 64 bits.
  const double units = 2.0 * shape.stages * shape.virtual_stages * shape.microbatches;
  if (units > static_cast<double>(pipeline_units_max))
    return fail(Errc::infeasible, {},
                fmt::format("{} stages x {} chunks x {} micro-batches x 2 passes make {:.0f} units "
                            "per step, more than {}",
                            shape.stages, shape.virtual_stages, shape.microbatches, units,
                            pipeline_units_max),
                "use fewer, larger micro-batches");
  return {};
}

std::vector<std::uint32_t> group_sizes(const PipelineShape& shape) {
  const std::uint32_t groups = std::max(1u, shape.microbatches / shape.stages);
  std::vector<std::uint32_t> sizes(groups, shape.microbatches / groups);
  for (std::uint32_t g = 0; g < shape.microbatches % groups; ++g) ++sizes[g];
  return sizes;
}

// The chunks' turns in one pass. Backward goes through the chunks from the last to the first.
std::vector<Unit> pass_order(const PipelineShape& shape, Pass pass) {
  std::vector<Unit> order;
  order.reserve(std::size_t{shape.virtual_stages} * shape.microbatches);
  std::uint32_t first = 0;
  for (const std::uint32_t size : group_sizes(shape)) {
    for (std::uint32_t v = 0; v < shape.virtual_stages; ++v)
      for (std::uint32_t m = first; m < first + size; ++m)
        order.push_back({pass, pass == Pass::forward ? v : shape.virtual_stages - 1 - v, m});
    first += size;
  }
  return order;
}

// Forwards before the first backward. A stage runs ahead by what is under way between it and the
// end of the pipeline and back; chunks that take turns add the turns before the last chunk's.
std::size_t warm_up(const PipelineShape& shape, std::uint32_t stage) {
  const std::size_t behind = shape.stages - 1 - stage;
  if (shape.virtual_stages == 1) return behind;
  // A single group that is not longer than the pipeline: all forwards come first.
  if (shape.microbatches <= shape.stages)
    return std::size_t{shape.virtual_stages} * shape.microbatches;
  return 2 * behind + (shape.virtual_stages - 1) * std::size_t{group_sizes(shape).front()};
}

// Without a pipeline nothing is gained by starting a micro-batch before the last one is done.
std::vector<Unit> one_by_one(std::span<const Unit> forward, std::span<const Unit> backward,
                             std::size_t chunks) {
  std::vector<Unit> order;
  order.reserve(2 * forward.size());
  for (std::size_t first = 0; first < forward.size(); first += chunks)
    for (const auto pass : {forward, backward})
      for (const Unit& unit : pass.subspan(first, chunks)) order.push_back(unit);
  return order;
}

}  // namespace

Result<std::vector<Unit>> pipeline_order(const PipelineShape& shape, std::uint32_t stage) {
  WEFT_TRY_STATUS(check(shape, stage));
  const std::vector<Unit> forward = pass_order(shape, Pass::forward);
  const std::vector<Unit> backward = pass_order(shape, Pass::backward);
  if (shape.stages == 1) return one_by_one(forward, backward, shape.virtual_stages);
  const std::size_t ahead = std::min(warm_up(shape, stage), forward.size());
  std::vector<Unit> order(forward.begin(), forward.begin() + static_cast<long>(ahead));
  order.reserve(2 * forward.size());
  for (std::size_t k = 0; k < backward.size(); ++k) {
    if (ahead + k < forward.size()) order.push_back(forward[ahead + k]);
    order.push_back(backward[k]);
  }
  WEFT_CHECK(order.size() == forward.size() + backward.size());
  return order;
}

double pipeline_bubble(const PipelineShape& shape) {
  const double stages = shape.stages, chunks = shape.virtual_stages, count = shape.microbatches;
  const double missing = std::max(0.0, stages - count);
  return (stages - 1 + (chunks - 1) * missing) / (chunks * count);
}

}  // namespace weft::workload
