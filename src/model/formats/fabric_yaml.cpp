#include "model/formats/fabric_yaml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "model/formats/directory.hpp"
#include "model/generate/generator.hpp"

namespace weft::model {
namespace {

constexpr std::int64_t lane_max = INT16_MAX;

constexpr std::array node_kinds{NodeKind::host,     NodeKind::gpu,         NodeKind::nic,
                                NodeKind::nvswitch, NodeKind::pcie_switch, NodeKind::fabric_switch};
constexpr std::array scope_kinds{ScopeKind::region, ScopeKind::building, ScopeKind::zone,
                                 ScopeKind::pod,    ScopeKind::rack,     ScopeKind::host};

template <class Kinds>
std::vector<std::string> names_of(const Kinds& kinds) {
  std::vector<std::string> out;
  for (const auto kind : kinds) out.emplace_back(to_text(kind));
  return out;
}

struct Lane {
  std::int16_t first = no_lane;
  bool counts_up = false;
  std::int16_t at(std::size_t i) const {
    return counts_up ? static_cast<std::int16_t>(first + static_cast<std::int16_t>(i)) : first;
  }
};

// One entry of `nodes:`.
struct NodeEntry {
  std::string role;
  NodeKind kind = NodeKind::fabric_switch;
  std::size_t count = 1;
  std::optional<std::string> name;
  std::optional<Run<NodeId>> host;
  std::optional<Run<ScopeId>> scope;
  Lane rail, plane;
  std::string nic, model;
};

// Takes the section apart in three passes over its lists and builds as it goes. After an error the
// passes go on, to find further ones, and building stops: ids are counted here, as the builder
// would give them.
class FabricReader {
 public:
  FabricReader(const Config& section, const FabricLimits& limits)
      : section_(section), limits_(limits), top_(section, "fabric", errors_) {}

  Result<Fabric> read() {
    if (section_.kind != Config::Kind::map && section_.kind != Config::Kind::null)
      return std::unexpected(combine(std::move(errors_)));
    read_defaults();
    each("scopes", &FabricReader::read_scope);
    if (scope_kind_.empty()) add_scope(ScopeKind::zone, {}, {});
    each("nodes", &FabricReader::read_node);
    if (kind_.empty() && errors_.empty())
      add_error(Errc::value, section_.where, "the fabric has no nodes", "add a list \"nodes:\"");
    for (const NicChoice& choice : nic_choices_) assign_nics(choice);
    each("links", &FabricReader::read_link);
    top_.finish();
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return builder_.freeze();
  }

 private:
  struct NicChoice {
    NodeId first_gpu;
    std::size_t count;
    std::string nic;
    Where where;
  };

  void add_error(Errc code, const Where& where, std::string what, std::string hint) {
    errors_.push_back({code, where, std::move(what), std::move(hint), {}});
  }
  Rate take_rate(Reader& entry, Rate fallback) {
    const std::size_t before = errors_.size();
    const bool given = entry.has("rate");
    const Rate rate = entry.rate("rate", fallback);
    if (errors_.size() != before || rate > Rate{}) return rate;
    if (given)
      add_error(Errc::value, entry.where("rate"), "a link with a rate of 0 carries nothing",
                "give a positive rate such as \"400 Gbps\", or remove the link");
    return rate;
  }

  void read_defaults() {
    rate_default_ = take_rate(top_, Rate{});
    latency_default_ = top_.duration("latency", latency_default);
  }

  void each(std::string_view key, void (FabricReader::*read)(const Config&)) {
    const Config* list = top_.child(key);
    if (list == nullptr || list->kind == Config::Kind::null) return;
    if (list->kind != Config::Kind::list)
      return add_error(Errc::parse, list->where, fmt::format("fabric.{} must be a list", key),
                       "write one \"- {...}\" per line");
    for (const Config& item : list->items) {
      if (errors_.size() >= errors_max) return;
      (this->*read)(item);
    }
  }

