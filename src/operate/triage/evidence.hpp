// A record as triage sees it: placed on a part of the fabric, with a time that can be believed.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "model/events/record.hpp"
#include "operate/triage/parts.hpp"
#include "operate/triage/rules.hpp"

namespace weft::operate::triage {

struct Evidence {
  std::int64_t at = 0;        // when it was complete: the end of a probe window or poll
  std::int64_t begin = 0;     // when it began; `at` for a point in time
  std::uint64_t detail = 0;   // hash of the change's id, else the value's bits
  std::int64_t until = 0;     // of an order: when it ends by itself; 0: when its end is ordered
  std::uint64_t content = 0;  // hash of the record's id: orders what is equal otherwise
  std::uint64_t serial = 0;   // the caller's name for the record
  PartId part;                // none for what has no place in the fabric
  model::NodeId via;          // of congestion: who was paused
  PartId focus;               // of congestion: the cable to a NIC whose queue it is
  model::EventKind kind = model::EventKind::info;
  model::Source source = model::Source::syslog;
  std::uint8_t end = 0;      // of a cable: 0 for the one that its forward link leaves
  bool is_policy = false;    // a session closed by the other side's configuration
  bool has_reason = false;   // it says why the session ended
  bool is_indirect = false;  // paused by a switch that may itself be paused
  bool is_verified = false;  // of an order to return a part: test traffic came through
};

// Whether both say the same, whoever delivered them.
bool is_repeat(const Evidence& a, const Evidence& b);
// The order of processing: by time and content alone, never by arrival.
std::strong_ordering order(const Evidence& a, const Evidence& b);

class Interpreter {
 public:
  struct Counts {
    std::uint64_t records = 0;
    std::uint64_t nothing = 0;       // of no use to triage
    std::uint64_t unplaced = 0;      // of something that the fabric does not know
    std::uint64_t wrong_clocks = 0;  // placed by the time of receipt
  };

  Interpreter(const Parts& parts, const Rules& rules) : parts_(parts), rules_(rules) {}

  // Nothing for records that say nothing of health or have no place.
  // Cost: O(1); a record with a "peer" one lookup more.
  std::optional<Evidence> interpret(const model::RecordSet& set, const model::Record& record,
                                    std::uint64_t serial);
  const Counts& counts() const { return counts_; }
  // The change's id behind Evidence::detail.
  const std::string& change(std::uint64_t detail) const { return changes_.at(detail); }
  // The record's id of announced maintenance, by Evidence::content; "" for other evidence.
  std::string_view announcement(std::uint64_t content) const {
    const auto found = announcements_.find(content);
    return found == announcements_.end() ? std::string_view() : found->second;
  }

 private:
  void set_times(const model::Record& record, Evidence& out);
  void set_order_times(const model::Record& record, Evidence& out) const;
  void place(const model::Entity& entity, Evidence& out) const;
  void place_congestion(const model::Entity& entity, Evidence& out) const;
  void place_capacity(const model::Entity& entity, Evidence& out) const;
  void place_paused(model::LinkId out_link, Evidence& out) const;
  void place_session(const model::RecordSet& set, const model::Record& record, Evidence& out);
  void place_change(const model::RecordSet& set, const model::Record& record, Evidence& out);

  const Parts& parts_;
  const Rules& rules_;
  Counts counts_;
  std::map<std::string, model::NodeId, std::less<>> peers_;
  std::map<std::uint64_t, std::string> changes_, announcements_;
};

}  // namespace weft::operate::triage
