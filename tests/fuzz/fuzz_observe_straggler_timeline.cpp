// read_timeline and what plays it: no input crashes or hangs, errors name the file and a hint.
#include <cmath>
#include <string>

#include "fuzz.hpp"
#include "observe/straggler/what_if.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::observe::straggler;
  std::string text(weft::fuzz::text_of(data, size));
  const auto timeline = read_timeline(text, "t.json");
  if (!timeline) {
    WEFT_CHECK(timeline.error().where.file == "t.json" && !timeline.error().hint.empty());
    return 0;
  }
  WEFT_CHECK(timeline->start_s.size() ==
             timeline->steps.size() * timeline->replicas.size() * timeline->ops.size());
  const auto model = StepModel::read(*timeline, "t.json");
  if (!model) {
    WEFT_CHECK(model.error().where.file == "t.json");
    return 0;
  }
  const Report report = analyse(*timeline, *model);
  WEFT_CHECK(report.workers.size() == timeline->replicas.size() * timeline->stage_count);
  WEFT_CHECK(!ideal_trace(*timeline, *model).empty());
  return 0;
}
