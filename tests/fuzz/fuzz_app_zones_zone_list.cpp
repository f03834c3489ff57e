// read_zone_list: no input crashes, and what is accepted can be asked.
#include "app/zones/zone_list.hpp"
#include "base/config.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto config = weft::parse_yaml(weft::fuzz::text_of(data, size), "fuzz.yaml");
  if (!config) return 0;
  const auto list = weft::app::read_zone_list(*config, "/etc/weft/fuzz.yaml");
  if (!list) {
    WEFT_CHECK(!list.error().what.empty());
    return 0;
  }
  WEFT_CHECK(!list->zones.empty() && list->every.count() > 0 && list->timeout.count() > 0);
  for (const auto& zone : list->zones) WEFT_CHECK(!zone.name.empty() && !zone.urls.empty());
  return 0;
}
