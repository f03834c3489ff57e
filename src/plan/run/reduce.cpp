#include "plan/run/reduce.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace weft::plan {
namespace {

using model::Fabric;
using model::LinkId;
using model::NodeId;
using model::NodeKind;

double load_of(const Fabric& fabric, LinkId link, double bytes, double makespan_s) {
  const double capacity = fabric.rate(link).bytes_per_s();
  return makespan_s > 0 && capacity > 0 ? bytes / (capacity * makespan_s) : 0;
}

NodeId leaf_of(const Fabric& fabric, NodeId nic) {
  for (const LinkId link : fabric.out(nic))
    if (fabric.is_switch(fabric.to(link))) return fabric.to(link);
  return {};
}

// Asks the router for pairs of NICs, each once, and marks what it answers.
class UsableMarker {
 public:
  explicit UsableMarker(route::Router& router)
      : router_(router), usable_(router.fabric().link_count(), false) {}

  void add(NodeId from_gpu, NodeId to_gpu) {
    const Fabric& fabric = router_.fabric();
    if (fabric.share_domain(from_gpu, to_gpu)) return;
    add_wire(wire_end(from_gpu), wire_end(to_gpu));
  }
  void add_all_pairs(std::span<const NodeId> gpus) {
    std::map<NodeId, NodeId> of_leaf;  // leaf switch -> one NIC
    std::vector<NodeId> nics;
    for (const NodeId gpu : gpus) {
      const NodeId nic = wire_end(gpu);
      if (!nic.valid()) continue;
      nics.push_back(nic);
      of_leaf.emplace(leaf_of(router_.fabric(), nic), nic);
    }
    for (const auto& [leaf_a, a] : of_leaf)
      for (const auto& [leaf_b, b] : of_leaf)
        if (leaf_a != leaf_b) add_wire(a, b);
    for (const NodeId nic : nics) {
      const NodeId other = nic == nics.front() ? nics.back() : nics.front();
      add_wire(nic, other);
      add_wire(other, nic);
    }
  }
  std::vector<bool> take() { return std::move(usable_); }

 private:
  NodeId wire_end(NodeId node) const {
    return router_.fabric().kind(node) == NodeKind::gpu ? router_.fabric().nic_of(node) : node;
  }
  void add_wire(NodeId a, NodeId b) {
    if (!a.valid() || !b.valid() || a == b || !seen_.emplace(a, b).second) return;
    links_.clear();
    router_.append_usable({a, b}, links_);
    for (const LinkId link : links_) usable_[link.index()] = true;
  }
  route::Router& router_;
  std::vector<bool> usable_;
  std::set<std::pair<NodeId, NodeId>> seen_;
  std::vector<LinkId> links_;
};

}  // namespace

std::vector<bool> usable_links(std::span<const engine::Job> jobs, route::Router& router) {
  UsableMarker marker(router);
  for (const auto& job : jobs)
    for (const workload::Stage& stage : job.traffic.stages) {
      for (const workload::Chain& chain : stage.chains)
        for (const workload::Edge& edge : chain.edges) marker.add(edge.from, edge.to);
      for (const workload::Edge& flow : stage.flows) marker.add(flow.from, flow.to);
      for (const workload::Exchange& exchange : stage.exchanges)
        marker.add_all_pairs(exchange.ranks);
    }
  return marker.take();
}

void mark_used(std::span<const double> link_bytes, std::vector<bool>& usable) {
  for (std::size_t i = 0; i < link_bytes.size(); ++i)
    if (link_bytes[i] > 0) usable[i] = true;
}

std::vector<model::TierOutcome> tier_loads(const Fabric& fabric, std::span<const double> link_bytes,
                                           const std::vector<bool>& usable, double makespan_s) {
  std::vector<model::TierOutcome> out;
  for (const Fabric::Tier& tier : fabric.tiers()) {
    if (tier.links.empty() || !fabric.on_wire(tier.links.front())) continue;
    model::TierOutcome row{.name = tier.name};
    double sum = 0;
    for (const LinkId link : tier.links) {
      if (!usable[link.index()]) continue;
      const double load = load_of(fabric, link, link_bytes[link.index()], makespan_s);
      ++row.links;
      sum += load;
      row.max_load = std::max(row.max_load, load);
      const auto bin = static_cast<std::size_t>(load * model::load_bins);
      ++row.histogram[std::min(bin, model::load_bins - 1)];
    }
    if (row.links == 0) continue;
    row.mean_load = sum / static_cast<double>(row.links);
    if (row.mean_load > 0) row.mmr = row.max_load / row.mean_load;
    out.push_back(row);
  }
  return out;
}

std::vector<model::HeatMap> heat_maps(const Fabric& fabric, std::span<const double> link_bytes,
                                      std::span<const double> capacity, double makespan_s) {
  std::vector<model::HeatMap> out;
  for (const Fabric::Tier& tier : fabric.tiers()) {
    if (tier.links.empty()) continue;
    const LinkId first = tier.links.front();
    const bool switches =
        fabric.is_switch(fabric.from(first)) && fabric.is_switch(fabric.to(first));
    // Each cable once, seen from its lower end: cables run upwards, forward links first.
    if (!switches || tier.from == tier.to || first != model::forward(model::cable_of(first)))
      continue;
    const auto& rows = fabric.role(tier.from).nodes;
    const auto& columns = fabric.role(tier.to).nodes;
    const std::size_t cells = rows.size() * columns.size();
    model::HeatMap map{.row_role = fabric.role(tier.from).name,
                       .column_role = fabric.role(tier.to).name};
    map.up.assign(cells, model::no_number);
    map.down.assign(cells, model::no_number);
    for (const NodeId node : rows) map.rows.push_back(fabric.name(node));
    for (const NodeId node : columns) map.columns.push_back(fabric.name(node));
    const auto hotter = [&](double& cell, LinkId link) {
      if (capacity[link.index()] <= 0) return;
      const double load = load_of(fabric, link, link_bytes[link.index()], makespan_s);
      if (!(cell >= load)) cell = load;  // also where the cell has no number yet
    };
    for (const LinkId link : tier.links) {
      const std::size_t cell = fabric.role_index(fabric.from(link)) * columns.size() +
                               fabric.role_index(fabric.to(link));
      hotter(map.up[cell], link);
      hotter(map.down[cell], model::reverse(link));
    }
    out.push_back(std::move(map));
  }
  return out;
}

}  // namespace weft::plan
