#include "observe/localise/lost_routes.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

namespace weft::observe::localise {
namespace {

using model::Evidence;
using model::EvidenceSet;
using model::Fabric;
using model::Leg;
using model::LinkId;
using model::NodeId;

constexpr std::size_t flows_min = 4;
constexpr double hit_share = 0.05;  // of a window's probes: what a fault that has just begun takes
constexpr double accept = 12;       // a chance of one in 160,000, and as many routes
constexpr std::size_t routes_max = 16;  // that are looked at: those with most flows

using Route = std::pair<NodeId, NodeId>;  // switch; NIC, or host with several
using Rows = std::vector<const Evidence*>;
using FlowKey = std::tuple<NodeId, NodeId, std::uint16_t, std::uint8_t, Leg>;

FlowKey key_of(const Evidence& row) {
  return {row.src, row.dst, row.sport, row.traffic_class, row.leg};
}

bool is_hit(const Evidence& row) { return row.lost > 0 && row.lost >= hit_share * row.sent; }

// The NIC itself, or its host.
bool is_at(const Fabric& fabric, NodeId nic, NodeId end) {
  return nic == end || fabric.host_of(nic) == end;
}

// Calls visit(link in, link out, end) for each switch that the row's packets pass, on their way to
// that end.
template <class Visit>
void each_hop(const Fabric& fabric, const EvidenceSet& evidence, const Evidence& row, Visit visit) {
  const std::span<const LinkId> path = evidence.path(row);
  NodeId end = row.leg == Leg::back ? row.src : row.dst;
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    const NodeId at = fabric.to(path[i]);
    if (fabric.is_switch(at))
      visit(path[i], path[i + 1], end);
    else if (row.leg == Leg::round_trip)
      end = row.src;  // the way back begins
  }
}

// Ends of rows that were not hit, of routes with enough flows that were.
std::vector<Route> candidates_in(const Fabric& fabric, const EvidenceSet& evidence,
                                 const Rows& rows) {
  std::map<Route, std::set<FlowKey>> hits;
  for (const Evidence* row : rows)
    if (is_hit(*row))
      each_hop(fabric, evidence, *row, [&](LinkId in, LinkId, NodeId end) {
        hits[{fabric.to(in), end}].insert(key_of(*row));
        if (const NodeId host = fabric.host_of(end);
            host.valid() && host != end && fabric.nics_of(host).size() > 1)
          hits[{fabric.to(in), host}].insert(key_of(*row));
      });
  std::erase_if(hits, [](const auto& one) { return one.second.size() < flows_min; });
  if (hits.empty()) return {};
  std::vector<bool> is_reached(fabric.node_count());
  for (const Evidence* row : rows)
    if (!is_hit(*row))
      for (const NodeId nic : {row->src, row->dst}) {
        is_reached[nic.index()] = true;
        if (const NodeId host = fabric.host_of(nic); host.valid()) is_reached[host.index()] = true;
      }
  std::vector<std::pair<std::size_t, Route>> found;
  for (const auto& [route, flows] : hits)
    if (is_reached[route.second.index()]) found.emplace_back(flows.size(), route);
  std::ranges::stable_sort(found, std::ranges::greater(),
                           [](const auto& one) { return one.first; });
  if (found.size() > routes_max) found.resize(routes_max);
  std::vector<Route> out;
  for (const auto& [flows, route] : found) out.push_back(route);
  return out;
}

// Rows, and how many of them were hit.
struct Count {
  std::uint64_t rows = 0, hit = 0;
  void add(const Evidence& row) {
    ++rows;
    hit += is_hit(row) ? 1 : 0;
  }
  // The share of hit ones, were one more hit: 1 where there are no rows.
  double share() const { return static_cast<double>(hit + 1) / static_cast<double>(rows + 1); }
};

bool goes_over(const Fabric& fabric, const EvidenceSet& evidence, const Evidence& row,
               const Route& route) {
  bool out = false;
  each_hop(fabric, evidence, row, [&](LinkId in, LinkId, NodeId end) {
    out |= fabric.to(in) == route.first && is_at(fabric, end, route.second);
  });
  return out;
}

LostRoute judge(const Fabric& fabric, const EvidenceSet& evidence, const Rows& rows,
                const Route& route) {
  const auto& [device, end] = route;
  LostRoute out{.device = device, .to = end};
  // Since when nothing came through unharmed.
  Timestamp good{INT64_MIN}, begin{INT64_MAX};
  Rows over;
  for (const Evidence* row : rows)
    if (goes_over(fabric, evidence, *row, route)) {
      over.push_back(row);
      if (!is_hit(*row)) good = std::max(good, row->t);
    }
  std::set<FlowKey> flows;
  std::set<LinkId> in_links, out_links;
  for (const Evidence* row : over) {
    if (row->t <= good) continue;
    flows.insert(key_of(*row));
    begin = std::min(begin, row->t);
    out.probes += row->sent;
    out.lost += row->lost;
    each_hop(fabric, evidence, *row, [&](LinkId in, LinkId next, NodeId to) {
      if (fabric.to(in) != device || !is_at(fabric, to, end)) return;
      in_links.insert(in);
      out_links.insert(next);
    });
  }
  if (flows.size() < flows_min) return out;
  Count by_switch, by_in, by_out, to_end;
  for (const Evidence* row : rows) {
    if (row->t < begin || goes_over(fabric, evidence, *row, route)) continue;
    bool is_to_end = false, is_by_switch = false, is_by_in = false, is_by_out = false;
    each_hop(fabric, evidence, *row, [&](LinkId in, LinkId next, NodeId to) {
      is_to_end |= is_at(fabric, to, end);
      is_by_switch |= fabric.to(in) == device;
      is_by_in |= in_links.contains(in);
      is_by_out |= out_links.contains(next);
    });
    if (is_to_end) to_end.add(*row);
    if (is_by_switch) by_switch.add(*row);
    if (is_by_in) by_in.add(*row);
    if (is_by_out) by_out.add(*row);
  }
  const double usual = std::max({by_switch.share(), by_in.share(), by_out.share(), to_end.share()});
  out.score = -static_cast<double>(flows.size()) * std::log(usual);
  return out;
}

// That say something of their path.
Rows rows_of(const Fabric& fabric, const EvidenceSet& evidence, const model::State* believed) {
  const model::LiveView view(fabric, believed == nullptr ? model::State{} : *believed);
  const auto is_up = [&](LinkId link) { return view.health[link.index()] == model::Health::up; };
  Rows out;
  for (const Evidence& row : evidence.rows)
    if (row.sent > 0 && row.path_size > 0 && std::ranges::all_of(evidence.path(row), is_up))
      out.push_back(&row);
  return out;
}

}  // namespace

