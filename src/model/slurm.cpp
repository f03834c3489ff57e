#include "model/slurm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>

#include "model/generator.hpp"
#include "model/hostlist.hpp"

namespace weft::model {
namespace {

constexpr std::size_t text_bytes_max = std::size_t{64} << 20;
constexpr std::size_t errors_max = 100;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

struct Setting {
  std::string key;  // lower case
  std::string_view value;
  Where key_where, value_where;
};

// Cuts the text into lines of "Key=Value" settings: comments, blank lines, "\" at a line's end.
class LineReader {
 public:
  LineReader(std::string_view text, const std::string& file, Errors& errors)
      : text_(text), file_(file), errors_(errors) {}

  // The next line with settings; empty at the end of the text.
  std::vector<Setting> next() {
    std::vector<Setting> settings;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        new_line();
        if (!settings.empty()) break;
      } else if (c == '\\' && is_line_end(at_ + 1)) {
        at_ = text_.find('\n', at_);
        if (at_ == text_.npos) at_ = text_.size();
        if (at_ < text_.size()) new_line();
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (is_blank(c)) {
        ++at_;
      } else {
        take_setting(settings);
      }
    }
    return settings;
  }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
  bool is_line_end(std::size_t i) const {
    while (i < text_.size() && is_blank(text_[i])) ++i;
    return i >= text_.size() || text_[i] == '\n';
  }
  void new_line() {
    line_begin_ = ++at_;
    ++line_;
  }
  Where where(std::size_t offset) const {
    return {file_, line_, static_cast<std::uint32_t>(offset - line_begin_ + 1)};
  }
  void take_setting(std::vector<Setting>& settings) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && !is_blank(text_[at_]) && text_[at_] != '\n' && text_[at_] != '#')
      ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    const std::size_t equals = word.find('=');
    if (equals == word.npos) {
      errors_.push_back({Errc::parse, where(begin),
                         fmt::format("\"{}\" is not Key=Value", word.substr(0, 40)),
                         lower(word) == "include" ? "write the included lines into this file"
                                                  : "write \"SwitchName=s0 Nodes=n[0-15]\"",
                         {}});
      return;
    }
    settings.push_back({lower(word.substr(0, equals)), word.substr(equals + 1), where(begin),
                        where(begin + equals + 1)});
  }

  std::string_view text_;
  const std::string& file_;
  Errors& errors_;
  std::size_t at_ = 0;
  std::size_t line_begin_ = 0;
  std::uint32_t line_ = 1;
};

class TreeReader {
 public:
  TreeReader(std::string_view text, const std::string& file, std::size_t node_count_max)
      : text_(text), file_(file), names_left_(node_count_max) {}

  Result<SlurmTree> read() {
    LineReader lines(text_, file_, errors_);
    for (auto line = lines.next(); !line.empty(); line = lines.next()) {
      if (errors_.size() >= errors_max) break;
      read_switch(line);
    }
    if (tree_.switches.empty() && errors_.empty())
      error(Errc::parse, {file_, 1, 1}, "no switch stands in the file",
            "write lines \"SwitchName=s0 Nodes=n[0-15]\"");
    if (errors_.empty()) link_children();
    if (errors_.empty()) find_heights();
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return std::move(tree_);
  }

 private:
  void error(Errc code, const Where& where, std::string what, std::string hint) {
    if (errors_.size() < errors_max)
      errors_.push_back({code, where, std::move(what), std::move(hint), {}});
  }

  std::vector<std::string> expand(const Setting& setting) {
    auto names = expand_hostlist({setting.value, setting.value_where}, names_left_);
    if (!names) {
      errors_.push_back(std::move(names).error());
      return {};
    }
    names_left_ -= names->size();
    for (const std::string& name : *names)
      if (auto status = check_name({name, setting.value_where}); !status) {
        errors_.push_back(std::move(status).error());
        return {};
      }
    return *std::move(names);
  }

  const Setting* take(const std::vector<Setting>& line, std::string_view key) {
    const Setting* found = nullptr;
    for (const Setting& setting : line) {
      if (setting.key != key) continue;
      if (found != nullptr)
        error(Errc::parse, setting.key_where, fmt::format("\"{}\" stands twice in the line", key),
              "remove one of them");
      found = &setting;
    }
    return found;
  }

