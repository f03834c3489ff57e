#include "operate/te/decide.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "base/check.hpp"
#include "route/divide.hpp"
#include "route/hash.hpp"

namespace weft::operate::te {
namespace {

using model::LinkId;
using route::Assignment;
using route::Zone;

// Sums of floating-point numbers in another order are not the same to the last bit.
constexpr double rounding = 1e-9;

bool crosses_spines(const Zone& zone, const Flow& flow) {
  const std::uint32_t from = zone.rack_of[flow.src], to = zone.rack_of[flow.dst];
  return from != Zone::none && to != Zone::none && from != to;
}

class Loads {
 public:
  explicit Loads(std::size_t links) : weight_(links, 0) {}

  void add(std::span<const LinkId> path, double weight) {
    for (const LinkId link : path) weight_[link.index()] += weight;
  }

  struct Worst {
    double load = 0;
    LinkId link;
  };
  // Of the links between racks and spines, in shares of the fastest.
  Worst worst(const Zone& zone, const Fabric& fabric, const model::LiveView& view) const {
    double fastest = 0;
    for (const LinkId up : zone.up)
      if (up.valid()) fastest = std::max(fastest, fabric.rate(up).bytes_per_s());
    Worst out;
    for (const LinkId up : zone.up) {
      if (!up.valid()) continue;
      for (const LinkId link : {up, reverse(up)}) {
        const double left = view.bytes_per_s[link.index()];
        const double load = left > 0 ? weight_[link.index()] * fastest / left : 0;
        if (load > out.load) out = {load, link};
      }
    }
    return out;
  }

 private:
  std::vector<double> weight_;  // by LinkId
};

// The path of a mark, if it is one that packets can take.
bool is_live(const Zone& zone, const Flow& flow, std::uint32_t column,
             const model::LiveView& view) {
  if (column >= zone.columns || !crosses_spines(zone, flow) ||
      !zone.uplink(zone.rack_of[flow.src], column).valid() ||
      !zone.uplink(zone.rack_of[flow.dst], column).valid())
    return false;
  return std::ranges::all_of(zone.path(flow.src, flow.dst, column),
                             [&](LinkId link) { return view.usable(link); });
}

// Whether both its NICs still reach their racks.
bool has_live_ends(const Zone& zone, const Flow& flow, const model::LiveView& view) {
  return view.usable(zone.port_of[flow.src]) && view.usable(reverse(zone.port_of[flow.dst]));
}

// The flows that cross spines, as an assignment has them; without those that are cut off, for which
// no mark is of use.
struct Crossing {
  std::vector<std::uint32_t> flow;  // its number among all
  std::vector<Assignment::Flow> flows;
  std::vector<bool> may_divide;
  route::Placement before;
  std::uint32_t cut_off = 0;

