#include "model/formats/cabling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <ranges>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.hpp"
#include "model/generate/generator.hpp"

namespace weft::model {
namespace {

constexpr int unreached = std::numeric_limits<int>::max();
constexpr std::array cut_kinds{ScopeKind::pod, ScopeKind::zone, ScopeKind::building};

// The most frequent value, the larger of equally frequent ones.
template <class T>
T most_frequent(const std::map<T, std::size_t>& counts) {
  T best{};
  std::size_t most = 0;
  for (const auto& [value, count] : counts)
    if (count >= most) std::tie(best, most) = std::pair(value, count);
  return best;
}

class UnionFind {
 public:
  explicit UnionFind(std::size_t size) : parent_(size) {
    std::iota(parent_.begin(), parent_.end(), 0u);
  }
  std::uint32_t find(std::uint32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::uint32_t a, std::uint32_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<std::uint32_t> parent_;
};

class CablingBuilder {
 public:
  CablingBuilder(const Cabling& cabling, const CablingOptions& options)
      : cabling_(cabling), options_(options), placer_(builder_, options.host) {
    const std::size_t devices = cabling.devices.size();
    neighbors_.resize(devices);
    level_.assign(devices, unreached);
    scope_.resize(devices);
    rail_.assign(devices, no_lane);
    node_.resize(devices);
    nics_.resize(devices);
  }

  Result<Fabric> build() {
    WEFT_TRY_STATUS(check());
    for (const Cabling::Cable& cable : cabling_.cables) {
      if (cable.a.device == cable.b.device) continue;
      neighbors_[cable.a.device].push_back(cable.b.device);
      neighbors_[cable.b.device].push_back(cable.a.device);
    }
    find_levels();
    find_cuts();
    add_hosts();
    add_switches();
    add_cables();
    for (const std::string& note : cabling_.notes) builder_.add_note(note);
    note_devices();
    note_rates();
    note_uplinks();
    return builder_.freeze();
  }

 private:
  using Device = std::uint32_t;
  const Cabling::Device& at(Device d) const { return cabling_.devices[d]; }
  bool is_regular(Device d) const {
    return at(d).is_host && at(d).nics.size() == options_.host.nic_count();
  }
  bool natural(Device a, Device b) const { return natural_less(at(a).name, at(b).name); }
  Rate rate(const Cabling::Cable& cable) const {
    return cable.rate > Rate{} ? cable.rate : options_.rate;
  }
  std::string cable_name(const Cabling::Cable& cable) const {
    return fmt::format("{}[{}]--{}[{}]", at(cable.a.device).name, cable.a.interface,
                       at(cable.b.device).name, cable.b.interface);
  }

  Status check() const {
    Errors errors;
    double bps = 0, hosts = 0;
    double nodes = 0, links = 2 * static_cast<double>(cabling_.cables.size());
    for (const Cabling::Cable& cable : cabling_.cables) {
      bps += static_cast<double>(rate(cable).bps);
      if (rate(cable) <= Rate{} && errors.size() < errors_max)
        errors.push_back({Errc::value,
                          cabling_.where(cable.place),
                          "the cable has no rate",
                          "give one there, or \"rate:\" for all such cables in the fabric section",
                          {}});
    }
    for (Device d = 0; d < cabling_.devices.size(); ++d) {
      hosts += is_regular(d) ? 1 : 0;
      nodes +=
          1 + static_cast<double>(is_regular(d) ? options_.host.parts.size() : at(d).nics.size());
      links += is_regular(d) ? 2 * static_cast<double>(options_.host.wires.size()) : 0;
    }
    const Where top{cabling_.file, 1, 1};
    if (errors.empty() && hosts == 0)
      errors.push_back({Errc::value,
                        top,
                        fmt::format("no host has {} NICs", options_.host.nic_count()),
                        "set nics_per_host to what the hosts have",
                        {}});
    if (bps > 9e18)
      errors.push_back(
          {Errc::value, top, "the cables exceed 9e18 bits/s in total", "use lower rates", {}});
    if (nodes > static_cast<double>(options_.limits.nodes) ||
        links > static_cast<double>(options_.limits.links))
      errors.push_back(
          {Errc::value,
           top,
           fmt::format("{} hosts make {} nodes and {} links; the limits are {} and {}", hosts,
                       nodes, links, options_.limits.nodes, options_.limits.links),
           "import only part of the cluster",
           {}});
    if (errors.empty()) return {};
    return std::unexpected(combine(std::move(errors)));
  }

