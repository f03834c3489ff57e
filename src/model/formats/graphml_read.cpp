#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <pugixml.hpp>
#include <tuple>
#include <utility>

#include "base/config.hpp"
#include "base/line_index.hpp"
#include "base/text.hpp"
#include "model/formats/graph_export.hpp"

namespace weft::model {
namespace {

// One place of a path such as "zone:0/rack:3=r3".
struct Place {
  ScopeKind kind;
  std::uint32_t index;
  friend auto operator<=>(const Place&, const Place&) = default;
};

// Rewrites the graph as the explicit form of a fabric (scopes, nodes, links), with the positions of
// the XML, so that there is one reader that knows what makes a fabric.
class GraphmlReader {
 public:
  GraphmlReader(std::string_view text, const std::string& file, const GraphmlOptions& options)
      : text_(text), file_(file), options_(options), lines_(text, file) {}

  Result<Fabric> read() {
    pugi::xml_document document;
    const auto parsed = document.load_buffer(text_.data(), text_.size());
    if (!parsed)
      return fail(Errc::parse, lines_.at(parsed.offset),
                  fmt::format("not valid XML: {}", parsed.description()),
                  "check tags and quotes there");
    const pugi::xml_node root = document.child("graphml");
    const pugi::xml_node graph = root.child("graph");
    if (!graph)
      return fail(Errc::parse, {file_, 1, 1}, "no <graph> inside <graphml>", "pass a GraphML file");
    if (graph.next_sibling("graph"))
      error(Errc::unsupported, graph.next_sibling("graph"), "more than one <graph>",
            "use one graph per file");
    read_keys(root);
    for (const pugi::xml_node child : graph.children()) {
      if (errors_.size() >= errors_max) break;
      if (child.type() == pugi::node_element) read_element(child);
    }
    for (const pugi::xml_node edge : edges_) read_edge(edge);
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return read_fabric_nodes(section(), options_.limits);
  }

 private:
  Where at(const pugi::xml_node& node) const { return lines_.at(node.offset_debug()); }
  void error(Errc code, const pugi::xml_node& node, std::string what, std::string hint) {
    if (errors_.size() < errors_max)
      errors_.push_back({code, at(node), std::move(what), std::move(hint), {}});
  }

  void read_keys(const pugi::xml_node& root) {
    for (const pugi::xml_node key : root.children("key"))
      key_name_[key.attribute("id").value()] = key.attribute("attr.name").value();
  }

  void read_element(const pugi::xml_node& child) {
    const std::string_view name = child.name();
    if (name == "node") {
      read_node(child);
    } else if (name == "edge") {
      edges_.push_back(child);
    } else if (name != "data" && name != "desc") {
      error(Errc::unsupported, child, fmt::format("<{:.40}> inside <graph>", name),
            "use only <node> and <edge> in the graph");
    }
  }

  using Fields = std::map<std::string, Config, std::less<>>;  // by attribute name
  Fields attributes(const pugi::xml_node& node) {
    Fields out;
    for (const pugi::xml_node child : node.children()) {
      const std::string_view name = child.name();
      if (name == "port" || name == "graph" || name == "hyperedge")
        error(Errc::unsupported, child, fmt::format("<{}> inside <{}>", name, node.name()),
              "use only <node> and <edge> in the graph");
      if (name != "data") continue;
      const auto key = key_name_.find(child.attribute("key").value());
      if (key == key_name_.end()) {
        error(Errc::unknown, child,
              fmt::format("<data> uses the key \"{:.40}\", which no <key> declares",
                          child.attribute("key").value()),
              "add a <key> at the top");
        continue;
      }
      out[key->second] = Config::scalar(std::string(trim(child.child_value())), at(child));
    }
    return out;
  }

  // Moves the attributes `names` over to a map of the explicit form.
  static void take(Fields& from, std::initializer_list<std::string_view> names, Config& to) {
    for (const std::string_view name : names)
      if (const auto it = from.find(name); it != from.end() && !it->second.text.empty())
        to.fields.push_back({std::string(name), it->second.where, std::move(it->second)});
  }
  static void put(Config& to, std::string_view key, std::string text, const Where& where) {
    to.fields.push_back({std::string(key), where, Config::scalar(std::move(text), where)});
  }

  void read_node(const pugi::xml_node& node) {
    const Where where = at(node);
    const std::string id = node.attribute("id").value();
    if (id.empty()) return error(Errc::parse, node, "<node> has no id", "give each node an id");
    Fields fields = attributes(node);
    const auto text = [&](std::string_view key) {
      const auto it = fields.find(key);
      return it == fields.end() ? std::string{} : it->second.text;
    };
    Config entry = Config::map(where);
    const std::string role = !text("role").empty()   ? text("role")
                             : !text("kind").empty() ? text("kind")
                                                     : "switch";
    put(entry, "role", role, where);
    const std::string natural = fmt::format("{}:{}", role, role_count_[role]++);
    const bool number = id.find_first_not_of("0123456789") == id.npos;
    const std::string name = number ? "n" + id : id;
    if (!name_of_.emplace(id, name).second)
      return error(Errc::value, node, fmt::format("duplicate id \"{:.80}\"", id),
                   "give each node a unique id");
    if (name != natural) put(entry, "name", name, where);
    take(fields, {"kind", "host", "rail", "plane", "nic", "model"}, entry);
    if (!text("scope").empty())
      if (const auto place = read_scope(fields.find("scope")->second))
        scope_uses_.emplace_back(nodes_.size(), *place);
    nodes_.push_back(std::move(entry));
  }

