// Who may send: credit pulled by receivers (EQDS), and clear-to-send for slots of a channel (Meta).
#include <algorithm>

#include "engine/packet/shard_link.hpp"

namespace weft::engine::packet {
namespace {

constexpr std::uint64_t demand_max = (1u << psn_bits) - 1;  // of one request

}  // namespace

// The sender has `packets` more to send, or again; tells the receiver what its credit lacks.
void Shard::ask_for_credit(std::uint32_t connection, std::uint64_t packets) {
  send_request(connection, world_.protocols.pull_senders[connection].on_bytes(packets, demand_max));
}

// Nothing came for long. A slot whose chunk is acknowledged is drained, clearance or not.
void Shard::ask_again(std::uint32_t connection) {
  Protocols& p = world_.protocols;
  if (world_.options.admission == Admission::pull) {
    send_request(connection, p.pull_senders[connection].ask_again(demand_max));
  } else if (world_.senders[connection].next == world_.senders[connection].unacked) {
    p.clear_slots[connection] = world_.options.cts.channels;
  }
}

void Shard::send_request(std::uint32_t connection, std::uint64_t demand) {
  const Sender& sender = world_.senders[connection];
  if (demand == 0) return;
  if (sender.source == none) return keep_request(connection, demand);
  Packet request;
  request.connection = connection;
  request.type = static_cast<std::uint32_t>(PacketType::request) & 7;
  request.psn = demand & demand_max;
  request.traffic_class = world_.options.scheduler.control_class & 7;
  request.path = route_of(connection);
  request.size = static_cast<std::uint16_t>(world_.control_size);
  send(world_.sources[sender.source].link, request);
}

// There is no path. Once there is one, what was asked for meanwhile is told: see ask_on_new_path().
void Shard::keep_request(std::uint32_t connection, std::uint64_t demand) {
  const auto amount = static_cast<std::uint32_t>(demand);
  std::vector<Repair::Credit>& credits = repairs_[connection].credits;
  const auto kept = std::ranges::find(credits, never, &Repair::Credit::due);
  if (kept == credits.end())
    credits.push_back({never, amount});
  else
    kept->amount += amount;
}

void Shard::ask_on_new_path(std::uint32_t connection) {
  const auto found = repairs_.find(connection);
  if (found == repairs_.end() || world_.senders[connection].source == none) return;
  std::vector<Repair::Credit>& credits = found->second.credits;
  const auto kept = std::ranges::find(credits, never, &Repair::Credit::due);
  if (kept == credits.end()) return;
  const std::uint32_t amount = kept->amount;
  credits.erase(kept);
  if (found->second.empty()) repairs_.erase(found);
  send_request(connection, amount);
}

void Shard::on_request(const Packet& packet) {
  world_.receivers[packet.connection].last_route = packet.path;
  demand(packet.connection, packet.psn);
}

// The receiver is to give credit for `packets` more.
void Shard::demand(std::uint32_t connection, std::uint32_t packets) {
  Protocols& p = world_.protocols;
  const std::uint32_t node = p.ends[connection].dst;
  p.pull_pacers[node].on_demand(p.pull_entries, connection, packets, now_);
  arm_pacer(node);
}

// What packet met on its way tells the receiver how fast to give credit.
void Shard::note_arrival(const Packet& packet) {
  using Met = transport::CreditRate::Met;
  Protocols& p = world_.protocols;
  const bool by_last_switch = packet.asks == 1;
  const Met met = packet.is_data() ? (packet.marked ? Met::mark : Met::nothing)
                  : by_last_switch ? Met::last_trim
                                   : Met::trim;
  p.credit_rates[p.ends[packet.connection].dst].on_packet(met, now_);
}

void Shard::arm_pacer(std::uint32_t node) {
  Protocols& p = world_.protocols;
  const Ps due = p.pull_pacers[node].due();
  if (due == never || p.pull_armed[node]) return;
  p.pull_armed[node] = 1;
  push(std::max(now_, due), EventKind::grant, node);
}

// `id`: with pull credit the receiving NIC, with CTS the connection.
void Shard::on_grant_due(std::uint32_t id) {
  Protocols& p = world_.protocols;
  std::uint32_t connection = id;
  std::uint32_t amount = 1;
  if (world_.options.admission == Admission::pull) {
    p.pull_armed[id] = 0;
    transport::PullParameters pace = p.pull_profiles[id];
    if (!p.credit_rates.empty()) pace.interval = p.credit_rates[id].stretched(pace.interval, now_);
    const transport::PullGrant grant = p.pull_pacers[id].next(pace, p.pull_entries, now_);
    connection = grant.connection;
    amount = static_cast<std::uint32_t>(grant.bytes);
    arm_pacer(id);
  }
  const bool high = world_.options.admission == Admission::pull ||
                    world_.options.cts.queue == CtsOptions::Queue::high;
  const Scheduler& scheduler = world_.options.scheduler;
  send_back(connection, PacketType::grant, amount,
            high ? scheduler.control_class : scheduler.data_class);
}

// A packet that no other has asked for, the way back that the last one came.
void Shard::send_back(std::uint32_t connection, PacketType type, std::uint32_t psn,
                      std::uint32_t traffic_class) {
  const Protocols& p = world_.protocols;
  const Receiver& receiver = world_.receivers[connection];
  Packet packet;
  packet.connection = connection;
  packet.type = static_cast<std::uint32_t>(type) & 7;
  packet.psn = psn & ((1u << psn_bits) - 1);
  packet.traffic_class = traffic_class & 7;
  packet.asks = type == PacketType::ack ? 1 : 0;
  packet.path = receiver.last_route;
  packet.set_place(0, receiver.last_hop);
  packet.size = static_cast<std::uint16_t>(world_.control_size);
  if (!p.by_table(connection))
    return send(World::reverse(world_.paths[packet.path + packet.hop()]), packet);
  const Ends& ends = p.ends[connection];
  if (const auto path = world_.kept_path(connection); !path.empty()) {
    packet.set_place(0, static_cast<std::uint32_t>(path.size()) - 1);
    return send(World::reverse(path.back()), packet);
  }
  if (ends.src_target == route::Fib::no_target) return;
  const auto out = p.fib->next(NodeId(ends.dst), ends.src_target);
  if (out.empty()) {
    if (p.selective()) note_loss(packet, ends.dst);
    return;
  }
  // Ports share credits as they do what comes by them. An answer that is late must not depend on
  // the time: what is replayed is shifted.
  const bool spreads = type == PacketType::grant && is_by_packet(world_.options.balance);
  const LinkId port = spreads ? out[mix64(mix64(connection) + now_) % out.size()]
                              : Protocols::kept_link(out, connection);
  send(port.value, packet);
}

void Shard::on_grant(const Packet& packet) {
  Protocols& p = world_.protocols;
  if (world_.options.admission == Admission::pull) {
    p.pull_senders[packet.connection].on_credit(packet.psn);
    if (p.pull_senders[packet.connection].asked() < demand_max / 2)
      ask_for_credit(packet.connection, 0);  // what was more than one request can say
  } else {
    std::uint32_t& clear = p.clear_slots[packet.connection];
    clear = std::min(clear + 1, world_.options.cts.channels);
  }
  if (world_.senders[packet.connection].turn == Turn::held) activate(packet.connection);
}

// The last packet of a chunk clears its slot, once the proxy has drained it.
void Shard::clear_slot(std::uint32_t connection) {
  const Receiver& receiver = world_.receivers[connection];
  const std::uint64_t come =
      world_.packet_count(world_.senders[connection], receiver.message) - receiver.to_come;
  if (receiver.to_come == 0 || come % world_.protocols.chunk_packets == 0)
    push(now_ + static_cast<Ps>(world_.options.cts.proxy_delay.ps), EventKind::grant, connection);
}

}  // namespace weft::engine::packet
