// read_flows never crashes, and what it accepts refers only to flows and nodes that exist.
#include "base/check.hpp"
#include "engine/fluid/flow_run.hpp"
#include "fuzz.hpp"
#include "model/generate.hpp"

namespace {

const weft::model::Fabric& fabric() {
  static const weft::model::Fabric built = [] {
    const auto section = weft::parse_yaml(
        "{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 2, spines: 2}", "f");
    return *weft::model::build_fabric(*section);
  }();
  return built;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto set = weft::engine::fluid::read_flows(fabric(), text, "flows.csv");
  if (!set) {
    WEFT_CHECK(!set.error().text().empty());
    return 0;
  }
  for (const auto& flow : set->flows) {
    WEFT_CHECK(fabric().kind(flow.src) == weft::model::NodeKind::nic);
    WEFT_CHECK(flow.after == weft::engine::fluid::FlowSet::none || flow.after < set->flows.size());
    WEFT_CHECK(flow.via + flow.via_count <= set->via.size());
    WEFT_CHECK(flow.size.count >= 0);
  }
  return 0;
}
