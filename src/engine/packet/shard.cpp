#include <algorithm>
#include <bit>

#include "base/check.hpp"
#include "engine/packet/shard_link.hpp"
#include "route/hash.hpp"
#include "transport/red.hpp"

namespace weft::engine::packet {
namespace {

constexpr std::uint32_t lost_way = none - 1;  // no link leads there any more

std::size_t log_bin(std::uint64_t value) {
  return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(value)),
                               LogHistogram{}.size() - 1);
}

}  // namespace

Shard::Shard(World& world, std::uint32_t index, std::uint32_t count)
    : world_(world),
      index_(index),
      wheel_(world.links, world.link_count),
      memory_(world.pages),
      outbox_(count) {
  tiers_.resize(world.fabric.tiers().size());
}

void Shard::open(std::uint32_t wheel_width, std::uint32_t bucket_bits) {
  wheel_.open(wheel_width, bucket_bits);
}

void Shard::own(std::uint32_t id) { owned_.push_back(id); }

void Shard::take_over(std::uint32_t id) {
  Link& twin = world_.links[world_.link_count + id];
  twin = world_.links[id];
  receiving_across_.push_back(id);
}

void Shard::run(Ps until) {
  for (Event event{}; wheel_.pop_before(until, event);) {
    now_ = event.t;
    ++counters_.events;
    handle(event);
  }
}

void Shard::run_to_output(Ps until, std::size_t messages) {
  for (Event event{};
       outputs_.empty() && messages_over_ < messages && wheel_.pop_before(until, event);) {
    now_ = event.t;
    ++counters_.events;
    handle(event);
  }
}

void Shard::restart() {
  now_ = last_arrival_ = window_end_ = 0;
  overrun_ = none;
  wheel_.clear();
  lost_here_.clear();
  lossless_drops_.clear();
  outputs_.clear();
  notices_.clear();
  repairs_.clear();
  messages_over_ = 0;
  counters_ = {};
  conservation_ = {};
  tiers_.assign(tiers_.size(), {});
}

void Shard::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::arrival:
      return arrival(event.id);
    case EventKind::departure:
      return on_departure(event.id);
    case EventKind::relief:
      return on_relief(event.id);
    case EventKind::nic:
      return on_nic(event.id);
    case EventKind::pause:
      return on_pause(event.id / class_count_max, event.id % class_count_max);
    case EventKind::resume:
      return on_resume(event.id / class_count_max, event.id % class_count_max);
    case EventKind::start:
      return on_start(event.id);
    case EventKind::ready:
      return activate(event.id);
    case EventKind::timeout:
      return on_timeout(event.id);
    case EventKind::grant:
      return on_grant_due(event.id);
    case EventKind::ack:
      return on_ack_due(event.id);
    case EventKind::loss:
      return on_loss(event.id);
  }
}

// Windows.

void Shard::close_window(Ps until) {
  WEFT_CHECK(until >= window_end_);
  window_end_ = until;
  for (const Outbox& box : outbox_)
    for (const std::uint32_t id : box.links) settle(id, world_.links[id], until - 1);
}

Ps Shard::open_window(const std::vector<std::unique_ptr<Shard>>& all) {
  for (const auto& shard : all) {
    const Outbox& box = shard->outbox_[index_];
    for (const std::uint32_t id : box.links) {
      Link& link = world_.links[id];
      Link& twin = world_.links[world_.link_count + id];
      if (link.head == link.cur) continue;
      const bool was_empty = twin.head == twin.tail;
      while (link.head != link.cur) {
        if (twin.tail - twin.head == twin.capacity) grow(twin);
        twin.at(twin.tail++) = link.at(link.head++);
      }
      twin.cur = twin.tail;
      if (was_empty) wheel_.push_arrival(twin.at(twin.head).t, world_.link_count + id);
    }
    for (const Event& event : box.events) push(event.t, event.kind, event.id);
    for (LossNotice notice : box.losses) {
      notice.at = std::max(notice.at, window_end_);  // routes may have changed under the packet
      take_notice(notice);
    }
  }
  return wheel_.next_time();
}

Ps Shard::forget_taken() {
  Ps first = never;
  for (Outbox& box : outbox_) {
    box.events.clear();
    box.losses.clear();
    std::erase_if(box.links, [&](std::uint32_t id) {
      Link& link = world_.links[id];
      if (link.waiting == 0) {
        link.listed = 0;
        return true;
      }
      first = std::min(first, next_start(id, link));
      return false;
    });
  }
  return first;
}

