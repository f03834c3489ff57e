// read_connection_matrix never crashes, and what it accepts refers only to flows and nodes that
// exist. The first byte chooses the unit of starts.
#include "fuzz_fabric.hpp"
#include "model/formats/connection_matrix.hpp"

namespace {

const weft::model::Fabric& fabric() {
  static const weft::model::Fabric built = weft::fuzz::make_fabric(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 2, spines: 2}");
  return built;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using weft::model::FlowSet;
  if (size == 0) return 0;
  using Unit = weft::model::ConnectionMatrixOptions::StartUnit;
  const std::string_view text = weft::fuzz::text_of(data + 1, size - 1);
  weft::LineReader lines(text, "flows.cm");
  const bool recognised = weft::model::is_connection_matrix(text);
  const auto set = weft::model::read_connection_matrix(
      fabric(), lines, {.start_unit = static_cast<Unit>(data[0] % 4)});
  if (!set) {
    WEFT_CHECK(!set.error().text().empty());
    return 0;
  }
  WEFT_CHECK(recognised || text.find("Nodes") != std::string_view::npos);
  for (std::size_t i = 0; i < set->flows.size(); ++i) {
    const FlowSet::Flow& flow = set->flows[i];
    WEFT_CHECK(fabric().kind(flow.src) == weft::model::NodeKind::nic);
    WEFT_CHECK(fabric().kind(flow.dst) == weft::model::NodeKind::nic);
    WEFT_CHECK(flow.after == FlowSet::none || flow.after < set->flows.size());
    WEFT_CHECK(flow.size.count > 0);
    WEFT_CHECK(flow.start.ps >= 0);
    WEFT_CHECK(!set->ids[i].empty());
  }
  return 0;
}
