// How devices of one make speak syslog, and the words that all of them have for a session's end.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/timestamp.hpp"

namespace weft::observe::telemetry {

enum class Dialect : std::uint8_t { frr, sonic, eos, junos, nxos, cumulus, host };
inline constexpr std::array<std::string_view, 7> dialect_names{"frr",  "sonic",   "eos", "junos",
                                                               "nxos", "cumulus", "host"};
constexpr std::string_view to_text(Dialect dialect) {
  return dialect_names[static_cast<std::size_t>(dialect)];
}
constexpr std::optional<Dialect> dialect(std::string_view name) {
  for (std::size_t i = 0; i < dialect_names.size(); ++i)
    if (dialect_names[i] == name) return static_cast<Dialect>(i);
  return std::nullopt;
}

// What the stamps of a dialect can tell apart: RFC 3164 knows seconds; SONiC's rsyslog template
// has microseconds; Junos (structured) and NX-OS (logging timestamp) have milliseconds.
constexpr std::int64_t stamp_step_ns(Dialect dialect) {
  switch (dialect) {
    case Dialect::sonic:
      return 1'000;
    case Dialect::junos:
    case Dialect::nxos:
      return 1'000'000;
    default:
      return ns_per_s;
  }
}

// Why a session ended, as the attribute "reason" of a record says it.
enum class Reason : std::uint8_t { none, interface, hold_timer, policy, reset, graceful };
inline constexpr std::array<std::string_view, 6> reason_names{"",       "interface", "hold_timer",
                                                              "policy", "reset",     "graceful"};
constexpr std::string_view to_text(Reason reason) {
  return reason_names[static_cast<std::size_t>(reason)];
}
constexpr std::optional<Reason> reason(std::string_view name) {
  for (std::size_t i = 1; i < reason_names.size(); ++i)
    if (reason_names[i] == name) return static_cast<Reason>(i);
  return std::nullopt;
}

}  // namespace weft::observe::telemetry
