#include "plan/explain/fabric_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/json_text.hpp"
#include "base/markup.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "model/fabric/frontend.hpp"

namespace weft::plan {
namespace {

using model::CableId;
using model::Fabric;
using model::Health;
using model::LinkId;
using model::NodeId;
using model::NodeKind;
using model::RoleId;
using model::ScopeId;
using model::ScopeKind;

constexpr std::size_t nowhere = SIZE_MAX;

// Where a node of the network is drawn: a NIC in its host.
NodeId drawn_as(const Fabric& fabric, NodeId node) {
  if (fabric.kind(node) != NodeKind::nic) return node;
  const NodeId host = fabric.host_of(node);
  return host.valid() ? host : node;
}

// Cables to the nearest NIC, by node; 0 for NICs, and for what none reaches.
std::vector<std::uint32_t> levels_of(const Fabric& fabric) {
  std::vector<std::uint32_t> level(fabric.node_count(), 0);
  std::vector<NodeId> reached;
  for (const NodeId node : fabric.nodes())
    if (fabric.kind(node) == NodeKind::nic) reached.push_back(node);
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (const LinkId link : fabric.out(reached[i])) {
      const NodeId to = fabric.to(link);
      if (!fabric.on_wire(link) || !fabric.is_switch(to) || level[to.index()] > 0) continue;
      level[to.index()] = level[reached[i].index()] + 1;
      reached.push_back(to);
    }
  return level;
}

// "rtsw:3" is "3" beside its role.
std::string short_name(const std::string& name) {
  const std::size_t at = name.rfind(':');
  return at == std::string::npos ? name : name.substr(at + 1);
}

class Mapper {
 public:
  Mapper(const Fabric& fabric, const model::State& state, const HostOwners& owners,
         std::size_t groups_max, const MapLoads& loads)
      : fabric_(fabric), state_(state), owners_(owners), groups_max_(groups_max), loads_(loads) {}

  FabricMap run() {
    group_of_.assign(fabric_.node_count(), nowhere);
    map_.owners = owners_.names;
    map_.from_s = loads_.from_s;
    map_.to_s = loads_.to_s;
    for (const auto& nodes : layers()) add_layer(nodes);
    count_owners();
    add_edges();
    return std::move(map_);
  }

 private:
  // From the top: switches by level, hosts, storage, and the front end's switches below them.
  std::int64_t row_of(NodeId node, LinkId link, std::int64_t level) const {
    const bool is_front = model::on_front_end(fabric_, link);
    if (!fabric_.is_switch(node))
      return is_front && fabric_.role_name(node) == model::storage_role ? 1 : 0;
    return is_front ? level + 1 : -level;
  }

  // Nodes that have cables, by row and role, top first.
  std::vector<std::vector<NodeId>> layers() const {
    const auto level = levels_of(fabric_);
    std::map<std::pair<std::int64_t, RoleId>, std::vector<NodeId>> found;
    std::vector<bool> is_seen(fabric_.node_count(), false);
    for (const LinkId link : fabric_.links()) {
      if (!fabric_.on_wire(link)) continue;
      const NodeId node = drawn_as(fabric_, fabric_.from(link));
      if (is_seen[node.index()]) continue;
      is_seen[node.index()] = true;
      found[{row_of(node, link, level[node.index()]), fabric_.role_id(node)}].push_back(node);
    }
    std::vector<std::vector<NodeId>> out;
    for (auto& [key, nodes] : found) {
      std::ranges::sort(nodes, {}, [&](NodeId node) { return fabric_.role_index(node); });
      out.push_back(std::move(nodes));
    }
    return out;
  }

  // Nodes by the scope that holds them; none where one has no such scope.
  using Parts = std::vector<std::pair<ScopeId, std::vector<NodeId>>>;
  std::optional<Parts> by_scope(const std::vector<NodeId>& nodes, ScopeKind kind) const {
    std::map<ScopeId, std::vector<NodeId>> found;
    for (const NodeId node : nodes) {
      const ScopeId scope = fabric_.enclosing(node, kind);
      if (!scope.valid()) return std::nullopt;
      found[scope].push_back(node);
    }
    return Parts(found.begin(), found.end());
  }

