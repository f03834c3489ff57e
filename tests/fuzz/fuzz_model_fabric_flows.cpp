// read_flows never crashes, and what it accepts refers only to flows and nodes that exist.
#include "fuzz_fabric.hpp"
#include "model/fabric/flow_set.hpp"

namespace {

const weft::model::Fabric& fabric() {
  static const weft::model::Fabric built = weft::fuzz::make_fabric(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 2, spines: 2}");
  return built;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using weft::model::FlowSet;
  const auto set = weft::model::read_flows(fabric(), weft::fuzz::text_of(data, size), "flows.csv");
  if (!set) {
    WEFT_CHECK(!set.error().text().empty());
    return 0;
  }
  for (std::size_t i = 0; i < set->flows.size(); ++i) {
    const FlowSet::Flow& flow = set->flows[i];
    WEFT_CHECK(fabric().kind(flow.src) == weft::model::NodeKind::nic);
    WEFT_CHECK(flow.after == FlowSet::none || flow.after < set->flows.size());
    for (const weft::model::NodeId node : set->via_of(flow)) WEFT_CHECK(fabric().is_switch(node));
    WEFT_CHECK(flow.size.count >= 0);
    WEFT_CHECK(!set->ids[i].empty());
  }
  return 0;
}
