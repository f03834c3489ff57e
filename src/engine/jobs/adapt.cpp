#include "engine/jobs/adapt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "engine/jobs/stage_cost.hpp"

namespace weft::engine {
namespace {

using route::Hop;
using route::LinkId;
using workload::CallCost;
using workload::Edge;
using workload::Stage;
using workload::Traffic;

constexpr double never = std::numeric_limits<double>::infinity();
using Loads = std::map<LinkId, double>;  // bytes

// False without a live path.
bool add_load(const Edge& edge, double wire_bytes, Router& router, Loads& loads) {
  const Fabric& fabric = router.fabric();
  std::vector<Hop> path;
  if (is_cable(fabric, edge.from, edge.to)) {
    if (!append_cable(edge.from, edge.to, router, path)) return false;
    for (const Hop& hop : path) loads[hop.link] += hop.share * edge.bytes * wire_bytes;
    return true;
  }
  // Whole messages in turn use all QPs alike in the long run.
  const bool turns = router.config().message_mode == route::MessageMode::round_robin;
  const std::uint32_t streams = turns ? router.config().qps : router.stream_count();
  const std::span<const double> weighed = router.qp_shares(edge.from, edge.to);
  const std::vector<double> shares(weighed.begin(), weighed.end());
  for (std::uint32_t s = 0; s < streams; ++s) {
    path.clear();
    if (!router.append_gpu_path(edge.from, edge.to, s, s, path)) return false;
    const double bytes = edge.bytes * wire_bytes * (shares.empty() ? 1.0 / streams : shares[s]);
    for (const Hop& hop : path) loads[hop.link] += hop.share * bytes;
  }
  return true;
}

double worst(const Loads& loads, const Router& router) {
  double most = 0;
  for (const auto& [link, bytes] : loads) {
    if (bytes <= 0) continue;
    const double capacity = router.capacity(link);
    most = std::max(most, capacity > 0 ? bytes / capacity : never);
  }
  return most;
}

double wire_bytes_of(const std::optional<CallCost>& cost) { return cost ? cost->wire_bytes : 1; }

// Before a stage's first byte.
double lead_s(const Stage& stage, const workload::StageShare& share, Duration step_overhead,
              const std::optional<CallCost>& cost, Router& router) {
  const StageLatency latency(stage, router);
  return cost ? cost->lead_s * share.lead + latency.beyond_s(*cost, step_overhead)
              : latency.seconds(step_overhead);
}

// How many times an equal part of the bytes each chain should carry. As a library would find it:
// every channel takes as long as its slowest link, and is given bytes in proportion to its speed,
// again and again; the best is kept.
struct Parts {
  std::vector<double> of_chain;
  double seconds = never;  // of the bytes
};

Parts weigh_channels(const Stage& stage, const std::optional<CallCost>& cost, Router& router) {
  constexpr int rounds = 24;
  const std::size_t n = stage.chains.size();
  std::vector<Loads> loads(n);
  std::vector<bool> dead(n, false);
  std::size_t live = 0;
  for (std::size_t c = 0; c < n; ++c) {
    for (const Edge& edge : stage.chains[c].edges)
      if (!dead[c] && !add_load(edge, wire_bytes_of(cost), router, loads[c])) dead[c] = true;
    live += dead[c] ? 0 : 1;
  }
  Parts best;
  if (live == 0) return best;
  std::vector<double> parts(n, 0);
  for (std::size_t c = 0; c < n; ++c)
    if (!dead[c]) parts[c] = static_cast<double>(n) / static_cast<double>(live);
  for (int round = 0; round < rounds; ++round) {
    Loads together;
    for (std::size_t c = 0; c < n; ++c)
      for (const auto& [link, bytes] : loads[c]) together[link] += parts[c] * bytes;
    // A channel has its share of the library's threads, so that with more bytes it needs longer.
    std::vector<double> own(n, 0);
    double seconds = 0, sum = 0;
    for (std::size_t c = 0; c < n; ++c) {
      if (dead[c]) continue;
      own[c] = cost ? cost->bytes_s * parts[c] : 0;
      for (const auto& [link, bytes] : loads[c])
        if (bytes > 0) own[c] = std::max(own[c], together[link] / router.capacity(link));
      seconds = std::max(seconds, own[c]);
    }
    if (seconds < best.seconds) best = {parts, seconds};
    if (seconds <= 0) break;
    for (std::size_t c = 0; c < n; ++c) sum += parts[c] *= own[c] > 0 ? seconds / own[c] : 0;
    if (sum <= 0) break;
    for (double& part : parts) part *= static_cast<double>(n) / sum;
  }
  return best;
}

// The same traffic with its channels weighed; nothing where no bytes may move.
std::optional<Adapted> with_weighed_channels(const Traffic& traffic, Duration step_overhead,
                                             const std::optional<CallCost>& cost, Router& router) {
  if (traffic.stages.size() != 1 || !traffic.stages[0].divisible ||
      traffic.stages[0].chains.size() < 2)
    return std::nullopt;
  const Parts parts = weigh_channels(traffic.stages[0], cost, router);
  if (parts.seconds == never) return std::nullopt;
  Adapted out{traffic, cost, 0, 0, {}};
  std::vector<workload::Chain>& chains = out.traffic.stages[0].chains;
  for (std::size_t c = 0; c < chains.size(); ++c)
    for (Edge& edge : chains[c].edges) edge.bytes *= parts.of_chain[c];
  std::erase_if(chains, [](const workload::Chain& chain) {
    return std::ranges::all_of(chain.edges, [](const Edge& edge) { return edge.bytes <= 0; });
  });
  const auto [least, most] = std::ranges::minmax(parts.of_chain);
  if (out.cost) out.cost->bytes_s *= most;
  out.seconds = lead_s(out.traffic.stages[0], {1, 1}, step_overhead, cost, router) + parts.seconds;
  out.what = fmt::format("channels carry {:.2f} to {:.2f} of an equal part", least, most);
  return out;
}

}  // namespace

std::optional<double> predicted_seconds(const Traffic& traffic, Duration step_overhead,
                                        const std::optional<CallCost>& cost, Router& router) {
  const std::vector<workload::StageShare> shares = stage_shares(traffic, router.fabric());
  double seconds = 0;
  for (std::size_t s = 0; s < traffic.stages.size(); ++s) {
    const Stage& stage = traffic.stages[s];
    if (!stage.exchanges.empty()) return std::nullopt;
    Loads loads;
    const auto add = [&](const Edge& edge) {
      return add_load(edge, wire_bytes_of(cost), router, loads);
    };
    for (const workload::Chain& chain : stage.chains)
      if (!std::ranges::all_of(chain.edges, add)) return never;
    if (!std::ranges::all_of(stage.flows, add)) return never;
    const double library_s = cost ? cost->bytes_s * shares[s].bytes : 0;
    seconds += lead_s(stage, shares[s], step_overhead, cost, router) +
               std::max(library_s, worst(loads, router));
  }
  return seconds;
}

double least_seconds(const Job& job, Router& router) {
  const auto floor_s = [&](const Traffic& traffic, const std::optional<CallCost>& cost) {
    return traffic_floor(traffic, job.step_overhead, cost, router, PathChoice::shortest).seconds();
  };
  double out = floor_s(job.traffic, job.cost);
  if (!job.adaptive) return out;
  for (const Job::Alternative& other : job.others)
    out = std::min(out, floor_s(other.traffic, other.cost));
  return out;
}

void add_adapted_note(const Job& job, const Adapted& adapted, double at_s,
                      std::vector<model::Note>& notes) {
  constexpr std::size_t shown = 20;
  if (notes.size() == shown)
    notes.push_back({model::Note::Severity::info, "adaptive: further choices are not listed"});
  if (notes.size() >= shown) return;
  const std::string gain =
      adapted.own_seconds == never
          ? std::string("where nothing would arrive")
          : fmt::format("predicted {:.3f} x the time", adapted.seconds / adapted.own_seconds);
  notes.push_back(
      {model::Note::Severity::info, fmt::format("adaptive: job {} from {:.6g} s on: {}, {}",
                                                job.name, at_s, adapted.what, gain)});
}

std::optional<Adapted> adapt(const Job& job, Router& router) {
  const auto own = predicted_seconds(job.traffic, job.step_overhead, job.cost, router);
  if (!job.adaptive || !own) return std::nullopt;
  std::optional<Adapted> best;
  const auto offer = [&](std::optional<Adapted> offered, double gain) {
    if (!offered || offered->seconds >= *own * (1 - gain)) return;
    if (best && offered->seconds >= best->seconds) return;
    best = std::move(offered);
    best->own_seconds = *own;
  };
  offer(with_weighed_channels(job.traffic, job.step_overhead, job.cost, router), least_gain);
  for (const Job::Alternative& other : job.others) {
    const auto seconds = predicted_seconds(other.traffic, job.step_overhead, other.cost, router);
    const std::string name =
        fmt::format("{} instead of {}", other.traffic.algorithm, job.traffic.algorithm);
    if (seconds) offer(Adapted{other.traffic, other.cost, *seconds, 0, name}, least_gain_of_other);
    auto weighed = with_weighed_channels(other.traffic, job.step_overhead, other.cost, router);
    if (!weighed) continue;
    weighed->what = name + ", " + weighed->what;
    offer(std::move(weighed), least_gain_of_other);
  }
  return best;
}

}  // namespace weft::engine