  void check_keys(const std::vector<Setting>& line) {
    const std::vector<std::string> known{"switchname", "nodes", "switches", "linkspeed"};
    for (const Setting& setting : line) {
      if (std::ranges::find(known, setting.key) != known.end()) continue;
      if (setting.key.starts_with("block"))
        return error(Errc::unsupported, setting.key_where,
                     "this file is for topology/block; only topology/tree is read",
                     "write lines \"SwitchName=s0 Nodes=n[0-15]\"");
      error(Errc::unknown, setting.key_where,
            fmt::format("unknown key \"{}\"{}", setting.key.substr(0, 40),
                        did_you_mean(setting.key, known)),
            "known keys: SwitchName, Nodes, Switches, LinkSpeed");
    }
  }

  void read_switch(const std::vector<Setting>& line) {
    check_keys(line);
    const Setting* name = take(line, "switchname");
    const Setting* nodes = take(line, "nodes");
    const Setting* switches = take(line, "switches");
    const Setting* speed = take(line, "linkspeed");
    if (name == nullptr)
      return error(Errc::parse, line.front().key_where, "the line has no SwitchName",
                   "begin it with \"SwitchName=...\"");
    if ((nodes == nullptr) == (switches == nullptr))
      return error(Errc::parse, name->value_where,
                   fmt::format("switch \"{}\" has {}", name->value,
                               nodes == nullptr ? "no children" : "both nodes and switches"),
                   "give either Nodes= or Switches=");
    SlurmTree::Switch made;
    made.name = name->value;
    made.where = name->value_where;
    if (speed != nullptr) made.link_speed = speed->value;
    if (auto status = check_name({made.name, made.where}); !status)
      errors_.push_back(std::move(status).error());
    if (!by_name_.emplace(made.name, tree_.switches.size()).second)
      error(Errc::parse, made.where, fmt::format("switch \"{}\" stands twice", made.name),
            fmt::format("the first one is in line {}; give one of them another name",
                        tree_.switches[by_name_[made.name]].where.line));
    if (nodes != nullptr) made.nodes = expand(*nodes);
    for (const std::string& node : made.nodes)
      if (const auto [it, is_new] = leaf_of_.emplace(node, tree_.switches.size()); !is_new)
        error(Errc::value, nodes->value_where,
              fmt::format("node \"{}\" stands under this switch and under {}", node,
                          it->second == tree_.switches.size() ? "it again"
                                                              : tree_.switches[it->second].name),
              "put each node under one leaf switch");
    child_names_.push_back(switches != nullptr ? expand(*switches) : std::vector<std::string>{});
    child_where_.push_back(switches != nullptr ? switches->value_where : made.where);
    tree_.switches.push_back(std::move(made));
  }

  void link_children() {
    for (std::uint32_t i = 0; i < tree_.switches.size(); ++i) {
      for (const std::string& name : child_names_[i]) {
        const auto child = by_name_.find(name);
        if (child == by_name_.end()) {
          error(Errc::unknown, child_where_[i],
                fmt::format("switch \"{}\" has no line of its own{}", name, near(name)),
                fmt::format("add \"SwitchName={} ...\"", name));
          continue;
        }
        auto& parents = tree_.switches[child->second].parents;
        if (!parents.empty() && parents.back() == i)
          error(Errc::value, child_where_[i],
                fmt::format("switch \"{}\" is a child twice", name), "name it once");
        parents.push_back(i);
        tree_.switches[i].children.push_back(static_cast<std::uint32_t>(child->second));
      }
      if (leaf_of_.contains(tree_.switches[i].name))
        error(Errc::value, tree_.switches[i].where,
              fmt::format("\"{}\" is a switch and a node", tree_.switches[i].name),
              "give one of them another name");
    }
  }
  std::string near(std::string_view name) const {
    constexpr std::size_t candidates_max = 10'000;  // bounds the search
    std::vector<std::string> names;
    for (const SlurmTree::Switch& s : tree_.switches)
      if (names.size() < candidates_max) names.push_back(s.name);
    return did_you_mean(name, names);
  }