  void add_group(const std::string& first, const std::string& last, std::vector<NodeId> nodes) {
    FabricMap::Group group{.label = short_name(first), .name = first, .nodes = std::move(nodes)};
    if (first != last) {
      group.label += "-" + short_name(last);
      group.name += " to " + last;
    }
    for (const NodeId node : group.nodes) {
      group_of_[node.index()] = map_.groups.size();
      const Health health = state_.node(node).health;
      if (health == Health::down) ++group.down;
      if (health == Health::draining) ++group.draining;
    }
    map_.groups.push_back(std::move(group));
  }

  // Equal runs of `parts`, as many as fit.
  template <class Part, class Name, class Nodes>
  std::size_t add_runs(const std::vector<Part>& parts, Name name, Nodes nodes) {
    const std::size_t run = (parts.size() + groups_max_ - 1) / groups_max_;
    for (std::size_t i = 0; i < parts.size(); i += run) {
      const std::size_t end = std::min(i + run, parts.size());
      std::vector<NodeId> all;
      for (std::size_t k = i; k < end; ++k) nodes(parts[k], all);
      add_group(name(parts[i]), name(parts[end - 1]), std::move(all));
    }
    return run;
  }

  void add_layer(const std::vector<NodeId>& nodes) {
    FabricMap::Layer layer{.role = fabric_.role_name(nodes.front()),
                           .first = map_.groups.size(),
                           .nodes = nodes.size()};
    layer.folded = add_groups(nodes);
    layer.last = map_.groups.size();
    map_.layers.push_back(std::move(layer));
  }

  // By what they were folded.
  std::string add_groups(const std::vector<NodeId>& nodes) {
    const auto node_name = [&](NodeId node) { return fabric_.name(node); };
    const auto itself = [](NodeId node, std::vector<NodeId>& out) { out.push_back(node); };
    const auto scope_name = [&](const auto& part) { return fabric_.name(part.first); };
    const auto inside = [](const auto& part, std::vector<NodeId>& out) {
      out.insert(out.end(), part.second.begin(), part.second.end());
    };
    std::optional<Parts> finest;
    ScopeKind finest_kind = ScopeKind::rack;
    if (nodes.size() > groups_max_)
      for (const ScopeKind kind : {ScopeKind::rack, ScopeKind::pod, ScopeKind::zone,
                                   ScopeKind::building, ScopeKind::region}) {
        auto parts = by_scope(nodes, kind);
        if (!parts || parts->size() < 2) continue;
        const bool fits = parts->size() <= groups_max_;
        if (!fits && finest) continue;
        finest = std::move(parts);
        finest_kind = kind;
        if (fits) break;
      }
    if (!finest) {
      const std::size_t run = add_runs(nodes, node_name, itself);
      return run == 1 ? "" : fmt::format("by {}", run);
    }
    const std::size_t run = add_runs(*finest, scope_name, inside);
    return run == 1 ? fmt::format("by {}", to_text(finest_kind))
                    : fmt::format("by {} {}s", run, to_text(finest_kind));
  }

  void count_owners() {
    if (owners_.of.empty()) return;
    const auto hosts = fabric_.hosts();
    for (std::uint32_t i = 0; i < hosts.size(); ++i) {
      const std::size_t at = group_of_[hosts[i].index()];
      if (at == nowhere) continue;
      auto& owned = map_.groups[at].owned;
      owned.resize(owners_.names.size() + 1, 0);
      ++owned[owners_.of[i] == HostOwners::free ? owners_.names.size() : owners_.of[i]];
    }
  }

