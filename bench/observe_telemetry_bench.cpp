// Raw syslog to records, by dialect: what is known, what is benign, what nobody knows.
#include <benchmark/benchmark.h>

#include <string>
#include <string_view>
#include <vector>

#include "adapt/sim/storm.hpp"
#include "adapt/sim/storm_syslog.hpp"
#include "base/check.hpp"
#include "base/config.hpp"
#include "model/formats/build_fabric.hpp"
#include "observe/telemetry/metrics.hpp"
#include "observe/telemetry/prometheus.hpp"
#include "observe/telemetry/syslog_reader.hpp"

namespace {

namespace sim = weft::adapt::sim;
namespace telemetry = weft::observe::telemetry;

weft::model::Fabric zone() {
  const auto section =
      weft::parse_yaml("{generator: ai_zone, racks: 252, spines: 18, link: 400 Gbps}", "bench");
  WEFT_CHECK(section.has_value());
  auto fabric = weft::model::build_fabric(*section);
  WEFT_CHECK(fabric.has_value());
  return *std::move(fabric);
}

// Lines of a storm of 252 racks, both roles in one dialect; a quarter to a half is benign.
std::vector<std::string> lines_of(const weft::model::Fabric& fabric,
                                  const sim::StormOptions& options) {
  const auto storm = sim::generate_storm(fabric, options);
  WEFT_CHECK(storm.has_value());
  const sim::StormScribe scribe(fabric, options);
  std::vector<std::string> out;
  for (const sim::StormLine& line : storm->lines)
    if (line.source == weft::model::Source::syslog) out.push_back(scribe.captured(line));
  return out;
}

void read_lines(benchmark::State& state, const weft::model::Fabric& fabric,
                const sim::StormScribe& scribe, const std::vector<std::string>& lines) {
  telemetry::Inventory inventory(fabric);
  WEFT_CHECK(inventory.add_csv(scribe.inventory(), "inventory").has_value());
  const auto catalogue = telemetry::Catalogue::built_in();
  telemetry::SyslogReader reader(inventory, catalogue, {});
  std::int64_t bytes = 0;
  for (const std::string& line : lines) bytes += static_cast<std::int64_t>(line.size());
  for (auto _ : state) {
    for (const std::string& line : lines) reader.take_captured(line);
    benchmark::DoNotOptimize(reader.take_records());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(lines.size()));
  state.SetBytesProcessed(state.iterations() * bytes);
}

void read_syslog(benchmark::State& state) {
  const weft::model::Fabric fabric = zone();
  const auto dialect = static_cast<telemetry::Dialect>(state.range(0));
  state.SetLabel(std::string(to_text(dialect)));
  sim::StormOptions options;
  options.dialects = {{"rtsw", dialect}, {"ctsw", dialect}};
  read_lines(state, fabric, sim::StormScribe(fabric, options), lines_of(fabric, options));
}
BENCHMARK(read_syslog)->DenseRange(0, 5)->Unit(benchmark::kMillisecond);

// Messages that are in no catalogue: the text is kept.
void read_unknown_syslog(benchmark::State& state) {
  const weft::model::Fabric fabric = zone();
  const sim::StormOptions options;
  std::vector<std::string> lines;
  for (int i = 0; i < 10'000; ++i)
    lines.push_back("<30>Mar  1 00:00:01 rtsw-" + std::to_string(i % 252) +
                    " somed[12]: what nobody has seen before, number " + std::to_string(i));
  read_lines(state, fabric, sim::StormScribe(fabric, options), lines);
}
BENCHMARK(read_unknown_syslog)->Unit(benchmark::kMillisecond);

void make_storm(benchmark::State& state) {
  const weft::model::Fabric fabric = zone();
  for (auto _ : state) benchmark::DoNotOptimize(sim::generate_storm(fabric, {}));
  state.SetItemsProcessed(state.iterations() * 200'000);
}
BENCHMARK(make_storm)->Unit(benchmark::kMillisecond);

// One poll of all switch ports after another: state, four counters, light; all is well.
void read_metrics(benchmark::State& state) {
  using weft::port::Metric;
  const weft::model::Fabric fabric = zone();
  const telemetry::Inventory inventory(fabric);
  const auto rules = telemetry::default_metric_rules();
  telemetry::MetricReader reader(inventory, rules, {});
  std::vector<weft::port::Sample> poll;
  for (const auto node : fabric.nodes()) {
    if (!fabric.is_switch(node)) continue;
    for (const auto link : fabric.out(node))
      for (const Metric metric : {Metric::oper_up, Metric::in_octets, Metric::in_packets,
                                  Metric::in_errors, Metric::in_discards, Metric::rx_power_dbm})
        poll.push_back({{}, fabric.name(node), fabric.interface_name(link), metric, 0, 1});
  }
  weft::Timestamp now{1'767'225'600 * weft::ns_per_s};
  for (auto _ : state) {
    now.ns += 30 * weft::ns_per_s;
    for (weft::port::Sample& sample : poll) sample.t = now;
    reader.take(poll, now);
  }
  WEFT_CHECK(reader.records().rows.empty());
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(poll.size()));
}
BENCHMARK(read_metrics)->Unit(benchmark::kMillisecond);

// A page of node_exporter's kind: a tenth of its lines are of use.
void read_prometheus(benchmark::State& state) {
  const auto mapping = telemetry::PrometheusMapping::built_in();
  std::string page;
  for (int i = 0; i < 1'000; ++i) {
    const std::string n = std::to_string(i);
    page += "node_network_receive_packets_total{device=\"eth" + n + "\"} 1.234567e+09\n";
    for (int k = 0; k < 9; ++k)
      page += "node_cpu_seconds_total{cpu=\"" + n + "\",mode=\"m" + std::to_string(k) +
              "\"} 123456.78\n";
  }
  telemetry::PrometheusReader reader(mapping);
  std::vector<weft::port::Sample> samples;
  for (auto _ : state) {
    samples.clear();
    reader.read(page, "host:0", {}, samples);
    benchmark::DoNotOptimize(samples.data());
  }
  state.SetItemsProcessed(state.iterations() * 10'000);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(page.size()));
}
BENCHMARK(read_prometheus);

// The same where every line is of use.
void read_prometheus_all(benchmark::State& state) {
  const auto mapping = telemetry::PrometheusMapping::built_in();
  std::string page;
  for (int i = 0; i < 10'000; ++i)
    page += "ifHCInOctets{ifDescr=\"Ethernet1/" + std::to_string(i) + "\",ifIndex=\"" +
            std::to_string(i) + "\",ifName=\"Ethernet1/" + std::to_string(i) + "\"} 1.234567e+09\n";
  telemetry::PrometheusReader reader(mapping);
  std::vector<weft::port::Sample> samples;
  for (auto _ : state) {
    samples.clear();
    reader.read(page, "host:0", {}, samples);
    benchmark::DoNotOptimize(samples.data());
  }
  state.SetItemsProcessed(state.iterations() * 10'000);
}
BENCHMARK(read_prometheus_all);

}  // namespace
