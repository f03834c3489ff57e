// read_contracts: no input crashes; what is accepted makes sense, and can be decided.
#include "fuzz.hpp"
#include "plan/backbone/entitle.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace backbone = weft::plan::backbone;
  const backbone::Wan wan{.sites = {"a", "b", "c"}, .cables = {{0, 1, 1, {}}, {1, 2, 1, {}}}};
  const auto contracts = backbone::read_contracts(weft::fuzz::text_of(data, size), "fuzz", wan);
  if (!contracts) {
    WEFT_CHECK(!contracts.error().what.empty());
    return 0;
  }
  for (const backbone::Contract& c : *contracts) {
    WEFT_CHECK(c.site < wan.sites.size() && !c.peers.empty() && c.gbps > 0);
    WEFT_CHECK(c.availability > 0 && c.availability <= 1 && c.priority < backbone::class_count);
    for (const std::uint32_t peer : c.peers) WEFT_CHECK(peer < wan.sites.size() && peer != c.site);
  }
  if (contracts->size() > 8) return 0;
  const auto answer = backbone::entitle(wan, *contracts, {});
  WEFT_CHECK(answer.has_value() && answer->verdicts.size() == contracts->size());
  return 0;
}
