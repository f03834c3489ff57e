#include "model/formats/kubernetes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "model/formats/test_fabric.hpp"

namespace weft::model {
namespace {

using namespace testing;

// What the definitions of the resources allow, written down from
// config/components/crd/bases/kueue.x-k8s.io_topologies.yaml of Kueue (v1beta2, August 2026) and
// config/crd/volcano/bases/topology.volcano.sh_hypernodes.yaml of Volcano (v1alpha1): by path, "*"
// for the items of a list, what a value is. A "!" marks what must be there.
using Schema = std::map<std::string, std::string, std::less<>>;
const Schema topology_schema{{"apiVersion", "!kueue.x-k8s.io/v1beta2"},
                             {"kind", "!Topology"},
                             {"metadata", "!map"},
                             {"metadata.name", "!name"},
                             {"spec", "!map"},
                             {"spec.levels", "!list"},
                             {"spec.levels.*", "map"},
                             {"spec.levels.*.nodeLabel", "!label"}};
const Schema node_schema{{"apiVersion", "!v1"},       {"kind", "!Node"},
                         {"metadata", "!map"},        {"metadata.name", "!name"},
                         {"metadata.labels", "!map"}, {"metadata.labels.*", "value"}};
const Schema hyper_node_schema{
    {"apiVersion", "!topology.volcano.sh/v1alpha1"},
    {"kind", "!HyperNode"},
    {"metadata", "!map"},
    {"metadata.name", "!name"},
    {"spec", "!map"},
    {"spec.tier", "!integer"},
    {"spec.tierName", "value"},
    {"spec.members", "!list"},
    {"spec.members.*", "map"},
    {"spec.members.*.type", "!Node|HyperNode"},
    {"spec.members.*.selector", "!map"},
    {"spec.members.*.selector.exactMatch", "!map"},
    {"spec.members.*.selector.exactMatch.name", "!name"},
};

bool is_word(std::string_view text, std::string_view inner, bool upper) {
  const auto plain = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (upper && c >= 'A' && c <= 'Z');
  };
  return !text.empty() && plain(text.front()) && plain(text.back()) &&
         std::ranges::all_of(text, [&](char c) { return plain(c) || inner.contains(c); });
}
bool is_of(const Config& value, std::string_view type) {
  if (type == "map") return value.kind == Config::Kind::map;
  if (type == "list") return value.kind == Config::Kind::list && !value.items.empty();
  if (value.kind != Config::Kind::scalar) return false;
  if (type == "integer") return is_word(value.text, "", false) && value.text.size() == 1;
  if (type == "name") return is_word(value.text, "-.", false) && value.text.size() <= 253;
  if (type == "value") return is_word(value.text, "-._", true) && value.text.size() <= 63;
  if (type == "label") {
    const std::size_t slash = value.text.find('/');
    return slash != std::string::npos && is_word(value.text.substr(0, slash), "-.", false) &&
           is_word(value.text.substr(slash + 1), "-._", true);
  }
  return contains("|" + std::string(type) + "|", "|" + value.text + "|");
}

void check_schema(const Config& value, const Schema& schema, const std::string& path = "") {
  CAPTURE(path);
  const auto below = [&](std::string_view key) {
    return path.empty() ? std::string(key) : path + "." + std::string(key);
  };
  const auto check = [&](const Config& inner, std::string_view key) {
    const auto named = schema.find(below(key)), any = schema.find(below("*"));
    const auto found = named != schema.end() ? named : any;
    REQUIRE_MESSAGE(found != schema.end(), "no field " << below(key));
    std::string_view type = found->second;
    if (type.starts_with('!')) type.remove_prefix(1);
    CHECK_MESSAGE(is_of(inner, type), below(key) << " is no " << type << ": " << inner.text);
    check_schema(inner, schema, found->first);
  };
  for (const Config::Field& field : value.fields) check(field.value, field.key);
  for (const Config& item : value.items) check(item, "*");
  for (const auto& [field, type] : schema) {
    const std::size_t dot = field.rfind('.');
    const std::string parent = dot == field.npos ? "" : field.substr(0, dot);
    if (parent == path && type.starts_with('!'))
      CHECK_MESSAGE(value.find(std::string_view(field).substr(dot + 1)) != nullptr, field);
  }
}

std::vector<Config> items_of(const Result<std::string>& text) {
  REQUIRE_MESSAGE(text.has_value(), (text ? "" : text.error().text()));
  const auto root = parse_yaml(*text, "list.yaml");
  REQUIRE_MESSAGE(root.has_value(), *text);
  CHECK(root->find("apiVersion")->text == "v1");
  CHECK(root->find("kind")->text == "List");
  return root->find("items")->items;
}
std::string at(const Config& config, std::initializer_list<std::string_view> path) {
  const Config* here = &config;
  for (const std::string_view key : path) here = here->find(key);
  return here->text;
}

constexpr std::array kubernetes_fabrics{
    "{generator: ai_zone, racks: 5}",
    "{generator: three_tier, pods: 2, racks: 3}",
    "{generator: hpn, pods: 2, segments: 2, hosts_per_segment: 4, aggs: 2, cores: 2}",
    "{generator: fat_tree, k: 4}",
    "{generator: rail_only, hosts: 5}",
    "{generator: dragonfly, p: 2, a: 4, h: 2, g: 9}",
    "{scopes: [{kind: zone, count: 2}, {kind: pod, parent: zone:0}, {kind: rack, parent: pod:0}, "
    "{kind: rack, parent: zone:0}], nodes: [{role: host, scope: zone:0}, {role: host, scope: "
    "pod:0}, {role: host, scope: rack:0, count: 2}, {role: host, scope: rack:1}, {role: host, "
    "scope: zone:1}, {role: host, name: Big_Host, scope: rack:1}]}",
};

// Hosts by the path of places around them, outermost first, as sets: names do not count.
std::set<std::set<std::string>> groups(const std::map<std::string, std::string>& place_of_host) {
  std::map<std::string, std::set<std::string>> out;
  for (const auto& [host, place] : place_of_host) out[place].insert(host);
  std::set<std::set<std::string>> sets;
  for (auto& [place, hosts] : out) sets.insert(std::move(hosts));
  return sets;
}
std::string host_text(const Fabric& fabric, NodeId host) {
  return fabric.has_given_name(host) ? "big-host" : fmt::format("host{}", fabric.role_index(host));
}
// Hosts by the outermost place around them that is of that kind or smaller; those in none are
// together in what is around.
std::set<std::set<std::string>> groups(const Fabric& fabric, ScopeKind kind) {
  std::map<std::string, std::string> place;
  for (const NodeId host : fabric.hosts()) {
    std::string& ours = place[host_text(fabric, host)];
    for (ScopeId scope = fabric.scope(host); scope.valid(); scope = fabric.scopes()[scope].parent) {
      const ScopeKind here = fabric.scopes()[scope].kind;
      if (here == ScopeKind::host) continue;
      if (here >= kind || ours.empty()) ours = fmt::format("{} {}", here >= kind, scope.value);
    }
  }
  return groups(place);
}

TEST_CASE("Kueue: each host is a Node whose labels say its places") {
  for (const char* const yaml : kubernetes_fabrics) {
    CAPTURE(yaml);
    const Fabric fabric = make_fabric(yaml);
    const std::vector<Config> items = items_of(to_kueue(fabric));
    check_schema(items[0], topology_schema);
    std::vector<std::string> levels;
    for (const Config& level : items[0].find("spec")->find("levels")->items)
      levels.push_back(at(level, {"nodeLabel"}));
    REQUIRE(levels.size() <= 16);
    CHECK(std::set(levels.begin(), levels.end()).size() == levels.size());
    CHECK(levels.back() == "kubernetes.io/hostname");
    levels.pop_back();
    REQUIRE(items.size() == 1 + fabric.hosts().size());
    // By level: the value of the label behind those of the levels around it, as Kueue reads them.
    std::map<std::string, std::map<std::string, std::string>> paths;
    std::set<std::string> seen;
    for (std::size_t i = 1; i < items.size(); ++i) {
      check_schema(items[i], node_schema);
      const std::string host = at(items[i], {"metadata", "name"});
      CHECK(seen.insert(host).second);
      std::string path;
      CHECK(items[i].find("metadata")->find("labels")->fields.size() == levels.size());
      for (const std::string& level : levels)
        paths[level][host] = path += "/" + at(items[i], {"metadata", "labels", level});
    }
    for (std::size_t k = 0; k + 1 < scope_kind_count; ++k) {
      const auto kind = static_cast<ScopeKind>(k);
      const std::string level = fmt::format("weft/{}", to_text(kind));
      if (paths.contains(level)) CHECK_MESSAGE(groups(paths[level]) == groups(fabric, kind), level);
    }
  }
}

TEST_CASE("Volcano: each host is in one leaf HyperNode, and tiers nest as places do") {
  struct Hyper {
    int tier = 0;
    std::string tier_name;
    std::vector<std::string> nodes, hypers;
    std::string parent;
  };
  for (const char* const yaml : kubernetes_fabrics) {
    CAPTURE(yaml);
    const Fabric fabric = make_fabric(yaml);
    std::map<std::string, Hyper> hypers;
    for (const Config& item : items_of(to_volcano(fabric))) {
      check_schema(item, hyper_node_schema);
      Hyper& hyper = hypers[at(item, {"metadata", "name"})];
      CHECK(hyper.tier == 0);
      hyper.tier = std::stoi(at(item, {"spec", "tier"}));
      hyper.tier_name = at(item, {"spec", "tierName"});
      for (const Config& member : item.find("spec")->find("members")->items)
        (at(member, {"type"}) == "Node" ? hyper.nodes : hyper.hypers)
            .push_back(at(member, {"selector", "exactMatch", "name"}));
      CHECK(hyper.nodes.empty() != hyper.hypers.empty());
    }
    std::map<std::string, std::string> leaf_of;
    std::map<int, std::string> tier_names;
    for (auto& [name, hyper] : hypers) {
      CHECK(hyper.tier >= 1);
      CHECK(tier_names.emplace(hyper.tier, hyper.tier_name).first->second == hyper.tier_name);
      for (const std::string& host : hyper.nodes) CHECK(leaf_of.emplace(host, name).second);
      for (const std::string& inner : hyper.hypers) {
        REQUIRE(hypers.contains(inner));
        CHECK(hypers[inner].tier < hyper.tier);
        CHECK(hypers[inner].parent.empty());
        hypers[inner].parent = name;
      }
    }
    REQUIRE(leaf_of.size() == fabric.hosts().size());
    CHECK(groups(leaf_of) == groups(fabric, ScopeKind::rack));
    // Two hosts are in one HyperNode of a tier when they are in one place of that kind.
    for (const auto& [tier, kind_name] : tier_names) {
      ScopeKind kind = ScopeKind::rack;
      for (std::size_t k = 0; k < scope_kind_count; ++k)
        if (to_text(static_cast<ScopeKind>(k)) == kind_name) kind = static_cast<ScopeKind>(k);
      std::map<std::string, std::string> place;
      for (const auto& [host, leaf] : leaf_of) {
        std::string at_tier = leaf;
        while (!hypers[at_tier].parent.empty() && hypers[hypers[at_tier].parent].tier <= tier)
          at_tier = hypers[at_tier].parent;
        place[host] = at_tier;
      }
      CHECK_MESSAGE(groups(place) == groups(fabric, kind), kind_name);
    }
  }
}

TEST_CASE("what Kubernetes could not name or tell apart is refused") {
  for (const auto write : {to_kueue, to_volcano}) {
    const auto says = [&](std::string_view yaml, std::string_view what) {
      const auto text = write(make_fabric(yaml));
      REQUIRE(!text.has_value());
      CHECK(text.error().code == Errc::unsupported);
      CHECK_MESSAGE(contains(text.error().text(), what), text.error().text());
    };
    says("{nodes: [{role: nic}]}", "no hosts");
    says("{nodes: [{role: host, name: a_b}, {role: host, name: a-b}]}", "would both be called a-b");
    says("{nodes: [{role: host, name: _a}]}", "cannot be the name");
    says("{nodes: [{role: host, name: " + std::string(64, 'x') + "}]}", "cannot be the name");
  }
}

}  // namespace
}  // namespace weft::model
