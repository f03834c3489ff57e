// A bucketed timing wheel whose arrivals are chained through the links. Internal to the room.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <queue>
#include <vector>

#include "engine/packet/link.hpp"
#include "engine/packet/packet_memory.hpp"

namespace weft::engine::packet {

// In the order in which events of one time happen.
enum class EventKind : std::uint32_t {
  arrival,    // link: its first packet is at the far end
  departure,  // link: a packet that waited has started, where somebody must know
  relief,     // ingress: so much of it may have left that its sender may go on
  nic,        // link: the host may send
  pause,      // link << 3 | class
  resume,     // link << 3 | class
  start,      // message
  ready,      // connection: its pace lets it send again
  timeout,    // connection
  grant,      // receiving NIC, or connection: its next credit is due
  ack,        // connection: the receiver has waited long enough
  loss        // connection: its sender may learn of a lost packet
};

struct Event {
  Ps t;
  EventKind kind;
  std::uint32_t id;
};

// Events within the horizon wait in buckets of 2^width ps, those beyond in a heap. Only the bucket
// that is being emptied is sorted, by one word for each event. Cost: some 15 ns an event, however
// many wait.
class Wheel {
  static constexpr std::uint32_t id_shift = 1, kind_shift = 33, time_shift = 37;  // of a Key

 public:
  static constexpr std::uint32_t width_max = 64 - time_shift;
  // Links from `twins` on are the receiving sides of links[id - twins].
  Wheel(LargeArray<Link>& links, std::uint32_t twins) : links_(links), twins_(twins) {}
  void open(std::uint32_t width, std::uint32_t bucket_bits);
  void clear();

  void push_arrival(Ps t, std::uint32_t link);
  void push(Ps t, EventKind kind, std::uint32_t id);
  // Time of the first event; `never` when there is none.
  Ps next_time() {
    while (at_ == present_.size() && early_.empty())
      if (!advance()) return never;
    return early_is_next() ? early_.front().t : time_of(present_[at_]);
  }
  // Takes the first event before `until`; false when there is none.
  bool pop_before(Ps until, Event& event) {
    while (at_ == present_.size() && early_.empty())
      if (!advance()) return false;
    if (early_is_next()) [[unlikely]] {
      if (early_.front().t >= until) return false;
      event = pop_early();
    } else {
      if (time_of(present_[at_]) >= until) return false;
      event = event_of(present_[at_++]);
    }
    --pending_;
    return true;
  }

 private:
  struct Chained {
    Event event;
    std::uint32_t next;
  };
  // An event of the present bucket, in the order in which they happen: its time within the bucket,
  // its kind, its link or whatever it is of, and whether that is a twin, which comes where its link
  // would.
  using Key = std::uint64_t;
  static_assert(static_cast<std::uint32_t>(EventKind::loss) < 1u << (time_shift - kind_shift));
  Key key_of(const Event& e) const {
    const bool is_twin = e.kind == EventKind::arrival && e.id >= twins_;
    return (e.t - (tick_ << width_)) << time_shift | static_cast<Key>(e.kind) << kind_shift |
           Key{is_twin ? e.id - twins_ : e.id} << id_shift | Key{is_twin};
  }
  Ps time_of(Key key) const { return (tick_ << width_) + (key >> time_shift); }
  Event event_of(Key key) const {
    const auto id = static_cast<std::uint32_t>(key >> id_shift);
    return {time_of(key), static_cast<EventKind>(key >> kind_shift & 15),
            id + ((key & 1) != 0 ? twins_ : 0)};
  }
  std::uint32_t order_id(const Event& e) const {
    return e.kind == EventKind::arrival && e.id >= twins_ ? e.id - twins_ : e.id;
  }
  bool before(const Event& a, const Event& b) const {
    if (a.t != b.t) return a.t < b.t;
    if (a.kind != b.kind) return a.kind < b.kind;
    return order_id(a) < order_id(b);
  }
  auto after() const {
    return [this](const Event& a, const Event& b) { return before(b, a); };
  }
  bool early_is_next() const {
    return !early_.empty() &&
           (at_ == present_.size() || before(early_.front(), event_of(present_[at_])));
  }
  void push_early(const Event& event);
  Event pop_early();
  void insert_present(const Event& event);
  void mark(std::uint32_t bucket) { busy_[bucket >> 6] |= std::uint64_t{1} << (bucket & 63); }
  std::uint64_t next_busy() const;
  bool advance();
  void collect(std::uint32_t bucket);
  void sort_present();

  LargeArray<Link>& links_;
  std::uint32_t twins_;
  std::uint32_t width_ = 8, buckets_ = 0;
  struct Bucket {
    std::uint32_t arrivals = none, others = none;  // the first of each
  };
  std::vector<Bucket> bucket_;
  std::vector<std::uint64_t> busy_;  // a bit for each bucket
  std::vector<Chained> chained_;
  std::uint32_t free_chained_ = none;
  std::uint64_t tick_ = 0;    // the bucket that is being emptied, unwrapped
  std::vector<Key> present_;  // sorted
  std::size_t at_ = 0;
  std::vector<Event> early_;  // a heap: of the same bucket, that would move many, or of one before
  std::uint64_t pending_ = 0;
  struct Later {
    bool operator()(const Event& a, const Event& b) const { return a.t > b.t; }
  };
  std::priority_queue<Event, std::vector<Event>, Later> far_;
};

inline void Wheel::push_arrival(Ps t, std::uint32_t link) {
  ++pending_;
  const std::uint64_t tick = t >> width_;
  if (tick <= tick_) return insert_present({t, EventKind::arrival, link});
  if (tick - tick_ >= buckets_) [[unlikely]]
    return far_.push({t, EventKind::arrival, link});
  const auto bucket = static_cast<std::uint32_t>(tick & (buckets_ - 1));
  links_[link].due = t;
  links_[link].next_due = bucket_[bucket].arrivals;
  bucket_[bucket].arrivals = link;
  mark(bucket);
}

inline void Wheel::push(Ps t, EventKind kind, std::uint32_t id) {
  ++pending_;
  const std::uint64_t tick = t >> width_;
  if (tick <= tick_) return insert_present({t, kind, id});
  if (tick - tick_ >= buckets_) [[unlikely]]
    return far_.push({t, kind, id});
  const auto bucket = static_cast<std::uint32_t>(tick & (buckets_ - 1));
  std::uint32_t slot = free_chained_;
  if (slot == none) {
    slot = static_cast<std::uint32_t>(chained_.size());
    chained_.emplace_back();
  } else {
    free_chained_ = chained_[slot].next;
  }
  chained_[slot] = {{t, kind, id}, bucket_[bucket].others};
  bucket_[bucket].others = slot;
  mark(bucket);
}

}  // namespace weft::engine::packet
