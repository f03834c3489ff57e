#include "observe/probe/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "base/rng.hpp"

namespace weft::observe::probe {
namespace {

using model::Fabric;
using model::LinkId;
using model::NodeId;
using route::Path;

// A candidate is a walk there and back. Of those that cross the link in question the best of so
// many is taken; after so many that do not, the link is given up.
constexpr std::size_t candidates_wanted = 3, candidates_max = 20'000;
// More entries than that are sampled when the least used is looked for.
constexpr std::size_t sample_max = 16;

// The NICs that are nearest to each switch, found on demand.
class Neighbourhood {
 public:
  Neighbourhood(const Fabric& fabric, const model::LiveView& live)
      : fabric_(fabric),
        live_(live),
        near_(fabric.node_count()),
        known_(fabric.node_count(), false) {
    is_end_.resize(fabric.node_count(), false);
    for (const NodeId nic : fabric.nics()) is_end_[nic.index()] = true;
  }

  bool is_end(NodeId node) const { return is_end_[node.index()]; }
  // Of a NIC: itself. Of a switch: those at the least number of live cables. May be empty.
  std::span<const NodeId> near(NodeId node) {
    std::vector<NodeId>& found = near_[node.index()];
    if (!known_[node.index()]) {
      known_[node.index()] = true;
      if (is_end(node))
        found.push_back(node);
      else
        search(node, found);
    }
    return found;
  }

 private:
  void search(NodeId from, std::vector<NodeId>& found) {
    std::vector<bool> seen(fabric_.node_count(), false);
    std::vector<NodeId> level{from}, next;
    seen[from.index()] = true;
    while (!level.empty() && found.empty()) {
      for (const NodeId at : level)
        for (const LinkId link : fabric_.out(at)) {
          const NodeId to = fabric_.to(link);
          if (seen[to.index()] || !live_.usable(link) || !fabric_.on_wire(link)) continue;
          seen[to.index()] = true;
          if (is_end(to))
            found.push_back(to);
          else if (fabric_.is_switch(to))
            next.push_back(to);
        }
      level = std::exchange(next, {});
    }
    std::ranges::sort(found);
  }

