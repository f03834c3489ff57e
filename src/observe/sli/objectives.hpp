// What is promised: objectives, their thresholds, and when to alert.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"
#include "base/result.hpp"

namespace weft::observe::sli {

// Which pairs of ends an objective speaks of, by the scopes that hold both of them.
enum class Span : std::uint8_t {
  rack_internal,  // in one rack
  cross_rack,     // in different racks of one zone
  pod,            // in one pod
  cross_pod,      // in different pods of one zone
  zone,           // in one zone
  cross_zone,     // in different zones
  all,
};
std::string_view to_text(Span span);

// A share as a whole number of billionths, so that 99.9 % is exact.
struct Share {
  std::int64_t ppb = 0;

  double value() const { return static_cast<double>(ppb) * 1e-9; }
  friend constexpr auto operator<=>(Share, Share) = default;
};
inline constexpr std::int64_t whole_ppb = 1'000'000'000;

// "99.9 %" or "0.999"; 0 to 1. Fails: Errc::parse, also on more decimals than a Share holds.
Result<Share> parse_share(const Token& token);
// In percent: "99.9 %".
std::string to_text(Share share);

// "30d", "36h" or "90m".
std::string window_text(std::int64_t minutes);

struct Objective {
  std::string name;  // lower-case letters, digits and "-"
  Span span = Span::all;
  std::string traffic_class;  // empty: each class for itself
  Share loss{1'000'000};      // a minute is bad above it
  Share corruption{10'000};   // the same, of probes that came with a wrong payload
  double latency_p99_us = 0;  // the same; 0: latency does not matter
  // Probes that a minute needs; none: so many that `losses_needed` are expected at the threshold.
  std::optional<std::uint64_t> minimum_probes;
  Share target{999'000'000};  // share of minutes that shall be good
  std::int64_t window_minutes = std::int64_t{30} * 24 * 60;
};

// Losses expected at the threshold below which a minute says too little; also what latency needs.
inline constexpr std::uint64_t losses_needed = 10;
// The probes a minute needs when thresholds are `scale_percent` % of what they are.
std::uint64_t probes_needed(const Objective& objective, int scale_percent);

// Fires while the budget burns at least `factor` times as fast as it may, over both windows.
struct Alert {
  std::string name;
  std::int64_t factor_milli = 1000;
  std::int64_t long_minutes = 60, short_minutes = 5;
};

struct Settings {
  std::vector<Objective> objectives;
  std::vector<Alert> alerts;
  std::int64_t slack_ns = 60'000'000'000;  // how far from an episode its losses may lie
  std::vector<std::string> planned{"maintenance", "drain"};  // kinds of episodes
  double confidence = 0.95;
};

// 14.4 times over 1 h and 5 min, 6 times over 6 h and 30 min, once over 3 d and 6 h.
// From: Beyer et al., "The Site Reliability Workbook", O'Reilly 2018, chapter 5.
std::vector<Alert> default_alerts();
// One objective a span of rack-internal, cross-rack, zone and cross-zone: loss 0.1 %, corruption
// 0.001 %, p99 1 ms, 99.9 % of minutes in 30 days.
Settings default_settings();

// Reads a map with `objectives` (list; the defaults when absent), `alerts` (the same), `slack`,
// `planned`, `confidence`. An objective has name, scope, class, loss, corruption,
// latency_p99, minimum_probes, target, window. Fails: every error found, with its position.
Result<Settings> read_settings(const Config& config);

}  // namespace weft::observe::sli
