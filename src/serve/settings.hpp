// The desk's own part of the service's configuration.
#pragma once

#include "base/config.hpp"
#include "serve/desk.hpp"

namespace weft::serve {

// Keys: early: {wait, loss_wait, lateness, losses}; sight: {keep, every, probability,
// ports_per_card}; keep: {replay, events_days, cases_days}. Any may be missing. Fails with every
// error found; keys of others must have been taken out.
Result<DeskSettings> read_desk_settings(const Config& config);

}  // namespace weft::serve
