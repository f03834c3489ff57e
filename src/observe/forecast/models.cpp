#include "observe/forecast/models.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace weft::observe::forecast {
namespace {

using Values = std::vector<double>;
using Past = std::span<const double>;
using Lags = std::vector<std::size_t>;

Values seasonal_naive(Past y, std::size_t season, std::size_t horizon) {
  Values f(horizon);
  for (std::size_t h = 0; h < horizon; ++h) f[h] = y[y.size() - season + h % season];
  return f;
}

// The mean of the last `periods` periods, each weighing 0.7 of the next, moved by how far the last
// `recent` values lie from it; the move decays by 1.5 % a step.
Values seasonal_mean(Past y, std::size_t season, std::size_t periods, std::size_t recent,
                     std::size_t horizon) {
  const std::size_t n = y.size();
  const auto mean_at = [&](std::size_t at) {  // from the periods before step `at`
    double sum = 0, weights = 0, weight = 1;
    std::size_t before = at >= n ? n - season + (at - n) % season : at - season;
    for (std::size_t j = 0; j < periods; ++j, weight *= 0.7, before -= season) {
      sum += weight * y[before];
      weights += weight;
      if (before < season) break;
    }
    return sum / weights;
  };
  recent = std::min(recent, n - season);
  double shift = 0;
  for (std::size_t i = 0; i < recent; ++i) shift += (y[n - 1 - i] - mean_at(n - 1 - i));
  if (recent > 0) shift /= static_cast<double>(recent);
  Values f(horizon);
  for (std::size_t h = 0; h < horizon; ++h, shift *= 0.985) f[h] = mean_at(n + h) + shift;
  return f;
}

// Solves a x = b by Cholesky's method, in place; a is p x p, symmetric and positive definite.
bool solve(std::span<double> a, std::span<double> b) {
  const std::size_t p = b.size();
  for (std::size_t j = 0; j < p; ++j)
    for (std::size_t i = j; i < p; ++i) {
      double sum = a[i * p + j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i * p + k] * a[j * p + k];
      if (i == j && !(sum > 1e-12)) return false;
      a[i * p + j] = i == j ? std::sqrt(sum) : sum / a[j * p + j];
    }
  for (std::size_t i = 0; i < p; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i * p + k] * b[k];
    b[i] /= a[i * p + i];
  }
  for (std::size_t i = p; i-- > 0;) {
    for (std::size_t k = i + 1; k < p; ++k) b[i] -= a[k * p + i] * b[k];
    b[i] /= a[i * p + i];
  }
  return true;
}

// Autoregression on chosen lags by ridge regression; a value weighs half of one 400 steps later.
// The forecast is recursive. Empty where the past is too short or constant.
Values autoregression(Past y, const Lags& lags, double ridge, std::size_t horizon) {
  const std::size_t n = y.size(), p = lags.size() + 1, longest = lags.back();
  if (n < longest + 3 * p) return {};
  const double mean = std::accumulate(y.begin(), y.end(), 0.0) / static_cast<double>(n);
  double spread = 0;
  for (const double v : y) spread += (v - mean) * (v - mean);
  spread = std::sqrt(spread / static_cast<double>(n));
  if (!(spread > 1e-12 * (1 + std::abs(mean)))) return {};
  Values z(n + horizon), a(p * p, 0.0), b(p, 0.0), x(p, 1.0);
  for (std::size_t t = 0; t < n; ++t) z[t] = (y[t] - mean) / spread;
  const double forget = std::exp2(-1.0 / 400);
  double weight = 1;
  for (std::size_t t = n; t-- > longest && weight > 1e-9; weight *= forget) {
    for (std::size_t i = 1; i < p; ++i) x[i] = z[t - lags[i - 1]];
    for (std::size_t i = 0; i < p; ++i) {
      const double wx = weight * x[i];
      for (std::size_t j = 0; j <= i; ++j) a[i * p + j] += wx * x[j];
      b[i] += wx * z[t];
    }
  }
  for (std::size_t i = 0; i < p; ++i) a[i * p + i] += ridge;
  if (!solve(a, b)) return {};
  Values f(horizon);
  for (std::size_t h = 0; h < horizon; ++h) {
    double sum = b[0];
    for (std::size_t i = 1; i < p; ++i) sum += b[i] * z[n + h - lags[i - 1]];
    z[n + h] = std::clamp(sum, -6.0, 6.0);
    f[h] = z[n + h] * spread + mean;
  }
  return f;
}

