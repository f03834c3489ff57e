// What selective repeat finds out about packets that got lost. Internal to the room.
//
// Packets carry no acknowledged ranges: they have no room for them (packet.hpp). Instead, where a
// packet is lost, a notice goes to its sender; but the sender acts on it only when a real one could
// know, that is, when an acknowledgement comes that would tell, or when its timer ends. So it sends
// nothing again that is merely late, and a run without losses does no work for this at all.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/packet/options.hpp"
#include "transport/sequence.hpp"

namespace weft::engine::packet {

// Senders and switches stamp packets with 16 bits of time in steps of 2^17 ps, 131 ns.
inline constexpr std::uint32_t stamp_shift = 17;
constexpr std::uint16_t stamp_of(Ps t) { return static_cast<std::uint16_t>(t >> stamp_shift); }

// A packet was lost that was on its way to, or from, the sender of `connection`.
struct LossNotice {
  enum class What : std::uint8_t { data, ack, credit };
  Ps at = 0;  // when the notice is at the sender
  std::uint32_t connection = 0;
  What what = What::data;
  std::uint32_t psn = 0;   // as in the packet; of credit: how much
  std::uint32_t path = 0;  // as in the packet
  Ps sent = 0;             // the data packet; known in steps of 2^17 ps, and rounded down
  Ps lost = 0;

  auto order() const { return std::tuple(at, connection, what, psn, path, sent, lost); }
  friend bool operator<(const LossNotice& a, const LossNotice& b) { return a.order() < b.order(); }
};

// When a packet was sent, among those of its connection: new packets in the order of their
// numbers, and those sent again, by `turn`, before the new packet `before`.
struct SendOrder {
  std::uint32_t before = 0, turn = 0;

  friend bool operator<(const SendOrder& a, const SendOrder& b) {
    const std::int32_t distance = transport::psn_distance(a.before, b.before);
    return distance != 0 ? distance > 0 : a.turn < b.turn;
  }
};
constexpr SendOrder order_of_new(std::uint32_t psn) { return {psn + 1, 0}; }

// One connection with losses. An entry for each packet that was lost or sent again and is not yet
// acknowledged: at most a window of them.
struct Repair {
  enum class State : std::uint8_t {
    resent,  // under way again, or about to be
    lost,
    unheard  // it came, its acknowledgement did not
  };
  struct Entry {
    SendOrder order;
    std::uint64_t way = 0;  // the path that it took
    Ps sent = 0, due = 0;   // due: when the sender waits no longer; of one that is not `resent`
    State state = State::resent;
    bool came = false;  // an acknowledgement of it was lost
    std::uint8_t timeouts = 0;
    std::uint32_t told = 0;  // by so many acknowledgements since it was opened
  };
  struct Credit {
    Ps due = 0;  // when it is asked for again; never: as soon as there is a path
    std::uint32_t amount = 0;
  };
  struct Before {
    bool operator()(std::uint32_t a, std::uint32_t b) const {
      return transport::psn_distance(a, b) > 0;
    }
  };

  using Entries = std::map<std::uint32_t, Entry, Before>;

  // The sender does not know what became of the packet until it is told, or until `due`. Neither
  // its order nor its way changes meanwhile.
  void open(Entries::iterator at, State state, Ps due) {
    at->second.state = state;
    at->second.due = due;
    at->second.told = 0;
    open_until.emplace(due, at->first);
    (at->second.came ? came : on_way[at->second.way]).emplace(at->second.order, at->first);
  }
  void close(Entries::iterator at) {
    if (at->second.state == State::resent) return;
    open_until.erase({at->second.due, at->first});
    stop_telling(at);
    at->second.state = State::resent;
  }
  // An acknowledgement of the packet was lost.
  void mark_came(Entries::iterator at) {
    if (at->second.came) return;
    const bool is_open = at->second.state != State::resent;
    if (is_open) stop_telling(at);
    at->second.came = true;
    if (is_open) came.emplace(at->second.order, at->first);
  }

  Entries entries;  // by packet number
  // The open ones, that is, all that are not `resent`: by `due`, and in the order of sending. One
  // acknowledgement may find thousands of them, and looks only at those that it may tell of.
  using InOrder = std::set<std::pair<SendOrder, std::uint32_t>>;
  std::set<std::pair<Ps, std::uint32_t>> open_until;
  std::map<std::uint64_t, InOrder> on_way;  // by way, those of which no acknowledgement was lost
  InOrder came;                             // the others
  std::vector<Credit> credits;              // that got lost, or could not be asked for
  std::uint32_t turn = 0;
  Ps round_trip = 0;  // without queues
  Ps timer = never;   // when an event will look at what is due

  bool empty() const { return entries.empty() && credits.empty(); }

 private:
  void stop_telling(Entries::iterator at) {
    const std::pair key{at->second.order, at->first};
    if (at->second.came) {
      came.erase(key);
      return;
    }
    const auto way = on_way.find(at->second.way);
    way->second.erase(key);
    if (way->second.empty()) on_way.erase(way);
  }
};

// What the links from a connection's sender to its receiver have in common.
struct Way {
  bool complete = false;
  std::uint64_t key = 0;  // equal for packets that cannot overtake each other
  Ps latency = 0, round_trip = 0;
};

}  // namespace weft::engine::packet
