// The files of a storm.
#pragma once

#include <string>

#include "adapt/sim/storm.hpp"
#include "base/result.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::adapt::sim {

// Writes into `directory`: records.jsonl, truth.jsonl, labels.jsonl, storm.json; as syslog also
// syslog.log, with the lines that are no records then, and inventory.csv. docs/storm.md, "Files".
// Fails: Errc::io.
Status write_storm(const model::Fabric& fabric, const Storm& storm, const StormOptions& options,
                   StormFormat format, const std::string& directory);

// What was made, for people and as JSON: counts by source and by type.
std::string storm_summary(const Storm& storm, const StormOptions& options);
std::string storm_json(const Storm& storm, const StormOptions& options);

}  // namespace weft::adapt::sim
