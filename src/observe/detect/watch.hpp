// One rule at work: its groups, what is true of each, and the detections that begin and end.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "observe/detect/detection.hpp"
#include "observe/detect/event.hpp"
#include "observe/detect/flat_map.hpp"
#include "observe/detect/held.hpp"
#include "observe/detect/rules.hpp"
#include "observe/detect/term_window.hpp"
#include "observe/detect/timeline.hpp"

namespace weft::observe::detect {

// The condition of a group is a function of time that changes at events and where one leaves a
// window. At each such moment what expires goes first, then all events of the moment are taken,
// then the condition is looked at once: the order of events of one moment does not matter to it.
class Watch {
 public:
  struct Bounds {
    std::size_t events_max;   // of a term
    std::size_t members_max;  // of a detection
  };
  // All must outlive this.
  Watch(const Rule& rule, std::uint32_t rule_index, const Context& context, const Bounds& bounds,
        Held& held, DetectCounts& counts);
  Watch(Watch&&) = default;

  const Rule& rule() const { return *rule_; }
  bool listens_to(Signal signal) const { return listening_[index(signal)]; }

  // Times must not fall. `held` is where the record waits, if it does.
  // Cost: O(1) amortised, for an event of a whole device O(its groups).
  void take(const Event& event, const HeldAt& held, std::vector<Detection>& out);
  // All that happens before `t`, when no event earlier than that is to come.
  void run_before(std::int64_t t, std::vector<Detection>& out);
  // Nothing comes after `t`: what has begun is told, also before its time.
  void finish(std::int64_t t, std::vector<Detection>& out);

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  enum class Phase : std::uint8_t { quiet, on, off };  // off: on before, and not yet ended

  struct Member {
    std::uint64_t serial = 0;
    HeldAt held;
  };
  struct Group {
    model::Entity entity;
    std::uint32_t whole = none;  // the group of the device, where that is another one
    std::uint32_t part = none, next = none, before = none;  // of a whole: its parts, in a list
    std::uint32_t ports = 1;
    std::uint32_t entries = 0;  // in all windows
    bool is_whole = false;      // of parts, and none itself
    bool is_dirty = false;
    bool is_told = false;
    Phase phase = Phase::quiet;
    std::int64_t began = 0, off_since = 0;
    std::uint32_t turn = 0;  // how often it went on or off: an end due for another one is void
    Chain chain;             // of members_
    std::uint32_t untaken = 0;
    std::vector<std::uint64_t> members;  // that are not told yet
    std::uint64_t member_count = 0;
  };
  struct Due {
    std::int64_t t = 0;
    std::uint32_t group = 0, turn = 0;
  };

  bool wants(const Event& event) const;
  std::uint32_t group_of(const model::Entity& entity, std::int64_t t);
  std::uint32_t make_group(const model::Entity& entity, std::int64_t t);
  void free_group(std::uint32_t at);
  void enter_terms(std::uint32_t at, const Event& event);
  void add_member(std::uint32_t at, const Event& event, const HeldAt& held);
  void drop_member();
  void touch(std::uint32_t at);
  void lost_entry(std::uint32_t at);

  std::int64_t next_moment() const;
  void expire();
  void settle(std::vector<Detection>& out);
  void tell_due(const Due& due, std::vector<Detection>& out);
  bool is_true(const Group& group, std::uint32_t at) const;
  void judge(std::uint32_t at);
  void take_members(Group& group);
  void tell(std::uint32_t at, Detection::Phase phase, std::vector<Detection>& out);
  void end(std::uint32_t at, std::vector<Detection>& out);

  const Rule* rule_;
  std::uint32_t rule_index_;
  const Context* context_;
  Bounds bounds_;
  Held* held_;
  DetectCounts* counts_;
  Signals listening_;
  std::int64_t now_ = INT64_MIN;
  std::vector<TermWindow> terms_;
  Timeline<Member> members_;
  FlatMap group_by_entity_;
  std::vector<Group> groups_;
  std::vector<std::uint32_t> free_groups_;
  std::vector<std::uint32_t> dirty_;
  std::deque<Due> tell_, end_;
};

}  // namespace weft::observe::detect
