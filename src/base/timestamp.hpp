// Real time, as feeds and logs carry it. Simulated time is Time (units.hpp).
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "base/text.hpp"

namespace weft {
inline namespace base {

// Nanoseconds since 1970-01-01T00:00:00Z without leap seconds.
struct Timestamp {
  std::int64_t ns = 0;

  friend constexpr auto operator<=>(Timestamp, Timestamp) = default;
};

// As text a time lies at most so far from 1970: from the middle of 1678 to that of 2261.
inline constexpr std::int64_t timestamp_ns_max = 9'200'000'000'000'000'000;
inline constexpr Timestamp end_of_time{timestamp_ns_max};
inline constexpr std::int64_t ns_per_s = 1'000'000'000;
inline constexpr std::int64_t ns_per_minute = 60 * ns_per_s;
inline constexpr std::int64_t ns_per_hour = 60 * ns_per_minute;
inline constexpr std::int64_t ns_per_day = 24 * ns_per_hour;

// RFC 3339 ("2026-03-01T12:00:00.25Z", "…+01:00"; more than nine decimals are refused, and so is
// second 60, since the count above knows no leap seconds), or a whole number of nanoseconds.
Result<Timestamp> parse_timestamp(const Token& token);

// Of a time that parse_timestamp may give: RFC 3339 in UTC with 0, 3, 6 or 9 decimals, as many as
// are needed; parses back to the same.
std::string to_text(Timestamp t);

}  // namespace base
}  // namespace weft