void Shard::post(Ps t, EventKind kind, std::uint32_t id, std::uint32_t shard) {
  if (shard == index_) return push(t, kind, id);
  WEFT_CHECK(shard < outbox_.size() && t >= now_);
  outbox_[shard].events.push_back({t, kind, id});
}

// Links.

// When the first packet that waits for the link can start; `never` when none may.
Ps Shard::next_start(std::uint32_t id, const Link& link) const {
  if (link.waiting == 0) return never;
  if (world_.class_count == 1) return link.paused ? never : link.free;
  const ClassQueue* queues = &world_.queues[std::size_t{id} * world_.class_count];
  Ps first = never;
  for (std::uint32_t left = link.ready(); left != 0; left &= left - 1) {
    const ClassQueue& q = queues[std::countr_zero(left)];
    first = std::min(first, q.at(q.head).t);
  }
  return first == never ? never : std::max(first, link.free);
}

// The class to serve next at time `start`: strict ones first, then those with a weight in turn.
ClassQueue* Shard::next_class(std::uint32_t id, const Link& link, Ps start) {
  const std::vector<std::uint32_t>& weights = world_.options.scheduler.weights;
  ClassQueue* queues = &world_.queues[std::size_t{id} * world_.class_count];
  const auto ready = [&](std::uint32_t c) {
    const ClassQueue& q = queues[c];
    return (link.ready() >> c & 1) != 0 && q.at(q.head).t <= start;
  };
  bool weighted = false;
  for (std::uint32_t c = world_.class_count; c-- > 0;) {
    if (!ready(c)) continue;
    if (weights[c] == 0) return &queues[c];
    weighted = true;
  }
  // Deficit round robin: a class goes on while its deficit lasts; then all with packets get more.
  while (weighted) {
    for (std::uint32_t c = 0; c < world_.class_count; ++c) {
      if (weights[c] == 0 || !ready(c)) continue;
      const std::uint32_t size = queues[c].at(queues[c].head).size;
      if (queues[c].deficit < size) continue;
      queues[c].deficit -= size;
      return &queues[c];
    }
    for (std::uint32_t c = 0; c < world_.class_count; ++c)
      if (weights[c] > 0) queues[c].deficit = ready(c) ? queues[c].deficit + weights[c] : 0;
  }
  return nullptr;
}

void Shard::settle_waiting(std::uint32_t id, Link& link, Ps t) {
  if (world_.class_count > 1) return settle_classes(id, link, t);
  while (link.cur != link.tail && link.free <= t && !link.paused) {
    Packet& packet = link.at(link.cur);
    const Ps start = std::max(packet.t, link.free);
    link.waiting -= packet.size;
    if (link.buffered && world_.accounts) leave_buffer(world_.nodes[link.owner], packet, start);
    depart(id, link, packet, PacketFacts(packet), start);
    if (link.head == link.cur && !link.cross) wheel_.push_arrival(packet.t, id);
    ++link.cur;
  }
}

void Shard::settle_classes(std::uint32_t id, Link& link, Ps t) {
  while (link.free <= t && link.ready() != 0) {
    const std::uint32_t ready = link.ready();
    ClassQueue* queue = &world_.queues[std::size_t{id} * world_.class_count];
    Ps start = 0;
    if ((ready & (ready - 1)) == 0 && (ready & world_.deficit_classes) == 0) {
      queue += std::countr_zero(ready);
      start = std::max(queue->at(queue->head).t, link.free);
      if (start > t) return;
    } else {
      start = next_start(id, link);
      if (start > t) return;
      queue = next_class(id, link, start);
    }
    const Packet& first = queue->at(queue->head++);
    const PacketFacts facts(first);
    if (queue->head == queue->tail)
      link.queued = static_cast<std::uint8_t>(link.queued & ~(1u << facts.traffic_class));
    link.waiting -= facts.size;
    count_waiting(id, facts.traffic_class, -std::int64_t{facts.size});
    if (link.buffered && world_.accounts) leave_buffer(world_.nodes[link.owner], first, start);
    __builtin_prefetch(&queue->at(queue->head));
    Packet& leaving = slot(link);
    leaving = first;
    append(id, link, depart(id, link, leaving, facts, start));
  }
}

Packet& Shard::place_to_wait(std::uint32_t id, Link& link, std::uint32_t traffic_class) {
  if (world_.class_count == 1) return slot(link);
  ClassQueue& queue = world_.queues[std::size_t{id} * world_.class_count + traffic_class];
  if (queue.tail - queue.head == queue.capacity) grow(queue);
  return queue.at(queue.tail);
}

