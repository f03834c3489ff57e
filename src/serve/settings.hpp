// The controller's own part of the service's configuration.
#pragma once

#include "base/config.hpp"
#include "serve/controller.hpp"

namespace weft::serve {

// Keys: provisional: {wait, loss_wait, lateness, losses}; localise: {keep, every, probability,
// ports_per_card}; keep: {replay, events_days, cases_days}. Any may be missing. Fails with every
// error found; keys of others must have been taken out.
Result<ControllerSettings> read_controller_settings(const Config& config);

}  // namespace weft::serve
