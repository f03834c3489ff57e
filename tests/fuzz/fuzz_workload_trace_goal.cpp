// GOAL in both forms: no input crashes, errors name a place in the file, and a workload that is
// accepted has a graph that finish() accepts again.
#include "fuzz.hpp"
#include "workload/trace/goal.hpp"
#include "workload/trace/trace.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::workload;
  const TraceFile file{"fuzz.goal", std::string(weft::fuzz::text_of(data, size))};
  const bool binary = is_goal_binary(file.content);
  const auto parsed = binary ? parse_goal_binary(file.content, file.path)
                             : parse_goal_text(file.content, file.path);
  if (!parsed) {
    WEFT_CHECK(binary || parsed.error().where.line >= 1);
    WEFT_CHECK(!parsed.error().what.empty());
    return 0;
  }
  // A million idle ranks are allowed, but not worth an input's time here.
  if (parsed->rank_count > 1000) return 0;
  const auto workload = read_goal(file, {.goal_overhead_s = 1e-6, .goal_eager_bytes = 8});
  if (!workload) return 0;
  weft::model::OpGraph graph = workload->graph;
  WEFT_CHECK(graph.finish().has_value());
  return 0;
}
