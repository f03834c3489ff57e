// read_prices: no input crashes, and what is accepted can be bought from.
#include "base/config.hpp"
#include "fuzz.hpp"
#include "plan/design/prices.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto config = weft::parse_yaml(weft::fuzz::text_of(data, size), "fuzz.yaml");
  if (!config) return 0;
  const auto prices = weft::plan::read_prices(*config);
  if (!prices) {
    WEFT_CHECK(!prices.error().what.empty());
    return 0;
  }
  for (const auto& s : prices->switches) WEFT_CHECK(s.fits({{s.rate, s.ports}}));
  for (const auto& m : prices->media) WEFT_CHECK(prices->find_medium(m.rate, m.reach_m) != nullptr);
  for (const auto& n : prices->nics) WEFT_CHECK(prices->find_nic(n.rate) != nullptr);
  return 0;
}
