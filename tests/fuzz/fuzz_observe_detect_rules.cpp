// Detection rules: no text crashes the reader, what it takes can be worked with, and what it
// refuses has a reason.
#include "base/config.hpp"
#include "fuzz_fabric.hpp"
#include "observe/detect/detector.hpp"

namespace {

namespace detect = weft::observe::detect;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const weft::model::Fabric fabric = weft::fuzz::make_fabric(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 1, spines: 2, link: 400 Gbps}");
  const auto config = weft::parse_yaml(weft::fuzz::text_of(data, size), "rules.yaml");
  if (!config) return 0;
  auto rules = detect::read_rules(*config);
  if (!rules) {
    WEFT_CHECK(!rules.error().text().empty());
    return 0;
  }
  for (const detect::Rule& rule : *rules) {
    WEFT_CHECK(rule.truth.size() == std::size_t{1} << rule.terms.size());
    WEFT_CHECK(!rule.truth.front());
  }
  detect::Detector detector(fabric, *std::move(rules), {.lateness_ns = 0, .ports_per_card = 1});
  std::uint64_t serial = 0;
  for (std::int64_t t = 0; t < 4; ++t)
    for (std::size_t signal = 0; signal < detect::signal_count; ++signal)
      for (const std::uint32_t link : {0u, 5u})
        detector.take({.t = {t * weft::ns_per_s},
                       .entity = weft::model::port_of(weft::model::LinkId(link)),
                       .signal = detect::Signal(static_cast<std::uint8_t>(signal)),
                       .value = static_cast<double>(t),
                       .serial = ++serial});
  WEFT_CHECK(detector.finish().singles.size() <= serial);
  return 0;
}
