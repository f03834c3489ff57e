// What a change of the fabric's state does to packets and connections, and what a shard reports.
#include <algorithm>

#include "base/check.hpp"
#include "engine/packet/build.hpp"
#include "engine/packet/shard_link.hpp"

namespace weft::engine::packet {

void Shard::settle_all(Ps t) {
  now_ = t;
  for (const std::uint32_t id : owned_) {
    Link& link = world_.links[id];
    if (link.waiting > 0) settle(id, link, t);
  }
}

void Shard::end_pause(std::uint32_t id) {
  const Link& link = world_.links[id];
  for (std::uint32_t c = 0; c < world_.class_count && !link.dead; ++c)
    if ((link.paused >> c & 1) != 0) on_resume(id, c);
}

void Shard::forget_pause(std::uint32_t id) {
  const Link& link = world_.links[id];
  if (!world_.options.pfc.on || !link.guarded) return;
  NodeBuffer& node = world_.nodes[link.to];
  for (std::uint32_t c = 0; c < world_.class_count; ++c) {
    Ingress& ingress = world_.ingress(node, link.port, c);
    if (ingress.bound == 0) continue;
    WEFT_CHECK(node.paused > 0);
    ingress.bound = 0;
    --node.paused;
  }
  remove_port(world_.port_set(node, PortSet::paused), link.port);
}

// All that waits or is on the wire is lost. What is on the wire keeps its place, so that the
// arrival that is pending finds it, and is void.
void Shard::drop_link(std::uint32_t id) {
  Link& link = world_.links[id];
  const auto lose_one = [&](Packet& packet) {
    if (packet.size == 0) return;
    lose(id, packet);
    packet.size = 0;
  };
  for (std::uint32_t i = link.head; i != link.cur; ++i) lose_one(link.at(i));
  if (link.cross) {
    Link& twin = world_.links[world_.link_count + id];
    for (std::uint32_t i = twin.head; i != twin.tail; ++i) lose_one(twin.at(i));
  }
  const auto lose_waiting = [&](Packet& packet) {
    if (link.buffered && world_.accounts) leave_buffer(world_.nodes[link.owner], packet, now_);
    lose_one(packet);
  };
  for (std::uint32_t i = link.cur; i != link.tail; ++i) lose_waiting(link.at(i));
  link.tail = link.cur;
  for (std::uint32_t c = 0; world_.class_count > 1 && c < world_.class_count; ++c) {
    ClassQueue& queue = world_.queues[std::size_t{id} * world_.class_count + c];
    for (; queue.head != queue.tail; ++queue.head) lose_waiting(queue.at(queue.head));
  }
  link.queued = 0;
  WEFT_CHECK(link.cur - link.head <= link.capacity);
  link.waiting = 0;
  for (std::uint32_t c = 0; !world_.by_class.empty() && c < world_.class_count; ++c) {
    world_.of_class(id, c).waiting = 0;
    count_pause(id, c, false);
  }
  if (link.paused) record_end(id, link, now_);
  if (link.paused) world_.rare[id].paused_total += now_ - world_.rare[id].paused_since;
  link.paused = 0;
  // Who was paused because of what waited here may go on.
  if (!link.buffered) return;
  NodeBuffer& node = world_.nodes[link.owner];
  if (node.paused > 0) check_resume(node);
}

void Shard::watch_all() {
  if (world_.reliefs.empty()) return;
  for (const std::uint32_t id : owned_)
    if (const Link& link = world_.links[id]; link.buffered)
      if (NodeBuffer& node = world_.nodes[link.owner]; node.paused > 0)
        watch_again(node, world_.port_set(node, PortSet::paused));
}

// Asks for the connection's path again.
void Shard::reroute(std::uint32_t connection, Ps t) {
  now_ = t;
  Sender& sender = world_.senders[connection];
  const std::uint32_t old_source = sender.source;
  if (sender.turn == Turn::in_circle) {
    WEFT_CHECK(old_source != none && world_.sources[old_source].last != none);
    Source& source = world_.sources[old_source];
    std::uint32_t before = source.last;
    while (world_.senders[before].next_in_turn != connection)
      before = world_.senders[before].next_in_turn;
    if (before == connection) {
      source.last = none;
    } else {
      world_.senders[before].next_in_turn = sender.next_in_turn;
      if (source.last == connection) source.last = before;
    }
    sender.turn = Turn::idle;
  }
  find_path(world_, connection);
  ask_on_new_path(connection);
  if (sender.turn == Turn::idle) activate(connection);
}

std::uint32_t Shard::waiting_at(std::uint32_t id, Ps t) {
  Link& link = world_.links[id];
  settle(id, link, t - 1);
  return link.waiting;
}

bool Shard::holds_from(std::uint32_t id, std::uint32_t port) const {
  const Link& link = world_.links[id];
  for (std::uint32_t i = link.cur; i != link.tail; ++i)
    if (link.at(i).port() == port) return true;
  for (std::uint32_t c = 0; world_.class_count > 1 && c < world_.class_count; ++c) {
    const ClassQueue& queue = world_.queues[std::size_t{id} * world_.class_count + c];
    for (std::uint32_t i = queue.head; i != queue.tail; ++i)
      if (queue.at(i).port() == port) return true;
  }
  return false;
}

// Bytes of one class that came in by `port` and wait for `link`.
std::uint32_t Shard::bytes_from(std::uint32_t id, std::uint32_t port,
                                std::uint32_t traffic_class) const {
  std::uint32_t bytes = 0;
  const auto add = [&](const auto& ring, std::uint32_t first) {
    for (std::uint32_t i = first; i != ring.tail; ++i)
      if (ring.at(i).port() == port) bytes += ring.at(i).size;
  };
  if (world_.class_count == 1) {
    const Link& link = world_.links[id];
    add(link, link.cur);
  } else {
    const ClassQueue& queue = world_.queues[std::size_t{id} * world_.class_count + traffic_class];
    add(queue, queue.head);
  }
  return bytes;
}

// `in_id`, which comes in by `port`, is about to be paused; all queues of the node are settled.
void Shard::record_decision(NodeBuffer& node, std::uint32_t port, std::uint32_t in_id,
                            std::uint32_t traffic_class) {
  if (world_.links[World::reverse(in_id)].dead) return;  // there goes no frame
  std::uint32_t at_fault = none, most = 0;
  for_each_port(world_.port_set(node, PortSet::queued), node.set_words, [&](std::uint32_t out) {
    if (!has_port(world_.sources_at(node, out), port)) return;
    const std::uint32_t id = world_.ports[node.first_port + out];
    const std::uint32_t bytes = bytes_from(id, port, traffic_class);
    if (bytes <= most) return;
    most = bytes;
    at_fault = id;
  });
  WEFT_CHECK(at_fault != none);  // what has just come in waits
  const QueuePauses& known = world_.queue_pauses[at_fault];
  pauses_.push_back({.t = now_,
                     .kind = PauseRecord::Kind::decided,
                     .passed_on = world_.links[at_fault].paused || known.resumed > known.built,
                     .link = in_id,
                     .other = at_fault});
}

// `link`, which is paused, goes on at `t`, or the run ends.
void Shard::record_end(std::uint32_t id, const Link& link, Ps t) {
  if (!world_.records_pauses) return;
  world_.queue_pauses[id].resumed = t;
  const Ps since = world_.rare[id].paused_since;
  const auto hold = [&](std::uint32_t connection) {
    const Sender& sender = world_.senders[connection];
    const std::uint32_t message = sender.sending != none ? sender.sending : sender.oldest;
    if ((link.paused >> sender.traffic_class & 1) == 0 || message == none) return;
    const Ps from = std::max(since, world_.ends[message].start);
    if (from < t)
      pauses_.push_back({.t = t,
                         .length = t - from,
                         .kind = PauseRecord::Kind::held,
                         .link = id,
                         .other = message});
  };
  if (link.source && world_.sources[link.owner].last != none) {
    const std::uint32_t last = world_.sources[link.owner].last;
    std::uint32_t c = last;
    do hold(c = world_.senders[c].next_in_turn);
    while (c != last);
  }
  pauses_.push_back({.t = t, .length = t - since, .kind = PauseRecord::Kind::ended, .link = id});
}

void Shard::take_pauses(std::vector<PauseRecord>& out) {
  out.insert(out.end(), pauses_.begin(), pauses_.end());
  pauses_.clear();
}

void Shard::end_pauses(Ps t) {
  for (const std::uint32_t id : owned_)
    if (world_.links[id].paused && t > world_.rare[id].paused_since)
      record_end(id, world_.links[id], t);
}

void Shard::add_to(PacketRunResult& result) const {
  Counters& c = result.counters;
  c.hops += counters_.hops;
  c.events += counters_.events;
  c.pause_frames += counters_.pause_frames;
  c.ecn_marks += counters_.ecn_marks;
  c.cnps += counters_.cnps;
  c.drops += counters_.drops;
  c.drops_headroom += counters_.drops_headroom;
  c.drops_link += counters_.drops_link;
  c.drops_control += counters_.drops_control;
  c.trims += counters_.trims;
  c.retransmissions += counters_.retransmissions;
  c.timeouts += counters_.timeouts;
  result.conservation.sent += conservation_.sent;
  result.conservation.received += conservation_.received;
  result.conservation.dropped += conservation_.dropped;
  for (const auto& [where, count] : lost_here_) {
    const auto [link, traffic_class] = where;
    result.links[link].dropped += count;
    if (!result.class_links.empty())
      result.class_links[std::size_t{link} * world_.class_count + traffic_class].dropped += count;
  }
  for (const auto& [where, count] : lossless_drops_) {
    const auto [traffic_class, cause, link] = where;
    result.lossless_drops.push_back({traffic_class, cause, link, world_.port_name(link), count});
  }
  for (std::size_t t = 0; t < tiers_.size(); ++t) {
    for (std::size_t bin = 0; bin < LogHistogram{}.size(); ++bin) {
      result.tiers[t].queue_bytes[bin] += tiers_[t].queue_bytes[bin];
      result.tiers[t].pause_ps[bin] += tiers_[t].pause_ps[bin];
    }
  }
  const auto count = [&](const Packet& packet) {
    if (packet.is_data() && packet.size > 0) result.conservation.in_flight += payload_of(packet);
  };
  for (const std::uint32_t id : owned_) {
    const Link& link = world_.links[id];
    WEFT_CHECK(link.tail - link.head <= link.capacity &&
               link.cur - link.head <= link.tail - link.head);
    for (std::uint32_t i = link.head; i != link.tail; ++i) count(link.at(i));
    for (std::uint32_t k = 0; world_.class_count > 1 && k < world_.class_count; ++k) {
      const ClassQueue& queue = world_.queues[std::size_t{id} * world_.class_count + k];
      for (std::uint32_t i = queue.head; i != queue.tail; ++i) count(queue.at(i));
    }
  }
  for (const std::uint32_t id : receiving_across_) {
    const Link& twin = world_.links[world_.link_count + id];
    for (std::uint32_t i = twin.head; i != twin.tail; ++i) count(twin.at(i));
  }
}

}  // namespace weft::engine::packet
