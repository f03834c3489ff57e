// Names of nodes, links, cables and scopes, to text and back.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/whole_number.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::model {
namespace {

constexpr std::size_t suggestions_max = 10'000;  // names that a "did you mean" looks at
constexpr std::size_t neighbours_shown = 8;

struct Indexed {
  std::string_view kind;
  std::uint32_t index;
};

// "role:index" or "kind:index".
std::optional<Indexed> parse_indexed(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto index = whole_number<std::uint32_t>(text.substr(colon + 1));
  if (!index) return std::nullopt;
  return Indexed{text.substr(0, colon), *index};
}

std::string shown(std::string_view text) {
  constexpr std::size_t length_max = 60;
  if (text.size() <= length_max) return fmt::format("\"{}\"", text);
  return fmt::format("\"{}...\"", text.substr(0, length_max));
}

std::unexpected<Error> unknown(const Token& token, std::string what, std::string hint) {
  return fail(Errc::unknown, token.where, std::move(what), std::move(hint));
}

std::unexpected<Error> out_of_range(const Token& token, std::string_view role, std::size_t count,
                                    std::string_view inside) {
  if (count == 0)
    return unknown(token, fmt::format("{}: there is no {}{}", shown(token.text), role, inside),
                   "use a name from the fabric; `weft explain` lists the roles");
  return unknown(token,
                 fmt::format("{}: there {} {} {}{}", shown(token.text), count == 1 ? "is" : "are",
                             count, role, inside),
                 fmt::format("choose an index from 0 to {}", count - 1));
}

// "a->b" cut at each occurrence of the arrow, for names that contain it themselves.
std::vector<std::pair<std::string_view, std::string_view>> cuts(std::string_view text,
                                                                std::string_view arrow) {
  std::vector<std::pair<std::string_view, std::string_view>> out;
  for (std::size_t at = text.find(arrow); at != std::string_view::npos;
       at = text.find(arrow, at + 1))
    out.emplace_back(text.substr(0, at), text.substr(at + arrow.size()));
  return out;
}

// "b#2" -> ("b", 2); no "#k" gives 0, a "#" without a number stays part of the name.
std::pair<std::string_view, std::uint32_t> cut_ordinal(std::string_view text) {
  const std::size_t mark = text.rfind('#');
  if (mark == std::string_view::npos) return {text, 0};
  const auto ordinal = whole_number<std::uint32_t>(text.substr(mark + 1));
  if (!ordinal || *ordinal == 0) return {text, 0};
  return {text.substr(0, mark), *ordinal};
}

bool is_inside(const Fabric& fabric, NodeId node, ScopeId scope) {
  ScopeId at = fabric.scope(node);
  while (at.valid() && at != scope) at = fabric.scopes()[at].parent;
  return at.valid();
}

std::string neighbours_text(const Fabric& fabric, NodeId node) {
  std::vector<std::string> names;
  for (const LinkId link : fabric.out(node)) {
    const std::string name = fabric.name(fabric.to(link));
    if (std::ranges::find(names, name) != names.end()) continue;
    if (names.size() == neighbours_shown) {
      names.emplace_back("...");
      break;
    }
    names.push_back(name);
  }
  if (names.empty()) return fmt::format("{} has no links", fabric.name(node));
  return fmt::format("{} is linked to {}", fabric.name(node), fmt::join(names, ", "));
}

// The link that "a<arrow>b[#k]" names.
Result<LinkId> find_between(const Fabric& fabric, const Token& token, std::string_view arrow) {
  const std::string_view text = trim(token.text);
  const auto pairs = cuts(text, arrow);
  if (pairs.empty())
    return unknown(token, fmt::format("{} does not name a link", shown(token.text)),
                   fmt::format("write it as \"a{}b\", e.g. \"rtsw:3{}ctsw:7\"", arrow, arrow));
  std::optional<Error> first_error;
  for (const auto& [left, right] : pairs) {
    const auto [right_name, ordinal] = cut_ordinal(right);
    const auto a = fabric.find_node({left, token.where});
    const auto b = fabric.find_node({right_name, token.where});
    if (!a || !b) {
      if (!first_error) first_error = !a ? a.error() : b.error();
      continue;
    }
    const auto links = fabric.links_between(*a, *b);
    if (links.empty())
      return unknown(token,
                     fmt::format("no link connects {} and {}", fabric.name(*a), fabric.name(*b)),
                     neighbours_text(fabric, *a));
    if (ordinal > links.size() || (ordinal == 0 && links.size() > 1))
      return unknown(
          token,
          fmt::format("{} links run from {} to {}", links.size(), fabric.name(*a), fabric.name(*b)),
          fmt::format("append #1 to #{} to select one", links.size()));
    return links[ordinal == 0 ? 0 : ordinal - 1];
  }
  return std::unexpected(*first_error);
}

}  // namespace

std::string Fabric::name(NodeId node) const {
  if (!node_name_.empty())
    if (const auto it = node_name_.find(node); it != node_name_.end()) return it->second;
  return fmt::format("{}:{}", role_name(node), role_index(node));
}

