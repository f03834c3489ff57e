#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "plan/edge/program.hpp"

namespace weft::plan::edge {
namespace {

std::vector<Popularity> popularities(const Problem& problem) {
  std::vector<Popularity> out;
  for (const Service& service : problem.services)
    out.emplace_back(service.content.objects, service.content.zipf);
  return out;
}

// Money an hour that every answer from the cache saves, by Problem::at().
using Savings = std::vector<double>;

// Shares of a program's columns, feasible, with what they cost.
struct Solution {
  std::vector<double> x, prices;  // prices: money an hour for a whole row
  double cost = 0, bound = 0, unserved = 0;
  std::uint32_t iterations = 0;
  double seconds = 0;
};

// Shares of a program's columns and what they load, made feasible and then cheaper step by step.
class Shares {
 public:
  Shares(const Program& program, std::vector<double>& x)
      : program_(program), x_(x), load_(program.capacity.size(), 0.0) {
    count();
  }

  // Ways that cross a full row are cut; what is left over is not served, for now.
  void cut() {
    std::vector<double> factor;
    for (const double load : load_) factor.push_back(std::min(1.0, 1 / load));
    for (std::size_t q = 0; q < x_.size(); ++q) {
      double least = 1;
      for (std::size_t k = 0; k < program_.rows(q).size(); ++k)
        if (program_.load(q, k) > 0) least = std::min(least, factor[program_.rows(q)[k]]);
      x_[q] *= least;
    }
    for (std::size_t b = 0; b < program_.linear.column_blocks.size(); ++b) {
      const auto at = [&](std::size_t q) { return x_.begin() + static_cast<std::ptrdiff_t>(q); };
      const std::size_t last = program_.block_end(b) - 1;
      const double left =
          1 - std::accumulate(at(program_.linear.column_blocks[b].begin), at(last), 0.0);
      x_[last] = left > 1e-12 ? left : 0;
    }
    count();
  }

  // Moves shares to cheaper ways of their block that have room.
  void improve() {
    std::vector<std::size_t> order;
    for (std::size_t b = 0; b < program_.linear.column_blocks.size(); ++b) {
      const std::size_t begin = program_.linear.column_blocks[b].begin;
      order.resize(program_.block_end(b) - begin);
      std::iota(order.begin(), order.end(), begin);
      std::ranges::stable_sort(order, {}, [&](std::size_t q) { return program_.cost[q]; });
      for (std::size_t i = order.size(); i-- > 1;)
        for (std::size_t k = 0; k < i && x_[order[i]] > 0; ++k) move(order[i], order[k]);
    }
  }

 private:
  void count() {
    std::ranges::fill(load_, 0.0);
    for (std::size_t q = 0; q < x_.size(); ++q) add(q, x_[q]);
  }
  void add(std::size_t q, double share) {
    for (std::size_t k = 0; k < program_.rows(q).size(); ++k)
      load_[program_.rows(q)[k]] += share * program_.load(q, k);
  }
  double load_of(std::size_t q, std::uint32_t row) const {
    double out = 0;
    for (std::size_t k = 0; k < program_.rows(q).size(); ++k)
      if (program_.rows(q)[k] == row) out += program_.load(q, k);
    return out;
  }
  void move(std::size_t from, std::size_t to) {
    double share = x_[from];
    for (std::size_t k = 0; k < program_.rows(to).size(); ++k) {
      const std::uint32_t row = program_.rows(to)[k];
      const double more = program_.load(to, k) - load_of(from, row);
      if (more > 0) share = std::min(share, (1 - load_[row]) / more);
    }
    // Small parts only where that empties a way, or serves what is not served.
    constexpr double least = 1e-3;
    if (share <= 0 || (share < least && share < x_[from] && program_.ways[from].metro != nowhere))
      return;
    x_[from] = share < x_[from] ? x_[from] - share : 0;
    x_[to] += share;
    add(from, -share);
    add(to, share);
  }

