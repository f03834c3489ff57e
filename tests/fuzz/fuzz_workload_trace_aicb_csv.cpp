// AICB CSV: no input crashes, and a workload that is accepted has a graph that finish() accepts.
#include "fuzz.hpp"
#include "workload/trace/trace.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const weft::workload::TraceFile file{"fuzz.csv", std::string(weft::fuzz::text_of(data, size))};
  static_cast<void>(weft::workload::is_aicb_csv(file));
  const auto workload = weft::workload::read_aicb_csv(file, {.ranks = 64});
  if (!workload) {
    WEFT_CHECK(!workload.error().what.empty());
    return 0;
  }
  weft::model::OpGraph graph = workload->graph;
  WEFT_CHECK(graph.finish().has_value());
  WEFT_CHECK(graph.rank_count == 64);
  return 0;
}
