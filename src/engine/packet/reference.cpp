#include "engine/packet/reference.hpp"

#include <algorithm>
#include <bit>
#include <deque>
#include <limits>
#include <map>
#include <queue>
#include <tuple>

#include "base/check.hpp"
#include "engine/packet/packet.hpp"

namespace weft::engine::packet {
namespace {

constexpr Ps ps(Duration duration) { return static_cast<Ps>(duration.ps); }
constexpr std::uint32_t retries_max = 7;  // InfiniBand's retry count at most
constexpr std::uint64_t count(Bytes bytes) { return static_cast<std::uint64_t>(bytes.count); }

// In the order of events of one time.
enum class Kind : std::uint8_t {
  start,
  arrival,
  room,
  serve,
  pause,
  resume,
  message,
  timeout,
  answer,
  loss
};

class Reference {
 public:
  Reference(const MessageSet& set, route::Router& router, const Options& options,
            std::span<const double> loss)
      : set_(set),
        router_(router),
        fabric_(router.fabric()),
        options_(options),
        loss_(loss),
        mtu_(count(options.wire.mtu)),
        header_(count(options.wire.header)),
        window_(count(options.window) / (mtu_ + header_)),
        links_(fabric_.link_count()),
        ingresses_(fabric_.link_count()),
        switches_(fabric_.node_count()),
        pairs_(set.connections.size()) {
    if (options.window.count == 0) window_ = std::numeric_limits<std::uint64_t>::max() / 2;
    window_ = std::max<std::uint64_t>(window_, 1);
    if (options.reliability == Reliability::selective)
      reach_ = std::bit_ceil(4 * std::clamp<std::uint64_t>(window_, 64, 1024));
    for (const NodeId node : fabric_.nodes()) give_buffer(node, switches_[node.index()]);
    result_.messages.resize(set.size());
    result_.links.resize(fabric_.link_count());
    for (std::size_t m = 0; m < set.size(); ++m) {
      waits_left_.push_back(set.messages[m].waits);
      if (waits_left_[m] == 0) push(set.messages[m].not_before_ps, Kind::message, m);
    }
  }

  PacketRunResult run() {
    while (!events_.empty() && events_.top().at < options_.end) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      handle(event);
    }
    finish_counters();
    return std::move(result_);
  }

 private:
  struct Packet {
    enum class Type : std::uint8_t { data, ack, nack } type = Type::data;
    std::uint32_t connection = 0;
    std::uint64_t psn = 0;  // of an ACK: the last accepted; of a NACK: the expected
    std::uint64_t bytes = 0;
    std::size_t hop = 0;  // into its route: the link it waits for or is on
    bool marked = false;
    // Selective repeat. Of an ACK: those of the packet that it answers.
    std::uint64_t order = 0;  // among all that its connection sent
    Ps sent = 0;
    Ps answered = 0;         // when the ACK was made
    std::uint64_t came = 0;  // and how many packets had come
    bool asks = false;       // data: nothing may follow it; an ACK: it tells no round trip
  };
  struct Event {
    Ps at;
    Kind kind;
    std::uint32_t id;  // link, switch, message or connection
    Packet packet;     // of an arrival, or lost
    auto order() const { return std::tuple(at, kind, id); }
    friend bool operator>(const Event& a, const Event& b) { return a.order() > b.order(); }
  };
  struct Link {
    Ps free = 0, paused_since = 0;  // `free`: when the wire is
    bool paused = false;
    std::deque<Packet> fifo;
    std::uint64_t waiting = 0;       // bytes in it
    std::deque<std::uint32_t> ring;  // connections that can send; of a first link
  };
  struct Switch {
    NodeId node;
    std::uint64_t pool = 0, per_port = 0, held = 0;  // bytes; no bound at 0
  };
  // Of a switch, for one link into it.
  struct Ingress {
    std::uint64_t held = 0, limit = 0;  // bytes; the limit while paused
    bool paused = false;
  };
  // A message on its way: packets [first, last) of its connection.
  struct Sending {
    std::uint32_t message;
    std::uint64_t first, last;
  };
  // Selective repeat: the last time that an unacknowledged packet was sent.
  struct Sent {
    std::uint64_t order = 0;
    Ps at = 0;
    bool again = false;  // known to be lost, to be sent again
    bool open = false;   // it, or its ACK, is lost, and nothing has told so yet
    Ps due = 0;          // while open
    std::uint32_t timeouts = 0;
    std::uint32_t told = 0;  // by acknowledgements of later ones that it did not come
  };
  struct Came {
    Ps at = 0;  // first
    std::uint64_t order = 0;
  };
  struct Pair {
    std::uint64_t unanswered = 0;          // packets that came since the last ACK
    Ps answer_by = 0;                      // where there are some
    Packet last;                           // of selective repeat: that came last
    std::vector<std::size_t> out, back;    // links
    std::vector<Sending> messages;         // in the order in which they became ready
    std::size_t arriving = 0, ending = 0;  // into messages: the first that did not yet
    std::uint64_t next = 0, unacknowledged = 0, sent_max = 0, expected = 0;  // PSNs
    Ps progress = 0;
    std::uint32_t retries = 0;                                 // since then
    bool in_ring = false, failed = false, complained = false;  // of the present hole
    // Selective repeat.
    std::map<std::uint64_t, Sent> sent;      // by PSN
    std::map<std::uint64_t, Came> received;  // by PSN
    std::uint64_t orders = 0;
    std::uint16_t round_trip = 0;  // steps, measured last
  };

