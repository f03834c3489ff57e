// Any part of the fabric that something can be said about, and its name.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "base/text.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::model {

// A line card is a run of ports of a switch: card k holds ports k * ports_per_card and on.
enum class EntityKind : std::uint8_t { none, node, port, link, cable, card, scope };
std::string_view to_text(EntityKind kind);

struct Entity {
  EntityKind kind = EntityKind::none;
  std::uint32_t id = 0;    // NodeId, LinkId, CableId or ScopeId; of a port the link that leaves by
                           // it; of a card its switch
  std::uint32_t card = 0;  // index, of a card

  friend auto operator<=>(const Entity&, const Entity&) = default;
};

constexpr Entity entity(NodeId node) { return {EntityKind::node, node.value, 0}; }
constexpr Entity entity(LinkId link) { return {EntityKind::link, link.value, 0}; }
constexpr Entity entity(CableId cable) { return {EntityKind::cable, cable.value, 0}; }
constexpr Entity entity(ScopeId scope) { return {EntityKind::scope, scope.value, 0}; }
// The port by which `out` leaves its sender.
constexpr Entity port_of(LinkId out) { return {EntityKind::port, out.value, 0}; }
constexpr Entity card_of(NodeId node, std::uint32_t index) {
  return {EntityKind::card, node.value, index};
}

// "ctsw:5", "ctsw:5/7", "a->b", "a--b", "ctsw:5/card:2", "rack:17".
std::string name(const Fabric& fabric, const Entity& entity);

// The same back, and any other name of the naming grammar. A port may also be given by its
// interface name ("ctsw:5/Ethernet7"); "host:3" is the node. Fails: Errc::unknown with the nearest
// known name. Cost: some lookups by name; for streams keep what was found.
Result<Entity> find_entity(const Fabric& fabric, const Token& token);

// The link that leaves `node` by the port with this interface name; invalid when there is none.
LinkId find_interface(const Fabric& fabric, NodeId node, std::string_view interface_name);

}  // namespace weft::model