std::string Fabric::name(ScopeId scope) const {
  const Scope& s = scopes_[scope];
  return s.name.empty() ? fmt::format("{}:{}", to_text(s.kind), s.index) : s.name;
}

namespace {

// "#k" of the k-th of several parallel links, or "".
std::string ordinal_text(const Fabric& fabric, LinkId link) {
  const auto links = fabric.links_between(fabric.from(link), fabric.to(link));
  if (links.size() == 1) return {};
  return fmt::format("#{}", std::ranges::find(links, link) - links.begin() + 1);
}

}  // namespace

std::string Fabric::name(LinkId link) const {
  return fmt::format("{}->{}{}", name(from(link)), name(to(link)), ordinal_text(*this, link));
}

std::string Fabric::name(CableId cable) const {
  const LinkId link = forward(cable);
  return fmt::format("{}--{}{}", name(from(link)), name(to(link)), ordinal_text(*this, link));
}

std::string Fabric::interface_name(LinkId link) const {
  if (const auto it = interface_name_.find(link); it != interface_name_.end()) return it->second;
  return is_switch(from(link)) ? fmt::format("Ethernet1/{}", port(link))
                               : fmt::format("port{}", port(link));
}

Result<NodeId> Fabric::find_node(const Token& token) const {
  const std::string_view text = trim(token.text);
  if (const auto it = named_nodes_.find(text); it != named_nodes_.end()) return it->second;
  if (const auto gpu = whole_number<std::uint32_t>(text)) {
    if (*gpu < gpus_.size()) return gpus_[*gpu];
    return out_of_range(token, "gpu", gpus_.size(), " (a bare number is a GPU index)");
  }
  const std::size_t slash = text.rfind('/');
  const bool scoped = slash != std::string_view::npos;
  const auto indexed = parse_indexed(scoped ? text.substr(slash + 1) : text);
  const RoleId role = indexed ? find_role(indexed->kind) : RoleId{};
  if (!role.valid()) {
    std::vector<std::string> known;
    for (const Role& r : roles_) known.push_back(r.name);
    const std::string list = fmt::format("{}", fmt::join(known, ", "));
    const std::string slip = indexed ? did_you_mean(indexed->kind, known) : std::string{};
    for (const auto& [name, node] : named_nodes_) {
      if (known.size() == suggestions_max) break;
      known.push_back(name);
    }
    return unknown(token,
                   fmt::format("unknown node {}{}", shown(token.text),
                               slip.empty() ? did_you_mean(text, known) : slip),
                   fmt::format("write a node name, or role:index with one of the roles {}", list));
  }
  const std::vector<NodeId>& members = roles_[role].nodes;
  if (!scoped) {
    if (indexed->index < members.size()) return members[indexed->index];
    return out_of_range(token, indexed->kind, members.size(), "");
  }
  WEFT_TRY(const ScopeId scope, find_scope({text.substr(0, slash), token.where}));
  std::size_t count = 0;
  for (const NodeId node : members)
    if (is_inside(*this, node, scope) && count++ == indexed->index) return node;
  return out_of_range(token, indexed->kind, count, " in " + name(scope));
}

Result<LinkId> Fabric::find_link(const Token& token) const {
  return find_between(*this, token, "->");
}

Result<CableId> Fabric::find_cable(const Token& token) const {
  const std::string_view text = trim(token.text);
  const std::size_t slash = text.rfind('/');
  const auto port = slash == std::string_view::npos
                        ? std::nullopt
                        : whole_number<std::uint32_t>(text.substr(slash + 1));
  if (!port || text.find("--") != std::string_view::npos) {
    WEFT_TRY(const LinkId link, find_between(*this, token, "--"));
    return cable_of(link);
  }
  WEFT_TRY(const NodeId node, find_node({text.substr(0, slash), token.where}));
  const auto links = out(node);
  if (*port >= links.size()) return out_of_range(token, "port", links.size(), " on " + name(node));
  return cable_of(links[*port]);
}

Result<ScopeId> Fabric::find_scope(const Token& token) const {
  const std::string_view text = trim(token.text);
  if (const auto it = named_scopes_.find(text); it != named_scopes_.end()) return it->second;
  std::vector<std::string> known;
  const auto indexed = parse_indexed(text);
  for (std::size_t k = 0; k < scope_kind_count; ++k) {
    const std::vector<ScopeId>& members = scopes_of_kind_[k];
    if (members.empty()) continue;
    const std::string_view kind = to_text(static_cast<ScopeKind>(k));
    known.emplace_back(kind);
    if (!indexed || indexed->kind != kind) continue;
    if (indexed->index < members.size()) return members[indexed->index];
    return out_of_range(token, kind, members.size(), "");
  }
  const std::string list = fmt::format("{}", fmt::join(known, ", "));
  for (const auto& [name, scope] : named_scopes_) {
    if (known.size() == suggestions_max) break;
    known.push_back(name);
  }
  return unknown(token,
                 fmt::format("unknown scope {}{}", shown(token.text),
                             did_you_mean(indexed ? indexed->kind : text, known)),
                 fmt::format("write kind:index with one of the kinds {}", list));
}

}  // namespace weft::model