  template <class IdType>
  Run<IdType> take(const Directory<IdType>& directory, const Token& token) {
    auto found = directory.find(token);
    if (found) return *found;
    errors_.push_back(std::move(found).error());
    return {};
  }
  // The run behind an optional key, which must be one thing or as many as the entry stands for.
  template <class IdType>
  std::optional<Run<IdType>> take(Reader& entry, std::string_view key,
                                  const Directory<IdType>& directory, std::size_t count) {
    if (!entry.has(key)) return {};
    const std::string text = entry.text(key, std::string{});
    const Run<IdType> run = take(directory, {text, entry.where(key)});
    if (run.count == 0) return {};
    if (run.count != 1 && run.count != count) {
      add_error(
          Errc::value, entry.where(key),
          fmt::format("\"{}\" names {}, but the entry has a count of {}", text, run.count, count),
          "give one name, or as many as the count");
      return {};
    }
    return run;
  }

  std::optional<std::string> take_name(Reader& entry, std::size_t count) {
    if (!entry.has("name")) return {};
    std::string name = entry.text("name", std::string{});
    if (count != 1) {
      add_error(Errc::value, entry.where("name"),
                fmt::format("one name cannot be used for {}", count), "remove name or count");
      return {};
    }
    if (auto status = check_name({name, entry.where("name")}); !status) {
      errors_.push_back(std::move(status).error());
      return {};
    }
    return name;
  }

  // The count of an entry, with all entries so far inside `most`.
  std::size_t take_count(Reader& entry, std::size_t sofar, std::int64_t most) {
    const auto count = entry.count("count", 1, 1);
    if (count <= most - static_cast<std::int64_t>(sofar)) return static_cast<std::size_t>(count);
    add_error(Errc::value, entry.where("count"),
              fmt::format("{} and {} more exceed the limit of {}", sofar, count, most),
              "describe a smaller fabric");
    return 1;
  }

  void add_scope(ScopeKind kind, ScopeId parent, const std::string& name) {
    const ScopeId id = scope_kind_.push_back(kind);
    scopes_.group(std::string(to_text(kind))).push_back(id);
    if (!name.empty()) scopes_.add_name(name, id);
    if (!errors_.empty()) return;
    const ScopeId built = builder_.add_scope(kind, parent, name);
    WEFT_CHECK(built == id);
  }

  void read_scope(const Config& config) {
    Reader entry(config, "scope", errors_);
    const ScopeKind kind = scope_kinds[entry.choice("kind", scope_kind_names_, std::nullopt)];
    const std::size_t count = take_count(entry, scope_kind_.size(), limits_.nodes);
    const auto name = take_name(entry, count);
    const auto parent = take(entry, "parent", scopes_, count);
    entry.finish();
    const std::string_view prefix = name ? indexed_group(*name) : std::string_view{};
    if (std::ranges::find(scope_kind_names_, prefix) != scope_kind_names_.end())
      add_error(Errc::value, entry.where("name"),
                fmt::format("\"{}\" would read as the index of a {}", *name, prefix),
                "choose another name");
    if (name && scopes_.has_name(*name))
      add_error(Errc::value, entry.where("name"), fmt::format("scope \"{}\" already exists", *name),
                "choose another name");
    for (std::size_t i = 0; i < count; ++i) {
      const ScopeId above = parent ? parent->in_step(i) : ScopeId{};
      if (above.valid() && scope_kind_[above] >= kind)
        return add_error(
            Errc::value, entry.where("parent"),
            fmt::format("a {} cannot be inside a {}", to_text(kind), to_text(scope_kind_[above])),
            "the order is region, building, zone, pod, rack, host");
      add_scope(kind, above, name.value_or(""));
    }
  }

