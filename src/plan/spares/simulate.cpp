#include "plan/spares/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numbers>
#include <queue>

#include "base/parallel.hpp"
#include "base/rng.hpp"

namespace weft::plan::spares {
namespace {

constexpr double run_years = 50;

// Time that a number was at each of its values, and how often it rose past each.
class Levels {
 public:
  explicit Levels(std::uint32_t most)
      : hours_(std::size_t{most} + 1, 0), crossings_(hours_.size(), 0) {}

  void change(double now, std::int64_t by) {
    hours_[value_] += now - since_;
    since_ = now;
    for (std::int64_t step = 0; step < by; ++step)
      ++crossings_[value_ + static_cast<std::size_t>(step)];
    value_ = static_cast<std::size_t>(static_cast<std::int64_t>(value_) + by);
  }
  void forget(double now) {
    std::ranges::fill(hours_, 0);
    std::ranges::fill(crossings_, 0);
    since_ = now;
  }
  void add(const Levels& other) {
    for (std::size_t k = 0; k < hours_.size(); ++k) {
      hours_[k] += other.hours_[k];
      crossings_[k] += other.crossings_[k];
    }
  }
  // By s: share of the time above s.
  std::vector<double> above() const {
    double total = 0;
    for (const double hours : hours_) total += hours;
    std::vector<double> out(hours_.size(), 0);
    for (std::size_t k = hours_.size() - 1; k > 0; --k)
      out[k - 1] = out[k] + (total > 0 ? hours_[k] / total : 0);
    return out;
  }
  const std::vector<double>& crossings() const { return crossings_; }

 private:
  std::vector<double> hours_, crossings_;
  double since_ = 0;
  std::size_t value_ = 0;
};

class Run {
 public:
  Run(const Outages& outages, Rng rng)
      : outages_(outages), rng_(rng), all_(outages.host_count()), out_(outages.host_count(), 0) {
    for (const Zone& zone : outages.zones) zones_.emplace_back(zone.count);
    lemons_ = static_cast<std::uint32_t>(std::lround(outages.lemon_share * outages.host_count()));
    for (const Outage& kind : outages.kinds) {
      total_rate_ += kind.per_year / hours_per_year * static_cast<double>(kind.units.size());
      rates_.push_back(total_rate_);
      longest_ = std::max(longest_, kind.repair_h);
    }
  }

  void go(double hours) {
    const double start = 10 * longest_;
    bool watched = false;
    double next_failure = exponential(1 / total_rate_);
    while (true) {
      const bool repaired = !repairs_.empty() && repairs_.top().at < next_failure;
      const double now = repaired ? repairs_.top().at : next_failure;
      if (!watched && now > start) {
        watched = true;
        watch(start);
      }
      if (now > start + hours) break;
      if (repaired) {
        end_repair(now);
      } else {
        fail_one(now);
        next_failure = now + exponential(1 / total_rate_);
      }
    }
    finish(start + hours);
  }

  const Levels& all() const { return all_; }
  const std::vector<Levels>& zones() const { return zones_; }
  double waiting_hours() const { return waiting_hours_; }

 private:
  struct Repair {
    double at;
    Outage::Unit unit;
    bool operator<(const Repair& other) const { return at > other.at; }
  };
  struct Waiting {
    double takes;
    Outage::Unit unit;
  };

  double exponential(double mean) { return -mean * std::log(1 - rng_.uniform()); }
  double duration(const Outage& kind) {
    switch (kind.shape) {
      case Outage::Shape::constant:
        return kind.repair_h;
      case Outage::Shape::exponential:
        return exponential(kind.repair_h);
      case Outage::Shape::lognormal:
        break;
    }
    const double u = 1 - rng_.uniform(), v = rng_.uniform();
    const double normal = std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
    return kind.repair_h *
           std::exp(lognormal_sigma * normal - lognormal_sigma * lognormal_sigma / 2);
  }

  // Lemons are spread evenly over the hosts: every k-th of them.
  bool is_lemon(std::uint32_t host) const {
    const std::uint64_t n = outages_.host_count();
    return host * std::uint64_t{lemons_} / n != (host + 1) * std::uint64_t{lemons_} / n;
  }
  // One of the units; a single host is a lemon `lemon_times` as often as its share says.
  const Outage::Unit& unit_of(const Outage& kind) {
    const auto& units = kind.units;
    while (true) {
      const Outage::Unit& unit = units[rng_.below(units.size())];
      if (unit.count > 1 || lemons_ == 0 || is_lemon(unit.first) ||
          rng_.uniform() * outages_.lemon_times < 1)
        return unit;
    }
  }

