// parse_job_list: whatever it accepts, no job runs twice, and replaying it frees what it took.
#include "fuzz.hpp"
#include "fuzz_fabric.hpp"
#include "plan/place/job_list.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::plan::place;
  const auto events = parse_job_list(weft::fuzz::text_of(data, size), "jobs.csv");
  if (!events) {
    WEFT_CHECK(!events.error().what.empty() && events.error().where.line > 0);
    return 0;
  }
  static const weft::model::Fabric fabric =
      weft::fuzz::make_fabric("{generator: three_tier, pods: 2, racks: 3, gpus_per_host: 1}");
  FreeHosts free(fabric);
  const ReplayResult result = replay(free, *events, {.feed_of = {}}, [] { return 0; });
  WEFT_CHECK(result.started + result.refused == result.decisions.size());
  WEFT_CHECK(result.zones >= result.zones_least && result.racks >= result.racks_least);
  return 0;
}
