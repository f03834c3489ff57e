// The readers of weft te: no input crashes, errors name the file, and marks that were read can be
// judged, written and read again as they were.
#include <string>

#include "fuzz.hpp"
#include "model/formats/build_fabric.hpp"
#include "operate/te/flow_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  using namespace weft::operate::te;
  static const model::Fabric fabric = [] {
    const auto section =
        parse_yaml("{generator: ai_zone, racks: 2, gpus_per_host: 2, spines: 2}", "f");
    return *model::build_fabric(*section);
  }();
  static const route::Zone zone = *route::find_zone(fabric);
  static route::Router hashing = *route::Router::create(fabric, {}, 1);
  const std::string_view text = fuzz::text_of(data, size);
  const auto flows = read_flows_csv(fabric, text, "f.csv");
  if (!flows) WEFT_CHECK(flows.error().where.file == "f.csv");
  const auto marked = read_marks_csv(fabric, zone, text, "m.csv");
  if (!marked) {
    WEFT_CHECK(marked.error().where.file == "m.csv");
    return 0;
  }
  const Judgement j = judge(zone, hashing, {}, marked->flows, marked->marks);
  WEFT_CHECK(j.cut_off.empty());
  const Decision d = decide(zone, hashing, {}, marked->flows, marked->marks);
  WEFT_CHECK(d.judgement.worst <= d.judgement.hashed * (1 + 1e-9));
  const auto again = read_marks_csv(
      fabric, zone, marks_csv(fabric, zone, marked->flows, marked->marks), "again.csv");
  WEFT_CHECK(again && again->marks == marked->marks);
  return 0;
}
