#include "plan/backbone/te.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/parallel.hpp"

namespace weft::plan::backbone {
namespace {

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// A saddle problem over those paths that have no dead link, and where its columns come from. A
// demand that has lost all its paths gets those of the network that is left.
struct Routing {
  saddle::Problem problem;
  std::vector<std::uint32_t> path;    // of each column; no_path: found after the failure
  std::vector<std::uint32_t> demand;  // of each block
  double routable_gbps = 0, unroutable_gbps = 0;
  std::size_t unroutable = 0;
};

// `count`: paths of a demand that has lost all of its own.
Routing make_routing(const Wan& wan, const std::vector<Demand>& demands, const PathSet& paths,
                     Objective objective, const std::vector<double>& used,
                     const std::vector<char>& dead, std::uint32_t count = 0) {
  const bool is_mlu = objective == Objective::mlu;
  Routing out;
  saddle::Problem& p = out.problem;
  for (std::uint32_t l = 0; l < wan.link_count(); ++l) {
    const double gbps = wan.gbps(l);
    p.scale.push_back(is_mlu ? 1 / gbps : 1);
    p.offset.push_back(is_mlu ? used[l] / gbps : std::min(used[l], gbps));
    if (is_mlu && l > 0) continue;
    p.row_blocks.push_back(is_mlu ? saddle::RowBlock{0, 1, 1, 0}
                                  : saddle::RowBlock{l, 0, saddle::unbounded, gbps});
  }
  p.entry_begin.push_back(0);
  p.entries.reserve(paths.links.size());
  const auto add_column = [&](std::span<const std::uint32_t> links, std::uint32_t path) {
    p.entries.insert(p.entries.end(), links.begin(), links.end());
    p.entry_begin.push_back(static_cast<std::uint32_t>(p.entries.size()));
    p.cost.push_back(is_mlu ? 0 : -1);
    out.path.push_back(path);
  };
  std::optional<PathFinder> finder;
  for (std::uint32_t d = 0; d < demands.size(); ++d) {
    const auto first = static_cast<std::uint32_t>(p.cost.size());
    for (std::uint32_t q = paths.first_path[d]; q < paths.first_path[d + 1]; ++q) {
      const auto links = paths.path(q);
      if (!dead.empty() && std::ranges::any_of(links, [&](auto l) { return dead[l / 2] != 0; }))
        continue;
      add_column(links, q);
    }
    if (p.cost.size() == first && !dead.empty()) {
      if (!finder) finder.emplace(wan);
      PathSet others;
      finder->add_disjoint(demands[d].from, demands[d].to, count, others, dead);
      for (std::size_t q = 0; q < others.path_count(); ++q) add_column(others.path(q), no_path);
    }
    if (p.cost.size() == first) {
      out.unroutable_gbps += demands[d].gbps;
      ++out.unroutable;
      continue;
    }
    p.column_blocks.push_back(
        {first, demands[d].gbps, is_mlu ? saddle::Fill::exactly : saddle::Fill::at_most});
    out.demand.push_back(d);
    out.routable_gbps += demands[d].gbps;
  }
  return out;
}

// A throughput's bound by prices may be above what is asked for, which no routing sends more of.
double capped(double bound, const Routing& routing, Objective objective) {
  return objective == Objective::mlu ? bound : std::min(bound, routing.routable_gbps);
}

double gap_of(double value, double bound) {
  const double apart = std::abs(value - bound);
  return apart > 0 ? apart / std::min(value, bound) : 0;
}

// The bound were every path allowed: prices again, and the cheapest path by Dijkstra's algorithm.
double bound_on_all_paths(const Wan& wan, const std::vector<Demand>& demands,
                          const Routing& routing, Objective objective,
                          const std::vector<double>& price) {
  const bool is_mlu = objective == Objective::mlu;
  const saddle::Problem& p = routing.problem;
  double out = 0;
  for (std::size_t l = 0; l < price.size(); ++l)
    out += price[l] * (is_mlu ? p.offset[l] * wan.gbps(l) : wan.gbps(l) - p.offset[l]);
  const PathFinder finder(wan);
  std::vector<double> distance;
  std::uint32_t from = no_path;
  for (const std::uint32_t d : routing.demand) {
    if (demands[d].from != from) distance = finder.distances(demands[d].from, price);
    from = demands[d].from;
    const double cheapest = distance[demands[d].to];
    out += demands[d].gbps * (is_mlu ? cheapest : std::max(0.0, 1 - cheapest));
  }
  return out;
}

class Engineer {
 public:
  Engineer(const Wan& wan, const TeOptions& options) : wan_(wan), options_(options) {
    out_.load_gbps.assign(wan.link_count(), 0.0);
  }

  TeAnswer run(const std::vector<Demand>& demands) && {
    for (std::uint8_t c = 0; c < class_count; ++c) {
      std::vector<Demand> own;
      for (const Demand& d : demands)
        if (options_.by_class ? d.priority == c : c + 1 == class_count) own.push_back(d);
      if (!own.empty()) add_class(c, own);
    }
    if (options_.failures) fail_each(demands);
    return std::move(out_);
  }

