// weft run: a training job computes at the rates of the GPUs that its hosts have.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/test_approx.hpp"
#include "run_weft.hpp"

using namespace weft;
using cli_test::Outcome;
using cli_test::Scratch;
using nlohmann::json;

namespace {

json step_on(const std::string& host, const std::string& more = "") {
  const Scratch scratch;
  scratch.write("s.yaml", fmt::format("fabric: {{generator: ai_zone, racks: 2, host: {}}}\n"
                                      "jobs: [{{name: t, model: llama3-8b, parallel: {{tp: 8, dp: "
                                      "4}}, batch: 32{}}}]\n",
                                      host, more));
  const Outcome outcome = scratch.run({"run", "s.yaml", "--json"});
  REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
  return json::parse(outcome.out)["variants"]["base"]["jobs"]["t"];
}

}  // namespace

TEST_CASE("every host preset trains at its own GPU's rates, below its own peak") {
  // Dense bf16 in TFLOP/s: data sheets of A100 80 GB SXM, H100 SXM, H200 SXM and HGX B200.
  const std::map<std::string, double> peaks{
      {"a100", 312}, {"h100", 989.4}, {"h200", 989.4}, {"b200", 2250}};
  std::map<std::string, double> seconds;
  for (const auto& [host, peak] : peaks) {
    CAPTURE(host);
    const json step = step_on(host);
    const double achieved = step["tflops_per_gpu"];
    MESSAGE(fmt::format("{}: step {:.4g} s, {:.1f} of {} TFLOP/s, MFU {:.3f}", host,
                        step["step_time_s"].get<double>(), achieved, peak,
                        step["mfu"].get<double>()));
    CHECK(achieved < peak);
    CHECK(achieved > 0.15 * peak);
    CHECK(step["mfu"].get<double>() == approx(achieved / peak).epsilon(1e-9));
    seconds[host] = step["step_time_s"];
    // What the host says is what the job would have to say.
    CHECK(step == step_on(host, ", gpu: " + host));
  }
  CHECK(seconds["a100"] > 1.5 * seconds["h100"]);
  CHECK(seconds["h100"] > seconds["h200"]);  // the same processor, faster memory
  CHECK(seconds["h200"] > 1.3 * seconds["b200"]);
}

TEST_CASE("a host file does not say which GPU it has: the job must") {
  const Scratch scratch;
  const auto pci = [](const char* bus, const char* kind, const std::string& inside) {
    return fmt::format(
        "<pci busid=\"{}\" class=\"{}\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">{}</pci>",
        bus, kind, inside);
  };
  std::string devices;
  for (int i = 0; i < 2; ++i) {
    devices += pci(fmt::format("0000:0{}:00.0", i).c_str(), "0x030200",
                   fmt::format("<gpu dev=\"{}\" sm=\"90\"><nvlink target=\"0000:f0:00.0\" "
                               "count=\"18\" tclass=\"0x068000\"/></gpu>",
                               i));
    devices +=
        pci(fmt::format("0000:1{}:00.0", i).c_str(), "0x020700",
            fmt::format("<nic><net name=\"mlx{0}\" dev=\"{0}\" speed=\"400000\"/></nic>", i));
  }
  scratch.write("host.xml", "<system version=\"1\"><cpu>" + devices + "</cpu></system>");
  const std::string text =
      "fabric: {generator: ai_zone, racks: 2, host: host.xml}\n"
      "jobs:\n"
      "  - {name: t, model: llama3-8b, parallel: {tp: 2, dp: 2}, batch: 4, zero: 3";
  scratch.write("s.yaml", text + "}\n");
  const Outcome refused = scratch.run({"run", "s.yaml"});
  CHECK(refused.status == 2);
  CHECK_MESSAGE(refused.err.find("s.yaml:3:5: the fabric does not specify the GPU of its hosts") !=
                    std::string::npos,
                refused.err);
  CHECK(refused.err.find("add gpu: with one of a100, h100, h200, b200") != std::string::npos);
  scratch.write("s.yaml", text + ", gpu: h200}\n");
  const Outcome outcome = scratch.run({"run", "s.yaml"});
  CHECK_MESSAGE(outcome.status == 0, outcome.err);
}
