// weft trace: broken, odd and large recorded workloads end in a place and a way out, or in the
// right answer; never in a silent zero.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/test_approx.hpp"
#include "run_weft.hpp"
#include "workload/trace/chakra_test_kit.hpp"

using namespace weft;
using namespace weft::workload::test;
using cli_test::Outcome;
using cli_test::Scratch;
using nlohmann::json;

namespace {

constexpr std::int64_t all_reduce = 0;
constexpr std::uint64_t collective_node = 7;

// Compute of 100 us, an all-reduce among all, compute of 50 us.
std::string one_rank(std::int64_t bytes) {
  return metadata() + node({.id = 1, .name = "gemm", .micros = 100}) +
         node({.id = 2,
               .name = "reduce",
               .type = collective_node,
               .data = {1},
               .rest = collective(all_reduce, bytes)}) +
         node({.id = 3, .name = "gemm", .data = {2}, .micros = 50});
}

Outcome trace_ranks(const Scratch& scratch, std::size_t ranks, const std::string& content,
                    const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"trace"};
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    arguments.push_back(fmt::format("t.{}.et", rank));
    scratch.write(arguments.back(), content);
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  return scratch.run(arguments);
}

std::string simai(std::string_view keys, std::string_view layer) {
  return fmt::format("HYBRID_TRANSFORMER model_parallel_NPU_group: 8 {}\n1\n{}\n", keys, layer);
}

void check_refused(const Outcome& outcome, const std::string& text) {
  INFO("got: ", outcome.err.substr(0, 500));
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.starts_with("weft: error: "));
  CHECK_MESSAGE(outcome.err.find(text) != std::string::npos, "nothing says: ", text);
}

void check_simai(const std::string& content, const std::string& text) {
  CAPTURE(content);
  const Scratch scratch;
  scratch.write("w.txt", content);
  check_refused(scratch.run({"trace", "w.txt", "--out", "out"}), text);
  CHECK_FALSE(scratch.has("out"));
}

json job_of(const Outcome& outcome, const char* name) {
  INFO("got: ", outcome.err.substr(0, 500));
  REQUIRE(outcome.status == 0);
  return json::parse(outcome.out)["variants"]["base"]["jobs"][name];
}

double number(const json& job, const char* group, const char* key) {
  return job[group][key].get<double>();
}

// What a ring all-reduce moves in all: each rank sends 2 (n - 1) / n of the bytes.
double ring_bytes(double ranks, double bytes) { return 2 * (ranks - 1) * bytes; }

double all_bytes(const json& job, const char* dimension) {
  double sum = 0;
  for (const json& bytes : job["bytes"][dimension]) sum += bytes.get<double>();
  return sum;
}

}  // namespace

TEST_CASE("Chakra: one file per rank is one job") {
  const Scratch scratch;
  const json job = job_of(trace_ranks(scratch, 4, one_rank(3'600'000), {"--json"}), "t.0.et");
  CHECK(job["model"] == "chakra");
  CHECK(job["gpus"] == 4);
  CHECK(job["compute_s"].get<double>() == approx(150e-6));
  CHECK(job["step_time_s"].get<double>() ==
        approx(150e-6 + number(job, "exposed_s", "other")).epsilon(1e-9));
  CHECK(number(job, "exposed_s", "other") > 0);
}

TEST_CASE("Chakra: cut gzip, lengths past the end, no rank in the name") {
  const std::string whole = one_rank(1'000'000);
  const Scratch scratch;
  const std::string packed = *gzip(whole);
  check_refused(trace_ranks(scratch, 2, packed.substr(0, packed.size() / 2)),
                "t.0.et: gzip data is truncated");
  check_refused(trace_ranks(scratch, 2, whole.substr(0, whole.size() - 5)),
                "of the stream: length extends past the end of the data");
  check_refused(trace_ranks(scratch, 2, metadata()), "the trace has no nodes");
  CHECK(trace_ranks(scratch, 2, packed).status == 0);
}

TEST_CASE("Chakra: a circle of dependencies is named; one to nowhere is noted") {
  const Scratch scratch;
  const std::string circle = metadata() +
                             node({.id = 1, .name = "first", .data = {3}, .micros = 1}) +
                             node({.id = 2, .name = "second", .ctrl = {1}, .micros = 1}) +
                             node({.id = 3, .name = "third", .data = {2}, .micros = 1});
  const Outcome refused = trace_ranks(scratch, 1, circle);
  check_refused(refused, "t.0.et: dependency cycle: ");
  for (const char* name : {"\"first\"", "\"second\"", "\"third\""})
    CHECK(refused.err.find(name) != std::string::npos);

  const std::string dangling =
      metadata() + node({.id = 1, .name = "gemm", .data = {99}, .micros = 10});
  const Outcome outcome = trace_ranks(scratch, 1, dangling);
  CHECK(outcome.status == 0);
  CHECK(outcome.out.find("1 dangling dependencies") != std::string::npos);
  CHECK(outcome.out.find("node 1 \"gemm\" has data dependency 99") != std::string::npos);
}

