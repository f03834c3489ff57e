// Against the published results of a production job, and against pipelines whose times are known.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/file.hpp"
#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "observe/straggler/kernels.hpp"
#include "observe/straggler/what_if.hpp"

namespace weft::observe::straggler {
namespace {

Report report_of(std::string text) {
  const auto timeline = read_timeline(text, "t.json");
  REQUIRE_MESSAGE(timeline.has_value(), timeline.error().text());
  const auto model = StepModel::read(*timeline, "t.json");
  REQUIRE_MESSAGE(model.has_value(), model.error().text());
  return analyse(*timeline, *model);
}

std::string refusal(std::string text) {
  const auto timeline = read_timeline(text, "t.json");
  if (!timeline) return timeline.error().text();
  const auto model = StepModel::read(*timeline, "t.json");
  return model ? "" : model.error().text();
}

// Timeline and results: ByteDance-Seed/StragglerAnalysis, trial ST (Apache-2.0).
TEST_CASE("published: a job whose last stage is too long") {
  const auto packed = read_file("tests/docs/inputs/straggler-stage.json.gz");
  REQUIRE(packed.has_value());
  const Report r = report_of(gunzip(*packed, "ST").value());
  CHECK(r.actual_s == approx(2.172696813310722).epsilon(1e-6));
  CHECK(r.ideal_s == approx(1.843295824372035).epsilon(1e-6));
  CHECK(r.slowest_share == approx(0.031404269).epsilon(1e-4));
  CHECK(r.last_stage_share == approx(1.219356379).epsilon(1e-5));
  CHECK(r.step_s.front() == approx(2.339666261).epsilon(1e-6));
  constexpr std::array replicas{1.173082820, 1.177870424};
  constexpr std::array stages{0.998045064, 0.983056253, 0.982493131, 1.232255954};
  REQUIRE(r.by_replica.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) CHECK(r.by_replica[i] == approx(replicas[i]).epsilon(1e-5));
  REQUIRE(r.by_stage.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(r.by_stage[i] == approx(stages[i]).epsilon(1e-5));
  const std::map<Kind, double> kinds{{Kind::forward_compute, 1.087498966},
                                     {Kind::backward_compute, 1.074156472},
                                     {Kind::embedding_all_reduce, 1.009550402},
                                     {Kind::reduce_scatter, 1.002666953},
                                     {Kind::clip, 1.002350622}};
  for (const auto& [kind, slowdown] : kinds)
    CHECK(r.by_kind[static_cast<std::size_t>(kind)] == approx(slowdown).epsilon(1e-5));
  CHECK(r.cause == Cause::last_stage);
}

// Seconds of a compute by replica, stage, direction and micro-batch.
using Times = std::function<double(int replica, int stage, bool is_forward, int micro_batch)>;

// A 1F1B pipeline whose transfers take no time, by iteration of its recurrences.
struct Pipeline {
  int replicas, stages, micro_batches;
  Times seconds;

  // Forward and backward computes of a stage in order: warm-up, then in turn.
  std::vector<std::pair<bool, int>> order(int stage) const {
    std::vector<std::pair<bool, int>> out;
    const int warm_up = std::min(stages - stage - 1, micro_batches);
    int forward = 0, backward = 0;
    for (; forward < warm_up; ++forward) out.emplace_back(true, forward);
    while (backward < micro_batches) {
      if (forward < micro_batches) out.emplace_back(true, forward++);
      out.emplace_back(false, backward++);
    }
    return out;
  }

  std::string text(double* step = nullptr) const {
    std::string out;
    const auto add = [&](int replica, int stage, int thread, std::string_view name, int seq,
                         double start, double duration) {
      out += fmt::format(R"({}{{"name":"{}","ph":"X","pid":{},"tid":{},"ts":{:.6f},"dur":{:.6f},)"
                         R"("args":{{"step":7,"seq_id":{}}}}})",
                         out.empty() ? "[" : ",\n", name, replica, 2 * stage + thread, start * 1e6,
                         duration * 1e6, seq);
    };
    for (int r = 0; r < replicas; ++r) {
      std::map<std::tuple<int, bool, int>, double> end;  // stage, direction, micro-batch
      for (int round = 0; round < 2 * stages * micro_batches; ++round)
        for (int s = 0; s < stages; ++s) {
          double free = 0;
          for (const auto& [forward, m] : order(s)) {
            const int from = forward ? s - 1 : s + 1;
            const double arrives = from < 0 || from == stages ? 0 : end[{from, forward, m}];
            free = std::max(free, arrives) + seconds(r, s, forward, m);
            end[{s, forward, m}] = free;
          }
        }
      for (int s = 0; s < stages; ++s) {
        double free = 0;
        for (const auto& [forward, m] : order(s)) {
          const double done = end[{s, forward, m}], took = seconds(r, s, forward, m);
          const std::string way = forward ? "forward" : "backward";
          add(r, s, 0, way + "-compute", m, done - took, took);
          if (const int to = forward ? s + 1 : s - 1; to >= 0 && to < stages)
            add(r, s, 1, way + "-send", m, done, 0);
          if (const int from = forward ? s - 1 : s + 1; from >= 0 && from < stages)
            add(r, s, 1, way + "-recv", m, std::min(free, end[{from, forward, m}]),
                end[{from, forward, m}] - std::min(free, end[{from, forward, m}]));
          free = done;
          if (step != nullptr) *step = std::max(*step, done);
        }
      }
    }
    for (int s = 0; s < stages; ++s)
      for (int r = 0; r < replicas; ++r)
        for (int thread = 0; thread < 2; ++thread)
          out += fmt::format(R"(,{{"name":"thread_name","ph":"M","pid":{},"tid":{},)"
                             R"("args":{{"name":"PP rank {}, x"}}}})",
                             r, 2 * s + thread, s);
    return out + "]";
  }
};

TEST_CASE("an even pipeline is ideal: micro-batches and bubble times forward and backward") {
  for (const auto& [stages, micro_batches] : {std::pair{1, 3}, {2, 4}, {4, 8}, {4, 2}}) {
    double step = 0;
    const Pipeline even{2, stages, micro_batches,
                        [](int, int, bool forward, int) { return forward ? 0.1 : 0.2; }};
    const Report r = report_of(even.text(&step));
    const double closed = (micro_batches + stages - 1) * 0.3;
    CHECK(step == approx(closed));
    CHECK(r.actual_s == approx(closed));
    CHECK(r.ideal_s == approx(closed));
    CHECK(r.cause == Cause::none);
  }
}

TEST_CASE("planted causes are found, and their loss is what the pipeline loses") {
  const auto even = [](bool forward) { return forward ? 0.1 : 0.2; };
  Rng rng(3);
  for (int round = 0; round < 20; ++round) {
    const int stages = 2 + static_cast<int>(rng.below(4)), micro_batches = 8, replicas = 4;
    const int slow = static_cast<int>(rng.below(static_cast<std::uint64_t>(stages)));
    const int where = static_cast<int>(rng.below(replicas));
    double step = 0;
    const Pipeline worker{replicas, stages, micro_batches, [&](int r, int s, bool forward, int) {
                            return even(forward) * (r == where && s == slow ? 2 : 1);
                          }};
    const Report a = report_of(worker.text(&step));
    CHECK(a.actual_s == approx(step));
    // The mean of all computes holds the slow worker's, too.
    const double typical = 0.3 * (1 + 1.0 / (replicas * stages));
    CHECK(a.ideal_s == approx((micro_batches + stages - 1) * typical));
    CHECK(a.cause == Cause::worker);
    CHECK(a.workers.front().replica == static_cast<std::size_t>(where));
    CHECK(a.workers.front().stage == static_cast<std::uint32_t>(slow));

    const Pipeline last{replicas, stages, micro_batches, [&](int, int s, bool forward, int) {
                          return even(forward) * (s + 1 == stages ? 1.5 : 1);
                        }};
    CHECK(report_of(last.text()).cause == Cause::last_stage);

    std::vector<double> length;
    for (int i = 0; i < replicas * micro_batches; ++i) length.push_back(0.3 + 3 * rng.uniform());
    const Pipeline uneven{replicas, stages, micro_batches, [&](int r, int, bool forward, int m) {
                            return even(forward) *
                                   length.at(static_cast<std::size_t>(r) * micro_batches +
                                             static_cast<std::size_t>(m));
                          }};
    CHECK(report_of(uneven.text()).cause == Cause::sequence_lengths);
  }
}

TEST_CASE("what cannot be read is refused with the reason") {
  const std::string good = Pipeline{1, 2, 2, [](int, int, bool, int) { return 0.1; }}.text();
  REQUIRE(refusal(good).empty());
  const auto without = [&](std::string_view what) {
    std::string text = good;
    const std::size_t at = text.find(what);
    REQUIRE(at != std::string::npos);
    return text.replace(at, what.size(), "\"name\":\"other\"");
  };
  const auto says = [](const std::string& said, std::string_view what) {
    CHECK_MESSAGE(said.find(what) != std::string::npos, said);
  };
  says(refusal("{"), "t.json: event 0: ");
  says(refusal("[]"), "no operation of a training step");
  says(refusal(R"([{"ph":"X","name":"gc"}])"), "t.json: event 0: ");
  says(refusal(R"([{"ph":"X","name":"gc","pid":0,"tid":0,"ts":0,"dur":1,)"
               R"("args":{"step":0,"seq_id":0}}])"),
       "has no name \"PP rank ...\"");
  says(refusal(without("\"name\":\"forward-send\"")), "forward-recv 0 of stage 1 has no sender");
  says(refusal(without("\"name\":\"forward-recv\"")), "forward-send 0 of stage 0 has no receiver");
  std::string twice = good;
  twice.insert(1, good.substr(1, good.find('\n') - 1));
  std::string gap = good;  // the second stage calls itself the fourth
  while (gap.contains("PP rank 1,")) gap.replace(gap.find("PP rank 1,"), 10, "PP rank 3,");
  says(refusal(gap), "stage 3 has operations, and stage 1 has none");
  says(refusal(R"([{"ph":"B","name":"forward-compute","pid":0,"tid":0,"ts":0}])"),
       "\"forward-compute\" begins and ends in two events");
  says(refusal(twice), "step 7 of replica 0 has forward-compute 0 of stage 0 twice");
}

TEST_CASE("kernels of a profiler's trace: what is computed, what nothing hides, what is stalled") {
  // Device 0, two steps in 100 us: compute 10-40 and 30-60, NCCL 50-90, compute 95-110.
  const auto event = [](const char* category, const char* name, int start, int length,
                        const char* row) {
    return fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","ts":{},"dur":{},{}}},)", category,
                       name, start, length, row);
  };
  const char* const host = R"("pid":99,"tid":1)";
  const char* const stream = R"("pid":0,"tid":7)";
  std::string text = "{\"traceEvents\":[" +
                     event("user_annotation", "ProfilerStep#1", 0, 50, host) +
                     event("user_annotation", "ProfilerStep#2", 50, 50, host) +
                     event("gpu_user_annotation", "ProfilerStep#2", 50, 50, stream) +
                     event("cpu_op", "aten::mm", 0, 5, R"("pid":99,"tid":"main")") +
                     event("kernel", "ncclDevKernel_AllReduce", 50, 40, R"("pid":0,"tid":20)") +
                     event("kernel", "gemm", 10, 30, stream) +
                     event("kernel", "gemm", 30, 30, R"("pid":0,"tid":8)") +
                     event("gpu_memcpy", "Memcpy DtoH", 95, 15, stream) +
                     R"({"ph":"M","name":"process_name","pid":0,"args":{"name":"python"}}]})";
  const auto trace = read_kernels(text, "k.json");
  REQUIRE_MESSAGE(trace.has_value(), trace.error().text());
  CHECK(trace->steps == 2);
  CHECK(trace->kernels.size() == 4);
  const KernelTimes times = times_of(*trace);
  CHECK(times.step_s == approx(50e-6));       // 10 to 110, two steps
  CHECK(times.compute_s == approx(32.5e-6));  // 50 + 15
  CHECK(times.exposed_s == approx(15e-6));    // 60 to 90
  CHECK(times.idle_s == approx(2.5e-6));      // 90 to 95
  const auto wrong = [](std::string bad) { return read_kernels(bad, "k.json").error().text(); };
  CHECK(wrong("[]").starts_with("k.json: no kernels of a GPU"));
  CHECK(wrong("{").starts_with("k.json: "));
  CHECK(wrong(R"([{"ph":"X","cat":"kernel","name":"k","ts":1,"pid":0,"tid":1}])")
            .find("event 0: \"ts\" and \"dur\"") != std::string::npos);
  CHECK(wrong(R"([{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,"pid":"GPU","tid":1}])")
            .find("its device and its stream") != std::string::npos);
}

}  // namespace
}  // namespace weft::observe::straggler
