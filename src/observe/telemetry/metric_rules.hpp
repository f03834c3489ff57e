// When a measured value is worth a record: thresholds with two sides, as data.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"
#include "base/result.hpp"
#include "model/events/event_kind.hpp"
#include "port/sample.hpp"

namespace weft::observe::telemetry {

// A condition begins beyond `begins` and ends on the well side of `ends`: in between it stays as it
// was, so that a value at the threshold does not flap.
struct Threshold {
  double begins = std::numeric_limits<double>::quiet_NaN(), ends = begins;
  bool is_set() const { return begins == begins; }
};

struct MetricRule {
  std::string name;
  port::Metric metric = port::Metric::reachable;
  std::string component;  // pattern with '*'; "": any
  model::EventKind kind = model::EventKind::info;
  // Of levels.
  Threshold above, below;
  Threshold drop;  // below the series' own slow mean
  // Of counters: growth per packet that came in, and per second where packets are not known.
  Threshold share, rate;
  double least = 1;           // growth of a counter that is worth looking at
  std::uint32_t samples = 1;  // so many in a row make it true
};

struct MetricRules {
  std::int64_t repeat_ns = 0;    // what lasts is told again so often
  std::int64_t spacing_ns = 0;   // counters are differenced over so long at least
  std::int64_t gap_ns = 0;       // and not over a longer silence than this
  std::int64_t clock_ns = 0;     // a stamp that far from its receipt is not believed
  std::int64_t baseline_ns = 0;  // time constant of a series' slow mean
  std::int64_t settle_ns = 0;    // which is not believed before it is so old
  std::vector<MetricRule> rules;
};

// Whether all of `text` is as `pattern` says, in which '*' stands for anything.
// Cost: O(|text| |pattern|) at worst, no allocation.
bool matches_glob(std::string_view pattern, std::string_view text);

MetricRules default_metric_rules();
// Laid over the defaults, key by key; a rule is deleted with "NAME: null".
// Fails with every error of the file, each with its position.
Result<MetricRules> read_metric_rules(const Config& config);
// The YAML text of the defaults, with the reason of each threshold.
std::string_view default_metric_rules_text();

}  // namespace weft::observe::telemetry