  // "3", or "0..7" with as many values as the entry stands for.
  Lane take_lane(Reader& entry, std::string_view key, std::size_t count) {
    if (!entry.has(key)) return {};
    const std::string text = entry.text(key, std::string{});
    const auto range = parse_range(trim(text));
    if (!range || range->last > lane_max) {
      add_error(Errc::parse, entry.where(key),
                fmt::format("\"{}\" is not a {} number", text.substr(0, 40), key),
                fmt::format("write \"{0}: 3\", or \"{0}: 0..7\" to count up; at most {1}", key,
                            lane_max));
      return {};
    }
    if (range->count() != 1 && range->count() != count) {
      add_error(Errc::value, entry.where(key),
                fmt::format("\"{}\" gives {} numbers, but the entry has a count of {}", text,
                            range->count(), count),
                "give one name, or as many as the count");
      return {};
    }
    return {static_cast<std::int16_t>(range->first), range->count() != 1};
  }

  // What a node of that role is when it does not say so: what the ones before were, otherwise what
  // the role is called, otherwise a fabric_switch.
  std::size_t kind_by_role(const std::string& role) const {
    const auto before = role_kind_.find(role);
    const auto index = before != role_kind_.end()
                           ? std::ranges::find(node_kinds, before->second) - node_kinds.begin()
                           : std::ranges::find(node_kind_names_, role) - node_kind_names_.begin();
    return std::min(static_cast<std::size_t>(index), node_kinds.size() - 1);
  }

  // Any product may be described; who needs to know a model's rates refuses those it does not.
  std::string take_model(Reader& entry) {
    constexpr std::size_t length_max = 64;
    std::string model = entry.text("model", std::string{});
    const bool odd = std::ranges::any_of(model, [](char c) { return c <= ' ' || c > '~'; });
    if (odd || model.size() > length_max)
      add_error(
          Errc::value, entry.where("model"),
          "the GPU model contains unsupported characters or is too long",
          fmt::format("use at most {} printable characters without spaces, e.g. h100", length_max));
    return model;
  }

  NodeEntry take_node(Reader& entry) {
    NodeEntry node;
    node.role = entry.text(
        "role", entry.has("kind") ? std::optional(entry.text("kind", "")) : std::nullopt);
    node.kind = node_kinds[entry.choice("kind", node_kind_names_, kind_by_role(node.role))];
    node.count = take_count(entry, kind_.size(), limits_.nodes);
    node.name = take_name(entry, node.count);
    node.host = take(entry, "host", nodes_, node.count);
    node.scope = take(entry, "scope", scopes_, node.count);
    node.rail = take_lane(entry, "rail", node.count);
    node.plane = take_lane(entry, "plane", node.count);
    if (node.kind == NodeKind::gpu) {
      node.nic = entry.text("nic", std::string{});
      node.model = take_model(entry);
    }
    entry.finish();
    return node;
  }

  // What holds for a role as a whole.
  void check_role(Reader& entry, const NodeEntry& node) {
    if (node.role.empty() && !entry.has("role")) return;  // reported as missing
    const auto [known, added] = role_kind_.emplace(node.role, node.kind);
    if (added)
      if (auto status = check_name({node.role, entry.where("role")}); !status)
        errors_.push_back(std::move(status).error());
    if (known->second != node.kind)
      add_error(Errc::value, entry.where("kind"),
                fmt::format("role \"{}\" was used for a {} before and is used for a {} here",
                            node.role, to_text(known->second), to_text(node.kind)),
                "use another role for one of the two");
    if (node.kind == NodeKind::gpu && node.role != "gpu")
      add_error(Errc::value, entry.where("role"),
                fmt::format("the role of a gpu is \"gpu\", not \"{}\"", node.role),
                "write \"role: gpu\"");
    if ((node.role == "gpu" && node.kind != NodeKind::gpu) ||
        (node.role == "nic" && node.kind != NodeKind::nic) ||
        (node.role == "host" && node.kind != NodeKind::host))
      add_error(Errc::value, entry.where("kind"),
                fmt::format("\"{}\" is the role of {}s", node.role, node.role),
                "choose another role");
  }