TEST_CASE("groups of any size move what their algorithm moves") {
  for (const double ranks : {3., 100.}) {
    CAPTURE(ranks);
    const Scratch scratch;
    const auto count = static_cast<std::size_t>(ranks);
    const json job = job_of(trace_ranks(scratch, count, one_rank(6'000'000), {"--json"}), "t.0.et");
    CHECK(job["step_time_s"].get<double>() > 150e-6);
    CHECK(all_bytes(job, "other") == approx(ring_bytes(ranks, 6e6)).epsilon(1e-6));

    const std::string dp = fmt::format("all_gpus: {}", 8 * count);
    scratch.write("w", simai(dp, "l -1 1000000 NONE 0 1 NONE 0 1 ALLREDUCE 64000000 1"));
    const json dense = job_of(scratch.run({"trace", "w", "--json"}), "w");
    CHECK(number(dense, "exposed_s", "dp") >= 2 * (ranks - 1) / ranks * 64e6 / 50e9);
    CHECK(all_bytes(dense, "dp") == approx(8 * ring_bytes(ranks, 64e6)).epsilon(1e-6));
  }
}

TEST_CASE("sizes beyond 32 bits keep all their bits") {
  constexpr std::int64_t bytes = 5 * (std::int64_t{1} << 32) + 7;
  const Scratch scratch;
  const json job = job_of(trace_ranks(scratch, 2, one_rank(bytes), {"--json"}), "t.0.et");
  CHECK(all_bytes(job, "other") == approx(2. * bytes).epsilon(1e-12));

  scratch.write(
      "w", simai("all_gpus: 16", fmt::format("l -1 1 NONE 0 1 NONE 0 1 ALLREDUCE {} 1", bytes)));
  const json dense = job_of(scratch.run({"trace", "w", "--json"}), "w");
  CHECK(all_bytes(dense, "dp") == approx(16. * bytes).epsilon(1e-12));
  CHECK(dense["step_time_s"].get<double>() >= bytes / 50e9);

  scratch.write("g", fmt::format("num_ranks 2\nrank 0 {{\na: send {0}b to 1\n}}\n"
                                 "rank 1 {{\na: recv {0}b from 0\n}}\n",
                                 bytes));
  const json goal = job_of(scratch.run({"trace", "g", "--json"}), "g");
  CHECK(all_bytes(goal, "other") == approx(1. * bytes).epsilon(1e-12));
}

TEST_CASE("SimAI: columns, pipeline bytes without a pipeline, words and numbers") {
  check_simai(simai("all_gpus: 16", "l -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 64"),
              "w.txt:3:1: 11 of 12 columns: missing are update_ns; ");
  check_simai(simai("pp: 1 all_gpus: 16 pp_comm: 1000", "l -1 1 NONE 0 1 NONE 0 1 NONE 0 1"),
              "w.txt:1:76: pp_comm is 1000 bytes, but pp is 1");
  check_simai(simai("all_gpus: 16", "l -1 1 NONE 0 1 NONE 0 1 ALLREDUC 64 1"),
              "did you mean \"ALLREDUCE\"?");
  check_simai(simai("all_gpus: 16", "l -1 -5 NONE 0 1 NONE 0 1 NONE 0 1"),
              "w.txt:3:6: fwd_ns is \"-5\"");
  check_simai(simai("all_gpus: 12", "l -1 1 NONE 0 1 NONE 0 1 NONE 0 1"), "choose a multiple of 8");
  check_simai("hello\n", "w.txt:1:1: no known workload format starts with");
  check_simai("", "w.txt: the file is empty");
}

TEST_CASE("GOAL: circles and messages that nobody receives") {
  const Scratch scratch;
  scratch.write("g", "num_ranks 2\nrank 0 {\na: send 5b to 1\n}\nrank 1 {\n}\n");
  check_refused(scratch.run({"trace", "g"}), "g:3:4: rank 1 has no receive from rank 0");
  const auto rank = [](int other) {
    return fmt::format("a: recv 100000b from {0}\nb: send 100000b to {0}\nb requires a\n", other);
  };
  scratch.write("g",
                fmt::format("num_ranks 2\nrank 0 {{\n{}}}\nrank 1 {{\n{}}}\n", rank(1), rank(0)));
  check_refused(scratch.run({"trace", "g"}), "operations wait for each other in a cycle");
}

TEST_CASE("options that a format has no use for are refused, not ignored") {
  const Scratch scratch;
  scratch.write("w", simai("all_gpus: 16", "l -1 1000 NONE 0 1 NONE 0 1 ALLREDUCE 64 1"));
  scratch.write("groups.json", "{\"0\": [0, 1]}");
  check_refused(scratch.run({"trace", "w", "--groups", "groups.json"}), "is not a Chakra trace");
  check_refused(scratch.run({"trace", "w", "--overhead", "1 us"}), "this is not a GOAL schedule");
  check_refused(scratch.run({"trace", "w", "w"}), "SimAI text takes one file, but 2 are given");
  check_refused(scratch.run({"trace", "w", "--ranks", "7"}), "choose a multiple of 8");
  check_refused(scratch.run({"trace"}), "--help");
}

TEST_CASE("ranks may be scaled, places chosen, contention switched off") {
  const Scratch scratch;
  scratch.write("w", simai("all_gpus: 16", "l -1 1000 NONE 0 1 NONE 0 1 ALLREDUCE 64000000 1"));
  const json more = job_of(scratch.run({"trace", "w", "--ranks", "64", "--json"}), "w");
  CHECK(more["gpus"] == 64);
  const auto time = [&](const std::vector<std::string>& options) {
    std::vector<std::string> arguments{"trace", "w", "--ranks", "256", "--json"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return job_of(scratch.run(arguments), "w")["step_time_s"].get<double>();
  };
  CHECK(time({"--place", "random", "--contention", "off"}) < time({"--place", "random"}));
}
