#include "cli/telemetry_files.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/config.hpp"
#include "base/file.hpp"
#include "base/units.hpp"

namespace weft::cli {

namespace telemetry = observe::telemetry;

Result<telemetry::Inventory> load_inventory(const model::Fabric& fabric, const std::string& path) {
  telemetry::Inventory out(fabric);
  if (path.empty()) return out;
  WEFT_TRY(const std::string text, read_file(path));
  WEFT_TRY_STATUS(out.add_csv(text, path));
  return out;
}

Result<telemetry::Catalogue> load_catalogue(const std::string& path) {
  if (path.empty()) return telemetry::Catalogue::built_in();
  WEFT_TRY(const Config own, load_yaml(path));
  return telemetry::Catalogue::from_yaml(own);
}

Result<telemetry::MetricRules> load_metric_rules(const std::string& path) {
  if (path.empty()) return telemetry::default_metric_rules();
  WEFT_TRY(const Config own, load_yaml(path));
  return telemetry::read_metric_rules(own);
}

Result<std::vector<adapt::snmp::Target>> load_snmp_targets(const std::vector<std::string>& paths) {
  std::vector<adapt::snmp::Target> out;
  for (const std::string& path : paths) {
    WEFT_TRY(const std::string text, read_file(path));
    WEFT_TRY(std::vector<adapt::snmp::Target> more, adapt::snmp::read_targets(text, path));
    std::ranges::move(more, std::back_inserter(out));
  }
  return out;
}

Result<std::chrono::milliseconds> read_span_ms(const std::string& text, const char* option) {
  WEFT_TRY(const Duration span, parse_duration({text, {option, 0, 0}}));
  if (span.ps >= 100 * ps_per_ms) return std::chrono::milliseconds(span.ps / ps_per_ms);
  return fail(Errc::value, {option, 0, 0}, "less than 100 ms", "write e.g. \"30 s\"");
}

}  // namespace weft::cli
