// All state of a run, shared by the partitions that advance it. Internal to the room.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/packet/link.hpp"
#include "engine/packet/message.hpp"
#include "engine/packet/occupancy.hpp"
#include "engine/packet/options.hpp"
#include "engine/packet/packet_memory.hpp"
#include "engine/packet/packet_run.hpp"
#include "engine/packet/protocols.hpp"

namespace weft::engine::packet {

// Bytes that came in by one port in one class and wait in the switch.
struct Ingress {
  std::uint32_t bytes = 0;
  std::uint32_t bound = 0;  // its sender is paused: what it may still take; 0: not paused
};

// When to look at a paused ingress again. Under fixed thresholds and with one class that follows
// from what waits, so that no departure in between has to be looked at.
struct Relief {
  Ps at = never;
  std::uint32_t node = none;
};

// What decides whether a pause is passed on, of a port with a queue.
struct QueuePauses {
  Ps built = 0;    // when a packet came to wait in its empty queue
  Ps resumed = 0;  // when its last pause ended
};

// A node that buffers: a switch, or a NIC that cannot drain at line rate.
struct NodeBuffer {
  std::uint64_t waiting = 0;                     // an upper bound between exact looks
  std::uint64_t pool = 0;                        // bytes shared by all; 0: without bound
  std::uint32_t per_port = 0;                    // of an egress queue; 0: without bound
  std::uint32_t first_ingress = 0;               // into World::ingresses: port x classes + class
  std::uint32_t first_port = 0, port_count = 0;  // into World::ports
  std::uint32_t first_set = 0, set_words = 0;    // into World::port_sets, where it buffers
  std::uint32_t paused = 0;                      // ingresses
  std::uint8_t recording = 0;                    // entries and departures go into the batch
  std::uint64_t waiting_max = 0;                 // exact, of the time before the batch
  std::uint64_t record_above = 0;                // waiting_max, or 0 while recording
  std::uint64_t salt = 0;                        // of its hash
  std::unique_ptr<OccupancyBatch> batch;         // where waiting_max may have to rise
};

// Sets of a node's ports, one bit each. `queued`: where packets may wait to leave; all ports where
// some do are among them. `paused`: ingresses. `relieved`: those that packets left since a look,
// and since one was paused. Then, for each port out, the ingresses whose packets may wait there.
enum class PortSet : std::uint32_t { queued, paused, relieved, first_sources };

inline bool has_port(const std::uint64_t* set, std::uint32_t port) {
  return (set[port / 64] >> (port % 64) & 1) != 0;
}
inline void add_port(std::uint64_t* set, std::uint32_t port) {
  set[port / 64] |= std::uint64_t{1} << (port % 64);
}
inline void remove_port(std::uint64_t* set, std::uint32_t port) {
  set[port / 64] &= ~(std::uint64_t{1} << (port % 64));
}
// Calls `visit` with the ports of a set in order; those that it removes may be of the set.
template <class Visit>
void for_each_port(const std::uint64_t* set, std::uint32_t words, Visit visit) {
  for (std::uint32_t word = 0; word < words; ++word)
    for (std::uint64_t bits = set[word]; bits != 0; bits &= bits - 1)
      visit(word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)));
}

// Where packets of one class wait, when links serve several classes.
struct alignas(32) ClassQueue {
  Packet* ring = nullptr;
  std::uint32_t head = 0, tail = 0, capacity = 0;
  std::uint32_t deficit = 0;

  Packet& at(std::uint32_t i) { return ring[i & (capacity - 1)]; }
  const Packet& at(std::uint32_t i) const { return ring[i & (capacity - 1)]; }
};

// A link that a host sends on: the connections that may send now, served in turn.
struct Source {
  std::uint32_t link = none;
  std::uint32_t last = none;  // served last, in a circle through Sender::next_in_turn
  std::uint8_t woken = 0;     // an event will come
  Ps next_message = 0;        // by the NIC's message rate
};

// What a connection's sending end is doing: `held` by its window or by admission.
enum class Turn : std::uint8_t { idle, in_circle, paced, held };

// The sending end of a connection. Packet numbers count over all of its messages, and wrap: what is
// on its way is far less than 2^32 packets, but what a message has to send may be more.
struct alignas(64) Sender {
  std::uint32_t next = 0;     // to be sent
  std::uint32_t unacked = 0;  // the first one
  std::uint32_t wraps = 0;    // of `unacked`
  std::uint32_t highest = 0;  // all before have been sent before
  std::uint32_t next_in_turn = none;
  std::uint32_t oldest = none;           // message that is not over
  std::uint32_t newest = none;           // message that was posted last
  std::uint32_t sending = none;          // message that `next` belongs to
  std::uint32_t source = none;           // none: no live path
  std::uint32_t path = none;             // into World::paths
  std::uint32_t window = in_flight_max;  // packets
  std::uint16_t payload = 0;             // of a full packet
  Turn turn = Turn::idle;
  std::uint8_t retries : 3 = 0;
  std::uint8_t timer : 1 = 0;   // a timeout event will come
  std::uint8_t failed : 1 = 0;  // gave up
  std::uint8_t traffic_class : 3 = 0;
  Ps progress = 0;  // last acknowledgement, or first packet after idleness
  Ps next_ok = 0;   // by its pace

