// The on-box agent: reads logs and counters of its device, detects, and sends records to the
// service.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "adapt/live/signals.hpp"
#include "adapt/live/uplink.hpp"
#include "base/result.hpp"
#include "model/fabric/fabric.hpp"
#include "observe/detect/rules.hpp"
#include "observe/telemetry/catalogue.hpp"
#include "observe/telemetry/inventory.hpp"

namespace weft::app {

struct AgentSettings {
  model::Fabric fabric;
  model::NodeId device;  // on which the agent runs
  std::string name;      // its
  observe::detect::Rules rules;
  observe::telemetry::Catalogue catalogue = observe::telemetry::Catalogue::built_in();
  std::int64_t interval_ns = ns_per_s;  // between heartbeats and counter reads
  std::vector<std::string> logs = {};   // files to follow
  std::uint32_t ports_per_card = 0;
  bool quiet = false;
};

// Runs until a signal ends it. Without an uplink, records go to standard output as JSON lines.
// Fails: Errc::io where standard output is gone.
Status run_agent(const AgentSettings& settings, observe::telemetry::Inventory& inventory,
                 std::optional<adapt::live::Uplink>& uplink, adapt::live::Signals& signals);

}  // namespace weft::app