  // Level 1 by regular hosts; storage and service hosts may be on leaves of their own, or on ports
  // of any switch.
  void find_levels() {
    std::vector<Device> queue;
    const auto reach = [&](Device d, int level) {
      if (at(d).is_host || level_[d] != unreached) return;
      level_[d] = level;
      queue.push_back(d);
    };
    for (Device d = 0; d < level_.size(); ++d)
      if (is_regular(d))
        for (const Device s : neighbors_[d]) reach(s, 1);
    std::vector<Device> other_leaves;
    for (Device s = 0; s < level_.size(); ++s)
      if (std::ranges::any_of(neighbors_[s], [&](Device d) { return at(d).is_host; }) &&
          std::ranges::none_of(neighbors_[s], [&](Device d) { return level_[d] == 1; }))
        other_leaves.push_back(s);
    for (const Device s : other_leaves) reach(s, 1);
    for (std::size_t i = 0; i < queue.size(); ++i)
      for (const Device s : neighbors_[queue[i]]) reach(s, level_[queue[i]] + 1);
    for (const Device s : queue) top_ = std::max(top_, level_[s]);
  }

  // What hangs together without the switches above a level.
  struct Cut {
    int level;
    std::vector<Device> part;           // of each device: a member that stands for it
    std::map<Device, ScopeId> scope{};  // by part
  };
  void find_cuts() {
    const int last = std::min(top_ - 1, 1 + static_cast<int>(cut_kinds.size()));
    for (int level = 2; level <= last; ++level) {
      UnionFind together(level_.size());
      const auto below = [&](Device d) { return at(d).is_host || level_[d] <= level; };
      for (Device d = 0; d < level_.size(); ++d)
        for (const Device e : neighbors_[d])
          if (below(d) && below(e)) together.join(d, e);
      Cut cut{level, {}};
      std::set<Device> parts;
      for (Device d = 0; d < level_.size(); ++d) {
        cut.part.push_back(together.find(d));
        if (at(d).is_host) parts.insert(cut.part.back());
      }
      if (parts.size() > 1) cuts_.push_back(std::move(cut));
    }
  }

  // Racks and hosts, those of one place together: regular ones first, as the builder needs them.
  void add_hosts() {
    std::vector<Device> hosts;
    for (Device d = 0; d < level_.size(); ++d)
      if (at(d).is_host) hosts.push_back(d);
    std::ranges::sort(hosts, [&](Device a, Device b) { return natural(a, b); });
    std::map<std::vector<Device>, std::size_t> racks;
    std::vector<std::map<Device, std::size_t>> parts(cuts_.size());
    std::vector<std::vector<std::size_t>> order(
        level_.size());  // of a host: cuts from the top, rack
    for (const Device d : hosts) {
      order[d].push_back(is_regular(d) ? 0 : 1);
      for (std::size_t c = cuts_.size(); c-- > 0;)
        order[d].push_back(parts[c].emplace(cuts_[c].part[d], parts[c].size()).first->second);
      std::vector<Device> first = neighbors_[d];
      std::ranges::sort(first);
      first.erase(std::ranges::unique(first).begin(), first.end());
      order[d].push_back(racks.emplace(std::move(first), racks.size()).first->second);
    }
    std::ranges::stable_sort(hosts, {}, [&](Device d) -> const auto& { return order[d]; });
    root_ = builder_.add_scope(top_ <= 3   ? ScopeKind::zone
                               : top_ == 4 ? ScopeKind::building
                                           : ScopeKind::region,
                               ScopeId{});
    std::map<std::size_t, ScopeId> scopes;
    for (const Device d : hosts) {
      ScopeId& rack = scopes[order[d].back()];
      if (!rack.valid()) rack = builder_.add_scope(ScopeKind::rack, place(d));
      add_host(d, rack);
    }
  }
  // The innermost cut that holds a device of that level, made where it is new.
  ScopeId place(Device d, int level = 1) {
    ScopeId scope = root_;
    for (Cut& cut : cuts_ | std::views::reverse) {
      if (cut.level < level) break;
      ScopeId& part = cut.scope[cut.part[d]];
      if (!part.valid())
        part = builder_.add_scope(cut_kinds[static_cast<std::size_t>(cut.level - 2)], scope);
      scope = part;
    }
    return scope;
  }
  void add_host(Device d, ScopeId rack) {
    const std::vector<std::string>& nics = at(d).nics;
    std::vector<std::uint32_t> order(nics.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, [&](auto a, auto b) { return natural_less(nics[a], nics[b]); });
    nics_[d].resize(nics.size());
    scope_[d] = rack;
    if (is_regular(d)) {
      const NodeId host = placer_.place(rack, at(d).name);
      for (std::size_t i = 0; i < order.size(); ++i) nics_[d][order[i]] = placer_.nic(host, i);
      return;
    }
    const ScopeId inside = builder_.add_scope(ScopeKind::host, rack);
    const NodeId host = builder_.add_node(
        {.kind = NodeKind::host, .role = "other", .scope = inside, .name = at(d).name});
    for (const std::uint32_t i : order)
      nics_[d][i] = builder_.add_node({NodeKind::nic, "other_nic", inside, host});
  }

