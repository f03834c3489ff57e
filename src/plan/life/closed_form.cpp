#include "plan/life/closed_form.hpp"

#include <algorithm>
#include <cmath>

namespace weft::plan::life {
namespace {

// (1 - e^(-x)) / x and (1 - e^(-x) (1 + x)) / x^2, also near 0.
double decay(double x) { return x < 1e-8 ? 1 - x / 2 : -std::expm1(-x) / x; }
double decay_moment(double x) {
  return x < 1e-4 ? 0.5 - x / 3 : (-std::expm1(-x) - x * std::exp(-x)) / (x * x);
}

double mean_dead(const Life& life, const Cause& cause) {
  if (cause.group == Group::planned) return life.planned_s;
  return life.crash_s + cause.hang_share * (life.hang_s - life.crash_s) + life.localise_s +
         life.manual_share * life.manual_s + (cause.group == Group::host ? life.swap_s : 0);
}

}  // namespace

Stops stops_of(const Life& life, double scale) {
  Stops stops{.restart = life.restart_s};
  double dead = 0;
  for (const Cause& cause : life.causes) {
    if (!cause.stops) continue;
    const double rate = scale * cause.per_host_day * life.hosts / seconds_per_day;
    (cause.group == Group::planned ? stops.planned : stops.unplanned) += rate;
    dead += rate * mean_dead(life, cause);
  }
  if (stops.all() > 0) stops.dead = dead / stops.all();
  return stops;
}

double goodput(const Stops& stops, double every_s, double stall_s) {
  const double rate = stops.all(), whole = every_s + stall_s;
  const double survives = std::exp(-rate * whole);
  double useful = every_s * survives;
  // A planned stop at x < every saves x; one during the write saves the interval.
  useful += stops.planned * every_s * every_s * decay_moment(rate * every_s);
  useful += stops.planned * every_s * std::exp(-rate * every_s) * stall_s * decay(rate * stall_s);
  const double run = whole * decay(rate * whole);  // mean, until the checkpoint or a stop
  return useful / (run * (1 + rate * stops.dead) * std::exp(rate * stops.restart));
}

double goodput_first_order(const Stops& stops, double every_s, double stall_s) {
  const double lost = stops.all() * (stops.dead + stops.restart) + stops.unplanned * every_s / 2;
  return (1 - lost) / (1 + stall_s / every_s);
}

double best_interval(const Stops& stops, double stall_s, double most_s) {
  const double ratio = (std::sqrt(5.0) - 1) / 2;  // golden section on ln(interval)
  double low = 0, high = std::log(std::max(1.0, most_s));
  while (high - low > 1e-9) {
    const double left = high - ratio * (high - low), right = low + ratio * (high - low);
    if (goodput(stops, std::exp(left), stall_s) < goodput(stops, std::exp(right), stall_s))
      low = left;
    else
      high = right;
  }
  return std::round(1000 * std::exp((low + high) / 2)) / 1000;
}

double young_interval(const Stops& stops, double stall_s, double most_s) {
  const double best = stops.unplanned > 0 ? std::sqrt(2 * stall_s / stops.unplanned) : most_s;
  return std::clamp(best, 1.0, std::max(1.0, most_s));
}

std::optional<double> calibration(const Life& life, double interruptions) {
  const Stops stops = stops_of(life, 1);
  const double seconds = life.days * seconds_per_day;
  const double active = seconds - interruptions * stops.dead;
  if (stops.all() <= 0 || active <= 1e-3 * seconds) return std::nullopt;
  return interruptions / active / stops.all();
}

std::optional<double> longest_stop(const Life& life, double target, double stall_s,
                                   std::optional<double> every_s) {
  const double seconds = life.days * seconds_per_day;
  const Stops now = stops_of(life, 1);
  if (now.all() <= 0) return std::nullopt;
  const double most =
      life.calibrate ? 0.999 * seconds / *life.calibrate : seconds;  // leaves some time to run
  const auto reached = [&](double stop) {
    double scale = 1;
    if (life.calibrate) scale = *life.calibrate / (seconds - *life.calibrate * stop) / now.all();
    const Stops stops{scale * now.unplanned, scale * now.planned, stop, 0};
    return goodput(stops, every_s ? *every_s : best_interval(stops, stall_s, seconds), stall_s) >=
           target;
  };
  if (!reached(0)) return std::nullopt;
  double low = 0, high = most;
  while (high - low > 1e-3) (reached((low + high) / 2) ? low : high) = (low + high) / 2;
  return low;
}

}  // namespace weft::plan::life