  void push(Ps at, Kind kind, std::size_t id) {
    events_.push({at, kind, static_cast<std::uint32_t>(id), Packet{}});
  }
  Ps wire_time(std::size_t link, std::uint64_t bytes) const {
    return ps(Bytes{static_cast<std::int64_t>(bytes)} / fabric_.rate(LinkId(link)));
  }
  Ps latency(std::size_t link) const { return ps(fabric_.latency(LinkId(link))); }
  bool idle(std::size_t link) const { return !links_[link].paused && links_[link].free <= now_; }
  const std::vector<std::size_t>& route_of(const Packet& packet) const {
    const Pair& pair = pairs_[packet.connection];
    return packet.type == Packet::Type::data ? pair.out : pair.back;
  }

  // Headrooms are a part of the switch's memory.
  void give_buffer(NodeId node, Switch& at) const {
    auto found = options_.buffers.find(fabric_.role_name(node));
    if (found == options_.buffers.end()) found = options_.buffers.find("");
    if (found == options_.buffers.end() || !fabric_.is_switch(node)) return;
    at.node = node;
    at.per_port = count(found->second.per_port);
    at.pool = count(found->second.shared);
    if (at.pool == 0 || !options_.pfc.on) return;
    std::uint64_t headrooms = 0;
    for (const LinkId out : fabric_.out(node))
      headrooms += headroom(reverse(out)) + count(options_.pfc.reserve);
    WEFT_CHECK(headrooms < at.pool);
    at.pool -= headrooms;
  }

  void handle(const Event& event) {
    switch (event.kind) {
      case Kind::start:
        return start_waiting(event.id);
      case Kind::arrival:
        return arrive(event.id, event.packet);
      case Kind::room:
        return resume_ingresses(NodeId(event.id));
      case Kind::serve:
        return serve(event.id);
      case Kind::pause:
      case Kind::resume:
        return set_paused(event.id, event.kind);
      case Kind::message:
        return begin(event.id);
      case Kind::timeout:
        return check_timeout(event.id);
      case Kind::answer:
        return answer_late(event.id);
      case Kind::loss:
        return selective() ? look_for_losses(event.id, event.packet) : void();
    }
  }

  // After every change of a link: whoever may start on it tries when it is free. A try that comes
  // too early does nothing, as a later one has been asked for.
  void look_again(std::size_t link) {
    const Ps at = std::max(now_, links_[link].free);
    push(at, Kind::start, link);
    push(at, Kind::serve, link);
  }

  void enter(std::size_t link, Packet packet) {
    if (idle(link) && links_[link].fifo.empty()) return start(link, packet);
    if (packet.type == Packet::Type::data) {
      if (!fits(link, packet)) {
        ++result_.links[link].dropped;
        ++result_.counters.drops;
        result_.conservation.dropped += packet.bytes - header_;
        return lose(packet);
      }
      if (!packet.marked && marks(link, packet)) {
        packet.marked = true;
        ++result_.counters.ecn_marks;
      }
    }
    links_[link].fifo.push_back(packet);
    links_[link].waiting += packet.bytes;
    std::uint32_t& most = result_.links[link].queue_max;
    most = std::max(most, static_cast<std::uint32_t>(links_[link].waiting));
    charge(link, packet);
  }

