#include "model/formats/kubernetes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "model/formats/place_tree.hpp"

namespace weft::model {
namespace {

constexpr std::string_view list_head = "apiVersion: v1\nkind: List\nitems:\n";

// Names of objects (RFC 1123) that are label values too.
std::string kubernetes_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const char low = lower_case(c);
    const bool kept = is_digit(low) || (low >= 'a' && low <= 'z') || low == '.';
    if (c != ':') out += kept ? low : '-';
  }
  return out;
}

// Names of one kind of object, each of one thing.
class KubernetesNames {
 public:
  Result<std::string> claim(const std::string& name) {
    constexpr std::size_t length_max = 63;
    std::string made = kubernetes_name(name);
    const auto edge = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'z'); };
    bool fine = !made.empty() && made.size() <= length_max;
    for (const std::string_view part : split(made, '.'))
      fine = fine && !part.empty() && edge(part.front()) && edge(part.back());
    if (!fine)
      return fail(
          Errc::unsupported, {},
          fmt::format("\"{}\" cannot be the name of a Kubernetes object", name),
          "rename it using at most 63 letters, digits, \".\" and \"-\", the latter not at ends");
    const auto [it, is_new] = taken_.emplace(made, name);
    if (is_new) return made;
    return fail(Errc::unsupported, {},
                fmt::format("\"{}\" and \"{}\" would both be called {}", it->second, name, made),
                "rename one of them");
  }

 private:
  std::map<std::string, std::string> taken_;  // Kubernetes' name -> ours
};

class KubernetesWriter {
 public:
  explicit KubernetesWriter(const Fabric& fabric)
      : fabric_(fabric), tree_(fabric), place_name_(fabric.scopes().size()) {}

  Result<std::string> write_kueue() {
    WEFT_TRY_STATUS(prepare());
    std::string out(list_head);
    out +=
        "- apiVersion: kueue.x-k8s.io/v1beta2\n  kind: Topology\n  metadata: {name: \"weft\"}\n"
        "  spec:\n    levels:\n";
    for (const ScopeKind kind : kinds_)
      out += fmt::format("    - nodeLabel: \"weft/{}\"\n", to_text(kind));
    out += "    - nodeLabel: \"kubernetes.io/hostname\"\n";
    for (const NodeId host : fabric_.hosts()) {
      std::string labels;
      for (const ScopeKind kind : kinds_) {
        WEFT_TRY(const std::string value, label(host, kind));
        labels +=
            fmt::format("{}weft/{}: \"{}\"", labels.empty() ? "" : ", ", to_text(kind), value);
      }
      out += fmt::format(
          "- apiVersion: v1\n  kind: Node\n  metadata: {{name: \"{}\", labels: {{{}}}}}\n",
          host_name_[host], labels);
    }
    return out;
  }

  Result<std::string> write_volcano() {
    WEFT_TRY_STATUS(prepare());
    std::string out(list_head);
    std::vector<ScopeId> open = tree_.roots;
    while (!open.empty()) {  // from each root down, every place before what is inside it
      const ScopeId scope = open.back();
      open.pop_back();
      const std::vector<ScopeId>& inside = tree_.inside[scope];
      open.insert(open.end(), inside.begin(), inside.end());
      const ScopeKind kind = fabric_.scopes()[scope].kind;
      std::string members;
      if (inside.empty()) {
        for (const NodeId host : tree_.hosts[scope]) members += member("Node", host_name_[host]);
      } else if (!tree_.hosts[scope].empty()) {
        WEFT_TRY(const std::string own, beside(scope));
        std::string hosts;
        for (const NodeId host : tree_.hosts[scope]) hosts += member("Node", host_name_[host]);
        out += hyper_node(own, kinds_.back(), hosts);
        members += member("HyperNode", own);
      }
      for (std::size_t i = inside.size(); i-- > 0;)
        members += member("HyperNode", place_name_[inside[i]]);
      out += hyper_node(place_name_[scope], kind, members);
    }
    return out;
  }

 private:
  // Names of all hosts and of the places that hold any, and the kinds of these from the outside in.
  Status prepare() {
    if (fabric_.hosts().empty())
      return fail(Errc::unsupported, {}, "the fabric has no hosts for jobs to run on",
                  "export a fabric with hosts");
    KubernetesNames hosts;
    host_name_.resize(fabric_.node_count());
    for (const NodeId host : fabric_.hosts()) {
      WEFT_TRY(host_name_[host], hosts.claim(fabric_.name(host)));
    }
    std::array<bool, scope_kind_count> seen{};
    for (std::size_t i = 0; i < place_name_.size(); ++i) {
      const ScopeId scope{i};
      if (tree_.hosts[scope].empty() && tree_.inside[scope].empty()) continue;
      seen[static_cast<std::size_t>(fabric_.scopes()[scope].kind)] = true;
      WEFT_TRY(place_name_[scope], places_.claim(fabric_.name(scope)));
    }
    for (std::size_t k = 0; k < seen.size(); ++k)
      if (seen[k]) kinds_.push_back(static_cast<ScopeKind>(k));
    return {};
  }

  // The outermost place of that kind, or smaller, that a host is in.
  Result<std::string> label(NodeId host, ScopeKind kind) {
    ScopeId around;
    for (const ScopeKind k : kinds_) {
      const ScopeId scope = fabric_.enclosing(host, k);
      if (scope.valid() && k >= kind) return place_name_[scope];
      if (scope.valid()) around = scope;
    }
    return beside(around);
  }
  // What hosts beside the places inside `around` are in.
  Result<std::string> beside(ScopeId around) {
    std::string& made = beside_[around];
    if (made.empty()) {
      WEFT_TRY(made, places_.claim(fabric_.name(around) + "-hosts"));
    }
    return made;
  }

  static std::string member(std::string_view type, std::string_view name) {
    return fmt::format("    - type: {}\n      selector: {{exactMatch: {{name: \"{}\"}}}}\n", type,
                       name);
  }
  std::string hyper_node(std::string_view name, ScopeKind kind, std::string_view members) const {
    const auto at = std::ranges::find(kinds_, kind) - kinds_.begin();
    return fmt::format(
        "- apiVersion: topology.volcano.sh/v1alpha1\n  kind: HyperNode\n"
        "  metadata: {{name: \"{}\"}}\n  spec:\n    tier: {}\n    tierName: \"{}\"\n    "
        "members:\n{}",
        name, std::ssize(kinds_) - at, to_text(kind), members);
  }

  const Fabric& fabric_;
  PlaceTree tree_;
  KubernetesNames places_;
  Column<ScopeId, std::string> place_name_;
  Column<NodeId, std::string> host_name_;
  std::map<ScopeId, std::string> beside_;
  std::vector<ScopeKind> kinds_;
};

}  // namespace

Result<std::string> to_kueue(const Fabric& fabric) {
  return KubernetesWriter(fabric).write_kueue();
}

Result<std::string> to_volcano(const Fabric& fabric) {
  return KubernetesWriter(fabric).write_volcano();
}

}  // namespace weft::model
