#include "workload/schedule/pipeline.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/test_approx.hpp"

namespace weft::workload {
namespace {

using Pass = Unit::Pass;

// "F0 F1 B0": pass and micro-batch; with chunks "F0.1" is micro-batch 0 of chunk 1.
std::string text_of(const PipelineShape& shape, std::uint32_t stage) {
  std::string text;
  const std::vector<Unit> order = pipeline_order(shape, stage).value();
  for (const Unit& unit : order) {
    text += unit.pass == Pass::forward ? " F" : " B";
    text += std::to_string(unit.microbatch);
    if (shape.virtual_stages > 1) text += "." + std::to_string(unit.chunk);
  }
  return text.substr(1);
}

template <class Visit>
void for_each_shape(Visit&& visit) {
  for (std::uint32_t pp = 1; pp <= 6; ++pp)
    for (std::uint32_t v = 1; v <= 4; ++v)
      for (std::uint32_t m = 1; m <= 13; ++m) visit(PipelineShape{pp, v, m});
}

// Makespan with free communication; nothing where the stages wait in a circle.
std::optional<double> makespan(const PipelineShape& shape, double forward_s, double backward_s) {
  const std::uint32_t virtual_count = shape.stages * shape.virtual_stages;
  std::vector<std::vector<Unit>> orders;
  for (std::uint32_t s = 0; s < shape.stages; ++s)
    orders.push_back(pipeline_order(shape, s).value());
  // By pass, virtual stage and micro-batch; < 0: has not ended.
  std::vector<double> ends(2 * std::size_t{virtual_count} * shape.microbatches, -1);
  const auto end_of = [&](Pass pass, std::uint32_t stage, std::uint32_t microbatch) -> double& {
    return ends[(static_cast<std::size_t>(pass) * virtual_count + stage) * shape.microbatches +
                microbatch];
  };
  std::vector<std::size_t> at(shape.stages, 0);
  std::vector<double> clock(shape.stages, 0);
  const auto advance = [&](std::uint32_t s) {
    if (at[s] == orders[s].size()) return false;
    const auto [pass, chunk, m] = orders[s][at[s]];
    const std::uint32_t here = chunk * shape.stages + s;
    double input = 0;
    if (pass == Pass::forward && here > 0) input = end_of(pass, here - 1, m);
    if (pass == Pass::backward)
      input = here + 1 < virtual_count ? end_of(pass, here + 1, m) : end_of(Pass::forward, here, m);
    if (input < 0) return false;
    clock[s] = std::max(clock[s], input) + (pass == Pass::forward ? forward_s : backward_s);
    end_of(pass, here, m) = clock[s];
    ++at[s];
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t s = 0; s < shape.stages; ++s)
      while (advance(s)) moved = true;
  }
  for (std::uint32_t s = 0; s < shape.stages; ++s)
    if (at[s] < orders[s].size()) return std::nullopt;
  return std::ranges::max(clock);
}

TEST_CASE("1F1B as published") {
  CHECK(text_of({2, 1, 3}, 0) == "F0 F1 B0 F2 B1 B2");
  CHECK(text_of({2, 1, 3}, 1) == "F0 B0 F1 B1 F2 B2");
  CHECK(text_of({1, 1, 2}, 0) == "F0 B0 F1 B1");
  CHECK(text_of({4, 1, 2}, 0) == "F0 F1 B0 B1");
}

TEST_CASE("interleaved 1F1B as published") {
  CHECK(text_of({2, 2, 4}, 1) ==
        "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0");
  CHECK(text_of({2, 2, 4}, 0).starts_with("F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1"));
  CHECK(text_of({1, 2, 2}, 0) == "F0.0 F0.1 B0.1 B0.0 F1.0 F1.1 B1.1 B1.0");
  // As many micro-batches as stages: all forwards, then all backwards.
  CHECK(text_of({2, 2, 2}, 1) == "F0.0 F1.0 F0.1 F1.1 B0.1 B1.1 B0.0 B1.0");
  // Three micro-batches on two stages are one group.
  CHECK(text_of({2, 2, 3}, 1).starts_with("F0.0 F1.0 F2.0 F0.1 B0.1"));
}

TEST_CASE("each stage runs every unit once, micro-batches of a chunk in order") {
  for_each_shape([](const PipelineShape& shape) {
    for (std::uint32_t s = 0; s < shape.stages; ++s) {
      const std::vector<Unit> order = pipeline_order(shape, s).value();
      REQUIRE(order.size() == 2 * std::size_t{shape.virtual_stages} * shape.microbatches);
      std::vector<std::uint32_t> next(2 * std::size_t{shape.virtual_stages}, 0);
      for (const auto& [pass, chunk, microbatch] : order) {
        const bool forward = pass == Pass::forward;
        REQUIRE(microbatch == next[2 * chunk + (forward ? 0 : 1)]++);
        if (!forward) REQUIRE(microbatch < next[2 * std::size_t{chunk}]);
      }
    }
  });
}

TEST_CASE("no shape waits in a circle, and an ideal step idles as the closed form says") {
  for_each_shape([](const PipelineShape& shape) {
    CAPTURE(shape.stages);
    CAPTURE(shape.virtual_stages);
    CAPTURE(shape.microbatches);
    for (const double backward : {1.0, 2.0, 0.5}) {
      const auto total = makespan(shape, 1, backward);
      REQUIRE(total.has_value());
      const double work = (1 + backward) * shape.virtual_stages * shape.microbatches;
      REQUIRE((*total - work) / work == approx(pipeline_bubble(shape)).epsilon(1e-12));
    }
  });
}

TEST_CASE("impossible shapes") {
  const auto code = [](const PipelineShape& shape, std::uint32_t stage) {
    return pipeline_order(shape, stage).error().code;
  };
  CHECK(code({0, 1, 1}, 0) == Errc::value);
  CHECK(code({1, 0, 1}, 0) == Errc::value);
  CHECK(code({1, 1, 0}, 0) == Errc::value);
  CHECK(code({2, 1, 1}, 2) == Errc::value);
  CHECK(code({UINT32_MAX, UINT32_MAX, UINT32_MAX}, 0) == Errc::infeasible);
  CHECK(code({16, 8, 15'626}, 0) == Errc::infeasible);
  CHECK(pipeline_order({16, 8, 15'625}, 0).has_value());
}

}  // namespace
}  // namespace weft::workload
