#include "adapt/sim/storm_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/rng.hpp"

namespace weft::adapt::sim {
namespace {

using model::CableId;
using model::LinkId;
using model::NodeId;
using model::ScopeId;
using model::ScopeKind;

// Shares of the faults and spans in seconds; reasons in docs/storm.md, "Faults". In the order of
// placement: what takes most room goes first.
struct TypeRow {
  ProblemType type;
  double share;
  double shortest, longest;
};
constexpr std::array<TypeRow, problem_type_count> type_rows{{
    {ProblemType::zone, 0.0025, 180, 480},
    {ProblemType::fabric_switch, 0.03, 150, 900},
    {ProblemType::power, 0.025, 240, 1200},
    {ProblemType::rack_switch, 0.035, 150, 900},
    {ProblemType::control_plane, 0.05, 20, 120},
    {ProblemType::line_card, 0.05, 180, 1200},
    {ProblemType::misconfiguration, 0.025, 60, 300},
    {ProblemType::host, 0.10, 120, 480},
    {ProblemType::congestion, 0.0775, 40, 240},
    {ProblemType::host_nic, 0.125, 120, 1800},
    {ProblemType::optic, 0.15, 300, 1500},
    {ProblemType::port_flap, 0.175, 40, 900},
    {ProblemType::cable, 0.155, 120, 1500},
}};

constexpr std::uint32_t fault_tries_max = 20'000;  // per fault
constexpr std::uint32_t racks_at_once_max = 12;    // on one power feed
constexpr double lead_in_s = 60, lead_out_s = 180;
constexpr double together_s = 20;            // how near in time neighbours begin
constexpr std::size_t large_footprint = 16;  // cables
constexpr std::size_t shared_one_in = 25;
constexpr double feed_lines_share = 0.125;  // of all lines, that one fault may say
constexpr double lines_per_cable = 12;

std::int64_t to_ns(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

class StormPlanner {
 public:
  StormPlanner(const StormContext& context, const StormOptions& options)
      : context_(context),
        options_(options),
        rng_(Rng(options.seed).stream("storm.plan")),
        of_node_(context.fabric.node_count()),
        of_circuit_(context.fabric.cable_count()) {}

  Result<std::vector<StormFault>> plan() {
    WEFT_TRY(const auto counts, count_types());
    for (std::size_t row = 0; row < type_rows.size(); ++row)
      for (std::uint32_t i = 0; i < counts[row]; ++i)
        if (!place(type_rows[row]))
          return fail(Errc::infeasible, {},
                      fmt::format("no room for fault {} of {}, a {}", faults_.size() + 1,
                                  options_.faults, to_text(type_rows[row].type)),
                      "request fewer faults, more hours or a larger fabric");
    std::ranges::stable_sort(faults_, {}, &StormFault::start);
    return std::move(faults_);
  }

 private:
  bool has_place(ProblemType type) const {
    switch (type) {
      case ProblemType::port_flap:
      case ProblemType::optic:
      case ProblemType::cable:
        return !context_.trunks.empty();
      case ProblemType::line_card:
        return !context_.carded.empty();
      case ProblemType::fabric_switch:
        return !context_.core_switches.empty();
      case ProblemType::rack_switch:
        return !context_.rack_switches.empty();
      case ProblemType::control_plane:
      case ProblemType::misconfiguration:
        return !context_.trunks.empty();
      case ProblemType::power:
        return !context_.racks.empty();
      case ProblemType::zone:
        return context_.racks.size() >= 4 && zone_of(context_.switches.front()).valid();
      case ProblemType::host_nic:
      case ProblemType::host:
      case ProblemType::congestion:
        return !context_.nics.empty();
    }
    return false;
  }

  bool is_asked(ProblemType type) const {
    return options_.types.empty() ||
           std::ranges::find(options_.types, type) != options_.types.end();
  }

  // How many of each row: shares of the types that there can be, by largest remainder.
  Result<std::array<std::uint32_t, problem_type_count>> count_types() const {
    std::array<std::uint32_t, problem_type_count> counts{};
    std::array<double, problem_type_count> left{};
    double sum = 0;
    for (const TypeRow& row : type_rows) {
      if (!is_asked(row.type)) continue;
      if (has_place(row.type))
        sum += row.share;
      else if (!options_.types.empty())
        return fail(
            Errc::infeasible, {},
            fmt::format("this fabric has no place for a fault of type {}", to_text(row.type)),
            "remove the type, or use another fabric");
    }
    if (options_.faults > 0 && sum == 0)
      return fail(Errc::infeasible, {}, "this fabric has nothing that can fail",
                  "use a fabric with switches");
    std::uint32_t given = 0;
    for (std::size_t i = 0; i < type_rows.size() && sum > 0; ++i) {
      if (!is_asked(type_rows[i].type) || !has_place(type_rows[i].type)) continue;
      const double exact = type_rows[i].share / sum * options_.faults;
      counts[i] = static_cast<std::uint32_t>(exact);
      left[i] = exact - counts[i];
      given += counts[i];
    }
    for (; given < options_.faults; ++given) {
      const auto most = std::ranges::max_element(left);
      ++counts[static_cast<std::size_t>(most - left.begin())];
      *most -= 1;
    }
    return counts;
  }

  double between(double low, double high) { return low + (high - low) * rng_.uniform(); }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[rng_.below(from.size())];
  }

  bool place(const TypeRow& row) {
    const double room = options_.hours * 3600 - lead_in_s - lead_out_s;
    for (std::uint32_t i = 0; i < fault_tries_max; ++i) {
      StormFault fault;
      fault.type = row.type;
      fault.shape = rng_.uniform();
      const double span = between(row.shortest, row.longest);
      if (span > room) continue;
      const StormFault* beside = nullptr;
      if (!faults_.empty() && rng_.uniform() < options_.adjacent) beside = &pick(faults_);
      double start = lead_in_s + between(0, room - span);
      if (beside != nullptr) {
        const double near = static_cast<double>(beside->start) * 1e-9;
        start =
            std::clamp(near + between(-together_s, together_s), lead_in_s, lead_in_s + room - span);
      }
      fault.start = to_ns(start);
      fault.end = to_ns(start + span);
      if (!strike(fault, near_switch(row.type, beside)) || is_taken(fault)) continue;
      keep(std::move(fault));
      return true;
    }
    return false;
  }

  // A switch at or beside which to strike: with a neighbour, one end of a cable of it.
  NodeId near_switch(ProblemType type, const StormFault* beside) {
    if (beside != nullptr && !beside->cables.empty()) {
      const LinkId link = model::forward(pick(beside->cables));
      const NodeId end = context_.fabric.from(rng_.below(2) == 0 ? link : model::reverse(link));
      if (context_.fabric.is_switch(end)) return end;
    }
    switch (type) {
      case ProblemType::fabric_switch:
        return pick(context_.core_switches);
      case ProblemType::rack_switch:
        return pick(context_.rack_switches);
      case ProblemType::line_card:
        return pick(context_.carded);
      case ProblemType::host_nic:
      case ProblemType::host:
      case ProblemType::congestion: {
        const LinkId up = context_.fabric.out(pick(context_.nics)).front();
        return context_.fabric.is_switch(context_.fabric.to(up)) ? context_.fabric.to(up)
                                                                 : pick(context_.rack_switches);
      }
      case ProblemType::control_plane:
        return pick(context_.switches);
      default:
        if (context_.trunks.empty()) return pick(context_.switches);
        return context_.fabric.from(model::forward(pick(context_.trunks)));
    }
  }

  // `near`, or one of its neighbours for which `fits`; invalid when there is none.
  template <class Fits>
  NodeId seek(NodeId near, Fits fits) {
    if (fits(near)) return near;
    const auto trunks = context_.trunks_of(near);
    if (trunks.empty()) return {};
    const NodeId other = context_.fabric.to(pick(trunks));
    return fits(other) ? other : NodeId{};
  }

  // Chooses what breaks; false when there is nothing of the kind near.
  bool strike(StormFault& fault, NodeId near) {
    switch (fault.type) {
      case ProblemType::port_flap:
      case ProblemType::optic:
      case ProblemType::cable:
        return strike_cable(fault, near);
      case ProblemType::line_card:
        return strike_card(fault, near);
      case ProblemType::fabric_switch:
        return strike_device(fault,
                             seek(near, [&](NodeId n) { return !context_.is_rack_switch(n); }));
      case ProblemType::rack_switch:
        return strike_device(fault,
                             seek(near, [&](NodeId n) { return context_.is_rack_switch(n); }));
      case ProblemType::control_plane:
        return strike_control_plane(fault, near);
      case ProblemType::power:
        return strike_rack(fault, near);
      case ProblemType::zone:
        return strike_zone(fault, near);
      case ProblemType::misconfiguration:
        return strike_push(fault, near);
      case ProblemType::host_nic:
      case ProblemType::host:
      case ProblemType::congestion:
        return strike_host(fault, near);
    }
    return false;
  }

  bool strike_cable(StormFault& fault, NodeId near) {
    const auto trunks = context_.trunks_of(near);
    if (trunks.empty()) return false;
    fault.cables = {model::cable_of(pick(trunks))};
    return true;
  }

  bool strike_card(StormFault& fault, NodeId near) {
    const NodeId device = seek(near, [&](NodeId n) { return context_.has_cards(n); });
    if (!device.valid()) return false;
    const auto ports = context_.fabric.out(device);
    const std::size_t per = context_.ports_per_card;
    fault.card = static_cast<std::uint32_t>(rng_.below((ports.size() + per - 1) / per));
    fault.nodes = {device};
    for (std::size_t i = fault.card * per; i < std::min(ports.size(), (fault.card + 1) * per); ++i)
      if (context_.fabric.on_wire(ports[i])) fault.cables.push_back(model::cable_of(ports[i]));
    return fault.cables.size() >= 2;
  }

  bool strike_device(StormFault& fault, NodeId device) {
    if (!device.valid()) return false;
    fault.nodes = {device};
    fault.cables = context_.wires_of(device);
    return true;
  }

  bool strike_control_plane(StormFault& fault, NodeId near) {
    fault.nodes = {near};
    for (const LinkId link : context_.trunks_of(near))
      fault.cables.push_back(model::cable_of(link));
    return fault.cables.size() >= 2;
  }

  void add_rack(StormFault& fault, ScopeId rack) const {
    const model::Fabric& fabric = context_.fabric;
    for (const NodeId node : fabric.nodes()) {
      const bool counts = fabric.is_switch(node) || fabric.kind(node) == model::NodeKind::host;
      if (!counts || fabric.enclosing(node, ScopeKind::rack) != rack) continue;
      fault.nodes.push_back(node);
      if (fabric.is_switch(node)) {
        std::ranges::copy(context_.wires_of(node), std::back_inserter(fault.cables));
        continue;
      }
      for (const NodeId nic : fabric.nics_of(node)) {
        fault.nodes.push_back(nic);
        std::ranges::copy(context_.wires_of(nic), std::back_inserter(fault.cables));
      }
    }
  }

  bool strike_rack(StormFault& fault, NodeId near) {
    const NodeId device = seek(near, [&](NodeId n) { return context_.is_rack_switch(n); });
    if (!device.valid()) return false;
    const auto ports = context_.host_ports_of(device);
    const NodeId nic = context_.fabric.to(pick(ports));
    fault.scope = context_.fabric.enclosing(context_.fabric.host_of(nic), ScopeKind::rack);
    if (!fault.scope.valid()) return false;
    add_rack(fault, fault.scope);
    return true;
  }

  ScopeId zone_of(NodeId node) const {
    for (const ScopeKind kind : {ScopeKind::zone, ScopeKind::pod, ScopeKind::building})
      if (const ScopeId scope = context_.fabric.enclosing(node, kind); scope.valid()) return scope;
    return {};
  }

  // The core switches of one role in a zone lose power together; where that would drown the rest
  // of the storm, a run of its racks does.
  bool strike_zone(StormFault& fault, NodeId near) {
    fault.scope = zone_of(near);
    if (!fault.scope.valid()) return false;
    const NodeId core = seek(near, [&](NodeId n) { return !context_.is_rack_switch(n); });
    if (core.valid() && fault.shape < 0.5) {
      for (const NodeId node : context_.core_switches) {
        if (context_.fabric.role_id(node) != context_.fabric.role_id(core) ||
            zone_of(node) != fault.scope)
          continue;
        fault.nodes.push_back(node);
        std::ranges::copy(context_.wires_of(node), std::back_inserter(fault.cables));
      }
      if (fault.nodes.size() >= 3 && fits_lines(fault)) return true;
    }
    fault.nodes.clear();
    fault.cables.clear();
    fault.shape = 0.5 + fault.shape / 2;
    return strike_rack_row(fault);
  }

  bool fits_lines(const StormFault& fault) const {
    const double said = static_cast<double>(fault.cables.size()) * lines_per_cable;
    return options_.lines == 0 || said <= static_cast<double>(options_.lines) * feed_lines_share;
  }

  bool strike_rack_row(StormFault& fault) {
    std::vector<ScopeId> row;
    for (const ScopeId rack : context_.racks)
      if (is_inside(rack, fault.scope)) row.push_back(rack);
    const std::size_t count = std::min<std::size_t>(racks_at_once_max, row.size() / 2);
    if (count < 2) return false;
    const std::size_t first = rng_.below(row.size() - count + 1);
    for (std::size_t i = 0; i < count; ++i) add_rack(fault, row[first + i]);
    return true;
  }

  bool is_inside(ScopeId scope, ScopeId outer) const {
    while (scope.valid() && scope != outer) scope = context_.fabric.scopes()[scope].parent;
    return scope.valid();
  }

  // Devices of one role in a row get the change; each loses some of its sessions by it.
  bool strike_push(StormFault& fault, NodeId near) {
    const auto& role = context_.fabric.role(context_.fabric.role_id(near)).nodes;
    const std::size_t count = std::min<std::size_t>(role.size(), 2 + rng_.below(9));
    const std::size_t first = context_.fabric.role_index(near);
    for (std::size_t i = 0; i < count; ++i) {
      const NodeId device = role[(first + i) % role.size()];
      const auto trunks = context_.trunks_of(device);
      if (trunks.empty()) continue;
      fault.nodes.push_back(device);
      const std::size_t hurt = std::max<std::size_t>(1, trunks.size() * (2 + rng_.below(5)) / 10);
      const std::size_t from = rng_.below(trunks.size());
      for (std::size_t k = 0; k < std::min<std::size_t>(hurt, 24); ++k)
        fault.cables.push_back(model::cable_of(trunks[(from + k) % trunks.size()]));
    }
    fault.change = static_cast<std::uint32_t>(100'000 + rng_.below(900'000));
    return fault.nodes.size() >= 2;
  }