// Additive exponential smoothing with one profile per season and first-order errors, as Taylor's
// "Short-term electricity demand forecasting using double seasonal exponential smoothing" (2003)
// has it. The rates are those of the least one-step error.
class Smoothing {
 public:
  struct Rates {
    double level, first, others, error;
  };

  Smoothing(Past y, const Lags& seasons) : y_(y), seasons_(seasons) {
    std::size_t width = 0;
    for (const std::size_t season : seasons_) width += season;
    start_.resize(width);
    from_ = std::min(y.size(), 2 * seasons_.back());
    level_ = std::accumulate(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(from_), 0.0) /
             static_cast<double>(from_);
    Values rest(from_);
    for (std::size_t t = 0; t < from_; ++t) rest[t] = y[t] - level_;
    std::size_t at = 0;
    for (const std::size_t season : seasons_) {
      for (std::size_t t = 0; t < from_; ++t)
        start_[at + t % season] +=
            rest[t] * static_cast<double>(season) / static_cast<double>(from_);
      for (std::size_t t = 0; t < from_; ++t) rest[t] -= start_[at + t % season];
      at += season;
    }
    profile_.resize(width);
  }

  Values best(std::size_t horizon) {
    constexpr std::array levels{0.01, 0.05, 0.2, 0.5};
    constexpr std::array firsts{0.02, 0.1, 0.3}, others{0.05, 0.2, 0.4}, errors{0.0, 0.5, 0.9};
    Rates rates{0.05, 0.1, 0.2, 0.5};
    const auto choose = [&](double Rates::* rate, const auto& list) {
      double least = -1, chosen = list.front();
      for (const double value : list) {
        rates.*rate = value;
        const double error = run(rates, nullptr, 0);
        if (least >= 0 && !(error < least)) continue;
        least = error;
        chosen = value;
      }
      rates.*rate = chosen;
    };
    for (int round = 0; round < 2; ++round) {  // one coordinate after another
      choose(&Rates::error, errors);
      choose(&Rates::level, levels);
      choose(&Rates::first, firsts);
      if (seasons_.size() > 1) choose(&Rates::others, others);
    }
    Values f(horizon);
    run(rates, f.data(), horizon);
    return f;
  }

 private:
  // The sum of squared one-step errors; then the forecast into f[0..horizon).
  double run(const Rates& rates, double* f, std::size_t horizon) {
    profile_ = start_;
    double level = level_, last = 0, squares = 0;
    std::array<std::size_t, 8> phase{}, base{};
    for (std::size_t s = 1; s < seasons_.size(); ++s) base[s] = base[s - 1] + seasons_[s - 1];
    const std::size_t n = y_.size();
    double carried = 1;
    for (std::size_t t = 0; t < n + horizon; ++t) {
      double expected = level;
      for (std::size_t s = 0; s < seasons_.size(); ++s) expected += profile_[base[s] + phase[s]];
      if (t < n) {
        const double off = y_[t] - expected, error = off - rates.error * last;
        if (t >= from_) squares += error * error;
        last = off;
        level += rates.level * off;
        for (std::size_t s = 0; s < seasons_.size(); ++s)
          profile_[base[s] + phase[s]] += (s == 0 ? rates.first : rates.others) * off;
      } else {
        carried *= rates.error;
        f[t - n] = expected + carried * last;
      }
      for (std::size_t s = 0; s < seasons_.size(); ++s)
        if (++phase[s] == seasons_[s]) phase[s] = 0;
    }
    return squares;
  }

  Past y_;
  Lags seasons_;
  Values start_, profile_;
  std::size_t from_ = 0;
  double level_ = 0;
};

