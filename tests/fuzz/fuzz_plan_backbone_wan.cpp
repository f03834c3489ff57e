// read_wan, read_demands, read_series, read_demand_series: no input crashes, what is accepted
// holds together.
#include "fuzz.hpp"
#include "plan/backbone/wan.hpp"

namespace {

namespace backbone = weft::plan::backbone;

void check(const backbone::WanFile& file) {
  for (const backbone::Cable& c : file.wan.cables) {
    WEFT_CHECK(c.a < file.wan.sites.size() && c.b < file.wan.sites.size() && c.a != c.b);
    WEFT_CHECK(c.gbps > 0 && c.gbps <= 1e9);
  }
  for (const backbone::Demand& d : file.demands)
    WEFT_CHECK(d.from < file.wan.sites.size() && d.to < file.wan.sites.size() && d.gbps > 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = weft::fuzz::text_of(data, size);
  const auto file = backbone::read_wan(text, "fuzz", {.capacity = {weft::Rate{1'000'000}}});
  if (file)
    check(*file);
  else
    WEFT_CHECK(!file.error().what.empty());
  const backbone::Wan wan{.sites = {"a", "b", "c"}, .cables = {{0, 1, 1, {}}, {1, 2, 1, {}}}};
  if (backbone::is_series(text)) {
    const auto series = backbone::read_series(text, "fuzz", wan);
    if (series) WEFT_CHECK(series->mbps.size() == series->times.size() * series->pairs.size());
    return 0;
  }
  const auto demands = backbone::read_demands(text, "fuzz", wan);
  const auto timed = backbone::read_demand_series(text, "fuzz", wan);
  if (timed) WEFT_CHECK(demands && timed->mbps.size() == timed->times.size() * timed->pairs.size());
  if (!demands) return 0;
  check({wan, *demands});
  const auto back = backbone::read_demands(write_demands(wan, *demands), "again", wan);
  WEFT_CHECK(back.has_value() && back->size() == demands->size());
  return 0;
}
