#include "plan/init/split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace weft::plan::init {
namespace {

using workload::TrainingPlan;
using workload::TransformerSpec;

constexpr std::uint32_t microbatches_a_stage = 4;
constexpr std::uint64_t samples_a_gpu = 512;  // of a recommendation model

struct Shape {
  std::uint32_t tp, pp;
  std::uint64_t ranks() const { return std::uint64_t{tp} * pp; }
};

// Powers of two, smallest replica first, fewest stages among equals.
std::vector<Shape> shapes(const TransformerSpec& model, std::uint64_t gpus, std::uint64_t domain) {
  std::vector<Shape> out;
  for (std::uint32_t tp = 1; tp <= domain && model.heads % tp == 0; tp *= 2)
    for (std::uint32_t pp = 1; pp <= model.layers; pp *= 2)
      if (gpus % (std::uint64_t{tp} * pp) == 0) out.push_back({tp, pp});
  std::ranges::stable_sort(out, [](const Shape& a, const Shape& b) {
    return a.ranks() != b.ranks() ? a.ranks() < b.ranks() : a.pp < b.pp;
  });
  return out;
}

// Largest first: experts far apart leave most memory.
std::vector<std::uint32_t> expert_groups(const TransformerSpec& model, std::uint64_t ranks) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t ep = model.experts; ep > 1; --ep)
    if (model.experts % ep == 0 && ranks % ep == 0) out.push_back(ep);
  out.push_back(1);
  return out;
}

}  // namespace

Result<TrainingPlan> split_model(const workload::ModelSpec& model, const workload::GpuSpec& gpu,
                                 std::uint64_t gpus, std::uint64_t domain) {
  const auto* transformer = std::get_if<TransformerSpec>(&model);
  std::vector<Shape> all{{1, 1}};
  if (transformer != nullptr) all = shapes(*transformer, gpus, domain);
  std::optional<Error> last;
  for (const Shape& shape : all) {
    TrainingPlan plan;
    if (transformer != nullptr && transformer->experts > 0) workload::mixture_defaults(plan);
    plan.tp = shape.tp;
    plan.pp = shape.pp;
    plan.dp = static_cast<std::uint32_t>(gpus / shape.ranks());
    plan.sequence = transformer != nullptr ? transformer->sequence : 1;
    plan.batch = transformer != nullptr ? std::uint64_t{plan.dp} * microbatches_a_stage * plan.pp
                                        : gpus * samples_a_gpu;
    if (transformer == nullptr) plan.micro_batch = static_cast<std::uint32_t>(samples_a_gpu);
    std::vector<std::uint32_t> groups{1};
    if (transformer != nullptr)
      groups = expert_groups(*transformer, std::uint64_t{plan.tp} * plan.dp);
    for (const std::uint32_t ep : groups) {
      plan.ep = ep;
      const Errors errors = workload::check_plan(model, plan, gpu);
      if (errors.empty()) return plan;
      last = errors.front();
    }
  }
  return fail(Errc::infeasible, {},
              fmt::format("{} does not fit on {} GPUs ({}): {}", name_of(model), gpus, gpu.name,
                          last ? last->what : "they do not divide into equal replicas"),
              "take more GPUs (a power of two divides best), GPUs with more memory, or a smaller "
              "model");
}

}  // namespace weft::plan::init
