#include "plan/life/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numbers>
#include <optional>
#include <queue>

#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "plan/life/work.hpp"

namespace weft::plan::life {
namespace {

constexpr Ticks never = INT64_MAX;

Ticks ticks_of(double seconds) { return std::llround(std::min(seconds * ticks_per_s, 4e18)); }

// The random numbers of one strike: as many for each, so that what-ifs stay in step.
struct Draws {
  double hang, manual, pick, normal, uniform;
};

// One cause's strikes, at exponential times of a clock.
class Strikes {
 public:
  Strikes(const Cause& cause, double per_tick, Rng rng)
      : cause_(&cause), per_tick_(per_tick), rng_(rng) {
    step();
  }
  double next() const { return next_; }
  const Cause& cause() const { return *cause_; }
  Draws strike() {
    const double hang = rng_.uniform(), manual = rng_.uniform(), pick = rng_.uniform();
    const double uniform = 1 - rng_.uniform(), angle = 2 * std::numbers::pi * rng_.uniform();
    step();
    return {hang, manual, pick, std::sqrt(-2 * std::log(uniform)) * std::cos(angle), uniform};
  }

 private:
  void step() { next_ -= std::log(1 - rng_.uniform()) / per_tick_; }

  const Cause* cause_;
  double per_tick_, next_ = 0;
  Rng rng_;
};

// Counts the host-ticks of exposure, and knows which cause strikes next.
class ExposureClock {
 public:
  void add(const Cause& cause, double per_tick, Rng rng) {
    if (per_tick > 0) strikes_.emplace_back(cause, per_tick, rng);
    find_next();
  }
  // When it strikes, if `hosts` are exposed from now on.
  Ticks strikes_at(Ticks now, double hosts) const {
    if (next_ == nullptr || hosts <= 0) return never;
    const double wait = std::ceil(std::max(0.0, next_->next() - exposure_) / hosts);
    return wait < 4e18 ? now + static_cast<Ticks>(wait) : never;
  }
  void pass(Ticks time, double hosts) { exposure_ += static_cast<double>(time) * hosts; }
  std::pair<const Cause*, Draws> strike() {
    const Cause* cause = &next_->cause();
    const Draws draws = next_->strike();
    find_next();
    return {cause, draws};
  }
  double exposure() const { return exposure_; }

 private:
  void find_next() {
    const auto at = std::ranges::min_element(strikes_, {}, &Strikes::next);
    next_ = at == strikes_.end() ? nullptr : &*at;
  }

  std::vector<Strikes> strikes_;
  Strikes* next_ = nullptr;
  double exposure_ = 0;
};

struct Host {
  std::uint32_t failures = 0;
  bool lemon = false;
};

// Hosts of one duty, lemons apart, each drawn by its weight.
class HostPool {
 public:
  explicit HostPool(const std::array<double, 2>& weights) : weights_(weights) {}
  void put(Host host) { of_[host.lemon].push_back(host); }
  std::size_t size() const { return of_[0].size() + of_[1].size(); }
  double weight() const {
    return weights_[0] * static_cast<double>(of_[0].size()) +
           weights_[1] * static_cast<double>(of_[1].size());
  }
  Host take_by_weight(double u) {
    double at = u * weight();
    const double normal = weights_[0] * static_cast<double>(of_[0].size());
    const bool lemon = of_[0].empty() || (at >= normal && !of_[1].empty());
    if (lemon) at -= normal;
    return take(lemon, at / weights_[lemon]);
  }
  Host take_any(double u) {
    const double at = u * static_cast<double>(size());
    const auto normal = static_cast<double>(of_[0].size());
    const bool lemon = of_[0].empty() || (at >= normal && !of_[1].empty());
    return take(lemon, lemon ? at - normal : at);
  }

 private:
  Host take(bool lemon, double at) {
    std::vector<Host>& from = of_[lemon];
    Host& found = from[std::min(from.size() - 1, static_cast<std::size_t>(std::max(0.0, at)))];
    const Host out = found;
    found = from.back();
    from.pop_back();
    return out;
  }
  std::array<double, 2> weights_;
  std::array<std::vector<Host>, 2> of_;
};

class LifeRun {
 public:
  LifeRun(const Life& life, const SimulateOptions& options, Rng rng)
      : life_(life),
        rng_(rng.stream("hosts")),
        end_(ticks_of(life.days * seconds_per_day)),
        weights_(lemon_weights(life)),
        job_(weights_),
        idle_(weights_),
        work_(ticks_of(options.every_s), ticks_of(life.stall_s)) {
    const Rng in_job = rng.stream("causes"), idle = rng.stream("idle");
    for (const Cause& cause : life.causes) {
      const double per_tick = options.scale * cause.per_host_day / (seconds_per_day * ticks_per_s);
      const bool is_host = cause.group == Group::host;
      (is_host ? of_hosts_ : of_job_).add(cause, per_tick, in_job.stream(cause.name));
      if (is_host) of_idle_.add(cause, per_tick, idle.stream(cause.name));
    }
    const std::uint32_t count = life.hosts + life.spares;
    auto lemons = static_cast<std::uint32_t>(std::lround(life.lemon_share * count));
    for (std::uint32_t i = 0; i < count; ++i) {
      const bool lemon = lemons > 0 && rng_.below(count - i) < lemons;
      lemons -= lemon ? 1 : 0;
      (i < life.hosts ? job_ : idle_).put({.lemon = lemon});
    }
  }

