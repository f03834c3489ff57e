// What hosts do: start messages, send, acknowledge, send again.
#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "engine/packet/shard_link.hpp"

namespace weft::engine::packet {
namespace {

constexpr std::uint32_t retry_limit = 7;  // as InfiniBand's retry count

// a < b for packet numbers that may have wrapped.
constexpr bool less(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}

}  // namespace

// Messages.

// The queue pair that carries a message: of several with paths of their own, the one with the
// fewest bytes outstanding (HPN).
std::uint32_t Shard::choose_queue_pair(std::uint32_t message) const {
  const std::uint32_t first = world_.set.messages[message].connection * world_.fanout;
  std::uint32_t best = first;
  std::uint64_t least = UINT64_MAX;
  for (std::uint32_t c = first; c < first + world_.fanout; ++c) {
    const Sender& sender = world_.senders[c];
    const std::uint64_t left = world_.posted_end(sender) - sender.whole(sender.unacked);
    if (sender.source == none || left >= least) continue;
    best = c;
    least = left;
  }
  return best;
}

void Shard::on_start(std::uint32_t message) {
  const Message& m = world_.set.messages[message];
  MessageEnd& end = world_.ends[message];
  WEFT_CHECK(end.start == never && end.end == never);
  end.start = now_;
  if (m.bytes == 0) {
    end.arrived = end.end = now_;
    ++messages_over_;
    release(message, Dependent::When::arrived);
    release(message, Dependent::When::acknowledged);
    return;
  }
  const std::uint32_t c = world_.fanout == 1 ? m.connection : choose_queue_pair(message);
  Sender& sender = world_.senders[c];
  MessageState& state = world_.message_states[message];
  const std::uint64_t packets = world_.packet_count(sender, message);
  state.set_end(world_.posted_end(sender) + packets);
  if (sender.newest == none) {
    world_.receivers[c].first = message;
  } else {
    world_.message_states[sender.newest].next = message;
  }
  sender.newest = message;
  if (sender.oldest == none) sender.oldest = message;
  if (sender.sending == none) sender.sending = message;
  if (world_.options.admission == Admission::pull) {
    if (sender.next == sender.unacked) world_.protocols.pull_senders[c].on_idle();
    ask_for_credit(c, packets);
  }
  activate(c);
}

void Shard::release(std::uint32_t message, Dependent::When when) {
  const std::vector<std::uint32_t>& phases = world_.phases;
  bool leaves = false;
  for (const Dependent& d : world_.set.dependents_of(message)) {
    if (d.when != static_cast<std::uint32_t>(when)) continue;
    if (!phases.empty() && phases[d.message] != phases[message]) {
      leaves = true;
    } else {
      satisfy_one(d.message);
    }
  }
  if (leaves) outputs_.push_back({message, when});
}

void Shard::satisfy(std::uint32_t message, Ps t) {
  now_ = t;
  satisfy_one(message);
}

void Shard::satisfy_one(std::uint32_t message) {
  if (--world_.message_states[message].waits_or_end_high > 0) return;
  const Message& next = world_.set.messages[message];
  push(std::max(now_ + Ps{next.delay_ns} * 1000, next.not_before_ps), EventKind::start, message);
}

// Sending.

void Shard::wake(std::uint32_t id) {
  const Link& link = world_.links[id];
  Source& source = world_.sources[link.owner];
  if (source.woken || source.last == none) return;
  source.woken = 1;
  push(std::max(now_, link.free), EventKind::nic, id);
}

std::uint32_t Shard::in_flight(std::uint32_t connection, const Sender& sender) const {
  return world_.protocols.selective() ? world_.protocols.in_flight[connection]
                                      : sender.next - sender.unacked;
}

bool Shard::has_more(std::uint32_t connection, const Sender& sender) const {
  return sender.sending != none || is_again(connection);
}

// Whether the next packet has been sent before, under selective repeat.
bool Shard::is_again(std::uint32_t connection) const {
  return world_.protocols.selective() &&
         world_.protocols.selective_senders[connection].lost_count() > 0;
}

// Whether windows and admission let the next packet go.
bool Shard::may_send(std::uint32_t connection, const Sender& sender) const {
  if (in_flight(connection, sender) >= sender.window) return false;
  const Protocols& p = world_.protocols;
  if (p.selective()) {
    const bool again = p.selective_senders[connection].lost_count() > 0;
    if (!again && sender.next - sender.unacked >= p.window_words * 64) return false;
  }
  switch (world_.options.admission) {
    case Admission::open:
      return true;
    case Admission::pull:
      return p.pull_senders[connection].may_send(1);
    case Admission::cts:
      break;
  }
  const std::uint64_t offset = sender.whole(sender.next) - world_.first_psn(sender, sender.sending);
  return offset % p.chunk_packets != 0 || p.clear_slots[connection] > 0 ||
         less(sender.next, p.slotted[connection]);
}

// Puts the connection into its source's circle if it may send, or says what it waits for.
void Shard::activate(std::uint32_t connection) {
  Sender& sender = world_.senders[connection];
  if (sender.turn == Turn::in_circle) return;
  if (sender.turn == Turn::paced && now_ < sender.next_ok) return;
  sender.turn = Turn::idle;
  if (!has_more(connection, sender) || sender.source == none || sender.failed) return;
  if (!may_send(connection, sender)) {
    sender.turn = Turn::held;
    // What would let it go may get lost.
    if (world_.options.admission != Admission::open && in_flight(connection, sender) == 0) {
      sender.progress = now_;
      arm_timeout(connection);
    }
    return;
  }
  if (sender.next_ok > now_) {
    sender.turn = Turn::paced;
    return push(sender.next_ok, EventKind::ready, connection);
  }
  if (!world_.protocols.next_entropy.empty()) [[unlikely]]
    go_to_port(connection);
  Source& source = world_.sources[sender.source];
  sender.turn = Turn::in_circle;
  if (source.last == none) {
    sender.next_in_turn = connection;
  } else {
    sender.next_in_turn = world_.senders[source.last].next_in_turn;
    world_.senders[source.last].next_in_turn = connection;
  }
  source.last = connection;
  wake(source.link);
}

// At which the next packet takes its place.
void Shard::go_to_port(std::uint32_t connection) {
  Protocols& p = world_.protocols;
  if (!p.by_table(connection)) return;
  std::uint32_t& entropy = p.next_entropy[connection];
  if (entropy == none) entropy = draw_entropy(connection);
  const LinkId link = p.first_link(p.first_links(connection), connection, entropy);
  world_.senders[connection].source = world_.links[link.index()].owner;
}

// `connection` is the next in turn.
void Shard::leave_circle(Source& source, std::uint32_t connection, Turn turn) {
  Sender& sender = world_.senders[connection];
  if (source.last == connection) {
    source.last = none;
  } else {
    world_.senders[source.last].next_in_turn = sender.next_in_turn;
  }
  sender.turn = turn;
}

void Shard::on_nic(std::uint32_t id) {
  Link& link = world_.links[id];
  Source& source = world_.sources[link.owner];
  source.woken = 0;
  settle(id, link, now_);
  if (source.last == none || link.dead) return;
  if (link.free > now_) return wake(id);
  const std::uint32_t connection = world_.senders[source.last].next_in_turn;
  Sender& sender = world_.senders[connection];
  if ((link.paused >> sender.traffic_class & 1) != 0) return skip_paused(source, link);
  if (!has_more(connection, sender) || sender.failed) {  // acknowledged meanwhile
    leave_circle(source, connection, Turn::idle);
  } else if (!may_send(connection, sender)) {
    leave_circle(source, connection, Turn::held);
  } else if (must_wait(connection, source)) {
    leave_circle(source, connection, Turn::paced);
    push(sender.next_ok, EventKind::ready, connection);
  } else {
    send_next(connection, id);
    if (!has_more(connection, sender)) {
      leave_circle(source, connection, Turn::idle);
    } else if (!may_send(connection, sender)) {
      leave_circle(source, connection, Turn::held);
    } else if (sender.next_ok > link.free) {
      leave_circle(source, connection, Turn::paced);
      push(sender.next_ok, EventKind::ready, connection);
    } else if (world_.protocols.next_entropy.empty()) [[likely]] {
      source.last = connection;
    } else {
      leave_circle(source, connection, Turn::idle);
      activate(connection);  // at the port of its next packet
    }
  }
  wake(id);
}

// The next in turn may not send in its class: another one may. When none may, a resume wakes the
// source.
void Shard::skip_paused(Source& source, const Link& link) {
  const std::uint32_t first = source.last;
  do {
    source.last = world_.senders[source.last].next_in_turn;
    const std::uint32_t next = world_.senders[source.last].next_in_turn;
    if ((link.paused >> world_.senders[next].traffic_class & 1) == 0) return wake(source.link);
  } while (source.last != first);
}

// Whether the NIC's message rate holds the connection's next message back.
bool Shard::must_wait(std::uint32_t connection, Source& source) {
  if (world_.options.message_rate <= 0) return false;
  Sender& sender = world_.senders[connection];
  if (sender.sending == none ||
      sender.whole(sender.next) != world_.first_psn(sender, sender.sending))
    return false;
  if (source.next_message > now_) {
    sender.next_ok = source.next_message;
    return true;
  }
  source.next_message = now_ + static_cast<Ps>(1e12 / world_.options.message_rate);
  return false;
}

// Bytes on the wire of a packet.
std::uint32_t Shard::size_of(const Sender& sender, std::uint32_t message, std::uint32_t psn) const {
  const std::uint64_t bytes = world_.set.messages[message].bytes;
  const auto header = static_cast<std::uint32_t>(world_.options.wire.header.count);
  const bool last = sender.whole(psn) + 1 == world_.message_states[message].end();
  if (last && (bytes <= sender.payload || world_.options.wire.last_packet == LastPacket::exact))
    return static_cast<std::uint32_t>((bytes - 1) % sender.payload + 1) + header;
  return sender.payload + header;
}

// Payload of a packet as the receiver counts it.
std::uint32_t Shard::payload_of(const Packet& packet) const {
  return packet.size - static_cast<std::uint32_t>(world_.options.wire.header.count);
}

// The packet to send next, and its message: lost ones first.
std::uint32_t Shard::take_psn(std::uint32_t connection, std::uint32_t& message) {
  Sender& sender = world_.senders[connection];
  Protocols& p = world_.protocols;
  if (p.selective()) {
    ++p.in_flight[connection];
    const auto lost = p.selective_senders[connection].take_lost(p.sent_words(connection));
    if (lost) {
      ++counters_.retransmissions;
      note_repeat(connection, *lost);
      message = sender.oldest;
      while (world_.ends_before(sender, message, *lost))
        message = world_.message_states[message].next;
      return *lost;
    }
    p.selective_senders[connection].send();
  }
  message = sender.sending;
  const std::uint32_t psn = sender.next++;
  if (less(psn, sender.highest)) {
    ++counters_.retransmissions;
  } else {
    sender.highest = psn + 1;
  }
  if (world_.ends_before(sender, message, sender.next))
    sender.sending = world_.message_states[message].next;
  return psn;
}

// The port whose turn it is; for those who look at queues, of the ports that are free first the
// next from there.
std::uint32_t Shard::choose_port(std::span<const LinkId> links, std::uint32_t turn) const {
  if (world_.options.balance == Balance::spray) return turn;
  const auto count = static_cast<std::uint32_t>(links.size());
  const auto free_at = [&](std::uint32_t port) { return world_.links[links[port].index()].free; };
  std::uint32_t best = turn;
  for (std::uint32_t i = 1; i < count; ++i)
    if (const std::uint32_t port = (turn + i) % count; free_at(port) < free_at(best)) best = port;
  return best;
}

transport::Entropy Shard::draw_entropy(std::uint32_t connection) {
  Protocols& p = world_.protocols;
  transport::EntropyDraw draw{world_.options.seed ^ mix64(connection), p.drawn[connection]++,
                              p.entropies};
  if (p.next_entropy.empty())
    return p.caches.empty() ? transport::fresh_entropy(draw) : p.caches[connection].next(draw);
  const auto links = p.first_links(connection);
  draw.ports = static_cast<std::uint32_t>(links.size());
  draw.port =
      choose_port(links, static_cast<std::uint32_t>((draw.seed + draw.counter) % draw.ports));
  if (p.caches.empty()) return transport::fresh_entropy(draw);
  return p.caches[connection].next(draw, [&](transport::Entropy entropy) {
    return world_.links[p.first_link(links, connection, entropy).index()].free;
  });
}

// Path or entropy of a packet. By table the time of sending goes along, in units of 2^17 ps.
std::uint32_t Shard::route_of(std::uint32_t connection) {
  const Protocols& p = world_.protocols;
  if (!p.by_table(connection)) return world_.senders[connection].path;
  const std::uint32_t time = std::uint32_t{stamp_of(now_)} << 16;
  return p.drawn.empty() ? time : time | draw_entropy(connection);
}

// ... of the data packet that leaves now.
std::uint32_t Shard::route_of_next(std::uint32_t connection) {
  Protocols& p = world_.protocols;
  if (p.next_entropy.empty() || !p.by_table(connection)) [[likely]]
    return route_of(connection);
  return std::uint32_t{stamp_of(now_)} << 16 | std::exchange(p.next_entropy[connection], none);
}

void Shard::send_next(std::uint32_t connection, std::uint32_t id) {
  Sender& sender = world_.senders[connection];
  if (sender.next == sender.unacked) sender.progress = now_;
  if (world_.options.admission == Admission::cts &&
      (sender.whole(sender.next) - world_.first_psn(sender, sender.sending)) %
              world_.protocols.chunk_packets ==
          0 &&
      !less(sender.next, world_.protocols.slotted[connection])) {
    --world_.protocols.clear_slots[connection];
    world_.protocols.slotted[connection] = sender.next + 1;
  }
  std::uint32_t message = none;
  const bool again = world_.gathers && is_again(connection);
  const std::uint32_t psn = take_psn(connection, message);
  Packet packet;
  packet.connection = connection;
  packet.psn = psn & ((1u << psn_bits) - 1);
  packet.traffic_class = sender.traffic_class;
  packet.path = route_of_next(connection);
  packet.size = static_cast<std::uint16_t>(size_of(sender, message, psn));
  conservation_.sent += payload_of(packet);
  if (world_.options.admission == Admission::pull)
    world_.protocols.pull_senders[connection].on_sent(1);
  // Where nothing follows that would be answered sooner.
  if (world_.gathers)
    packet.asks = again || !has_more(connection, sender) || !may_send(connection, sender) ? 1 : 0;
  if (world_.options.congestion != Congestion::none) pace(connection, packet.size);
  send(id, packet);
  arm_timeout(connection);
}

// When the connection may send again after this packet.
void Shard::pace(std::uint32_t connection, std::uint32_t size) {
  Protocols& p = world_.protocols;
  double rate = 0;
  if (!p.dcqcn_senders.empty()) {
    const transport::DcqcnParameters& profile = p.dcqcn_profiles[p.profile[connection]];
    transport::DcqcnSender& dcqcn = p.dcqcn_senders[connection];
    if (dcqcn.idle()) return;
    dcqcn.on_sent(profile, size, now_);
    rate = dcqcn.rate(profile, now_);
  } else if (!p.hpcc_senders.empty()) {
    rate = p.hpcc_senders[connection].rate(p.hpcc_profiles[p.profile[connection]]);
  } else {
    return;
  }
  world_.senders[connection].next_ok = now_ + static_cast<Ps>(size * 1e12 / rate);
}

void Shard::arm_timeout(std::uint32_t connection) {
  Sender& sender = world_.senders[connection];
  if (sender.timer) return;
  sender.timer = 1;
  push(now_ + static_cast<Ps>(world_.options.ack_timeout.ps), EventKind::timeout, connection);
}

void Shard::on_timeout(std::uint32_t connection) {
  Sender& sender = world_.senders[connection];
  sender.timer = 0;
  const bool waits_for_leave =
      world_.options.admission != Admission::open && sender.turn == Turn::held;
  if (sender.failed || (sender.next == sender.unacked && !waits_for_leave)) return;
  const Ps due = sender.progress + static_cast<Ps>(world_.options.ack_timeout.ps);
  if (due > now_) {
    sender.timer = 1;
    return push(due, EventKind::timeout, connection);
  }
  ++counters_.timeouts;
  if (sender.retries == retry_limit) {
    sender.failed = 1;
    return;
  }
  ++sender.retries;
  send_again_all(connection);
  if (waits_for_leave) ask_again(connection);
  sender.progress = now_;
  arm_timeout(connection);
  if (sender.turn == Turn::held) sender.turn = Turn::idle;
  activate(connection);
}

// Nothing was heard for long: all that is under way is held to be lost.
void Shard::send_again_all(std::uint32_t connection) {
  Sender& sender = world_.senders[connection];
  Protocols& p = world_.protocols;
  if (!p.selective()) return rewind(sender, sender.unacked);
  close_losses(connection);
  const std::uint32_t lost = p.selective_senders[connection].on_timeout(p.sent_words(connection));
  p.in_flight[connection] = 0;
  if (!p.nscc_senders.empty())
    p.nscc_senders[connection].on_timeout(p.nscc_profiles[p.profile[connection]]);
  if (world_.options.admission == Admission::pull && lost > 0) ask_for_credit(connection, lost);
}

// Finds the message that `next` belongs to.
void Shard::skip_to_message(Sender& sender) const {
  while (sender.sending != none && world_.ends_before(sender, sender.sending, sender.next))
    sender.sending = world_.message_states[sender.sending].next;
}

void Shard::rewind(Sender& sender, std::uint32_t psn) {
  if (!less(psn, sender.next)) return;
  sender.next = psn;
  sender.sending = sender.oldest;
  skip_to_message(sender);
}

// Receiving.

void Shard::deliver(std::uint32_t link, const Packet& packet) {
  switch (packet.kind()) {
    case PacketType::data:
    case PacketType::trimmed:
      return on_data(link, packet);
    case PacketType::request:
      return on_request(packet);
    case PacketType::ack:
      return world_.protocols.selective() ? on_selective_ack(packet) : on_ack(packet);
    case PacketType::nack:
      return on_nack(packet);
    case PacketType::cnp:
      return on_cnp(packet);
    case PacketType::grant:
      return on_grant(packet);
  }
}

// The first link of the way back: the reverse of the last cable of the way here.
void Shard::reply(std::uint32_t link, const Packet& to, PacketType type, std::uint32_t psn) {
  Packet packet = to;
  packet.type = static_cast<std::uint32_t>(type) & 7;
  packet.psn = psn & ((1u << psn_bits) - 1);
  packet.size = static_cast<std::uint16_t>(world_.control_size);
  const Scheduler& scheduler = world_.options.scheduler;
  packet.traffic_class =
      (type == PacketType::ack ? scheduler.ack_class : scheduler.control_class) & 7;
  packet.asks = 0;
  if (type != PacketType::ack) packet.marked = 0;  // an ACK tells what its packet met
  const std::uint32_t last =
      world_.protocols.by_table(to.connection)
          ? (world_.links[link].drain ? world_.receivers[to.connection].last_link : link)
          : world_.paths[packet.path + packet.hop()];
  send(World::reverse(last), packet);
}

void Shard::on_data(std::uint32_t link, const Packet& packet) {
  Receiver& receiver = world_.receivers[packet.connection];
  receiver.last_route = packet.path;
  receiver.last_hop = packet.hop() & 31;
  if (!world_.links[link].drain) receiver.last_link = link;
  if (!world_.protocols.credit_rates.empty()) note_arrival(packet);
  if (!packet.is_data()) {
    if (world_.options.admission == Admission::pull) demand(packet.connection, 1);
    return reply(link, packet, PacketType::nack, packet.psn);
  }
  conservation_.received += payload_of(packet);
  Protocols& p = world_.protocols;
  if (packet.marked && !p.dcqcn_receivers.empty() &&
      p.dcqcn_receivers[packet.connection].on_marked(p.dcqcn_profiles[p.profile[packet.connection]],
                                                     now_)) {
    ++counters_.cnps;
    reply(link, packet, PacketType::cnp, packet.psn);
  }
  if (p.selective()) return receive_any_order(link, packet);
  receive_in_order(link, packet);
}

void Shard::receive_in_order(std::uint32_t link, const Packet& packet) {
  transport::GobackReceiver& receiver = world_.receivers[packet.connection].in_order;
  const std::uint32_t psn = extend_psn(packet.psn, receiver.expected());
  switch (receiver.on_packet(psn)) {
    case transport::Arrival::fresh: {
      const bool ended = accept_below(packet.connection, psn, psn + 1);
      if (world_.options.admission == Admission::cts) clear_slot(packet.connection);
      return answer(link, packet, psn, ended ? Urgent::yes : Urgent::no);
    }
    case transport::Arrival::duplicate:
      return answer(link, packet, receiver.expected() - 1, Urgent::yes);
    case transport::Arrival::gap:
      return reply(link, packet, PacketType::nack, receiver.expected());
    case transport::Arrival::ignored:
      return;
  }
}

void Shard::receive_any_order(std::uint32_t link, const Packet& packet) {
  Protocols& p = world_.protocols;
  const std::uint32_t c = packet.connection;
  transport::SelectiveReceiver& selective = p.selective_receivers[c];
  const std::uint32_t before = selective.cumulative();
  const std::uint32_t psn = extend_psn(packet.psn, before);
  const auto arrival = selective.on_packet(p.received_words(c), psn);
  if (arrival == transport::Arrival::ignored) return;
  const bool ended = accept_below(c, before, selective.cumulative());
  if (!world_.gathers) return reply(link, packet, PacketType::ack, psn);
  const bool fresh = arrival == transport::Arrival::fresh;
  if (fresh) p.came_of(c, p.counted[c]++) = {psn, packet.path};
  // Where packets keep to one path, one that is missing is lost.
  const bool gap = psn != before && p.drawn.empty();
  const bool urgent = ended || gap || !fresh || packet.marked;
  answer(link, packet, p.counted[c], urgent ? Urgent::yes : Urgent::no);
}

// All packets from `from` up to `to` have come in order: ends the messages among them, and tells
// whether there was one. The link from one message to the next is read only when a packet of the
// next is there, so that its sender has written it.
bool Shard::accept_below(std::uint32_t connection, std::uint32_t from, std::uint32_t to) {
  Receiver& receiver = world_.receivers[connection];
  bool ended = false;
  for (std::uint64_t fresh = to - from; fresh > 0;) {
    if (receiver.to_come == 0) {
      receiver.message =
          receiver.message == none ? receiver.first : world_.message_states[receiver.message].next;
      receiver.to_come = world_.packet_count(world_.senders[connection], receiver.message) &
                         (2 * message_packets_max - 1);
    }
    const std::uint64_t taken = std::min<std::uint64_t>(fresh, receiver.to_come);
    receiver.to_come = (receiver.to_come - taken) & (2 * message_packets_max - 1);
    fresh -= taken;
    if (receiver.to_come > 0) break;
    WEFT_CHECK(world_.ends[receiver.message].arrived == never);
    world_.ends[receiver.message].arrived = now_;
    ended = true;
    release(receiver.message, Dependent::When::arrived);
  }
  return ended;
}

void Shard::on_ack(const Packet& packet) {
  const Sender& sender = world_.senders[packet.connection];
  const std::uint32_t psn = extend_psn(packet.psn, sender.unacked);
  if (!world_.protocols.hpcc_senders.empty()) read_telemetry(packet, psn);
  acknowledge_below(packet.connection, psn + 1);
}

void Shard::on_selective_ack(const Packet& packet) {
  Protocols& p = world_.protocols;
  const std::uint32_t c = packet.connection;
  Sender& sender = world_.senders[c];
  const std::uint32_t psn = extend_psn(packet.psn, sender.unacked);
  const std::uint32_t heard = world_.gathers ? p.heard[c] : 0;
  const std::uint32_t fresh = world_.gathers ? hear(packet) : take_received(c, psn) ? 1u : 0u;
  if (fresh == 0 && !world_.gathers) return;
  sender.progress = now_;
  const bool timed = p.by_table(c) && !packet.asks;
  if (timed) p.round_trips[c] = static_cast<std::uint16_t>(stamp_of(now_) - (packet.path >> 16));
  const auto mark = packet.marked ? transport::Mark::congested : transport::Mark::clear;
  if (!p.caches.empty())
    p.caches[c].on_ack(static_cast<transport::Entropy>(packet.path & 0xFFFF), mark);
  if (!p.nscc_senders.empty()) {
    const transport::NsccParameters& profile = p.nscc_profiles[p.profile[c]];
    transport::NsccSender& nscc = p.nscc_senders[c];
    const Ps untimed = packet.asks ? nscc.mean_rtt(profile) : profile.base_rtt;
    nscc.on_ack(profile, static_cast<double>(fresh) * world_.full_size, mark,
                timed ? Ps{p.round_trips[c]} << stamp_shift : untimed,
                static_cast<double>(p.in_flight[c]) * world_.full_size, now_);
    sender.window = world_.window_packets(nscc.window());
  }
  if (!repairs_.empty()) [[unlikely]] {
    if (!world_.gathers) learn_of_losses(c, psn, packet.path);
    for (std::uint32_t i = heard; world_.gathers && i != p.heard[c]; ++i)
      learn_of_losses(c, p.came_of(c, i).psn, p.came_of(c, i).path);
  }
  acknowledge_below(c, p.selective_senders[c].base());
  if (sender.turn == Turn::held) activate(c);
}

// Go-back-N: the packet that is missing. Selective repeat: a packet that was trimmed.
void Shard::on_nack(const Packet& packet) {
  const std::uint32_t c = packet.connection;
  Sender& sender = world_.senders[c];
  const std::uint32_t psn = extend_psn(packet.psn, sender.unacked);
  Protocols& p = world_.protocols;
  if (!p.selective()) {
    acknowledge_below(c, psn);
    rewind(sender, less(psn, sender.unacked) ? sender.unacked : psn);
  } else {
    close_loss(c, psn);
    hold_trimmed(c, psn);
  }
  activate(c);
}

void Shard::on_cnp(const Packet& packet) {
  Protocols& p = world_.protocols;
  p.dcqcn_senders[packet.connection].on_cnp(p.dcqcn_profiles[p.profile[packet.connection]], now_);
}

// Of the path that is acknowledged: the connection may have another by now, or none.
void Shard::read_telemetry(const Packet& ack, std::uint32_t psn) {
  Protocols& p = world_.protocols;
  const std::uint32_t connection = ack.connection;
  Sender& sender = world_.senders[connection];
  const std::size_t hops = std::min(world_.links_of(ack.path).size(), transport::int_hop_max);
  const double window =
      p.hpcc_senders[connection].on_ack(p.hpcc_profiles[p.profile[connection]],
                                        {p.telemetry_of(connection, psn), hops}, psn, sender.next);
  sender.window = world_.window_packets(window);
}

void Shard::acknowledge_below(std::uint32_t connection, std::uint32_t psn) {
  Sender& sender = world_.senders[connection];
  if (!less(sender.unacked, psn)) return;
  if (psn < sender.unacked) ++sender.wraps;
  sender.unacked = psn;
  sender.progress = now_;
  sender.retries = 0;
  if (less(sender.next, psn)) {  // these need not be sent again after all
    sender.next = psn;
    skip_to_message(sender);
  }
  while (sender.oldest != none && world_.ends_before(sender, sender.oldest, psn)) {
    const std::uint32_t message = sender.oldest;
    WEFT_CHECK(world_.ends[message].end == never && world_.ends[message].start <= now_);
    world_.ends[message].end = now_;
    ++messages_over_;
    sender.oldest = world_.message_states[message].next;
    release(message, Dependent::When::acknowledged);
  }
  if (sender.turn == Turn::held) activate(connection);
}

}  // namespace weft::engine::packet
