// One term of a rule: what it remembers of each group, so that its truth is always at hand.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "observe/detect/event.hpp"
#include "observe/detect/flat_map.hpp"
#include "observe/detect/rules.hpp"
#include "observe/detect/timeline.hpp"

namespace weft::observe::detect {

inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

struct DetectCounts {
  std::uint64_t events = 0;
  std::uint64_t late = 0;     // behind the lateness: told singly, not looked at
  std::uint64_t hurried = 0;  // looked at or told before their time, for too many waited
  std::uint64_t evicted = 0;  // forgotten by a term before its window ended
  std::uint64_t resets = 0;   // counters that fell
  std::uint64_t members = 0;  // of detections with too many to name them all
};

// Groups are numbers of the caller, who says when one is new. All calls are O(1).
class TermWindow {
 public:
  TermWindow(const Term& term, std::size_t events_max, DetectCounts& counts);

  const Term& term() const { return *term_; }
  bool accepts(const Event& event) const {
    return term_->signals[index(event.signal)] &&
           (term_->sources.none() || term_->sources[static_cast<std::size_t>(event.source)]);
  }
  // The group's state is as if it had never been seen.
  void reset(std::uint32_t group);
  // Remembers that the group exists: absence counts from here.
  template <class Touch>
  void begin(std::uint32_t group, std::int64_t t, Touch touch);
  // An event of the group; `key` is its series or the part it is about. Groups whose oldest
  // entries had to go for it are told to `touch`.
  template <class Touch>
  void add(std::uint32_t group, const Event& event, std::uint64_t key, Touch touch);
  // When the oldest entry leaves the window.
  std::int64_t next_expiry() const;
  // Forgets what has left the window at `t`; each entry's group is told to `touch`.
  template <class Touch>
  void expire(std::int64_t t, Touch touch);

  // Entries of a group.
  std::uint32_t size(std::uint32_t group) const { return groups_[group].chain.count; }
  // Whether the term holds of the group and what is said of the whole that it is part of (or twice
  // the same group number); `ports` is the group's number of them.
  bool holds(std::uint32_t group, std::uint32_t whole, std::uint32_t ports) const;

 private:
  static constexpr std::uint32_t no_slot = UINT32_MAX;
  struct Item {
    std::uint32_t slot = no_slot;
    std::uint32_t next = 0;  // of the same slot
    double value = 0;
    std::uint64_t growth = 0;
  };
  struct Group {
    Chain chain;
    std::uint32_t good = 0;    // events, parts or series that speak for the term
    std::uint64_t growth = 0;  // of counters
  };
  // A series of a group, or a part with events, as long as it has entries.
  struct Slot {
    NumberPair key;
    std::uint32_t entries = 0;
    bool is_good = false;
    bool is_run = false;  // all samples since `since` keep the limit
    std::int64_t since = 0;
    double last = 0;
    std::uint32_t first = 0, newest = 0;  // entries
  };

  template <class Touch>
  void make_room(Touch touch);
  void enter(std::uint32_t group, const Event& event, std::uint64_t key);
  void remove_oldest(std::uint32_t group);
  std::uint32_t slot_of(const NumberPair& key);
  void judge(std::uint32_t group, Slot& slot, bool is_good);
  bool keeps_limit(double value) const {
    return term_->side == Side::above ? value > term_->limit : value < term_->limit;
  }
  std::uint64_t grow(const Slot& slot, double value);
  void link(Slot& slot, std::uint32_t at);
  void unlink(std::uint32_t group, const Item& item);

  const Term* term_;
  DetectCounts* counts_;
  bool has_slots_;
  Timeline<Item> line_;
  std::vector<Group> groups_;
  FlatMap slot_by_key_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
};

template <class Touch>
void TermWindow::make_room(Touch touch) {
  if (!line_.is_full()) return;
  const std::uint32_t oldest = line_.front().group;
  remove_oldest(oldest);
  ++counts_->evicted;
  touch(oldest);
}

template <class Touch>
void TermWindow::begin(std::uint32_t group, std::int64_t t, Touch touch) {
  if (term_->kind != TermKind::absent) return;
  make_room(touch);
  line_.push(t, group, groups_[group].chain, {});
}

template <class Touch>
void TermWindow::add(std::uint32_t group, const Event& event, std::uint64_t key, Touch touch) {
  make_room(touch);
  if (groups_[group].chain.count >= group_events_max) {
    remove_oldest(group);
    ++counts_->evicted;
    touch(group);
  }
  enter(group, event, key);
}

template <class Touch>
void TermWindow::expire(std::int64_t t, Touch touch) {
  while (!line_.empty() && line_.front().t <= t - term_->window_ns) {
    const std::uint32_t group = line_.front().group;
    remove_oldest(group);
    touch(group);
  }
}

}  // namespace weft::observe::detect
