// read_site: no input crashes, and what is accepted can be run: options in pairs, no blank names.
#include "app/site/site_file.hpp"
#include "base/config.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto config = weft::parse_yaml(weft::fuzz::text_of(data, size), "fuzz.yaml");
  if (!config) return 0;
  const auto site = weft::app::read_site(*config, "/etc/weft/fuzz.yaml");
  if (!site) {
    WEFT_CHECK(!site.error().what.empty());
    return 0;
  }
  WEFT_CHECK(!weft::app::serve_arguments(*site).empty());
  for (const auto& feed : site->feeds) {
    WEFT_CHECK(!feed.name.empty() && feed.arguments.size() >= 3);
    WEFT_CHECK(feed.node.empty() || !site->lab.empty());
  }
  if (site->probes) WEFT_CHECK(site->probes->window.find(' ') == std::string::npos);
  return 0;
}
