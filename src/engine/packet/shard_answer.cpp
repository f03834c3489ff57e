// When a receiver acknowledges what has come, and what its sender learns from that. One answer may
// be for several packets; go-back-N needs only the last number for that, selective repeat the list
// Protocols::came.
#include <algorithm>

#include "engine/packet/shard_link.hpp"

namespace weft::engine::packet {

// Acknowledges `number` now if it is urgent, if the sender waits for it, or if enough packets have
// come since the last time; else with a later packet, or by a timer that the first of them starts.
// Nothing of that outlasts a message, whose last packet is always acknowledged.
void Shard::answer(std::uint32_t link, const Packet& packet, std::uint32_t number, Urgent urgent) {
  if (!world_.gathers) return reply(link, packet, PacketType::ack, number);
  Receiver& receiver = world_.receivers[packet.connection];
  const auto count = static_cast<std::uint32_t>(receiver.unanswered) + 1;
  if (urgent == Urgent::yes || packet.asks || count == world_.options.ack_every) {
    receiver.unanswered = 0;
    return reply(link, packet, PacketType::ack, number);
  }
  if (count == 1) receiver.answer_by = now_ + static_cast<Ps>(world_.options.ack_delay.ps);
  receiver.unanswered = std::min(count, ack_every_max) & 1023;
  if (receiver.ack_due == 0) push(receiver.answer_by, EventKind::ack, packet.connection);
  receiver.ack_due = 1;
}

// Others may have been answered, and come, since the timer was started.
void Shard::on_ack_due(std::uint32_t connection) {
  Receiver& receiver = world_.receivers[connection];
  receiver.ack_due = 0;
  if (receiver.unanswered == 0) return;
  if (now_ < receiver.answer_by) {
    receiver.ack_due = 1;
    return push(receiver.answer_by, EventKind::ack, connection);
  }
  receiver.unanswered = 0;
  const Protocols& p = world_.protocols;
  const std::uint32_t number =
      p.selective() ? p.counted[connection] : receiver.in_order.expected() - 1;
  send_back(connection, PacketType::ack, number, world_.options.scheduler.ack_class);
}

// The receiver has `psn`. False: that was known.
bool Shard::take_received(std::uint32_t connection, std::uint32_t psn) {
  Protocols& p = world_.protocols;
  transport::SelectiveSender& selective = p.selective_senders[connection];
  const bool was_lost = selective.is_lost(p.sent_words(connection), psn);
  if (!selective.on_ack(p.sent_words(connection), psn)) return false;
  if (!was_lost) --p.in_flight[connection];
  return true;
}

// Reads the list up to where the acknowledgement tells of it. Returns how many packets of that were
// not known.
std::uint32_t Shard::hear(const Packet& ack) {
  Protocols& p = world_.protocols;
  std::uint32_t& heard = p.heard[ack.connection];
  const std::uint32_t until = extend_psn(ack.psn, heard);
  std::uint32_t fresh = 0;
  for (; transport::psn_distance(heard, until) > 0; ++heard)
    fresh += take_received(ack.connection, p.came_of(ack.connection, heard).psn) ? 1u : 0u;
  return fresh;
}

}  // namespace weft::engine::packet