  bool marks(std::size_t link, const Packet& packet) const {
    const Ecn& ecn = options_.ecn;
    const auto or_by_rate = [&](Bytes given, double at_25_gbps) {
      const auto bps = static_cast<double>(fabric_.rate(LinkId(link)).bps);
      return given.count >= 0 ? static_cast<double>(given.count) : at_25_gbps * (bps / 25e9);
    };
    const double kmin = or_by_rate(ecn.kmin, 100e3), kmax = or_by_rate(ecn.kmax, 400e3);
    const auto waiting = static_cast<double>(links_[link].waiting);
    if (!ecn.on || waiting <= kmin) return false;
    if (waiting > kmax) return true;
    return coin(options_.seed, packet.connection, static_cast<std::uint32_t>(packet.psn),
                static_cast<std::uint32_t>(link)) < ecn.pmax * (waiting - kmin) / (kmax - kmin);
  }

  void start(std::size_t link, const Packet& packet) {
    links_[link].free = now_ + wire_time(link, packet.bytes);
    events_.push({links_[link].free + latency(link), Kind::arrival,
                  static_cast<std::uint32_t>(link), packet});
    LinkCounters& counters = result_.links[link];
    counters.bytes += packet.bytes;
    ++(packet.type == Packet::Type::data ? counters.packets : counters.control);
    if (packet.marked) ++counters.ecn_marked;
    ++result_.counters.hops;
    look_again(link);
  }

  void start_waiting(std::size_t link) {
    std::deque<Packet>& fifo = links_[link].fifo;
    if (!idle(link) || fifo.empty()) return;
    const Packet packet = fifo.front();
    fifo.pop_front();
    links_[link].waiting -= packet.bytes;
    release(link, packet);
    start(link, packet);
  }

  void arrive(std::size_t link, Packet packet) {
    result_.end = now_;
    const std::vector<std::size_t>& route = route_of(packet);
    if (!loss_.empty() &&
        coin(options_.seed ^ now_, packet.connection, static_cast<std::uint32_t>(number_of(packet)),
             static_cast<std::uint32_t>(link)) < loss_[link]) {
      ++result_.links[link].dropped;
      if (packet.type == Packet::Type::data) {
        ++result_.counters.drops;
        result_.conservation.dropped += packet.bytes - header_;
      }
      ++packet.hop;
      return lose(packet);
    }
    if (++packet.hop < route.size()) return enter(route[packet.hop], packet);
    if (packet.type == Packet::Type::data)
      return selective() ? receive_any(packet) : receive(packet);
    if (packet.type == Packet::Type::ack)
      return selective() ? acknowledge_any(packet) : acknowledge(packet.connection, packet.psn);
    if (packet.psn > 0) acknowledge(packet.connection, packet.psn - 1);
    go_back(packet.connection, packet.psn);
  }

  // The bytes above which an ingress pauses its sender.
  double threshold(const Switch& at) const {
    if (options_.pfc.threshold == Pfc::Threshold::fixed)
      return static_cast<double>(options_.pfc.xoff.count);
    if (at.pool == 0) return std::numeric_limits<double>::infinity();
    return static_cast<double>(options_.pfc.reserve.count) + shared_threshold(at);
  }

  // A share of what is left of the memory that is nobody's. Of an ingress only what is beyond its
  // reserve is held in there.
  double shared_threshold(const Switch& at) const {
    const std::uint64_t reserve = count(options_.pfc.reserve);
    std::uint64_t shared = at.held;
    if (reserve > 0) {
      shared = 0;
      for (const LinkId out : fabric_.out(at.node))
        shared += std::max(ingresses_[reverse(out).index()].held, reserve) - reserve;
    }
    return options_.pfc.alpha * static_cast<double>(at.pool - std::min(at.pool, shared));
  }

  double resume_threshold(const Switch& at) const {
    if (options_.pfc.threshold == Pfc::Threshold::fixed)
      return static_cast<double>(options_.pfc.xon.count);
    return static_cast<double>(options_.pfc.reserve.count) +
           std::max(0.0, threshold(at) - static_cast<double>(options_.pfc.reserve.count +
                                                             options_.pfc.resume_offset.count));
  }