  const Fabric& fabric_;
  const model::LiveView& live_;
  std::vector<std::vector<NodeId>> near_;
  std::vector<bool> known_, is_end_;
};

// With what `routes` has counted, where there are any.
Coverage coverage_of(const Fabric& fabric, const model::State& state,
                     std::span<const std::uint64_t> crossings, const RouteTable* routes,
                     const PlanOptions& options) {
  const model::LiveView live(fabric, state);
  Neighbourhood near(fabric, live);
  Coverage out;
  std::vector<Coverage::Tier> tiers(fabric.tiers().size());
  for (const LinkId link : fabric.links()) {
    if (!live.usable(link) || !fabric.on_wire(link)) continue;
    const std::uint64_t count = crossings[link.index()];
    if (count == 0 &&
        (near.near(fabric.from(link)).empty() || near.near(fabric.to(link)).empty())) {
      ++out.unreachable;
      continue;
    }
    Coverage::Tier& tier = tiers[fabric.tier_id(link).index()];
    tier.tier = fabric.tier_id(link);
    tier.add(count, options.crossings);
    if (count < options.crossings) out.below.push_back(link);
  }
  std::ranges::copy_if(tiers, std::back_inserter(out.tiers),
                       [](const Coverage::Tier& tier) { return tier.parts > 0; });
  if (routes != nullptr) {
    out.ingress = routes->count(RouteTable::Kind::ingress, 0);
    out.transit = routes->count(RouteTable::Kind::transit, *options.routes_each);
    for (std::size_t at = 0; at < routes->size(); ++at)
      if (routes->is_short(at, *options.routes_each)) out.routes_below.push_back(routes->route(at));
  }
  return out;
}

// Probes of each flow: as the link with the fewest flows needs, or as a host with the most may.
std::uint64_t probes_of(const PlanOptions& options, std::uint32_t fewest, std::uint32_t most) {
  const std::uint64_t needed = (options.crossings + fewest - 1) / fewest;
  if (options.rate_max <= 0) return needed;
  const double window_s = static_cast<double>(options.window_ns) * 1e-9;
  const double allowed = std::floor(options.rate_max * window_s / most);
  return std::min(needed, static_cast<std::uint64_t>(allowed));
}

// Flows over the link that has the fewest, of those that have any.
std::uint32_t fewest_of(std::span<const std::uint32_t> crossed) {
  std::uint32_t fewest = UINT32_MAX;
  for (const std::uint32_t count : crossed)
    if (count > 0) fewest = std::min(fewest, count);
  return fewest;
}

// Fills in what follows from the flows of each host.
void set_rates(const PlanOptions& options, std::span<const std::uint32_t> crossed,
               std::span<const std::uint32_t> host_flows, Plan& plan) {
  const std::uint32_t most = *std::ranges::max_element(host_flows);
  plan.probes = probes_of(options, fewest_of(crossed), most);
  const auto hosts = std::ranges::count_if(host_flows, [](std::uint32_t n) { return n > 0; });
  const double per_flow =
      static_cast<double>(plan.probes) * 1e9 / static_cast<double>(options.window_ns);
  plan.host_rate_max = most * per_flow;
  plan.host_rate_mean =
      static_cast<double>(plan.flows.size()) * per_flow / static_cast<double>(hosts);
}

// Hosts where there are any: a NIC on its own counts as one.
std::size_t host_index(const Fabric& fabric, NodeId nic) { return end_of(fabric, nic).index(); }

// Counts the crossings of flows anew, by walking the hash link by link. `routes` has counted none.
Coverage count_crossings(route::Router& router, const model::State& state, const Plan& plan,
                         std::optional<RouteTable> routes, const PlanOptions& options) {
  std::vector<std::uint64_t> crossings(router.fabric().link_count(), 0);
  Path path;
  const auto walk = [&](NodeId src, NodeId dst, const route::UdpPorts& ports) {
    path.clear();
    router.append_udp_path(src, dst, ports, path);
    for (const LinkId link : path) crossings[link.index()] += plan.probes;
    if (routes) routes->add(path);
  };
  for (const PlannedFlow& flow : plan.flows) {
    walk(flow.src, flow.dst, {flow.source_port, options.target_port});
    walk(flow.dst, flow.src, {options.target_port, flow.source_port});
  }
  return coverage_of(router.fabric(), state, crossings, routes ? &*routes : nullptr, options);
}

// Without rates.
void append(Plan& plan, const LearnedFlow& flow) {
  plan.flows.push_back({.src = flow.src,
                        .dst = flow.dst,
                        .source_port = flow.source_port,
                        .path_first = static_cast<std::uint32_t>(plan.links.size()),
                        .forward_size = static_cast<std::uint16_t>(flow.forward.size()),
                        .back_size = static_cast<std::uint16_t>(flow.back.size()),
                        .learned = flow.learned});
  for (const Path* path : {&flow.forward, &flow.back})
    plan.links.insert(plan.links.end(), path->begin(), path->end());
}

PlanOptions complete(PlanOptions options, const Fabric& fabric) {
  if (options.flows_each == 0) options.flows_each = usual_flows_each(fabric);
  if (!options.routes_each) options.routes_each = usual_routes_each(fabric);
  return options;
}

// None where none is asked for.
Result<std::optional<RouteTable>> find_routes(route::Router& router, const model::State& state,
                                              const PlanOptions& options) {
  if (*options.routes_each == 0) return std::optional<RouteTable>();
  WEFT_TRY(RouteTable out, RouteTable::find(router, model::LiveView(router.fabric(), state)));
  // A flow crosses one each way at least.
  const std::size_t flows =
      out.count(RouteTable::Kind::transit, 0).parts * *options.routes_each / 2;
  if (flows > plan_flows_max)
    return fail(Errc::value, {},
                fmt::format("{} flows over each route are some {} flows; a plan has at most {}",
                            *options.routes_each, flows, plan_flows_max),
                "ask for fewer, or for none: --routes 0");
  return std::optional<RouteTable>(std::move(out));
}

class Planner {
 public:
  // `options` are complete.
  Planner(route::Router& router, const model::State& state, const PlanOptions& options,
          std::optional<RouteTable> routes)
      : router_(router),
        fabric_(router.fabric()),
        options_(options),
        routes_(std::move(routes)),
        live_(fabric_, state),
        near_(fabric_, live_),
        rng_(Rng(options.seed).stream("probe plan")),
        crossed_(fabric_.link_count(), 0),
        hopeless_(fabric_.link_count(), false),
        nic_flows_(fabric_.node_count(), 0),
        host_flows_(fabric_.node_count(), 0) {}

