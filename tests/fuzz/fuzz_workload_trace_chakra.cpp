// Chakra traces (streams, gzip, archives, PyTorch's JSON): no input crashes, and a workload that is
// accepted has a graph that finish() accepts again.
#include "fuzz.hpp"
#include "workload/trace/trace.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::workload;
  const TraceFile file{"fuzz.0.et", std::string(weft::fuzz::text_of(data, size))};
  const TraceOptions options{.groups = TraceFile{"groups.json", R"({"1": [0, 1], "2": [2, 3]})"},
                             .peak_flops = 1e12,
                             .memory_bandwidth = 1e9};
  const auto workload = read_chakra(std::span(&file, 1), options);
  if (!workload) {
    WEFT_CHECK(!workload.error().what.empty());
    return 0;
  }
  weft::model::OpGraph graph = workload->graph;
  WEFT_CHECK(graph.finish().has_value());
  WEFT_CHECK(!workload->notes.empty() || graph.rank_count == 1 || graph.programs.size() > 1);
  return 0;
}
