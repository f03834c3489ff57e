// What a responder answers, and what it refuses: decisions and counts, no sockets.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/timestamp.hpp"
#include "observe/probe/bounded_table.hpp"
#include "observe/probe/wire.hpp"
#include "port/probe_io.hpp"

namespace weft::observe::probe {

struct ResponderOptions {
  Key key;
  // Requests whose time of day differs by more from ours are refused; 0: none are.
  std::int64_t age_max_ns = 60 * ns_per_s;
  double source_rate = 1e6;         // answers a second and source address
  std::size_t flows_max = 65'536;   // remembered; 64 bytes each
  std::size_t sources_max = 4'096;  // remembered for their rate
  std::size_t askers_max = 4'096;   // sessions whose questions are remembered
  std::uint64_t salt = 0;           // of the tables; random in earnest
};

// One for each thing that can become of a datagram: their sum is what came.
enum class Verdict : std::uint8_t {
  answered,
  counted,    // of a one-way flow
  truncated,  // and the next four: as Fault
  oversized,
  foreign,
  damaged,
  forged,
  reply,     // someone else's answer, or our own sent back to us
  replayed,  // a sequence number that came before
  stale,     // older than age_max
  future,    // from a clock that is ahead by more than age_max
  limited    // above the source's rate
};
inline constexpr std::size_t verdict_count = 12;
std::string_view to_text(Verdict verdict);

// What is known of one flow: the numbers that came, exact for the last 64.
struct SequenceWindow {
  std::uint64_t highest = 0, count = 0, seen = 0;  // bit i of seen: highest - i
  std::uint32_t generation = 0;
  std::uint32_t damaged = 0;  // messages that came with a wrong checksum
  std::uint32_t address = 0;  // of the prober; from elsewhere its messages can only be replayed

  // False when the number came before, or is too old to tell.
  bool take(std::uint64_t sequence);
};

class Responder {
 public:
  explicit Responder(const ResponderOptions& options);

  // Judges one datagram. With Verdict::answered `reply` is complete but for `received` and
  // `responded`, which stamp() fills in as late as possible. Cost: about 100 ns.
  Verdict take(const port::Incoming& in, port::Instant now, Timestamp wall, Message& reply);
  // The time between arrival and `now` is exact whatever the time of day does.
  static void stamp(Message& reply, const port::Incoming& in, port::Instant now, Timestamp wall);

  std::uint64_t count(Verdict verdict) const { return counts_[static_cast<std::size_t>(verdict)]; }
  const Key& key() const { return options_.key; }
  std::uint64_t forgotten_flows() const { return flows_.evicted(); }

 private:
  struct FlowKey {
    std::uint64_t session = 0;
    std::uint32_t flow = 0;
    std::uint64_t hash() const { return mix64(session) ^ flow; }
    friend bool operator==(const FlowKey&, const FlowKey&) = default;
  };
  struct SourceKey {
    std::uint32_t address = 0;
    std::uint64_t hash() const { return address; }
    friend bool operator==(const SourceKey&, const SourceKey&) = default;
  };
  struct AskerKey {
    std::uint64_t session = 0;
    std::uint64_t hash() const { return mix64(session); }
    friend bool operator==(const AskerKey&, const AskerKey&) = default;
  };
  struct Bucket {
    double tokens = 0;
    port::Instant filled;
  };

  Verdict judge(const port::Incoming& in, port::Instant now, Timestamp wall, Message& message);
  bool within_rate(std::uint32_t address, port::Instant now);
  bool note(const port::Incoming& in, const Message& request, Message& reply);
  void note_damage(const port::Incoming& in, const Message& request);
  bool note_question(const Message& question, Message& reply);

  ResponderOptions options_;
  BoundedTable<FlowKey, SequenceWindow> flows_;
  BoundedTable<SourceKey, Bucket> sources_;
  BoundedTable<AskerKey, SequenceWindow> askers_;  // by Message::probe
  std::uint32_t generation_ = 0;
  std::array<std::uint64_t, verdict_count> counts_{};
};

// "weft_respond_datagrams_total{verdict="forged"} 3" and so on, in the text format of Prometheus.
std::string to_prometheus(const Responder& responder, std::uint64_t overflows);

}  // namespace weft::observe::probe
