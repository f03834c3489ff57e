// What demand will not exceed once replicas that are asked for now have started.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/scale/demand.hpp"

namespace weft::plan::scale {

struct PredictorOptions {
  std::size_t lead = 15;   // steps ahead
  double quantile = 0.99;  // of the errors that the safety factor covers
};

// At each step, from the values up to it and the calendar of events: a forecast for `lead` steps
// later times a safety factor. 0 before there is a day of history.
//
// The forecast is a mean of three: today's level times the growth that followed at the same time of
// one, two, three and seven days before (where an event will be under way: after the same moment of
// earlier ones of its name); today's level with a damped trend; today's level. Their weights are
// the inverse fourth powers of their recent errors. The factor, at most 2, is a quantile of the
// ratio of demand to forecast over the last three hours and the four hours around the same time of
// each of the last 14 days.
//
// Cost: O(steps), some 20 us each at steps of a minute. Deterministic.
std::vector<double> predict_peaks(const Demand& demand, const PredictorOptions& options);

}  // namespace weft::plan::scale
