#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/check.hpp"
#include "base/rng.hpp"
#include "plan/regions/regions.hpp"

namespace weft::plan::regions {
namespace {

constexpr std::size_t exhausted_jobs_max = 64;  // of which nothing worth while is seen otherwise
constexpr double unlimited = std::numeric_limits<double>::infinity();

bool has(std::uint64_t set, std::uint32_t region) { return (set >> region & 1) != 0; }

std::uint32_t draw_bit(std::uint64_t set, Rng& rng) {
  for (std::uint64_t skip = rng.below(static_cast<std::uint64_t>(std::popcount(set))); skip > 0;
       --skip)
    set &= set - 1;
  return static_cast<std::uint32_t>(std::countr_zero(set));
}

// Jobs in their regions, with what that costs: bytes of copies, and GPUs beyond each region's.
class State {
 public:
  State(const Problem& problem, std::vector<std::uint32_t> at)
      : problem_(problem),
        at_(std::move(at)),
        users_(problem.data.size() * problem.regions.size(), 0),
        load_(problem.regions.size(), 0) {
    for (std::uint32_t j = 0; j < at_.size(); ++j) enter(j, at_[j]);
  }

  std::uint32_t at(std::uint32_t job) const { return at_[job]; }
  const std::vector<std::uint32_t>& all() const { return at_; }
  double bytes() const { return bytes_; }
  double overload() const { return overload_; }

  void move(std::uint32_t job, std::uint32_t to) {
    leave(job, at_[job]);
    at_[job] = to;
    enter(job, to);
  }

 private:
  std::uint32_t& users(std::uint32_t data, std::uint32_t region) {
    return users_[data * problem_.regions.size() + region];
  }
  double copy_bytes(std::uint32_t data, std::uint32_t region) const {
    return has(problem_.data[data].at, region) ? 0 : problem_.data[data].bytes;
  }
  void add_load(std::uint32_t region, double gpus) {
    const double room = problem_.regions[region].gpus;
    overload_ -= std::max(0.0, load_[region] - room);
    load_[region] += gpus;
    overload_ += std::max(0.0, load_[region] - room);
  }
  void enter(std::uint32_t job, std::uint32_t region) {
    for (const std::uint32_t d : problem_.jobs[job].data)
      if (users(d, region)++ == 0) bytes_ += copy_bytes(d, region);
    add_load(region, problem_.jobs[job].gpus);
  }
  void leave(std::uint32_t job, std::uint32_t region) {
    for (const std::uint32_t d : problem_.jobs[job].data)
      if (--users(d, region) == 0) bytes_ -= copy_bytes(d, region);
    add_load(region, -problem_.jobs[job].gpus);
  }

  const Problem& problem_;
  std::vector<std::uint32_t> at_;
  std::vector<std::uint32_t> users_;  // by data set and region
  std::vector<double> load_;
  double bytes_ = 0, overload_ = 0;
};

// Annealing. A move takes one job, two jobs of different regions, or all jobs of a data set from
// one region to another: without the last, most answers cost twice the bytes.
class Search {
 public:
  Search(const Problem& problem, std::vector<std::uint32_t> start, Rng rng)
      : problem_(problem), state_(problem, std::move(start)), rng_(rng) {
    users_.resize(problem.data.size());
    for (std::uint32_t j = 0; j < problem.jobs.size(); ++j)
      for (const std::uint32_t d : problem.jobs[j].data) users_[d].push_back(j);
    note();
  }

  // Ends at `coldest` of the first temperature. `lenient`: the first price of a GPU too many.
  void run(std::uint64_t moves, double lenient, double coldest) {
    double bytes = 0, gpus = 0;
    for (const DataSet& set : problem_.data) bytes += set.bytes;
    for (const Job& job : problem_.jobs) gpus += job.gpus;
    const double mean_bytes = std::max(1.0, bytes) / static_cast<double>(problem_.data.size() + 1);
    const double per_gpu = std::max(1.0, bytes) / gpus;
    constexpr std::uint64_t batch = 256;
    for (std::uint64_t i = 0; i < moves; ++i) {
      if (i % batch == 0) {
        const double done = static_cast<double>(i) / static_cast<double>(moves);
        temperature_ = mean_bytes * 0.5 * std::pow(coldest, done);
        penalty_ = per_gpu * lenient * std::pow(300.0, done);
      }
      propose();
    }
  }

