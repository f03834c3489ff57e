#include "engine/packet/random_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/rng.hpp"

namespace weft::engine::packet {
namespace {

using model::FabricBuilder;
using model::NodeKind;

template <class T, std::size_t n>
T any_of(Rng& rng, const std::array<T, n>& items) {
  return items[rng.below(n)];
}
// With probability 1 / n.
bool once_in(Rng& rng, std::uint64_t n) { return rng.below(n) == 0; }
std::uint64_t between(Rng& rng, std::uint64_t least, std::uint64_t most) {
  return least + rng.below(most - least + 1);
}

// Fabrics. ----------------------------------------------------------------------------------------

using Cables = std::vector<std::pair<NodeId, NodeId>>;

struct Draft {
  FabricBuilder builder;
  Cables cables;

  std::vector<NodeId> add(std::uint64_t count, std::string_view role) {
    std::vector<NodeId> nodes;
    const NodeKind kind = role == "nic" ? NodeKind::nic : NodeKind::fabric_switch;
    for (std::uint64_t i = 0; i < count; ++i) nodes.push_back(builder.add_node({kind, role, {}}));
    return nodes;
  }
};

void draw_star(Rng& rng, Draft& draft) {
  const NodeId center = draft.add(1, "leaf").front();
  for (const NodeId nic : draft.add(between(rng, 2, 10), "nic"))
    draft.cables.emplace_back(nic, center);
}

void draw_clos(Rng& rng, Draft& draft) {
  const std::vector<NodeId> leaves = draft.add(between(rng, 2, 4), "leaf");
  const std::vector<NodeId> spines = draft.add(between(rng, 1, 3), "spine");
  const std::uint64_t per_leaf = between(rng, 1, 4), parallel = between(rng, 1, 2);
  const std::vector<NodeId> nics = draft.add(leaves.size() * per_leaf, "nic");
  for (std::size_t i = 0; i < nics.size(); ++i)
    draft.cables.emplace_back(nics[i], leaves[i / per_leaf]);
  for (const NodeId leaf : leaves)
    for (const NodeId spine : spines)
      for (std::uint64_t i = 0; i < parallel; ++i) draft.cables.emplace_back(leaf, spine);
}

// Three tiers with k = 4: 4 pods of 2 edges and 2 aggregation switches, 4 cores, 16 NICs.
void draw_fat_tree(Draft& draft) {
  const std::vector<NodeId> edges = draft.add(8, "edge"), aggs = draft.add(8, "agg");
  const std::vector<NodeId> cores = draft.add(4, "core"), nics = draft.add(16, "nic");
  for (std::size_t i = 0; i < 16; ++i) draft.cables.emplace_back(nics[i], edges[i / 2]);
  for (std::size_t edge = 0; edge < 8; ++edge)
    for (std::size_t up = 0; up < 2; ++up)
      draft.cables.emplace_back(edges[edge], aggs[edge / 2 * 2 + up]);
  for (std::size_t agg = 0; agg < 8; ++agg)
    for (std::size_t up = 0; up < 2; ++up)
      draft.cables.emplace_back(aggs[agg], cores[agg % 2 * 2 + up]);
}

FabricBuilder::LinkSpec any_cable(Rng& rng) {
  static constexpr std::array<std::int64_t, 7> gbps{25, 40, 50, 100, 200, 400, 800};
  const auto rate = Rate{any_of(rng, gbps) * 1'000'000'000};
  // Round latencies make events of one time.
  const Duration latency =
      once_in(rng, 2) ? 100_ns * static_cast<std::int64_t>(between(rng, 1, 50))
                      : Duration{static_cast<std::int64_t>(between(rng, 100'000, 5'000'000))};
  return {.rate = rate, .latency = latency};
}

// Cables get their numbers, and their first directions, at random: ties go by number.
Fabric any_fabric(Rng& rng, std::string& text) {
  Draft draft;
  const std::uint64_t shape = rng.below(3);
  if (shape == 0) draw_star(rng, draft);
  if (shape == 1) draw_clos(rng, draft);
  if (shape == 2) draw_fat_tree(draft);
  const bool equal = once_in(rng, 2);
  const FabricBuilder::LinkSpec all = any_cable(rng);
  rng.shuffle(std::span(draft.cables));
  for (auto [a, b] : draft.cables) {
    if (once_in(rng, 2)) std::swap(a, b);
    draft.builder.add_circuit(a, b, equal ? all : any_cable(rng));
  }
  static constexpr std::array<std::string_view, 3> names{"star", "clos", "fat tree"};
  text += fmt::format("{} of {} cables", names[shape], draft.cables.size());
  if (equal)
    text += fmt::format(" of {} Gb/s, {} ps", all.rate.bps / 1'000'000'000, all.latency.ps);
  return draft.builder.freeze();
}

// Messages. ---------------------------------------------------------------------------------------

using When = Dependent::When;

class MessageDrawer {
 public:
  MessageDrawer(Rng& rng, RandomCase& random) : rng_(rng), case_(random) {
    nics_.assign(random.fabric.nics().begin(), random.fabric.nics().end());
    rng.shuffle(std::span(nics_));
    ties_ = once_in(rng, 2);
    equal_bytes_ = once_in(rng, 3) ? any_size() : 0;
  }

  void draw() {
    const std::uint64_t pattern = rng_.below(4);
    if (pattern == 0) permutation();
    if (pattern == 1) incast();
    if (pattern == 2) all_to_all();
    if (pattern == 3) anything();
    static constexpr std::array<std::string_view, 4> names{"permutation", "incast", "all-to-all",
                                                           "random"};
    case_.text += fmt::format("; {}, {} messages", names[pattern], case_.drafts.size());
  }

 private:
  std::uint64_t any_size() {
    const auto mtu = static_cast<std::uint64_t>(case_.options.wire.mtu.count);
    if (once_in(rng_, 4))
      return any_of(rng_, std::array<std::uint64_t, 4>{1, mtu - 1, mtu, mtu + 1});
    return between(rng_, 1, mtu * between(rng_, 1, 60));
  }
  Ps any_time() { return ties_ ? 0 : rng_.below(5'000'000); }

  std::uint32_t connect(NodeId src, NodeId dst) {
    case_.connections.push_back(
        {.src = src, .dst = dst, .qp = static_cast<std::uint32_t>(rng_.below(8))});
    return static_cast<std::uint32_t>(case_.connections.size() - 1);
  }
  std::uint32_t post(std::uint32_t connection, std::vector<MessageDraft::Wait> waits = {}) {
    const bool delayed = !waits.empty() && once_in(rng_, 3);
    const auto delay_ns = static_cast<std::uint32_t>(delayed ? rng_.below(3000) : 0);
    case_.drafts.push_back({.connection = connection,
                            .bytes = equal_bytes_ > 0 ? equal_bytes_ : any_size(),
                            .not_before_ps = any_time(),
                            .delay_ns = delay_ns,
                            .waits = std::move(waits)});
    return static_cast<std::uint32_t>(case_.drafts.size() - 1);
  }

  void permutation() {
    for (std::size_t i = 0; i < nics_.size(); ++i) {
      const std::uint32_t connection = connect(nics_[i], nics_[(i + 1) % nics_.size()]);
      for (std::uint64_t n = between(rng_, 1, 3); n > 0; --n) post(connection);
    }
  }
  void incast() {
    const std::size_t senders = between(rng_, 1, nics_.size() - 1);
    for (std::size_t i = 1; i <= senders; ++i) {
      const std::uint32_t connection = connect(nics_[i], nics_[0]);
      for (std::uint64_t n = between(rng_, 1, 3); n > 0; --n) post(connection);
    }
  }
  // Every NIC sends to all others, a few at a time: each chain goes on when what it sent has been
  // acknowledged, or (a ring) when its predecessor's has arrived.
  void all_to_all() {
    const std::size_t n = std::min<std::size_t>(nics_.size(), 6);
    const bool ring = once_in(rng_, 2);
    std::vector<std::uint32_t> last(n, UINT32_MAX);
    for (std::size_t step = 1; step < n; ++step) {
      std::vector<std::uint32_t> sent;
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t before = ring ? last[(i + n - 1) % n] : last[i];
        const std::size_t to = ring ? (i + 1) % n : (i + step) % n;
        std::vector<MessageDraft::Wait> waits;
        if (before != UINT32_MAX)
          waits.push_back({before, ring ? When::arrived : When::acknowledged});
        sent.push_back(
            post(ring && step > 1 ? case_.drafts[last[i]].connection : connect(nics_[i], nics_[to]),
                 std::move(waits)));
      }
      last = sent;
    }
  }
  // Few connections, so that their messages queue up; some messages are empty.
  void anything() {
    const std::uint64_t count = between(rng_, 1, 12);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::size_t src = rng_.below(nics_.size());
      const std::size_t hop = between(rng_, 1, nics_.size() - 1);
      connect(nics_[src], nics_[(src + hop) % nics_.size()]);
    }
    for (std::uint64_t m = 0; m < 3 * count; ++m) {
      std::vector<MessageDraft::Wait> waits;
      for (std::uint64_t w = rng_.below(3); w > 0 && m > 0; --w)
        waits.push_back({static_cast<std::uint32_t>(rng_.below(m)),
                         once_in(rng_, 2) ? When::arrived : When::acknowledged});
      post(static_cast<std::uint32_t>(rng_.below(count)), std::move(waits));
      if (once_in(rng_, 6)) case_.drafts.back().bytes = 0;
    }
  }

  Rng& rng_;
  RandomCase& case_;
  std::vector<NodeId> nics_;
  bool ties_ = false;
  std::uint64_t equal_bytes_ = 0;  // 0: every message draws its own
};

// Options. ----------------------------------------------------------------------------------------

Bytes full_packets(const WireFormat& wire, std::uint64_t count) {
  return (wire.mtu + wire.header) * static_cast<std::int64_t>(count);
}

void draw_wire(Rng& rng, WireFormat& wire) {
  wire.mtu = Bytes{any_of(rng, std::array<std::int64_t, 4>{1024, 1500, 2048, 4096})};
  wire.header = Bytes{any_of(rng, std::array<std::int64_t, 2>{58, 64})};
  wire.control = Bytes{any_of(rng, std::array<std::int64_t, 2>{64, 84})};
  wire.last_packet = once_in(rng, 2) ? LastPacket::full : LastPacket::exact;
}

void draw_ecn(Rng& rng, const WireFormat& wire, Ecn& ecn) {
  ecn.on = once_in(rng, 2);
  if (once_in(rng, 4)) return;  // thresholds that follow the rate
  const std::uint64_t kmin = rng.below(20);
  ecn.kmin = full_packets(wire, kmin);
  ecn.kmax = full_packets(wire, kmin + rng.below(40));
  ecn.pmax = rng.uniform();
}

// No switch has more in headrooms.
Bytes headrooms_max(const Fabric& fabric, const WireFormat& wire) {
  std::size_t ports = 0;
  Bytes headroom{0};
  for (const NodeId node : fabric.nodes()) ports = std::max(ports, fabric.out(node).size());
  for (const LinkId link : fabric.links())
    headroom = std::max(headroom, headroom_for(fabric.rate(link), fabric.latency(link), wire));
  return headroom * static_cast<std::int64_t>(ports);
}

void draw_pfc(Rng& rng, const Fabric& fabric, Losses losses, Options& options) {
  Pfc& pfc = options.pfc;
  pfc.on = true;
  pfc.threshold = once_in(rng, 2) ? Pfc::Threshold::fixed : Pfc::Threshold::dynamic;
  const std::uint64_t xoff = rng.below(20);
  pfc.xoff = full_packets(options.wire, xoff);
  pfc.xon = full_packets(options.wire, rng.below(xoff + 1));
  pfc.alpha = any_of(rng, std::array<double, 5>{0.0625, 0.125, 0.3, 1, 2});
  pfc.resume_offset = full_packets(options.wire, rng.below(5));
  if (losses == Losses::headroom) pfc.headroom_factor = once_in(rng, 3) ? 0.02 : rng.uniform();
  const Bytes headrooms = headrooms_max(fabric, options.wire);
  options.buffers[""].shared = headrooms + full_packets(options.wire, between(rng, 5, 200));
  if (once_in(rng, 3)) options.buffers["spine"].shared = headrooms + full_packets(options.wire, 50);
}

// A time to respond and reserves, with the memory that both take of every switch.
void draw_guards(Rng& rng, const Fabric& fabric, Options& options) {
  Pfc& pfc = options.pfc;
  if (once_in(rng, 2)) pfc.response = Duration{static_cast<std::int64_t>(rng.below(2'000'000))};
  if (pfc.threshold == Pfc::Threshold::dynamic && once_in(rng, 2))
    pfc.reserve = Bytes{static_cast<std::int64_t>(rng.below(40'000))};
  Bytes more{0};
  for (const LinkId link : fabric.links())
    more = std::max(more, headroom_for(fabric.rate(link), {}, options.wire, pfc.response));
  std::size_t ports = 0;
  for (const NodeId node : fabric.nodes()) ports = std::max(ports, fabric.out(node).size());
  for (auto& [role, buffer] : options.buffers)
    buffer.shared = buffer.shared + (more + pfc.reserve) * static_cast<std::int64_t>(ports);
}

void draw_buffers(Rng& rng, Options& options) {
  const std::uint64_t kind = rng.below(3);
  Buffer buffer;
  if (kind != 0) buffer.shared = full_packets(options.wire, between(rng, 1, 40));
  if (kind != 1) buffer.per_port = full_packets(options.wire, between(rng, 1, 20));
  options.buffers[once_in(rng, 3) ? "leaf" : ""] = buffer;
}

void draw_options(Rng& rng, RandomCase& random, Losses losses) {
  Options& options = random.options;
  draw_ecn(rng, options.wire, options.ecn);
  if (losses == Losses::none_paused || losses == Losses::headroom)
    draw_pfc(rng, random.fabric, losses, options);
  if (losses == Losses::buffer) draw_buffers(rng, options);
  if (!once_in(rng, 3)) options.window = full_packets(options.wire, between(rng, 1, 40)) + 17_B;
  // Short ones fire where nothing was lost.
  if (losses == Losses::headroom || losses == Losses::buffer || once_in(rng, 4))
    options.ack_timeout = 1_us * static_cast<std::int64_t>(between(rng, 20, 500));
  if (once_in(rng, 8)) options.end = between(rng, 1, 200) * Ps{1'000'000};
  options.seed = rng.next();
  if (options.pfc.on) draw_guards(rng, random.fabric, options);
  if (once_in(rng, 2)) {
    options.ack_every = any_of(rng, std::array<std::uint32_t, 5>{0, 2, 4, 16, 256});
    options.ack_delay = Duration{static_cast<std::int64_t>(between(rng, 1, 30'000'000))};
  }
  random.text += fmt::format(
      "; mtu {}, window {}, {}{}{}, ACK every {} or {}", options.wire.mtu.count,
      options.window.count,
      options.pfc.on ? options.pfc.threshold == Pfc::Threshold::fixed ? "fixed PFC" : "dynamic PFC"
                     : "no PFC",
      options.ecn.on ? ", ECN" : "", losses == Losses::buffer ? ", small buffers" : "",
      options.ack_every, to_text(options.ack_delay));
}

}  // namespace

MessageSet make_messages(std::vector<Connection> connections,
                         const std::vector<MessageDraft>& drafts) {
  MessageSet set;
  set.connections = std::move(connections);
  std::vector<std::vector<Dependent>> dependents(drafts.size());
  for (std::uint32_t m = 0; m < drafts.size(); ++m)
    for (const MessageDraft::Wait& wait : drafts[m].waits)
      dependents[wait.message].push_back(
          {m & 0x7fff'ffffu, static_cast<std::uint32_t>(wait.when) & 1u});
  for (std::size_t m = 0; m < drafts.size(); ++m) {
    const MessageDraft& draft = drafts[m];
    set.messages.push_back({.connection = draft.connection,
                            .waits = static_cast<std::uint32_t>(draft.waits.size()),
                            .bytes = draft.bytes,
                            .not_before_ps = draft.not_before_ps,
                            .delay_ns = draft.delay_ns,
                            .first_dependent = static_cast<std::uint32_t>(set.dependents.size())});
    set.dependents.insert(set.dependents.end(), dependents[m].begin(), dependents[m].end());
  }
  set.messages.push_back({.first_dependent = static_cast<std::uint32_t>(set.dependents.size())});
  return set;
}

RandomCase random_case(std::uint64_t seed) {
  const auto losses = static_cast<Losses>(seed % losses_count);
  const Rng rng(seed);
  Rng fabric = rng.stream("fabric"), messages = rng.stream("messages"),
      options = rng.stream("options");
  RandomCase random;
  random.text = fmt::format("seed {}: ", seed);
  random.fabric = any_fabric(fabric, random.text);
  random.routing_seed = options.next();
  draw_wire(options, random.options.wire);
  MessageDrawer(messages, random).draw();
  draw_options(options, random, losses);
  return random;
}

}  // namespace weft::engine::packet
