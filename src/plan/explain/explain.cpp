#include "plan/explain/explain.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "model/fabric/frontend.hpp"
#include "plan/explain/parts.hpp"

namespace weft::plan {

using namespace model;
namespace {

using Role = Fabric::Role;

void count_roles(const Fabric& fabric, FabricFacts& facts) {
  for (const Role& role : fabric.roles()) {
    FabricFacts::RoleFacts out{.name = role.name,
                               .kind = role.kind,
                               .count = role.nodes.size(),
                               .ports_min = UINT32_MAX,
                               .capacity_min = {INT64_MAX},
                               .capacity_max = {}};
    for (const NodeId node : role.nodes) {
      const auto ports = static_cast<std::uint32_t>(fabric.out(node).size());
      Rate capacity;
      for (const LinkId link : fabric.out(node)) capacity = plus(capacity, fabric.rate(link));
      out.ports_min = std::min(out.ports_min, ports);
      out.ports_max = std::max(out.ports_max, ports);
      out.capacity_min = std::min(out.capacity_min, capacity);
      out.capacity_max = std::max(out.capacity_max, capacity);
    }
    facts.roles.push_back(std::move(out));
  }
}

void count_tiers(const Fabric& fabric, FabricFacts& facts) {
  for (const Fabric::Tier& tier : fabric.tiers()) {
    FabricFacts::TierFacts out{.name = tier.name,
                               .links = tier.links.size(),
                               .rate_min = {INT64_MAX},
                               .rate_max = {},
                               .capacity = {},
                               .latency_min = duration_max,
                               .latency_max = {}};
    for (const LinkId link : tier.links) {
      out.rate_min = std::min(out.rate_min, fabric.rate(link));
      out.rate_max = std::max(out.rate_max, fabric.rate(link));
      out.capacity = plus(out.capacity, fabric.rate(link));
      out.latency_min = std::min(out.latency_min, fabric.latency(link));
      out.latency_max = std::max(out.latency_max, fabric.latency(link));
    }
    facts.tiers.push_back(std::move(out));
  }
}

struct Capacities {
  Rate down, up, peer;
  enum class Up : std::uint8_t { none, dead, live } up_cables = Up::none;
  friend bool operator==(const Capacities&, const Capacities&) = default;
};
Capacities capacities(const Survey& survey, NodeId node) {
  Capacities out;
  for (const LinkId link : survey.fabric.out(node)) {
    const std::uint32_t here = survey.level[node], there = survey.level[survey.fabric.to(link)];
    Rate& side = there < here ? out.down : there > here ? out.up : out.peer;
    side = plus(side, survey.rate[link]);
    if (there > here && out.up_cables == Capacities::Up::none) out.up_cables = Capacities::Up::dead;
  }
  if (out.up > Rate{}) out.up_cables = Capacities::Up::live;
  return out;
}

// Those of storage hosts are no racks that jobs could run on.
std::size_t count_racks(const Fabric& fabric) {
  std::set<ScopeId> storage;
  for (const NodeId host : storage_hosts(fabric))
    storage.insert(fabric.enclosing(host, ScopeKind::rack));
  storage.erase(ScopeId{});
  const auto all = std::ranges::count(fabric.scopes(), ScopeKind::rack, &Fabric::Scope::kind);
  return static_cast<std::size_t>(all) - storage.size();
}

// Compares a.over / a.under with b; nothing over nothing is the least, anything over 0 the most.
bool less(const Ratio& a, const Ratio& b) {
  __extension__ using Wide = __int128;
  return Wide{a.over} * b.under < Wide{b.over} * a.under;
}

void compare_sides(const Survey& survey, FabricFacts& facts) {
  for (const Role& role : survey.fabric.roles()) {
    if (role.kind != NodeKind::fabric_switch) continue;
    FabricFacts::SwitchTier out;
    out.role = role.name;
    out.switches = role.nodes.size();
    out.level_min = unseen;
    std::optional<Capacities> first;
    for (const NodeId node : role.nodes) {
      const std::uint32_t level = survey.level[node] == unseen ? 0 : survey.level[node];
      out.level_min = std::min(out.level_min, level);
      out.level_max = std::max(out.level_max, level);
      if (survey.state.node(node).health != Health::up) {
        ++out.out_of_service;
        continue;
      }
      const Capacities here = capacities(survey, node);
      const Ratio ratio = ratio_of(here.down, here.up);
      const bool is_first = !first.has_value();
      if (is_first) first = here;
      out.uniform = out.uniform && here == *first;
      if (here.up_cables == Capacities::Up::dead) ++out.cut_off;
      if (is_first || less(out.worst, ratio))
        std::tie(out.worst, out.down, out.up, out.peer) =
            std::tuple(ratio, here.down, here.up, here.peer);
      if (is_first || less(ratio, out.best)) out.best = ratio;
    }
    facts.switch_tiers.push_back(std::move(out));
  }
}

}  // namespace

Survey::Survey(const Fabric& of, const State& in)
    : fabric(of),
      state(in),
      rate(of.link_count()),
      level(of.node_count(), unseen),
      group(of.node_count()) {
  const LiveView live(fabric, state);
  for (const LinkId link : fabric.links()) {
    if (live.health[link.index()] != Health::up) continue;
    const double left = live.bytes_per_s[link.index()];
    const bool whole = left == fabric.rate(link).bytes_per_s();
    rate[link] = whole ? fabric.rate(link) : Rate{std::llround(left * 8)};
  }
  std::vector<NodeId> queue;
  for (const NodeId node : fabric.nodes()) {
    if (fabric.is_switch(node)) continue;
    level[node] = 0;
    queue.push_back(node);
  }
  for (std::size_t at = 0; at < queue.size(); ++at)
    for (const LinkId link : fabric.out(queue[at])) {
      const NodeId to = fabric.to(link);
      if (level[to] != unseen) continue;
      level[to] = level[queue[at]] + 1;
      queue.push_back(to);
    }
  for (const NodeId nic : fabric.nics()) {
    const ScopeId rack = fabric.enclosing(nic, ScopeKind::rack);
    group[nic] = rack.valid() ? rack : fabric.scope(nic);
  }
}

Ratio ratio_of(Rate over, Rate under) {
  const std::int64_t common = std::gcd(over.bps, under.bps);
  if (common == 0) return {};
  return {over.bps / common, under.bps / common};
}

FabricFacts explain(const Fabric& fabric, const State& state) {
  FabricFacts facts;
  facts.nodes = fabric.node_count();
  facts.links = fabric.link_count();
  facts.gpus = fabric.gpus().size();
  facts.nics = fabric.nics().size();
  facts.hosts = fabric.hosts().size();
  facts.racks = count_racks(fabric);
  facts.notes.assign(fabric.notes().begin(), fabric.notes().end());
  const Survey survey(fabric, state);
  count_roles(fabric, facts);
  count_tiers(fabric, facts);
  compare_sides(survey, facts);
  find_bisection(survey, facts);
  find_paths(survey, facts);
  find_losses(survey, facts);
  return facts;
}

FabricFacts explain_capacity(const Fabric& fabric, const State& state) {
  FabricFacts facts;
  const Survey survey(fabric, state);
  compare_sides(survey, facts);
  find_bisection(survey, facts);
  return facts;
}

}  // namespace weft::plan