  struct Best {
    std::vector<std::uint32_t> at;
    double bytes = unlimited, overload = unlimited;
  };
  const Best& best() const { return best_; }

 private:
  void propose() {
    undo_.clear();
    const double before = value();
    const std::uint64_t kind = rng_.below(16);
    if (kind < 7)
      move_one();
    else if (kind < 10)
      swap_two();
    else
      move_set(kind >= 14);
    if (undo_.empty()) return;
    const double change = value() - before;
    if (change > 0 && rng_.uniform() >= std::exp(-change / temperature_)) {
      for (auto it = undo_.rbegin(); it != undo_.rend(); ++it) state_.move(it->job, it->from);
      return;
    }
    note();
  }
  double value() const { return state_.bytes() + penalty_ * state_.overload(); }

  void move(std::uint32_t job, std::uint32_t to) {
    undo_.push_back({job, state_.at(job)});
    state_.move(job, to);
  }
  std::uint32_t draw_job() { return static_cast<std::uint32_t>(rng_.below(problem_.jobs.size())); }
  std::uint32_t draw_set() { return static_cast<std::uint32_t>(rng_.below(users_.size())); }

  void move_one() {
    const std::uint32_t job = draw_job();
    const std::uint32_t to = draw_bit(problem_.jobs[job].within, rng_);
    if (to != state_.at(job)) move(job, to);
  }
  void swap_two() {
    const std::uint32_t a = draw_job(), b = draw_job();
    const std::uint32_t at_a = state_.at(a), at_b = state_.at(b);
    if (at_a == at_b || !has(problem_.jobs[a].within, at_b) || !has(problem_.jobs[b].within, at_a))
      return;
    move(a, at_b);
    move(b, at_a);
  }
  // All jobs of a set in one region; `exchange`: those of another set there come the other way.
  void move_set(bool exchange) {
    if (users_.empty()) return;
    const std::vector<std::uint32_t>& jobs = users_[draw_set()];
    if (jobs.empty()) return;
    const std::uint32_t first = jobs[rng_.below(jobs.size())];
    const std::uint32_t from = state_.at(first), to = draw_bit(problem_.jobs[first].within, rng_);
    if (from == to) return;
    take(jobs, from, to);
    if (!exchange) return;
    const std::vector<std::uint32_t>& others = users_[draw_set()];
    if (&others != &jobs) take(others, to, from);
  }
  void take(const std::vector<std::uint32_t>& jobs, std::uint32_t from, std::uint32_t to) {
    for (const std::uint32_t job : jobs)
      if (state_.at(job) == from && has(problem_.jobs[job].within, to)) move(job, to);
  }

  // GPUs are whole numbers in practice; what sums leave over is no overload.
  static constexpr double no_overload = 1e-6;
  void note() {
    const double overload = state_.overload() < no_overload ? 0 : state_.overload();
    if (overload > best_.overload) return;
    // Sums of bytes drift by rounding: a gain must be more than that.
    if (overload == best_.overload && state_.bytes() >= best_.bytes * (1 - 1e-12)) return;
    best_ = {state_.all(), state_.bytes(), overload};
  }

  const Problem& problem_;
  State state_;
  Rng rng_;
  std::vector<std::vector<std::uint32_t>> users_;  // jobs by data set
  struct Moved {
    std::uint32_t job, from;
  };
  std::vector<Moved> undo_;
  double temperature_ = 1, penalty_ = 1;
  Best best_;
};

// Looks through all plans cheaper than the one at hand, largest jobs first, as far as `steps_left`
// reaches: of a dozen jobs, that is all the way.
class Exhaustion {
 public:
  Exhaustion(const Problem& problem, Search::Best& best) : problem_(problem), best_(best) {
    order_.resize(problem.jobs.size());
    std::iota(order_.begin(), order_.end(), 0u);
    std::ranges::stable_sort(order_, std::greater{},
                             [&](std::uint32_t j) { return problem.jobs[j].gpus; });
    at_.resize(problem.jobs.size());
    copied_.resize(problem.data.size(), 0);
    load_.resize(problem.regions.size(), 0);
  }

