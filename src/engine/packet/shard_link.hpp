// The part of Shard that every packet passes on every link. Internal to the room.
#pragma once

#include <algorithm>

#include "engine/packet/shard.hpp"

namespace weft::engine::packet {

// Returns when it is at the far end.
inline Ps Shard::depart(std::uint32_t id, Link& link, Packet& place, PacketFacts facts, Ps start) {
  const LinkKind& kind = world_.kinds[link.kind];
  link.free = start + kind.serialisation(facts.size);
  place.t = link.free + kind.latency;
  ++counters_.hops;
  LinkTally& tally = world_.tallies[id];
  tally.bytes += facts.size;
  (facts.kind == PacketType::data ? tally.data : tally.control) += 1;
  // An ACK carries the mark back.
  tally.marked += facts.marked & (facts.kind <= PacketType::trimmed ? 1u : 0u);
  if (world_.watches_departures) [[unlikely]]
    watch_departure(id, link, place);
  return place.t;
}

// So much more waits at a switch.
inline void Shard::enter_buffer(NodeBuffer& node, std::uint32_t size) {
  node.waiting += size;
  if (node.waiting > node.record_above) record_entry(node, size);
}

// A packet that waited at a switch no longer does, since `start`.
inline void Shard::leave_buffer(NodeBuffer& node, const Packet& packet, Ps start) {
  node.waiting -= packet.size;
  if (node.recording) node.batch->leave(start, packet.size);
  if (node.paused > 0) add_port(world_.port_set(node, PortSet::relieved), packet.port());
  world_.ingress(node, packet.port(), packet.traffic_class).bytes -= packet.size;
}

inline void Shard::settle(std::uint32_t id, Link& link, Ps t) {
  if (link.waiting > 0 && link.free <= t) settle_waiting(id, link, t);
}

template <class Ring>
void Shard::grow(Ring& ring) {
  constexpr std::uint32_t first = 16;
  const std::uint32_t capacity = std::max(first, 2 * ring.capacity);
  Packet* larger = memory_.take(capacity);
  for (std::uint32_t i = ring.head; i != ring.tail; ++i) larger[i & (capacity - 1)] = ring.at(i);
  if (ring.ring != nullptr) memory_.give(ring.ring, ring.capacity);
  ring.ring = larger;
  ring.capacity = capacity;
}

// Something on this link is for another shard.
inline void Shard::list(std::uint32_t id, Link& link) {
  if (link.listed) return;
  link.listed = 1;
  outbox_[world_.partition[link.to]].links.push_back(id);
}

// A place at the end of the link's ring. The packet is written there and changed there: a copy
// made elsewhere would have to be read again before its small fields have reached the cache.
inline Packet& Shard::slot(Link& link) {
  if (link.tail - link.head == link.capacity) grow(link);
  return link.at(link.tail);
}

// Onto the wire, behind all that is there; nothing waits in the ring.
inline void Shard::append(std::uint32_t id, Link& link, Ps arrival) {
  if (link.cross) {
    list(id, link);
  } else if (link.head == link.cur) {
    wheel_.push_arrival(arrival, id);
  }
  ++link.tail;
  ++link.cur;
}

}  // namespace weft::engine::packet
