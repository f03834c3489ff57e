// What a fault is before it touches anything: its kind, its target, its options.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/lab/plan.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::adapt::lab {

// Those kinds of the catalogue (model/fabric/fault_catalogue.hpp) that a lab can make.
enum class FaultKind : std::uint8_t {
  link_lossy,      // frames vanish, no counter of the interface shows it
  switch_lossy,    // the same on all of its ports
  dead_link,       // nothing passes either way, the carrier stays
  ecn_mark,        // ECT packets become CE
  delay,           // a fixed time more
  jitter,          // a random time more, order kept
  corrupt,         // one bit of a frame flips
  reorder,         // a frame is overtaken by those behind it
  duplicate,       // a frame arrives twice
  link_degraded,   // a slower link, with a queue
  link_down,       // carrier lost at both ends
  port_flap,       // the same again and again
  blackhole,       // a route of a switch that eats what it should forward
  daemon_kill,     // SIGKILL
  daemon_stop,     // SIGTERM: it says good-bye to its neighbours
  daemon_hang,     // SIGSTOP
  switch_down,     // all interfaces down, daemons killed
  icmp_ratelimit,  // a node answers traceroute sparingly
};
inline constexpr std::size_t fault_kind_count = 18;
std::string_view to_text(FaultKind kind);
Result<FaultKind> parse_fault_kind(const Token& token);

// Flows whose hash falls into `hit` of `of` buckets.
struct TupleBucket {
  std::uint32_t hit = 0, of = 1;
  friend bool operator==(const TupleBucket&, const TupleBucket&) = default;
};

// Fields that the kind does not use keep their defaults.
struct FaultSpec {
  FaultKind kind = FaultKind::link_lossy;
  std::string target;                  // as written: node, cable or direction
  double share = 1;                    // of frames that are hit, 1e-6 to 1
  std::optional<TupleBucket> bucket;   // only these TCP and UDP flows
  std::optional<std::uint8_t> dscp;    // only this class
  Duration delay{};                    // delay; how long a reordered frame is held back
  Duration jitter{};                   // uniform in [0, jitter]
  Rate rate{};                         // of a slowed link
  Bytes queue{};                       // its bound
  std::optional<Bytes> ecn_threshold;  // its queue above which ECT packets are marked
  std::string destination;             // blackhole: "10.0.0.5/32", or a host or NIC of the fabric
  std::string daemon = "bgpd";
  Duration period{};           // port_flap: one down and one up
  std::uint32_t count = 0;     // port_flap: how many
  std::uint32_t interval = 0;  // icmp_ratelimit: ms between answers to one asker
  std::uint64_t seed = 1;      // of random choices and of the bucket's hash
  friend bool operator==(const FaultSpec&, const FaultSpec&) = default;
};

// An option as the command line gives it: {"rate", "1%"}.
struct FaultOption {
  std::string name, value;
};
struct FaultOptionHelp {
  std::string_view name, help;
};
// Every option that some kind takes, for a command line to declare.
std::span<const FaultOptionHelp> fault_option_help();
// What `kind` does, on what it works and which options it takes, in one line.
std::string describe(FaultKind kind);

// Reads kind, target and options; checks everything that needs no fabric.
// Fails: every error found: unknown kinds and options (with the nearest), options twice, missing
// ones, values out of bounds (shares 1e-6 to 1, delays to 10 s, 10,000 flaps of at least 10 ms).
Result<FaultSpec> parse_fault(std::string_view kind, std::string_view target,
                              std::span<const FaultOption> options);

// The options again, as parse_fault reads them.
std::vector<FaultOption> options_of(const FaultSpec& spec);

// One interface that a fault works on.
struct FaultSite {
  EndId end;
  std::string netns, interface;
};
// A target, found in a lab.
struct FaultTarget {
  std::vector<std::string> entities;  // names as the fabric writes them
  std::vector<FaultSite> sites;       // senders of the directions; both ends of a cable
  LabNodeId node;                     // of kinds that strike a node
  Ipv4 destination = 0;               // of a black hole
  std::uint8_t prefix_length = 32;
};
// Fails: Errc::unknown for what the lab does not have, Errc::value where the kind does not work on
// such a target (it says on what it does).
Result<FaultTarget> find_target(const model::Fabric& fabric, const LabPlan& plan,
                                const FaultSpec& spec);

}  // namespace weft::adapt::lab
