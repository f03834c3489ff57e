// What commands read to understand devices: names, messages, rules. An empty path names no file.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "adapt/snmp/credentials.hpp"
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
// Devices that are polled by SNMP, of several CSV files.
Result<std::vector<adapt::snmp::Target>> load_snmp_targets(const std::vector<std::string>& paths);
// A span of time given by that option. Fails: as parse_duration, and below 100 ms.
Result<std::chrono::milliseconds> read_span_ms(const std::string& text, const char* option);

}  // namespace weft::cli