  // True: no plan is cheaper than `best`, or none holds all jobs.
  bool run() {
    try_from(0, 0);
    return steps_left_ > 0;
  }

 private:
  void try_from(std::size_t depth, double bytes) {
    if (steps_left_ == 0 || (best_.overload == 0 && bytes >= best_.bytes * (1 - 1e-12))) return;
    --steps_left_;
    if (depth == order_.size()) {
      best_ = {at_, bytes, 0};
      return;
    }
    const std::uint32_t j = order_[depth];
    const Job& job = problem_.jobs[j];
    for (std::uint32_t r = 0; r < load_.size(); ++r) {
      if (!has(job.within, r) || load_[r] + job.gpus > problem_.regions[r].gpus) continue;
      const std::uint64_t bit = std::uint64_t{1} << r;
      std::vector<std::uint32_t> copied;
      double more = 0;
      for (const std::uint32_t d : job.data)
        if (((problem_.data[d].at | copied_[d]) & bit) == 0) {
          copied_[d] |= bit;
          copied.push_back(d);
          more += problem_.data[d].bytes;
        }
      load_[r] += job.gpus;
      at_[j] = r;
      try_from(depth + 1, bytes + more);
      load_[r] -= job.gpus;
      for (const std::uint32_t d : copied) copied_[d] &= ~bit;
    }
  }

  const Problem& problem_;
  Search::Best& best_;
  std::vector<std::uint32_t> order_, at_;
  std::vector<std::uint64_t> copied_;
  std::vector<double> load_;
  std::uint32_t steps_left_ = 2'000'000;
};

// Where each job runs if nothing is copied for it that need not be: its largest set's first region.
std::vector<std::uint32_t> at_home(const Problem& problem) {
  std::vector<std::uint32_t> out;
  for (const Job& job : problem.jobs) {
    std::uint64_t where = job.within;
    double largest = -1;
    for (const std::uint32_t d : job.data) {
      const std::uint64_t held = problem.data[d].at & job.within;
      if (held == 0 || problem.data[d].bytes <= largest) continue;
      largest = problem.data[d].bytes;
      where = held;
    }
    out.push_back(static_cast<std::uint32_t>(std::countr_zero(where)));
  }
  return out;
}

std::vector<double> load_of(const Problem& problem, const std::vector<std::uint32_t>& region) {
  std::vector<double> out(problem.regions.size(), 0);
  for (std::size_t j = 0; j < region.size(); ++j) out[region[j]] += problem.jobs[j].gpus;
  return out;
}

// The Lagrangian over the regions' capacity: jobs pay a price for each GPU, and sets are copied one
// by one. What is relaxed besides only lowers it: a job of several sets is cut into equal shares
// that may run apart, and of a set's jobs each may run where any of them may.
class Relaxation {
 public:
  explicit Relaxation(const Problem& problem) : problem_(problem), sets_(problem.data.size()) {
    while (subset_bits_ > 0 && sets_.size() << subset_bits_ > subsets_max) --subset_bits_;
    for (const Job& job : problem.jobs) {
      if (job.data.empty()) free_.push_back(&job);
      for (const std::uint32_t d : job.data) {
        sets_[d].gpus += job.gpus / static_cast<double>(job.data.size());
        sets_[d].within |= job.within;
      }
    }
  }

  // Adds the GPUs that the cheapest answer puts in each region to `load`.
  double value(const std::vector<double>& prices, std::vector<double>& load) {
    order_.resize(prices.size());
    std::iota(order_.begin(), order_.end(), 0u);
    std::ranges::stable_sort(order_, {}, [&](std::uint32_t r) { return prices[r]; });
    double out = 0;
    for (std::size_t r = 0; r < prices.size(); ++r) out -= prices[r] * problem_.regions[r].gpus;
    for (const Job* job : free_)
      for (const std::uint32_t r : order_)
        if (has(job->within, r)) {
          out += job->gpus * prices[r];
          load[r] += job->gpus;
          break;
        }
    for (std::uint32_t d = 0; d < sets_.size(); ++d)
      if (sets_[d].gpus > 0) out += value(d, prices, load);
    return out;
  }