  // The number of a packet that is on its way, or next, or was acknowledged of late, without wraps.
  std::uint64_t whole(std::uint32_t psn) const {
    return (std::uint64_t{wraps} << 32 | unacked) +
           static_cast<std::uint64_t>(transport::psn_distance(unacked, psn));
  }
};
static_assert(sizeof(Sender) == 64);

// The receiving end.
struct Receiver {
  transport::GobackReceiver in_order;
  std::uint32_t message = none;  // that the last packet belonged to
  std::uint32_t first = none;    // the connection's first message; written by the sender
  std::uint32_t last_route = 0;  // of the last packet, for what is sent back unasked
  std::uint32_t last_link = none;
  std::uint64_t to_come : 48 = 0;  // packets of `message` that are missing
  std::uint64_t last_hop : 5 = 0;
  std::uint64_t ack_due : 1 = 0;      // an event will look whether something is to be acknowledged
  std::uint64_t unanswered : 10 = 0;  // packets since the last acknowledgement
  Ps answer_by = 0;                   // where there are some
};
static_assert(sizeof(Receiver) == 40);
static_assert(ack_every_max < 1u << 10);
inline constexpr std::uint64_t message_packets_max = std::uint64_t{1} << 47;

// What a message is doing.
struct MessageState {
  std::uint32_t next = none;  // of its connection
  // Before it starts: the events it waits for. Then: the upper half of `end`.
  std::uint32_t waits_or_end_high = 0;
  std::uint32_t end_low = 0;

  // The number of the packet behind its last one, without wraps.
  std::uint64_t end() const { return std::uint64_t{waits_or_end_high} << 32 | end_low; }
  void set_end(std::uint64_t psn) {
    end_low = static_cast<std::uint32_t>(psn);
    waits_or_end_high = static_cast<std::uint32_t>(psn >> 32);
  }
};

// Of one class of a link.
struct ClassTally {
  LinkCounters counts;
  std::uint32_t waiting = 0;  // bytes
  bool paused = false;
  Ps paused_since = 0;
};

struct World {
  World(const MessageSet& messages, route::Router& its_router, const Options& its_options)
      : set(messages), router(its_router), fabric(its_router.fabric()), options(its_options) {}

  const MessageSet& set;
  route::Router& router;
  const Fabric& fabric;
  Options options;

  std::uint32_t link_count = 0;  // the fabric's, then drains; twins follow
  std::uint32_t class_count = 1;
  std::uint32_t deficit_classes = 0;  // where several share by weight: these
  PacketPages pages;
  LargeArray<Link> links;
  LargeArray<LinkTally> tallies;
  std::vector<ClassTally> by_class;  // by link and class; empty where they are not counted
  bool watches_departures = false;   // for telemetry or for classes
  std::vector<LinkSums> sums;        // empty until a count could wrap
  std::vector<RareTally> rare;
  std::vector<QueuePauses> queue_pauses;  // by link, where pauses are recorded
  std::vector<LinkKind> kinds;
  std::vector<std::uint32_t> headroom;  // by kind
  LargeArray<ClassQueue> queues;        // by link and class, where there are several
  std::vector<NodeBuffer> nodes;
  std::vector<Ingress> ingresses;
  std::vector<Relief> reliefs;           // by ingress; none where each departure is looked at
  std::vector<std::uint32_t> ports;      // links out, by node
  std::vector<std::uint64_t> port_sets;  // by node; none where memory is without bounds
  std::vector<std::uint32_t> drain;      // by node: link into the host's memory
  std::vector<std::uint32_t> paths;      // links, then `none`
  std::vector<Source> sources;
  std::vector<std::uint8_t> partition;  // by node
  std::vector<double> loss;             // by link, where some link loses

  LargeArray<Sender> senders;
  LargeArray<Receiver> receivers;
  LargeArray<MessageState> message_states;
  std::vector<MessageEnd> ends;
  std::vector<std::uint32_t> phases;  // by message, of a run in phases

  Protocols protocols;
  std::uint32_t fanout = 1;  // queue pairs that stand for one connection of the set (multipath)

  std::uint32_t reserve = 0;    // of an ingress, in bytes
  Ps response = 0;              // to a pause frame that has arrived
  bool accounts = false;        // buffers matter
  bool records_pauses = false;  // for pause trees
  bool shares_pool = false;     // PFC thresholds follow what is left of the pool
  bool gathers = false;         // an acknowledgement may answer several packets
  std::uint32_t full_size = 0, control_size = 0, payload = 0;

