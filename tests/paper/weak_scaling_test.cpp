// Weak scaling on HPN 7.0: 96 % of linear, said in a talk on the network of Qian et al., SIGCOMM
// 2024, without model, plan, batch or the sizes compared. Ours: GPT-3 175B in the plan of the
// paper's traffic table (TP 8, PP 8), one replica against 16, which fill a segment of 1,024 GPUs.
// Tolerance: the published value lies between ours with 32 and with 128 sequences a replica, and
// within 2 points of ours with 64. docs/weak-scaling.md has the other sizes and fabrics.
#include <fmt/format.h>

#include <map>

#include "base/test_approx.hpp"
#include "kit.hpp"

namespace weft::paper {
namespace {

// Step time in seconds by number of replicas, each of `batch` sequences.
std::map<int, double> step_times(std::initializer_list<int> replicas, int batch,
                                 std::string_view more, std::string_view job = "") {
  std::string yaml = fmt::format(
      "fabric: {{generator: hpn, segments: 1}}\n{}\njobs: [{{name: gpt3, model: gpt3-175b, "
      "parallel: "
      "{{tp: 8, pp: 8, vp: 2, dp: 1}}, batch: {}, place: rack_order{}}}]\ncompare:\n",
      more, batch, job);
  for (const int n : replicas)
    yaml += fmt::format("  {0}: {{jobs.0.parallel.dp: {0}, jobs.0.batch: {1}}}\n", n, n * batch);
  std::map<int, double> out;
  const model::Outcome outcome = run(yaml);
  for (const model::VariantOutcome& variant : outcome.variants)
    out[std::stoi(variant.name)] = variant.jobs.at(0).training.value().step_time_s;
  return out;
}

TEST_CASE("HPN's 96 % is between what 32 and 128 sequences a replica give") {
  std::map<int, double> efficiency;
  for (const int batch : {32, 64, 128}) {
    const auto times = step_times({1, 16}, batch, "routing: {scheme: e_ecmp, qps: 16}");
    efficiency[batch] = times.at(1) / times.at(16);
    MESSAGE(fmt::format("{} sequences: {:.3f}", batch, efficiency[batch]));
  }
  CHECK(efficiency[32] < 0.96);
  CHECK(efficiency[128] > 0.96);
  CHECK(std::abs(efficiency[64] - 0.96) < 0.02);
}

// Without overlap and contention, a replica more costs what its bytes cost: 4 of gradients and 2 of
// parameters for each of the 174.6e9 / 64 of a GPU, (N - 1) / N of them over 50 GB/s. That leaves
// out the embeddings on both ends (2 % of a stage), latencies, and that each rank updates fewer
// parameters (-12 %); tolerance 8 %.
TEST_CASE("the step grows by the bytes of gradients and parameters") {
  const auto times = step_times({1, 2, 4, 16}, 64, "engine: {name: fluid, contention: false}",
                                ", overlap: {dp_gather: false, dp_reduce: false}");
  for (const int n : {2, 4, 16}) {
    const double bytes = 174.6e9 / 64 * 6 * (n - 1) / n;
    CHECK(times.at(n) - times.at(1) == approx(bytes / 50e9).epsilon(0.08));
  }
}

}  // namespace
}  // namespace weft::paper
