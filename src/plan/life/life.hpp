// A training job, its cluster and what stops it: what `weft life` reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/file.hpp"
#include "plan/life/measured.hpp"
#include "plan/life/rates.hpp"

namespace weft::plan::life {

inline constexpr double seconds_per_day = 86400;

struct Cause {
  std::string name;
  Group group = Group::host;
  double per_host_day = 0;  // of the job's hosts, while it runs or restarts
  double hang_share = 0;    // of its stops, that are noticed by a time-out
  bool stops = true;        // the job; else it only slows it down
  double factor = 1;        // on the step time
  double lasts_s = 0;       // mean time until the factor is gone
};

enum class Shape : std::uint8_t { constant, exponential, lognormal };
inline constexpr double lognormal_sigma = 1.5;  // of ln(time)

struct Life {
  std::uint32_t hosts = 0;   // of the job
  std::uint32_t spares = 0;  // beside them
  std::uint32_t crews = 0;   // repairs at a time; 0: any number
  double days = 0;
  std::uint32_t runs = 0;
  std::vector<Cause> causes;        // rates with `scale` applied
  std::optional<double> calibrate;  // interruptions in `days`
  Where calibrate_at;
  std::string source;                 // of shipped rates
  std::optional<double> every_s;      // checkpoint interval, in work; none: the best one
  double stall_s = 0;                 // of the job, for a checkpoint
  double crash_s = 0, hang_s = 0;     // until a stop is noticed
  double localise_s = 0, swap_s = 0;  // swap: only where a host is replaced
  double restart_s = 0;
  double planned_s = 0;                   // duration of a planned stop, before the restart
  double manual_share = 0, manual_s = 0;  // of unplanned stops, which people have to solve
  double repair_s = 0;                    // mean
  Shape repair_shape = Shape::lognormal;
  double lemon_share = 0, lemon_times = 1;
  std::uint32_t retire_after = 0;     // a host is replaced after so many failures; 0: never
  std::uint32_t shrink_by = 0;        // hosts that leave together if one is missing; 0: wait
  std::uint32_t least = 0;            // hosts below which it waits
  double stops_per_host_day() const;  // planned ones included
};

struct WhatIf {
  std::string name;
  Life life;
};

// Which checkpoint intervals and stop times give that goodput: asked for each stall.
struct SurfaceAsked {
  double goodput = 0;
  std::vector<double> stalls_s, every_s;
};

struct LifePlan {
  Life base;
  std::vector<WhatIf> what_ifs;  // each differs in the keys it names
  std::optional<SurfaceAsked> surface;
};

// The section `life:` of a scenario, and the files that it names. Errors join the list, all at
// once.
LifePlan read_life(
    const Config& section, Errors& errors,
    LoadFile load = [](const std::string& path) { return read_file(path); });

}  // namespace weft::plan::life
