// Goodput in closed form: checkpoints and restarts, with as many hosts as it takes.
#pragma once

#include <optional>

#include "plan/life/life.hpp"

namespace weft::plan::life {

// How often the job is interrupted while it runs or restarts, and for how long. Seconds.
struct Stops {
  double unplanned = 0, planned = 0;  // per second
  double dead = 0;                    // mean until a restart begins, in which nothing strikes
  double restart = 0;                 // in which it may be interrupted again
  double all() const { return unplanned + planned; }
};
// Rates times `scale`. Left out: waiting for hosts, slower steps, lemons, fewer hosts.
Stops stops_of(const Life& life, double scale);

// Share of the time that becomes saved work, in the long run: the renewal at each checkpoint,
//   useful / ((1 - e^(-L a)) (1/L + dead) e^(L restart)),  a = every + stall, L = all(),
// where `useful` counts the interval if no interruption ends it, and what was done if a planned one
// does. With unplanned stops alone and dead = 0 this is
//   every / (e^(L restart) (e^(L a) - 1) / L)
// From: J. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps",
// FGCS 22 (2006), eq. 13.
double goodput(const Stops& stops, double every_s, double stall_s);
// First order: (1 - L (u0 + every/2)) / (1 + stall/every), u0 = dead + restart.
// From: "Revisiting Reliability in Large-Scale Machine Learning Research Clusters", HPCA 2025.
double goodput_first_order(const Stops& stops, double every_s, double stall_s);

// The interval of the highest goodput, to 1 ms; and its first-order estimate sqrt(2 stall / L) (J.
// Young, CACM 17, 1974). Both at least a second and at most `most_s`.
double best_interval(const Stops& stops, double stall_s, double most_s);
double young_interval(const Stops& stops, double stall_s, double most_s);

// Factor on all rates with which `interruptions` happen in `days`; none: stops that take all the
// time. Interruptions strike only while the job runs or restarts.
std::optional<double> calibration(const Life& life, double interruptions);

// The longest stop, the same for each interruption, with which that goodput is reached; none: it
// is out of reach even if stops take no time. `every_s` none: the best interval. Interruptions
// are as many as `calibrate` says, however long stops are; without it their rate stays.
std::optional<double> longest_stop(const Life& life, double target, double stall_s,
                                   std::optional<double> every_s);

}  // namespace weft::plan::life
