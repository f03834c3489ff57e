// What transports and load balancers keep per connection, beyond Sender and Receiver. Columns that
// a run does not need stay empty. Internal to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/hash.hpp"
#include "engine/packet/packet_memory.hpp"
#include "route/fib.hpp"
#include "transport/dcqcn.hpp"
#include "transport/entropy.hpp"
#include "transport/hpcc.hpp"
#include "transport/nscc.hpp"
#include "transport/pull.hpp"
#include "transport/sequence.hpp"

namespace weft::engine::packet {

// The two NICs of a connection, for next hops by table, or on the path to which its packets keep.
// `src` is none for one inside a host, which keeps to a path; `dst` is its own end then.
struct Ends {
  std::uint32_t src = 0, dst = 0;  // nodes
  std::uint32_t src_target = 0, dst_target = 0;
};

// Several paths of one connection among which somebody chooses. Into World::paths.
struct Candidates {
  std::uint32_t first = 0;  // into Protocols::candidate_paths
  std::uint16_t minimal = 0, detours = 0;
};

struct Protocols {
  // Next hops by table and entropy.
  std::optional<route::Fib> fib;
  std::vector<Ends> ends;
  std::uint32_t entropies = transport::entropy_count_max;
  std::vector<std::uint32_t> drawn;  // entropies so far
  // Where packets take the ports of a NIC in turn: the entropy of the connection's next one, drawn
  // when it takes its place at the port; UINT32_MAX: none yet. Empty where each NIC has one port.
  std::vector<std::uint32_t> next_entropy;
  std::vector<transport::EntropyCache> caches;
  std::vector<transport::FlowletEntry> flowlets;
  std::vector<Candidates> candidates;
  std::vector<std::uint32_t> candidate_paths;

  // Selective repeat. A connection's words: what came, then what is acknowledged, then lost.
  std::uint32_t window_words = 0;
  LargeArray<std::uint64_t> words;
  std::vector<transport::SelectiveSender> selective_senders;
  std::vector<transport::SelectiveReceiver> selective_receivers;
  std::vector<std::uint32_t> in_flight;    // packets, lost ones not counted
  std::vector<std::uint16_t> round_trips;  // measured last, in steps of 2^17 ps; 0: none yet
  Ps routes_since = 0;                     // tables are of this time
  // Where acknowledgements are gathered, each tells how many packets have come, and this which: the
  // receiver writes, the sender reads what an acknowledgement has told of. A window of packets, as
  // no more can have come of which the sender has not heard.
  struct Came {
    std::uint32_t psn, path;
  };
  LargeArray<Came> came;               // by connection and number
  std::vector<std::uint32_t> heard;    // of how many senders know
  std::vector<std::uint32_t> counted;  // by receivers

  // Congestion control; parameters by `profile`, as rates and round trips differ.
  std::vector<std::uint8_t> profile;
  std::vector<transport::DcqcnParameters> dcqcn_profiles;
  std::vector<transport::DcqcnSender> dcqcn_senders;
  std::vector<transport::DcqcnReceiver> dcqcn_receivers;
  std::vector<transport::NsccParameters> nscc_profiles;
  std::vector<transport::NsccSender> nscc_senders;
  std::vector<transport::HpccParameters> hpcc_profiles;
  std::vector<transport::HpccSender> hpcc_senders;
  std::uint32_t int_window = 0;             // packets of which telemetry is kept, a power of two
  LargeArray<transport::IntHop> telemetry;  // by connection, packet, hop

  // Admission.
  std::vector<transport::PullEntry> pull_entries;
  std::vector<transport::PullSender> pull_senders;
  std::vector<transport::PullPacer> pull_pacers;         // by node, as what follows
  std::vector<transport::PullParameters> pull_profiles;  // of NICs: how fast they give credit
  std::vector<transport::CreditRate> credit_rates;       // empty: the full rate
  std::vector<std::uint8_t> pull_armed;                  // by node: an event will come
  std::vector<std::uint32_t> clear_slots;                // CTS slots that the sender may fill
  std::vector<std::uint32_t> slotted;  // chunks that begin before this packet have had their slot
  std::uint32_t chunk_packets = 0;

  // The links by which a connection's packets may leave their NIC.
  std::span<const LinkId> first_links(std::uint32_t connection) const {
    const Ends& at = ends[connection];
    if (at.dst_target == route::Fib::no_target) return {};
    return fib->next(NodeId(at.src), at.dst_target);
  }
  // ... of those the one to which a connection keeps that does not spread.
  static LinkId kept_link(std::span<const LinkId> links, std::uint32_t connection) {
    return links[mix64(connection) % links.size()];
  }
  // ... and the one of a packet.
  LinkId first_link(std::span<const LinkId> links, std::uint32_t connection,
                    std::uint32_t path) const {
    if (next_entropy.empty()) return kept_link(links, connection);
    const auto count = static_cast<std::uint32_t>(links.size());
    return links[transport::port_of(static_cast<transport::Entropy>(path & 0xFFFF), count)];
  }

  bool selective() const { return window_words > 0; }
  bool by_table(std::uint32_t connection) const {
    return fib.has_value() && ends[connection].src != UINT32_MAX;
  }
  std::span<std::uint64_t> received_words(std::uint32_t connection) {
    return {&words[std::size_t{3} * window_words * connection], window_words};
  }
  std::span<std::uint64_t> sent_words(std::uint32_t connection) {
    return {&words[std::size_t{3} * window_words * connection + window_words],
            std::size_t{2} * window_words};
  }
  Came& came_of(std::uint32_t connection, std::uint32_t number) {
    const std::uint32_t window = window_words * 64;
    return came[std::size_t{connection} * window + (number & (window - 1))];
  }
  transport::IntHop* telemetry_of(std::uint32_t connection, std::uint32_t psn) {
    const std::size_t row = std::size_t{connection} * int_window + (psn & (int_window - 1));
    return &telemetry[row * transport::int_hop_max];
  }
};

}  // namespace weft::engine::packet