// The packet stands in its place_to_wait.
void Shard::wait(std::uint32_t id, Link& link, PacketFacts facts) {
  if (world_.class_count == 1) {
    ++link.tail;
  } else {
    ClassQueue& queue = world_.queues[std::size_t{id} * world_.class_count + facts.traffic_class];
    ++queue.tail;
    link.queued = static_cast<std::uint8_t>(link.queued | 1u << facts.traffic_class);
    count_waiting(id, facts.traffic_class, facts.size);
  }
  link.waiting += facts.size;
  if (link.waiting < facts.size) [[unlikely]]
    overrun_ = std::min(overrun_, id);
  if (link.cross) list(id, link);
  LinkTally& tally = world_.tallies[id];
  tally.queue_max = std::max(tally.queue_max, link.waiting);
  // Nothing on the wire will make anybody look at this link: a pause frame went out last.
  if (link.head == link.cur && !link.cross && next_start(id, link) != never) notice(id, link);
}

void Shard::send(std::uint32_t id, const Packet& packet) {
  Link& link = world_.links[id];
  if (link.dead) return lose(id, packet);
  settle(id, link, now_);
  const bool goes = idle(link, packet.traffic_class);
  const PacketFacts facts(packet);
  Packet& place = goes ? slot(link) : place_to_wait(id, link, facts.traffic_class);
  place = packet;
  if (!goes) {
    place.t = now_;
    return wait(id, link, facts);
  }
  append(id, link, depart(id, link, place, facts, now_));
}

void Shard::notice(std::uint32_t id, Link& link) {
  if (link.noticed) return;
  link.noticed = 1;
  push(std::max(link.free, now_), EventKind::departure, id);
}

// Switches.

void Shard::arrival(std::uint32_t id) {
  last_arrival_ = now_;
  Link& in = world_.links[id];
  // First, as what starts now may take the place of what arrives.
  if (in.waiting > 0 && id < world_.link_count) settle(id, in, now_);
  Packet& packet = in.at(in.head++);
  if (in.head != in.cur) wheel_.push_arrival(in.at(in.head).t, id);
  if (id >= world_.link_count) {
    id -= world_.link_count;
  } else if (in.waiting > 0) {
    // A frame may still be on a wire that is otherwise empty.
    const bool alone = in.head == in.cur && !in.cross;
    if (alone || (in.buffered && watched(world_.nodes[in.owner], id))) notice(id, in);
  }
  if (packet.size == 0) return;  // lost with its link
  if (in.lossy &&
      coin(world_.options.seed ^ now_, packet.connection, packet.psn, id) < world_.loss[id])
    return lose_here(id, packet);
  if (!world_.protocols.candidates.empty() && packet.is_data() && in.source) [[unlikely]]
    packet.path = divert(packet);
  const std::uint32_t out = next_link(in, id, packet);
  if (out == none) return deliver(id, packet);
  if (out == lost_way) return lose_here(id, packet);
  forward(id, in, out, packet);
}

std::uint32_t Shard::next_link(const Link& in, std::uint32_t id, const Packet& packet) {
  if (world_.protocols.by_table(packet.connection)) return next_by_table(in, id, packet);
  if (!goes_forward(packet.kind()))
    return packet.hop() == 0 ? none : World::reverse(world_.paths[packet.path + packet.hop() - 1u]);
  const std::uint32_t next = world_.paths[packet.path + packet.hop() + 1u];
  if (next != none || in.drain || world_.drain.empty()) return next;
  return world_.drain[in.to];
}

std::uint32_t Shard::next_by_table(const Link& in, std::uint32_t id, const Packet& packet) {
  Protocols& p = world_.protocols;
  const Ends& ends = p.ends[packet.connection];
  const bool forward = goes_forward(packet.kind());
  if (in.to == (forward ? ends.dst : ends.src)) {
    if (!forward || in.drain || world_.drain.empty()) return none;
    world_.receivers[packet.connection].last_link = id;  // by which it is answered
    return world_.drain[in.to];
  }
  if (const std::uint32_t kept = next_on_path(in, packet); kept != none) return kept;
  const std::uint32_t target = forward ? ends.dst_target : ends.src_target;
  if (target == route::Fib::no_target) return lost_way;
  const auto links = p.fib->next(NodeId(in.to), target);
  if (links.size() == 1) return links[0].value;
  if (links.empty()) return lost_way;
  const std::uint64_t hash = mix64(
      (std::uint64_t{packet.connection} << 16 | (packet.path & 0xFFFF)) + world_.nodes[in.to].salt);
  const std::size_t hashed = route::scale(hash, links.size());
  if (!packet.is_data()) return links[hashed].value;
  if (world_.options.balance == Balance::adaptive) return least_queue(links, hash);
  if (world_.options.balance == Balance::flowlet && world_.links[id].source) {
    transport::FlowletEntry& flowlet = p.flowlets[packet.connection];
    const auto gap = static_cast<Ps>(world_.options.flowlet_gap.ps);
    if (flowlet.on_packet(gap, now_) == transport::FlowletEntry::Choice::anew) {
      const std::uint32_t best = least_queue(links, hash);
      for (std::size_t i = 0; i < links.size(); ++i)
        if (links[i].value == best) flowlet.port = static_cast<std::uint16_t>(i);
    }
    return links[std::min<std::size_t>(flowlet.port, links.size() - 1)].value;
  }
  return links[hashed].value;
}

