// A scrape: no bytes crash, every line is counted once, samples are numbers that fit their table,
// and what they mean makes records that read back.
#include <cmath>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/line_reader.hpp"
#include "fuzz_fabric.hpp"
#include "model/events/record.hpp"
#include "observe/telemetry/metrics.hpp"
#include "observe/telemetry/prometheus.hpp"

namespace {

namespace telemetry = weft::observe::telemetry;

struct Bed {
  weft::model::Fabric fabric = weft::fuzz::make_fabric(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 1, spines: 2, link: 400 Gbps}");
  telemetry::Inventory inventory{fabric};
  telemetry::PrometheusMapping mapping = telemetry::PrometheusMapping::built_in();
  telemetry::MetricRules rules = telemetry::default_metric_rules();
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Bed bed;
  const std::string_view bytes = weft::fuzz::text_of(data, size);
  telemetry::PrometheusReader reader(bed.mapping);
  telemetry::MetricReader metrics(bed.inventory, bed.rules, {});
  constexpr std::int64_t start_s = 1'767'225'600;
  for (std::int64_t round = 0; round < 3; ++round) {
    const weft::Timestamp now{(start_s + 30 * round) * weft::ns_per_s};
    std::vector<weft::port::Sample> samples;
    reader.read(bytes, "host:0", now, samples);
    for (const auto& sample : samples) WEFT_CHECK(!std::isnan(sample.value));
    metrics.take(samples, now);
  }
  const telemetry::PrometheusCounts& counts = reader.counts();
  WEFT_CHECK(counts.lines == counts.comments + counts.mapped + counts.unmapped + counts.malformed +
                                 counts.not_numbers);
  WEFT_CHECK(metrics.counts().samples == counts.mapped);
  std::string written;
  const weft::model::RecordSet& set = metrics.records();
  for (const auto& row : set.rows) written += to_json(bed.fabric, set, row) + "\n";
  weft::LineReader again(written, "records");
  weft::model::RecordCounts read;
  WEFT_CHECK(weft::model::read_records(bed.fabric, again, read).has_value());
  return 0;
}