  // From the leaves up, each switch after its last child; who is never reached is in a cycle.
  void find_heights() {
    std::vector<std::size_t> waiting;
    std::vector<std::uint32_t> ready;
    for (std::uint32_t i = 0; i < tree_.switches.size(); ++i) {
      waiting.push_back(tree_.switches[i].children.size());
      if (waiting.back() == 0) ready.push_back(i);
    }
    for (std::size_t at = 0; at < ready.size(); ++at) {
      const SlurmTree::Switch& done = tree_.switches[ready[at]];
      for (const std::uint32_t parent : done.parents) {
        std::uint32_t& height = tree_.switches[parent].height;
        height = std::max(height, done.height + 1);
        if (--waiting[parent] == 0) ready.push_back(parent);
      }
    }
    for (std::size_t i = 0; i < waiting.size(); ++i)
      if (waiting[i] != 0)
        error(Errc::infeasible, tree_.switches[i].where,
              fmt::format("switch \"{}\" is above itself, or above switches that are",
                          tree_.switches[i].name),
              "remove a \"Switches=\" entry that closes the cycle");
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t names_left_;
  Errors errors_;
  SlurmTree tree_;
  std::map<std::string, std::size_t> by_name_, leaf_of_;
  std::vector<std::vector<std::string>> child_names_;  // by switch
  std::vector<Where> child_where_;
};

constexpr std::array<std::string_view, 4> switch_roles{"leaf", "spine", "core", "super_core"};
constexpr std::array scopes_by_height{ScopeKind::rack, ScopeKind::pod, ScopeKind::zone,
                                      ScopeKind::building};

// Turns a checked tree into a fabric: scopes from the top down, then hosts, then cables upwards.
class TreeBuilder {
 public:
  TreeBuilder(const SlurmTree& tree, const SlurmOptions& options)
      : tree_(tree), options_(options), scope_(tree.switches.size()), node_(tree.switches.size()) {
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
    scope_[i] = is_place(i) ? builder_.add_scope(scopes_by_height[at(i).height - 1], above,
                                                 at(i).name)
                            : above.valid() ? above : commons();
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
      down[i] = options_.link * static_cast<std::int64_t>(at(i).nodes.size()) *
                options_.host.nic_count();
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

  const SlurmTree& tree_;
  const SlurmOptions& options_;
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
  const double links =
      2 * (uplinks + hosts * static_cast<double>(options.host.wires.size() +
                                                 options.host.nic_count()));
  const double capacity =
      hosts * options.host.nic_count() * static_cast<double>(options.link.bps) +
      uplinks * static_cast<double>(options.uplink.bps);
  if (capacity > 9e18)
    return fail(Errc::value, {file, 0, 0}, "the links together exceed 9e18 bits/s",
                "give smaller link rates");
  if (nodes <= static_cast<double>(options.limits.nodes) &&
      links <= static_cast<double>(options.limits.links))
    return {};
  return fail(Errc::value, {file, 0, 0},
              fmt::format("{} hosts make {} nodes and {} links; the limits are {} and {}", hosts,
                          nodes, links, options.limits.nodes, options.limits.links),
              "import a part of the cluster");
}

// Names that Slurm takes: what stands in a host list without brackets.
std::string slurm_name(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (c != ':') out += c;
  return out;
}

class TreeWriter {
 public:
  explicit TreeWriter(const Fabric& fabric)
      : fabric_(fabric), hosts_in_(fabric.scopes().size()), inside_(fabric.scopes().size()) {}

  Result<std::string> write() {
    if (fabric_.hosts().empty())
      return fail(Errc::unsupported, {}, "the fabric has no hosts that Slurm could run jobs on",
                  "export a fabric with hosts");
    for (const NodeId host : fabric_.hosts()) WEFT_TRY_STATUS(add_host(host));
    find_children();
    // From each root down, every place before what is inside it.
    while (!open_.empty()) {
      const ScopeId scope = open_.back();
      open_.pop_back();
      WEFT_TRY_STATUS(write_scope(scope));
      open_.insert(open_.end(), inside_[scope].begin(), inside_[scope].end());
    }
    return std::move(out_);
  }