// The next link of a packet that came in by link `in`, where packets keep to the path of their
// connection. `none` for one that is not on it, since the path has changed: it goes by the table.
std::uint32_t Shard::next_on_path(const Link& in, const Packet& packet) const {
  const auto path = world_.kept_path(packet.connection);
  const std::size_t hop = packet.hop();
  if (goes_forward(packet.kind())) {
    const bool is_on =
        hop + 1 < path.size() && world_.fabric.from(LinkId(path[hop + 1])).value == in.to;
    return is_on ? path[hop + 1] : none;
  }
  const bool is_on =
      hop > 0 && hop <= path.size() && world_.fabric.to(LinkId(path[hop - 1])).value == in.to;
  return is_on ? World::reverse(path[hop - 1]) : none;
}

// The one with the fewest bytes waiting; of several the first from where the hash falls.
std::uint32_t Shard::least_queue(std::span<const LinkId> links, std::uint64_t hash) {
  std::uint32_t best = none, least = UINT32_MAX;
  const std::size_t first = route::scale(hash, links.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    const std::uint32_t id = links[(first + i) % links.size()].value;
    Link& link = world_.links[id];
    settle(id, link, now_);
    const std::uint32_t waiting = link.paused ? UINT32_MAX - 1 : link.waiting;
    if (waiting >= least) continue;
    best = id;
    least = waiting;
  }
  return best;
}

// At the first switch: the minimal path or the detour with the least queue x links (Kim et al.,
// "Technology-driven, highly-scalable dragonfly topology", ISCA 2008: UGAL-L), for a flowlet.
std::uint32_t Shard::divert(const Packet& packet) {
  Protocols& p = world_.protocols;
  const Candidates& c = p.candidates[packet.connection];
  transport::FlowletEntry& flowlet = p.flowlets[packet.connection];
  const auto gap = static_cast<Ps>(world_.options.flowlet_gap.ps);
  if (flowlet.on_packet(gap, now_) == transport::FlowletEntry::Choice::keep &&
      flowlet.port < c.minimal + c.detours)
    return p.candidate_paths[c.first + flowlet.port];
  std::uint64_t least = UINT64_MAX;
  for (std::uint16_t i = 0; i < c.minimal + c.detours; ++i) {
    const std::uint32_t path = p.candidate_paths[c.first + i];
    const std::uint64_t length = world_.links_of(path).size();
    const std::uint32_t id = world_.paths[path + 1];
    if (id == none || world_.links[id].dead) continue;
    settle(id, world_.links[id], now_);
    const std::uint64_t cost = (world_.links[id].waiting + world_.full_size) * length;
    if (cost >= least) continue;
    least = cost;
    flowlet.port = i;
  }
  return least == UINT64_MAX ? packet.path : p.candidate_paths[c.first + flowlet.port];
}

void Shard::forward(std::uint32_t in_id, const Link& in, std::uint32_t out_id,
                    const Packet& packet) {
  Link& out = world_.links[out_id];
  if (out.dead) [[unlikely]]
    return lose(out_id, packet);
  settle(out_id, out, now_);
  if (out.buffered) ++tiers_[world_.kinds[out.kind].tier].queue_bytes[log_bin(out.waiting)];
  const bool goes = idle(out, packet.traffic_class);
  const bool accounted = !goes && out.buffered && world_.accounts;
  NodeBuffer& node = world_.nodes[in.to];
  if (accounted && packet.is_data()) {
    const Room room = room_for(node, in, out_id, packet);
    if (room != Room::enough) {
      if (world_.options.overflow == Overflow::trim) return forward_trimmed(in, out_id, packet);
      return drop(room, in_id, out_id, packet);
    }
  }
  PacketFacts facts(packet);
  Packet& place = goes ? slot(out) : place_to_wait(out_id, out, facts.traffic_class);
  place = packet;
  const std::uint32_t step = goes_forward(facts.kind) ? 1u : static_cast<std::uint32_t>(-1);
  place.set_place(in.port, packet.hop() + (out.drain ? 0 : step));
  if (packet.is_data() && out.waiting > world_.kinds[out.kind].kmin && marks(out, out_id, packet)) {
    counters_.ecn_marks += facts.marked == 0 ? 1 : 0;
    facts.marked = place.marked = 1;
  }
  if (goes) return append(out_id, out, depart(out_id, out, place, facts, now_));
  place.t = now_;
  if (!accounted) return wait(out_id, out, facts);

  note_source(node, out_id, out, in.port);
  wait(out_id, out, facts);
  enter_buffer(node, facts.size);
  world_.ingress(node, in.port, facts.traffic_class).bytes += facts.size;
  if (watched(node, out_id)) notice(out_id, out);
  if (world_.options.pfc.on && in.guarded) check_pause(node, in, in_id, facts.traffic_class);
}

