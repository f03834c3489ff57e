// Good and bad minutes from what the store keeps, each bad one with the case that explains it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/events/episode.hpp"
#include "model/fabric/fabric.hpp"
#include "observe/sli/objectives.hpp"
#include "port/store.hpp"

namespace weft::serve {

// Of [from, to), as `weft sli --json` has them; `event` is a number at or before that of the first
// event to look at. Cases are the episodes: their causes are the causes of minutes.
// Fails: Errc::io, Errc::value when there is no evidence.
// Cost: that of reading the events in between.
Result<std::string> sli_view(const model::Fabric& fabric, const observe::sli::Settings& settings,
                             port::Store& store, Timestamp from, Timestamp to, std::uint64_t event);

// Cases that were not withdrawn or superseded, as episodes: their kind, root and time.
Result<std::vector<model::Episode>> case_episodes(const model::Fabric& fabric, port::Store& store,
                                                  Timestamp from, Timestamp to);

}  // namespace weft::serve