  Result<Plan> run() {
    if (routes_) cover_routes();  // which leaves few links to cover
    for (wanted_ = 1; wanted_ <= options_.flows_each; ++wanted_)
      for (const LinkId link : fabric_.links())
        if (live_.usable(link) && fabric_.on_wire(link) && crossed_[link.index()] < wanted_ &&
            !hopeless_[link.index()])
          hopeless_[link.index()] = !cover(link);
    if (plan_.flows.empty())
      return fail(Errc::infeasible, {}, "no two NICs of the fabric have a live path between them",
                  "check the fabric's cables and faults");
    even_out();
    std::ranges::stable_sort(plan_.flows, {}, &PlannedFlow::src);
    set_rates(options_, crossed_, host_flows_, plan_);
    return std::move(plan_);
  }

 private:
  struct Candidate {
    NodeId src, dst;
    std::uint16_t port = 0;
    Path forward, back;
    std::size_t gain = 0;
  };

  std::size_t host_index(NodeId nic) const { return probe::host_index(fabric_, nic); }
  std::pair<std::uint32_t, std::uint32_t> load(NodeId nic) const {
    return {host_flows_[host_index(nic)], nic_flows_[nic.index()]};
  }
  NodeId any_of(std::span<const NodeId> nics) { return nics[rng_.below(nics.size())]; }
  // The least used one, or the least used of some.
  NodeId idlest_of(std::span<const NodeId> nics) {
    if (nics.size() <= sample_max)
      return *std::ranges::min_element(nics, {}, [this](NodeId nic) { return load(nic); });
    NodeId best = any_of(nics);
    for (std::size_t i = 1; i < sample_max; ++i)
      if (const NodeId nic = any_of(nics); load(nic) < load(best)) best = nic;
    return best;
  }

  NodeId idler_of_two(std::span<const NodeId> nics) {
    const NodeId one = any_of(nics), other = any_of(nics);
    return load(one) < load(other) ? one : other;
  }

  // False when there is no path.
  bool walk_forward(Candidate& candidate) {
    candidate.forward.clear();
    return router_.append_udp_path(candidate.src, candidate.dst,
                                   {candidate.port, options_.target_port}, candidate.forward);
  }
  bool walk_back(Candidate& candidate) {
    candidate.back.clear();
    return router_.append_udp_path(candidate.dst, candidate.src,
                                   {options_.target_port, candidate.port}, candidate.back);
  }
  // False when there is no path one of the two ways.
  bool walk(Candidate& candidate) { return walk_forward(candidate) && walk_back(candidate); }
  std::size_t gain_of(const Candidate& candidate) const {
    const auto fresh = [this](LinkId link) { return crossed_[link.index()] < wanted_; };
    return static_cast<std::size_t>(std::ranges::count_if(candidate.forward, fresh) +
                                    std::ranges::count_if(candidate.back, fresh));
  }
  std::uint16_t any_port() {
    return static_cast<std::uint16_t>(options_.ports.first + rng_.below(options_.ports.count()));
  }