  std::uint64_t headroom(LinkId in) const {
    Bytes room = options_.pfc.headroom;
    if (room.count < 0)
      room =
          headroom_for(fabric_.rate(in), fabric_.latency(in), options_.wire, options_.pfc.response);
    return static_cast<std::uint64_t>(static_cast<double>(room.count) *
                                      options_.pfc.headroom_factor);
  }

  // Of data that must wait for `link`.
  bool fits(std::size_t link, const Packet& packet) {
    const Switch& at = switches_[fabric_.from(LinkId(link)).index()];
    if (at.per_port > 0 && links_[link].waiting + packet.bytes > at.per_port) return false;
    if (!options_.pfc.on) return at.pool == 0 || at.held + packet.bytes <= at.pool;
    const Ingress& ingress = ingresses_[route_of(packet)[packet.hop - 1]];
    if (!ingress.paused || ingress.held + packet.bytes <= ingress.limit) return true;
    ++result_.counters.drops_headroom;
    return false;
  }

  void charge(std::size_t link, const Packet& packet) {
    Switch& at = switches_[fabric_.from(LinkId(link)).index()];
    at.held += packet.bytes;
    if (packet.hop == 0) return;  // sent by this node, a NIC
    result_.counters.buffer_max = std::max(result_.counters.buffer_max, at.held);
    const std::size_t in = route_of(packet)[packet.hop - 1];
    Ingress& ingress = ingresses_[in];
    ingress.held += packet.bytes;
    if (!options_.pfc.on || ingress.paused) return;
    if (static_cast<double>(ingress.held) <= threshold(at)) return;
    ingress.paused = true;
    ingress.limit = ingress.held + headroom(LinkId(in));
    send_frame(in, Kind::pause);
  }

  void release(std::size_t link, const Packet& packet) {
    const std::size_t node = fabric_.from(LinkId(link)).index();
    switches_[node].held -= packet.bytes;
    if (packet.hop > 0) ingresses_[route_of(packet)[packet.hop - 1]].held -= packet.bytes;
    push(now_, Kind::room, node);
  }

  void resume_ingresses(NodeId node) {
    const double xon = resume_threshold(switches_[node.index()]);
    for (const LinkId out : fabric_.out(node)) {
      const std::size_t in = reverse(out).index();
      Ingress& ingress = ingresses_[in];
      if (!ingress.paused || static_cast<double>(ingress.held) > xon) continue;
      ingress.paused = false;
      send_frame(in, Kind::resume);
    }
  }

  // A frame that pauses or resumes the link `in` takes the wire of its reverse.
  void send_frame(std::size_t in, Kind kind) {
    const std::size_t back = reverse(LinkId(in)).index();
    const std::uint64_t bytes = count(options_.wire.pause);
    links_[back].free = std::max(links_[back].free, now_) + wire_time(back, bytes);
    result_.links[back].bytes += bytes;
    ++result_.links[back].control;
    ++result_.counters.pause_frames;
    push(links_[back].free + latency(back) + ps(options_.pfc.response), kind, in);
    look_again(back);
  }

  void set_paused(std::size_t link, Kind kind) {
    result_.end = now_;
    Link& state = links_[link];
    if (state.paused) result_.links[link].paused_ps += now_ - state.paused_since;
    state.paused = kind == Kind::pause;
    state.paused_since = now_;
    if (state.paused) ++result_.links[link].pauses;
    look_again(link);
  }

  void find_path(std::uint32_t connection) {
    const Connection& ends = set_.connections[connection];
    Pair& pair = pairs_[connection];
    if (!pair.out.empty()) return;
    std::vector<route::Hop> hops;
    const auto via = std::span(set_.via).subspan(ends.via, ends.via_count);
    const bool found = router_.append_path(
        {.src = ends.src, .dst = ends.dst, .qp = ends.qp, .message = 0, .via = via}, hops);
    WEFT_CHECK(found && !hops.empty());
    for (const route::Hop& hop : hops) pair.out.push_back(hop.link.index());
    for (const std::size_t link : pair.out) pair.back.push_back(reverse(LinkId(link)).index());
    std::ranges::reverse(pair.back);
  }