// Simple smoothing of what is left without the season's mean profile around a centred average.
Values level_on_profile(Past y, std::size_t season, std::size_t horizon) {
  const std::size_t n = y.size(), half = season / 2;
  Values profile(season, 0.0);
  std::vector<int> counts(season, 0);
  double window = std::accumulate(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(season), 0.0);
  for (std::size_t t = half; t + (season - half) <= n; ++t) {
    profile[t % season] += y[t] - window / static_cast<double>(season);
    ++counts[t % season];
    if (t + (season - half) < n) window += y[t + (season - half)] - y[t - half];
  }
  for (std::size_t i = 0; i < season; ++i)
    if (counts[i] > 0) profile[i] /= counts[i];
  double least = -1, best_level = 0;
  for (const double rate : {0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 0.95}) {
    double level = y[0] - profile[0], squares = 0;
    for (std::size_t t = 1; t < n; ++t) {
      const double error = y[t] - profile[t % season] - level;
      squares += error * error;
      level += rate * error;
    }
    if (least >= 0 && !(squares < least)) continue;
    least = squares;
    best_level = level;
  }
  Values f(horizon);
  for (std::size_t h = 0; h < horizon; ++h) f[h] = best_level + profile[(n + h) % season];
  return f;
}

Lags sorted(Lags lags) {
  std::erase(lags, 0u);
  std::ranges::sort(lags);
  lags.erase(std::ranges::unique(lags).begin(), lags.end());
  return lags;
}

void add_all(Past y, const Lags& seasons, std::size_t horizon, const std::string& suffix,
             std::vector<Candidate>& out) {
  const auto add = [&](std::string name, Values values) {
    if (!values.empty()) out.push_back({std::move(name) + suffix, std::move(values)});
  };
  if (seasons.empty()) {
    add("last value", seasonal_naive(y, 1, horizon));
    add("autoregression", autoregression(y, {1, 2, 3}, 1, horizon));
    return;
  }
  const std::size_t day = seasons.front();
  Lags brief{1, 2, day, day + 1}, some{1, 2, 3, day, day + 1, 2 * day},
      many{1, 2, 3, day - 1, day, day + 1};
  for (std::size_t k = 2; k <= 6; ++k) many.push_back(k * day);
  many.push_back(2 * day + 1);
  for (const std::size_t season : std::span(seasons).subspan(1)) {
    some.insert(some.end(), {season, season + 1});
    many.insert(many.end(), {season - 1, season, season + 1});
  }
  add("autoregression, some lags", autoregression(y, sorted(some), 1, horizon));
  add("autoregression, many lags", autoregression(y, sorted(many), 3, horizon));
  add("autoregression, few lags", autoregression(y, sorted(brief), 1, horizon));
  add("smoothing, one season", Smoothing(y, {day}).best(horizon));
  if (seasons.size() > 1) add("smoothing, all seasons", Smoothing(y, seasons).best(horizon));
  for (const std::size_t season : seasons) {
    const std::string of = " of " + std::to_string(season);
    add("moved mean" + of, seasonal_mean(y, season, season == day ? 4 : 3, day, horizon));
    add("level on profile" + of, level_on_profile(y, season, horizon));
    if (season != day) add("mean" + of, seasonal_mean(y, season, 2, 0, horizon));
  }
  if (suffix.empty()) add("last period", seasonal_naive(y, day, horizon));
}

}  // namespace

std::vector<Candidate> candidates(Past past, Lags seasons, std::size_t horizon) {
  seasons = sorted(std::move(seasons));
  std::erase_if(seasons, [&](std::size_t s) { return s < 2 || 2 * past.size() < 5 * s; });
  if (seasons.size() > 8) seasons.resize(8);
  std::vector<Candidate> out;
  add_all(past, seasons, horizon, "", out);
  const auto [least, most] = std::ranges::minmax(past);
  if (least > 0) {
    Values logs(past.size());
    std::ranges::transform(past, logs.begin(), [](double v) { return std::log(v); });
    const std::size_t first = out.size();
    add_all(logs, seasons, horizon, ", of logarithms", out);
    for (std::size_t i = first; i < out.size(); ++i)
      for (double& v : out[i].values) v = std::exp(v);
  }
  // No forecast leaves what was seen by more than 30 % of its range.
  const double margin = 0.3 * (most - least);
  const double lowest = least > 0 ? 0.5 * least : least - margin;
  for (Candidate& candidate : out)
    for (double& v : candidate.values)
      v = std::isfinite(v) ? std::clamp(v, lowest, most + margin) : past.back();
  return out;
}

}  // namespace weft::observe::forecast