  void fail_one(double now) {
    const double at = rng_.uniform() * total_rate_;
    const std::size_t k = static_cast<std::size_t>(
        std::min(std::ranges::upper_bound(rates_, at), rates_.end() - 1) - rates_.begin());
    const Outage& kind = outages_.kinds[k];
    const Outage::Unit& unit = unit_of(kind);
    if (unit.count == 1 && out_[unit.first] > 0) return;  // what is out does not fail
    set_out(now, unit);
    const double takes = duration(kind);
    if (outages_.crews > 0 && repairs_.size() >= outages_.crews) {
      count_waiting(now);
      queue_.push_back({takes, unit});
    } else {
      repairs_.push({now + takes, unit});
    }
  }
  void end_repair(double now) {
    const Outage::Unit unit = repairs_.top().unit;
    repairs_.pop();
    if (!queue_.empty()) {
      count_waiting(now);
      repairs_.push({now + queue_.front().takes, queue_.front().unit});
      queue_.pop_front();
    }
    std::int64_t back = 0;
    for (std::uint32_t h = unit.first; h < unit.first + unit.count; ++h)
      back += --out_[h] == 0 ? 1 : 0;
    change(now, unit.zone, -back);
  }
  void set_out(double now, const Outage::Unit& unit) {
    std::int64_t more = 0;
    for (std::uint32_t h = unit.first; h < unit.first + unit.count; ++h)
      more += out_[h]++ == 0 ? 1 : 0;
    change(now, unit.zone, more);
  }
  void change(double now, std::uint32_t zone, std::int64_t by) {
    if (by == 0) return;
    all_.change(now, by);
    zones_[zone].change(now, by);
  }
  void count_waiting(double now) {
    waiting_hours_ += (now - waiting_since_) * static_cast<double>(queue_.size());
    waiting_since_ = now;
  }
  void watch(double now) {
    finish(now);
    all_.forget(now);
    for (Levels& zone : zones_) zone.forget(now);
    waiting_hours_ = 0;
  }
  void finish(double now) {
    all_.change(now, 0);
    for (Levels& zone : zones_) zone.change(now, 0);
    count_waiting(now);
  }

  const Outages& outages_;
  Rng rng_;
  Levels all_;
  std::vector<Levels> zones_;
  std::vector<std::uint32_t> out_;  // by host: events that hold it
  std::uint32_t lemons_ = 0;
  double total_rate_ = 0, longest_ = 0;
  std::vector<double> rates_;  // by kind: its own and those before
  std::priority_queue<Repair> repairs_;
  std::deque<Waiting> queue_;
  double waiting_hours_ = 0, waiting_since_ = 0;
};

}  // namespace

Simulated simulate(const Outages& outages, const SimulateOptions& options) {
  const auto count = static_cast<std::size_t>(std::ceil(options.years / run_years));
  const double hours = options.years / static_cast<double>(count) * hours_per_year;
  Levels all(outages.host_count());
  std::vector<Levels> zones;
  for (const Zone& zone : outages.zones) zones.emplace_back(zone.count);
  double waiting = 0;
  const Rng rng = Rng(options.seed).stream("spares");
  // In blocks, so that memory is bounded and sums are formed in the order of the runs.
  constexpr std::size_t block = 64;
  for (std::size_t first = 0; first < count; first += block) {
    std::vector<Run> runs;
    for (std::size_t i = first; i < std::min(count, first + block); ++i)
      runs.emplace_back(outages, rng.stream(i));
    parallel_for(runs.size(), options.threads, [&](std::size_t i) { runs[i].go(hours); });
    for (const Run& run : runs) {
      all.add(run.all());
      for (std::size_t z = 0; z < zones.size(); ++z) zones[z].add(run.zones()[z]);
      waiting += run.waiting_hours();
    }
  }
  Simulated out{.years = options.years, .above = all.above()};
  for (const double share : out.above) out.mean += share;
  for (const double crossings : all.crossings())
    out.crossings_per_year.push_back(crossings / options.years);
  for (const Levels& zone : zones) out.above_of_zone.push_back(zone.above());
  out.waiting = waiting / (options.years * hours_per_year);
  return out;
}

}  // namespace weft::plan::spares