// Before a packet that came in by `port` waits for a link.
void Shard::note_source(const NodeBuffer& node, std::uint32_t out_id, const Link& out,
                        std::uint32_t port) {
  const std::uint32_t port_out = world_.tallies[out_id].port;
  std::uint64_t* sources = world_.sources_at(node, port_out);
  if (out.waiting == 0) {
    if (world_.records_pauses) [[unlikely]]
      world_.queue_pauses[out_id].built = now_;
    std::fill_n(sources, node.set_words, 0);
    add_port(world_.port_set(node, PortSet::queued), port_out);
  }
  add_port(sources, port);
}

// Whether packets of a paused ingress may wait for a link.
bool Shard::holds_paused(const NodeBuffer& node, std::uint32_t link) const {
  const std::uint64_t* paused = world_.port_set(node, PortSet::paused);
  const std::uint64_t* sources = world_.sources_at(node, world_.tallies[link].port);
  for (std::uint32_t word = 0; word < node.set_words; ++word)
    if ((paused[word] & sources[word]) != 0) return true;
  return false;
}

// The payload is cut off where there is no room for it; the header goes on in the control class.
void Shard::forward_trimmed(const Link& in, std::uint32_t out_id, const Packet& packet) {
  ++counters_.trims;
  ++world_.rare[out_id].trimmed;
  count_in_class(out_id, packet, &LinkCounters::trimmed);
  conservation_.dropped += payload_of(packet);
  Packet header = packet;
  header.type = static_cast<std::uint32_t>(PacketType::trimmed) & 7;
  header.size = static_cast<std::uint16_t>(world_.control_size);
  header.traffic_class = world_.options.scheduler.control_class & 7;
  header.set_place(in.port, packet.hop() + 1);
  Link& out = world_.links[out_id];
  header.asks = leads_to_nic(out) ? 1 : 0;
  if (!idle(out, header.traffic_class) && out.buffered) {
    NodeBuffer& node = world_.nodes[in.to];
    enter_buffer(node, header.size);
    world_.ingress(node, in.port, header.traffic_class).bytes += header.size;
    note_source(node, out_id, out, in.port);
  }
  send(out_id, header);
}

bool Shard::leads_to_nic(const Link& out) const {
  return world_.fabric.kind(NodeId(out.to)) == model::NodeKind::nic;
}

bool Shard::marks(const Link& out, std::uint32_t out_id, const Packet& packet) const {
  // What the last link takes, credit sees to.
  if (world_.options.admission == Admission::pull && leads_to_nic(out)) return false;
  const LinkKind& kind = world_.kinds[out.kind];
  return coin(world_.options.seed, packet.connection, packet.psn, out_id) <
         transport::mark_probability(Bytes{out.waiting}, Bytes{kind.kmin}, Bytes{kind.kmax},
                                     world_.options.ecn.pmax);
}

// For a data packet that has to wait. Counters are upper bounds, so only a refusal needs an exact
// look.
Shard::Room Shard::room_for(NodeBuffer& node, const Link& in, std::uint32_t out_id,
                            const Packet& packet) {
  const auto fits = [&] {
    const Ingress& ingress = world_.ingress(node, in.port, packet.traffic_class);
    if (ingress.bound != 0) return ingress.bytes + packet.size <= ingress.bound;
    return world_.options.pfc.on || node.pool == 0 || node.waiting + packet.size <= node.pool;
  };
  const std::uint32_t queue = world_.links[out_id].waiting;
  if (node.per_port != 0 && queue + packet.size > node.per_port) return Room::none_at_port;
  if (fits()) return Room::enough;
  look_exactly(node);
  return fits() ? Room::enough : Room::none_in_memory;
}

