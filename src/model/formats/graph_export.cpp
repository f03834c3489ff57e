#include "model/formats/graph_export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/markup.hpp"

namespace weft::model {
namespace {

template <class... Args>
void put(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

std::string dot_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "\"";
}

std::string_view dot_shape(NodeKind kind) {
  switch (kind) {
    case NodeKind::host:
      return "folder";
    case NodeKind::gpu:
      return "square";
    case NodeKind::nic:
      return "ellipse";
    case NodeKind::nvswitch:
    case NodeKind::pcie_switch:
      return "diamond";
    case NodeKind::fabric_switch:
      return "box";
  }
  std::unreachable();
}

class DotWriter {
 public:
  DotWriter(const Fabric& fabric, GraphDetail detail)
      : fabric_(fabric),
        shown_(fabric.node_count(), 0),
        nodes_of_(fabric.scopes().size()),
        inside_(fabric.scopes().size()) {
    for (const NodeId node : fabric.nodes())
      if (detail == GraphDetail::all || touches_network(node)) show(node);
    const auto& scopes = fabric.scopes();
    for (const ScopeId scope : ids<ScopeId>(scopes.size()))
      (scopes[scope].parent.valid() ? inside_[scopes[scope].parent] : roots_).push_back(scope);
  }

  std::string write() {
    out_ = "graph fabric {\n  node [fontsize=10];\n";
    for (const ScopeId root : roots_) write_scope(root, 1);
    for (const LinkId link : fabric_.links())
      if (link == forward(cable_of(link))) write_edge(link);
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  bool touches_network(NodeId node) const {
    if (fabric_.is_switch(node)) return true;
    for (const LinkId link : fabric_.out(node))
      if (fabric_.is_switch(fabric_.to(link))) return true;
    return false;
  }
  void show(NodeId node) {
    shown_[node] = 1;
    nodes_of_[fabric_.scope(node)].push_back(node);
  }

  // Scopes nest as deep as there are kinds of them.
  void write_scope(ScopeId scope, int depth) {
    const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
    put(out_, "{}subgraph {} {{\n{}  label={};\n", indent,
        dot_quoted("cluster " + fabric_.name(scope)), indent, dot_quoted(fabric_.name(scope)));
    for (const NodeId node : nodes_of_[scope])
      put(out_, "{}  {} [shape={}, role={}, kind={}];\n", indent, dot_quoted(fabric_.name(node)),
          dot_shape(fabric_.kind(node)), dot_quoted(fabric_.role_name(node)),
          to_text(fabric_.kind(node)));
    for (const ScopeId child : inside_[scope]) write_scope(child, depth + 1);
    put(out_, "{}}}\n", indent);
  }
  void write_edge(LinkId link) {
    const NodeId a = fabric_.from(link), b = fabric_.to(link);
    if (shown_[a] == 0 || shown_[b] == 0) return;
    put(out_, "  {} -- {} [rate=\"{}\", latency=\"{}\"];\n", dot_quoted(fabric_.name(a)),
        dot_quoted(fabric_.name(b)), to_text(fabric_.rate(link)), to_text(fabric_.latency(link)));
  }

  const Fabric& fabric_;
  Column<NodeId, std::uint8_t> shown_;
  Column<ScopeId, std::vector<NodeId>> nodes_of_;
  Column<ScopeId, std::vector<ScopeId>> inside_;
  std::vector<ScopeId> roots_;
  std::string out_;
};

// XML has no control characters, escaped or not.
std::string xml_escaped(std::string_view text) {
  std::string out = escape_markup(text);
  std::ranges::replace_if(out, [](char c) { return c >= 0 && c < ' '; }, '?');
  return out;
}

class GraphmlWriter {
 public:
  explicit GraphmlWriter(const Fabric& fabric) : fabric_(fabric) {}

  std::string write() {
    out_ =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n";
    for (const std::string_view name : {"role", "kind", "scope", "host", "nic", "model"})
      put_key("node", name, "string");
    for (const std::string_view name : {"rail", "plane"}) put_key("node", name, "int");
    for (const std::string_view name : {"rate", "latency", "interface_a", "interface_b"})
      put_key("edge", name, "string");
    out_ += "  <graph id=\"fabric\" edgedefault=\"undirected\">\n";
    for (const NodeId node : fabric_.nodes()) write_node(node);
    for (const LinkId link : fabric_.links())
      if (link == forward(cable_of(link))) write_edge(link);
    out_ += "  </graph>\n</graphml>\n";
    return std::move(out_);
  }

 private:
  void put_key(std::string_view what, std::string_view name, std::string_view type) {
    put(out_, "  <key id=\"{1}\" for=\"{0}\" attr.name=\"{1}\" attr.type=\"{2}\"/>\n", what, name,
        type);
  }
  void put_data(std::string_view key, std::string_view value) {
    put(out_, "<data key=\"{}\">{}</data>", key, xml_escaped(value));
  }
  std::string scope_path(ScopeId scope) const {
    const Fabric::Scope& s = fabric_.scopes()[scope];
    std::string out = s.parent.valid() ? scope_path(s.parent) + "/" : "";
    put(out, "{}:{}", to_text(s.kind), s.index);
    if (!s.name.empty()) put(out, "={}", s.name);
    return out;
  }

  void write_node(NodeId node) {
    put(out_, "    <node id=\"{}\">", xml_escaped(fabric_.name(node)));
    put_data("role", fabric_.role_name(node));
    put_data("kind", to_text(fabric_.kind(node)));
    put_data("scope", scope_path(fabric_.scope(node)));
    const NodeId host = fabric_.host_of(node);
    if (host.valid() && host != node) put_data("host", fabric_.name(host));
    if (fabric_.kind(node) == NodeKind::gpu && fabric_.nic_of(node).valid())
      put_data("nic", fabric_.name(fabric_.nic_of(node)));
    if (fabric_.kind(node) == NodeKind::gpu && !fabric_.gpu_model(node).empty())
      put_data("model", fabric_.gpu_model(node));
    if (fabric_.rail(node) != no_lane) put_data("rail", fmt::format("{}", fabric_.rail(node)));
    if (fabric_.plane(node) != no_lane) put_data("plane", fmt::format("{}", fabric_.plane(node)));
    out_ += "</node>\n";
  }
  void write_edge(LinkId link) {
    put(out_, "    <edge source=\"{}\" target=\"{}\">",
        xml_escaped(fabric_.name(fabric_.from(link))), xml_escaped(fabric_.name(fabric_.to(link))));
    put_data("rate", to_text(fabric_.rate(link)));
    put_data("latency", to_text(fabric_.latency(link)));
    if (fabric_.has_given_interface(link)) put_data("interface_a", fabric_.interface_name(link));
    if (fabric_.has_given_interface(reverse(link)))
      put_data("interface_b", fabric_.interface_name(reverse(link)));
    out_ += "</edge>\n";
  }

  const Fabric& fabric_;
  std::string out_;
};

}  // namespace

std::string to_dot(const Fabric& fabric, GraphDetail detail) {
  return DotWriter(fabric, detail).write();
}

std::string to_graphml(const Fabric& fabric) { return GraphmlWriter(fabric).write(); }

}  // namespace weft::model
