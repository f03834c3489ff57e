// Time as the packet engine counts it.
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace weft::transport {

// Picoseconds since the start of the run, or a span of them. Unsigned: 213 days fit.
using Ps = std::uint64_t;
inline constexpr Ps never = UINT64_MAX;

// `span` must not be negative.
constexpr Ps ps_of(Duration span) { return static_cast<Ps>(span.ps); }

}  // namespace weft::transport