  void add_edges() {
    std::map<std::pair<std::size_t, std::size_t>, FabricMap::Edge> found;
    for (std::size_t c = 0; c < fabric_.cable_count(); ++c) {
      const LinkId link = model::forward(CableId(static_cast<std::uint32_t>(c)));
      if (!fabric_.on_wire(link)) continue;
      const std::size_t a = group_of_[drawn_as(fabric_, fabric_.from(link)).index()];
      const std::size_t b = group_of_[drawn_as(fabric_, fabric_.to(link)).index()];
      if (a == b) {
        ++map_.inside;
        continue;
      }
      FabricMap::Edge& edge = found[std::minmax(a, b)];
      ++edge.cables;
      edge.bps += static_cast<double>(fabric_.rate(link).bps);
      if (!loads_.in_run.empty())
        for (const LinkId one : {link, reverse(link)}) {
          edge.load_max = std::max(edge.load_max, loads_.in_interval[one.index()]);
          edge.load_sum += loads_.in_interval[one.index()];
          edge.run_max = std::max(edge.run_max, loads_.in_run[one.index()]);
        }
      const model::Condition there = state_.link(link), back = state_.link(reverse(link));
      if (there.health == Health::down || back.health == Health::down)
        ++edge.down;
      else if (there != model::Condition{} || back != model::Condition{})
        ++edge.degraded;
    }
    for (auto& [ends, edge] : found) {
      std::tie(edge.upper, edge.lower) = ends;
      map_.edges.push_back(edge);
    }
  }

  const Fabric& fabric_;
  const model::State& state_;
  const HostOwners& owners_;
  std::size_t groups_max_;
  const MapLoads& loads_;
  FabricMap map_;
  std::vector<std::size_t> group_of_;  // by node
};

// Pixels.
constexpr double page = 1240, left = 130, top = 60, gap = 120, box_high = 26, box_wide_max = 84;
constexpr double letter = 6.6;  // of labels, about

// Tell apart at a glance, also by most people who see few colours; then they repeat.
constexpr std::array<std::string_view, 8> colours{"#4477aa", "#ee6677", "#228833", "#ccbb44",
                                                  "#66ccee", "#aa3377", "#ee8866", "#44bb99"};

constexpr std::string_view style =
    "<style>svg{--ink:#1e293b;--soft:#64748b;--box:#e2e8f0;--paper:#fff}"
    "@media(prefers-color-scheme:dark){svg{--ink:#e2e8f0;--soft:#94a3b8;--box:#334155;"
    "--paper:#0f172a}}"
    "text{font:11px sans-serif;fill:var(--ink)}.soft{fill:var(--soft)}"
    ".title{font-size:16px;font-weight:600}.paper{fill:var(--paper)}"
    ".box{fill:var(--box);stroke:var(--soft);stroke-width:.6}.free{fill:var(--box)}"
    ".frame{fill:none;stroke:var(--soft);stroke-width:.6}"
    ".down{stroke:#dc2626;stroke-width:2.4}.draining{stroke:#d97706;stroke-width:2.4}"
    ".edge{stroke:var(--soft);stroke-opacity:.45;fill:none}"
    ".edge.bad{stroke:#dc2626;stroke-opacity:.9}.edge.weak{stroke:#d97706;stroke-opacity:.9}"
    "</style>";

class Drawing {
 public:
  explicit Drawing(const FabricMap& map) : map_(map), x_(map.groups.size()), y_(map.groups.size()) {
    double y = top;
    for (const FabricMap::Layer& layer : map.layers) {
      const double slot = (page - left - 20) / static_cast<double>(layer.last - layer.first);
      const double wide = std::min(box_wide_max, slot - std::min(4.0, slot / 5));
      std::size_t longest = 0;
      for (std::size_t g = layer.first; g < layer.last; ++g)
        longest = std::max(longest, map.groups[g].label.size());
      const double text = letter * static_cast<double>(longest) + 4;
      wide_.push_back(wide);
      high_.push_back(text <= wide ? box_high : std::max(box_high, text + 6));
      is_upright_.push_back(text <= wide);
      for (std::size_t g = layer.first; g < layer.last; ++g) {
        x_[g] = left + slot * (static_cast<double>(g - layer.first) + 0.5);
        y_[g] = y;
      }
      y += high_.back() + gap;
    }
    height_ = y - (map.layers.empty() ? 0 : gap) + 20;
  }