bool may_have_lost_routes(const Fabric& fabric, const EvidenceSet& evidence,
                          const model::State* believed) {
  if (std::ranges::count_if(evidence.rows, is_hit) < std::ptrdiff_t{flows_min}) return false;
  return !candidates_in(fabric, evidence, rows_of(fabric, evidence, believed)).empty();
}

std::vector<LostRoute> take_lost_routes(const Fabric& fabric, EvidenceSet& evidence,
                                        const model::State* believed) {
  std::vector<LostRoute> out;
  for (;;) {
    const Rows rows = rows_of(fabric, evidence, believed);
    LostRoute best;
    for (const Route& route : candidates_in(fabric, evidence, rows)) {
      const LostRoute found = judge(fabric, evidence, rows, route);
      if (found.score > best.score) best = found;
    }
    if (best.score < accept) return out;
    std::vector<Evidence> left;
    std::size_t usable = 0;
    for (const Evidence& row : evidence.rows) {
      const bool is_usable = usable < rows.size() && rows[usable] == &row;
      usable += is_usable ? 1 : 0;
      if (!is_usable || !goes_over(fabric, evidence, row, {best.device, best.to}))
        left.push_back(row);
    }
    evidence.rows = std::move(left);
    out.push_back(best);
  }
}

}  // namespace weft::observe::localise
