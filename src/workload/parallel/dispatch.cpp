#include "workload/parallel/dispatch.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "model/work/rank_grid.hpp"

namespace weft::workload {
namespace {

// That `picked` of `all`, drawn without putting back, miss `part` of them.
double misses(double all, double part, std::uint32_t picked) {
  double chance = 1;
  for (std::uint32_t i = 0; i < picked; ++i)
    chance *= std::max(0.0, (all - part - i) / std::max(1.0, all - i));
  return chance;
}

double choose(double n, double k) {
  return std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1));
}

// Hosts of an expert group, and whether any group has more than one.
struct Spread {
  double hosts = 0;
  bool crosses = false;
};

Spread spread_of(const model::StepCost& cost,
                 const std::function<std::uint32_t(std::uint32_t)>& host_of) {
  const model::RankGrid grid({cost.tp, cost.cp, cost.pp, cost.dp}, cost.order);
  std::vector<bool> seen(grid.rank_count(), false);
  Spread spread;
  double groups = 0;
  for (std::uint32_t rank = 0; rank < grid.rank_count(); ++rank) {
    if (seen[rank]) continue;
    std::set<std::uint32_t> hosts;
    for (const std::uint32_t member : grid.expert_group(rank, cost.ep)) {
      seen[member] = true;
      hosts.insert(host_of(member));
    }
    spread.hosts += static_cast<double>(hosts.size());
    spread.crosses |= hosts.size() > 1;
    ++groups;
  }
  spread.hosts /= groups;
  return spread;
}

}  // namespace

double parts_met(const model::CommWork::OncePerHost& tokens, std::uint32_t parts) {
  const double part = double{1} * tokens.experts / parts;
  const std::uint32_t groups = tokens.groups, used = tokens.groups_per_token;
  if (groups <= used || (groups % parts != 0 && parts % groups != 0))
    return parts * (1 - misses(tokens.experts, part, tokens.per_token));
  const double each = double{1} * tokens.experts / groups, reachable = each * used;
  if (parts >= groups)
    return parts * (double{1} * used / groups) * (1 - misses(reachable, part, tokens.per_token));
  // Of a part's groups, j are among those that the token may use.
  const std::uint32_t own = groups / parts;
  double met = 0;
  for (std::uint32_t j = 1; j <= std::min(own, used); ++j) {
    if (used - j > groups - own) continue;
    const double chance = choose(own, j) * choose(groups - own, used - j) / choose(groups, used);
    met += chance * (1 - misses(reachable, j * each, tokens.per_token));
  }
  return parts * met;
}

void send_once_per_host(model::StepCost& cost,
                        const std::function<std::uint32_t(std::uint32_t)>& host_of) {
  double share = 0;
  for (model::ChunkCost& chunk : cost.chunks)
    for (model::UnitCost* unit : {&chunk.forward, &chunk.backward})
      for (model::CommWork& work : unit->comms) {
        if (work.once.experts == 0) continue;
        if (share == 0) {
          const Spread spread = spread_of(cost, host_of);
          const auto parts =
              spread.crosses ? static_cast<std::uint32_t>(std::lround(spread.hosts)) : cost.ep;
          share = parts_met(work.once, std::max(parts, 1u)) / work.once.per_token;
        }
        work.bytes *= share;
        work.once = {};
      }
}

}  // namespace weft::workload