  Crossing(const Zone& zone, const model::LiveView& view, std::span<const Flow> all,
           const Settings& settings, const Marks& installed, const Marks& installed_second) {
    const auto at = [&](const Marks& marks, std::uint32_t f) {
      return f < marks.size() && marks[f] < zone.columns ? marks[f] : Assignment::none;
    };
    for (std::uint32_t f = 0; f < all.size(); ++f) {
      if (!crosses_spines(zone, all[f])) continue;
      if (!has_live_ends(zone, all[f], view)) {
        ++cut_off;
        continue;
      }
      flow.push_back(f);
      flows.push_back({.from = zone.rack_of[all[f].src],
                       .to = zone.rack_of[all[f].dst],
                       .weight = all[f].weight,
                       .priority = all[f].priority});
      may_divide.push_back(settings.split && all[f].second != 0);
      before.first.push_back(at(installed, f));
      before.second.push_back(may_divide.back() ? at(installed_second, f) : Assignment::none);
    }
  }
};

// A divided flow is one flow to its owner: hashing is judged undivided, and each counts once.
Judgement judge_divided(const Zone& zone, route::Router& hashing, const model::State& state,
                        std::span<const Flow> flows, const Decision& decision) {
  if (decision.divided == 0) return judge(zone, hashing, state, flows, decision.marks);
  const MarkedFlows qps = by_qp(flows, decision.marks, decision.second);
  Judgement out = judge(zone, hashing, state, qps.flows, qps.marks);
  std::erase_if(out.cut_off, [&](std::uint32_t f) { return f >= flows.size(); });
  out.hashed = judge(zone, hashing, state, flows, Marks(flows.size(), Zone::none)).hashed;
  return out;
}

}  // namespace

MarkedFlows by_qp(std::span<const Flow> flows, const Marks& marks, const Marks& second) {
  MarkedFlows out{{flows.begin(), flows.end()}, marks};
  for (std::size_t f = 0; f < flows.size(); ++f) {
    const bool is_divided = f < second.size() && second[f] != Zone::none;
    if (!is_divided) {
      out.flows[f].second = 0;
      continue;
    }
    out.flows[f].weight /= 2;
    Flow half = out.flows[f];
    half.port = std::exchange(half.second, 0);
    out.flows.push_back(half);
    out.marks.push_back(second[f]);
  }
  return out;
}

std::vector<Flow> whole_flows(std::span<const Flow> by_qp) {
  using Key = std::tuple<NodeId, NodeId, std::uint16_t>;
  std::map<Key, double> halves;  // weight, of those that are the second of another
  for (const Flow& flow : by_qp)
    if (flow.second != 0) halves[{flow.src, flow.dst, flow.second}] = 0;
  for (const Flow& flow : by_qp)
    if (const auto half = halves.find({flow.src, flow.dst, flow.port}); half != halves.end())
      half->second = flow.weight;
  std::vector<Flow> out;
  for (const Flow& flow : by_qp) {
    if (halves.contains({flow.src, flow.dst, flow.port})) continue;
    out.push_back(flow);
    if (flow.second == 0) continue;
    out.back().weight += halves[{flow.src, flow.dst, flow.second}];
    out.back().second = 0;
  }
  return out;
}

Judgement judge(const Zone& zone, route::Router& hashing, const model::State& state,
                std::span<const Flow> flows, const Marks& marks) {
  WEFT_CHECK(marks.size() == flows.size());
  const Fabric& fabric = hashing.fabric();
  const model::LiveView view(fabric, state);
  hashing.set_state(state);
  Loads marked(fabric.link_count()), hashed(fabric.link_count());
  Judgement out;
  route::Path path;
  for (std::uint32_t f = 0; f < flows.size(); ++f) {
    const Flow& flow = flows[f];
    path.clear();
    const bool has_path = hashing.append_udp_path(
        flow.src, flow.dst, {.src = flow.port, .dst = route::roce_port}, path);
    if (!has_path) out.cut_off.push_back(f);
    hashed.add(path, flow.weight);
    const bool live = marks[f] != Zone::none && is_live(zone, flow, marks[f], view);
    if (marks[f] != Zone::none && !live) out.dead.push_back(f);
    if (live)
      marked.add(zone.path(flow.src, flow.dst, marks[f]), flow.weight);
    else
      marked.add(path, flow.weight);
  }
  const Loads::Worst worst = marked.worst(zone, fabric, view);
  out.worst = worst.load;
  out.worst_link = worst.link;
  out.hashed = hashed.worst(zone, fabric, view).load;
  return out;
}

Decision decide(const Zone& zone, route::Router& hashing, const model::State& state,
                std::span<const Flow> flows, const Marks& installed, const Settings& settings,
                const Marks& installed_second) {
  WEFT_CHECK(installed.empty() || installed.size() == flows.size());
  WEFT_CHECK(installed_second.empty() || installed_second.size() == flows.size());
  const Fabric& fabric = hashing.fabric();
  Assignment links(zone.racks, zone.columns);
  set_capacities(links, zone, zone_capacities(zone, fabric, state));
  const Crossing crossing(zone, model::LiveView(fabric, state), flows, settings, installed,
                          installed_second);
  const route::Placement placed =
      route::place(links, crossing.flows, crossing.may_divide, crossing.before, settings.others);
  Decision out{.marks = Marks(flows.size(), Zone::none),
               .second = Marks(flows.size(), Zone::none),
               .judgement = {},
               .bound = placed.outcome.bound,
               .hit = placed.outcome.placed,
               .moved = placed.outcome.moved,
               .without = placed.outcome.without + crossing.cut_off,
               .refused = {}};
  for (std::size_t i = 0; i < crossing.flow.size(); ++i) {
    out.marks[crossing.flow[i]] = placed.first[i];
    out.second[crossing.flow[i]] = placed.second[i];
    out.divided += placed.second[i] == Assignment::none ? 0 : 1;
  }
  out.judgement = judge_divided(zone, hashing, state, flows, out);
  const double hashed = out.judgement.hashed;
  if (out.judgement.worst <= hashed * (1 + rounding) && out.judgement.dead.empty()) return out;
  out.refused =
      out.judgement.dead.empty()
          ? fmt::format("{} would carry {:.4g}, and with plain ECMP no link more than {:.4g}",
                        fabric.name(out.judgement.worst_link), out.judgement.worst, hashed)
          : fmt::format("{} marks would lead over dead links", out.judgement.dead.size());
  out.divided = 0;
  out.marks.assign(flows.size(), Zone::none);
  out.second.assign(flows.size(), Zone::none);
  out.judgement = judge(zone, hashing, state, flows, out.marks);
  return out;
}

}  // namespace weft::operate::te
