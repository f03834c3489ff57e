// The one table of faults: scenarios, the lab, storms, rehearsals, triage and SLI take the names of
// kinds from it, and the command `weft faults` prints it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/fabric/state.hpp"

namespace weft::model {

enum class FaultKind : std::uint8_t {
  link_down,
  dead_link,
  link_lossy,
  link_degraded,
  link_drain,
  port_flap,
  optic,
  corrupt,
  delay,
  jitter,
  reorder,
  duplicate,
  ecn_mark,
  switch_down,
  switch_lossy,
  switch_degraded,
  switch_drain,
  switch_part,
  line_card,
  platform,
  control_plane,
  daemon_kill,
  daemon_stop,
  daemon_hang,
  blackhole,
  icmp_ratelimit,
  misconfiguration,
  congestion,
  nic_down,
  nic_lossy,
  nic_degraded,
  nic_slow_receiver,
  nic_drain,
  host_down,
  host_slow,
  gpu_slow,
  rack,
  power,
  zone,
};
inline constexpr std::size_t fault_kind_count = 39;

// Who can make a fault.
enum Maker : std::uint8_t {
  by_none = 0,
  by_scenario = 1,
  by_lab = 2,
  by_storm = 4,
  by_rehearsal = 8,
  by_world = 16,  // the simulated network of `weft serve --world`
};

// What a fault does to the fabric's State.
struct FaultEffect {
  // cables: both directions of what joins a node to the network; inward: what comes to it.
  enum class Spread : std::uint8_t { node, with_parts, cables, inward };
  enum class Measure : std::uint8_t { none, factor, loss, slowdown };

  Health health = Health::up;
  Measure measure = Measure::none;  // and by which key its size is given
  Spread spread = Spread::node;
  friend bool operator==(const FaultEffect&, const FaultEffect&) = default;
};

struct FaultEntry {
  FaultKind kind;
  std::string_view name;
  std::string_view on;    // link, switch, card, nic, host, gpu, rack or zone; several: by blanks
  std::uint8_t makers;    // of Maker
  FaultEffect effect;     // for kinds of a scenario
  std::string_view does;  // in words
  std::string_view says;  // kinds of records, by blanks, in the order in which they come; "": none
  std::string_view when;  // and how long after the start
  std::string_view lab;   // how the lab makes it; "": it does not
  // Kinds of the case that it should end in, by blanks, where it depends on the part; "": no case.
  std::string_view cause;
  double per_month = 0;     // faults of one part in 30 days, as a rehearsal has it; 0: none known
  std::string_view source;  // of that rate
};

// In the order of the enumeration.
std::span<const FaultEntry, fault_kind_count> fault_catalogue();
const FaultEntry& fault_entry(FaultKind kind);
inline std::string_view to_text(FaultKind kind) { return fault_entry(kind).name; }

// Names of what one of `makers` makes, in the catalogue's order; by_none: all.
std::vector<std::string> fault_names(std::uint8_t makers);
// Kinds of cases that some fault ends in.
std::vector<std::string_view> fault_causes();

// The entry of that name. Fails: Errc::unknown; for a name that a kind had once it says the one it
// has now, else the nearest.
Result<FaultKind> find_fault(const Token& token);
// ` (did you mean "link_lossy"?)` of a name that is none of `known`: the present name of a kind
// that was renamed, else the nearest; "" where nothing is near.
std::string fault_hint(std::string_view name, std::span<const std::string> known);

}  // namespace weft::model