  std::string text(std::string_view title) {
    const std::size_t rows = (map_.owners.size() + 7) / 8;
    const double all = height_ + 22 * static_cast<double>(rows + (map_.owners.empty() ? 0 : 1));
    out_ = fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:.0f} {1:.0f}" )"
                       R"(role="img" aria-label="{2}">)"
                       "\n{3}\n"
                       R"(<rect class="paper" width="{0:.0f}" height="{1:.0f}"/>)"
                       R"(<text class="title" x="20" y="30">{2}</text>)"
                       "\n",
                       page, all, escape_markup(title), style);
    double most = 0;
    for (const FabricMap::Edge& edge : map_.edges) most = std::max(most, edge.bps);
    // What is well first, so that trouble is on top.
    for (const bool is_bad : {false, true})
      for (const FabricMap::Edge& edge : map_.edges)
        if ((edge.down + edge.degraded > 0) == is_bad) add_edge(edge, most);
    for (std::size_t l = 0; l < map_.layers.size(); ++l) add_layer(l);
    add_legend();
    return std::move(out_) + "</svg>\n";
  }

 private:
  std::size_t layer_of(std::size_t group) const {
    std::size_t l = 0;
    while (group >= map_.layers[l].last) ++l;
    return l;
  }

  void add_edge(const FabricMap::Edge& edge, double most) {
    const std::string_view kind = edge.down > 0 ? " bad" : edge.degraded > 0 ? " weak" : "";
    std::string what = fmt::format("{} to {}: {}, {}", map_.groups[edge.upper].name,
                                   map_.groups[edge.lower].name, counted(edge.cables, "cable"),
                                   human(Rate{static_cast<std::int64_t>(edge.bps)}));
    if (edge.down > 0) what += fmt::format(", {} down", edge.down);
    if (edge.degraded > 0) what += fmt::format(", {} degraded", edge.degraded);
    const std::size_t layer = layer_of(edge.upper);
    const double x1 = x_[edge.upper], y1 = y_[edge.upper] + high_[layer];
    const double x2 = x_[edge.lower], y2 = y_[edge.lower];
    // Neighbours of one layer by a bow below it.
    const std::string path =
        layer == layer_of(edge.lower)
            ? fmt::format("M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}", x1, y1, (x1 + x2) / 2,
                          y1 + 20 + std::min(gap - 40, std::abs(x2 - x1) / 6), x2, y1)
            : fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", x1, y1, x2, y2);
    out_ +=
        fmt::format(R"(<path class="edge{}" stroke-width="{:.2f}" d="{}"><title>{}</title></path>)"
                    "\n",
                    kind, 0.6 + 2.4 * std::sqrt(edge.bps / most), path, escape_markup(what));
  }

  std::string what_is(const FabricMap::Group& group, const std::string& role) const {
    std::string out = group.name;
    if (group.nodes.size() > 1) out += fmt::format(": {} {}", group.nodes.size(), role);
    if (group.down > 0) out += fmt::format(", {} down", group.down);
    if (group.draining > 0) out += fmt::format(", {} draining", group.draining);
    for (std::size_t o = 0; o < group.owned.size(); ++o)
      if (group.owned[o] > 0)
        out += fmt::format(", {} {}", group.owned[o],
                           o < map_.owners.size() ? map_.owners[o] : std::string("free"));
    return out;
  }

  void add_layer(std::size_t l) {
    const FabricMap::Layer& layer = map_.layers[l];
    const double y = y_[layer.first], high = high_[l], wide = wide_[l];
    out_ += fmt::format(
        R"(<text x="20" y="{:.1f}">{}</text><text class="soft" x="20" y="{:.1f}">{}</text>)"
        "\n",
        y + 12, escape_markup(layer.role), y + 26,
        layer.folded.empty() ? fmt::format("{}", layer.nodes)
                             : fmt::format("{}, {}", layer.nodes, layer.folded));
    for (std::size_t g = layer.first; g < layer.last; ++g) {
      const FabricMap::Group& group = map_.groups[g];
      const double x = x_[g] - wide / 2;
      out_ += fmt::format("<g><title>{}</title>", escape_markup(what_is(group, layer.role)));
      if (!group.owned.empty()) add_shares(group, x, y, wide, high);
      out_ += fmt::format(
          R"(<rect class="{}{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="3"/>)",
          group.owned.empty() ? "box" : "frame",
          group.down > 0       ? " down"
          : group.draining > 0 ? " draining"
                               : "",
          x, y, wide, high);
      const double mid = y + high / 2;
      const std::string turn =
          is_upright_[l] ? ""
                         : fmt::format(R"x( transform="rotate(-90 {:.1f} {:.1f})")x", x_[g], mid);
      out_ += fmt::format(
          R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle" dominant-baseline="central"{}>)"
          R"({}</text></g>)"
          "\n",
          x_[g], mid, turn, escape_markup(group.label));
    }
  }