 private:
  void add_class(std::uint8_t c, const std::vector<Demand>& demands) {
    const double began = thread_seconds();
    const PathSet paths = find_paths(wan_, demands, options_.paths);
    out_.path_seconds += thread_seconds() - began;
    const Routing routing =
        make_routing(wan_, demands, paths, options_.objective, out_.load_gbps, {});
    const double asked = routing.routable_gbps + routing.unroutable_gbps;
    if (routing.demand.empty())
      return out_.classes.push_back({.priority = c,
                                     .demands = demands.size(),
                                     .unroutable = routing.unroutable,
                                     .asked_gbps = asked,
                                     .unroutable_gbps = routing.unroutable_gbps,
                                     .price = std::vector<double>(wan_.link_count(), 0.0)});
    const saddle::Answer answer = saddle::solve(routing.problem, {.gap = options_.gap});
    const double sign = options_.objective == Objective::mlu ? 1 : -1;
    ClassAnswer one{.priority = c,
                    .demands = demands.size(),
                    .paths = paths.path_count(),
                    .unroutable = routing.unroutable,
                    .asked_gbps = asked,
                    .unroutable_gbps = routing.unroutable_gbps,
                    .value = sign * answer.value,
                    .bound = capped(sign * answer.bound, routing, options_.objective),
                    .iterations = answer.iterations,
                    .seconds = answer.seconds};
    one.gap = gap_of(one.value, one.bound);
    for (const double x : answer.x) one.sent_gbps += x;
    one.price = answer.y;  // per Gbit/s
    for (std::size_t l = 0; l < one.price.size(); ++l) one.price[l] *= routing.problem.scale[l];
    one.all_paths =
        capped(bound_on_all_paths(wan_, demands, routing, options_.objective, one.price), routing,
               options_.objective);
    for (std::size_t q = 0; q < answer.x.size(); ++q)
      for (const std::uint32_t l : paths.path(routing.path[q])) out_.load_gbps[l] += answer.x[q];
    out_.classes.push_back(std::move(one));
  }

  // Every cable alone, and every group of cables that share a risk, from the healthy solution on.
  void fail_each(const std::vector<Demand>& demands) {
    std::map<std::string, std::vector<std::uint32_t>> groups;
    for (std::uint32_t c = 0; c < wan_.cables.size(); ++c) {
      const Cable& cable = wan_.cables[c];
      out_.failures.push_back(
          {fmt::format("{}--{}", wan_.sites[cable.a], wan_.sites[cable.b]), {c}});
      if (!cable.group.empty()) groups[cable.group].push_back(c);
    }
    for (auto& [name, cables] : groups)
      if (cables.size() > 1) out_.failures.push_back({name, std::move(cables)});
    const PathSet paths = find_paths(wan_, demands, options_.paths);
    const std::vector<double> none(wan_.link_count(), 0.0);
    const Routing healthy = make_routing(wan_, demands, paths, options_.objective, none, {});
    if (healthy.demand.empty()) {
      for (FailureAnswer& one : out_.failures) one.unroutable_gbps = healthy.unroutable_gbps;
      return;
    }
    const saddle::Answer before = saddle::solve(healthy.problem, {.gap = options_.gap});
    parallel_for(out_.failures.size(), options_.threads,
                 [&](std::size_t i) { fail_one(out_.failures[i], demands, paths, before.next); });
    const bool is_mlu = options_.objective == Objective::mlu;
    std::ranges::stable_sort(out_.failures, [&](const FailureAnswer& a, const FailureAnswer& b) {
      return is_mlu ? a.value > b.value : a.value < b.value;
    });
  }

  void fail_one(FailureAnswer& one, const std::vector<Demand>& demands, const PathSet& paths,
                const saddle::Start& before) const {
    std::vector<char> dead(wan_.cables.size(), 0);
    for (const std::uint32_t c : one.cables) dead[c] = 1;
    const double began = thread_seconds();
    const std::vector<double> none(wan_.link_count(), 0.0);
    const Routing routing =
        make_routing(wan_, demands, paths, options_.objective, none, dead, options_.paths);
    one.unroutable_gbps = routing.unroutable_gbps;
    if (routing.demand.empty()) return;
    saddle::Start start{.x = {}, .y = before.y, .weight = before.weight};
    for (const std::uint32_t q : routing.path) start.x.push_back(q == no_path ? 0 : before.x[q]);
    const saddle::Answer answer = saddle::solve(routing.problem, {.gap = options_.gap}, &start);
    const double sign = options_.objective == Objective::mlu ? 1 : -1;
    one.value = sign * answer.value;
    one.gap = gap_of(one.value, capped(sign * answer.bound, routing, options_.objective));
    one.seconds = thread_seconds() - began;
  }

  const Wan& wan_;
  const TeOptions& options_;
  TeAnswer out_;
};

}  // namespace

TeAnswer engineer(const Wan& wan, const std::vector<Demand>& demands, const TeOptions& options) {
  return Engineer(wan, options).run(demands);
}

}  // namespace weft::plan::backbone
