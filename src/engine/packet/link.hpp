// A directed link: its egress queue, its wire, and what both have counted. Internal to the room.
#pragma once

#include <cstdint>

#include "base/units.hpp"
#include "engine/packet/packet.hpp"

namespace weft::engine::packet {

// What links of one rate, latency and tier have in common.
struct LinkKind {
  Rate rate;
  Ps latency = 0;
  std::uint32_t ps_per_byte = 0;  // 0: not a whole number
  std::uint32_t tier = 0;
  std::uint32_t kmin = UINT32_MAX, kmax = UINT32_MAX;  // bytes; ECN
  // The size served last, where ps_per_byte does not do: most packets have one of two sizes.
  Ps full_ps = 0, control_ps = 0;
  std::uint16_t full_size = 0, control_size = 0;

  Ps serialisation(std::uint32_t size) const {
    if (ps_per_byte != 0) return Ps{size} * ps_per_byte;
    if (size == full_size) return full_ps;
    if (size == control_size) return control_ps;
    return static_cast<Ps>((Bytes{size} / rate).ps);
  }
};

// Packets [head, cur) of the ring are on the wire with their arrival times, [cur, tail) wait. When
// a packet starts follows from those before it, so starts are settled when somebody looks.
struct alignas(64) Link {
  Ps free = 0;  // when the sender can start another packet
  Ps due = 0;   // of the arrival in the wheel
  Packet* ring = nullptr;
  std::uint32_t head = 0, cur = 0, tail = 0;
  std::uint32_t capacity = 0;     // a power of two, or nothing yet
  std::uint32_t next_due = none;  // in the wheel's bucket
  std::uint32_t waiting = 0;      // bytes
  std::uint32_t to = 0;           // node
  std::uint32_t owner = 0;        // source: its index; else the node it leaves
  std::uint16_t kind = 0;
  std::uint16_t port = 0;       // ingress port at `to`
  std::uint8_t paused = 0;      // by class
  std::uint8_t source : 1 = 0;  // hosts send here
  std::uint8_t cross : 1 = 0;   // its far end is another partition's
  std::uint8_t dead : 1 = 0;
  std::uint8_t lossy : 1 = 0;
  std::uint8_t drain : 1 = 0;     // from a NIC into its host's memory
  std::uint8_t buffered : 1 = 0;  // leaves a node that buffers
  std::uint8_t guarded : 1 = 0;   // leads to one, and its sender obeys pauses
  std::uint8_t noticed : 1 = 0;   // a departure event is pending
  std::uint8_t listed = 0;        // among the links that have something to hand over
  std::uint8_t queued = 0;        // classes with packets that wait, where there are several

  Packet& at(std::uint32_t i) { return ring[i & (capacity - 1)]; }
  const Packet& at(std::uint32_t i) const { return ring[i & (capacity - 1)]; }
  // Classes, where there are several, with packets that may go.
  std::uint32_t ready() const { return queued & ~std::uint32_t{paused}; }
};
static_assert(sizeof(Link) == 64);

// What every packet changes, kept apart from what is rare.
struct LinkTally {
  std::uint64_t bytes = 0;
  std::uint32_t port = 0;  // of the node that it leaves
  std::uint32_t data = 0, control = 0, marked = 0, queue_max = 0;
};
static_assert(sizeof(LinkTally) == 32);
struct RareTally {
  Ps paused_since = 0, paused_total = 0;
  std::uint64_t pauses = 0, dropped = 0, trimmed = 0;
};
// What the narrow counts of a LinkTally held before they were set back to 0.
struct LinkSums {
  std::uint64_t data = 0, control = 0, marked = 0;
};

}  // namespace weft::engine::packet