  bool strike_host(StormFault& fault, NodeId near) {
    const NodeId device = seek(near, [&](NodeId n) { return context_.is_rack_switch(n); });
    if (!device.valid()) return false;
    const auto ports = context_.host_ports_of(device);
    if (ports.empty()) return false;
    const LinkId port = pick(ports);
    const NodeId nic = context_.fabric.to(port);
    if (fault.type != ProblemType::host) {
      fault.nodes = {nic};
      fault.cables = {model::cable_of(port)};
      return true;
    }
    fault.nodes = {context_.fabric.host_of(nic)};
    for (const NodeId each : context_.fabric.nics_of(fault.nodes.front())) {
      fault.nodes.push_back(each);
      std::ranges::copy(context_.wires_of(each), std::back_inserter(fault.cables));
    }
    return true;
  }

  static bool overlap(const StormFault& a, const StormFault& b) {
    return a.start < b.end + storm_guard_ns && b.start < a.end + storm_guard_ns;
  }

  // Two congested hosts behind one switch would pause the same uplinks: that switch is taken too.
  std::vector<NodeId> footprint(const StormFault& fault) const {
    std::vector<NodeId> out = fault.nodes;
    if (fault.type == ProblemType::congestion) {
      const LinkId link = model::forward(fault.cables.front());
      const NodeId a = context_.fabric.from(link);
      out.push_back(context_.fabric.is_switch(a) ? a : context_.fabric.to(link));
    }
    return out;
  }