 private:
  // The smallest place around a host that is not the host itself.
  ScopeId place_of(NodeId host) const {
    ScopeId at = fabric_.scope(host);
    const auto& scopes = fabric_.scopes();
    while (scopes[at].kind == ScopeKind::host && scopes[at].parent.valid()) at = scopes[at].parent;
    return at;
  }
  Result<std::string> claim(const std::string& name) {
    std::string made = slurm_name(name);
    const auto odd = [](char c) {
      return !std::isalnum(static_cast<unsigned char>(c)) && !std::string_view("_.-").contains(c);
    };
    if (std::ranges::any_of(made, odd))
      return fail(Errc::unsupported, {},
                  fmt::format("\"{}\" holds a character that Slurm's names do not allow", name),
                  "rename it with letters, digits, \"_\", \".\" and \"-\"");
    const auto [it, is_new] = taken_.emplace(made, name);
    if (!is_new)
      return fail(Errc::unsupported, {},
                  fmt::format("\"{}\" and \"{}\" would both be called {}", it->second, name, made),
                  "rename one of them");
    return made;
  }
  Status add_host(NodeId host) {
    WEFT_TRY(std::string name, claim(fabric_.name(host)));
    hosts_in_[place_of(host)].push_back(std::move(name));
    return {};
  }
  // Scopes with hosts somewhere below them, the last one first. Parents have smaller ids than their
  // children.
  void find_children() {
    const auto& scopes = fabric_.scopes();
    for (std::size_t i = scopes.size(); i-- > 0;) {
      const ScopeId scope{i}, parent = scopes[scope].parent;
      if (hosts_in_[scope].empty() && inside_[scope].empty()) continue;
      (parent.valid() ? inside_[parent] : open_).push_back(scope);
    }
  }
  Status write_scope(ScopeId scope) {
    const std::vector<std::string>& hosts = hosts_in_[scope];
    const std::vector<ScopeId>& scopes = inside_[scope];
    WEFT_TRY(const std::string name, claim(fabric_.name(scope)));
    if (scopes.empty()) {
      out_ += fmt::format("SwitchName={} Nodes={}\n", name, compress_hostlist(hosts));
      return {};
    }
    std::vector<std::string> children;
    if (!hosts.empty()) {
      WEFT_TRY(std::string own, claim(fabric_.name(scope) + "-hosts"));
      out_ += fmt::format("SwitchName={} Nodes={}\n", own, compress_hostlist(hosts));
      children.push_back(std::move(own));
    }
    for (std::size_t i = scopes.size(); i-- > 0;)
      children.push_back(slurm_name(fabric_.name(scopes[i])));
    out_ += fmt::format("SwitchName={} Switches={}\n", name, compress_hostlist(children));
    return {};
  }

  const Fabric& fabric_;
  Column<ScopeId, std::vector<std::string>> hosts_in_;
  Column<ScopeId, std::vector<ScopeId>> inside_;
  std::vector<ScopeId> open_;                 // still to be written, the next one last
  std::map<std::string, std::string> taken_;  // Slurm name -> ours
  std::string out_;
};

}  // namespace

Result<SlurmTree> parse_slurm_topology(std::string_view text, const std::string& file,
                                       std::size_t node_count_max) {
  if (text.size() > text_bytes_max)
    return fail(Errc::parse, {file, 0, 0}, fmt::format("larger than {} MiB", text_bytes_max >> 20),
                "import a part of the cluster");
  return TreeReader(text, file, node_count_max).read();
}

Result<SlurmFabric> read_slurm_topology(std::string_view text, const std::string& file,
                                        const SlurmOptions& options) {
  if (options.link <= Rate{})
    return fail(Errc::value, {file, 0, 0}, "the rate of the NICs' links is missing",
                "give the link rate, e.g. \"400 Gbps\"");
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(options.limits.nodes, 0));
  WEFT_TRY(const SlurmTree tree, parse_slurm_topology(text, file, most));
  for (const SlurmTree::Switch& s : tree.switches)
    if (s.height > switch_roles.size())
      return fail(Errc::unsupported, s.where,
                  fmt::format("switch \"{}\" is {} levels above the nodes, more than {}", s.name,
                              s.height, switch_roles.size()),
                  "leave out levels");
  WEFT_TRY_STATUS(check_size(tree, options, file));
  SlurmFabric out{TreeBuilder(tree, options).build(), {}};
  for (const SlurmTree::Switch& s : tree.switches)
    if (!s.link_speed.empty())
      out.notes.push_back(fmt::format("{}: LinkSpeed={} of switch {} has no unit and is not used",
                                      s.where.text(), s.link_speed, s.name));
  return out;
}

Result<std::string> to_slurm_topology(const Fabric& fabric) { return TreeWriter(fabric).write(); }

}  // namespace weft::model
