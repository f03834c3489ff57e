#include "plan/init/init.hpp"

#include <doctest/doctest.h>

#include "base/test_effort.hpp"
#include "model/scenario/scenario.hpp"
#include "plan/run/jobs.hpp"
#include "workload/parallel/model_spec.hpp"

namespace weft::plan::init {
namespace {

void check_variant(const model::Scenario& variant) {
  const auto setup = read_setup(variant);
  REQUIRE_MESSAGE(setup.has_value(), (setup ? "" : setup.error().text()));
  const auto jobs = read_jobs(*setup, variant.section("jobs"), variant.seed);
  CHECK_MESSAGE(jobs.has_value(), (jobs ? "" : jobs.error().text()));
}

// Whatever the answers: a scenario whose every section is understood, with exactly these GPUs, or
// an error that says what would do.
TEST_CASE("first scenario: every choice gives one that runs, or says why not") {
  std::size_t made = 0, refused = 0, asked = 0;
  for (const std::string& gpu : gpu_choices())
    for (const std::string& model : workload::model_names())
      for (const FabricChoice& fabric : fabric_choices())
        for (const std::uint64_t gpus : {8u, 64u, 72u, 100u, 512u, 1'152u}) {
          if (asked++ % (test_is_quick ? 61 : 7) != 0) continue;
          INFO(gpu << " " << model << " " << fabric.name << " " << gpus);
          const auto text =
              first_scenario({.gpus = gpus, .gpu = gpu, .model = model, .fabric = fabric.name});
          if (!text) {
            ++refused;
            CHECK(text.error().code == Errc::infeasible);
            CHECK(text.error().hint.starts_with("take "));
            continue;
          }
          ++made;
          const auto file = model::parse_scenario(*text, "first.yaml", {});
          REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().text()));
          CHECK(file->variants.size() == 3);
          for (const model::Scenario& variant : file->variants) check_variant(variant);
        }
  CHECK(made > 20);
  CHECK(refused > 20);
}

TEST_CASE("first scenario: errors name what would do") {
  const auto error = [](const Wish& wish) { return first_scenario(wish).error().text(); };
  CHECK(error({.gpus = 100})
            .contains("not a multiple of 8, the GPUs of a host of h100; take 96 or 104"));
  CHECK(error({.gpus = 80, .gpu = "gb200"}).contains("take 72 or 144"));
  CHECK(error({.gpus = 8, .model = "llama3-405b"}).contains("llama3-405b does not fit on 8 GPUs"));
  CHECK(error({.gpus = 8, .gpu = "h10"}).contains("h100"));
  CHECK(error({.gpus = 8, .fabric = "ai_zon"}).contains("ai_zone"));
  CHECK(error({.gpus = 8, .model = "llama3-8"}).contains("llama3-8b"));
}

TEST_CASE("first scenario: the smallest replica that fits") {
  // 8 B parameters of 2 + 4 + 12 / 64 bytes are 50 GB: one GPU of 80 GiB.
  CHECK(first_scenario({.gpus = 64}).value().contains("{tp: 1, pp: 1, dp: 64}"));
  // 70.6 B on eight GPUs: 2 + 4 + 12 / 8 bytes of an eighth are 66 GB, without one activation of 80
  // layers, of 86 less 4: sixteen.
  CHECK(first_scenario({.gpus = 64, .model = "llama3-70b"}).value().contains("dp: 4}"));
}

}  // namespace
}  // namespace weft::plan::init
