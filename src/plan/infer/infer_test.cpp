#include "plan/infer/infer.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "base/test_approx.hpp"
#include "base/test_folder.hpp"
#include "plan/infer/inference_config.hpp"

namespace weft::plan {
namespace {

model::Scenario scenario_of(const std::string& yaml) {
  auto file = model::parse_scenario(yaml, "s.yaml", {});
  REQUIRE(file.has_value());
  return std::move(file->variants.front());
}

InferReport report_of(const std::string& yaml) {
  auto out = infer(scenario_of(yaml));
  if (!out) FAIL(out.error().text());
  return *std::move(out);
}

std::string error_of(const std::string& yaml) {
  const auto out = infer(scenario_of(yaml));
  return out ? "none" : out.error().text();
}

// One request of 256 prompt tokens (a captured size) and one token of answer.
std::string one_request(const std::string& more) {
  return "inference:\n  model: llama3-8b\n  gpu: h100\n"
         "  requests: {poisson: {rate: 1, count: 1, input: 256, output: 1}}\n" +
         more;
}

TEST_CASE("AllReduce of a tensor-parallel replica on stated links: the ring by hand") {
  const auto ttft = [](const char* link) {
    const std::string text = "  parallel: {tp: 4}\n  link: " + std::string(link);
    return report_of(one_request(text)).latencies[0].ours.mean;
  };
  const double bytes = 256.0 * 4096 * 2;
  const double by_hand = 2 * 32 * (20e-6 + 2 * 3.0 / 4 * bytes / 16e9);
  CHECK(ttft("{rate: 16 GB/s, latency: 20 us}") - ttft("{rate: 0, latency: 0}") ==
        approx(by_hand).epsilon(1e-6));
}

TEST_CASE("AllReduce on the fabric costs what weft perf says") {
  const std::string fabric =
      "fabric: {generator: ai_zone, racks: 1, hosts_per_rack: 1, gpus_per_host: 8, spines: 1}\n";
  const double on_fabric =
      report_of(fabric + one_request("  parallel: {tp: 8}\n")).latencies[0].ours.mean;
  const double without =
      report_of(one_request("  parallel: {tp: 8}\n  link: {rate: 0}\n")).latencies[0].ours.mean;
  // weft perf all_reduce -b 2M -e 2M: 49.36 us a call.
  CHECK((on_fabric - without) / 64 == approx(49.364e-6).epsilon(1e-4));
}

TEST_CASE("the algorithm of the replica's AllReduce") {
  const std::string fabric =
      "fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 8, spines: 2}\n";
  const auto decode = [&](const std::string& more) {
    return report_of(fabric +
                     "inference:\n  model: llama3-70b\n  gpu: h100\n"
                     "  requests: {poisson: {rate: 1, count: 1, input: 1, output: 9}}\n"
                     "  parallel: {tp: 16" +
                     more + "}\n")
        .latencies[4]
        .ours.mean;
  };
  // weft perf all_reduce --fabric FILE -b 16K -e 16K --algorithm flat, ring: us a call. Each rack
  // has two uplinks for eight NICs.
  CHECK(decode(", algorithm: flat") - decode(", algorithm: ring") ==
        approx(160 * (62.59e-6 - 40.24e-6)).epsilon(2e-3));
  CHECK(decode("") == approx(decode(", algorithm: auto")));
  CHECK(decode(", algorithm: flat, up_to: 16 KiB") == approx(decode(", algorithm: flat")));
  CHECK(decode(", algorithm: flat, up_to: 16383 B") == approx(decode("")));
  const auto refused = [&](const std::string& parallel, const std::string& more) {
    return error_of(fabric + one_request("  parallel: {tp: 16, " + parallel + "}\n" + more));
  };
  CHECK(refused("algorithm: rung", "")
            .starts_with("s.yaml:6:33: the time model has no algorithm \"rung\""));
  CHECK(refused("up_to: 1 MiB", "").find("up_to without algorithm") != std::string::npos);
  CHECK(refused("protocol: L", "").starts_with("s.yaml:6:"));
  CHECK(refused("algorithm: ring", "  link: {rate: 1 GB/s}\n") ==
        "s.yaml:6:33: a stated link has a ring's bytes and one latency, whatever the algorithm; "
        "remove the link, and give a fabric");
}

// 64 AllReduces of two ranks: a ring of two turns over four links.
TEST_CASE("AllReduce has the fabric's latency, the transport's overhead, the library's cost") {
  const auto ttft = [](const char* latency, const std::string& more) {
    return report_of(fmt::format("fabric: {{generator: ai_zone, racks: 2, hosts_per_rack: 1, "
                                 "gpus_per_host: 1, spines: 1, latency: {}}}\n",
                                 latency) +
                     more + one_request("  parallel: {tp: 2, algorithm: ring}\n"))
        .latencies[0]
        .ours.mean;
  };
  const std::string line_rate = "collectives: {cost: line_rate}\n";
  const double none = ttft("0 s", line_rate), turns = 64 * 2;
  CHECK(ttft("25 us", line_rate) - none == approx(turns * 4 * 25e-6).epsilon(1e-6));
  CHECK(ttft("0 s", line_rate + "transport: {step_overhead: 100 us}\n") - none ==
        approx(turns * 100e-6).epsilon(1e-6));
  const double bytes = 256.0 * 4096 * 2;
  CHECK(none - ttft("0 s", line_rate + "faults: [{kind: link_degraded, link: \"nic:0--rtsw:0\", "
                                       "factor: 0.5}]\n") ==
        approx(-turns * bytes / 2 / 50e9).epsilon(1e-6));
  CHECK(ttft("0 s", "") > none + turns * 5e-6);  // NCCL costs more than its bytes
  // What fails later is no matter to calls that are priced by the start.
  for (const char* later : {"{kind: switch_degraded, switch: \"rtsw:1\", factor: 0.1, at: 10 ms}",
                            "{kind: switch_down, switch: \"ctsw:0\", at: 1 s}"})
    CHECK(ttft("0 s", line_rate + fmt::format("faults: [{}]\n", later)) == none);
}

TEST_CASE("stages of a replica: a slow NIC slows what they send on") {
  const auto ttft = [](const char* faults) {
    return report_of(fmt::format("fabric: {{generator: ai_zone, racks: 2, hosts_per_rack: 1, "
                                 "gpus_per_host: 1, spines: 1, latency: 0 s}}\nfaults: [{}]\n",
                                 faults) +
                     one_request("  parallel: {pp: 2}\n"))
        .latencies[0]
        .ours.mean;
  };
  const double bytes = 256.0 * 4096 * 2;
  CHECK(ttft("{kind: link_degraded, link: \"nic:0--rtsw:0\", factor: 0.01}") - ttft("") ==
        approx(99 * bytes / 50e9).epsilon(1e-6));
}

TEST_CASE("KV caches over the fabric: every rank's share through its NIC, and contention") {
  const std::string fabric =
      "fabric: {generator: ai_zone, racks: 1, hosts_per_rack: 2, gpus_per_host: 1, spines: 1}\n";
  const InferReport out = report_of(fabric + one_request("  replicas: {prefill: 1, decode: 1}\n"));
  const double bytes = 2.0 * 32 * 8 * 128 * 2 * 256;
  CHECK(out.kv_bytes_moved == static_cast<std::uint64_t>(bytes));
  const double transfer = out.latencies[3].ours.mean;
  CHECK(transfer > bytes / 50e9);  // 400 Gbps
  CHECK(transfer < bytes / 50e9 + 10e-6);
  const double split = out.latencies[0].ours.mean,
               whole = report_of(one_request("")).latencies[0].ours.mean;
  CHECK(split == approx(whole + transfer).epsilon(1e-9));
}

TEST_CASE("a job beside the replicas: both are slower where they share a link") {
  // KV caches come out of one rack; the job crosses the same uplinks, one for each rack.
  const std::string fabric =
      "fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 2, gpus_per_host: 1, spines: 1}\n";
  const std::string service =
      "inference:\n  model: llama3-8b\n  gpu: h100\n  replicas: {prefill: 1, decode: 1}\n"
      "  requests: {poisson: {rate: 20, count: 200, input: 2000, output: 2}}\n";
  const auto with = [&](const std::string& jobs) { return report_of(fabric + service + jobs); };
  const std::string job =
      "jobs: [{name: beside, collective: all_reduce, bytes: 1 GiB, repeat: 400, ";
  const InferReport across = with(job + "place: list, ranks: [\"gpu:0\", \"gpu:2\"]}]\n");
  const InferReport apart = with(job + "place: list, ranks: [\"gpu:0\", \"gpu:1\"]}]\n");
  REQUIRE(across.jobs.size() == 1);
  CHECK(across.unfinished == 0);
  // Placed on gpu:1 and gpu:3, and in one rack: only the first meets the job.
  CHECK(across.latencies[3].ours.mean > 1.2 * apart.latencies[3].ours.mean);
  double sum = 0;
  for (const double step : across.jobs[0].steps_s) sum += step;
  CHECK(sum / 400 > 1.05 * *across.jobs[0].alone_s);
  CHECK(apart.jobs[0].steps_s.back() == approx(*apart.jobs[0].alone_s).epsilon(1e-9));
  CHECK(error_of(service + "  kv_link: {rate: 1 GB/s}\n" + job + "gpus: 2}]\n") ==
        "s.yaml:2:3: jobs beside the replicas need a network; add a fabric\n"
        "s.yaml:2:3: jobs do not meet KV caches that have kv_link of their own; remove kv_link, so "
        "that caches cross the fabric");
}

// Of 200 requests the 198th is p99: a bar at its time is kept, one a picosecond below is not.
TEST_CASE("an objective holds exactly where so many requests are within the bar") {
  const std::string service =
      "inference:\n  model: llama3-8b\n  gpu: h100\n"
      "  requests: {poisson: {rate: 20, count: 200, input: 2000, output: 2}}\n";
  const double p99 = report_of(service).latencies[0].ours.p99;
  for (const int more_ps : {0, -1}) {
    const auto ps = static_cast<std::int64_t>(std::llround(p99 * 1e12)) + more_ps;
    const InferReport out = report_of(service + fmt::format("  slo: {{ttft: {} ps}}\n", ps));
    REQUIRE(out.objectives.size() == 1);
    CHECK(out.objectives[0].ttft_s == p99);
    CHECK(out.objectives[0].met == (more_ps == 0 ? 198 : 197));
    CHECK(out.objectives[0].holds() == (more_ps == 0));
  }
}

TEST_CASE("a recorded run's settings lie under the section's own") {
  TestFolder folder;
  const std::string run = folder.write(
      "run.json",
      "{\n \"engine_kwargs\": {\"max_num_seqs\": 7, \"max_num_batched_tokens\": 512},\n"
      " \"num_gpu_blocks\": 99, \"model_shape\": {\"layers\": 2, \"hidden\": 8, \"kv_heads\": 1, "
      "\"head_dim\": 4, \"bytes\": 2}}\n");
  folder.write("p_dense.csv", "layer,tokens,time_us\nembedding,1,5\n");
  folder.write("p_per_sequence.csv", "layer,sequences,time_us\nlm_head,1,20\n");
  folder.write("p_attention.csv",
               "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n16,0,0,0,7\n0,0,1,16,7\n");
  const auto config =
      read_inference(scenario_of("inference: {run: " + run + ", profile: " + folder.file("p") +
                                 ", engine: {max_seqs: 3}, requests: {poisson: {rate: 1}}}\n"));
  if (!config) FAIL(config.error().text());
  CHECK(config->cluster.limits.max_seqs == 3);
  CHECK(config->cluster.limits.token_budget == 512);
  CHECK(config->cluster.limits.kv_blocks == 99);
  CHECK(config->model.kv_bytes_per_token() == 32);
}

TEST_CASE("errors of the section come together, with their places") {
  CHECK(error_of("inference:\n  model: llama3-8b\n  gpu: h100\n  engine: {max_seqs: 0}\n"
                 "  route: nearest\n  parallel: {tp: 3, ep: 2}\n") ==
        "s.yaml:4:22: inference.engine.max_seqs: 0 is not within 1 .. 65536; choose a value in "
        "range\n"
        "s.yaml:6:25: experts over 2 ranks of a replica that has 3; ep is 1, or equal to tp: the "
        "replica's ranks share out its experts\n"
        "s.yaml:6:18: 32 heads do not divide by tp 3; choose a divisor\n"
        "s.yaml:5:10: inference.route: unknown name \"nearest\"; choose one of: round_robin, "
        "least_tokens, prefix\n"
        "s.yaml:2:3: \"requests\" is missing; name a trace, or write {poisson: {rate: 5, count: "
        "1000}}");
  CHECK(error_of("inference: {model: llama3-8b, profile: nowhere, requests: x}\n")
            .starts_with("s.yaml:1:"));
  CHECK(
      error_of(one_request("  replicas: {prefill: 1, decode: 2}\n")) ==
      "s.yaml:2:3: KV caches between replicas need a network; add a fabric, or kv_link: {rate: 64 "
      "GB/s, latency: 5 us}");
}

TEST_CASE("weights and KV cache must fit the GPUs of a replica") {
  const std::string large =
      "inference:\n  model: llama3-405b\n  gpu: h100\n"
      "  requests: {poisson: {rate: 1, count: 1, input: 16, output: 1}}\n  link: {rate: 0}\n";
  CHECK(error_of(large) ==
        "s.yaml:2:3: 812 GB of weights on 1 GPU are 811.7 GB each, and one h100 has 86 GB; set "
        "inference.parallel to tp x pp of 10 GPUs or more");
  CHECK(error_of(large + "  parallel: {tp: 8}\n").contains("on 8 GPUs are 101.5 GB each"));
  CHECK(error_of(large + "  parallel: {tp: 16}\n") == "none");
  // Llama 3 8B has 8.03e9 parameters of 2 bytes; a token's keys and values are
  // 2 x 32 layers x 8 heads x 128 x 2 bytes = 131,072, a block 16 times that.
  const auto blocks_max = static_cast<int>(((80ull << 30) - 2 * 8030261248.0) / (16 * 131072));
  const auto with = [&](int blocks) {
    return error_of(one_request(fmt::format("  engine: {{kv_blocks: {}}}\n", blocks)));
  };
  CHECK(with(blocks_max) == "none");
  CHECK(with(blocks_max + 1) ==
        fmt::format("s.yaml:2:3: {} KV blocks of 2.1 MB need 69.8 GB on each GPU, and the weights "
                    "leave 69.8 of its 86 GB; set inference.engine.kv_blocks to at most {}",
                    blocks_max + 1, blocks_max));
}

TEST_CASE("a slow GPU slows what its replica computes, and no message") {
  const std::string fabric =
      "fabric: {generator: ai_zone, racks: 1, hosts_per_rack: 2, gpus_per_host: 8, spines: 1}\n";
  const auto ttft = [&](const std::string& more, const char* gpu, double factor) {
    return report_of(
               fabric + one_request(more) +
               fmt::format("faults: [{{kind: gpu_slow, gpu: {}, factor: {}}}]\n", gpu, factor))
        .latencies[0]
        .ours.mean;
  };
  const std::string on_fabric = "  parallel: {tp: 8}\n  engine: {step_gap: 0 s}\n";
  const double healthy = report_of(fabric + one_request(on_fabric)).latencies[0].ours.mean;
  const double twice = ttft(on_fabric, "gpu:5", 2) - healthy;
  CHECK(twice ==
        approx(report_of(one_request(on_fabric + "  link: {rate: 0}\n")).latencies[0].ours.mean)
            .epsilon(1e-6));
  CHECK(ttft(on_fabric, "gpu:5", 3) - healthy == approx(2 * twice).epsilon(1e-6));
  CHECK(ttft(on_fabric, "gpu:9", 3) == healthy);  // of no replica
}

TEST_CASE("a replica on what is down, or cut off, is an error") {
  const auto with = [](const char* faults) {
    return error_of(fmt::format(
        "fabric: {{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 8, spines: 2}}\n"
        "inference:\n  model: llama3-70b\n  gpu: h100\n  parallel: {{tp: 16}}\n"
        "  requests: {{poisson: {{rate: 1, count: 1, input: 16, output: 2}}}}\n"
        "faults: [{}]\n",
        faults));
  };
  CHECK(with("") == "none");
  CHECK(with("{kind: host_down, host: \"host:1\"}").contains("uses gpu:8, which is down"));
  CHECK(with("{kind: switch_down, switch: \"rtsw:1\"}").contains("cannot reach each other"));
  CHECK(with("{kind: switch_down, switch: \"ctsw:1\"}") == "none");
}

TEST_CASE("where no request ends, nothing is made up") {
  // Three in a row of prefill and decode end, each.
  CHECK(report_of("fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, "
                  "spines: 1}\ninference:\n  model: llama3-8b\n  gpu: h100\n"
                  "  replicas: {prefill: 1, decode: 1}\n"
                  "  requests: {poisson: {rate: 1, count: 3, input: 256, output: 4}}\n")
            .unfinished == 0);
  const InferReport out = report_of(
      "fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, spines: 1}\n"
      "inference:\n  model: llama3-8b\n  gpu: h100\n  replicas: {prefill: 1, decode: 1}\n"
      "  requests: {poisson: {rate: 1, count: 3, input: 256, output: 4}}\n"
      "  gpu_hour: 2\n  slo: {ttft: 1 s}\n"
      "faults: [{kind: switch_down, switch: \"ctsw:0\"}]\n");
  CHECK(out.unfinished == 3);
  CHECK(out.kv_bytes_moved == 0);
  CHECK(!out.cost_per_million_output_tokens);
  for (const std::string& text : {to_table(out), to_json(out)}) {
    CHECK_MESSAGE(!text.contains("nan"), text);
    CHECK_MESSAGE(!text.contains(" 0.00 ms"), text);
  }
  CHECK(to_table(out).contains("of which none ended"));
}

}  // namespace
}  // namespace weft::plan
