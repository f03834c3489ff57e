// HostNames::read_feeds: every host has one feed, or there is an error.
#include "fuzz.hpp"
#include "fuzz_fabric.hpp"
#include "plan/place/host_names.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const weft::model::Fabric fabric =
      weft::fuzz::make_fabric("{generator: three_tier, pods: 2, racks: 3, gpus_per_host: 1}");
  static const weft::plan::place::HostNames names(fabric);
  const auto feeds = names.read_feeds(weft::fuzz::text_of(data, size), "feeds.csv");
  if (!feeds) {
    WEFT_CHECK(!feeds.error().what.empty());
    return 0;
  }
  WEFT_CHECK(feeds->of.size() == fabric.hosts().size());
  for (const std::uint32_t feed : feeds->of) WEFT_CHECK(feed < feeds->names.size());
  return 0;
}