void Shard::look_exactly(NodeBuffer& node) {
  std::uint64_t* queued = world_.port_set(node, PortSet::queued);
  for_each_port(queued, node.set_words, [&](std::uint32_t port) {
    const std::uint32_t id = world_.ports[node.first_port + port];
    Link& link = world_.links[id];
    if (link.waiting > 0) settle(id, link, now_);
    if (link.waiting == 0) remove_port(queued, port);
  });
}

// The upper bound of what waits exceeds the known maximum, or a batch has begun.
void Shard::record_entry(NodeBuffer& node, std::uint32_t size) {
  // A full batch costs a look at all ports: some entries for each.
  constexpr std::uint32_t entries_min = 64;
  if (node.batch == nullptr)
    node.batch = std::make_unique<OccupancyBatch>(std::max(entries_min, node.port_count));
  node.batch->enter(now_, node.waiting, size);
  node.recording = 1;
  node.record_above = 0;
  if (!node.batch->full()) return;
  look_exactly(node);
  close_batch(node);
}

// All departures up to now are known.
void Shard::close_batch(NodeBuffer& node) {
  if (!node.recording) return;
  node.waiting_max = std::max(node.waiting_max, node.batch->close());
  node.record_above = node.waiting_max;
  node.recording = 0;
}

void Shard::check_pause(NodeBuffer& node, const Link& in, std::uint32_t in_id,
                        std::uint32_t traffic_class) {
  Ingress& ingress = world_.ingress(node, in.port, traffic_class);
  if (ingress.bound != 0 || ingress.bytes <= world_.xoff(node, node.waiting)) return;
  look_exactly(node);
  const std::uint64_t xoff = world_.xoff(node, world_.shared(node));
  if (ingress.bytes <= xoff) return;
  ingress.bound = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      UINT32_MAX, std::max<std::uint64_t>(xoff, ingress.bytes) + world_.headroom[in.kind]));
  ++node.paused;
  add_port(world_.port_set(node, PortSet::paused), in.port);
  if (world_.records_pauses) record_decision(node, in.port, in_id, traffic_class);
  send_frame(in_id, traffic_class, EventKind::pause);
  if (!world_.reliefs.empty()) return watch(node, in.port);
  for_each_port(world_.port_set(node, PortSet::queued), node.set_words, [&](std::uint32_t port) {
    const std::uint32_t id = world_.ports[node.first_port + port];
    Link& link = world_.links[id];
    if (next_start(id, link) != never && watched(node, id)) notice(id, link);
  });
}

void Shard::check_resume(NodeBuffer& node) {
  // Under fixed thresholds an ingress can go on only because of what left itself.
  std::uint64_t* paused = world_.port_set(node, PortSet::paused);
  std::uint64_t* relieved = world_.port_set(node, PortSet::relieved);
  to_check_.assign(paused, paused + node.set_words);
  for (std::uint32_t word = 0; word < node.set_words; ++word) {
    if (!world_.shares_pool) to_check_[word] &= relieved[word];
    relieved[word] = 0;
  }
  const std::uint64_t xon = world_.xon(node);
  for_each_port(to_check_.data(), node.set_words, [&](std::uint32_t port) {
    bool stays = false;
    for (std::uint32_t c = 0; c < world_.class_count; ++c) {
      Ingress& ingress = world_.ingress(node, port, c);
      if (ingress.bound == 0) continue;
      if (ingress.bytes > xon) {
        stays = true;
        continue;
      }
      WEFT_CHECK(node.paused > 0);
      ingress.bound = 0;
      --node.paused;
      send_frame(World::reverse(world_.ports[node.first_port + port]), c, EventKind::resume);
    }
    if (!stays) remove_port(paused, port);
  });
}

// When so many of an ingress' packets have left that it may be at XON, not before: with n queues to
// leave from, one of them must have sent an n-th of what is too much. `never` until a link resumes.
// What comes in later changes nothing, since it has to leave as well.
Ps Shard::relief_time(const NodeBuffer& node, std::uint32_t port) {
  holding_.clear();
  for_each_port(world_.port_set(node, PortSet::queued), node.set_words, [&](std::uint32_t out) {
    if (!has_port(world_.sources_at(node, out), port)) return;
    const Link& link = world_.links[world_.ports[node.first_port + out]];
    if (link.waiting > 0 && !link.paused) holding_.push_back(&link);
  });
  const std::uint64_t excess = world_.ingress(node, port, 0).bytes - world_.xon(node);
  Ps first = never;
  for (const Link* link : holding_) {
    std::uint64_t left = 0;
    Ps start = link->free;
    for (std::uint32_t i = link->cur; i != link->tail && start < first; ++i) {
      const Packet& packet = link->at(i);
      if (packet.port() == port) left += packet.size;
      if (left * holding_.size() >= excess) first = start;
      start += world_.kinds[link->kind].serialisation(packet.size);
    }
  }
  return first;
}

