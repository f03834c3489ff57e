// Rates of faults from the repairs that a service has done, as a model for rehearsals.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/timestamp.hpp"
#include "model/fabric/fabric.hpp"
#include "operate/repair/repair_stats.hpp"

namespace weft::app {

struct LearnedRate {
  std::string key;           // of `rates:`
  double faults = 0;         // a split count need not be whole
  std::size_t parts = 0;     // of the fabric that they can befall
  double rate = 0;           // of one part in 30 days; blips_per_day: in a day
  double low = 0, high = 0;  // 95 % interval of the rate, as faults are Poisson
};

struct LearnedRates {
  Timestamp from, until;
  std::vector<LearnedRate> rates;  // of parts that the fabric has
  std::uint64_t left_out = 0;      // repairs that are no fault of one of these kinds
  std::uint64_t unknown = 0;       // repairs of parts that the fabric does not have
};

// Repairs opened in [from, until). Those that were rejected, found nothing or moved to another part
// are no faults. Cables and ports that healed by themselves are blips. Repairs do not tell a dead
// cable between switches from a lossy one: they are split as the default rates are.
LearnedRates learn_rates(const model::Fabric& fabric,
                         std::span<const operate::repair::RepairRow> rows, Timestamp from,
                         Timestamp until);

// What --model takes, each rate with what it was learned from.
std::string to_yaml(const LearnedRates& learned);

// 95 % interval of the mean of a Poisson variable that was `count` (Garwood 1936).
struct PoissonInterval {
  double low = 0, high = 0;
};
PoissonInterval poisson_interval(double count);

}  // namespace weft::app