  std::uint64_t packet_bytes(const Pair& pair, std::uint64_t psn) const {
    const auto found = std::ranges::find_if(
        pair.messages, [&](const Sending& sending) { return psn < sending.last; });
    const bool pads =
        options_.wire.last_packet == LastPacket::full && found->first + 1 < found->last;
    if (psn + 1 < found->last || pads) return mtu_ + header_;
    return set_.messages[found->message].bytes - (psn - found->first) * mtu_ + header_;
  }

  bool can_send(const Pair& pair) const {
    if (selective()) return can_send_any(pair);
    return !pair.failed && !pair.messages.empty() && pair.next < pair.messages.back().last &&
           pair.next < pair.unacknowledged + window_;
  }

  void join_ring(std::uint32_t connection) {
    Pair& pair = pairs_[connection];
    if (pair.in_ring || !can_send(pair)) return;
    pair.in_ring = true;
    links_[pair.out.front()].ring.push_back(connection);
    look_again(pair.out.front());
  }

  void serve(std::size_t link) {
    std::deque<std::uint32_t>& ring = links_[link].ring;
    while (idle(link) && links_[link].fifo.empty() && !ring.empty()) {
      const std::uint32_t connection = ring.front();
      ring.pop_front();
      pairs_[connection].in_ring = false;
      if (can_send(pairs_[connection])) send_next(connection);
      join_ring(connection);
    }
  }

  void send_next(std::uint32_t connection) {
    if (selective()) return send_any(connection);
    Pair& pair = pairs_[connection];
    const std::uint64_t psn = pair.next++;
    Packet packet{Packet::Type::data, connection, psn, packet_bytes(pair, psn), 0};
    packet.asks = gathers() && !can_send(pair);
    result_.conservation.sent += packet.bytes - header_;
    if (psn < pair.sent_max) ++result_.counters.retransmissions;
    pair.sent_max = std::max(pair.sent_max, pair.next);
    if (psn == pair.unacknowledged) {
      pair.progress = now_;
      push(now_ + ps(options_.ack_timeout), Kind::timeout, connection);
    }
    start(pair.out.front(), packet);
  }

  void receive(const Packet& packet) {
    result_.conservation.received += packet.bytes - header_;
    Pair& pair = pairs_[packet.connection];
    if (packet.psn > pair.expected) {
      if (!pair.complained) answer(Packet::Type::nack, packet.connection, pair.expected);
      pair.complained = true;
      return;
    }
    const bool fresh = packet.psn == pair.expected;
    if (fresh) {
      ++pair.expected;
      pair.complained = false;
    }
    const bool ends =
        pair.arriving < pair.messages.size() && pair.expected >= pair.messages[pair.arriving].last;
    if (may_wait(packet, !fresh || ends) == Wait::no)
      answer(Packet::Type::ack, packet.connection, pair.expected - 1);
    if (!ends) return;
    const std::uint32_t message = pair.messages[pair.arriving++].message;
    result_.messages[message].arrived = now_;
    release_dependents(message, Dependent::When::arrived);
  }

  // Gathered acknowledgements.

  bool gathers() const { return options_.ack_delay.ps > 0 && options_.ack_every != 1; }

  enum class Wait : std::uint8_t { no, yes };
  // Whether what has come is acknowledged later, with others.
  Wait may_wait(const Packet& packet, bool urgent) {
    Pair& pair = pairs_[packet.connection];
    if (pair.unanswered++ == 0) pair.answer_by = now_ + ps(options_.ack_delay);
    const bool enough = options_.ack_every > 0 && pair.unanswered >= options_.ack_every;
    if (gathers() && !urgent && !packet.asks && !enough) {
      push(pair.answer_by, Kind::answer, packet.connection);
      return Wait::yes;
    }
    pair.unanswered = 0;
    return Wait::no;
  }

  // A timer of every packet that was not answered; most were since.
  void answer_late(std::uint32_t connection) {
    Pair& pair = pairs_[connection];
    if (pair.unanswered == 0 || now_ < pair.answer_by) return;
    pair.unanswered = 0;
    if (!selective()) return answer(Packet::Type::ack, connection, pair.expected - 1);
    answer_any(pair.last, true);
  }

  void answer(Packet::Type type, std::uint32_t connection, std::uint64_t psn) {
    enter(pairs_[connection].back.front(),
          {type, connection, psn, count(options_.wire.control), 0});
  }

