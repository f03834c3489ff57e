// Which way flows go, hop by hop, and from which hop on they lose: probes whose time to live ends
// on the way.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "observe/probe/prober.hpp"
#include "port/probe_io.hpp"

namespace weft::observe::probe {

inline constexpr std::uint8_t sweep_ttl_max = 32;
inline constexpr std::uint32_t sweep_rounds_max = 16;

struct SweepOptions {
  Key key;
  std::uint64_t session = 0;
  std::uint8_t ttl_max = 16;        // at most sweep_ttl_max
  std::uint32_t rounds = 10;        // probes for each flow and hop; at most sweep_rounds_max
  double rate = 1000;               // probes a second in all
  std::int64_t wait_ns = ns_per_s;  // for answers, after the last probe
};

struct Hop {
  std::uint32_t address = 0;  // that complained first; 0: none did
  std::uint32_t sent = 0, answered = 0;
  std::uint32_t others = 0;  // answers from another address
  double loss() const { return sent == 0 ? 0 : 1 - static_cast<double>(answered) / sent; }
};

struct SweptFlow {
  std::vector<Hop> hops;  // by time to live, from 1, up to the target
  bool reached = false;   // the last of hops is the target
  // The first hop (from 1) from which on probes get lost, all the way to the target: its link, or
  // with hops that never answer one of those before it. A hop that answers seldom while farther
  // ones do not lose is only slow to complain. 0: none.
  std::uint32_t suspect = 0;
};

// Time to live and round are written in the length of the datagram, so that a router that quotes
// no more than the UDP header tells enough.
std::size_t sweep_bytes(std::uint8_t ttl, std::uint32_t round);
struct SweepMark {
  std::uint8_t ttl;
  std::uint32_t round;
};
std::optional<SweepMark> sweep_mark(std::uint16_t udp_length);

class Sweep {
 public:
  // `io` hears complaints; `source_ports` are its ports by index. No two flows have the same port
  // and target.
  Sweep(const SweepOptions& options, std::vector<Flow> flows,
        std::span<const std::uint16_t> source_ports, port::ProbeIo& io, port::Clock& clock);

  void step();
  port::Instant wake_at() const { return wake_at_; }
  void stop();
  bool done() const { return done_; }
  // By flow; complete when done.
  std::vector<SweptFlow> results() const;

 private:
  struct State {
    std::vector<Hop> hops;                       // ttl_max of them
    std::vector<std::uint32_t> rounds_answered;  // a bit a round, by hop
    std::uint8_t reached = UINT8_MAX;  // least time to live with which the target answered
    std::uint64_t sequence = 0;
  };
  void take_answers();
  void take_complaints();
  void note(std::uint32_t flow, SweepMark mark, std::uint32_t from, bool is_target);
  bool send_next(port::Instant now);
  void send(std::uint32_t flow, SweepMark mark);

  SweepOptions options_;
  std::vector<Flow> flows_;
  port::ProbeIo& io_;
  port::Clock& clock_;
  std::vector<State> states_;
  std::map<std::tuple<std::uint16_t, port::Endpoint>, std::uint32_t> flow_of_;
  std::uint64_t next_ = 0;  // of (round, ttl, flow)
  port::Instant next_at_, end_, wake_at_;
  bool sent_all_ = false, done_ = false;
  std::vector<port::Incoming> incoming_;
};

}  // namespace weft::observe::probe