  // False when no flow crosses it, as far as seen.
  bool cover(LinkId link) {
    const auto sources = near_.near(fabric_.from(link));
    return take_best(
        sources, near_.near(fabric_.to(link)), [&] { return idlest_of(sources); },
        [&](const Path& path) { return std::ranges::find(path, link) != path.end(); },
        [&](const Candidate& candidate) { return gain_of(candidate); });
  }

  void cover_routes() {
    std::vector<bool> is_hopeless(routes_->size(), false);
    for (wanted_ = 1; wanted_ <= *options_.routes_each; ++wanted_)
      for (std::size_t first = 0; first < routes_->size(); first += routes_->switch_count()) {
        draw_routes(first);
        for (std::size_t at = first; at < first + routes_->switch_count(); ++at)
          if (routes_->is_short(at, wanted_) && !is_hopeless[at])
            is_hopeless[at] = !cover_route(at);
      }
  }
  // Flows that chance leads over a wanted route both ways, to the end whose routes begin at
  // `first`: most routes are covered so, at a fraction of the tries that a search for each takes.
  void draw_routes(std::size_t first) {
    constexpr std::size_t tries_each = 4;
    std::vector<NodeId> devices;
    for (std::size_t at = first; at < first + routes_->switch_count(); ++at)
      if (routes_->is_short(at, wanted_)) devices.push_back(routes_->route(at).device);
    const NodeId end = routes_->route(first).to;
    const auto targets = nics_at(end);
    Candidate candidate;
    for (std::size_t i = 0; i < tries_each * devices.size(); ++i) {
      const auto sources = near_.near(any_of(devices));
      if (sources.empty()) continue;
      candidate.src = idler_of_two(sources);
      candidate.dst = any_of(targets);
      if ((i & 1) != 0) std::swap(candidate.src, candidate.dst);
      candidate.port = any_port();
      if (candidate.src != candidate.dst && walk(candidate) &&
          routes_->fresh_on(candidate.forward, wanted_) > 0 &&
          routes_->fresh_on(candidate.back, wanted_) > 0 && is_new(candidate))
        take(candidate);
    }
  }
  // Of a host, or the NIC itself.
  std::span<const NodeId> nics_at(const NodeId& end) const {
    return fabric_.kind(end) == model::NodeKind::nic ? std::span(&end, 1) : fabric_.nics_of(end);
  }
  bool cover_route(std::size_t at) {
    const Route route = routes_->route(at);
    const auto sources = near_.near(route.device);
    // The idlest may be one whose packets do not pass: of the same rack, say.
    return take_best(
        sources, nics_at(route.to), [&] { return idler_of_two(sources); },
        [&](const Path& path) { return routes_->is_on(at, path); },
        [&](const Candidate& candidate) {
          return routes_->fresh_on(candidate.forward, wanted_) +
                 routes_->fresh_on(candidate.back, wanted_);
        });
  }

  // Of the first candidates from `sources`, as `draw` has them, to `targets` that cross something,
  // as `crosses(path)` says, the one with the largest gain. False when there is none.
  template <class Draw, class Crosses, class Gain>
  bool take_best(std::span<const NodeId> sources, std::span<const NodeId> targets, Draw draw,
                 Crosses crosses, Gain gain) {
    if (sources.empty() || targets.empty()) return false;
    Candidate best, candidate;
    std::size_t found = 0;
    for (std::size_t i = 0; i < candidates_max && found < candidates_wanted; ++i) {
      candidate.src = draw();
      candidate.dst = any_of(targets);
      // Who stands behind both ends may probe the link on the way back.
      if ((i & 1) != 0) std::swap(candidate.src, candidate.dst);
      candidate.port = any_port();
      if (candidate.src == candidate.dst) continue;
      // Most do not cross it; only of those that do both ways matter.
      const bool is_back = (i & 1) != 0;
      if (is_back ? !walk_back(candidate) : !walk_forward(candidate)) continue;
      if (!crosses(is_back ? candidate.back : candidate.forward)) continue;
      if (is_back ? !walk_forward(candidate) : !walk_back(candidate)) continue;
      if (!is_new(candidate)) continue;
      ++found;
      candidate.gain = gain(candidate);
      if (found == 1 || candidate.gain > best.gain ||
          (candidate.gain == best.gain && load(candidate.src) < load(best.src)))
        std::swap(best, candidate);
    }
    if (found > 0) take(best);
    return found > 0;
  }