  // Packets of a message with bytes on a connection, and the number of the first.
  std::uint64_t packet_count(const Sender& sender, std::uint32_t message) const {
    return (set.messages[message].bytes + sender.payload - 1) / sender.payload;
  }
  std::uint64_t first_psn(const Sender& sender, std::uint32_t message) const {
    return message_states[message].end() - packet_count(sender, message);
  }
  // The number behind all that a connection was given to send.
  std::uint64_t posted_end(const Sender& sender) const {
    return sender.newest == none ? sender.whole(sender.next) : message_states[sender.newest].end();
  }
  // Whether all packets of a message that has started come before `psn`, which is on its way.
  bool ends_before(const Sender& sender, std::uint32_t message, std::uint32_t psn) const {
    return message_states[message].end() <= sender.whole(psn);
  }
  // How many of a message that has started are acknowledged.
  std::uint64_t acknowledged(const Sender& sender, std::uint32_t message) const {
    const std::uint64_t first = first_psn(sender, message), at = sender.whole(sender.unacked);
    return at < first ? 0 : std::min(at - first, packet_count(sender, message));
  }
  // A window of bytes in packets, at least one.
  std::uint32_t window_packets(double bytes) const {
    return static_cast<std::uint32_t>(
        std::clamp(bytes / full_size, 1.0, static_cast<double>(in_flight_max)));
  }

  // Between windows, before any of the links' counts can wrap.
  void keep_counts() {
    sums.resize(link_count);
    for (std::uint32_t id = 0; id < link_count; ++id) {
      LinkTally& tally = tallies[id];
      sums[id].data += std::exchange(tally.data, 0);
      sums[id].control += std::exchange(tally.control, 0);
      sums[id].marked += std::exchange(tally.marked, 0);
    }
  }
  ClassTally& of_class(std::uint32_t link, std::uint32_t traffic_class) {
    return by_class[std::size_t{link} * class_count + traffic_class];
  }
  LinkSums sums_of(std::uint32_t id) const {
    const LinkTally& tally = tallies[id];
    LinkSums out = sums.empty() ? LinkSums{} : sums[id];
    out.data += tally.data;
    out.control += tally.control;
    out.marked += tally.marked;
    return out;
  }
  std::uint64_t* port_set(const NodeBuffer& node, PortSet which) {
    return &port_sets[node.first_set + static_cast<std::size_t>(which) * node.set_words];
  }
  // The ingresses whose packets may wait for a link that leaves by `port`.
  std::uint64_t* sources_at(const NodeBuffer& node, std::uint32_t port) {
    return port_set(node, PortSet::first_sources) + std::size_t{port} * node.set_words;
  }
  std::string port_name(std::uint32_t link) const {
    return links[link].drain ? fabric.name(NodeId(links[link].to)) + "->host"
                             : fabric.name(LinkId(link));
  }
  static constexpr std::uint32_t reverse(std::uint32_t link) { return link ^ 1u; }
  // The links of a path, by its place in `paths`; none of `none`.
  std::span<const std::uint32_t> links_of(std::uint32_t path) const {
    if (path == none) return {};
    std::uint32_t end = path;
    while (paths[end] != none) ++end;
    return {&paths[path], end - path};
  }
  // The path to which packets of a connection keep; empty where each goes its own.
  std::span<const std::uint32_t> kept_path(std::uint32_t connection) const {
    if (options.balance != Balance::path) return {};
    return links_of(senders[connection].path);
  }
  const Ingress& ingress(const NodeBuffer& node, std::uint32_t port,
                         std::uint32_t traffic_class) const {
    return ingresses[node.first_ingress + port * class_count + traffic_class];
  }
  Ingress& ingress(const NodeBuffer& node, std::uint32_t port, std::uint32_t traffic_class) {
    return ingresses[node.first_ingress + port * class_count + traffic_class];
  }
  // Bytes that ingresses hold of the shared memory; node.waiting is no less.
  std::uint64_t shared(const NodeBuffer& node) const {
    if (reserve == 0) return node.waiting;
    std::uint64_t out = 0;
    for (std::uint32_t i = 0; i < node.port_count * class_count; ++i)
      out += std::max(ingresses[node.first_ingress + i].bytes, reserve) - reserve;
    return out;
  }
  // Where `used` bytes are held of the shared memory.
  std::uint64_t xoff(const NodeBuffer& node, std::uint64_t used) const {
    const Pfc& pfc = options.pfc;
    if (pfc.threshold == Pfc::Threshold::fixed) return static_cast<std::uint64_t>(pfc.xoff.count);
    if (node.pool == 0) return UINT64_MAX;
    const std::uint64_t left = node.pool > used ? node.pool - used : 0;
    return reserve + static_cast<std::uint64_t>(pfc.alpha * static_cast<double>(left));
  }
  std::uint64_t xon(const NodeBuffer& node) const {
    const Pfc& pfc = options.pfc;
    if (pfc.threshold == Pfc::Threshold::fixed) return static_cast<std::uint64_t>(pfc.xon.count);
    const std::uint64_t off = xoff(node, shared(node));
    const auto offset = static_cast<std::uint64_t>(pfc.resume_offset.count);
    return off > offset + reserve ? off - offset : reserve;
  }
};

}  // namespace weft::engine::packet
