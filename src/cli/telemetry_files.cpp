#include "cli/telemetry_files.hpp"

#include "base/config.hpp"
#include "base/file.hpp"

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

}  // namespace weft::cli