 private:
  struct Set {
    double gpus = 0;
    std::uint64_t within = 0;
  };
  // The cheapest choice of regions to copy the set to, then of where its jobs run: the cheapest
  // first, each up to the whole region.
  double value(std::uint32_t d, const std::vector<double>& prices, std::vector<double>& load) {
    const Set& set = sets_[d];
    const std::uint64_t held = problem_.data[d].at & set.within;
    const std::uint64_t others = set.within & ~held;
    double best = unlimited;
    std::uint64_t best_open = 0;
    const auto try_open = [&](std::uint64_t open) {
      const double copies = problem_.data[d].bytes * std::popcount(open & others);
      if (copies >= best) return;
      const double cost = copies + fill(set.gpus, open, prices, nullptr);
      if (cost < best) {
        best = cost;
        best_open = open;
      }
    };
    if (std::popcount(others) <= subset_bits_) {
      // Counts through the subsets of `others`.
      std::uint64_t subset = others;
      while (true) {
        try_open(held | subset);
        if (subset == 0) break;
        subset = (subset - 1) & others;
      }
    } else {  // too many: capacity of single regions is given up, so that one more region is enough
      double cost = unlimited;
      std::uint32_t cheapest = 0;
      for (const std::uint32_t r : order_) {
        if (!has(set.within, r)) continue;
        const double one = (has(held, r) ? 0 : problem_.data[d].bytes) + set.gpus * prices[r];
        if (one < cost) {
          cost = one;
          cheapest = r;
        }
      }
      load[cheapest] += set.gpus;
      return cost;
    }
    if (best == unlimited) return 0;  // no choice holds its jobs: the search will find that too
    fill(set.gpus, best_open, prices, &load);
    return best;
  }
  double fill(double gpus, std::uint64_t open, const std::vector<double>& prices,
              std::vector<double>* load) const {
    double cost = 0;
    for (const std::uint32_t r : order_) {
      if (!has(open, r)) continue;
      const double here = std::min(gpus, problem_.regions[r].gpus);
      cost += here * prices[r];
      gpus -= here;
      if (load != nullptr) (*load)[r] += here;
      if (gpus <= 0) return cost;
    }
    return unlimited;
  }

