// The configuration of `weft serve`: the file of --config, or a section of a site file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "adapt/live/alertmanager.hpp"
#include "adapt/live/command_device_state.hpp"
#include "adapt/live/job_feed.hpp"
#include "adapt/live/nats_feed.hpp"
#include "adapt/live/tickets.hpp"
#include "adapt/live/webhook.hpp"
#include "app/rehearse/rehearse.hpp"
#include "base/config.hpp"
#include "base/result.hpp"
#include "cli/serve_actuator.hpp"
#include "cli/serve_te.hpp"
#include "cli/serve_traces.hpp"
#include "cli/vendor_link.hpp"
#include "observe/sli/objectives.hpp"
#include "observe/telemetry/alertmanager.hpp"
#include "operate/repair/policy.hpp"
#include "operate/triage/learned.hpp"
#include "operate/triage/rules.hpp"
#include "serve/settings.hpp"

namespace weft::cli {

// Each section for the room that it belongs to.
struct ServeConfig {
  serve::ControllerSettings controller;
  operate::triage::Rules rules;
  operate::triage::LearnedRelations relations;
  operate::repair::Policy policy;
  observe::sli::Settings objectives;
  std::optional<ActuatorSettings> actuator;
  std::optional<adapt::live::DeviceCommands> devices;
  std::optional<adapt::live::JobFeedSettings> jobs;
  TraceSettings traces;
  std::vector<adapt::live::WebhookSettings> webhooks;
  std::vector<adapt::live::AlertmanagerSettings> alertmanagers;
  std::vector<adapt::live::TicketSettings> tickets;
  std::optional<VendorSettings> vendor;
  std::optional<TeSettings> te;
  std::optional<adapt::live::NatsFeedSettings> nats;
  observe::telemetry::AlertMapping alerts = observe::telemetry::AlertMapping::built_in();
  app::RehearseModel world;  // its people and actuators
};

// `key`: the section of the file that holds it; "": the whole file. Without a path all is as
// default. Fails: every error found, with its place.
Result<ServeConfig> read_serve_config(const std::string& path, const std::string& key);

}  // namespace weft::cli
