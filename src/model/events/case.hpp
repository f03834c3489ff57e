// A case: what happened, what it is traced back to, and why each record belongs to it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.hpp"
#include "base/timestamp.hpp"
#include "model/events/entity.hpp"
#include "model/events/event_kind.hpp"

namespace weft::model {

// From the least to the most: a cause may take over cases of lesser causes inside its footprint.
enum class CauseKind : std::uint8_t {
  flap,           // a link that goes down and up again and again
  optic,          // light or bit errors of a link
  link,           // a cable or port
  nic,            // of a host
  host,           // down, rebooting or hung
  platform,       // power supply, fan, memory, storage of one device
  card,           // a line card
  part,           // of a switch: many of its ports at once, not all
  control_plane,  // sessions lost while links stay up
  rack_device,    // a whole switch that hosts hang on
  device,         // any other whole switch
  rack,           // all that stands in a rack
  power,          // the same, and the power is known to be gone
  zone,           // all that stands in a pod, zone, building or region
  config,         // a change pushed to several devices
  congestion,     // a switch whose ports fill up
  capacity,       // a rack that independent faults leave with too few of its uplinks
  unknown,
};
// As truths spell them too.
inline constexpr auto cause_kind_text = std::to_array<std::string_view>(
    {"port_flap", "optic", "cable", "host_nic", "host", "platform", "line_card", "switch_part",
     "control_plane", "rack_switch", "switch", "rack", "power", "zone", "misconfiguration",
     "congestion", "capacity", "unknown"});
inline constexpr std::size_t cause_kind_count = cause_kind_text.size();
static_assert(static_cast<std::size_t>(CauseKind::unknown) + 1 == cause_kind_count);
constexpr std::span<const std::string_view> names_of(CauseKind) { return cause_kind_text; }
constexpr std::string_view to_text(CauseKind kind) { return name_of(kind); }
std::optional<CauseKind> cause_kind(std::string_view name);
std::vector<std::string> cause_kind_names();
constexpr bool is_device(CauseKind kind) {
  return kind == CauseKind::device || kind == CauseKind::rack_device;
}

// Why a record belongs to its case.
enum class Relation : std::uint8_t {
  itself,          // said of the root
  end_of_link,     // said at one end of the cable that is the root
  port_of,         // of a port of the card or device
  session_over,    // a session that runs over the root
  probe_over,      // a probe that crosses the root
  nic_below,       // a NIC that hangs on the root
  host_below,      // a host that hangs on the root
  device_inside,   // a device that stands in the rack or zone
  part_of,         // a card of the device, or what else it is made of
  same_change,     // the change, or a session that it took
  pauses_towards,  // a queue or pause on the way to the congested switch
  learned,         // history says that a member of the case leads to such records near it
};
inline constexpr std::size_t relation_count = 12;
std::string_view to_text(Relation relation);

enum class CaseState : std::uint8_t {
  provisional,  // may still change: what belongs before it may be on its way
  settled,
  maintenance,  // expected: all of it lies inside an announced window
};
inline constexpr auto case_state_text =
    std::to_array<std::string_view>({"provisional", "final", "maintenance"});
constexpr std::span<const std::string_view> names_of(CaseState) { return case_state_text; }
constexpr std::string_view to_text(CaseState state) { return name_of(state); }

struct Case {
  struct Member {
    Timestamp at;
    std::uint64_t serial;  // as given with the record
    Relation relation;
    double confidence = 1;  // of a learned relation; the written ones are what they are
  };

  // Records of one part, kind and source that are counted and not listed, because the same was
  // said too often.
  struct Summary {
    Entity entity;
    EventKind kind = EventKind::info;
    Source source = Source::syslog;
    Relation relation = Relation::itself;
    std::uint64_t records = 0;
    Timestamp first, last;
    friend bool operator==(const Summary&, const Summary&) = default;
  };

  std::string id;  // from its first record's time and place, so that it survives other rules
  CaseState state = CaseState::settled;
  CauseKind kind = CauseKind::unknown;
  bool is_partial = false;  // of a switch: many of its ports, not all
  Entity root;
  std::string change;               // of config: the change's id, "" where it never became known
  double confidence = 0;            // 0 to 1
  Timestamp opened;                 // first evidence
  std::optional<Timestamp> closed;  // last evidence, once all was well again
  std::vector<Member> members;      // ascending in time
  std::vector<Member> unexplained;  // at its parts and in its time, of kinds it does not cause
  // Of both lists, what they leave out; empty where all is listed.
  std::vector<Summary> members_summarised, unexplained_summarised;
  std::uint32_t suppressed = 0;  // parts, other than the root, that would have had a case each
  std::uint32_t silent = 0;      // parts that should have spoken and did not
  std::string maintenance;       // the window's id
  std::string split_from;        // id of the case that held this one's records before; "": none

  // Members, listed or not.
  std::uint64_t record_count() const {
    std::uint64_t out = members.size();
    for (const Summary& row : members_summarised) out += row.records;
    return out;
  }
};

// "ctsw:5", "rtsw:3--ctsw:7", "change:900012"; "unknown change" where none was seen.
std::string root_name(const Fabric& fabric, const Case& c);

}  // namespace weft::model