  const Program& program_;
  std::vector<double>& x_;
  std::vector<double> load_;
};

// Shares below `crumb` are left to the other ways of their block, and all is made feasible.
std::vector<double> tidy(const Program& program, std::vector<double> x, double crumb) {
  for (std::size_t b = 0; b < program.linear.column_blocks.size(); ++b) {
    const std::size_t begin = program.linear.column_blocks[b].begin, end = program.block_end(b);
    double sum = 0;
    for (std::size_t q = begin; q < end; ++q) sum += x[q] < crumb ? 0 : x[q];
    if (sum < 0.5) continue;  // many small ones
    for (std::size_t q = begin; q < end; ++q) x[q] = x[q] < crumb ? 0 : x[q] / sum;
  }
  Shares shares(program, x);
  shares.cut();
  shares.improve();
  return x;
}

double bound_of(const Program& program, const std::vector<double>& prices) {
  saddle::Problem whole = program.linear;
  std::vector<double> y = prices;
  for (std::size_t r = 0; r < y.size(); ++r) {
    whole.row_blocks[r].limit = 1 / program.largest[r];
    y[r] *= program.largest[r] / program.unit;
  }
  return saddle::bound_of(whole, y) * program.unit;
}

Solution solve_program(const Program& program, double gap, saddle::Start* start) {
  Solution best{.cost = saddle::unbounded, .bound = -saddle::unbounded};
  if (program.ways.empty())
    return {.x = {}, .prices = std::vector<double>(program.capacity.size(), 0.0)};
  const bool is_warm = start->x.size() == program.ways.size();
  double aim = gap;
  for (int i = 0; i < 4; ++i, aim /= 8) {
    const saddle::Answer answer = saddle::solve(
        program.linear, {.gap = aim, .iterations_max = 20'000}, i > 0 || is_warm ? start : nullptr);
    best.iterations += answer.iterations;
    best.seconds += answer.seconds;
    *start = answer.next;
    std::vector<double> prices = answer.y;
    for (std::size_t r = 0; r < prices.size(); ++r) prices[r] *= program.unit / program.largest[r];
    const double bound = bound_of(program, prices);
    // As few ways as the gap allows.
    for (const double crumb : {1e-2, 1e-3, 1e-5}) {
      std::vector<double> x = tidy(program, answer.x, crumb);
      const double cost = std::inner_product(x.begin(), x.end(), program.cost.begin(), 0.0);
      if (cost < best.cost) {
        best.cost = cost;
        best.x = std::move(x);
      }
      if (cost - bound <= gap * std::abs(bound)) break;
    }
    if (bound > best.bound) {
      best.bound = bound;
      best.prices = std::move(prices);
    }
    if (best.cost - best.bound <= gap * std::abs(best.bound)) break;
  }
  for (std::size_t b = 0; b < program.linear.column_blocks.size(); ++b)
    best.unserved += best.x[program.block_end(b) - 1];
  return best;
}

// What an answer from the cache saves, by the ways of a plan and the prices of full rows.
Savings savings_of(const Problem& problem, const Caches& caches, const Program& program,
                   const Solution& solution) {
  Savings out(problem.metros.size() * problem.services.size(), 0.0);
  for (std::size_t q = 0; q < program.ways.size(); ++q) {
    const Way& way = program.ways[q];
    if (way.metro == nowhere || solution.x[q] <= 0) continue;
    const double left = missed(problem, caches, way.metro, way.service);
    if (left <= 0) continue;
    const Use use = use_of(problem, caches, way);
    double saved = use.gpu_cost + use.uplink_cost;
    for (std::size_t k = 0; k < program.rows(q).size(); ++k)
      saved += program.load(q, k) * solution.prices[program.rows(q)[k]];
    out[problem.at(way.metro, way.service)] +=
        solution.x[q] * saved / left * problem.services[way.service].content.share;
  }
  return out;
}

// The same before there is a plan: all at their nearest metros, by the cheapest way from there.
Savings first_savings(const Problem& problem, const Caches& none) {
  Savings out(problem.metros.size() * problem.services.size(), 0.0);
  for (std::uint32_t a = 0; a < problem.areas.size(); ++a) {
    std::uint32_t nearest = 0;
    for (std::uint32_t m = 1; m < problem.metros.size(); ++m)
      if (problem.rtt(a, m) < problem.rtt(a, nearest)) nearest = m;
    for (std::uint32_t s = 0; s < problem.services.size(); ++s) {
      const double share = problem.services[s].content.share;
      if (share <= 0) continue;
      double least = saddle::unbounded;
      if (problem.services[s].gpu_s > 0)
        least = use_of(problem, none, {a, s, nearest, at_metro, 1}).gpu_cost;
      for (std::uint32_t d = 0; d < problem.data_centres.size(); ++d) {
        const Use use = use_of(problem, none, {a, s, nearest, d, 1});
        least = std::min(least, use.gpu_cost + use.uplink_cost);
      }
      // Where nothing costs: bytes.
      const double bytes = problem.areas[a].requests[s] * problem.services[s].response_bytes;
      out[problem.at(nearest, s)] += share * (least + 1e-9 * bytes);
    }
  }
  return out;
}

Caches no_caches(const Problem& problem) {
  const std::size_t count = problem.metros.size() * problem.services.size();
  return {std::vector<double>(count, 0.0), std::vector<double>(count, 0.0)};
}

// Bytes of each service at a worth of cache bytes: where the next byte saves no more.
std::vector<double> bytes_at(const Problem& problem, const std::vector<Popularity>& popularity,
                             std::size_t metro, const Savings& savings, double worth) {
  std::vector<double> out;
  for (std::size_t s = 0; s < problem.services.size(); ++s) {
    const Content& content = problem.services[s].content;
    const double saved = savings[problem.at(metro, s)];
    out.push_back(saved > 0 ? popularity[s].size_at(worth * content.object_bytes / saved) *
                                  content.object_bytes
                            : 0);
  }
  return out;
}

void split_metro(const Problem& problem, const std::vector<Popularity>& popularity,
                 std::size_t metro, const Savings& savings, Caches& out) {
  const double room = problem.metros[metro].cache_bytes;
  const auto sum = [](const std::vector<double>& v) {
    return std::accumulate(v.begin(), v.end(), 0.0);
  };
  const auto at = [&](double worth) {
    return bytes_at(problem, popularity, metro, savings, worth);
  };
  std::vector<double> split = at(0);
  if (sum(split) > room) {
    double low = 0, high = 1e-30;
    while (sum(at(high)) > room && high < 1e30) low = std::exchange(high, high * 16);
    for (int i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      (sum(at(middle)) > room ? low : high) = middle;
    }
    // Between the two, where many objects are worth the same.
    const std::vector<double> more = at(low);
    split = at(high);
    const double part = std::clamp((room - sum(split)) / (sum(more) - sum(split)), 0.0, 1.0);
    for (std::size_t s = 0; s < split.size(); ++s) split[s] += part * (more[s] - split[s]);
  }
  for (std::size_t s = 0; s < split.size(); ++s) {
    const double object = problem.services[s].content.object_bytes;
    if (split[s] <= 0) continue;
    out.bytes[problem.at(metro, s)] = split[s];
    out.hit[problem.at(metro, s)] = popularity[s].hit_rate(split[s] / object);
  }
}

// Each metro's cache in equal parts to services with content.
Caches even_caches(const Problem& problem) {
  const std::vector<Popularity> popularity = popularities(problem);
  Caches out = no_caches(problem);
  const auto sharing =
      std::ranges::count_if(problem.services, [](const Service& s) { return s.content.share > 0; });
  for (std::size_t m = 0; m < problem.metros.size(); ++m)
    for (std::size_t s = 0; s < problem.services.size(); ++s) {
      const Content& content = problem.services[s].content;
      if (content.share <= 0) continue;
      double& bytes = out.bytes[problem.at(m, s)];
      bytes = problem.metros[m].cache_bytes / static_cast<double>(sharing);
      out.hit[problem.at(m, s)] = popularity[s].hit_rate(bytes / content.object_bytes);
    }
  return out;
}

bool has_caches(const Problem& problem) {
  return std::ranges::any_of(problem.metros, [](const Metro& m) { return m.cache_bytes > 0; }) &&
         std::ranges::any_of(problem.services,
                             [](const Service& s) { return s.content.share > 0; });
}

class Planner {
 public:
  Planner(const Problem& problem, const PlanOptions& options)
      : problem_(problem), options_(options) {}

  Plan run() {
    if (options_.caches || !has_caches(problem_)) {
      solve(options_.caches.value_or(no_caches(problem_)), options_.gap);
      return finish();
    }
    // Every service with the whole cache: a bound for any split, and a first idea of the plan.
    const Caches whole = whole_caches(problem_);
    const Program any = program(whole, penalty_);
    const Solution least = solve_program(any, options_.gap, &start_);
    iterations_ += least.iterations;
    seconds_ += least.seconds;
    const double gap = std::max(options_.gap, rough_gap);
    improve(split_caches(problem_, savings_of(problem_, whole, any, least)), gap);
    improve(split_caches(problem_, first_savings(problem_, no_caches(problem_))), gap);
    improve(even_caches(problem_), gap);
    if (gap > options_.gap) solve(Caches(caches_), options_.gap);
    Plan out = finish();
    if (out.unserved.empty()) out.bound_any = std::min(least.bound, out.bound);
    return out;
  }

 private:
  Program program(const Caches& caches, double penalty) const {
    return make_program(problem_, caches,
                        {.down = options_.down, .penalty = penalty, .margin = options_.gap / 4});
  }

  // Plan, split, plan ... as long as that pays.
  void improve(Caches caches, double gap) {
    double before = saddle::unbounded;
    for (std::uint32_t round = 0; round < options_.rounds_max; ++round) {
      double cost = 0;
      const Savings savings = solve(caches, gap, &cost);
      if (cost > before * (1 - gap / 2)) break;
      before = cost;
      caches = split_caches(problem_, savings);
    }
  }

  // Keeps the plan where it is the best so far.
  Savings solve(const Caches& caches, double gap, double* cost = nullptr) {
    Program now = program(caches, penalty_);
    Solution solution = solve_program(now, gap, &start_);
    if (solution.unserved > 0 && penalty_ == first_penalty) {
      penalty_ *= 10;
      const std::uint32_t iterations = solution.iterations;
      now = program(caches, penalty_);
      solution = solve_program(now, gap, &start_);
      solution.iterations += iterations;
    }
    iterations_ += solution.iterations;
    seconds_ += solution.seconds;
    Savings out = savings_of(problem_, caches, now, solution);
    if (cost != nullptr) *cost = solution.cost;
    if (!(solution.cost < best_.cost)) {
      if (caches_.bytes == caches.bytes) raise_bound(solution);
      return out;
    }
    best_ = std::move(solution);
    program_ = std::move(now);
    caches_ = caches;
    return out;
  }

  // Of the same caches, from a better solution of the prices.
  void raise_bound(Solution& solution) {
    if (solution.bound <= best_.bound) return;
    best_.bound = solution.bound;
    best_.prices = std::move(solution.prices);
  }

  Plan finish() {
    Plan out{.ways = {},
             .unserved = {},
             .caches = std::move(caches_),
             .cost = best_.cost,
             .bound = best_.bound,
             .iterations = iterations_,
             .seconds = seconds_};
    const std::size_t metros = problem_.metros.size(),
                      sites = metros + problem_.data_centres.size();
    std::vector<double> used(sites + metros, 0.0);
    for (std::size_t q = 0; q < program_.ways.size(); ++q) {
      Way way = program_.ways[q];
      way.share = best_.x[q];
      if (way.share <= 0) continue;
      if (way.metro == nowhere) {
        out.unserved.push_back({way.area, way.service, way.share});
        out.cost -= way.share * program_.cost[q];
        out.bound -= way.share * program_.cost[q];
        continue;
      }
      for (std::size_t k = 0; k < program_.rows(q).size(); ++k) {
        const std::uint32_t r = program_.rows(q)[k];
        used[r] += way.share * program_.load(q, k) * program_.capacity[r];
      }
      out.ways.push_back(way);
    }
    out.gpus_used.assign(used.begin(), used.begin() + static_cast<std::ptrdiff_t>(sites));
    out.uplink_used.assign(used.begin() + static_cast<std::ptrdiff_t>(sites), used.end());
    const auto worth = [&](std::size_t r, double of) {
      return program_.capacity[r] > 0
                 ? best_.prices[r] * problem_.use_max * of / program_.capacity[r]
                 : 0;
    };
    for (std::size_t r = 0; r < sites; ++r) out.gpu_worth.push_back(worth(r, 1));
    for (std::size_t m = 0; m < metros; ++m) out.uplink_worth.push_back(worth(sites + m, 1e9));
    out.prices = std::move(best_.prices);
    const double distance = std::max(0.0, out.cost - out.bound);
    out.gap = distance <= 1e-12 * out.cost ? 0 : distance / std::max(1e-300, std::abs(out.bound));
    if (!out.unserved.empty()) out.unserved_least = count_unserved(out.caches);
    return out;
  }

  double count_unserved(const Caches& caches) const {
    const Program program =
        make_program(problem_, caches, {.down = options_.down, .is_count = true});
    saddle::Start start;
    return std::max(0.0, solve_program(program, options_.gap, &start).bound);
  }

  static constexpr double first_penalty = 20, rough_gap = 1e-3;
  const Problem& problem_;
  const PlanOptions& options_;
  double penalty_ = first_penalty;
  saddle::Start start_;
  Program program_;
  Solution best_{.cost = saddle::unbounded};
  Caches caches_;
  std::uint32_t iterations_ = 0;
  double seconds_ = 0;
};

}  // namespace

Caches whole_caches(const Problem& problem) {
  const std::vector<Popularity> popularity = popularities(problem);
  Caches out = no_caches(problem);
  for (std::size_t m = 0; m < problem.metros.size(); ++m)
    for (std::size_t s = 0; s < problem.services.size(); ++s) {
      const Content& content = problem.services[s].content;
      if (content.share <= 0) continue;
      double& bytes = out.bytes[problem.at(m, s)] = problem.metros[m].cache_bytes;
      out.hit[problem.at(m, s)] = popularity[s].hit_rate(bytes / content.object_bytes);
    }
  return out;
}

Caches split_caches(const Problem& problem, const std::vector<double>& savings) {
  const std::vector<Popularity> popularity = popularities(problem);
  Caches out = no_caches(problem);
  for (std::size_t m = 0; m < problem.metros.size(); ++m)
    split_metro(problem, popularity, m, savings, out);
  return out;
}

Plan plan_edge(const Problem& problem, const PlanOptions& options) {
  return Planner(problem, options).run();
}

double bound_at(const Problem& problem, const Caches& caches, std::optional<std::uint32_t> down,
                const std::vector<double>& prices) {
  return bound_of(make_program(problem, caches, {.down = down, .penalty = 1e6}), prices);
}

std::vector<std::string> full_sites(const Problem& problem, const Plan& plan, const Unserved& one,
                                    std::optional<std::uint32_t> down) {
  const Program program = make_program(problem, plan.caches, {.down = down});
  const std::size_t metros = problem.metros.size(), sites = metros + problem.data_centres.size();
  std::vector<bool> is_full(program.capacity.size(), false);
  for (std::size_t q = 0; q < program.ways.size(); ++q) {
    const Way& way = program.ways[q];
    if (way.area != one.area || way.service != one.service) continue;
    for (std::size_t k = 0; k < program.rows(q).size(); ++k) {
      const std::uint32_t r = program.rows(q)[k];
      const double used = r < sites ? plan.gpus_used[r] : plan.uplink_used[r - sites];
      if (program.load(q, k) > 0 && used >= program.capacity[r] * 0.999) is_full[r] = true;
    }
  }
  std::vector<std::string> out;
  for (std::size_t r = 0; r < is_full.size(); ++r)
    if (is_full[r])
      out.push_back(r < metros  ? "GPUs of " + problem.metros[r].name
                    : r < sites ? "GPUs of " + problem.data_centres[r - metros].name
                                : "uplink of " + problem.metros[r - sites].name);
  return out;
}

std::string check_plan(const Problem& problem, const Plan& plan) {
  constexpr double rounding = 1e-6;
  const std::size_t metros = problem.metros.size(), centres = problem.data_centres.size();
  std::vector<double> served(problem.areas.size() * problem.services.size(), 0.0);
  std::vector<double> gpus(metros + centres, 0.0), uplink(metros, 0.0);
  double cost = 0;
  for (const Way& way : plan.ways) {
    const Use use = use_of(problem, plan.caches, way);
    if (way.share <= 0) return "a share that is not above 0";
    if (use.rtt_s > problem.services[way.service].within_s) return "a way that takes too long";
    served[way.area * problem.services.size() + way.service] += way.share;
    gpus[way.centre == at_metro ? way.metro : metros + way.centre] += way.share * use.gpus;
    uplink[way.metro] += way.share * use.uplink_bps;
    cost += way.share * use.cost();
  }
  for (const Unserved& one : plan.unserved)
    served[one.area * problem.services.size() + one.service] += one.share;
  for (std::size_t a = 0; a < problem.areas.size(); ++a)
    for (std::size_t s = 0; s < problem.services.size(); ++s)
      if (problem.areas[a].requests[s] > 0 &&
          std::abs(served[a * problem.services.size() + s] - 1) > rounding)
        return fmt::format("shares of {} do not add up", problem.areas[a].name);
  const auto is_over = [&](double load, double capacity) {
    return load > capacity * problem.use_max * (1 + rounding) + rounding;
  };
  for (std::size_t m = 0; m < metros; ++m) {
    if (is_over(gpus[m], problem.metros[m].gpus)) return "too many GPUs of a metro";
    if (is_over(uplink[m], problem.metros[m].uplink_bps)) return "too much over an uplink";
    double bytes = 0;
    for (std::size_t s = 0; s < problem.services.size(); ++s)
      bytes += plan.caches.bytes[problem.at(m, s)];
    if (bytes > problem.metros[m].cache_bytes * (1 + rounding)) return "too much in a cache";
  }
  for (std::size_t d = 0; d < centres; ++d)
    if (is_over(gpus[metros + d], problem.data_centres[d].gpus))
      return "too many GPUs of a data centre";
  if (std::abs(cost - plan.cost) > rounding * std::abs(cost) + 1e-9) return "the cost is another";
  return "";
}

}  // namespace weft::plan::edge
