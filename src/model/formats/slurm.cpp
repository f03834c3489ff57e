#include "model/formats/slurm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/generate/generator.hpp"

namespace weft::model {
namespace {

constexpr std::array<std::string_view, 4> switch_roles{"leaf", "spine", "core", "super_core"};
constexpr std::array scopes_by_height{ScopeKind::rack, ScopeKind::pod, ScopeKind::zone,
                                      ScopeKind::building};

// Turns a checked tree into a fabric: scopes from the top down, then hosts, then cables upwards.
class TreeBuilder {
 public:
  TreeBuilder(const SlurmTree& tree, const SlurmOptions& options, const std::string& file)
      : tree_(tree),
        options_(options),
        file_(file),
        scope_(tree.switches.size()),
        node_(tree.switches.size()) {
    by_height_.resize(switch_roles.size());
    for (std::uint32_t i = 0; i < tree.switches.size(); ++i)
      by_height_[tree.switches[i].height - 1].push_back(i);
  }

  Fabric build() {
    for (std::size_t height = by_height_.size(); height-- > 0;)
      for (const std::uint32_t i : by_height_[height]) add_scope(i);
    HostPlacer hosts(builder_, options_.host);
    for (const std::uint32_t i : by_height_[0]) add_leaf(i, hosts);
    for (std::size_t height = 1; height < by_height_.size(); ++height)
      for (const std::uint32_t i : by_height_[height]) add_switch(i);
    add_uplinks();
    add_notes();
    return builder_.freeze();
  }

 private:
  const SlurmTree::Switch& at(std::uint32_t i) const { return tree_.switches[i]; }

  // A switch that is the only parent of each of its children stands for the place they are in.
  bool is_place(std::uint32_t i) const {
    return std::ranges::all_of(at(i).children,
                               [&](std::uint32_t c) { return at(c).parents.size() == 1; });
  }
  void add_scope(std::uint32_t i) {
    const ScopeId above = at(i).parents.size() == 1 ? scope_[at(i).parents[0]] : commons();
    scope_[i] = is_place(i)
                    ? builder_.add_scope(scopes_by_height[at(i).height - 1], above, at(i).name)
                : above.valid() ? above
                                : commons();
  }
  // Where everything stands that several switches share.
  ScopeId commons() {
    const bool shared = std::ranges::any_of(
        tree_.switches, [](const SlurmTree::Switch& s) { return s.parents.size() > 1; });
    if (shared && !commons_.valid()) commons_ = builder_.add_scope(ScopeKind::region, ScopeId{});
    return commons_;
  }

  void add_switch(std::uint32_t i) {
    node_[i] = builder_.add_node({.kind = NodeKind::fabric_switch,
                                  .role = switch_roles[at(i).height - 1],
                                  .scope = scope_[i],
                                  .name = at(i).name});
  }
  void add_leaf(std::uint32_t i, HostPlacer& hosts) {
    add_switch(i);
    for (const std::string& name : at(i).nodes) {
      const NodeId host = hosts.place(scope_[i], name);
      for (std::size_t k = 0; k < hosts.nic_count(); ++k)
        builder_.add_circuit(hosts.nic(host, k), node_[i], {options_.link, options_.latency});
    }
  }
  void add_uplinks() {
    std::vector<Rate> down(tree_.switches.size());
    for (const std::uint32_t i : by_height_[0])
      down[i] =
          options_.link * static_cast<std::int64_t>(at(i).nodes.size()) * options_.host.nic_count();
    for (const auto& row : by_height_) {
      for (const std::uint32_t i : row) {
        if (at(i).parents.empty()) continue;
        const auto parents = static_cast<std::int64_t>(at(i).parents.size());
        const Rate fair{std::max<std::int64_t>(down[i].bps / parents, 1)};
        const Rate rate = options_.uplink > Rate{} ? options_.uplink : fair;
        for (const std::uint32_t parent : at(i).parents) {
          builder_.add_circuit(node_[i], node_[parent], {rate, options_.latency});
          down[parent] = down[parent] + rate;
        }
      }
    }
  }

  void add_notes() {
    builder_.add_note(fmt::format(
        "{}: Slurm's file has neither numbers nor rates of cables: assumed {} from each NIC to its "
        "leaf switch (\"link\") and, from each switch to each parent, {}",
        file_, human(options_.link),
        options_.uplink > Rate{}
            ? fmt::format("{} (\"uplink\")", human(options_.uplink))
            : "an equal share of what its nodes can send: no oversubscription; \"uplink\" sets "
              "the real rate"));
    std::vector<const SlurmTree::Switch*> with_speed;
    for (const SlurmTree::Switch& s : tree_.switches)
      if (!s.link_speed.empty()) with_speed.push_back(&s);
    if (with_speed.empty()) return;
    const SlurmTree::Switch& first = *with_speed.front();
    builder_.add_note(fmt::format("{}: LinkSpeed={} of switch {}{} has no unit and is ignored",
                                  first.where.text(), first.link_speed, first.name,
                                  with_speed.size() > 1
                                      ? fmt::format(", and of {} more,", with_speed.size() - 1)
                                      : std::string()));
  }

  const SlurmTree& tree_;
  const SlurmOptions& options_;
  const std::string& file_;
  FabricBuilder builder_;
  std::vector<std::vector<std::uint32_t>> by_height_;
  std::vector<ScopeId> scope_;  // by switch
  std::vector<NodeId> node_;    // by switch
  ScopeId commons_;
};

Status check_size(const SlurmTree& tree, const SlurmOptions& options, const std::string& file) {
  double hosts = 0, uplinks = 0;
  for (const SlurmTree::Switch& s : tree.switches) {
    hosts += static_cast<double>(s.nodes.size());
    uplinks += static_cast<double>(s.parents.size());
  }
  const double nodes = static_cast<double>(tree.switches.size()) +
                       hosts * static_cast<double>(1 + options.host.parts.size());
  const double links = 2 * (uplinks + hosts * static_cast<double>(options.host.cable_count() +
                                                                  options.host.nic_count()));
  const double capacity = hosts * options.host.nic_count() * static_cast<double>(options.link.bps) +
                          uplinks * static_cast<double>(options.uplink.bps);
  if (capacity > 9e18)
    return fail(Errc::value, {file, 0, 0}, "the links exceed 9e18 bits/s in total",
                "use lower link rates");
  if (nodes <= static_cast<double>(options.limits.nodes) &&
      links <= static_cast<double>(options.limits.links))
    return {};
  return fail(Errc::value, {file, 0, 0},
              fmt::format("{} hosts make {} nodes and {} links; the limits are {} and {}", hosts,
                          nodes, links, options.limits.nodes, options.limits.links),
              "import only part of the cluster");
}

}  // namespace

Result<Fabric> read_slurm_topology(std::string_view text, const std::string& file,
                                   const SlurmOptions& options) {
  if (options.link <= Rate{})
    return fail(Errc::value, {file, 0, 0}, "the rate of the NIC links is missing",
                "give the link rate, e.g. \"400 Gbps\"");
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(options.limits.nodes, 0));
  WEFT_TRY(const SlurmTree tree, parse_slurm_topology(text, file, most));
  for (const SlurmTree::Switch& s : tree.switches)
    if (s.height > switch_roles.size())
      return fail(Errc::unsupported, s.where,
                  fmt::format("switch \"{}\" is {} levels above the nodes, more than {}", s.name,
                              s.height, switch_roles.size()),
                  "remove levels");
  WEFT_TRY_STATUS(check_size(tree, options, file));
  return TreeBuilder(tree, options, file).build();
}

}  // namespace weft::model