  void acknowledge(std::uint32_t connection, std::uint64_t psn) {
    Pair& pair = pairs_[connection];
    if (psn < pair.unacknowledged) return;
    pair.unacknowledged = psn + 1;
    pair.next = std::max(pair.next, pair.unacknowledged);
    pair.retries = 0;
    pair.progress = now_;
    push(now_ + ps(options_.ack_timeout), Kind::timeout, connection);
    join_ring(connection);
    while (pair.ending < pair.messages.size() &&
           pair.messages[pair.ending].last <= pair.unacknowledged) {
      const std::uint32_t message = pair.messages[pair.ending++].message;
      result_.messages[message].end = now_;
      release_dependents(message, Dependent::When::acknowledged);
    }
  }

  void go_back(std::uint32_t connection, std::uint64_t expected) {
    Pair& pair = pairs_[connection];
    pair.next = std::max(expected, pair.unacknowledged);
    join_ring(connection);
  }

  // Old timers come here too; they find that there was progress since.
  void check_timeout(std::uint32_t connection) {
    Pair& pair = pairs_[connection];
    if (pair.unacknowledged == pair.next || pair.failed) return;
    if (now_ < pair.progress + ps(options_.ack_timeout)) return;
    ++result_.counters.timeouts;
    pair.failed = pair.retries++ == retries_max;
    if (pair.failed) return;
    if (!selective()) return go_back(connection, pair.unacknowledged);
    for (auto& [psn, sent] : pair.sent) lose_hold(sent);
    pair.progress = now_;
    push(now_ + ps(options_.ack_timeout), Kind::timeout, connection);
    join_ring(connection);
  }

  // Selective repeat. -----------------------------------------------------------------------------

  bool selective() const { return options_.reliability == Reliability::selective; }
  static constexpr std::uint16_t steps(Ps t) { return static_cast<std::uint16_t>(t >> 17); }

  static void lose_hold(Sent& sent) {
    sent.again = true;
    sent.open = false;
    sent.told = 0;
  }

  bool can_send_any(const Pair& pair) const {
    if (pair.failed || pair.messages.empty()) return false;
    const auto lost = static_cast<std::uint64_t>(
        std::ranges::count_if(pair.sent, [](const auto& s) { return s.second.again; }));
    if (pair.sent.size() - lost >= window_) return false;
    return lost > 0 ||
           (pair.next < pair.messages.back().last && pair.next < pair.unacknowledged + reach_);
  }

  void send_any(std::uint32_t connection) {
    Pair& pair = pairs_[connection];
    auto lost = std::ranges::find_if(pair.sent, [](const auto& s) { return s.second.again; });
    const bool again = lost != pair.sent.end();
    if (again) {
      ++result_.counters.retransmissions;
    } else {
      if (pair.sent.empty()) {
        pair.progress = now_;
        push(now_ + ps(options_.ack_timeout), Kind::timeout, connection);
      }
      lost = pair.sent.emplace(pair.next++, Sent{}).first;
    }
    auto& [psn, sent] = *lost;
    sent.order = pair.orders++;
    sent.at = now_;
    sent.again = false;
    Packet packet{Packet::Type::data, connection, psn, packet_bytes(pair, psn), 0};
    packet.asks = gathers() && (again || !can_send_any(pair));
    packet.order = sent.order;
    packet.sent = now_;
    result_.conservation.sent += packet.bytes - header_;
    start(pair.out.front(), packet);
  }

  void receive_any(const Packet& packet) {
    result_.conservation.received += packet.bytes - header_;
    Pair& pair = pairs_[packet.connection];
    const bool gap = packet.psn > pair.expected;
    const bool fresh = pair.received.try_emplace(packet.psn, now_, packet.order).second;
    while (pair.received.contains(pair.expected)) ++pair.expected;
    bool ends = false;
    while (pair.arriving < pair.messages.size() &&
           pair.expected >= pair.messages[pair.arriving].last) {
      ends = true;
      const std::uint32_t message = pair.messages[pair.arriving++].message;
      result_.messages[message].arrived = now_;
      release_dependents(message, Dependent::When::arrived);
    }
    pair.last = packet;
    if (may_wait(packet, !fresh || gap || ends || packet.marked) == Wait::no)
      answer_any(packet, false);
  }

