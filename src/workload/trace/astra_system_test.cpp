#include "workload/trace/astra_system.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "base/test_approx.hpp"
#include "workload/trace/test_kit.hpp"

namespace weft::workload {
namespace {

using model::CollectiveOp;
using testing::contains;

AstraSystem read_system(const std::string& json) {
  auto system = read_astra_system(json, "sys.json");
  REQUIRE_MESSAGE(system.has_value(), (system ? "" : system.error().text()));
  return *std::move(system);
}
std::string system_refusal(const std::string& json) {
  const auto system = read_astra_system(json, "sys.json");
  return system ? "accepted" : system.error().text();
}

constexpr const char* full = R"({
	"scheduling-policy": "FIFO",
	"endpoint-delay": 10,
	"active-chunks-per-dimension": 2,
	"preferred-dataset-splits": 4,
	"all-reduce-implementation": ["ring"],
	"all-gather-implementation": ["direct4"],
	"reduce-scatter-implementation": ["halvingDoubling"],
	"all-to-all-implementation": ["ring", "direct"],
	"collective-optimization": "localBWAware",
	"local-mem-bw": 3350,
	"local-reduction-delay": 1,
	"peak-perf": 989,
	"roofline-enabled": 1,
	"boost-mode": 0, "model-shared-bus": 0, "L": 0, "o": 0, "g": 0, "G": 0.0038,
	"trace-enabled": 0, "replay-only": 0, "track-local-mem": 0
})";

TEST_CASE("every key is understood") {
  const AstraSystem s = read_system(full);
  CHECK(s.scheduling == AstraSystem::Scheduling::fifo);
  CHECK(s.endpoint_delay_s == approx(10e-9));
  CHECK(s.active_chunks == 2);
  CHECK(s.dataset_splits == 4);
  CHECK(s.peak_flops == approx(989e12));
  CHECK(s.local_memory_bytes_per_s == approx(3.35e12));
  REQUIRE(s.implementations.size() == 4);
  CHECK(s.implementations[0].algorithm == "ring");
  CHECK(s.implementations[1].algorithm == "direct");
  CHECK(s.implementations[2].algorithm == "recursive_doubling");
  CHECK(s.implementations[3].algorithm == "pairwise");
  CHECK(s.unused.size() == 10);
  const auto notes = to_notes(s);
  CHECK(
      std::ranges::any_of(notes, [](const auto& n) { return contains(n, "all-gather direct4"); }));
  CHECK(std::ranges::any_of(notes, [](const auto& n) { return contains(n, "boost-mode"); }));
}

TEST_CASE("roofline: rates for recorded operations, where it is on") {
  TraceOptions options;
  apply(read_system(R"({"roofline-enabled": true, "peak-perf": 100, "local-mem-bw": 1000})"),
        options);
  CHECK(options.peak_flops == approx(1e14));
  CHECK(options.memory_bandwidth == approx(1e12));
  TraceOptions off;
  apply(read_system(R"({"peak-perf": 100, "local-mem-bw": 1000})"), off);
  CHECK(off.peak_flops == 0);
  CHECK(contains(system_refusal(R"({"roofline-enabled": 1, "peak-perf": 100})"),
                 "local-mem-bw is missing"));
}

TEST_CASE("algorithms by dimension") {
  const auto of = [](const std::string& list, const std::string& op = "all-reduce") {
    return read_system("{\"" + op + "-implementation\": " + list + "}")
        .implementations.at(0)
        .algorithm;
  };
  CHECK(of(R"(["oneRing"])") == "ring");
  CHECK(of(R"(["doubleBinaryTree"])") == "tree");
  CHECK(of(R"(["oneHalvingDoubling"])") == "halving_doubling");
  CHECK(of(R"(["ring", "ring"])") == "hierarchical");
  CHECK(of(R"(["ring", "direct"])", "reduce-scatter") == "hierarchical");
  CHECK(of(R"(["doubleBinaryTree"])", "all-gather") == "ring");
}

TEST_CASE("mistakes are named with their place") {
  CHECK(contains(system_refusal(R"({"scheduling-polic": "LIFO"})"),
                 "did you mean \"scheduling-policy\""));
  CHECK(contains(system_refusal(R"({"all-reduce-implementation": ["rign"]})"),
                 "sys.json:1:32: unknown collective algorithm \"rign\" (did you mean \"ring\"?)"));
  CHECK(system_refusal(R"({"all-reduce-implementation": ["direct0"]})") != "accepted");
  CHECK(system_refusal(R"({"all-reduce-implementation": ["directx"]})") != "accepted");
  CHECK(contains(system_refusal(R"({"all-reduce-implementation-custom": ["x"]})"),
                 "custom collectives"));
  CHECK(system_refusal(R"({"peak-perf": -1})") != "accepted");
  CHECK(system_refusal(R"({"roofline-enabled": 2})") != "accepted");
  CHECK(contains(system_refusal("[1]"), "a map of keys"));
  CHECK(system_refusal("{") != "accepted");
  CHECK(contains(system_refusal(""), "a map of keys"));
}

TEST_CASE("every prefix of a file is a system or an error") {
  const std::string text = full;
  for (std::size_t n = 0; n <= text.size(); ++n) {
    const auto system = read_astra_system(text.substr(0, n), "sys.json");
    CHECK((system.has_value() || !system.error().what.empty()));
  }
}

}  // namespace
}  // namespace weft::workload