  void check_host(Reader& entry, const NodeEntry& node) {
    if (node.kind == NodeKind::gpu && !entry.has("host"))
      add_error(Errc::value, entry.where(), "a GPU must be inside a host",
                "add \"host: host:0\", and define the host before it");
    if ((node.kind == NodeKind::host || node.kind == NodeKind::fabric_switch) && entry.has("host"))
      add_error(Errc::value, entry.where("host"),
                fmt::format("a {} cannot be inside a host", to_text(node.kind)), "remove \"host\"");
    if (!node.host) return;
    for (std::size_t i = 0; i < node.host->count; ++i)
      if (kind_[(*node.host)[i]] != NodeKind::host)
        return add_error(Errc::value, entry.where("host"),
                         fmt::format("\"{}\" is not a host", entry.text("host", "")),
                         "use a node of kind host");
    if (node.role != "gpu" && node.role != "nic") return;
    const std::vector<NodeId>& hosts = nodes_.group("host");
    for (std::size_t i = 0; i < node.host->count; ++i)
      if (!std::ranges::binary_search(hosts, (*node.host)[i]))
        return add_error(
            Errc::value, entry.where("host"),
            fmt::format("a {} must be inside a host with the role \"host\"", node.role),
            "use such a host, or give the node another role");
  }

  // Columns of a host's GPUs and NICs are contiguous, so hosts come one after the other. Invalid
  // ids are the largest: NICs without a host come last.
  void check_order(Reader& entry, const NodeEntry& node) {
    if (node.role != "gpu" && node.role != "nic") return;
    NodeId& last = node.role == "gpu" ? last_gpu_host_ : last_nic_host_;
    for (std::size_t i = 0; i < node.count; ++i) {
      const NodeId host = node.host ? node.host->in_step(i) : NodeId{};
      if (host < last)
        return add_error(
            Errc::value, entry.where("host"),
            fmt::format("a {} of an earlier host comes after one of a later host or of no host",
                        node.role),
            "list the contents of hosts in the order of the hosts");
      last = host;
    }
  }

  void check_node_name(Reader& entry, const NodeEntry& node) {
    if (node.name && !indexed_group(*node.name).empty())
      add_error(Errc::value, entry.where("name"),
                fmt::format("\"{}\" would read as the index of a role", *node.name),
                "choose a name that does not end in \":\" and a number");
    if (node.name && nodes_.has_name(*node.name))
      add_error(Errc::value, entry.where("name"),
                fmt::format("node \"{}\" already exists", *node.name), "choose another name");
  }

  void read_node(const Config& config) {
    Reader entry(config, "node", errors_);
    const NodeEntry node = take_node(entry);
    check_role(entry, node);
    check_host(entry, node);
    check_order(entry, node);
    check_node_name(entry, node);
    if (!node.nic.empty())
      nic_choices_.push_back({NodeId(kind_.size()), node.count, node.nic, entry.where("nic")});
    for (std::size_t i = 0; i < node.count; ++i) add_node(node, i);
  }

  void add_node(const NodeEntry& node, std::size_t i) {
    const NodeId id(kind_.size());
    const NodeId host = node.host ? node.host->in_step(i) : NodeId{};
    const ScopeId scope = node.scope     ? node.scope->in_step(i)
                          : host.valid() ? scope_[host]
                                         : ScopeId(0);
    kind_.push_back(node.kind);
    host_.push_back(host);
    scope_.push_back(scope);
    nodes_.group(node.role).push_back(id);
    if (node.name) nodes_.add_name(*node.name, id);
    if (!errors_.empty()) return;
    const NodeId built = builder_.add_node({.kind = node.kind,
                                            .role = node.role,
                                            .scope = scope,
                                            .host = host,
                                            .rail = node.rail.at(i),
                                            .plane = node.plane.at(i),
                                            .name = node.name ? *node.name : std::string_view{},
                                            .model = node.model});
    WEFT_CHECK(built == id);
  }

