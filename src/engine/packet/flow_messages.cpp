#include "engine/packet/flow_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace weft::engine::packet {
namespace {

using model::FlowSet;

// Indexes sorted by key(index) < key_count; equal keys keep their order (a counting sort).
template <class Key>
std::vector<std::uint32_t> sorted_by(const std::vector<std::uint32_t>& order, std::size_t key_count,
                                     Key key) {
  std::vector<std::uint32_t> first(key_count + 1, 0);
  for (const std::uint32_t i : order) ++first[key(i) + 1];
  for (std::size_t k = 0; k < key_count; ++k) first[k + 1] += first[k];
  std::vector<std::uint32_t> out(order.size());
  for (const std::uint32_t i : order) out[first[key(i)]++] = i;
  return out;
}

// Flows by source, then destination, then as in the file.
std::vector<std::uint32_t> by_pair(const FlowSet& flows, std::size_t node_count) {
  std::vector<std::uint32_t> order(flows.flows.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  order = sorted_by(order, node_count, [&](std::uint32_t i) { return flows.flows[i].dst.index(); });
  return sorted_by(order, node_count, [&](std::uint32_t i) { return flows.flows[i].src.index(); });
}

// Tells the connections between two NICs apart.
struct ConnectionKey {
  std::span<const NodeId> via;
  std::uint32_t qp;
  std::uint8_t traffic_class;
  friend bool operator<(const ConnectionKey& a, const ConnectionKey& b) {
    if (a.qp != b.qp) return a.qp < b.qp;
    if (a.traffic_class != b.traffic_class) return a.traffic_class < b.traffic_class;
    return std::ranges::lexicographical_compare(a.via, b.via);
  }
};

class FlowMessages {
 public:
  FlowMessages(const FlowSet& flows, const route::Router& router)
      : flows_(flows), router_(router), parts_(router.stream_count()) {}

  Result<MessageSet> build() {
    const std::uint64_t joins = parts_ > 1 ? flows_.flows.size() : 0;  // at most
    if (flows_.flows.size() * std::uint64_t{parts_} + joins > flow_messages_max)
      return fail(Errc::value, {},
                  fmt::format("{} flows in {} parts make more than {} messages",
                              flows_.flows.size(), parts_, flow_messages_max),
                  "run fewer flows at a time, or use fewer QPs");
    add_messages();
    if (parts_ > 1) add_joins();
    out_.messages.push_back({});
    link();
    return std::move(out_);
  }

 private:
  std::uint32_t first_message(std::size_t flow) const {
    return static_cast<std::uint32_t>(flow * parts_);
  }

  void add_messages() {
    out_.messages.reserve(flows_.flows.size() * parts_ + 1);
    out_.messages.resize(flows_.flows.size() * parts_);
    const std::vector<std::uint32_t> order = by_pair(flows_, router_.fabric().node_count());
    const auto same_pair = [&](std::uint32_t a, std::uint32_t b) {
      return flows_.flows[a].src == flows_.flows[b].src &&
             flows_.flows[a].dst == flows_.flows[b].dst;
    };
    for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      while (end < order.size() && same_pair(order[begin], order[end])) ++end;
      add_pair(std::span(order).subspan(begin, end - begin));
    }
  }

  // All flows between two NICs.
  void add_pair(std::span<const std::uint32_t> flows) {
    const route::RoutingConfig& config = router_.config();
    const bool in_turns = config.message_mode == route::MessageMode::round_robin;
    std::map<ConnectionKey, std::uint32_t> connections;  // to the first of `parts_`
    for (std::size_t k = 0; k < flows.size(); ++k) {
      const FlowSet::Flow& flow = flows_.flows[flows[k]];
      const ConnectionKey key{flows_.via_of(flow),
                              in_turns ? static_cast<std::uint32_t>(k % config.qps) : 0,
                              flows_.class_of(flows[k])};
      const auto next = static_cast<std::uint32_t>(out_.connections.size());
      const auto [found, is_new] = connections.try_emplace(key, next);
      if (is_new) add_connections(flow, key);
      add_flow(flows[k], found->second);
    }
  }

  void add_connections(const FlowSet::Flow& flow, const ConnectionKey& key) {
    const auto via = static_cast<std::uint32_t>(out_.via.size());
    out_.via.insert(out_.via.end(), key.via.begin(), key.via.end());
    for (std::uint32_t part = 0; part < parts_; ++part)
      out_.connections.push_back({.src = flow.src,
                                  .dst = flow.dst,
                                  .qp = key.qp + part,
                                  .via = via,
                                  .via_count = static_cast<std::uint32_t>(key.via.size()),
                                  .traffic_class = key.traffic_class});
  }

  void add_flow(std::uint32_t index, std::uint32_t connection) {
    const FlowSet::Flow& flow = flows_.flows[index];
    const auto bytes = static_cast<std::uint64_t>(flow.size.count);
    for (std::uint32_t part = 0; part < parts_; ++part)
      out_.messages[first_message(index) + part] = {
          .connection = connection + part,
          .waits = flow.after == FlowSet::none ? 0u : 1u,
          .bytes = bytes / parts_ + (part == 0 ? bytes % parts_ : 0),
          .not_before_ps = static_cast<Ps>(flow.start.ps)};
  }

  // One for every flow that another waits for.
  void add_joins() {
    join_.assign(flows_.flows.size(), FlowSet::none);
    for (const FlowSet::Flow& flow : flows_.flows)
      if (flow.after != FlowSet::none) join_[flow.after] = 0;
    for (std::size_t i = 0; i < join_.size(); ++i) {
      if (join_[i] == FlowSet::none) continue;
      join_[i] = static_cast<std::uint32_t>(out_.messages.size());
      out_.messages.push_back(
          {.connection = out_.messages[first_message(i)].connection, .waits = parts_});
    }
  }

  // Calls visit(message, dependent) for all dependencies, those of one message in file order when
  // taken backwards.
  template <class Visit>
  void for_each_dependency(Visit visit) const {
    for (std::size_t i = flows_.flows.size(); i-- > 0;) {
      const std::uint32_t after = flows_.flows[i].after;
      if (after != FlowSet::none) {
        const std::uint32_t from = parts_ > 1 ? join_[after] : first_message(after);
        for (std::uint32_t part = parts_; part-- > 0;) visit(from, first_message(i) + part);
      }
      if (parts_ > 1 && join_[i] != FlowSet::none)
        for (std::uint32_t part = 0; part < parts_; ++part)
          visit(first_message(i) + part, join_[i]);
    }
  }

  void link() {
    std::vector<Message>& messages = out_.messages;
    for_each_dependency(
        [&](std::uint32_t from, std::uint32_t) { ++messages[from].first_dependent; });
    std::uint32_t end = 0;
    for (Message& message : messages) message.first_dependent = end += message.first_dependent;
    out_.dependents.resize(end);
    for_each_dependency([&](std::uint32_t from, std::uint32_t to) {
      Dependent& slot = out_.dependents[--messages[from].first_dependent];
      slot.message = to & 0x7fffffffu;
      slot.when = static_cast<std::uint32_t>(Dependent::When::acknowledged);
    });
  }

  const FlowSet& flows_;
  const route::Router& router_;
  std::uint32_t parts_;
  MessageSet out_;
  std::vector<std::uint32_t> join_;  // by flow: its message; none where nobody waits
};

}  // namespace

Result<MessageSet> messages_of(const FlowSet& flows, const route::Router& router) {
  return FlowMessages(flows, router).build();
}

std::vector<FlowTimes> flow_times(std::span<const MessageEnd> messages, std::size_t flow_count,
                                  std::uint32_t parts) {
  std::vector<FlowTimes> out(flow_count);
  for (std::size_t i = 0; i < flow_count; ++i) {
    const auto own = messages.subspan(i * parts, parts);
    out[i].start = std::ranges::min(own, {}, &MessageEnd::start).start;
    out[i].end = std::ranges::max(own, {}, &MessageEnd::end).end;
  }
  return out;
}

}  // namespace weft::engine::packet
