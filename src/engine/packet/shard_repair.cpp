// Selective repeat: how a sender learns of lost packets, and when it sends them again.
#include <algorithm>
#include <ranges>

#include "engine/packet/shard_link.hpp"
#include "route/hash.hpp"

namespace weft::engine::packet {
namespace {

// When a packet with this stamp was sent, seen at `now`: right up to 2^16 steps ago.
Ps sent_at(std::uint32_t path, Ps now) {
  const std::uint64_t age = ((now >> stamp_shift) - (path >> 16)) & 0xFFFF;
  return ((now >> stamp_shift) - std::min(age, now >> stamp_shift)) << stamp_shift;
}

}  // namespace

// The links of a packet's way to the receiver. By table the way follows from the entropy, except
// where switches choose by their queues; then all ways count as one.
Way Shard::way_of(std::uint32_t connection, std::uint32_t path) const {
  const Protocols& p = world_.protocols;
  Way way;
  const auto pass = [&](std::uint32_t id) {
    const LinkKind& kind = world_.kinds[world_.links[id].kind];
    way.latency += kind.latency;
    way.round_trip += 2 * kind.latency + kind.serialisation(world_.full_size) +
                      kind.serialisation(world_.control_size);
  };
  const std::uint32_t kept = p.by_table(connection) ? world_.senders[connection].path : path;
  if (kept != none) {
    for (const std::uint32_t id : world_.links_of(kept)) {
      pass(id);
      way.key = mix64(way.key + id);
    }
    way.complete = true;
    return way;
  }
  const auto first_links = p.first_links(connection);
  if (first_links.empty()) return way;
  const Ends& ends = p.ends[connection];
  const std::uint64_t flow = std::uint64_t{connection} << 16 | (path & 0xFFFF);
  std::uint32_t id = p.first_link(first_links, connection, path).value;
  for (std::uint32_t hop = 0; hop < path_length_max; ++hop) {
    pass(id);
    const std::uint32_t at = world_.links[id].to;
    way.complete = at == ends.dst;
    if (way.complete) break;
    const auto links = p.fib->next(NodeId(at), ends.dst_target);
    if (links.empty()) break;
    const std::uint64_t hash = mix64(flow + world_.nodes[at].salt);
    id = links[links.size() == 1 ? 0 : route::scale(hash, links.size())].value;
    way.key = mix64(way.key + id);
  }
  if (!follows_entropy()) way.key = 0;
  return way;
}

// Of the links from node `at` to the packet's sender: back along its path, or by table.
std::optional<Ps> Shard::latency_back(const Packet& packet, std::uint32_t at) const {
  const Protocols& p = world_.protocols;
  const Ends& ends = p.ends[packet.connection];
  const std::uint64_t flow = std::uint64_t{packet.connection} << 16 | (packet.path & 0xFFFF);
  Ps latency = 0;
  for (const std::uint32_t id : world_.kept_path(packet.connection)) {
    const Link& link = world_.links[id];
    latency += world_.kinds[link.kind].latency;
    if (link.to == at) return latency;
  }
  latency = 0;
  for (std::uint32_t hop = 0; hop < path_length_max && at != ends.src; ++hop) {
    const auto links = p.fib->next(NodeId(at), ends.src_target);
    if (links.empty()) return std::nullopt;
    const std::uint64_t hash = mix64(flow + world_.nodes[at].salt);
    const Link& link =
        world_.links[links[links.size() == 1 ? 0 : route::scale(hash, links.size())].value];
    latency += world_.kinds[link.kind].latency;
    at = link.to;
  }
  return at == ends.src ? std::optional(latency) : std::nullopt;
}

bool Shard::follows_entropy() const {
  return world_.options.balance == Balance::path || world_.options.balance == Balance::spray ||
         world_.options.balance == Balance::reps;
}

// Notices.

// A packet is lost here and now, at node `at`. The notice must reach another partition no sooner
// than the least latency between the two, and not after what may tell of the loss. Data is told of
// by a packet that goes on to the receiver and is acknowledged: the latency of the whole way. Of an
// ACK the next one tells: the latency of what is left of its way. Where the way is not known to be
// the packet's own, the notice takes as long as the packet has been under way.
void Shard::note_loss(const Packet& packet, std::uint32_t at) {
  const Protocols& p = world_.protocols;
  LossNotice notice{.connection = packet.connection,
                    .psn = packet.psn,
                    .path = packet.path,
                    .sent = now_,
                    .lost = now_};
  switch (packet.kind()) {
    case PacketType::data:
    case PacketType::trimmed:
    case PacketType::nack:
      break;
    case PacketType::ack:
      notice.what = LossNotice::What::ack;
      break;
    case PacketType::request:
    case PacketType::grant:
      if (world_.options.admission != Admission::pull) return;
      notice.what = LossNotice::What::credit;
      break;
    case PacketType::cnp:
      return;
  }
  const bool stamped = p.by_table(packet.connection) && notice.what != LossNotice::What::credit;
  if (stamped) notice.sent = sent_at(packet.path, now_);
  const Way way = way_of(packet.connection, packet.path);
  const bool own_way = !p.by_table(packet.connection) ||
                       (follows_entropy() && way.complete &&
                        (p.routes_since == 0 || sent_at(packet.path, now_) > p.routes_since));
  Ps delay = way.latency;
  if (own_way && stamped && notice.what == LossNotice::What::ack)
    delay = latency_back(packet, at).value_or(delay);
  if (!own_way) delay = std::max(delay, now_ - sent_at(packet.path, now_));
  if (!way.complete)
    for (const LinkKind& kind : world_.kinds) delay = std::max(delay, kind.latency);
  notice.at = now_ + delay;
  const NodeId src = world_.set.connections[packet.connection / world_.fanout].src;
  const std::uint32_t shard = world_.partition[src.index()];
  if (shard == index_) return take_notice(notice);
  outbox_[shard].losses.push_back(notice);
}

void Shard::take_notice(const LossNotice& notice) {
  notices_.insert(notice);
  push(notice.at, EventKind::loss, notice.connection);
}

void Shard::read_notice(const LossNotice& notice) {
  const std::uint32_t c = notice.connection;
  Protocols& p = world_.protocols;
  if (world_.senders[c].failed) return;
  if (notice.what == LossNotice::What::credit) {
    Repair& repair = repairs_[c];
    repair.round_trip = std::max(repair.round_trip, way_of(c, notice.path).round_trip);
    repair.credits.push_back({notice.sent + patience(c, repair, 0), notice.psn});
    return;
  }
  if (notice.what == LossNotice::What::data || !world_.gathers)
    return open_entry(notice, extend_psn(notice.psn, world_.senders[c].unacked));
  // All packets that the lost acknowledgement would have told of.
  LossNotice one = notice;
  const std::uint32_t until = extend_psn(notice.psn, p.heard[c]);
  for (std::uint32_t i = p.heard[c]; transport::psn_distance(i, until) > 0; ++i) {
    const Protocols::Came came = p.came_of(c, i);
    one.path = came.path;
    if (p.by_table(c)) one.sent = sent_at(came.path, notice.lost);
    open_entry(one, came.psn);
    open_entry(notice, came.psn);  // it answered a packet that had come before
  }
}

// The sender does not know what became of packet `psn`, which took the notice's path.
void Shard::open_entry(const LossNotice& notice, std::uint32_t psn) {
  const std::uint32_t c = notice.connection;
  Protocols& p = world_.protocols;
  const transport::SelectiveSender& selective = p.selective_senders[c];
  if (selective.is_acked(p.sent_words(c), psn)) return;
  Repair& repair = repairs_[c];
  const Way way = way_of(c, notice.path);
  repair.round_trip = std::max(repair.round_trip, way.round_trip);
  const auto [found, is_new] = repair.entries.try_emplace(psn);
  Repair::Entry& entry = found->second;
  if (is_new) entry.order = order_of_new(psn);
  if (notice.what == LossNotice::What::ack) repair.mark_came(found);
  if (selective.is_lost(p.sent_words(c), psn)) return;  // about to be sent again
  if (is_new) {
    entry.sent = notice.sent;
  } else if (entry.state != Repair::State::resent ||
             (p.by_table(c) ? stamp_of(entry.sent) != stamp_of(notice.sent)
                            : notice.lost < entry.sent)) {
    return;  // of an earlier time that it was sent
  }
  entry.sent = notice.sent;
  entry.way = way.key;
  const bool data = notice.what == LossNotice::What::data;
  repair.open(found, data ? Repair::State::lost : Repair::State::unheard,
              (entry.sent >> stamp_shift << stamp_shift) + patience(c, repair, entry.timeouts));
}

// What ends the wait for a lost packet.

// The first acknowledgement of packet `psn` has come. It tells of the packets of the same path that
// were sent before and did not come; and that those came whose own acknowledgements were lost.
void Shard::learn_of_losses(std::uint32_t connection, std::uint32_t psn, std::uint32_t path) {
  const auto found = repairs_.find(connection);
  if (found == repairs_.end()) return;
  Repair& repair = found->second;
  const bool by_table = world_.protocols.by_table(connection);
  const auto stamp = static_cast<std::uint16_t>(path >> 16);
  SendOrder order = order_of_new(psn);
  bool ordered = true;  // else it answers an earlier time that the packet was sent
  if (const auto own = repair.entries.find(psn); own != repair.entries.end()) {
    order = own->second.order;
    ordered = !by_table || stamp == stamp_of(own->second.sent);
    repair.close(own);
    repair.entries.erase(own);
  }
  told_.clear();
  const auto look_at = [&](const Repair::InOrder& opened, std::uint16_t least) {
    for (const auto& [sent_order, number] : opened) {
      // In the order of sending, so that none behind the first later one is told of.
      if (ordered && !(sent_order < order)) break;
      Repair::Entry& entry = repair.entries.find(number)->second;
      const auto age = static_cast<std::uint16_t>(stamp - stamp_of(entry.sent));
      if (!ordered && static_cast<std::int16_t>(age) <= 0) continue;
      if (least > 0 && age < least) continue;
      if (!entry.came && ++entry.told < world_.options.retransmit_gap) continue;
      told_.emplace_back(entry.due, number);
    }
  };
  if (!world_.gathers) look_at(repair.came, 0);  // else the list has them
  if (!repair.on_way.empty()) {
    const auto same = repair.on_way.find(way_of(connection, path).key);
    // Packets overtake each other: only one sent a round trip later is taken as proof.
    const bool overtakes = world_.options.balance == Balance::adaptive && by_table;
    if (same != repair.on_way.end())
      look_at(same->second, overtakes ? stamp_of(repair.round_trip) : std::uint16_t{0});
  }
  std::ranges::sort(told_);
  for (const std::uint32_t number : told_ | std::views::values) {
    const auto at = repair.entries.find(number);
    repair.close(at);
    if (!at->second.came) {
      hold_lost(connection, number);
    } else {
      hold_received(connection, number);
      repair.entries.erase(at);
    }
  }
  if (repair.empty()) repairs_.erase(found);
}

// How long the sender waits for an answer to a packet that it has sent `timeouts` times in vain.
Ps Shard::patience(std::uint32_t connection, const Repair& repair, std::uint32_t timeouts) const {
  const Ps measured = Ps{world_.protocols.round_trips[connection]} << stamp_shift;
  const Ps round_trip = measured > 0 ? measured : repair.round_trip;
  const Ps first = std::max(static_cast<Ps>(world_.options.retransmit_least.ps),
                            world_.options.retransmit_round_trips * round_trip);
  const Ps longest = std::max(first, static_cast<Ps>(world_.options.ack_timeout.ps));
  return std::min(first << std::min(timeouts, 16u), longest);
}

// A notice has come, or a timer may have ended.
void Shard::on_loss(std::uint32_t connection) {
  const LossNotice first_key{.at = now_, .connection = connection};
  for (auto notice = notices_.lower_bound(first_key);
       notice != notices_.end() && notice->at == now_ && notice->connection == connection;) {
    read_notice(*notice);
    notice = notices_.erase(notice);
  }
  const auto found = repairs_.find(connection);
  if (found == repairs_.end() || world_.senders[connection].failed) return;
  Repair& repair = found->second;
  if (repair.timer <= now_) repair.timer = never;
  bool ended = false;
  while (!repair.open_until.empty() && repair.open_until.begin()->first <= now_) {
    const auto at = repair.entries.find(repair.open_until.begin()->second);
    repair.close(at);
    ++at->second.timeouts;
    hold_lost(connection, at->first);
    ended = true;
  }
  Ps next = repair.open_until.empty() ? never : repair.open_until.begin()->first;
  std::uint64_t credit = 0;
  std::erase_if(repair.credits, [&](const Repair::Credit& lost) {
    if (lost.due > now_) {
      next = std::min(next, lost.due);
      return false;
    }
    credit += lost.amount;
    return true;
  });
  if (credit > 0) send_request(connection, credit);
  if (ended || credit > 0) ++counters_.timeouts;
  if (repair.empty()) {
    repairs_.erase(found);
  } else if (next < repair.timer) {
    repair.timer = next;
    push(next, EventKind::loss, connection);
  }
}

// What follows.

// Packet `psn`, of which nothing was known, is to be sent again: false if it need not be.
bool Shard::take_lost(std::uint32_t connection, std::uint32_t psn) {
  Protocols& p = world_.protocols;
  if (!p.selective_senders[connection].on_lost(p.sent_words(connection), psn)) return false;
  --p.in_flight[connection];
  if (!p.nscc_senders.empty()) {
    p.nscc_senders[connection].on_loss(
        p.nscc_profiles[p.profile[connection]], world_.full_size,
        static_cast<double>(p.in_flight[connection]) * world_.full_size, now_);
    world_.senders[connection].window = world_.window_packets(p.nscc_senders[connection].window());
  }
  activate(connection);
  return true;
}

void Shard::hold_lost(std::uint32_t connection, std::uint32_t psn) {
  if (take_lost(connection, psn) && world_.options.admission == Admission::pull)
    ask_for_credit(connection, 1);
}

// The receiver has said so, and gives credit for it.
void Shard::hold_trimmed(std::uint32_t connection, std::uint32_t psn) {
  if (take_lost(connection, psn) && world_.options.admission == Admission::pull)
    world_.protocols.pull_senders[connection].on_trimmed(1);
}

// Another acknowledgement tells that `psn` came. The caller acknowledges what is whole.
void Shard::hold_received(std::uint32_t connection, std::uint32_t psn) {
  Protocols& p = world_.protocols;
  if (p.selective_senders[connection].on_ack(p.sent_words(connection), psn))
    --p.in_flight[connection];
}

// `psn` goes out once more, now.
void Shard::note_repeat(std::uint32_t connection, std::uint32_t psn) {
  Repair& repair = repairs_[connection];
  Repair::Entry& entry = repair.entries[psn];
  entry.order = {world_.senders[connection].next, ++repair.turn};
  entry.sent = now_;
}

// Somebody else knows that `psn` is lost: a NACK.
void Shard::close_loss(std::uint32_t connection, std::uint32_t psn) {
  const auto found = repairs_.find(connection);
  if (found == repairs_.end()) return;
  const auto entry = found->second.entries.find(psn);
  if (entry != found->second.entries.end()) found->second.close(entry);
}

// All that is under way is held to be lost.
void Shard::close_losses(std::uint32_t connection) {
  const auto found = repairs_.find(connection);
  if (found == repairs_.end()) return;
  Repair& repair = found->second;
  while (!repair.open_until.empty())
    repair.close(repair.entries.find(repair.open_until.begin()->second));
  repair.credits.clear();
}

}  // namespace weft::engine::packet