  void assign_nics(const NicChoice& choice) {
    const Run<NodeId> run = take(nodes_, {choice.nic, choice.where});
    if (run.count == 0) return;
    if (run.count != 1 && run.count != choice.count)
      return add_error(
          Errc::value, choice.where,
          fmt::format("\"{}\" names {} NICs for {} GPUs", choice.nic, run.count, choice.count),
          "give one name, or as many as the count");
    const std::vector<NodeId>& backend = nodes_.group("nic");
    for (std::size_t i = 0; i < choice.count; ++i) {
      const NodeId gpu(choice.first_gpu.index() + i);
      const NodeId nic = run.in_step(i);
      if (!std::ranges::binary_search(backend, nic) || host_[nic] != host_[gpu])
        return add_error(Errc::value, choice.where,
                         fmt::format("\"{}\" is not a back-end NIC of the GPU's host", choice.nic),
                         "use a node with the role \"nic\" inside the same host");
      if (errors_.empty()) builder_.set_nic(gpu, nic);
    }
  }

  struct Cables {
    Run<NodeId> left, right;
    FabricBuilder::LinkSpec spec;
    std::size_t parallel = 1;
    bool pairs = false;  // i-th left to i-th right; otherwise every left to every right
    std::size_t count() const { return (pairs ? left.count : left.count * right.count) * parallel; }
  };

  // "a--b" with a range at either end.
  bool take_ends(const Token& token, Cables& cables) {
    const std::size_t dashes = token.text.find("--");
    if (dashes == std::string_view::npos) {
      add_error(Errc::parse, token.where,
                fmt::format("\"{}\" is not a cable", token.text.substr(0, 80)),
                "write the two ends as \"a--b\"");
      return false;
    }
    cables.left = take(nodes_, {token.text.substr(0, dashes), token.where});
    cables.right = take(nodes_, {token.text.substr(dashes + 2), token.where});
    return cables.left.count != 0 && cables.right.count != 0;
  }

  void check_interface(const Token& name) {
    constexpr std::size_t length_max = 200;
    const bool odd = std::ranges::any_of(name.text, [](char c) { return c <= ' ' || c > '~'; });
    if (odd || name.text.size() > length_max)
      add_error(Errc::value, name.where,
                "an interface name contains unsupported characters or is too long",
                fmt::format("use at most {} printable characters without spaces", length_max));
  }

  void read_link(const Config& config) {
    Cables cables;
    cables.spec = {rate_default_, latency_default_, {}, {}};
    if (config.kind == Config::Kind::scalar) {
      if (take_ends(token_of(config), cables)) add_cables(cables, config.where);
      return;
    }
    Reader entry(config, "link", errors_);
    cables.pairs = entry.has("pairs");
    const std::string_view key = cables.pairs ? "pairs" : "link";
    const std::string ends = entry.text(key, std::nullopt);
    cables.spec.rate = take_rate(entry, rate_default_);
    cables.spec.latency = entry.duration("latency", latency_default_);
    cables.parallel = static_cast<std::size_t>(entry.count("count", 1, 1, limits_.links));
    const std::string interface_a = entry.text("interface_a", std::string{});
    const std::string interface_b = entry.text("interface_b", std::string{});
    for (const std::string_view side : {"interface_a", "interface_b"})
      check_interface({side.back() == 'a' ? interface_a : interface_b, entry.where(side)});
    cables.spec.interface_a = interface_a;
    cables.spec.interface_b = interface_b;
    entry.finish();
    if (ends.empty() || !take_ends({ends, entry.where(key)}, cables)) return;
    if (cables.pairs && cables.left.count != cables.right.count)
      return add_error(
          Errc::value, entry.where(key),
          fmt::format("{} nodes on the left, {} on the right", cables.left.count,
                      cables.right.count),
          "pairs need equal numbers on both sides; \"link:\" connects every node to every other");
    add_cables(cables, entry.where(key));
  }