  // "zone:0/rack:3=name"; notes all places of the path and returns the innermost.
  std::optional<Place> read_scope(const Config& path) {
    std::optional<Place> above;
    for (const std::string_view step : split(path.text, '/')) {
      const std::string_view indexed = step.substr(0, step.find('='));
      const std::size_t colon = indexed.find(':');
      const auto kind = kind_of(indexed.substr(0, colon));
      const std::string_view digits = colon == indexed.npos ? "" : indexed.substr(colon + 1);
      std::uint32_t index = 0;
      const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
      if (!kind || digits.empty() || bad != std::errc{} || end != digits.data() + digits.size()) {
        if (errors_.size() < errors_max)
          errors_.push_back({Errc::parse,
                             path.where,
                             fmt::format("\"{:.40}\" is not a place", step),
                             "write e.g. \"zone:0/rack:3\"",
                             {}});
        return {};
      }
      const Place place{*kind, index};
      const auto name = step.size() > indexed.size() ? step.substr(indexed.size() + 1) : "";
      const auto [it, is_new] = scopes_.try_emplace(place, above, std::string(name), path.where);
      if (!is_new && (it->second.parent != above || it->second.name != name)) {
        if (errors_.size() < errors_max)
          errors_.push_back({Errc::value,
                             path.where,
                             fmt::format("\"{:.80}\" had another name or location before", step),
                             "give a place the same path everywhere",
                             {}});
        return {};
      }
      above = place;
    }
    return above;
  }
  static std::optional<ScopeKind> kind_of(std::string_view name) {
    for (std::size_t k = 0; k < scope_kind_count; ++k)
      if (to_text(static_cast<ScopeKind>(k)) == name) return static_cast<ScopeKind>(k);
    return {};
  }

  void read_edge(const pugi::xml_node& edge) {
    const Where where = at(edge);
    std::array<std::string, 2> ends;
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string id = edge.attribute(i == 0 ? "source" : "target").value();
      const auto node = name_of_.find(id);
      if (node == name_of_.end())
        return error(Errc::unknown, edge,
                     fmt::format("the edge's {} \"{:.80}\" is not the id of a node{}",
                                 i == 0 ? "source" : "target", id, near(id)),
                     "use the id of a <node>");
      ends[i] = node->second;
    }
    Fields fields = attributes(edge);
    Config entry = Config::map(where);
    put(entry, "link", ends[0] + "--" + ends[1], where);
    take(fields, {"rate", "latency", "interface_a", "interface_b"}, entry);
    links_.push_back(std::move(entry));
  }
  std::string near(std::string_view id) const {
    constexpr std::size_t candidates_max = 2'000;  // bounds the search
    std::vector<std::string> known;
    for (const auto& [name, ours] : name_of_)
      if (known.size() < candidates_max) known.push_back(name);
    return did_you_mean(id, known);
  }

  // Places get indexes without gaps, in the order of those in the file.
  Config section() {
    const Where where{file_, 1, 1};
    std::map<Place, std::string> reference;
    std::map<ScopeKind, std::size_t> count;
    Config scopes = Config::list(where);
    for (const auto& [place, scope] : scopes_) {
      const std::string_view kind = to_text(place.kind);
      Config entry = Config::map(scope.where);
      put(entry, "kind", std::string(kind), scope.where);
      if (!scope.name.empty()) put(entry, "name", scope.name, scope.where);
      if (scope.parent) put(entry, "parent", reference[*scope.parent], scope.where);
      reference[place] = fmt::format("{}:{}", kind, count[place.kind]++);
      scopes.items.push_back(std::move(entry));
    }
    for (const auto& [node, place] : scope_uses_)
      put(nodes_[node], "scope", reference[place], nodes_[node].where);
    Config out = Config::map(where);
    if (options_.rate > Rate{}) put(out, "rate", to_text(options_.rate), where);
    const auto put_list = [&](std::string_view key, std::vector<Config>&& items) {
      Config list = Config::list(where);
      list.items = std::move(items);
      out.fields.push_back({std::string(key), where, std::move(list)});
    };
    put_list("scopes", std::move(scopes.items));
    put_list("nodes", std::move(nodes_));
    put_list("links", std::move(links_));
    return out;
  }

  struct ScopeEntry {
    std::optional<Place> parent;
    std::string name;
    Where where;
  };
  std::string_view text_;
  const std::string& file_;
  const GraphmlOptions& options_;
  LineIndex lines_;
  Errors errors_;
  std::map<std::string, std::string> key_name_;              // key id -> attribute name
  std::map<std::string, std::string, std::less<>> name_of_;  // node id -> our name
  std::map<std::string, std::size_t> role_count_;
  std::vector<pugi::xml_node> edges_;
  std::map<Place, ScopeEntry> scopes_;
  std::vector<std::pair<std::size_t, Place>> scope_uses_;  // (position in nodes_, where it is)
  std::vector<Config> nodes_, links_;
};

}  // namespace

Result<Fabric> read_graphml(std::string_view text, const std::string& file,
                            const GraphmlOptions& options) {
  WEFT_TRY_STATUS(check_text_size(text, file, 256 << 20, "export a smaller part"));
  return GraphmlReader(text, file, options).read();
}

}  // namespace weft::model