  RunResult go() {
    while (now_ < end_)
      if (const auto strike = run_until(end_, Part::compute)) interruption(*strike);
    work_.save();
    work_.write_to(result_);
    result_.host_exposure = of_hosts_.exposure();
    result_.job_exposure = of_job_.exposure();
    return result_;
  }

 private:
  struct Strike {
    const Cause* cause;
    Draws draws;
  };
  struct Repair {
    Ticks at;
    Host host;
    bool operator<(const Repair& other) const { return at > other.at; }
  };
  struct Slow {
    Ticks until;
    double factor;
  };

  static std::array<double, 2> lemon_weights(const Life& life) {
    const double normal = 1 / (1 + life.lemon_share * (life.lemon_times - 1));
    return {normal, normal * life.lemon_times};
  }
  static bool is_active(Part part) { return part == Part::compute || part == Part::restart; }

  // Lets time pass up to `until` or the next strike on the job, which only running and restarting
  // (compute, restart) are exposed to.
  std::optional<Strike> run_until(Ticks until, Part part) {
    until = std::min(until, end_);
    const bool active = is_active(part);
    const auto in_job = static_cast<double>(job_.size());
    const double job_weight = job_.weight();
    while (now_ < until) {
      const double idle_weight = idle_.weight();
      const Ticks host = active ? of_hosts_.strikes_at(now_, job_weight) : never;
      const Ticks job = active ? of_job_.strikes_at(now_, in_job) : never;
      const Ticks idle = of_idle_.strikes_at(now_, idle_weight);
      const Ticks repaired = repairs_.empty() ? never : repairs_.top().at;
      const Ticks next = std::min({until, host, job, idle, repaired, faster_at_});
      const Ticks time = next - now_;
      if (active) {
        of_hosts_.pass(time, job_weight);
        of_job_.pass(time, in_job);
      }
      of_idle_.pass(time, idle_weight);
      spend(time, part);
      if (next == until) break;
      if (next == repaired) {
        end_repair();
      } else if (next == faster_at_) {
        end_slow();
      } else if (next == idle) {
        const Draws draws = of_idle_.strike().second;
        send_to_repair(idle_.take_by_weight(draws.pick), draws);
      } else {
        const auto [cause, draws] = next == host ? of_hosts_.strike() : of_job_.strike();
        if (cause->factor > 1) begin_slow(*cause, draws);
        if (cause->stops) return Strike{cause, draws};
      }
    }
    return std::nullopt;
  }
  void spend(Ticks time, Part part) {
    now_ += time;
    if (part == Part::compute)
      work_.run(time);
    else
      result_.parts[static_cast<std::size_t>(part)] += time;
  }
  void pause(double seconds, Part part) { run_until(now_ + ticks_of(seconds), part); }

  void interruption(Strike strike) {
    const auto group = static_cast<std::size_t>(strike.cause->group);
    Ticks cost = -now_;
    if (strike.cause->group == Group::planned) {
      work_.save();
    } else {
      const Ticks lost = work_.lose();
      result_.parts[static_cast<std::size_t>(Part::lost)] += lost;
      cost += lost;
    }
    while (true) {
      stop_for(strike);
      const std::size_t joined = find_hosts();
      if (joined > 0 && strike.cause->group == Group::host) pause(life_.swap_s, Part::swap);
      const auto again = run_until(now_ + ticks_of(life_.restart_s), Part::restart);
      if (!again) break;
      strike = *again;
    }
    result_.cost[group] += cost + now_;
  }
  void stop_for(const Strike& strike) {
    ++result_.interruptions[static_cast<std::size_t>(strike.cause->group)];
    if (strike.cause->group == Group::planned) return pause(life_.planned_s, Part::planned);
    std::optional<Host> struck;
    if (strike.cause->group == Group::host) struck = job_.take_by_weight(strike.draws.pick);
    const bool hangs = strike.draws.hang < strike.cause->hang_share;
    pause(hangs ? life_.hang_s : life_.crash_s, Part::detect);
    pause(life_.localise_s, Part::localise);
    if (strike.draws.manual < life_.manual_share) pause(life_.manual_s, Part::manual);
    if (struck) send_to_repair(*struck, strike.draws);
  }

