// read_model, read_plan and what follows from them: no input crashes or hangs, and what is accepted
// has finite costs, at the size of its plan.
#include <cmath>

#include "fuzz.hpp"
#include "workload/parallel/estimate.hpp"
#include "workload/parallel/step_cost.hpp"

namespace {

using weft::Config;

bool amount(double number) { return std::isfinite(number) && number >= 0; }

void check_comms(const std::vector<weft::model::CommWork>& comms) {
  for (const weft::model::CommWork& work : comms)
    WEFT_CHECK(amount(work.bytes) && work.overlap >= 0 && work.overlap <= 1);
}

void check_cost(const weft::model::StepCost& cost) {
  WEFT_CHECK(cost.chunks.size() == std::size_t{cost.pp} * cost.virtual_stages);
  WEFT_CHECK(cost.optimizer_s.size() == cost.pp);
  for (const weft::model::ChunkCost& chunk : cost.chunks) {
    for (const auto* unit : {&chunk.forward, &chunk.backward}) {
      WEFT_CHECK(amount(unit->compute_s));
      check_comms(unit->comms);
    }
    check_comms(chunk.gather);
    check_comms(chunk.reduce);
  }
  // The closed form walks through all ranks of a group.
  if (std::uint64_t{cost.tp} * cost.cp * cost.dp > 4096 || cost.chunks.size() > 256) return;
  const weft::workload::StepEstimate estimate = weft::workload::estimate_step(cost, {});
  WEFT_CHECK(amount(estimate.step_s) && estimate.step_s >= estimate.compute_s);
}

}  // namespace

// A job: the keys of the plan beside `model`.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto config = weft::parse_yaml(weft::fuzz::text_of(data, size), "fuzz.yaml");
  if (!config || config->find("model") == nullptr) return 0;
  weft::Errors errors;
  weft::Reader job(*config, "job", errors);
  const auto model = weft::workload::read_model(*job.child("model"));
  if (!model) {
    WEFT_CHECK(!model.error().what.empty());
    return 0;
  }
  for (const char* name : {"h100", "gb300"}) {
    const auto gpu = weft::workload::gpu_by_name({name, {}});
    const auto plan = weft::workload::read_plan(job, *model, *gpu);
    WEFT_CHECK(plan.has_value() || !errors.empty());
    if (!plan) continue;
    const auto cost = weft::workload::step_cost(*model, *plan, *gpu);
    WEFT_CHECK(cost.has_value());
    check_cost(*cost);
  }
  return 0;
}