  void answer_any(const Packet& packet, bool late) {
    Packet ack = packet;
    ack.type = Packet::Type::ack;
    ack.bytes = count(options_.wire.control);
    ack.hop = 0;
    ack.marked = false;
    ack.answered = now_;
    ack.came = pairs_[packet.connection].received.size();
    ack.asks = late;
    enter(pairs_[packet.connection].back.front(), ack);
  }

  // What stands on the wire as its number.
  std::uint64_t number_of(const Packet& packet) const {
    const bool counts = selective() && gathers() && packet.type == Packet::Type::ack;
    return counts ? packet.came : packet.psn;
  }

  // All that an ACK tells of, in the order in which it came; without gathering only its own.
  std::vector<std::uint64_t> told_by(const Packet& ack) const {
    const Pair& pair = pairs_[ack.connection];
    if (!gathers()) return {ack.psn};
    std::vector<std::uint64_t> out;
    for (const auto& [psn, sent] : pair.sent) {
      const auto came = pair.received.find(psn);
      if (came != pair.received.end() && came->second.at <= ack.answered) out.push_back(psn);
    }
    std::ranges::sort(out, {}, [&](std::uint64_t psn) { return pair.received.at(psn).at; });
    return out;
  }

  void acknowledge_any(const Packet& ack) {
    Pair& pair = pairs_[ack.connection];
    const std::vector<std::uint64_t> told = told_by(ack);
    if (!gathers() && !pair.sent.contains(ack.psn)) return;
    pair.progress = now_;
    push(now_ + ps(options_.ack_timeout), Kind::timeout, ack.connection);
    if (!ack.asks) pair.round_trip = static_cast<std::uint16_t>(steps(now_) - steps(ack.sent));
    for (const std::uint64_t psn : told) pair.sent.erase(psn);
    for (const std::uint64_t psn : told)
      look_behind(pair, gathers() ? pair.received.at(psn).order : ack.order, ack.answered);
    const std::uint64_t before = pair.unacknowledged;
    pair.unacknowledged = pair.sent.empty() ? pair.next : pair.sent.begin()->first;
    if (pair.unacknowledged > before) pair.retries = 0;
    while (pair.ending < pair.messages.size() &&
           pair.messages[pair.ending].last <= pair.unacknowledged) {
      const std::uint32_t message = pair.messages[pair.ending++].message;
      result_.messages[message].end = now_;
      release_dependents(message, Dependent::When::acknowledged);
    }
    join_ring(ack.connection);
  }

  // A packet came that was sent as the `order`th: those before it that did not are lost.
  void look_behind(Pair& pair, std::uint64_t order, Ps answered) const {
    for (auto at = pair.sent.begin(); at != pair.sent.end();) {
      auto& [psn, sent] = *at;
      const auto came = pair.received.find(psn);
      const bool known = !sent.again && sent.order < order;
      if (known && came != pair.received.end() && came->second.at <= answered) {
        at = pair.sent.erase(at);
        continue;
      }
      if (known && ++sent.told >= options_.retransmit_gap) lose_hold(sent);
      ++at;
    }
  }

  // `hop`: the link that the packet does not reach.
  void lose(const Packet& packet) {
    const std::vector<std::size_t>& route = route_of(packet);
    Ps told = now_;
    const std::size_t from = packet.type == Packet::Type::data ? 0 : packet.hop;
    for (std::size_t i = from; i < route.size(); ++i) told += latency(route[i]);
    events_.push({told, Kind::loss, packet.connection, packet});
  }

  // `lost`: just known to be, or its ACK; one of no bytes: none.
  void look_for_losses(std::uint32_t connection, const Packet& lost) {
    Pair& pair = pairs_[connection];
    if (pair.failed) return;
    if (lost.bytes > 0) {
      const bool ack = gathers() && lost.type == Packet::Type::ack;
      for (const std::uint64_t psn : ack ? told_by(lost) : std::vector{lost.psn}) {
        const bool first = ack && pair.received.at(psn).order == pair.sent.at(psn).order;
        const auto at = pair.sent.find(psn);
        if (at == pair.sent.end() || at->second.again || at->second.open) continue;
        if (!first && (at->second.order != lost.order || psn != lost.psn)) continue;
        at->second.open = true;
        at->second.due = (at->second.at >> 17 << 17) + patience(pair, at->second.timeouts);
        if (at->second.due > now_) push(at->second.due, Kind::loss, connection);
      }
    }
    bool ended = false;
    for (auto& [psn, sent] : pair.sent) {
      if (!sent.open || sent.due > now_) continue;
      lose_hold(sent);
      ++sent.timeouts;
      ended = true;
    }
    if (ended) ++result_.counters.timeouts;
    if (ended) join_ring(connection);
  }