  bool is_new(const Candidate& candidate) const {
    return !taken_.contains({candidate.src, candidate.dst, candidate.port});
  }
  void take(const Candidate& candidate) {
    taken_.insert({candidate.src, candidate.dst, candidate.port});
    PlannedFlow flow{.src = candidate.src,
                     .dst = candidate.dst,
                     .source_port = candidate.port,
                     .path_first = static_cast<std::uint32_t>(plan_.links.size()),
                     .forward_size = static_cast<std::uint16_t>(candidate.forward.size()),
                     .back_size = static_cast<std::uint16_t>(candidate.back.size())};
    for (const Path* path : {&candidate.forward, &candidate.back}) {
      for (const LinkId link : *path) {
        plan_.links.push_back(link);
        ++crossed_[link.index()];
      }
      if (routes_) routes_->add(*path);
    }
    ++nic_flows_[flow.src.index()];
    ++host_flows_[host_index(flow.src)];
    plan_.flows.push_back(flow);
  }

  // Every host that can probe gets as many flows as the busiest, over its least crossed links.
  void even_out() {
    const std::uint32_t most = *std::ranges::max_element(host_flows_);
    for (const NodeId nic : fabric_.nics()) {
      std::size_t failed = 0;
      while (host_flows_[host_index(nic)] < most && load(nic).second <= idlest_sibling(nic) &&
             failed < candidates_wanted)
        failed += fill(nic) ? 0 : 1;
    }
    // What is left after a first turn over each host's NICs.
    for (const NodeId nic : fabric_.nics())
      for (std::size_t failed = 0;
           host_flows_[host_index(nic)] < most && failed < candidates_wanted;)
        failed += fill(nic) ? 0 : 1;
  }
  std::uint32_t idlest_sibling(NodeId nic) const {
    const NodeId host = fabric_.host_of(nic);
    std::uint32_t least = nic_flows_[nic.index()];
    if (host.valid())
      for (const NodeId other : fabric_.nics_of(host))
        least = std::min(least, nic_flows_[other.index()]);
    return least;
  }
  bool fill(NodeId nic) {
    Candidate best, candidate;
    std::uint64_t best_least = UINT64_MAX;
    for (std::size_t i = 0; i < candidates_wanted; ++i) {
      candidate.src = nic;
      candidate.dst = any_of(fabric_.nics());
      candidate.port = any_port();
      if (candidate.src == candidate.dst || !is_new(candidate) || !walk(candidate)) continue;
      std::uint64_t least = UINT64_MAX;
      for (const Path* path : {&candidate.forward, &candidate.back})
        for (const LinkId link : *path)
          least = std::min<std::uint64_t>(least, crossed_[link.index()]);
      if (least >= best_least) continue;
      best_least = least;
      best = candidate;
    }
    if (best_least != UINT64_MAX) take(best);
    return best_least != UINT64_MAX;
  }

