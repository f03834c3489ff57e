// What the packet engine can be told: wire format, buffers, PFC, ECN, transport, load balancing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace weft::engine::packet {

// Picoseconds since the start of the run; the engine's unit of time.
using Ps = std::uint64_t;
inline constexpr Ps never = UINT64_MAX;
constexpr double seconds(Ps t) { return static_cast<double>(t) * 1e-12; }

// Every packet and pause frame is one of these classes; a link serves them as Scheduler says.
inline constexpr std::uint32_t class_count_max = 8;

// The size of a message's last packet. `full`: as large as the others, where there are others (what
// htsim does; at most one packet time too long). `exact`: the bytes that are left.
enum class LastPacket : std::uint8_t { full, exact };

struct WireFormat {
  Bytes mtu{4096};    // payload of a full data packet
  Bytes header{64};   // added to the payload of every data packet
  Bytes control{64};  // a whole ACK, NACK, CNP, CTS, credit, or trimmed packet
  Bytes pause{64};    // a pause frame
  LastPacket last_packet = LastPacket::full;
};

// When an ingress (port and class) of a switch pauses its sender, in bytes that wait in the switch
// and came in there. `fixed`: at `xoff`, resumed at `xon`. `dynamic`: at alpha times what is left
// of the shared buffer, resumed `resume_offset` below that.
struct Pfc {
  bool on = false;
  enum class Threshold : std::uint8_t { fixed, dynamic } threshold = Threshold::dynamic;
  Bytes xoff{62'400}, xon{49'920};
  double alpha = 0.125;
  Bytes resume_offset{8'320};
  // What an ingress may take beyond its threshold; -1: by the rule, for its link (headroom_of()).
  Bytes headroom{-1};
  // `standard`: all that its link can still send (IEEE 802.1Qbb); `simulator`: HPCC's rate x delay
  // x 3, which is less where the delay is short.
  enum class Rule : std::uint8_t { standard, simulator } headroom_rule = Rule::standard;
  double headroom_factor = 1;  // of the headroom above; below 1 makes drops possible
  Duration response{0};        // from the arrival of a frame until its receiver obeys
  // What an ingress may hold without taking of the shared memory; `dynamic` only.
  Bytes reserve{0};
};

// Marks data packets that find more than kmin waiting at their egress (RED on the present queue).
// Thresholds of -1 follow the link's rate: 100 KB and 400 KB at 25 Gb/s (papers: HPCC's simulator).
struct Ecn {
  bool on = false;
  Bytes kmin{-1}, kmax{-1};
  double pmax = 0.2;
};

// Packet memory of a switch. 0: as much as there is.
struct Buffer {
  Bytes shared{0};
  Bytes per_port{0};  // an egress queue holds no more; drops (or trims) beyond
};

// What happens to a data packet of a lossy class that finds no room.
enum class Overflow : std::uint8_t { drop, trim };

enum class Reliability : std::uint8_t { goback_n, selective };
enum class Congestion : std::uint8_t { none, dcqcn, hpcc, nscc };
// Who may start: everybody; who holds pull credit (EQDS); who got a CTS for a channel slot (Meta).
enum class Admission : std::uint8_t { open, pull, cts };

struct DcqcnOptions {
  enum class Preset : std::uint8_t { paper, reference } preset = Preset::reference;
  // 0 or negative: as the preset has it for the link's rate.
  Duration alpha_timer{0}, decrease_timer{0}, increase_timer{0}, cnp_interval{0};
  double gain = 0;
  Rate additive{0}, hyper{0}, minimum{0};
  Bytes byte_counter{-1};
};

struct HpccOptions {
  double eta = 0.95;
  std::uint32_t max_stage = 5;
  Bytes additive{-1};  // W_AI; -1: W_init (1 - eta) / 100
};

struct NsccOptions {
  Duration target_delay{0};  // queueing delay aimed at; 0: by the longest round trip
};

inline constexpr std::uint32_t ack_every_max = 1'000;
inline constexpr std::uint32_t channel_count_max = 64;
struct CtsOptions {
  Bytes channel_buffer{Bytes{1 << 20}};
  std::uint32_t channels = 4;  // CTS slots per connection, at most channel_count_max
  enum class Queue : std::uint8_t { data, high } queue = Queue::high;
  Duration proxy_delay{0};  // receiver, from data drained to the next CTS
};

// How packets of one connection spread over paths. `path`: the one path that the router gives.
// `spray`: a new entropy for every packet. `reps`: entropies whose ACKs came back unmarked are used
// again. `flowlet`: a new entropy after a gap, to the port with the least queue at the first
// switch. `adaptive`: the next hop with the least queue, at every switch. `multipath`: a few
// disjoint paths, each message on the one with the fewest bytes outstanding (HPN). `ugal`: at the
// first switch, the minimal or a Valiant path, by queue x hops.
enum class Balance : std::uint8_t { path, spray, reps, flowlet, adaptive, multipath, ugal };

// Whether each packet goes its own way, from the ports of its NIC on.
constexpr bool is_by_packet(Balance balance) {
  return balance == Balance::spray || balance == Balance::reps || balance == Balance::adaptive;
}

struct Scheduler {
  // Bytes that a class may send in its turn; 0: strict, above all classes with a weight and above
  // strict classes of a lower number. One entry per class; one class by default.
  std::vector<std::uint32_t> weights{1};
  std::uint32_t data_class = 0;
  std::uint32_t ack_class = 0;
  std::uint32_t control_class = 0;  // CNP, CTS, credit, NACK, trimmed
};

struct SeriesOptions {
  Duration interval{0};            // 0: no series
  std::vector<std::string> links;  // queue depth and rate of these
  std::vector<std::string> flows;  // rate of these messages, by number
  // What to call them, each; without: "message 7".
  std::vector<std::string> flow_names{};
  std::size_t samples_max = 100'000;  // then every other sample is dropped and the interval doubles
};

struct Options {
  std::string transport = "roce";  // name under which the settings below were chosen
  WireFormat wire;
  Pfc pfc;
  Ecn ecn;
  std::map<std::string, Buffer> buffers;  // by switch role; "" for all others
  // Without `buffers`: an egress queue holds what a link sends in the longest round trip.
  bool round_trip_queues = false;
  Overflow overflow = Overflow::drop;
  Reliability reliability = Reliability::goback_n;
  Congestion congestion = Congestion::none;
  Admission admission = Admission::open;
  Balance balance = Balance::path;
  Bytes window{0};              // in flight per connection; 0: without bound (nscc, hpcc: the BDP)
  std::uint32_t entropies = 0;  // of spray and reps; 0: as many as there are (2^16)
  std::uint32_t paths = 4;      // of multipath
  Duration flowlet_gap{Duration{100'000'000}};
  Duration ack_timeout{Duration{16'777'216'000}};  // 4.096 us x 2^12; without progress: send again
  // Selective repeat: a packet is lost when so many that were sent after it on its path have been
  // acknowledged.
  std::uint32_t retransmit_gap = 1;
  // ... and one that nothing told of is sent again so many round trips after it was
  // sent, and not before `retransmit_least`; twice as long after each time.
  std::uint32_t retransmit_round_trips = 3;
  Duration retransmit_least{Duration{25'000'000}};
  // A receiver answers when so many packets have come since its last answer, so long after the
  // first of them, or when something is urgent (Shard::answer). 0 packets: without bound; 1, or no
  // delay: each one.
  std::uint32_t ack_every = 0;
  Duration ack_delay{0};
  bool gathers_acks() const { return ack_delay.ps > 0 && ack_every != 1; }
  double message_rate = 0;  // messages per second that a NIC can start; 0: without bound
  double receive_rate = 0;  // share of its link that every NIC can drain; 0: all
  DcqcnOptions dcqcn;
  HpccOptions hpcc;
  NsccOptions nscc;
  CtsOptions cts;
  Scheduler scheduler;
  SeriesOptions series;
  bool pause_trees = false;     // PacketRunResult::pause_trees
  bool class_counters = false;  // PacketRunResult::class_links
  // PacketRunResult::loads has at most so many intervals, and at least half as many; 0: none.
  std::size_t load_windows = 0;
  Ps end = never;             // stop then
  std::uint32_t threads = 0;  // 0: one
  std::uint64_t seed = 1;
  std::uint32_t first_psn = 0;  // of every connection; real queue pairs begin anywhere
};

// Bytes that may still come in after a pause was decided: what is on the wire both ways, a full
// packet that has just begun at each end, the pause frame itself, and what the other end still
// sends before it obeys.
Bytes headroom_for(Rate rate, Duration latency, const WireFormat& wire, Duration response = {});

// The memory that options.pfc keeps for each ingress at the end of such a link.
Bytes headroom_of(const Options& options, Rate rate, Duration latency);

}  // namespace weft::engine::packet