  void add_switches() {
    std::vector<Device> switches;
    for (Device d = 0; d < level_.size(); ++d)
      if (!at(d).is_host) switches.push_back(d);
    find_rails(switches);
    for (const Device d : switches) {
      scope_[d] = level_[d] == unreached ? root_ : place(d, level_[d]);
      if (level_[d] != 1) continue;
      std::set<ScopeId> racks, others;
      for (const Device host : neighbors_[d])
        if (at(host).is_host) (is_regular(host) ? racks : others).insert(scope_[host]);
      if (racks.empty()) racks = std::move(others);
      if (racks.size() == 1) scope_[d] = *racks.begin();
    }
    std::ranges::sort(switches, [&](Device a, Device b) {
      const std::pair x(level_[a], scope_[a]), y(level_[b], scope_[b]);
      return x != y ? x < y : natural(a, b);
    });
    for (const Device d : switches)
      node_[d] = builder_.add_node({.kind = NodeKind::fabric_switch,
                                    .role = role(d),
                                    .scope = scope_[d],
                                    .rail = rail_[d],
                                    .name = at(d).name});
  }
  std::string role(Device d) const {
    constexpr std::array<std::string_view, 4> by_level{"leaf", "spine", "core", "super_core"};
    if (!at(d).role.empty()) return at(d).role;
    if (level_[d] == unreached) return "unconnected";
    const auto level = static_cast<std::size_t>(level_[d]);
    return level <= by_level.size() ? std::string(by_level[level - 1])
                                    : fmt::format("level{}", level);
  }
  // A switch all of whose NICs are of one rail, or whose switches below are.
  void find_rails(std::vector<Device> switches) {
    if (options_.host.nic_count() < 2) return;
    std::vector<std::set<std::int16_t>> below(level_.size());
    for (const Cabling::Cable& cable : cabling_.cables)
      for (const auto& [end, far] : {std::pair(&cable.a, &cable.b), std::pair(&cable.b, &cable.a)})
        if (is_regular(end->device))
          below[far->device].insert(builder_.draft().rail(nics_[end->device][end->nic]));
    std::ranges::stable_sort(switches, {}, [&](Device d) { return level_[d]; });
    for (const Device d : switches) {
      if (level_[d] == unreached) continue;
      for (const Device s : neighbors_[d])
        if (level_[d] > 1 && level_[s] == level_[d] - 1) below[d].insert(rail_[s]);
      if (below[d].size() == 1) rail_[d] = *below[d].begin();
    }
  }

  // In an order that does not depend on that of the list.
  void add_cables() {
    struct Item {
      NodeId a, b;  // a < b
      const Cabling::End *end_a, *end_b;
      const Cabling::Cable* cable;
    };
    std::vector<Item> items;
    for (const Cabling::Cable& cable : cabling_.cables) {
      if (cable.a.device == cable.b.device) continue;
      Item item{node(cable.a), node(cable.b), &cable.a, &cable.b, &cable};
      if (item.b < item.a) {
        std::swap(item.a, item.b);
        std::swap(item.end_a, item.end_b);
      }
      items.push_back(item);
    }
    std::ranges::stable_sort(items, [](const Item& x, const Item& y) {
      if (std::pair(x.a, x.b) != std::pair(y.a, y.b))
        return std::pair(x.a, x.b) < std::pair(y.a, y.b);
      return natural_less(x.end_a->interface, y.end_a->interface);
    });
    for (const Item& item : items)
      builder_.add_circuit(
          item.a, item.b,
          {rate(*item.cable), latency(*item.cable), item.end_a->interface, item.end_b->interface});
  }
  NodeId node(const Cabling::End& end) const {
    return at(end.device).is_host ? nics_[end.device][end.nic] : node_[end.device];
  }
  Duration latency(const Cabling::Cable& cable) const {
    constexpr double metres_inside = 100, ps_per_metre = 5000;  // see latency_default
    const double beyond = std::max(0.0, cable.length_m - metres_inside);
    return options_.latency + Duration{std::llround(beyond * ps_per_metre)};
  }

  void note_devices() {
    NameList others, loops, direct, alone;
    for (Device d = 0; d < level_.size(); ++d) {
      if (at(d).is_host && !is_regular(d))
        others.add(fmt::format("{} ({})", at(d).name, at(d).nics.size()));
      if (!at(d).is_host && level_[d] == unreached) alone.add(at(d).name);
    }
    for (const Cabling::Cable& cable : cabling_.cables) {
      if (cable.a.device == cable.b.device)
        loops.add(cable_name(cable));
      else if (at(cable.a.device).is_host && at(cable.b.device).is_host)
        direct.add(cable_name(cable));
    }
    note(others,
         fmt::format("hosts that carry no jobs, because they do not have {} NICs (nics_per_host)",
                     options_.host.nic_count()));
    note(loops, "cables from a device to itself, left out");
    note(direct, "cables between two hosts");
    note(alone, "switches that are connected to no host");
  }
  void note(const NameList& names, std::string_view what) {
    if (names.count() > 0)
      builder_.add_note(fmt::format("{}: {}: {}", cabling_.file, what, names.text()));
  }

