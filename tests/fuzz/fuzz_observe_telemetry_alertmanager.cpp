// A webhook's body: no bytes crash, each alert is counted once, and its record reads back.
#include <string>

#include "base/config.hpp"
#include "base/line_reader.hpp"
#include "fuzz_fabric.hpp"
#include "model/events/record.hpp"
#include "observe/telemetry/alertmanager.hpp"

namespace {

namespace telemetry = weft::observe::telemetry;

struct Bed {
  weft::model::Fabric fabric = weft::fuzz::make_fabric(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 1, spines: 2, link: 400 Gbps}");
  telemetry::Inventory inventory{fabric};
  telemetry::AlertMapping mapping = telemetry::AlertMapping::built_in();
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Bed bed;
  telemetry::AlertReader reader(bed.inventory, bed.mapping);
  const weft::Timestamp now{1'767'225'600 * weft::ns_per_s};
  const bool is_payload = reader.read(weft::fuzz::text_of(data, size), now).has_value();
  const telemetry::AlertCounts& counts = reader.counts();
  const weft::model::RecordSet& set = reader.records();
  WEFT_CHECK(is_payload || (counts.refused == 1 && set.rows.empty()));
  WEFT_CHECK(counts.alerts == counts.malformed + counts.firing + counts.resolved);
  WEFT_CHECK(set.rows.size() == counts.firing + counts.resolved);
  std::string written;
  for (const auto& row : set.rows) {
    const std::string json = to_json(bed.fabric, set, row);
    if (json.size() < weft::line_bytes_max) written += json + "\n";
  }
  weft::LineReader again(written, "records");
  weft::model::RecordCounts read;
  WEFT_CHECK(weft::model::read_records(bed.fabric, again, read).has_value());
  return 0;
}