  bool is_taken(StormFault& fault) const {
    std::ranges::sort(fault.cables);
    fault.cables.erase(std::ranges::unique(fault.cables).begin(), fault.cables.end());
    for (const NodeId node : footprint(fault))
      for (const std::uint32_t other : of_node_[node.index()])
        if (overlap(fault, faults_[other])) return true;
    std::vector<std::size_t> shared(faults_.size(), 0);
    for (const CableId cable : fault.cables)
      for (const std::uint32_t other : of_circuit_[cable.index()])
        if (overlap(fault, faults_[other]) && ++shared[other] > sharable(fault, faults_[other]))
          return true;
    return false;
  }

  // Where faults stand close, large ones cannot but cross: a spine and a rack have one cable.
  std::size_t sharable(const StormFault& a, const StormFault& b) const {
    const std::size_t smaller = std::min(a.cables.size(), b.cables.size());
    if (options_.adjacent <= 0 || smaller < large_footprint) return 0;
    return std::max<std::size_t>(1, smaller / shared_one_in);
  }

  void keep(StormFault fault) {
    const auto index = static_cast<std::uint32_t>(faults_.size());
    for (const NodeId node : footprint(fault)) of_node_[node.index()].push_back(index);
    for (const CableId cable : fault.cables) of_circuit_[cable.index()].push_back(index);
    faults_.push_back(std::move(fault));
  }

  const StormContext& context_;
  const StormOptions& options_;
  Rng rng_;
  std::vector<StormFault> faults_;
  std::vector<std::vector<std::uint32_t>> of_node_, of_circuit_;
};

}  // namespace

Result<std::vector<StormFault>> plan_storm(const StormContext& context,
                                           const StormOptions& options) {
  if (options.faults > 0 && context.switches.empty())
    return fail(Errc::infeasible, {}, "this fabric has no switches", "use a fabric with a network");
  return StormPlanner(context, options).plan();
}

}  // namespace weft::adapt::sim