  route::Router& router_;
  const Fabric& fabric_;
  const PlanOptions& options_;
  std::optional<RouteTable> routes_;
  model::LiveView live_;
  Neighbourhood near_;
  Rng rng_;
  std::uint32_t wanted_ = 1;                           // flows over each link or route, for now
  std::vector<std::uint32_t> crossed_;                 // flows, by link
  std::vector<bool> hopeless_;                         // links that no flow was found to cross
  std::vector<std::uint32_t> nic_flows_, host_flows_;  // by node
  std::set<std::tuple<NodeId, NodeId, std::uint16_t>> taken_;
  Plan plan_;
};

}  // namespace

std::uint32_t usual_flows_each(const Fabric& fabric) {
  constexpr std::size_t flows_max = 4'096, least = 4, most = 64;
  constexpr std::size_t links_of_flow = 8;  // there and back, between racks under spines
  std::size_t links = 0;
  for (const LinkId link : fabric.links()) links += fabric.on_wire(link) ? 1 : 0;
  return static_cast<std::uint32_t>(
      std::clamp(flows_max * links_of_flow / std::max<std::size_t>(links, 1), least, most));
}

std::uint32_t usual_routes_each(const Fabric& fabric) {
  constexpr std::size_t flows_max = 32'768;
  constexpr std::uint32_t usual = 4;
  // Switches without NICs pass on to all hosts; without such switches all may.
  std::set<NodeId> with_nics, hosts;
  for (const NodeId nic : fabric.nics()) {
    hosts.insert(end_of(fabric, nic));
    for (const LinkId link : fabric.out(nic)) with_nics.insert(fabric.to(link));
  }
  std::size_t all = 0, middle = 0;
  for (const NodeId node : fabric.nodes()) {
    if (!fabric.is_switch(node)) continue;
    ++all;
    middle += with_nics.contains(node) ? 0 : 1;
  }
  const std::size_t routes = (middle > 0 ? middle : all) * hosts.size();
  return routes * usual / 2 <= flows_max ? usual : 0;
}

Crossed Coverage::total() const {
  Crossed all;
  for (const Tier& tier : tiers) all.add(tier);
  return all;
}

Result<Plan> make_plan(route::Router& router, const model::State& state, const PlanOptions& asked) {
  const PlanOptions options = complete(asked, router.fabric());
  router.set_state(state);
  WEFT_TRY(std::optional<RouteTable> routes, find_routes(router, state, options));
  WEFT_TRY(Plan plan, Planner(router, state, options, routes).run());
  plan.coverage = count_crossings(router, state, plan, std::move(routes), options);
  return plan;
}

Result<Plan> make_plan(route::Router& router, const model::State& state,
                       std::span<const LearnedFlow> learned, const PlanOptions& asked) {
  const Fabric& fabric = router.fabric();
  const PlanOptions options = complete(asked, fabric);
  router.set_state(state);
  WEFT_TRY(std::optional<RouteTable> routes, find_routes(router, state, options));
  const model::LiveView live(fabric, state);
  std::vector<std::uint32_t> crossed(fabric.link_count(), 0);
  std::vector<std::uint32_t> host_flows(fabric.node_count(), 0);
  const auto fresh_on = [&](const Path& path) {
    const auto is_fresh = [&](LinkId link) { return crossed[link.index()] < options.flows_each; };
    return std::ranges::count_if(path, is_fresh) +
           static_cast<std::ptrdiff_t>(routes ? routes->fresh_on(path, *options.routes_each) : 0);
  };
  const auto usable = [&](LinkId link) { return live.usable(link); };
  // The largest gain first, of these the host with the fewest flows, then the first of the list.
  // Ranks only fall.
  struct Rank {
    std::ptrdiff_t gain, idle, order;
    auto operator<=>(const Rank&) const = default;
  };
  const auto rank_of = [&](std::size_t i) {
    return Rank{fresh_on(learned[i].forward) + fresh_on(learned[i].back),
                -std::ptrdiff_t{host_flows[host_index(fabric, learned[i].src)]},
                -static_cast<std::ptrdiff_t>(i)};
  };
  std::priority_queue<Rank> queue;
  for (std::size_t i = 0; i < learned.size(); ++i)
    if (std::ranges::all_of(learned[i].forward, usable) &&
        std::ranges::all_of(learned[i].back, usable))
      queue.push(rank_of(i));
  Plan plan;
  while (!queue.empty()) {
    const Rank expected = queue.top();
    queue.pop();
    const auto i = static_cast<std::size_t>(-expected.order);
    const LearnedFlow& flow = learned[i];
    const Rank rank = rank_of(i);
    if (rank.gain == 0) continue;
    if (rank < expected) {
      queue.push(rank);
      continue;
    }
    append(plan, flow);
    for (const Path* path : {&flow.forward, &flow.back}) {
      for (const LinkId link : *path) ++crossed[link.index()];
      if (routes) routes->add(*path);
    }
    ++host_flows[host_index(fabric, flow.src)];
  }
  if (plan.flows.empty())
    return fail(Errc::infeasible, {}, "no learned path has all its links up",
                "run the sweep again: weft probe --sweep --json");
  std::ranges::stable_sort(plan.flows, {}, &PlannedFlow::src);
  set_rates(options, crossed, host_flows, plan);
  std::vector<std::uint64_t> crossings(crossed.begin(), crossed.end());
  for (std::uint64_t& count : crossings) count *= plan.probes;
  plan.coverage = coverage_of(fabric, state, crossings, routes ? &*routes : nullptr, options);
  return plan;
}

Path only_way(route::Router& router, NodeId at, NodeId dst) {
  const model::Fabric& fabric = router.fabric();
  std::vector<LinkId> usable;
  router.append_usable({.src = at, .dst = dst}, usable);
  Path out;
  while (at != dst) {
    const auto leaves = [&](LinkId link) { return fabric.from(link) == at; };
    if (std::ranges::count_if(usable, leaves) != 1) return {};
    out.push_back(*std::ranges::find_if(usable, leaves));
    at = fabric.to(out.back());
  }
  return out;
}

void complete_ways(route::Router& router, std::span<const LearnedFlow> whole,
                   std::vector<LearnedFlow>& partial) {
  const model::Fabric& fabric = router.fabric();
  std::vector<bool> is_used(fabric.link_count());
  std::set<std::pair<NodeId, NodeId>> passed;  // a switch, on some way to the NIC
  std::map<NodeId, std::size_t> ways_to;
  for (const LearnedFlow& flow : whole) {
    ++ways_to[flow.dst];
    for (const LinkId link : flow.forward) {
      is_used[link.index()] = true;
      passed.emplace(fabric.to(link), flow.dst);
    }
  }
  const auto rest_of = [&](const LearnedFlow& flow) -> Path {
    const NodeId at = fabric.to(flow.forward.back());
    std::vector<LinkId> usable;
    router.append_usable({.src = at, .dst = flow.dst}, usable);
    std::vector<Path> silent;
    double choices = 0;
    for (const LinkId link : usable) {
      if (fabric.from(link) != at) continue;
      Path rest = only_way(router, fabric.to(link), flow.dst);
      if (rest.empty()) return {};
      rest.insert(rest.begin(), link);
      // Others do not come this way either where it is down.
      if (!std::ranges::all_of(rest, [&](LinkId l) { return is_used[l.index()]; })) continue;
      ++choices;
      if (!passed.contains({fabric.to(link), flow.dst})) silent.push_back(std::move(rest));
    }
    const auto ways = static_cast<double>(ways_to[flow.dst]);
    const bool may_be_chance = choices < 2 || std::pow(1 - 1 / choices, ways) > 1e-4;
    return silent.size() == 1 && !may_be_chance ? silent.front() : Path{};
  };
  for (LearnedFlow& flow : partial) {
    const Path rest = rest_of(flow);
    if (rest.empty()) flow.forward.clear();
    flow.forward.insert(flow.forward.end(), rest.begin(), rest.end());
  }
  std::erase_if(partial, [](const LearnedFlow& flow) { return flow.forward.empty(); });
}

}  // namespace weft::observe::probe
