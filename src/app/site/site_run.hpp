// A site at work: the service, its feeds and its probes as children of one process.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "adapt/live/signals.hpp"
#include "app/site/probe_plan.hpp"
#include "app/site/site_file.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::app {

// Held by the process that runs a site, in the site's state folder; a killed process lets go.
// No descriptor inside where another holds it. Fails: Errc::io.
Result<Fd> lock_site(const std::string& state);
bool is_site_running(const std::string& state);

// What the running process wrote last about itself: one JSON object. Fails: Errc::io.
Result<std::string> site_status(const std::string& state);

struct SiteRunOptions {
  std::string program;   // of weft
  std::string identity;  // of the site file's text: tells whether it changed since
  std::function<void(std::string_view name, std::string_view line)> log;
  // Called once a turn, with whether the service is ready and probers run.
  std::function<void(bool is_probing)> turn;
};

// Runs until a signal to stop. The service starts first and stops last; children that end are
// started again; plans of probes are renewed when parts go out of service or cases open or close.
// Fails: Errc::io, Errc::value before anything is started.
Status run_site(const Site& site, const model::Fabric& fabric, const SiteRunOptions& options,
                adapt::live::Signals& signals);

}  // namespace weft::app
