// Changes that somebody ordered: a drain, its end, announced maintenance. What they bring about is
// expected and no evidence of a fault; what they do not bring about is evidence as always.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "operate/triage/evidence.hpp"
#include "operate/triage/maintenance.hpp"
#include "operate/triage/parts.hpp"
#include "operate/triage/rules.hpp"

namespace weft::operate::triage {

inline constexpr std::int64_t forever = std::numeric_limits<std::int64_t>::max();

// Known in event time, like all else: the same records give the same answers in any order of
// arrival within the lateness.
class PlannedChanges {
 public:
  PlannedChanges(const Parts& parts, const Suspects& suspects, const Rules& rules)
      : parts_(parts), suspects_(suspects), rules_(rules) {}

  // An order or an announcement; `name` is what cases inside a window call it. Returns the parts
  // that it is about, ascending.
  // Cost: O(footprint of the part * log).
  std::vector<PartId> add(const Evidence& order, std::string_view name);

  // Whether what is said of the part at `at` is the effect of an order:
  // - a session that ends while the part is out of service, or just after;
  // - a carrier that is lost within `timing: change` of an order (some drains shut the port);
  // - what comes back within `timing: change` of the order to return it.
  // Everything else is not: losses, bit errors, light, faults of devices, and a carrier that is
  // lost later. `is_policy`: the session was closed by configuration, as orders do it.
  bool explains(PartId part, model::EventKind kind, std::int64_t at, bool is_policy) const;
  // Whether a change of a device's configuration is the order itself: within `timing: change` of an
  // order about the device or one of its cables, and without an id that says otherwise.
  bool explains_commit(PartId device, std::int64_t at, std::uint64_t change) const;
  // As Maintenance::covering().
  std::string_view covering(std::span<const PartId> parts, Timestamp at) const {
    return windows_.covering(parts, at);
  }

  // Forgets what ended so long before `now` that nothing can be its effect any more.
  void forget(std::int64_t now);
  // The oldest order that still counts, or the largest number; those of the controller itself are
  // not among them, for it says again what goes on for long. Cost: O(parts under orders).
  std::uint64_t oldest_serial() const;

 private:
  static constexpr std::size_t plans_max = 1'000;  // of one part; the oldest go first
  struct Plan {
    std::int64_t from = 0, until = forever;
    std::int64_t ordered = 0;  // the last order to drain: tries may be repeated
    std::uint64_t serial = 0;
    bool is_window = false;  // of maintenance: it says when, not what is done
  };
  void drain(std::vector<Plan>& plans, const Evidence& order) const;
  void undrain(std::vector<Plan>& plans, const Evidence& order) const;
  bool is_near(std::int64_t at, std::int64_t order) const;

  const Parts& parts_;
  const Suspects& suspects_;
  const Rules& rules_;
  std::map<PartId, std::vector<Plan>> plans_;
  std::map<PartId, std::deque<std::int64_t>> orders_;  // by device: times of orders at it
  Maintenance windows_;
  std::int64_t forgotten_ = 0;
};

}  // namespace weft::operate::triage