  std::string role_of(const Cabling::End& end) const {
    return builder_.draft().role_name(node(end));
  }
  // Cables that run at another rate than most between the same roles.
  void note_rates() {
    std::map<std::pair<std::string, std::string>, std::vector<const Cabling::Cable*>> tiers;
    for (const Cabling::Cable& cable : cabling_.cables)
      if (cable.a.device != cable.b.device)
        tiers[std::minmax({role_of(cable.a), role_of(cable.b)})].push_back(&cable);
    for (const auto& [roles, cables] : tiers) {
      std::map<Rate, std::size_t> counts;
      for (const Cabling::Cable* cable : cables) ++counts[rate(*cable)];
      const Rate usual = most_frequent(counts);
      NameList odd;
      for (const Cabling::Cable* cable : cables)
        if (rate(*cable) != usual)
          odd.add(fmt::format("{} ({})", cable_name(*cable), human(rate(*cable))));
      note(odd, fmt::format("cables {}--{} not of {}, as most are", roles.first, roles.second,
                            human(usual)));
    }
  }
  // Switches with more or fewer cables upwards than most of their role.
  void note_uplinks() {
    std::map<std::string, std::vector<std::pair<Device, std::size_t>>> roles;
    for (Device d = 0; d < level_.size(); ++d)
      if (!at(d).is_host && level_[d] != unreached)
        roles[role(d)].emplace_back(d, std::ranges::count_if(neighbors_[d], [&](Device s) {
                                      return !at(s).is_host && level_[s] > level_[d];
                                    }));
    for (const auto& [role, switches] : roles) {
      std::map<std::size_t, std::size_t> counts;
      for (const auto& [d, cables] : switches) ++counts[cables];
      const std::size_t usual = most_frequent(counts);
      NameList odd;
      for (const auto& [d, cables] : switches)
        if (cables != usual) odd.add(fmt::format("{} ({})", at(d).name, cables));
      note(odd, fmt::format("{} switches with more or less than {} cables upwards", role, usual));
    }
  }

  const Cabling& cabling_;
  const CablingOptions& options_;
  FabricBuilder builder_;
  HostPlacer placer_;
  // By device:
  std::vector<std::vector<Device>> neighbors_;  // one for each cable
  std::vector<int> level_;                      // of switches
  std::vector<ScopeId> scope_;
  std::vector<std::int16_t> rail_;
  std::vector<NodeId> node_;               // of switches
  std::vector<std::vector<NodeId>> nics_;  // of hosts
  int top_ = 0;
  std::vector<Cut> cuts_;
  ScopeId root_;
};

}  // namespace

std::string NameList::text() const {
  const std::string shown = fmt::format("{}", fmt::join(names_, ", "));
  if (count_ == names_.size()) return shown;
  return fmt::format("{} and {} more", shown, count_ - names_.size());
}

std::string clean_name(std::string_view text) {
  constexpr std::size_t length_max = 200;
  constexpr std::string_view single = "-._";
  std::string out;
  for (const char c : trim(text).substr(0, length_max - 1)) {
    const bool letter = lower_case(c) >= 'a' && lower_case(c) <= 'z';
    const char kept = letter || is_digit(c) || c == '@' || c == '+' || single.contains(c) ? c : '_';
    if (!out.empty() && out.back() == kept && single.contains(kept)) continue;
    out += kept;
  }
  for (const std::size_t end : {std::size_t{0}, out.size() - 1})
    if (!out.empty() && out[end] == '-') out[end] = '_';
  if (out.find_first_not_of("0123456789") == out.npos) out.insert(0, "n");
  return out;
}

bool natural_less(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a, whole_b = b;
  const auto number = [](std::string_view& text) {
    std::size_t end = 0;
    while (end < text.size() && is_digit(text[end])) ++end;
    std::string_view digits = text.substr(0, end);
    text.remove_prefix(end);
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
    return digits;
  };
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const std::string_view x = number(a), y = number(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;
}

std::uint32_t usual_nic_count(const Cabling& cabling) {
  std::map<std::uint32_t, std::size_t> counts;
  for (const Cabling::Device& device : cabling.devices)
    if (device.is_host) ++counts[static_cast<std::uint32_t>(device.nics.size())];
  return most_frequent(counts);
}

Result<Fabric> build_cabled_fabric(const Cabling& cabling, const CablingOptions& options) {
  return CablingBuilder(cabling, options).build();
}

}  // namespace weft::model