  // Makes the job as large as it can be; waits while that is too small. Returns how many joined.
  std::size_t find_hosts() {
    const std::size_t least = life_.shrink_by > 0 ? life_.least : life_.hosts;
    while (now_ < end_ && possible_size() < least) {
      const Ticks next = std::min(repairs_.empty() ? end_ : repairs_.top().at, end_);
      if (!waits_now_) ++result_.waits;
      waits_now_ = true;
      run_until(next, Part::wait);
      while (!repairs_.empty() && repairs_.top().at <= now_) end_repair();
    }
    waits_now_ = false;
    const std::size_t size = possible_size();
    std::size_t joined = 0;
    while (job_.size() < size) {
      job_.put(idle_.take_any(rng_.uniform()));
      ++joined;
    }
    while (job_.size() > size) idle_.put(job_.take_any(rng_.uniform()));
    result_.swaps += static_cast<std::uint32_t>(joined);
    set_factors();
    return joined;
  }
  std::size_t possible_size() const {
    const std::size_t all = std::min<std::size_t>(life_.hosts, job_.size() + idle_.size());
    return life_.shrink_by > 0 ? all - all % life_.shrink_by : all;
  }

  void send_to_repair(Host host, const Draws& draws) {
    if (++host.failures == life_.retire_after) {
      host = {};  // another machine comes back
      ++result_.retired;
    }
    const Ticks takes = duration(life_.repair_s, draws);
    if (life_.crews > 0 && repairs_.size() >= life_.crews)
      queue_.push_back({takes, host});
    else
      repairs_.push({now_ + takes, host});
  }
  void end_repair() {
    idle_.put(repairs_.top().host);
    const Ticks at = repairs_.top().at;
    repairs_.pop();
    if (queue_.empty()) return;
    repairs_.push({at + queue_.front().at, queue_.front().host});
    queue_.pop_front();
  }
  Ticks duration(double mean_s, const Draws& draws) const {
    double factor = 1;
    if (life_.repair_shape == Shape::exponential) factor = -std::log(draws.uniform);
    if (life_.repair_shape == Shape::lognormal)
      factor = std::exp(lognormal_sigma * draws.normal - lognormal_sigma * lognormal_sigma / 2);
    return std::min(ticks_of(mean_s * factor), 2 * end_);  // what ends later ends never
  }

  void begin_slow(const Cause& cause, const Draws& draws) {
    const Ticks until = now_ + duration(cause.lasts_s, draws);
    const auto same = std::ranges::find(slow_, cause.factor, &Slow::factor);
    if (same == slow_.end())
      slow_.push_back({until, cause.factor});
    else
      same->until = std::max(same->until, until);
    set_factors();
  }
  void end_slow() {
    std::erase_if(slow_, [&](const Slow& slow) { return slow.until <= now_; });
    set_factors();
  }
  void set_factors() {
    double factor = 1;
    faster_at_ = never;
    for (const Slow& slow : slow_) {
      factor = std::max(factor, slow.factor);
      faster_at_ = std::min(faster_at_, slow.until);
    }
    const auto hosts = static_cast<double>(std::max<std::size_t>(1, job_.size()));
    work_.set_factors(factor, std::max(1.0, life_.hosts / hosts));
  }

  const Life& life_;
  Rng rng_;
  Ticks now_ = 0, end_;
  std::array<double, 2> weights_;
  HostPool job_, idle_;
  ExposureClock of_hosts_, of_job_, of_idle_;
  std::priority_queue<Repair> repairs_;
  std::deque<Repair> queue_;  // `at`: how long it takes
  std::vector<Slow> slow_;    // by factor: the last to end
  Ticks faster_at_ = never;
  Work work_;
  RunResult result_;
  bool waits_now_ = false;
};

constexpr std::array<std::string_view, part_count> part_names{
    "compute",      "slow steps",  "fewer hosts",  "checkpoint stall",  "lost work", "detection",
    "localisation", "manual work", "planned stop", "waiting for hosts", "swap",      "restart"};

}  // namespace

std::string_view to_text(Part part) { return part_names[static_cast<std::size_t>(part)]; }

double RunResult::goodput() const {
  Ticks all = 0;
  for (const Ticks part : parts) all += part;
  return static_cast<double>(parts[0]) / static_cast<double>(all);
}

std::uint32_t RunResult::interruption_count() const {
  std::uint32_t sum = 0;
  for (const std::uint32_t count : interruptions) sum += count;
  return sum;
}

std::vector<RunResult> simulate(const Life& life, const SimulateOptions& options) {
  std::vector<RunResult> results(life.runs);
  const Rng rng = Rng(options.seed).stream("life");
  parallel_for(life.runs, options.threads,
               [&](std::size_t i) { results[i] = LifeRun(life, options, rng.stream(i)).go(); });
  return results;
}

double expected_interruptions(const Life& life, double scale, const RunResult& run) {
  double sum = 0;
  for (const Cause& cause : life.causes)
    if (cause.stops)
      sum +=
          cause.per_host_day * (cause.group == Group::host ? run.host_exposure : run.job_exposure);
  return scale * sum / (seconds_per_day * ticks_per_s);
}

}  // namespace weft::plan::life
