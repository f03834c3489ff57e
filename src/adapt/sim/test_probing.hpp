// For tests of localisers: probes of a twin's hosts, and what they meet in window after window.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "adapt/sim/twin.hpp"
#include "base/check.hpp"
#include "base/result.hpp"
#include "base/rng.hpp"
#include "route/router.hpp"

namespace weft::adapt::sim::testing {

using route::Hop;

struct PlanOptions {
  std::uint32_t peers = 14;  // other hosts that each host probes
  std::uint32_t ports = 18;  // source ports for each of them
  double per_host = 450;     // probes a second, over all classes
  std::vector<std::string> classes{"0"};
  std::uint32_t choices = 4;  // paths tried for each flow; the one over the idlest links is taken
};

class TwinPlanner {
 public:
  TwinPlanner(route::Router& router, const PlanOptions& options, std::uint64_t seed)
      : router_(router),
        fabric_(router.fabric()),
        options_(options),
        rng_(Rng(seed).stream("plan")),
        load_(fabric_.link_count(), 0) {
    plan_.classes = options.classes;
    for (const NodeId host : fabric_.hosts())
      if (!fabric_.nics_of(host).empty()) hosts_.push_back(host);
  }

  bool possible() const {
    return std::ranges::any_of(hosts_, [&](NodeId h) { return rack(h) != rack(hosts_.front()); });
  }

  TwinPlan make() {
    std::vector<NodeId> peers = hosts_;
    for (std::uint32_t round = 0; round < options_.peers; ++round) {
      rng_.shuffle(std::span(peers));
      part(peers);
      for (std::size_t i = 0; i < hosts_.size(); ++i)
        for (std::uint32_t port = 0; port < options_.ports; ++port) add(hosts_[i], peers[i]);
    }
    const double flows = static_cast<double>(options_.peers) * options_.ports *
                         static_cast<double>(options_.classes.size());
    for (TwinFlow& flow : plan_.flows) flow.per_s = options_.per_host / flows;
    return std::move(plan_);
  }

 private:
  model::ScopeId rack(NodeId host) const { return fabric_.enclosing(host, model::ScopeKind::rack); }
  NodeId random_nic(NodeId host) {
    const std::span<const NodeId> nics = fabric_.nics_of(host);
    return nics[rng_.below(nics.size())];
  }

  // Swaps until nobody probes its own rack.
  void part(std::vector<NodeId>& peers) {
    for (std::size_t i = 0; i < hosts_.size(); ++i)
      for (int attempt = 0; attempt < 1000 && rack(hosts_[i]) == rack(peers[i]); ++attempt) {
        const std::size_t j = rng_.below(peers.size());
        if (rack(hosts_[j]) != rack(peers[i])) std::swap(peers[i], peers[j]);
      }
  }

  void add(NodeId host, NodeId peer) {
    TwinFlow flow{.src = random_nic(host), .dst = random_nic(peer)};
    flow.sport = static_cast<std::uint16_t>(rng_.below(UINT16_MAX));
    std::tie(flow.forward_first, flow.forward_size) = idlest(flow.src, flow.dst);
    std::tie(flow.back_first, flow.back_size) = idlest(flow.dst, flow.src);
    if (flow.forward_size == 0 || flow.back_size == 0) return;
    for (std::size_t k = 0; k < plan_.classes.size(); ++k) {
      flow.traffic_class = static_cast<std::uint8_t>(k);
      plan_.flows.push_back(flow);
    }
  }

  std::pair<std::uint32_t, std::uint16_t> idlest(NodeId src, NodeId dst) {
    std::vector<Hop> best;
    std::uint64_t best_load = UINT64_MAX;
    for (std::uint32_t i = 0; i < options_.choices; ++i) {
      hops_.clear();
      const auto qp = static_cast<std::uint32_t>(rng_.below(1U << 24));
      if (!router_.append_path({.src = src, .dst = dst, .qp = qp}, hops_)) return {0, 0};
      std::uint64_t load = 0;  // of switch links; others are all the same
      for (const Hop& hop : hops_)
        if (inside(hop.link)) load += load_[hop.link.index()];
      if (load >= best_load) continue;
      best_load = load;
      best = hops_;
    }
    const auto first = static_cast<std::uint32_t>(plan_.links.size());
    for (const Hop& hop : best) {
      plan_.links.push_back(hop.link);
      ++load_[hop.link.index()];
    }
    return {first, static_cast<std::uint16_t>(best.size())};
  }

  bool inside(LinkId link) const {
    return fabric_.is_switch(fabric_.from(link)) && fabric_.is_switch(fabric_.to(link));
  }