// Of an ingress that is paused, above XON, at a node where all is settled.
void Shard::watch(const NodeBuffer& node, std::uint32_t port) {
  const std::uint32_t ingress = node.first_ingress + port;
  Relief& relief = world_.reliefs[ingress];
  const Ps at = relief_time(node, port);
  if (at != relief.at && at != never) push(at, EventKind::relief, ingress);
  relief.at = at;
}

// Of the paused ones among `ports` of a node: what waits there has changed its pace.
void Shard::watch_again(NodeBuffer& node, const std::uint64_t* ports) {
  look_exactly(node);
  check_resume(node);
  const std::uint64_t* paused = world_.port_set(node, PortSet::paused);
  for (std::uint32_t word = 0; word < node.set_words; ++word) {
    const std::uint64_t both = paused[word] & ports[word];
    for_each_port(&both, 1, [&](std::uint32_t port) { watch(node, word * 64 + port); });
  }
}

void Shard::on_relief(std::uint32_t ingress) {
  Relief& relief = world_.reliefs[ingress];
  if (relief.at != now_) return;  // another look has taken its place
  relief.at = never;
  if (world_.ingresses[ingress].bound == 0) return;
  NodeBuffer& node = world_.nodes[relief.node];
  look_exactly(node);
  check_resume(node);
  if (world_.ingresses[ingress].bound != 0) watch(node, ingress - node.first_ingress);
}

// A frame for the sender of `in_id`. It goes ahead of all that waits on the way back, takes its
// time on the wire, and is not itself subject to pauses.
void Shard::send_frame(std::uint32_t in_id, std::uint32_t traffic_class, EventKind kind) {
  const std::uint32_t back_id = World::reverse(in_id);
  Link& back = world_.links[back_id];
  if (back.dead) return;
  settle(back_id, back, now_);
  const LinkKind& link_kind = world_.kinds[back.kind];
  const auto size = static_cast<std::uint32_t>(world_.options.wire.pause.count);
  back.free = std::max(back.free, now_) + link_kind.serialisation(size);
  world_.tallies[back_id].bytes += size;
  ++world_.tallies[back_id].control;
  ++counters_.pause_frames;
  post(back.free + link_kind.latency + world_.response, kind,
       in_id * class_count_max + traffic_class,
       world_.partition[world_.fabric.from(LinkId(in_id)).index()]);
}

void Shard::on_departure(std::uint32_t id) {
  Link& link = world_.links[id];
  link.noticed = 0;
  settle(id, link, now_);
  if (!link.buffered) return;
  NodeBuffer& node = world_.nodes[link.owner];
  if (node.paused > 0) check_resume(node);
  if (next_start(id, link) != never && watched(node, id)) notice(id, link);
}

void Shard::on_pause(std::uint32_t id, std::uint32_t traffic_class) {
  Link& link = world_.links[id];
  if (link.dead || world_.links[World::reverse(id)].dead) return;  // it was on the wire
  settle(id, link, now_);
  if (world_.records_pauses)
    pauses_.push_back({.t = now_, .kind = PauseRecord::Kind::begun, .link = id});
  if (!link.paused) world_.rare[id].paused_since = now_;
  ++world_.rare[id].pauses;
  count_pause(id, traffic_class, true);
  link.paused = static_cast<std::uint8_t>(link.paused | 1u << traffic_class);
}

// What goes on now left after all that has arrived now.
void Shard::settle_resumed(std::uint32_t id, Link& link) {
  NodeBuffer* node = link.buffered ? &world_.nodes[link.owner] : nullptr;
  const std::uint64_t before = node == nullptr ? 0 : node->waiting;
  settle(id, link, now_);
  if (node != nullptr && node->recording) node->batch->postpone(now_, before - node->waiting);
}

