// `transport:` of a scenario, as the packet engine understands it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "engine/packet/options.hpp"
#include "model/fabric/fabric.hpp"
#include "route/router.hpp"

namespace weft::engine::packet {

// `transport: nscc` is short for `transport: {name: nscc}`. Other sections come back as they are.
Config transport_section(const Config& section);

struct ReadContext {
  // Null when it could not be built: then what depends on it is not checked.
  const model::Fabric* fabric = nullptr;
  // Where the file names no scheme, it becomes `spray` for transports that spray.
  route::RoutingConfig& routing;
  Errors& errors;                   // the list that the reader reports to
  std::vector<std::string>& notes;  // keys that are understood and change nothing
  // Another engine runs the scenario: the section is checked in itself and against the fabric, but
  // not against `routing`, of which that engine may understand more.
  enum class Runner : std::uint8_t { packets, other } runner = Runner::packets;
};

// Reads the keys that docs/transport.md describes; the caller may read others of its own, and then
// calls finish(). Sizes that do not fit each other or the fabric, and settings that contradict each
// other, are errors. `end`, `threads` and `seed` but for the key `end` are the caller's.
// Cost: O(links) where PFC is on.
Options read_options(Reader& transport, const ReadContext& context);

}  // namespace weft::engine::packet
