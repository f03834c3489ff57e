// read_world_faults: no input crashes, what is refused is told with its place, and what is accepted
// can happen.
#include "adapt/sim/world_faults.hpp"
#include "fuzz_fabric.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace sim = weft::adapt::sim;
  static const auto fabric = weft::fuzz::make_fabric(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, spines: 2}");
  const auto config = weft::parse_yaml(weft::fuzz::text_of(data, size), "fuzz.yaml");
  if (!config) return 0;
  constexpr weft::Timestamp start{1'800'000'000 * weft::ns_per_s};
  const auto faults = sim::read_world_faults(fabric, *config, start);
  if (!faults) {
    WEFT_CHECK(!faults.error().what.empty());
    return 0;
  }
  weft::Timestamp before = start;
  for (const sim::TimedFault& fault : *faults) {
    WEFT_CHECK(fault.at >= before);
    before = fault.at;
    WEFT_CHECK(!name(fabric, fault.start.part).empty());
    WEFT_CHECK(fault.start.loss >= 0 && fault.start.loss <= 1 && fault.start.delay_ns >= 0);
  }
  sim::Operations net(fabric, {}, start);
  for (std::size_t i = 0; i < faults->size() && i < 4; ++i)
    net.begin_at((*faults)[i].at, (*faults)[i].start);
  net.advance({start.ns + weft::ns_per_minute});
  for (const auto& [link, trouble] : net.troubles())
    WEFT_CHECK(trouble.loss >= 0 && trouble.loss <= 1 && trouble.damage >= 0);
  return 0;
}