  void add_cables(const Cables& cables, const Where& where) {
    if (cables.spec.rate <= Rate{} && errors_.empty())
      return add_error(Errc::parse, where, "the link has no rate",
                       "add \"rate: 400 Gbps\" to it, or to the fabric for all links");
    const bool named = !cables.spec.interface_a.empty() || !cables.spec.interface_b.empty();
    if (named && cables.count() != 1)
      return add_error(Errc::value, where,
                       fmt::format("interface names given for {} cables at once", cables.count()),
                       "write one entry per cable");
    const auto room = static_cast<std::size_t>(limits_.links) -
                      std::min(static_cast<std::size_t>(limits_.links), link_total_);
    if (cables.left.count > room || cables.right.count > room || cables.parallel > room ||
        cables.left.count * cables.right.count > room || 2 * cables.count() > room)
      return add_error(
          Errc::value, where,
          fmt::format("{} x {} x {} cables and the links so far exceed the limit of {}",
                      cables.left.count, cables.right.count, cables.parallel, limits_.links),
          "describe a smaller fabric");
    link_total_ += 2 * cables.count();
    for (std::size_t i = 0; i < cables.left.count; ++i) {
      if (cables.pairs) {
        add_parallel(cables, i, i, where);
      } else {
        for (std::size_t j = 0; j < cables.right.count; ++j) add_parallel(cables, i, j, where);
      }
      if (errors_.size() >= errors_max) return;
    }
  }

  void add_parallel(const Cables& cables, std::size_t i, std::size_t j, const Where& where) {
    const NodeId a = cables.left[i];
    const NodeId b = cables.right[j];
    if (a == b && errors_.size() < errors_max)
      add_error(Errc::value, where, "the cable connects a node to itself", "specify two nodes");
    for (std::size_t k = 0; k < cables.parallel && errors_.empty(); ++k)
      builder_.add_circuit(a, b, cables.spec);
  }

  const Config& section_;
  FabricLimits limits_;
  Errors errors_;
  Reader top_;
  FabricBuilder builder_;
  const std::vector<std::string> node_kind_names_ = names_of(node_kinds);
  const std::vector<std::string> scope_kind_names_ = names_of(scope_kinds);
  Rate rate_default_;
  Duration latency_default_;

  Directory<ScopeId> scopes_{"scope"};
  Directory<NodeId> nodes_{"node"};
  Column<ScopeId, ScopeKind> scope_kind_;
  Column<NodeId, NodeKind> kind_;
  Column<NodeId, NodeId> host_;
  Column<NodeId, ScopeId> scope_;
  std::map<std::string, NodeKind> role_kind_;
  std::vector<NicChoice> nic_choices_;
  NodeId last_gpu_host_{0}, last_nic_host_{0};
  std::size_t link_total_ = 0;
};

}  // namespace

Result<Fabric> read_fabric_nodes(const Config& section, const FabricLimits& limits) {
  return FabricReader(section, limits).read();
}

Status check_name(const Token& name) {
  constexpr std::size_t length_max = 200;
  const std::string_view text = name.text;
  const auto wrong = [&](std::string_view why) {
    return fail(Errc::value, name.where,
                fmt::format("\"{}\" cannot be a name: {}", text.substr(0, 80), why),
                "use letters, digits, and _ . : @ + - between them");
  };
  if (text.empty()) return wrong("it is empty");
  if (text.size() > length_max) return wrong(fmt::format("longer than {} bytes", length_max));
  for (const char c : text) {
    const bool alphanumeric =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!alphanumeric && !std::string_view("_.:@+-").contains(c))
      return wrong("unsupported character");
  }
  for (const std::string_view taken : {"--", "->", ".."})
    if (text.contains(taken))
      return wrong(fmt::format("\"{}\" is a separator between names", taken));
  if (text.front() == '-' || text.back() == '-') return wrong("it begins or ends with \"-\"");
  if (text.find_first_not_of("0123456789") == text.npos) return wrong("a bare number means a GPU");
  return {};
}

}  // namespace weft::model
