#include "engine/packet_jobs/message_graph.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::engine::packet {

std::uint32_t MessageGraph::add_connections(NodeId src, NodeId dst, std::uint32_t streams) {
  const auto first = static_cast<std::uint32_t>(set_.connections.size());
  for (std::uint32_t qp = 0; qp < streams; ++qp)
    set_.connections.push_back({.src = src, .dst = dst, .qp = qp});
  return first;
}

MessageId MessageGraph::add(const Spec& spec) {
  WEFT_CHECK(set_.messages.size() < std::size_t{INT32_MAX});
  set_.messages.push_back(
      {.connection = spec.connection, .bytes = spec.bytes, .delay_ns = spec.delay_ns});
  return size() - 1;
}

std::uint32_t MessageGraph::join_connection(NodeId node) {
  if (node.index() >= joins_.size()) joins_.resize(node.index() + 1, 0);
  std::uint32_t& known = joins_[node.index()];
  if (known == 0) known = add_connections(node, node, 1) + 1;
  return known - 1;
}

MessageId MessageGraph::add_join(NodeId node, std::span<const MessageEvent> events,
                                 Duration delay) {
  const std::uint32_t connection = join_connection(node);
  std::int64_t left_ns = (delay.ps + 500) / 1000;
  const auto step = [&] {
    const std::int64_t ns = std::min<std::int64_t>(left_ns, UINT32_MAX);
    left_ns -= ns;
    return add({connection, 0, static_cast<std::uint32_t>(ns)});
  };
  MessageId last = step();
  for (const MessageEvent event : events) wait(last, event);
  while (left_ns > 0) {
    const MessageId next = step();
    wait(next, {last});
    last = next;
  }
  return last;
}

void MessageGraph::not_before(MessageId message, Time time) {
  set_.messages[message].not_before_ps =
      static_cast<std::uint64_t>(std::max<std::int64_t>(time.ps, 0));
}

void MessageGraph::wait_all(MessageId first, std::uint32_t count,
                            std::span<const MessageEvent> events, NodeId node) {
  const std::size_t direct = events.size() * count * sizeof(Dependent);
  const std::size_t joined = (events.size() + count) * sizeof(Dependent) + sizeof(Message);
  if (direct > joined) {
    const MessageEvent join{add_join(node, events)};
    for (std::uint32_t i = 0; i < count; ++i) wait(first + i, join);
    return;
  }
  for (std::uint32_t i = 0; i < count; ++i)
    for (const MessageEvent event : events) wait(first + i, event);
}

MessageSet MessageGraph::take() {
  set_.messages.emplace_back();  // closes the lists of dependents
  std::vector<Message>& messages = set_.messages;
  for (const Wait& wait : waits_) {
    ++messages[wait.waiting].waits;
    ++messages[wait.event.message + 1].first_dependent;  // counts first
  }
  for (std::size_t m = 1; m < messages.size(); ++m)
    messages[m].first_dependent += messages[m - 1].first_dependent;
  set_.dependents.resize(waits_.size());
  std::vector<std::uint32_t> filled(messages.size(), 0);
  for (const Wait& wait : waits_) {
    const MessageId m = wait.event.message;
    Dependent& row = set_.dependents[messages[m].first_dependent + filled[m]++];
    row.message = wait.waiting & INT32_MAX;
    row.when = static_cast<std::uint32_t>(wait.event.when) & 1u;
  }
  waits_ = {};
  joins_.clear();
  return std::exchange(set_, {});
}

std::vector<bool> reachable(const MessageSet& set) {
  std::vector<std::uint32_t> waits(set.size()), queue;
  for (MessageId m = 0; m < set.size(); ++m) {
    waits[m] = set.messages[m].waits;
    if (waits[m] == 0) queue.push_back(m);
  }
  std::vector<bool> out(set.size(), false);
  for (std::size_t i = 0; i < queue.size(); ++i) {
    out[queue[i]] = true;
    for (const Dependent dependent : set.dependents_of(queue[i]))
      if (--waits[dependent.message] == 0) queue.push_back(dependent.message);
  }
  return out;
}

}  // namespace weft::engine::packet
