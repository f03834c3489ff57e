#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include "base/hash.hpp"
#include "model/formats/fabric_yaml.hpp"

namespace weft::model {
namespace {

// YAML text that stands for `text`, quoted unless it is plain beyond doubt.
std::string scalar(std::string_view text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == ':' || c == '/' || c == '-';
  };
  const bool safe = !text.empty() && std::ranges::all_of(text, plain) && text != "null" &&
                    text.front() != '-' && text.front() != ':' && text.back() != ':';
  if (safe) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c >= 0 && c < ' ') {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// A value that is the same for a run of entries, or counts up by one from entry to entry.
class Series {
 public:
  explicit Series(std::int64_t first) : first_(first) {}
  // Takes the value of entry `i` (1, 2, ...) or says that the run ends before it.
  bool fits(std::int64_t value, std::size_t i) const {
    if (i == 1) return value == first_ || (first_ >= 0 && value == first_ + 1);
    return value == at(i);
  }
  void take(std::int64_t value, std::size_t i) {
    if (i == 1) step_ = value - first_;
  }
  std::int64_t at(std::size_t i) const { return first_ + step_ * static_cast<std::int64_t>(i); }
  bool given() const { return first_ >= 0; }
  // "3" or "3..10"
  std::string text(std::size_t count) const {
    return step_ == 0 ? fmt::format("{}", first_) : fmt::format("{}..{}", first_, at(count - 1));
  }

 private:
  std::int64_t first_;
  std::int64_t step_ = 0;
};

// What the reader takes the first node of a role for.
NodeKind kind_by_name(std::string_view role) {
  using enum NodeKind;
  for (const NodeKind kind : {host, gpu, nic, nvswitch, pcie_switch})
    if (role == to_text(kind)) return kind;
  return fabric_switch;
}

class Writer {
 public:
  explicit Writer(const Fabric& fabric) : fabric_(fabric) {}

  std::string text() {
    out_ = "fabric:\n";
    write_defaults();
    out_ += "  scopes:\n";
    for (std::size_t i = 0; i < fabric_.scopes().size();) i = write_scopes(i);
    out_ += "  nodes:\n";
    for (std::size_t i = 0; i < fabric_.node_count();) i = write_nodes(i);
    if (fabric_.cable_count() != 0) out_ += "  links:\n";
    for (std::size_t i = 0; i < fabric_.cable_count();) i = write_cables(i);
    return std::move(out_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  struct LinkKind {
    Rate rate;
    Duration latency;
    friend auto operator<=>(const LinkKind&, const LinkKind&) = default;
  };
  LinkKind kind_of(LinkId link) const { return {fabric_.rate(link), fabric_.latency(link)}; }

  // The most common rate and latency become those of links that give none.
  void write_defaults() {
    if (fabric_.link_count() == 0) return;
    std::map<LinkKind, std::size_t> count;
    for (const LinkId link : fabric_.links()) ++count[kind_of(link)];
    default_ =
        std::ranges::max_element(count, {}, [](const auto& kind) { return kind.second; })->first;
    put("  rate: {}\n  latency: {}\n", to_text(default_.rate), to_text(default_.latency));
  }

  // Index among its kind, or -1.
  std::int64_t scope_index(ScopeId scope) const {
    return scope.valid() ? std::int64_t{fabric_.scopes()[scope].index} : -1;
  }
  std::string_view scope_kind(ScopeId scope) const {
    return scope.valid() ? to_text(fabric_.scopes()[scope].kind) : std::string_view{};
  }

  // Each write_* returns the index behind the last entry it covered.
  std::size_t write_scopes(std::size_t first) {
    const auto& scopes = fabric_.scopes();
    const Fabric::Scope& head = scopes[ScopeId(first)];
    Series parent(scope_index(head.parent));
    std::size_t n = 1;
    for (; first + n < scopes.size() && head.name.empty(); ++n) {
      const Fabric::Scope& next = scopes[ScopeId(first + n)];
      const std::int64_t above = scope_index(next.parent);
      if (next.kind != head.kind || !next.name.empty() || !parent.fits(above, n) ||
          scope_kind(next.parent) != scope_kind(head.parent))
        break;
      parent.take(above, n);
    }
    put("    - {{kind: {}", to_text(head.kind));
    if (!head.name.empty()) put(", name: {}", scalar(head.name));
    if (n > 1) put(", count: {}", n);
    if (parent.given()) put(", parent: {}:{}", scope_kind(head.parent), parent.text(n));
    out_ += "}\n";
    return first + n;
  }

  // The host a node stands in; none for the host itself.
  NodeId host(NodeId node) const {
    return fabric_.kind(node) == NodeKind::host ? NodeId{} : fabric_.host_of(node);
  }
  std::string_view host_role(NodeId node) const {
    const NodeId in = host(node);
    return in.valid() ? std::string_view(fabric_.role_name(in)) : std::string_view{};
  }
  std::int64_t role_index(NodeId node) const {
    return node.valid() ? std::int64_t{fabric_.role_index(node)} : -1;
  }
  NodeId nic(NodeId node) const {
    return fabric_.kind(node) == NodeKind::gpu ? fabric_.nic_of(node) : NodeId{};
  }

  std::string_view model(NodeId node) const {
    return fabric_.kind(node) == NodeKind::gpu ? std::string_view(fabric_.gpu_model(node))
                                               : std::string_view{};
  }

  // Columns of a node that may differ inside a run.
  struct NodeColumns {
    Series scope, host, rail, plane, nic;
  };
  NodeColumns columns(NodeId node) const {
    return {Series(scope_index(fabric_.scope(node))), Series(role_index(host(node))),
            Series(fabric_.rail(node)), Series(fabric_.plane(node)), Series(role_index(nic(node)))};
  }
  static bool continues(NodeColumns& run, const NodeColumns& next, std::size_t i) {
    const auto step = [&](Series NodeColumns::* column, bool commit) {
      const std::int64_t value = (next.*column).at(0);
      if (commit) (run.*column).take(value, i);
      return commit || (run.*column).fits(value, i);
    };
    constexpr std::array all{&NodeColumns::scope, &NodeColumns::host, &NodeColumns::rail,
                             &NodeColumns::plane, &NodeColumns::nic};
    if (!std::ranges::all_of(all, [&](auto column) { return step(column, false); })) return false;
    for (const auto column : all) step(column, true);
    return true;
  }
  bool same_groups(NodeId a, NodeId b) const {
    return fabric_.role_id(a) == fabric_.role_id(b) &&
           scope_kind(fabric_.scope(a)) == scope_kind(fabric_.scope(b)) &&
           host_role(a) == host_role(b) && model(a) == model(b);
  }

  // Whether all of a run are in their hosts' scopes, where the reader puts them by itself.
  bool stands_with_host(std::size_t first, std::size_t count) const {
    for (std::size_t i = first; i < first + count; ++i) {
      const NodeId in = host(NodeId(i));
      if (!in.valid() || fabric_.scope(in) != fabric_.scope(NodeId(i))) return false;
    }
    return true;
  }

  std::size_t write_nodes(std::size_t first) {
    const NodeId head(first);
    const bool named = fabric_.has_given_name(head);
    NodeColumns run = columns(head);
    std::size_t n = 1;
    for (; first + n < fabric_.node_count() && !named; ++n) {
      const NodeId next(first + n);
      if (!same_groups(head, next) || fabric_.has_given_name(next) ||
          !continues(run, columns(next), n))
        break;
    }
    const std::string& role = fabric_.role_name(head);
    put("    - {{role: {}", scalar(role));
    const NodeKind kind = fabric_.kind(head);
    if (fabric_.role_index(head) == 0 && kind != kind_by_name(role))
      put(", kind: {}", to_text(kind));
    if (named) put(", name: {}", scalar(fabric_.name(head)));
    if (n > 1) put(", count: {}", n);
    if (run.host.given())
      put(", host: {}", scalar(fmt::format("{}:{}", host_role(head), run.host.text(n))));
    if (run.scope.given() && !stands_with_host(first, n))
      put(", scope: {}:{}", scope_kind(fabric_.scope(head)), run.scope.text(n));
    if (run.rail.given()) put(", rail: {}", run.rail.text(n));
    if (run.plane.given()) put(", plane: {}", run.plane.text(n));
    if (run.nic.given()) put(", nic: nic:{}", run.nic.text(n));
    if (!model(head).empty()) put(", model: {}", scalar(model(head)));
    out_ += "}\n";
    return first + n;
  }

  struct Cable {
    NodeId a, b;
  };
  Cable cable(std::size_t i) const {
    const LinkId link = forward(CableId(i));
    return {fabric_.from(link), fabric_.to(link)};
  }
  bool has_interfaces(std::size_t i) const {
    return fabric_.has_given_interface(forward(CableId(i))) ||
           fabric_.has_given_interface(reverse(forward(CableId(i))));
  }
  // Whether cable `i` may stand in one entry with `head`, whatever its ends.
  bool alike(std::size_t head, std::size_t i) const {
    const LinkId a = forward(CableId(head)), b = forward(CableId(i));
    return fabric_.rate(a) == fabric_.rate(b) && fabric_.latency(a) == fabric_.latency(b) &&
           fabric_.tier_id(a) == fabric_.tier_id(b) && !has_interfaces(i);
  }
  // Whether `n` parallel cables between these role indexes start at cable `at` (no more, no
  // less).
  bool stand_at(std::size_t at, std::size_t end, std::uint32_t a, std::uint32_t b,
                std::size_t n) const {
    if (at + n > end) return false;
    for (std::size_t i = at; i < at + n; ++i)
      if (!joins(i, a, b)) return false;
    return at + n == end || !joins(at + n, a, b);
  }
  bool joins(std::size_t i, std::uint32_t a, std::uint32_t b) const {
    return fabric_.role_index(cable(i).a) == a && fabric_.role_index(cable(i).b) == b;
  }

  // Being alike is an equivalence, so the end found once holds for all cables before it.
  std::size_t end_of_alike(std::size_t first) {
    if (first < alike_end_) return alike_end_;
    alike_end_ = first + 1;
    if (!has_interfaces(first))
      while (alike_end_ < fabric_.cable_count() && alike(first, alike_end_)) ++alike_end_;
    return alike_end_;
  }

  std::size_t write_cables(std::size_t first) {
    const std::size_t end = end_of_alike(first);
    const std::uint32_t a = fabric_.role_index(cable(first).a);
    const std::uint32_t b = fabric_.role_index(cable(first).b);
    std::size_t parallel = 1;
    while (first + parallel < end && joins(first + parallel, a, b)) ++parallel;
    std::uint32_t right = 1;
    while (stand_at(first + right * parallel, end, a, b + right, parallel)) ++right;
    std::uint32_t left = 1;
    while (
        row_stands(first + std::size_t{left} * right * parallel, end, a + left, b, right, parallel))
      ++left;
    std::uint32_t pairs = 1;
    while (stand_at(first + pairs * parallel, end, a + pairs, b + pairs, parallel)) ++pairs;
    if (pairs > left * right) {
      put_cables(first, "pairs", pairs, pairs, parallel);
      return first + pairs * parallel;
    }
    put_cables(first, "link", left, right, parallel);
    return first + std::size_t{left} * right * parallel;
  }
  bool row_stands(std::size_t at, std::size_t end, std::uint32_t a, std::uint32_t b,
                  std::uint32_t right, std::size_t parallel) const {
    for (std::uint32_t j = 0; j < right; ++j)
      if (!stand_at(at + j * parallel, end, a, b + j, parallel)) return false;
    return true;
  }

  std::string ends(NodeId node, std::uint32_t count) const {
    const std::uint32_t index = fabric_.role_index(node);
    if (count > 1)
      return fmt::format("{}:{}..{}", fabric_.role_name(node), index, index + count - 1);
    std::string name = fabric_.name(node);
    if (fabric_.has_given_name(node) && check_name({name, {}})) return name;
    return fmt::format("{}:{}", fabric_.role_name(node), index);
  }
  void put_cables(std::size_t first, std::string_view key, std::uint32_t left, std::uint32_t right,
                  std::size_t parallel) {
    const LinkId link = forward(CableId(first));
    const auto [a, b] = cable(first);
    const std::string text = scalar(ends(a, left) + "--" + ends(b, right));
    const bool interfaces = has_interfaces(first);
    if (kind_of(link) == default_ && key == "link" && parallel == 1 && !interfaces)
      return put("    - {}\n", text);
    put("    - {{{}: {}", key, text);
    if (fabric_.rate(link) != default_.rate) put(", rate: {}", to_text(fabric_.rate(link)));
    if (fabric_.latency(link) != default_.latency)
      put(", latency: {}", to_text(fabric_.latency(link)));
    if (parallel > 1) put(", count: {}", parallel);
    if (fabric_.has_given_interface(link))
      put(", interface_a: {}", scalar(fabric_.interface_name(link)));
    if (fabric_.has_given_interface(reverse(link)))
      put(", interface_b: {}", scalar(fabric_.interface_name(reverse(link))));
    out_ += "}\n";
  }

  const Fabric& fabric_;
  LinkKind default_;
  std::size_t alike_end_ = 0;
  std::string out_;
};

}  // namespace

std::string to_fabric_yaml(const Fabric& fabric) { return Writer(fabric).text(); }

std::uint64_t digest(const Fabric& fabric) {
  Digest out;
  for (const Fabric::Scope& scope : fabric.scopes()) {
    out.add(static_cast<std::uint64_t>(scope.kind));
    out.add(std::uint64_t{scope.index} << 32 | scope.parent.value);
    out.add(scope.name);
  }
  for (const NodeId node : fabric.nodes()) {
    out.add(static_cast<std::uint64_t>(fabric.kind(node)));
    out.add(std::uint64_t{fabric.scope(node).value} << 32 | fabric.host_of(node).value);
    out.add(std::int64_t{fabric.rail(node)});
    out.add(std::int64_t{fabric.plane(node)});
    out.add(fabric.role_name(node));
    out.add(fabric.name(node));
    if (fabric.kind(node) != NodeKind::gpu) continue;
    out.add(std::uint64_t{fabric.nic_of(node).value});
    out.add(fabric.gpu_model(node));
  }
  for (const LinkId link : fabric.links()) {
    out.add(std::uint64_t{fabric.from(link).value} << 32 | fabric.to(link).value);
    out.add(fabric.rate(link).bps);
    out.add(fabric.latency(link).ps);
    out.add(fabric.interface_name(link));
  }
  return out.value();
}

}  // namespace weft::model
