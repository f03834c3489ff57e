// One run of the packet engine, and all that it found out.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "engine/jobs/failures.hpp"
#include "engine/packet/message.hpp"
#include "engine/packet/options.hpp"
#include "model/fabric/faults.hpp"
#include "route/router.hpp"

namespace weft::engine::packet {

using StateChange = model::FaultTimeline::Snapshot;

struct MessageEnd {
  Ps start = never;    // ready to be sent
  Ps arrived = never;  // last byte at the receiver
  Ps end = never;      // the sender holds the last acknowledgement
};

// As switches export them. Of the sending side of a directed link: all classes together, or one.
struct LinkCounters {
  std::uint64_t bytes = 0;    // sent, headers included
  std::uint64_t packets = 0;  // data
  std::uint64_t control = 0;  // ACK, NACK, CNP, CTS, credit, trimmed
  std::uint64_t ecn_marked = 0;
  std::uint64_t dropped = 0;  // of any kind: no room, no path, dead or lossy link
  std::uint64_t trimmed = 0;
  std::uint64_t pauses = 0;     // pause frames that stopped this link
  std::uint32_t queue_max = 0;  // bytes waiting
  Ps paused_ps = 0;
  friend bool operator==(const LinkCounters&, const LinkCounters&) = default;
};

// Bytes of data payload, everywhere and over the whole run.
struct Conservation {
  std::uint64_t sent = 0;  // with what was sent again
  std::uint64_t received = 0;
  std::uint64_t dropped = 0;  // trimmed ones too
  std::uint64_t in_flight = 0;
  bool holds() const { return sent == received + dropped + in_flight; }
};

// Bin 0 counts zeros, bin i values in [2^(i-1), 2^i).
using LogHistogram = std::array<std::uint64_t, 48>;

struct TierCounters {
  std::string tier;
  LogHistogram queue_bytes{};  // waiting at the egress when a packet came to it
  LogHistogram pause_ps{};     // length of each pause
  std::uint64_t queue_bytes_max = 0;
};

struct Series {
  std::string name;  // "queue edge:3->agg:1", "rate flow 7"
  std::string unit;  // "B", "B/s"
  std::vector<double> time_s, value;
};

// A circle of links each of which is paused because the next one is full.
struct Deadlock {
  Ps since = 0;  // when the last of them was paused: none has sent anything since
  std::vector<LinkId> circle;
};

// Who made whom wait by PFC. A switch pauses the link by which packets came in because they wait
// for a port; that port is at fault, of several the one with most bytes from that link. Where the
// port is paused itself, or has been since its queue was last empty, the pause is passed on, and
// stands below that of the port; else the port is a root: it is slower than what comes for it. A
// port that is paused later takes along what it has paused, from then on. The times of all ports of
// all trees are those of LinkCounters::paused_ps.
struct PauseTree {
  struct Port {
    std::uint32_t link = 0;    // beyond the fabric's: what a slow NIC drains into its host
    std::string name;          // "rtsw:0->nic:3"
    std::uint32_t depth = 0;   // 0: the root; what a port paused follows it, one deeper
    bool circle = false;       // a port below paused this one
    std::uint64_t pauses = 0;  // that ended here
    Ps paused_ps = 0;
    // Of a link that hosts send on: messages with something to send when a pause ended, and for how
    // long they had been stalled, since its begin or their own. With several classes: those of the
    // class that went on last.
    std::vector<std::pair<std::uint32_t, Ps>> held;
  };
  Ps paused_ps = 0;  // of all ports
  // The root first; of what a port paused, what waited longest with all below it.
  std::vector<Port> ports;
};

// Data packets that found no room although PFC makes their class lossless.
struct LosslessDrops {
  enum class Cause : std::uint8_t { small_headroom, full_port };
  std::uint8_t traffic_class = 0;
  Cause cause = Cause::small_headroom;
  // small_headroom: by which they came into the switch; full_port: by which they were to leave it.
  std::uint32_t link = 0;
  std::string port;  // its name
  std::uint64_t packets = 0;
};

struct Counters {
  std::uint64_t hops = 0;  // packets of any kind that crossed a link
  std::uint64_t events = 0;
  std::uint64_t pause_frames = 0;
  std::uint64_t ecn_marks = 0, cnps = 0;
  // Data packets dropped; of these, because a headroom was too small, and on dead or lossy links or
  // without a path.
  std::uint64_t drops = 0, drops_headroom = 0, drops_link = 0;
  // Lost on links too, but not data: ACK, NACK, CNP, CTS, credit, what trimming left.
  std::uint64_t drops_control = 0;
  std::uint64_t trims = 0, retransmissions = 0, timeouts = 0;
  // Most bytes that waited in one switch (or NIC with a receive_rate) at one time; 0 where memory
  // does not count (neither PFC nor buffers).
  std::uint64_t buffer_max = 0;
};

// What links carried in equal intervals of a run.
struct LinkLoads {
  Ps width = 0;                           // of an interval; the first begins with the run
  std::vector<std::uint32_t> links;       // numbers of LinkIds
  std::vector<std::vector<float>> bytes;  // by interval and position in `links`; shorter: then 0
  std::vector<float> total;               // of all intervals
};

struct PacketRunResult {
  std::vector<MessageEnd> messages;
  std::vector<LinkCounters> links;  // by LinkId
  // Where Options::class_counters asks for it and there are several classes: by LinkId, then class.
  // Pause frames are of none; `pauses` and `paused_ps` are those of the class alone.
  std::vector<LinkCounters> class_links;
  LinkLoads loads;                  // where Options::load_windows asks for it
  std::vector<TierCounters> tiers;  // of switches and NICs, by TierId
  std::vector<Series> series;
  std::vector<Deadlock> deadlocks;
  std::vector<PauseTree> pause_trees;  // where Options::pause_trees asks; the longest first
  std::vector<std::string> storms;     // links paused most of the time, in words
  std::vector<LosslessDrops> lossless_drops;
  Counters counters;
  Conservation conservation;
  Ps end = 0;             // of the last event
  bool complete = false;  // every message ended
  std::vector<std::string>
      unfinished;  // in words: which and how far; at most 100, then "... N more"
  std::string digest;
};

// Packet hops that the messages need at least, before they run: data packets and
// their acknowledgements, on the shortest paths in the router's state. What is sent again, grants
// and credits come on top. Cost: a path a connection.
std::uint64_t expected_hops(const MessageSet& set, route::Router& router, const Options& options);

// Says before a run of half a minute or more how many hops there are and how long that may take.
// `runs`: how often the messages are simulated; `advice` ends the line.
void announce_hops(const MessageSet& set, route::Router& router, const Options& options,
                   double runs, Progress& progress, std::string_view advice = {});

// Fails: Errc::value for options that fit neither each other nor the fabric (an MTU larger than a
// buffer, headrooms larger than the memory); Errc::unsupported for a balance the fabric has no use
// for. Deterministic for any number of threads. Cost: some 100 ns a hop; 70 bytes a message, 64
// a link (twice that in several partitions) and 24 a packet under way.
//
// `failures`, where given, is told what failures did to connections; times of the run count from
// `start` of its own.
Result<PacketRunResult> run_messages(const MessageSet& set, route::Router& router,
                                     std::span<const StateChange> changes, const Options& options,
                                     Progress& progress, FailureLog* failures = nullptr,
                                     Ps start = 0);

}  // namespace weft::engine::packet