  static constexpr std::size_t subsets_max = 100'000;  // of all data sets, for each value
  int subset_bits_ = 9;
  const Problem& problem_;
  std::vector<Set> sets_;
  std::vector<const Job*> free_;
  std::vector<std::uint32_t> order_;  // regions by price
};

// Ascent along subgradients, with steps as Held, Wolfe and Crowder, "Validation of subgradient
// optimization", 1974: towards `target`, the value of a known plan.
void raise_bound(const Problem& problem, double target, Plan& plan) {
  constexpr int rounds = 400, patience = 20;
  Relaxation relaxation(problem);
  std::vector<double> prices(problem.regions.size(), 0), load;
  double scale = 1;
  int idle = 0;
  plan.bound = -unlimited;
  for (int round = 0; round < rounds && plan.bound < target; ++round) {
    load.assign(prices.size(), 0);
    const double value = relaxation.value(prices, load);
    if (value > plan.bound) {
      plan.bound = value;
      plan.prices = prices;
      idle = 0;
    } else if (++idle == patience) {
      scale /= 2;
      idle = 0;
    }
    double norm = 0;
    for (std::size_t r = 0; r < prices.size(); ++r) {
      const double slope = load[r] - problem.regions[r].gpus;
      if (slope > 0 || prices[r] > 0) norm += slope * slope;
    }
    if (norm == 0) break;
    const double step = scale * std::max(target - value, 1e-9 * std::abs(target)) / norm;
    for (std::size_t r = 0; r < prices.size(); ++r)
      prices[r] = std::max(0.0, prices[r] + step * (load[r] - problem.regions[r].gpus));
  }
  plan.bound = std::max(0.0, plan.bound);
}

void add_copies(const Problem& problem, Plan& plan) {
  std::vector<std::uint64_t> needed(problem.data.size(), 0);
  for (std::size_t j = 0; j < problem.jobs.size(); ++j)
    for (const std::uint32_t d : problem.jobs[j].data)
      needed[d] |= std::uint64_t{1} << plan.region[j];
  for (std::uint32_t d = 0; d < problem.data.size(); ++d)
    for (std::uint32_t r = 0; r < problem.regions.size(); ++r)
      if (has(needed[d] & ~problem.data[d].at, r)) {
        plan.copies.push_back(
            {d, static_cast<std::uint32_t>(std::countr_zero(problem.data[d].at)), r});
        plan.bytes += problem.data[d].bytes;
      }
}

}  // namespace

Result<Plan> plan_regions(const Problem& problem, const SearchOptions& options) {
  WEFT_CHECK(!problem.regions.empty() && !problem.jobs.empty());
  // Tight regions are packed at higher temperatures than bytes are saved.
  struct Schedule {
    double lenient, coldest;
  };
  constexpr std::array<Schedule, 4> runs{{{0.3, 1e-4}, {0.3, 1e-3}, {1, 1e-4}, {0.1, 0.1}}};
  constexpr double moves_each = 1.5e6;
  const std::vector<std::uint32_t> home = at_home(problem);
  Search::Best best;
  for (std::uint64_t run = 0; run < runs.size(); ++run) {
    Search search(problem, home, Rng(options.seed).stream(run));
    search.run(static_cast<std::uint64_t>(moves_each * options.effort), runs[run].lenient,
               runs[run].coldest);
    const Search::Best& found = search.best();
    if (std::pair(found.overload, found.bytes) < std::pair(best.overload, best.bytes)) best = found;
  }
  const bool all_seen =
      problem.jobs.size() <= exhausted_jobs_max && Exhaustion(problem, best).run();
  Plan plan{.region = best.at, .exhaustive = all_seen};
  plan.load = load_of(problem, plan.region);
  plan.home_load = load_of(problem, home);
  if (best.overload > 0) {
    std::string where;
    for (std::size_t r = 0; r < plan.load.size(); ++r)
      if (const double beyond = plan.load[r] - problem.regions[r].gpus; beyond > 0)
        where += fmt::format("{}{:.6g} in {}", where.empty() ? "" : ", ", beyond,
                             problem.regions[r].name);
    return fail(
        Errc::infeasible, {},
        fmt::format("no plan was found within the regions' GPUs; the best one lacks {}", where),
        "shorten the list of jobs, loosen \"within\", or search longer with --effort");
  }
  add_copies(problem, plan);
  raise_bound(problem, plan.bytes, plan);
  if (all_seen) plan.bound = plan.bytes;
  return plan;
}

double bound_at(const Problem& problem, const std::vector<double>& prices) {
  std::vector<double> load(prices.size(), 0);
  return Relaxation(problem).value(prices, load);
}

std::string check_plan(const Problem& problem, const Plan& plan) {
  if (plan.region.size() != problem.jobs.size()) return "not every job has a region";
  std::vector<double> load(problem.regions.size(), 0);
  double bytes = 0;
  for (const Copy& copy : plan.copies) {
    if (!has(problem.data[copy.data].at, copy.from) || has(problem.data[copy.data].at, copy.to))
      return fmt::format("a copy of {} leads nowhere", problem.data[copy.data].name);
    bytes += problem.data[copy.data].bytes;
  }
  for (std::size_t j = 0; j < problem.jobs.size(); ++j) {
    const Job& job = problem.jobs[j];
    const std::uint32_t r = plan.region[j];
    if (!has(job.within, r)) return fmt::format("{} may not run in {}", job.name, r);
    load[r] += job.gpus;
    for (const std::uint32_t d : job.data)
      if (!has(problem.data[d].at, r) && std::ranges::none_of(plan.copies, [&](const Copy& copy) {
            return copy.data == d && copy.to == r;
          }))
        return fmt::format("{} runs without {}", job.name, problem.data[d].name);
  }
  for (std::size_t r = 0; r < load.size(); ++r)
    if (load[r] > problem.regions[r].gpus * (1 + 1e-9))
      return fmt::format("{} is overloaded", problem.regions[r].name);
  return std::abs(bytes - plan.bytes) <= 1e-9 * bytes ? "" : "the bytes do not add up";
}

}  // namespace weft::plan::regions
