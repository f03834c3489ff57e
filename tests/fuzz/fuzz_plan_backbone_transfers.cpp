// read_transfers: no input crashes, and what is accepted can be planned with its deadlines met.
#include "fuzz.hpp"
#include "plan/backbone/bulk.hpp"

namespace {

namespace backbone = weft::plan::backbone;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const backbone::Wan wan{.sites = {"a", "b", "c"}, .cables = {{0, 1, 1, {}}, {1, 2, 1, {}}}};
  const backbone::Slots slots{.count = 6, .seconds = 600};
  const auto transfers =
      backbone::read_transfers(weft::fuzz::text_of(data, size), "fuzz", wan, slots);
  if (!transfers) {
    WEFT_CHECK(!transfers.error().what.empty());
    return 0;
  }
  for (const backbone::Transfer& t : *transfers) {
    WEFT_CHECK(t.from < 3 && !t.to.empty() && t.gbit >= 0);
    double most = 0;
    for (std::uint32_t s = 0; s < slots.count; ++s)
      most += t.may_send(s) ? t.gbps_max * slots.seconds : 0;
    WEFT_CHECK(most * 1.001 >= t.gbit);
  }
  return 0;
}
