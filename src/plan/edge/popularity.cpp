#include "plan/edge/popularity.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace weft::plan::edge {
namespace {

constexpr double single_ranks = 256, group_growth = 1.02;
constexpr int points = 400;

// Sum of i^-zipf for first <= i < end, by the integral from half a rank before to half a rank
// before the end: what it is off by falls with the square of first.
double weight_between(double first, double end, double zipf) {
  const double a = first - 0.5, b = end - 0.5;
  if (std::abs(zipf - 1) < 1e-9) return std::log(b / a);
  return (std::pow(b, 1 - zipf) - std::pow(a, 1 - zipf)) / (1 - zipf);
}

}  // namespace

Popularity::Popularity(std::uint64_t objects, double zipf) : objects_(objects) {
  const auto end = static_cast<double>(objects) + 1;
  double sum = 0;
  for (double rank = 1; rank < end;) {
    const double next =
        rank <= single_ranks ? rank + 1 : std::min(end, std::floor(rank * group_growth) + 1);
    const double weight =
        rank <= single_ranks ? std::pow(rank, -zipf) : weight_between(rank, next, zipf);
    groups_.push_back({weight / (next - rank), next - rank});
    sum += weight;
    rank = next;
  }
  for (Group& group : groups_) group.each /= sum;
  // From nothing cached to nothing missing.
  const double low = std::log(1e-9 / groups_.front().each);
  const double high = std::log(40 / groups_.back().each);
  for (int i = 0; i <= points; ++i) {
    times_.push_back(std::exp(low + (high - low) * i / points));
    points_.push_back(at(times_.back()));
  }
}

Popularity::Point Popularity::at(double time) const {
  double cached = 0, hit = 0, gained = 0, grown = 0;
  for (const auto& [each, count] : groups_) {
    const double asked = -std::expm1(-each * time);
    cached += count * asked;
    hit += count * each * asked;
    const double change = count * each * (1 - asked);
    grown += change;
    gained += change * each;
  }
  return {cached, hit, grown > 0 ? gained / grown : 0};
}

double Popularity::hit_rate(double cached) const {
  if (cached <= 0) return 0;
  if (cached >= static_cast<double>(objects_)) return 1;
  const auto above = std::ranges::lower_bound(points_, cached, {}, &Point::cached);
  if (above == points_.begin()) return above->hit * cached / above->cached;
  if (above == points_.end()) return points_.back().hit;
  const auto i = static_cast<std::size_t>(above - points_.begin());
  double low = times_[i - 1], high = times_[i];
  for (int k = 0; k < 40; ++k) {
    const double middle = (low + high) / 2;
    (at(middle).cached >= cached ? high : low) = middle;
  }
  return at(high).hit;
}

double Popularity::size_at(double slope) const {
  const auto above = std::ranges::lower_bound(points_, slope, std::greater<>{}, &Point::slope);
  if (above == points_.begin()) return 0;
  if (above == points_.end()) return static_cast<double>(objects_);
  const Point &from = *(above - 1), &to = *above;
  const double part = (from.slope - slope) / (from.slope - to.slope);
  return from.cached + part * (to.cached - from.cached);
}

}  // namespace weft::plan::edge