  Ps patience(const Pair& pair, std::uint32_t timeouts) const {
    Ps empty = 0;
    for (const std::size_t link : pair.out)
      empty += 2 * latency(link) + wire_time(link, mtu_ + header_) +
               wire_time(link, count(options_.wire.control));
    const Ps round_trip = pair.round_trip > 0 ? Ps{pair.round_trip} << 17 : empty;
    const Ps least =
        std::max(ps(options_.retransmit_least), options_.retransmit_round_trips * round_trip);
    Ps wait = least;
    for (std::uint32_t i = 0; i < timeouts && wait < ps(options_.ack_timeout); ++i)
      wait = std::max(least, std::min(2 * wait, ps(options_.ack_timeout)));
    return wait;
  }

  void begin(std::uint32_t message) {
    result_.end = result_.messages[message].start = now_;
    const Message& row = set_.messages[message];
    if (row.bytes == 0) {
      result_.messages[message] = {now_, now_, now_};
      release_dependents(message, Dependent::When::arrived);
      return release_dependents(message, Dependent::When::acknowledged);
    }
    find_path(row.connection);
    Pair& pair = pairs_[row.connection];
    const std::uint64_t first = pair.messages.empty() ? 0 : pair.messages.back().last;
    pair.messages.push_back({message, first, first + (row.bytes + mtu_ - 1) / mtu_});
    join_ring(row.connection);
  }

  void release_dependents(std::uint32_t message, Dependent::When when) {
    for (const Dependent& dependent : set_.dependents_of(message)) {
      if (dependent.when != static_cast<std::uint32_t>(when)) continue;
      if (--waits_left_[dependent.message] > 0) continue;
      const Message& row = set_.messages[dependent.message];
      push(std::max(row.not_before_ps, now_ + row.delay_ns * Ps{1000}), Kind::message,
           dependent.message);
    }
  }

  void finish_counters() {
    std::uint64_t& in_flight = result_.conservation.in_flight;
    const auto payload = [&](const Packet& packet) {
      return packet.type == Packet::Type::data ? packet.bytes - header_ : 0;
    };
    const Ps end = events_.empty() ? result_.end : options_.end;  // the run was cut off
    for (std::size_t l = 0; l < links_.size(); ++l) {
      if (links_[l].paused) result_.links[l].paused_ps += end - links_[l].paused_since;
      for (const Packet& packet : links_[l].fifo) in_flight += payload(packet);
    }
    for (; !events_.empty(); events_.pop())
      if (events_.top().kind == Kind::arrival) in_flight += payload(events_.top().packet);
    result_.complete =
        std::ranges::all_of(result_.messages, [](const MessageEnd& m) { return m.end != never; });
  }

  const MessageSet& set_;
  route::Router& router_;
  const Fabric& fabric_;
  const Options& options_;
  std::span<const double> loss_;  // by link, or none
  std::uint64_t mtu_, header_, window_;
  std::uint64_t reach_ = 0;  // packets after the first unacknowledged that may be sent
  Ps now_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Link> links_;
  std::vector<Ingress> ingresses_;  // by link
  std::vector<Switch> switches_;    // by node
  std::vector<Pair> pairs_;         // by connection
  std::vector<std::uint32_t> waits_left_;
  PacketRunResult result_;
};

}  // namespace

PacketRunResult run_reference(const MessageSet& set, route::Router& router, const Options& options,
                              std::span<const double> loss) {
  WEFT_CHECK(options.balance == Balance::path && options.admission == Admission::open);
  WEFT_CHECK(options.overflow == Overflow::drop);
  WEFT_CHECK(loss.empty() || loss.size() == router.fabric().link_count());
  WEFT_CHECK(options.congestion == Congestion::none && options.scheduler.weights.size() == 1);
  WEFT_CHECK(options.message_rate == 0 && options.receive_rate == 0);
  return Reference(set, router, options, loss).run();
}

}  // namespace weft::engine::packet
