#include "workload/parallel/plan.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/test_approx.hpp"
#include "workload/parallel/memory.hpp"
#include "workload/parallel/stages.hpp"

namespace weft::workload {
namespace {

ModelSpec model(std::string_view name) { return model_by_name({name, {}}).value(); }
GpuSpec gpu(std::string_view name) { return gpu_by_name({name, {}}).value(); }

struct Read {
  std::optional<TrainingPlan> plan;
  std::string errors;
};

Read read(std::string_view yaml, std::string_view name,
          std::optional<std::uint64_t> gpus = std::nullopt, std::string_view gpu_name = "h100") {
  const auto config = parse_yaml(yaml, "s.yaml");
  REQUIRE_MESSAGE(config.has_value(), yaml);
  Errors errors;
  Reader job(*config, "job", errors);
  Read out;
  out.plan = read_plan(job, model(name), gpu(gpu_name), gpus);
  job.finish();
  CHECK(out.plan.has_value() == errors.empty());
  if (!errors.empty()) out.errors = combine(std::move(errors)).text();
  return out;
}

bool has(const Read& read, std::string_view text) {
  INFO(read.errors);
  return read.errors.find(text) != std::string::npos;
}

TEST_CASE("the plan of the design") {
  const Read out = read("{parallel: {tp: 8, pp: 16, dp: 16}, batch_tokens: 16 Mi}", "llama3-405b");
  REQUIRE_MESSAGE(out.plan.has_value(), out.errors);
  CHECK(out.plan->gpus() == 2048);
  CHECK(out.plan->sequence == 8192);
  CHECK(out.plan->batch == 2048);
  CHECK(out.plan->microbatches() == 128);
  CHECK(out.plan->vp == 1);
  CHECK(out.plan->tokens() == 16 * 1024 * 1024);
  CHECK(out.plan->text() == "TP 8, PP 16, DP 16");
}

TEST_CASE("all keys") {
  const Read out = read(
      "{parallel: {tp: 2, cp: 2, pp: 4, vp: 3, ep: 8, order: tp-pp-cp-dp}, batch: 192, "
      "sequence: 2048, micro_batch: 2, precision: fp8, zero: 2, recompute: full, "
      "overlap: {tp: 0.25, cp: 0.5, ep: 1, dp_gather: false, dp_reduce: true}}",
      "qwen3-235b-a22b", 128);
  REQUIRE_MESSAGE(out.plan.has_value(), out.errors);
  const TrainingPlan& plan = *out.plan;
  CHECK(plan.dp == 8);  // 128 / (2 x 2 x 4)
  CHECK(plan.microbatches() == 12);
  CHECK(plan.tokens_per_rank() == 2048);
  CHECK(plan.precision == Precision::fp8);
  CHECK(plan.zero == ZeroStage::gradients);
  CHECK(plan.recompute == Recompute::full);
  CHECK(plan.overlap.tp == 0.25);
  CHECK(plan.overlap.dp_gather == Overlap::Timing::serial);
  CHECK(plan.overlap.dp_reduce == Overlap::Timing::overlapped);
  CHECK(plan.order[1] == model::Axis::pp);
}

TEST_CASE("keys of mixtures of experts") {
  const Read out = read(
      "{parallel: {tp: 2, pp: 8, vp: 4, ep: 64}, batch: 8192, dispatcher: deepep, software: 2024, "
      "cuda_graphs: true, overlap: {ep: on}, recompute: [mla_up_proj, mlp, norm], "
      "layout: 'Et|(tt|)*30mL', precision: fp8}",
      "deepseek-v3", 1024);
  REQUIRE_MESSAGE(out.plan.has_value(), out.errors);
  const TrainingPlan& plan = *out.plan;
  CHECK(plan.dispatcher == Dispatcher::deepep);
  CHECK(plan.software == Software::of_2024);
  CHECK(plan.cuda_graphs == CudaGraphs::on);
  CHECK(plan.overlap.ep == Overlap::exchange_on);
  CHECK(plan.recompute.has(Recompute::mla_up_proj));
  CHECK(plan.recompute.has(Recompute::layernorm));
  CHECK(!plan.recompute.has(Recompute::activation));
  REQUIRE(plan.layout.size() == 32);
  CHECK(plan.layout[31].prediction == 1);
}

TEST_CASE("defaults of mixtures are Megatron's, of dense models Llama 3's") {
  const Read mixture = read("{parallel: {pp: 2, dp: 8, ep: 8}, batch: 64}", "qwen3-30b-a3b");
  REQUIRE_MESSAGE(mixture.plan.has_value(), mixture.errors);
  CHECK(mixture.plan->order[2] == model::Axis::dp);
  CHECK(mixture.plan->software == Software::of_2025);
  CHECK(mixture.plan->dispatcher == Dispatcher::alltoall);
  CHECK(mixture.plan->overlap.ep == 0);
  const Read dense = read("{parallel: {pp: 2, tp: 8}, batch: 64}", "llama3-8b");
  REQUIRE_MESSAGE(dense.plan.has_value(), dense.errors);
  CHECK(dense.plan->order[2] == model::Axis::pp);
  CHECK(dense.plan->software == Software::of_2024);
}

TEST_CASE("wrong keys of mixtures say what would be right") {
  const auto refused = [](std::string_view keys, std::string_view says) {
    const Read out =
        read(fmt::format("{{parallel: {{dp: 8, ep: 8}}, batch: 64, {}}}", keys), "qwen3-30b-a3b");
    CHECK(!out.plan.has_value());
    CHECK(has(out, says));
    CHECK(has(out, "s.yaml:1:"));
  };
  refused("dispatcher: deepp", "did you mean \"deepep\"");
  refused("software: 2023", "choose");
  refused("recompute: [layernom]", "did you mean \"layernorm\"");
  refused("recompute: [full, selective]", "unknown recompute \"selective\"");
  refused("overlap: {ep: 2}", "ep");
  refused("layout: 'Et|x'", "unknown letter \"x\"");
  refused("layout: 'E(t|L'", "without its");
  refused("layout: 'Et*0L'", "without a number");
  refused("layout: 'Et|tL', micro_batch: auto", "2 virtual stages for pp 1 x vp 1 = 1");
  refused("layout: 'Et*48'", "without E on the first and L on the last");
  refused("layout: 'Et*47L'", "a layout of 47 t and 0 m for 48 layers");
  CHECK(has(read("{parallel: {dp: 8}, batch: 64, dispatcher: deepep}", "llama3-8b"),
            "dispatcher has no effect on a model without experts"));
}

TEST_CASE("impossible plans say their arithmetic") {
  CHECK(has(read("{parallel: {tp: 8, pp: 16, dp: 16}, batch: 64}", "llama3-405b", 4096),
            "tp 8 x cp 1 x pp 16 x dp 16 = 2048 ranks, but the job has 4096 GPUs"));
  CHECK(has(read("{parallel: {tp: 8, pp: 3}, batch: 64}", "llama3-8b", 100),
            "100 GPUs / (tp 8 x cp 1 x pp 3 = 24) leaves a remainder of 4"));
  CHECK(has(read("{parallel: {tp: 8, dp: 3}, batch: 64}", "llama3-8b"),
            "a batch of 64 sequences / (dp 3 x micro_batch 1) = 21, remainder 1"));
  CHECK(has(read("{parallel: {tp: 8}, batch_tokens: 10000}", "llama3-8b"),
            "10000 tokens / sequences of 8192 leaves a remainder of 1808"));
  CHECK(has(read("{parallel: {tp: 3}, batch: 1}", "llama3-8b"),
            "32 heads / tp 3 leaves a remainder of 2"));
  CHECK(has(read("{parallel: {cp: 3, tp: 8}, batch: 1}", "llama3-8b"),
            "8192 tokens of a sequence / 2 cp = 6 leaves a remainder of 2"));
  CHECK(has(read("{parallel: {pp: 8, vp: 5, tp: 8}, batch: 8}", "llama3-8b"),
            "32 layers for pp 8 x vp 5 = 40 virtual stages"));
  CHECK(has(read("{parallel: {ep: 8, dp: 8}, batch: 8}", "llama3-8b"), "without experts"));
  CHECK(has(read("{parallel: {ep: 48, tp: 8, dp: 8}, batch: 8}", "qwen3-235b-a22b"),
            "128 experts / ep 48 leaves a remainder of 32"));
  CHECK(has(read("{parallel: {ep: 64, tp: 8, dp: 4}, batch: 8}", "qwen3-235b-a22b"),
            "= 32 ranks of a pipeline stage do not divide into groups of ep 64"));
  CHECK(has(read("{parallel: {tp: 8}, batch: 1, precision: fp8}", "llama3-8b", 8, "a100"),
            "a100 does not support fp8"));
  const Read memory = read("{parallel: {tp: 8}, batch: 1}", "llama3-405b");
  CHECK(has(memory, "a GPU of stage 0 needs"));
  CHECK(has(memory, "parameters 101.5 GB + gradients 202.9 GB + optimizer"));
  CHECK(has(memory, "h100 has 85.9 GB minus 4.0 GB for the runtime = 81.9 GB"));
}

TEST_CASE("all mistakes come at once, with places") {
  const Read out = read(
      "parallel: {tp: 0, pp: two, colour: 1, order: tp-tp}\nbatch: 4\nbatch_tokens: 4\nzero: 4\n"
      "precision: fp4\noverlap: {tp: 2, dp_gather: maybe}\n",
      "llama3-8b");
  for (const char* part : {"s.yaml:1:16: parallel.tp: 0 is not within", "parallel.pp", "\"colour\"",
                           "order", "batch and batch_tokens are mutually exclusive", "job.zero",
                           "job.precision", "overlap.tp", "overlap.dp_gather"})
    CHECK_MESSAGE(has(out, part), part);
  CHECK(has(read("{parallel: {tp: 8}}", "llama3-8b"), "\"batch\" is missing"));
  CHECK(has(read("{parallel: 8, batch: 1}", "llama3-8b"), "parallel"));
  CHECK(has(read("{parallel: {tp: 4194304, pp: 4194304, dp: 4194304}, batch: 1}", "llama3-8b"),
            "more than 2^32"));
  CHECK(has(read("{parallel: {tp: 2, dp: 8}, batch: 64}", "dlrm"), "recommendation model"));
}

TEST_CASE("interleaving takes any number of micro-batches") {
  for (const char* yaml : {"{parallel: {pp: 8, vp: 2, tp: 8, dp: 3}, batch: 36}",
                           "{parallel: {pp: 8, vp: 2, tp: 8, dp: 3}, batch: 15}"}) {
    const Read out = read(yaml, "llama3-70b");
    CHECK_MESSAGE(out.plan.has_value(), out.errors);
  }
}

TEST_CASE("a plan without dimensions is one GPU") {
  const Read out = read("{batch: 4, sequence: 512}", "megatron-1.7b");
  REQUIRE_MESSAGE(out.plan.has_value(), out.errors);
  CHECK(out.plan->gpus() == 1);
  CHECK(out.plan->text() == "DP 1");
}

TEST_CASE("micro_batch: auto takes the largest of 4, 2, 1 that fits and divides") {
  const auto size = [](std::string_view yaml, std::string_view name) {
    const Read out = read(yaml, name);
    REQUIRE_MESSAGE(out.plan.has_value(), out.errors);
    return out.plan->micro_batch;
  };
  CHECK(size("{parallel: {dp: 48}, batch: 192, micro_batch: auto}", "megatron-1.7b") == 4);
  CHECK(size("{parallel: {tp: 8, pp: 6, vp: 16, dp: 64}, batch: 1152, micro_batch: auto}",
             "megatron-177b") == 1);  // 18 sequences: 9 micro-batches of 2 are no multiple of 6
  CHECK(size("{parallel: {dp: 48}, batch: 96, micro_batch: auto}", "megatron-1.7b") == 2);
}

TEST_CASE("layers over virtual stages") {
  const auto spec = std::get<TransformerSpec>(model("llama3-405b"));
  // 126 = 128 - 2: the first chunk is the embedding alone, the last one the head.
  const auto chunks = split_layers(spec, 16, 8);
  REQUIRE(chunks.size() == 128);
  CHECK(chunks.front().count == 0);
  CHECK(chunks.front().has_embedding());
  CHECK(chunks.back().count == 0);
  CHECK(chunks.back().has_head());
  CHECK(chunks[8].count == 1);
  CHECK(chunks[8].first == 0);   // virtual stage 1: stage 1, chunk 0
  CHECK(chunks[1].first == 15);  // stage 0's second chunk follows stage 15's first
  CHECK(split_layers(spec, 16, 9).empty());
}

TEST_CASE("prediction layers and the head stand apart, and a layout says otherwise") {
  const auto spec = std::get<TransformerSpec>(model("deepseek-v3"));
  const auto sizes = [](const std::vector<ChunkLayers>& chunks) {
    std::vector<std::uint32_t> out;
    for (std::uint32_t part = 0; part < 32; ++part)
      out.push_back(chunks[std::size_t{part % 8} * 4 + part / 8].count);
    return out;
  };
  std::vector<std::uint32_t> expected(32, 2);  // "Et|(tt|)*30mL"
  expected.front() = 1;
  expected.back() = 0;
  const auto chunks = split_layers(spec, 8, 4);
  CHECK(sizes(chunks) == expected);
  CHECK(chunks.back().prediction == 1);
  CHECK(chunks.back().has_head());
  TrainingPlan plan{.pp = 8, .vp = 4, .layout = *parse_layout({"Et*2|(tt|)*29t|mL", {}})};
  expected.front() = 2;
  expected[30] = 1;
  CHECK(sizes(split_layers(spec, plan)) == expected);
}

TEST_CASE("every way to split holds every layer once, in order, within one of each other") {
  TransformerSpec spec;
  for (spec.layers = 1; spec.layers <= 24; ++spec.layers)
    for (std::uint32_t pp = 1; pp <= 8; ++pp)
      for (std::uint32_t vp = 1; vp <= 4; ++vp) {
        const auto chunks = split_layers(spec, pp, vp);
        CHECK(chunks.empty() == (pp * vp > spec.layers + 2));
        std::uint32_t next = 0;
        const std::uint32_t most = (spec.layers + pp * vp - 1) / (pp * vp);
        for (std::uint32_t part = 0; part < pp * vp && !chunks.empty(); ++part) {
          const ChunkLayers& chunk = chunks[std::size_t{part % pp} * vp + part / pp];
          CHECK(chunk.first == next);
          CHECK(chunk.count <= most);
          CHECK(chunk.count + 1 >= most);
          CHECK(chunk.has_embedding() == (part == 0));
          CHECK(chunk.has_head() == (part + 1 == pp * vp));
          next += chunk.count;
        }
        CHECK((chunks.empty() || next == spec.layers));
      }
}

TEST_CASE("held parameters of all ranks are the model's") {
  for (const char* name : {"llama3-70b", "qwen3-235b-a22b", "gpt3-175b"}) {
    const auto spec = std::get<TransformerSpec>(model(name));
    const TrainingPlan plan{.tp = 4, .pp = 4, .vp = 2, .dp = 8, .ep = 16};
    double sum = 0;
    for (const ChunkLayers& chunk : split_layers(spec, plan.pp, plan.vp)) {
      const HeldParameters held = held_parameters(spec, plan, chunk);
      sum += plan.tp * held.shared + plan.ep * held.experts;
    }
    // Tied embeddings stand on both ends; the last norm is not counted in a chunk.
    const double tied = spec.tied_embeddings ? spec.embedding_parameters() : 0;
    CHECK(sum == approx(spec.parameters() + tied - spec.hidden).epsilon(1e-12));
  }
}

}  // namespace
}  // namespace weft::workload