  route::Router& router_;
  const Fabric& fabric_;
  const PlanOptions& options_;
  Rng rng_;
  std::vector<std::uint32_t> load_;
  std::vector<NodeId> hosts_;
  std::vector<Hop> hops_;
  TwinPlan plan_;
};

// Every host probes other hosts in other racks, from random NICs, over links that so far have few
// flows. The router should hash QPs (e_ecmp): ports are looked up as QPs.
// Fails: Errc::infeasible with fewer than two racks. Cost: flows x choices x hops.
inline Result<TwinPlan> make_plan(route::Router& router, const PlanOptions& options,
                                  std::uint64_t seed) {
  TwinPlanner planner(router, options, seed);
  if (!planner.possible())
    return fail(Errc::infeasible, {}, "probes need hosts in at least two racks");
  return planner.make();
}

// Leads one direction of a flow over `link`; false where that would be a detour.
inline bool lead_over(TwinPlan& plan, route::Router& router, TwinFlow& flow, LinkId link,
                      bool forward) {
  const Fabric& fabric = router.fabric();
  const NodeId src = forward ? flow.src : flow.dst, dst = forward ? flow.dst : flow.src;
  std::array<NodeId, 2> via{fabric.from(link), fabric.to(link)};
  std::vector<Hop> hops;
  if (!router.append_path({.src = src, .dst = dst, .qp = flow.sport, .via = via}, hops))
    return false;
  const std::uint16_t size = forward ? flow.forward_size : flow.back_size;
  const bool crosses =
      std::ranges::any_of(hops, [&](const Hop& hop) { return hop.link == link && hop.share == 1; });
  if (hops.size() != size || !crosses) return false;
  (forward ? flow.forward_first : flow.back_first) = static_cast<std::uint32_t>(plan.links.size());
  for (const Hop& hop : hops) plan.links.push_back(hop.link);
  return true;
}

// Moves up to half of the flows of each host next to a suspect link onto that link, as far as
// shortest paths allow; the rates stay. Cost: O(flows + moved flows x hops).
inline void aim(TwinPlan& plan, route::Router& router, std::span<const LinkId> suspects) {
  const Fabric& fabric = router.fabric();
  if (suspects.empty()) return;
  // Switches at which probes can be turned onto a suspect: where it starts (way there) or ends.
  std::map<NodeId, std::vector<std::pair<LinkId, bool>>> at;
  for (const LinkId link : suspects) {
    at[fabric.from(link)].emplace_back(link, true);
    at[fabric.to(link)].emplace_back(link, false);
  }
  std::map<NodeId, std::uint32_t> turn;
  for (TwinFlow& flow : plan.flows) {
    if (flow.forward_size == 0 || flow.back_size == 0) continue;
    const auto found = at.find(fabric.to(plan.forward(flow).front()));
    if (found == at.end()) continue;
    const std::uint32_t now = turn[found->first]++;
    if (now % 2 != 0) continue;  // half of the budget stays where it was
    const auto [link, forward] = found->second[now / 2 % found->second.size()];
    if (lead_over(plan, router, flow, link, forward)) flow.sport ^= 0x8000U;
  }
}

// Adds what is observed in window after window: one row a flow and leg while its path stays.
class Accumulator {
 public:
  void add(const TwinPlan& plan, const EvidenceSet& seen);
  EvidenceSet total() const;

 private:
  EvidenceSet current_;   // as the last plan has it
  EvidenceSet finished_;  // of flows that were moved since
};

inline void Accumulator::add(const TwinPlan& plan, const EvidenceSet& seen) {
  if (current_.rows.empty()) {
    current_ = seen;
    return;
  }
  WEFT_CHECK(seen.rows.size() == current_.rows.size());
  current_.links = plan.links;  // plans only add paths
  finished_.classes = current_.classes;
  for (std::size_t i = 0; i < seen.rows.size(); ++i) {
    model::Evidence& row = current_.rows[i];
    const model::Evidence& now = seen.rows[i];
    if (row.sport != now.sport || row.path_first != now.path_first) {
      finished_.rows.push_back(row);
      finished_.set_path(finished_.rows.back(), current_.path(row));
      row = now;
      continue;
    }
    row.sent += now.sent;
    row.lost += now.lost;
    row.late += now.late;
    row.damaged += now.damaged;
    row.duplicates += now.duplicates;
  }
}

inline EvidenceSet Accumulator::total() const {
  EvidenceSet out = current_;
  for (model::Evidence row : finished_.rows) {
    out.set_path(row, finished_.path(row));
    out.rows.push_back(row);
  }
  return out;
}

}  // namespace weft::adapt::sim::testing
