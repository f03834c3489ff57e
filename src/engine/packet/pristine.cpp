#include "engine/packet/pristine.hpp"

#include <algorithm>

namespace weft::engine::packet {
namespace {

void restore_link(World& world, std::uint32_t id) {
  Link& link = world.links[id];
  link.free = link.due = 0;
  link.head = link.cur = link.tail = 0;  // the ring stays
  link.waiting = 0;
  link.paused = link.queued = 0;
  link.noticed = 0;
  LinkTally& tally = world.tallies[id];
  tally = {.port = tally.port};
  world.rare[id] = {};
  if (link.source) {
    Source& source = world.sources[link.owner];
    source = {.link = source.link};
  }
  for (std::uint32_t c = 0; world.class_count > 1 && c < world.class_count; ++c) {
    ClassQueue& queue = world.queues[std::size_t{id} * world.class_count + c];
    queue.head = queue.tail = queue.deficit = 0;
  }
}

}  // namespace

Pristine::Pristine(const World& world)
    : nscc_(world.protocols.nscc_senders),
      hpcc_(world.protocols.hpcc_senders),
      dcqcn_(world.protocols.dcqcn_senders) {
  for (std::size_t c = 0; c < world.senders.size(); ++c) senders_.push_back(world.senders[c]);
}

void Pristine::restore_connection(World& world, std::uint32_t c) const {
  Protocols& p = world.protocols;
  world.senders[c] = senders_[c];
  world.receivers[c] = Receiver{.in_order = transport::GobackReceiver(world.options.first_psn)};
  if (!p.drawn.empty()) p.drawn[c] = 0;
  if (!p.next_entropy.empty()) p.next_entropy[c] = none;
  if (!p.caches.empty()) p.caches[c] = {};
  if (!p.flowlets.empty()) p.flowlets[c] = {};
  if (p.selective()) {
    std::ranges::fill(p.received_words(c), 0);
    std::ranges::fill(p.sent_words(c), 0);
    p.selective_senders[c] = transport::SelectiveSender(world.options.first_psn);
    p.selective_receivers[c] = transport::SelectiveReceiver(world.options.first_psn);
    p.in_flight[c] = 0;
    p.round_trips[c] = 0;
    if (world.gathers) p.heard[c] = p.counted[c] = 0;
  }
  if (!nscc_.empty()) p.nscc_senders[c] = nscc_[c];
  if (!hpcc_.empty()) p.hpcc_senders[c] = hpcc_[c];
  if (dcqcn_.empty()) return;
  p.dcqcn_senders[c] = dcqcn_[c];
  p.dcqcn_receivers[c] = {};
}

void Pristine::restore_node(World& world, NodeBuffer& node) const {
  node.waiting = node.waiting_max = node.record_above = 0;
  node.paused = 0;
  node.recording = 0;
  node.batch.reset();
  const std::size_t ingresses = std::size_t{node.port_count} * world.class_count;
  std::fill_n(world.ingresses.begin() + node.first_ingress, ingresses, Ingress{});
  if (!world.reliefs.empty())
    for (std::size_t i = 0; i < ingresses; ++i) world.reliefs[node.first_ingress + i].at = never;
  // Of sources only those of links with a queue are read.
  std::fill_n(world.port_set(node, PortSet::queued),
              std::size_t{node.set_words} * static_cast<std::size_t>(PortSet::first_sources), 0);
}

void Pristine::restore(World& world, const PhaseClasses::Class& used, std::uint32_t cables) const {
  for (const std::uint32_t c : used.connections) restore_connection(world, c);
  for (const std::uint32_t resource : used.resources) {
    if (resource >= cables) {
      restore_node(world, world.nodes[resource - cables]);
    } else {
      restore_link(world, 2 * resource);
      restore_link(world, 2 * resource + 1);
    }
  }
}

void Pristine::restore_messages(World& world, const Phase& phase) const {
  for (std::uint32_t m = phase.first; m < phase.last; ++m) {
    world.message_states[m] = {.waits_or_end_high = world.set.messages[m].waits};
    world.ends[m] = {};
  }
}

}  // namespace weft::engine::packet
