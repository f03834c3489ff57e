// Quantities as types: sizes, link rates, simulated time. Raw numbers stop at this header.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>

namespace weft {
inline namespace base {

// A size in bytes. 1 MB is 10^6 bytes, 1 MiB is 2^20.
struct Bytes {
  std::int64_t count = 0;
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
};

// A link rate in bits per second.
struct Rate {
  std::int64_t bps = 0;
  constexpr double bytes_per_s() const { return static_cast<double>(bps) / 8; }
  friend constexpr auto operator<=>(Rate, Rate) = default;
};

// A span of simulated time in picoseconds (106 days at most).
struct Duration {
  std::int64_t ps = 0;
  constexpr double seconds() const { return static_cast<double>(ps) * 1e-12; }
  constexpr double us() const { return static_cast<double>(ps) * 1e-6; }
  friend constexpr auto operator<=>(Duration, Duration) = default;
};

// A point in simulated time: picoseconds since the start of the run.
struct Time {
  std::int64_t ps = 0;
  constexpr double seconds() const { return static_cast<double>(ps) * 1e-12; }
  constexpr double us() const { return static_cast<double>(ps) * 1e-6; }
  friend constexpr auto operator<=>(Time, Time) = default;
};

inline constexpr Duration duration_max{INT64_MAX};
inline constexpr std::int64_t ps_per_ns = 1000;
inline constexpr std::int64_t ps_per_ms = 1'000'000 * ps_per_ns;

constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
constexpr Bytes operator*(Bytes a, std::int64_t n) { return {a.count * n}; }
constexpr Rate operator+(Rate a, Rate b) { return {a.bps + b.bps}; }
constexpr Rate operator*(Rate a, std::int64_t n) { return {a.bps * n}; }
constexpr Rate operator/(Rate a, std::int64_t n) { return {a.bps / n}; }
constexpr Duration operator+(Duration a, Duration b) { return {a.ps + b.ps}; }
constexpr Duration operator-(Duration a, Duration b) { return {a.ps - b.ps}; }
constexpr Duration operator*(Duration a, std::int64_t n) { return {a.ps * n}; }
constexpr Time operator+(Time a, Duration b) { return {a.ps + b.ps}; }
constexpr Duration operator-(Time a, Time b) { return {a.ps - b.ps}; }

// Time to send `size` at `rate`, rounded up to 1 ps; saturates. `rate` must be positive.
constexpr Duration operator/(Bytes size, Rate rate) {
  __extension__ using Wide = __int128;
  const Wide bit_ps = Wide{size.count} * 8 * 1'000'000'000'000;
  const Wide ps = (bit_ps + rate.bps - 1) / rate.bps;
  return ps < Wide{INT64_MAX} ? Duration{static_cast<std::int64_t>(ps)} : duration_max;
}

// Seconds to the nearest picosecond; saturates at 0 and duration_max, which is also what NaN gives.
inline Duration from_seconds(double s) {
  const double ps = std::round(s * 1e12);
  if (!(ps < 9.2e18)) return duration_max;
  return {static_cast<std::int64_t>(ps < 0 ? 0 : ps)};
}

inline namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return {static_cast<std::int64_t>(n)}; }
constexpr Bytes operator""_KiB(unsigned long long n) {
  return {static_cast<std::int64_t>(n << 10)};
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return {static_cast<std::int64_t>(n << 20)};
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return {static_cast<std::int64_t>(n << 30)};
}
constexpr Bytes operator""_MB(unsigned long long n) {
  return {static_cast<std::int64_t>(n * 1'000'000)};
}
constexpr Rate operator""_Gbps(unsigned long long n) {
  return {static_cast<std::int64_t>(n) * 1'000'000'000};
}
constexpr Duration operator""_ps(unsigned long long n) { return {static_cast<std::int64_t>(n)}; }
constexpr Duration operator""_ns(unsigned long long n) {
  return {static_cast<std::int64_t>(n) * 1'000};
}
constexpr Duration operator""_us(unsigned long long n) {
  return {static_cast<std::int64_t>(n) * 1'000'000};
}
constexpr Duration operator""_s(unsigned long long n) {
  return {static_cast<std::int64_t>(n) * 1'000'000'000'000};
}
}  // namespace literals

static_assert(4096_B / 400_Gbps == 81'920_ps);

}  // namespace base
}  // namespace weft
