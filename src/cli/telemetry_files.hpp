// What commands read to understand devices: names, messages, rules. An empty path names no file.
#pragma once

#include <string>

#include "base/result.hpp"
#include "observe/telemetry/catalogue.hpp"
#include "observe/telemetry/inventory.hpp"
#include "observe/telemetry/metric_rules.hpp"

namespace weft::cli {

// The fabric's names and those of the CSV file. The fabric must outlive it.
Result<observe::telemetry::Inventory> load_inventory(const model::Fabric& fabric,
                                                     const std::string& path);
// The built-in messages, with the file's laid over them.
Result<observe::telemetry::Catalogue> load_catalogue(const std::string& path);
// The default rules, with the file's laid over them.
Result<observe::telemetry::MetricRules> load_metric_rules(const std::string& path);

}  // namespace weft::cli
