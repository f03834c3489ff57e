#include "model/events/entity.hpp"

#include <fmt/format.h>

#include <array>

#include "base/whole_number.hpp"

namespace weft::model {
namespace {

constexpr std::array<std::string_view, 7> entity_kinds{"none",  "node", "port", "link",
                                                       "cable", "card", "scope"};
constexpr std::string_view card_mark = "card:";

// What stands behind "device/": a port's number, its interface name, or a card.
Result<Entity> find_part(const Fabric& fabric, NodeId node, std::string_view part,
                         const Token& token) {
  const auto links = fabric.out(node);
  if (part.starts_with(card_mark)) {
    const auto index = whole_number<std::uint32_t>(part.substr(card_mark.size()));
    if (index && *index < links.size()) return card_of(node, *index);
    return fail(Errc::unknown, token.where,
                fmt::format("{}: {} has no such card", quote(token.text), fabric.name(node)),
                "write card:INDEX");
  }
  if (const auto port = whole_number<std::uint32_t>(part); port && *port < links.size())
    return port_of(links[*port]);
  if (const LinkId link = find_interface(fabric, node, part); link.valid()) return port_of(link);
  return fail(
      Errc::unknown, token.where,
      fmt::format("{}: {} has no port {}", quote(token.text), fabric.name(node), quote(part)),
      fmt::format("give a port from 0 to {} or an interface name such as {}",
                  links.empty() ? 0 : links.size() - 1,
                  links.empty() ? "none" : fabric.interface_name(links.front())));
}

}  // namespace

std::string_view to_text(EntityKind kind) { return entity_kinds[static_cast<std::size_t>(kind)]; }

std::string name(const Fabric& fabric, const Entity& entity) {
  switch (entity.kind) {
    case EntityKind::none:
      return "";
    case EntityKind::node:
      return fabric.name(NodeId(entity.id));
    case EntityKind::port: {
      const LinkId out(entity.id);
      return fmt::format("{}/{}", fabric.name(fabric.from(out)), fabric.port(out));
    }
    case EntityKind::link:
      return fabric.name(LinkId(entity.id));
    case EntityKind::cable:
      return fabric.name(CableId(entity.id));
    case EntityKind::card:
      return fmt::format("{}/{}{}", fabric.name(NodeId(entity.id)), card_mark, entity.card);
    case EntityKind::scope:
      return fabric.name(ScopeId(entity.id));
  }
  return "";
}

LinkId find_interface(const Fabric& fabric, NodeId node, std::string_view interface_name) {
  for (const LinkId link : fabric.out(node))
    if (fabric.interface_name(link) == interface_name) return link;
  return {};
}

Result<Entity> find_entity(const Fabric& fabric, const Token& token) {
  const std::string_view text = trim(token.text);
  const Token trimmed{text, token.where};
  auto node = fabric.find_node(trimmed);
  if (node) return entity(*node);
  if (auto scope = fabric.find_scope(trimmed)) return entity(*scope);
  if (text.find("->") != std::string_view::npos) {
    WEFT_TRY(const LinkId link, fabric.find_link(trimmed));
    return entity(link);
  }
  if (text.find("--") != std::string_view::npos) {
    WEFT_TRY(const CableId cable, fabric.find_cable(trimmed));
    return entity(cable);
  }
  // Names of devices and interfaces may hold slashes themselves: the longest device that is one.
  for (std::size_t slash = text.rfind('/'); slash != std::string_view::npos && slash > 0;
       slash = text.rfind('/', slash - 1))
    if (const auto device = fabric.find_node({text.substr(0, slash), token.where}))
      return find_part(fabric, *device, text.substr(slash + 1), token);
  return std::unexpected(std::move(node).error());
}

}  // namespace weft::model