  void add_shares(const FabricMap::Group& group, double x, double y, double wide, double high) {
    double at = x;
    for (std::size_t o = 0; o < group.owned.size(); ++o) {
      if (group.owned[o] == 0) continue;
      const double part =
          wide * static_cast<double>(group.owned[o]) / static_cast<double>(group.nodes.size());
      out_ += fmt::format(R"(<rect {} x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>)",
                          fill(o), at, y, part, high);
      at += part;
    }
  }

  std::string fill(std::size_t owner) const {
    if (owner == map_.owners.size()) return R"(class="free")";
    return fmt::format(R"(fill="{}" fill-opacity=".75")", colours[owner % colours.size()]);
  }

  void add_legend() {
    if (map_.owners.empty()) return;
    for (std::size_t o = 0; o <= map_.owners.size(); ++o) {
      const double x = 20 + 150 * static_cast<double>(o % 8);
      const std::size_t row = o / 8;
      const double y = height_ + 22 * static_cast<double>(row);
      out_ +=
          fmt::format(R"(<rect {} x="{:.1f}" y="{:.1f}" width="12" height="12"/>)"
                      R"(<text x="{:.1f}" y="{:.1f}">{}</text>)"
                      "\n",
                      fill(o), x, y, x + 18, y + 10,
                      escape_markup(o < map_.owners.size() ? map_.owners[o] : std::string("free")));
    }
  }

  const FabricMap& map_;
  std::vector<double> x_, y_;  // by group: middle, upper edge
  std::vector<double> wide_, high_;
  std::vector<bool> is_upright_;  // by layer
  double height_ = 0;
  std::string out_;
};

}  // namespace

FabricMap fabric_map(const Fabric& fabric, const model::State& state, const HostOwners& owners,
                     std::size_t groups_max, const MapLoads& loads) {
  return Mapper(fabric, state, owners, groups_max, loads).run();
}

std::string to_json(const FabricMap& map) {
  JsonList layers, edges;
  for (const FabricMap::Layer& layer : map.layers) {
    JsonList groups;
    for (std::size_t g = layer.first; g < layer.last; ++g) {
      const FabricMap::Group& group = map.groups[g];
      groups.add(JsonObject()
                     .add("label", group.label)
                     .add("name", group.name)
                     .add("nodes", group.nodes.size())
                     .add("down", group.down)
                     .add("draining", group.draining));
    }
    layers.add(JsonObject()
                   .add("role", layer.role)
                   .add("folded", layer.folded)
                   .add("nodes", layer.nodes)
                   .add("groups", groups));
  }
  for (const FabricMap::Edge& edge : map.edges)
    edges.add(JsonList()
                  .add(edge.upper)
                  .add(edge.lower)
                  .add(edge.cables)
                  .add(edge.down)
                  .add(edge.degraded)
                  .add(edge.bps)
                  .add(edge.load_max, digits(4))
                  .add(edge.load_sum / (2 * static_cast<double>(edge.cables)), digits(4))
                  .add(edge.run_max, digits(4)));
  return JsonObject()
      .add("layers", layers)
      .add("edges", edges)
      .add("inside", map.inside)
      .add("from_s", map.from_s)
      .add("to_s", map.to_s)
      .text();
}

std::string to_svg(const FabricMap& map, std::string_view title) {
  return Drawing(map).text(title);
}

}  // namespace weft::plan
