// read_fabric_nodes: no input crashes, and a fabric that it accepts comes back equal from its own
// export. plan::explain() must cope with whatever it accepts.
#include "fuzz.hpp"
#include "model/formats/fabric_yaml.hpp"
#include "plan/explain/explain.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto config = weft::parse_yaml(weft::fuzz::text_of(data, size), "fuzz.yaml");
  if (!config) return 0;
  const weft::Config* inner = config->find("fabric");
  const weft::model::FabricLimits limits{.nodes = 2'000, .links = 4'000};
  const auto fabric = weft::model::read_fabric_nodes(inner != nullptr ? *inner : *config, limits);
  if (!fabric) {
    WEFT_CHECK(!fabric.error().what.empty());
    return 0;
  }
  const auto again = weft::parse_yaml(to_fabric_yaml(*fabric), "again.yaml");
  WEFT_CHECK(again.has_value());
  const auto back = weft::model::read_fabric_nodes(*again->find("fabric"));
  WEFT_CHECK(back.has_value());
  WEFT_CHECK(digest(*back) == digest(*fabric));
  const weft::plan::FabricFacts facts = weft::plan::explain(*fabric);
  WEFT_CHECK(!to_table(facts).empty() && !to_json(facts).empty());
  return 0;
}
