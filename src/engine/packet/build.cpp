#include "engine/packet/build.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <map>
#include <tuple>

#include "transport/headroom.hpp"

namespace weft::engine::packet {
namespace {

// A packet that crosses no cable costs nothing to queue, so larger cells serve as well.
constexpr std::uint32_t inner_payload = 61'440;

class Builder {
 public:
  Builder(World& world, const model::State& state, const Partitioning& partitioning)
      : world_(world),
        fabric_(world.fabric),
        live_(world.fabric, state),
        state_(state),
        parts_(partitioning) {}

  Status build();

 private:
  bool buffers(NodeId node) const {
    return fabric_.is_switch(node) ||
           (world_.options.receive_rate > 0 && fabric_.kind(node) == model::NodeKind::nic);
  }
  std::uint32_t data_class(const Connection& c) const {
    return c.traffic_class > 0 ? c.traffic_class : world_.options.scheduler.data_class;
  }
  std::uint32_t data_class_count() const;
  void size_columns();
  void make_links();
  void make_link(std::uint32_t id, NodeId from, NodeId to, Rate rate, Duration latency,
                 std::uint32_t tier);
  void make_ports();
  void make_drains();
  Status make_buffers();
  void foresee_reliefs();
  Status make_connections();
  Status make_messages();

  World& world_;
  const Fabric& fabric_;
  model::LiveView live_;
  const model::State& state_;
  const Partitioning& parts_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::uint32_t>, std::uint16_t> kinds_;
};

LinkKind kind_of(const World& world, Rate rate, Duration latency, std::uint32_t tier) {
  LinkKind kind{.rate = rate, .latency = static_cast<Ps>(latency.ps), .tier = tier};
  constexpr std::int64_t byte_ps = 8'000'000'000'000;
  if (byte_ps % rate.bps == 0) kind.ps_per_byte = static_cast<std::uint32_t>(byte_ps / rate.bps);
  kind.full_size = static_cast<std::uint16_t>(world.full_size);
  kind.control_size = static_cast<std::uint16_t>(world.control_size);
  kind.full_ps = static_cast<Ps>((Bytes{world.full_size} / rate).ps);
  kind.control_ps = static_cast<Ps>((Bytes{world.control_size} / rate).ps);
  const Ecn& ecn = world.options.ecn;
  if (ecn.on) {
    const double scale = static_cast<double>(rate.bps) / 25e9;
    const double kmin = ecn.kmin.count >= 0 ? static_cast<double>(ecn.kmin.count) : 100e3 * scale;
    const double kmax = ecn.kmax.count >= 0 ? static_cast<double>(ecn.kmax.count) : 400e3 * scale;
    kind.kmin = static_cast<std::uint32_t>(std::min(kmin, 4e9));
    kind.kmax = static_cast<std::uint32_t>(std::min(kmax, 4e9));
  }
  return kind;
}

void Builder::size_columns() {
  const Options& options = world_.options;
  world_.payload = static_cast<std::uint32_t>(options.wire.mtu.count);
  world_.full_size = static_cast<std::uint32_t>((options.wire.mtu + options.wire.header).count);
  world_.control_size = static_cast<std::uint32_t>(options.wire.control.count);
  world_.class_count = static_cast<std::uint32_t>(options.scheduler.weights.size());
  world_.partition = parts_.of_node;
  if (options.pfc.on) world_.reserve = static_cast<std::uint32_t>(options.pfc.reserve.count);
  world_.gathers = options.gathers_acks();
  world_.accounts = options.pfc.on || !options.buffers.empty() || options.round_trip_queues;
  const std::size_t drains = options.receive_rate > 0 ? fabric_.nics().size() : 0;
  world_.link_count = static_cast<std::uint32_t>(fabric_.link_count() + drains);
  world_.links = LargeArray<Link>(std::size_t{world_.link_count} * (parts_.count > 1 ? 2 : 1));
  world_.tallies = LargeArray<LinkTally>(world_.link_count);
  world_.rare.resize(world_.link_count);
  world_.records_pauses = options.pause_trees;
  if (options.pause_trees) world_.queue_pauses.resize(world_.link_count);
  if (world_.class_count > 1)
    world_.queues = LargeArray<ClassQueue>(std::size_t{world_.link_count} * world_.class_count);
  const auto shares = [](std::uint32_t weight) { return weight > 0; };
  if (std::ranges::count_if(options.scheduler.weights, shares) > 1)
    for (std::uint32_t c = 0; c < world_.class_count; ++c)
      if (shares(options.scheduler.weights[c])) world_.deficit_classes |= 1u << c;
  if (world_.class_count > 1 && options.class_counters)
    world_.by_class.resize(std::size_t{world_.link_count} * world_.class_count);
}

void Builder::make_link(std::uint32_t id, NodeId from, NodeId to, Rate rate, Duration latency,
                        std::uint32_t tier) {
  const auto key = std::tuple(rate.bps, latency.ps, tier);
  auto found = kinds_.find(key);
  if (found == kinds_.end()) {
    found = kinds_.emplace(key, static_cast<std::uint16_t>(world_.kinds.size())).first;
    world_.kinds.push_back(kind_of(world_, rate, latency, tier));
  }
  Link& link = world_.links[id];
  link.kind = found->second;
  link.to = to.value;
  link.owner = from.value;
  link.buffered = fabric_.is_switch(from) || link.drain;
  link.guarded = buffers(to) && !link.drain;
  link.cross = parts_.of_node[from.index()] != parts_.of_node[to.index()];
}

void Builder::make_links() {
  for (const LinkId id : fabric_.links()) {
    const bool dead = !live_.usable(id);
    const Rate rate =
        dead ? fabric_.rate(id)
             : Rate{static_cast<std::int64_t>(std::max(1.0, live_.bytes_per_s[id.index()] * 8))};
    make_link(id.value, fabric_.from(id), fabric_.to(id), rate, fabric_.latency(id),
              fabric_.tier_id(id).value);
    world_.links[id.index()].dead = dead;
    if (const double loss = state_.link(id).loss; loss > 0) {
      world_.loss.resize(fabric_.link_count(), 0);
      world_.loss[id.index()] = loss;
      world_.links[id.index()].lossy = 1;
    }
  }
}

// NICs that drain more slowly than their port: a link of its own leads into the host.
void Builder::make_drains() {
  if (world_.options.receive_rate <= 0) return;
  world_.drain.assign(fabric_.node_count(), none);
  auto id = static_cast<std::uint32_t>(fabric_.link_count());
  for (const NodeId nic : fabric_.nics()) {
    std::int64_t bps = 0;
    for (const LinkId out : fabric_.out(nic))
      if (fabric_.on_wire(out)) bps += fabric_.rate(out).bps;
    const double share = static_cast<double>(bps) * world_.options.receive_rate;
    world_.links[id].drain = 1;
    make_link(id, nic, nic, Rate{std::max<std::int64_t>(1, static_cast<std::int64_t>(share))},
              Duration{}, fabric_.tier_id(fabric_.out(nic).front()).value);
    world_.drain[nic.index()] = id++;
  }
}

void Builder::make_ports() {
  world_.nodes.resize(fabric_.node_count());
  std::uint32_t ingresses = 0;
  std::size_t words = 0;
  for (const NodeId node : fabric_.nodes()) {
    NodeBuffer& buffer = world_.nodes[node.index()];
    buffer.first_port = static_cast<std::uint32_t>(world_.ports.size());
    buffer.salt = mix64(world_.options.seed + node.value);
    for (const LinkId out : fabric_.out(node)) {
      const auto port = static_cast<std::uint32_t>(world_.ports.size() - buffer.first_port);
      world_.links[World::reverse(out.value)].port = static_cast<std::uint16_t>(port);
      world_.tallies[out.value].port = port;
      world_.ports.push_back(out.value);
    }
    if (!world_.drain.empty() && world_.drain[node.index()] != none) {
      world_.tallies[world_.drain[node.index()]].port =
          static_cast<std::uint32_t>(world_.ports.size()) - buffer.first_port;
      world_.ports.push_back(world_.drain[node.index()]);
    }
    buffer.port_count = static_cast<std::uint32_t>(world_.ports.size()) - buffer.first_port;
    buffer.first_ingress = ingresses;
    if (!buffers(node)) continue;
    ingresses += buffer.port_count * world_.class_count;
    if (!world_.accounts) continue;
    buffer.first_set = static_cast<std::uint32_t>(words);
    buffer.set_words = (buffer.port_count + 63) / 64;
    words +=
        (static_cast<std::size_t>(PortSet::first_sources) + buffer.port_count) * buffer.set_words;
  }
  world_.ingresses.resize(ingresses);
  world_.port_sets.resize(words);
}

void Builder::foresee_reliefs() {
  world_.reliefs.resize(world_.ingresses.size());
  for (const NodeId node : fabric_.nodes()) {
    if (!buffers(node)) continue;
    const NodeBuffer& buffer = world_.nodes[node.index()];
    for (std::uint32_t port = 0; port < buffer.port_count; ++port)
      world_.reliefs[buffer.first_ingress + port].node = node.value;
  }
}

// Each is paused by itself, and goes on for a headroom after its pause.
std::uint32_t Builder::data_class_count() const {
  std::bitset<class_count_max> used;
  for (const Connection& c : world_.set.connections) used.set(data_class(c) % used.size());
  return static_cast<std::uint32_t>(used.count());
}

Status Builder::make_buffers() {
  const Options& options = world_.options;
  for (const LinkKind& kind : world_.kinds) {
    const Bytes room =
        headroom_of(options, kind.rate, Duration{static_cast<std::int64_t>(kind.latency)});
    world_.headroom.push_back(static_cast<std::uint32_t>(
        std::min(4e9, static_cast<double>(room.count) * options.pfc.headroom_factor)));
  }
  world_.response = static_cast<Ps>(options.pfc.response.ps);
  world_.shares_pool = options.pfc.on && options.pfc.threshold == Pfc::Threshold::dynamic;
  if (options.pfc.on && !world_.shares_pool && world_.class_count == 1) foresee_reliefs();
  const std::uint32_t data_classes = data_class_count();
  for (const NodeId node : fabric_.nodes()) {
    if (!buffers(node)) continue;
    NodeBuffer& buffer = world_.nodes[node.index()];
    if (buffer.port_count > port_count_max)
      return fail(Errc::unsupported, {},
                  fmt::format("{} has {} ports; the packet engine supports at most {}",
                              fabric_.name(node), buffer.port_count, port_count_max),
                  "use engine: fluid");
    auto found = options.buffers.find(fabric_.role_name(node));
    if (found == options.buffers.end()) found = options.buffers.find("");
    if (found == options.buffers.end()) continue;
    buffer.per_port = static_cast<std::uint32_t>(
        std::min<std::int64_t>(found->second.per_port.count, UINT32_MAX));
    if (found->second.shared.count == 0) continue;
    std::uint64_t reserved = 0;
    if (options.pfc.on)
      for (std::uint32_t i = 0; i < buffer.port_count; ++i) {
        const std::uint32_t out = world_.ports[buffer.first_port + i];
        if (out < fabric_.link_count())
          reserved += std::uint64_t{world_.headroom[world_.links[World::reverse(out)].kind]} *
                          data_classes +
                      std::uint64_t{world_.reserve} * world_.class_count;
      }
    const auto memory = static_cast<std::uint64_t>(found->second.shared.count);
    if (reserved >= memory)
      return fail(
          Errc::infeasible, {},
          fmt::format("the headroom of {} ({} ports, {} of data) needs {} B of its {} B of memory",
                      fabric_.name(node), buffer.port_count,
                      data_classes == 1 ? "1 class" : fmt::format("{} classes", data_classes),
                      reserved, memory),
          "increase its memory under transport.buffers, or set transport.pfc.headroom");
    buffer.pool = memory - reserved;
  }
  return {};
}

Status Builder::make_connections() {
  const MessageSet& set = world_.set;
  for (const Connection& c : set.connections)
    if (fabric_.is_switch(c.src) || fabric_.is_switch(c.dst))
      return fail(Errc::unsupported, {},
                  fmt::format("a message starts or ends in a switch ({} to {})",
                              fabric_.name(c.src), fabric_.name(c.dst)),
                  "in-network reduction needs engine: fluid");
  if (needs_table(world_.options)) WEFT_TRY_STATUS(build_table(world_, state_));
  if (world_.options.balance == Balance::multipath) world_.fanout = world_.options.paths;
  const std::size_t count = set.connections.size() * world_.fanout;
  world_.senders = LargeArray<Sender>(count);
  world_.receivers = LargeArray<Receiver>(count);
  for (std::uint32_t c = 0; c < count; ++c) {
    Sender& sender = world_.senders[c];
    sender.next = sender.unacked = sender.highest = world_.options.first_psn;
    world_.receivers[c].in_order = transport::GobackReceiver(world_.options.first_psn);
    sender.payload = static_cast<std::uint16_t>(world_.payload);
    const Connection& connection = set.connections[c / world_.fanout];
    if (connection.traffic_class >= world_.class_count)
      return fail(Errc::value, {},
                  fmt::format("traffic class {} is not declared: there are {}",
                              connection.traffic_class, world_.class_count),
                  "give transport.classes.weights an entry for each class, from 0");
    sender.traffic_class = data_class(connection) & (class_count_max - 1);
    find_path(world_, c);
    if (world_.options.window.count > 0)
      sender.window = world_.window_packets(static_cast<double>(world_.options.window.count));
  }
  build_protocols(world_);
  world_.watches_departures = world_.protocols.int_window != 0 || !world_.by_class.empty();
  return {};
}

// A receiver counts what a message lacks in 48 bits.
Status Builder::make_messages() {
  const MessageSet& set = world_.set;
  world_.message_states = LargeArray<MessageState>(set.size());
  world_.ends.resize(set.size());
  for (std::uint32_t m = 0; m < set.size(); ++m)
    world_.message_states[m].waits_or_end_high = set.messages[m].waits;
  for (std::uint32_t m = 0; m < set.size(); ++m) {
    const Message& message = set.messages[m];
    const Sender& sender = world_.senders[std::size_t{message.connection} * world_.fanout];
    if (world_.packet_count(sender, m) > message_packets_max)
      return fail(Errc::value, {},
                  fmt::format("a message of {} B needs more than {} packets of {} B", message.bytes,
                              message_packets_max, sender.payload),
                  "use a larger transport.mtu, or split the message");
  }
  return {};
}

Status Builder::build() {
  size_columns();
  make_links();
  make_drains();
  make_ports();
  WEFT_TRY_STATUS(make_buffers());
  WEFT_TRY_STATUS(make_connections());
  return make_messages();
}

}  // namespace

Bytes headroom_for(Rate rate, Duration latency, const WireFormat& wire, Duration response) {
  const Bytes packet = wire.mtu + wire.header;
  return transport::standard_headroom({.rate = rate,
                                       .latency = latency,
                                       .packet_here = packet,
                                       .packet_there = packet,
                                       .pause = wire.pause,
                                       .response = response});
}

Bytes headroom_of(const Options& options, Rate rate, Duration latency) {
  const Pfc& pfc = options.pfc;
  if (pfc.headroom.count >= 0) return pfc.headroom;
  if (pfc.headroom_rule == Pfc::Rule::simulator)
    return transport::simulator_headroom(rate, latency);
  return headroom_for(rate, latency, options.wire, pfc.response);
}

Status build_world(World& world, const model::State& state, const Partitioning& partitioning) {
  return Builder(world, state, partitioning).build();
}

void apply_state(World& world, const model::State& state, std::vector<std::uint32_t>& died) {
  const Fabric& fabric = world.fabric;
  const model::LiveView live(fabric, state);
  for (const LinkId id : fabric.links()) {
    Link& link = world.links[id.index()];
    const bool usable = live.usable(id);
    if (!usable && !link.dead) died.push_back(id.value);
    link.dead = !usable;
    link.lossy = state.link(id).loss > 0;
    if (link.lossy) {
      world.loss.resize(fabric.link_count(), 0);
      world.loss[id.index()] = state.link(id).loss;
    }
    if (!usable) continue;
    const Rate rate{static_cast<std::int64_t>(std::max(1.0, live.bytes_per_s[id.index()] * 8))};
    if (rate != world.kinds[link.kind].rate) {
      const Duration latency = fabric.latency(id);
      const std::uint32_t tier = fabric.tier_id(id).value;
      const auto same = [&](const LinkKind& kind) {
        return kind.rate == rate && kind.latency == static_cast<Ps>(latency.ps) &&
               kind.tier == tier;
      };
      const auto found = std::ranges::find_if(world.kinds, same);
      if (found == world.kinds.end()) {
        world.headroom.push_back(world.headroom[link.kind]);
        world.kinds.push_back(kind_of(world, rate, latency, tier));
        link.kind = static_cast<std::uint16_t>(world.kinds.size() - 1);
      } else {
        link.kind = static_cast<std::uint16_t>(found - world.kinds.begin());
      }
    }
    if (link.cross) {  // what the receiving side reads
      Link& twin = world.links[world.link_count + id.index()];
      twin.lossy = link.lossy;
    }
  }
}

namespace {

// The paths among which multipath connections choose: link-disjoint ones between two NICs.
std::vector<std::uint32_t> multipath(World& world, std::uint32_t connection) {
  const Connection& c = world.set.connections[connection / world.fanout];
  std::vector<route::Path> paths;
  NodeId src, dst;
  if (find_ends(world, c, src, dst))
    world.router.append_disjoint_paths(src, dst, world.fanout, paths);
  std::vector<std::uint32_t> out;
  if (paths.empty()) return out;
  for (const LinkId link : paths[connection % world.fanout % paths.size()])
    out.push_back(link.value);
  return out;
}

// Of hops that share the bytes (NVLinks over several NVSwitches) those of one way, in order.
std::vector<std::uint32_t> one_way(const Fabric& fabric, std::span<const route::Hop> hops,
                                   std::uint64_t hash) {
  std::vector<std::uint32_t> out;
  for (std::size_t i = 0; i < hops.size();) {
    if (hops[i].share >= 1) {
      out.push_back(hops[i++].link.value);
      continue;
    }
    std::size_t end = i;
    while (end < hops.size() && hops[end].share < 1) ++end;
    for (NodeId at = fabric.from(hops[i].link);;) {
      std::vector<LinkId> choices;
      for (std::size_t j = i; j < end; ++j)
        if (fabric.from(hops[j].link) == at) choices.push_back(hops[j].link);
      if (choices.empty()) break;
      const LinkId link = choices[hash % choices.size()];
      out.push_back(link.value);
      at = fabric.to(link);
    }
    i = end;
  }
  return out;
}

std::vector<std::uint32_t> single_path(World& world, std::uint32_t connection) {
  const Connection& c = world.set.connections[connection / world.fanout];
  const auto is_nic = [&](NodeId node) { return world.fabric.kind(node) == model::NodeKind::nic; };
  const auto via = std::span(world.set.via).subspan(c.via, c.via_count);
  std::vector<route::Hop> hops;
  if (is_nic(c.src) && is_nic(c.dst)) {
    if (!world.router.append_path({c.src, c.dst, c.qp, c.qp, via}, hops)) return {};
  } else if (const auto cables = world.fabric.links_between(c.src, c.dst); !cables.empty()) {
    // Neighbours, such as a GPU and its NVSwitch, which no router knows.
    return {cables[mix64(connection) % cables.size()].value};
  } else if (!world.router.append_gpu_path(c.src, c.dst, c.qp, c.qp, hops)) {
    return {};
  }
  return one_way(world.fabric, hops, mix64(connection));
}

// The part of a path from NIC to NIC.
std::vector<std::uint32_t> between(const Fabric& fabric, std::span<const std::uint32_t> path,
                                   const Ends& ends) {
  std::vector<std::uint32_t> out;
  for (const std::uint32_t link : path)
    if (!out.empty() || fabric.from(LinkId(link)).value == ends.src) {
      out.push_back(link);
      if (fabric.to(LinkId(link)).value == ends.dst) return out;
    }
  return {};
}

// The source that a link is, from now on.
std::uint32_t source_at(World& world, std::uint32_t link) {
  Link& first = world.links[link];
  if (!first.source) {
    first.source = 1;
    first.owner = static_cast<std::uint32_t>(world.sources.size());
    world.sources.push_back({.link = link});
  }
  return first.owner;
}

}  // namespace

bool find_path(World& world, std::uint32_t connection) {
  Sender& sender = world.senders[connection];
  sender.path = sender.source = none;
  const Protocols& p = world.protocols;
  if (p.by_table(connection) && world.options.balance != Balance::path) {
    const auto links = p.first_links(connection);
    if (links.empty()) return false;
    if (is_by_packet(world.options.balance))
      for (const LinkId link : links) source_at(world, link.value);
    sender.source = source_at(world, Protocols::kept_link(links, connection).value);
    return true;
  }
  std::vector<std::uint32_t> path;
  if (world.fanout > 1) path = multipath(world, connection);
  if (path.empty()) path = single_path(world, connection);
  if (p.by_table(connection)) path = between(world.fabric, path, p.ends[connection]);
  if (path.empty() || path.size() > path_length_max) return false;
  sender.path = static_cast<std::uint32_t>(world.paths.size());
  bool on_wire = false;
  for (const std::uint32_t link : path) {
    world.paths.push_back(link);
    on_wire |= world.fabric.on_wire(LinkId(link));
  }
  world.paths.push_back(none);
  if (!on_wire) sender.payload = inner_payload;
  sender.source = source_at(world, path.front());
  return true;
}

}  // namespace weft::engine::packet
