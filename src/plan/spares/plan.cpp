#include "plan/spares/plan.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "plan/spares/hosts_out.hpp"

namespace weft::plan::spares {
namespace {

constexpr std::uint32_t everywhere = UINT32_MAX;
constexpr std::size_t none = SIZE_MAX;

// The events of a zone or of all, by size, but for one kind.
std::vector<Batch> batches_of(const Outages& outages, std::uint32_t zone, std::size_t left_out) {
  std::vector<Batch> batches;
  for (std::size_t k = 0; k < outages.kinds.size(); ++k) {
    if (k == left_out) continue;
    const Outage& kind = outages.kinds[k];
    std::map<std::uint32_t, std::uint32_t> units;  // by size
    for (const Outage::Unit& unit : kind.units)
      if (zone == everywhere || unit.zone == zone) ++units[unit.count];
    for (const auto& [size, count] : units)
      batches.push_back({kind.per_year / hours_per_year * count, kind.repair_h, size});
  }
  return batches;
}

HostsOut hosts_out(const Outages& outages, std::size_t left_out = none) {
  return {batches_of(outages, everywhere, left_out), outages.host_count()};
}

using Tails = std::vector<Tail>;  // by zone

Tails tails_of(const Outages& outages, const std::optional<Simulated>& simulated) {
  if (outages.needs_simulation() && simulated) return simulated->above_of_zone;
  Tails tails;
  for (std::uint32_t z = 0; z < outages.zones.size(); ++z)
    tails.push_back(HostsOut(batches_of(outages, z, none), outages.zones[z].count).tail());
  return tails;
}

void spread(const Tails& tails, SparePlan& plan) {
  for (std::uint32_t s = 0; s < plan.spares; ++s) {
    std::size_t best = 0;
    const auto gain = [&](std::size_t z) {
      const std::uint32_t here = plan.zones[z].spares;
      return here < tails[z].size() ? tails[z][here] : 0;
    };
    for (std::size_t z = 1; z < tails.size(); ++z)
      if (gain(z) > gain(best)) best = z;
    ++plan.zones[best].spares;
  }
  for (std::size_t z = 0; z < tails.size(); ++z) {
    plan.foreign += mean_above(tails[z], plan.zones[z].spares);
    plan.foreign_in_one_zone += mean_above(tails[z], z == 0 ? plan.spares : 0);
  }
}

void add_levels(const Outages& outages, const HostsOut& out, SparePlan& plan) {
  std::vector<double> targets{0.99, 0.999, 0.9999, outages.target};
  std::ranges::sort(targets);
  targets.erase(std::ranges::unique(targets).begin(), targets.end());
  for (const double target : targets) {
    Level level{.target = target, .spares = enough_for(out.tail(), target)};
    double above = out.above(level.spares);
    level.shortages_per_year = out.crossings_per_hour(level.spares) * hours_per_year;
    if (plan.simulated) level.simulated = enough_for(plan.simulated->above, target);
    if (outages.needs_simulation() && plan.simulated) {
      above = plan.simulated->above[*level.simulated];
      level.shortages_per_year = plan.simulated->crossings_per_year[*level.simulated];
    }
    if (level.shortages_per_year > 0)
      level.hours_each = above * hours_per_year / level.shortages_per_year;
    if (target == outages.target)
      plan.spares = outages.needs_simulation() && plan.simulated ? *level.simulated : level.spares;
    plan.levels.push_back(level);
  }
}

void add_events(const Outages& outages, SparePlan& plan) {
  for (std::size_t k = 0; k < outages.kinds.size(); ++k) {
    const Outage& kind = outages.kinds[k];
    EventShare event{.name = kind.name};
    event.per_year = kind.per_year * static_cast<double>(kind.units.size());
    const double under_way = event.per_year / hours_per_year * kind.repair_h;
    event.share = -std::expm1(-under_way);
    double hosts = 0;
    for (const Outage::Unit& unit : kind.units) {
      event.hosts = std::max(event.hosts, unit.count);
      hosts += unit.count;
    }
    event.out = kind.per_year / hours_per_year * kind.repair_h * hosts;
    event.without = enough_for(hosts_out(outages, k).tail(), outages.target);
    plan.events.push_back(std::move(event));
  }
}

}  // namespace

SparePlan plan_spares(const Outages& outages, std::optional<Simulated> simulated) {
  SparePlan plan{.hosts = outages.host_count(), .target = outages.target};
  plan.simulated = std::move(simulated);
  const HostsOut out = hosts_out(outages);
  plan.out = outages.needs_simulation() && plan.simulated ? plan.simulated->mean : out.mean();
  add_levels(outages, out, plan);
  add_events(outages, plan);
  const Tails tails = tails_of(outages, plan.simulated);
  for (std::size_t z = 0; z < outages.zones.size(); ++z)
    plan.zones.push_back(
        {outages.zones[z].name, outages.zones[z].count, enough_for(tails[z], outages.target), 0});
  spread(tails, plan);
  return plan;
}

}  // namespace weft::plan::spares