void Shard::on_resume(std::uint32_t id, std::uint32_t traffic_class) {
  Link& link = world_.links[id];
  settle(id, link, now_);
  const bool was_paused = link.paused != 0;
  if (link.paused == 1u << traffic_class) record_end(id, link, now_);
  count_pause(id, traffic_class, false);
  link.paused = static_cast<std::uint8_t>(link.paused & ~(1u << traffic_class));
  if (was_paused && !link.paused) {
    WEFT_CHECK(now_ >= world_.rare[id].paused_since);
    RareTally& rare = world_.rare[id];
    rare.paused_total += now_ - rare.paused_since;
    ++tiers_[world_.kinds[link.kind].tier].pause_ps[log_bin(now_ - rare.paused_since)];
  }
  link.free = std::max(link.free, now_);
  settle_resumed(id, link);
  // A frame may be on the wire, and nothing else.
  if (link.head == link.cur && !link.cross && next_start(id, link) != never) notice(id, link);
  if (link.source) return wake(id);
  if (!link.buffered) return;
  NodeBuffer& node = world_.nodes[link.owner];
  if (node.paused > 0) check_resume(node);
  if (!world_.reliefs.empty() && holds_paused(node, id))
    watch_again(node, world_.sources_at(node, world_.tallies[id].port));
  if (next_start(id, link) != never && watched(node, id)) notice(id, link);
}

// A data packet, for want of room. With PFC its class is lossless, and who overran what is told.
void Shard::drop(Room room, std::uint32_t in_id, std::uint32_t out_id, const Packet& packet) {
  ++world_.rare[out_id].dropped;
  count_in_class(out_id, packet, &LinkCounters::dropped);
  ++counters_.drops;
  conservation_.dropped += payload_of(packet);
  note_drop(out_id, packet);
  if (!world_.options.pfc.on) return;
  const bool headroom = room == Room::none_in_memory;
  if (headroom) ++counters_.drops_headroom;
  using enum LosslessDrops::Cause;
  ++lossless_drops_[{packet.traffic_class, headroom ? small_headroom : full_port,
                     headroom ? in_id : out_id}];
}

// On a dead link, or one that dies.
void Shard::lose(std::uint32_t link, const Packet& packet) {
  ++world_.rare[link].dropped;
  count_in_class(link, packet, &LinkCounters::dropped);
  note_drop(link, packet);
  count_loss(packet);
}

// In the queue of `link`, or on its wire.
void Shard::note_drop(std::uint32_t link, const Packet& packet) {
  if (!world_.protocols.selective()) return;
  const bool drains = link >= world_.fabric.link_count();
  note_loss(packet, drains ? world_.links[link].to : world_.fabric.from(LinkId(link)).value);
}

// At the far end of a link, which another shard may send on.
void Shard::lose_here(std::uint32_t link, const Packet& packet) {
  ++lost_here_[{link, packet.traffic_class}];
  if (world_.protocols.selective()) note_loss(packet, world_.links[link].to);
  count_loss(packet);
}

// What few runs ask for.
// ---------------------------------------------------------------------------

void Shard::watch_departure(std::uint32_t id, const Link& link, const Packet& packet) {
  if (world_.protocols.int_window != 0 && packet.is_data() && packet.hop() < transport::int_hop_max)
    world_.protocols.telemetry_of(packet.connection, packet.psn)[packet.hop()] = {
        link.free, world_.tallies[id].bytes, link.waiting,
        world_.kinds[link.kind].rate.bytes_per_s()};
  if (world_.by_class.empty()) return;
  LinkCounters& counts = world_.of_class(id, packet.traffic_class).counts;
  counts.bytes += packet.size;
  ++(packet.is_data() ? counts.packets : counts.control);
  counts.ecn_marked += packet.marked && packet.kind() <= PacketType::trimmed ? 1 : 0;
}

void Shard::count_in_class(std::uint32_t link, const Packet& packet,
                           std::uint64_t LinkCounters::* what) {
  if (!world_.by_class.empty()) ++(world_.of_class(link, packet.traffic_class).counts.*what);
}

void Shard::count_waiting(std::uint32_t link, std::uint32_t traffic_class, std::int64_t bytes) {
  if (world_.by_class.empty()) return;
  ClassTally& tally = world_.of_class(link, traffic_class);
  tally.waiting = static_cast<std::uint32_t>(tally.waiting + bytes);
  tally.counts.queue_max = std::max(tally.counts.queue_max, tally.waiting);
}

void Shard::count_pause(std::uint32_t link, std::uint32_t traffic_class, bool begins) {
  if (world_.by_class.empty()) return;
  ClassTally& tally = world_.of_class(link, traffic_class);
  if (begins) ++tally.counts.pauses;
  if (tally.paused == begins) return;
  if (!begins) tally.counts.paused_ps += now_ - tally.paused_since;
  tally.paused = begins;
  tally.paused_since = now_;
}

void Shard::count_loss(const Packet& packet) {
  if (!packet.is_data()) {
    ++counters_.drops_control;
    return;
  }
  ++counters_.drops;
  ++counters_.drops_link;
  conservation_.dropped += payload_of(packet);
}

}  // namespace weft::engine::packet
