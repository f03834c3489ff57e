// What options must keep to so that a run of them means something. Internal to the room.
#pragma once

#include "base/config.hpp"
#include "engine/packet/read_options.hpp"

namespace weft::engine::packet {

// Errors stand where `transport` has the key.
void check_options(const Options& options, Reader& transport, const ReadContext& context);

}  // namespace weft::engine::packet
