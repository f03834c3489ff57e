// A page of NetBox's cables: no text crashes; what is taken has names at both ends, and the next
// page is one of cables.
#include "adapt/live/netbox.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::adapt::live::NetBoxCables out;
  const auto next =
      weft::adapt::live::take_netbox_page(weft::fuzz::text_of(data, size), {"page", 0, 0}, out);
  if (next)
    WEFT_CHECK(next->empty() || next->starts_with("/api/dcim/cables/"));
  else
    WEFT_CHECK(!next.error().what.empty());
  for (const weft::model::SeenCable& cable : out.cables)
    for (const auto& end : {cable.a, cable.b}) WEFT_CHECK(!end.device.empty() && !end.port.empty());
  return 0;
}
