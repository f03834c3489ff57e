// read_nccl_topology: no input crashes, and what it accepts can be wired.
#include "fuzz.hpp"
#include "model/generate/nccl_topology.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto host = weft::model::read_nccl_topology(weft::fuzz::text_of(data, size), "fuzz.xml");
  if (!host) {
    WEFT_CHECK(!host.error().what.empty() && !host.error().hint.empty());
    return 0;
  }
  using weft::model::HostSpec;
  for (const HostSpec::Wire& wire : host->wires) {
    WEFT_CHECK(wire.a != wire.b && wire.rate.bps > 0);
    for (const std::uint32_t end : {wire.a, wire.b})
      WEFT_CHECK(end == HostSpec::host_part || end < host->parts.size());
  }
  WEFT_CHECK(host->gpu_count() + host->nic_count() > 0);
  return 0;
}
