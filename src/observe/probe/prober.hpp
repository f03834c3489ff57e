// Sends probes at an even pace, and says what became of each: a state machine over a ProbeIo.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/timestamp.hpp"
#include "observe/probe/flow.hpp"
#include "observe/probe/in_flight_table.hpp"
#include "observe/probe/one_way.hpp"
#include "observe/probe/wire.hpp"
#include "port/probe_io.hpp"

namespace weft::observe::probe {

enum class Direction : std::uint8_t {
  two_way,  // each probe is answered
  one_way   // probes are counted, and the counts asked for
};

inline constexpr std::int64_t ns_per_ms = 1'000'000;

struct ProberOptions {
  Key key;
  std::uint64_t session = 0;
  Direction direction = Direction::two_way;
  double rate = 1000;            // probes a second, over all flows; 0: as fast as answers come
  std::uint64_t count = 0;       // of each flow; 0: no bound
  std::int64_t duration_ns = 0;  // of sending; 0: no bound
  std::int64_t timeout_ns = 100 * ns_per_ms;  // an answer that took longer is late,
  std::int64_t late_ns = ns_per_s;            // one that came so much later still is lost
  std::int64_t window_ns = 10 * ns_per_s;     // of a report; at least timeout + late
  std::uint32_t in_flight_max = 1024;         // with rate 0
  std::uint32_t stamp_every = 1;              // each so many-th probe gets a send stamp; RTTs are
                                              // those of stamped probes
  // Own ports without a flow, by which one-way counts are asked for where a flow's own way is dead.
  std::vector<std::uint32_t> spare_ports;
};

// What happened around the probes.
struct ProberCounts {
  std::uint64_t truncated = 0, oversized = 0, foreign = 0, forged = 0;  // as Fault
  std::uint64_t damaged =
      0;  // answers, of one-way probes to questions; the flow's counts have them too
  std::uint64_t requests = 0;        // that are no answers
  std::uint64_t future = 0;          // answers to what was not sent yet
  std::uint64_t stale = 0;           // answers that came after their probe was given up
  std::uint64_t misplaced = 0;       // from another host, session or flow than the probe's
  std::uint64_t implausible = 0;     // with times that cannot be
  std::uint64_t skipped = 0;         // slots of the schedule that we came too late for
  std::uint64_t dropped = 0;         // answers that our own full queues refused
  std::int64_t lateness_max_ns = 0;  // by which our own timers were late
};

struct WindowReport {
  Timestamp start;
  std::int64_t length_ns = 0;
  std::vector<FlowCounts> flows;  // by flow index
  // Our own host was too busy to say what was lost: its queues overflowed or it slept too long.
  enum class Self : std::uint8_t { well, starved } self = Self::well;
  std::uint64_t dropped = 0;
  std::int64_t lateness_max_ns = 0;
};

class Prober {
 public:
  // `io` and `clock` must outlive the prober; ports of flows and spare ports are ports of `io`.
  // There is at least one flow. Memory: 5 KB a flow, 40 bytes a probe of the last timeout + late.
  Prober(const ProberOptions& options, std::vector<Flow> flows, port::ProbeIo& io,
         port::Clock& clock);
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  // Takes what came, closes what is over, and sends what is due. Bounded work.
  void step();
  // When step() has something to do, and whether something that comes before is a reason too: with
  // stamps by the system it is not, as long as more is to be sent soon.
  port::Instant wake_at() const { return wake_at_; }
  port::Wake wake() const;
  // Sends no more; answers are still waited for.
  void stop();
  bool done() const { return phase_ == Phase::over; }

  // Windows in order, each once, when all of its probes are settled.
  std::optional<WindowReport> take_report();
  const ProberCounts& counts() const { return counts_; }
  std::uint64_t sent() const { return sent_; }
  const std::vector<Flow>& flows() const { return flows_; }

 private:
  enum class Phase : std::uint8_t { sending, settling, over };
  // Two windows are open at most: that of sending and the one before, whose probes settle.
  struct FlowState {
    std::uint64_t sequence = 0;
    std::array<FlowCounts, 2> windows;
    // As the responder said last: numbers up to `known` less those that it has. What this grows by
    // waits in `pending` until a window is closed.
    std::uint64_t known = 0;
    std::int64_t missing = 0, pending = 0;
    std::uint32_t damaged = 0;          // that came damaged, as it said last
    std::uint64_t damaged_pending = 0;  // what that grew by, as `pending`
    std::uint32_t generation = 0, overflows = 0;
    std::uint64_t lost_last = 0;     // highest sequence number that was given up
    bool direction_unknown = false;  // since the responder forgot the flow
    // Losses of windows of unknown direction, of which the responder tells with its next answer.
    std::int64_t untold = 0;
  };
  struct Port {
    std::vector<std::uint32_t> flows;
    std::size_t next = 0;
    std::uint64_t sent = 0;
  };
  struct Slot {
    Timestamp start;
    std::uint64_t dropped_before = 0;
    std::int64_t lateness_max_ns = 0;
    std::uint64_t tried = 0;  // probes, also those that the system refused
  };

  FlowCounts& counts_of(FlowState& flow, port::Instant sent) {
    return flow.windows[window_of(sent) % 2];
  }
  std::uint64_t window_of(port::Instant when) const;
  port::Instant window_end(std::uint64_t window) const;
  bool may_send(std::uint32_t flow) const;
  // How long after the end something may still come that counts.
  std::int64_t patience_ns() const { return options_.timeout_ns + options_.late_ns + ns_per_s; }

  void take_stamps();
  bool take_answers();
  void take_answer(const port::Incoming& in);
  void take_damaged(const port::Incoming& in, const Message& reply);
  void take_counts(const port::Incoming& in, const Message& reply);
  bool fits(const port::Incoming& in, const Message& reply, const LedgerEntry& entry) const;
  void note_round_trip(const port::Incoming& in, const Message& reply, const LedgerEntry& entry);
  void note_responder(const Message& reply, FlowState& flow, FlowCounts& counts);
  void expire(port::Instant drained);

  void send_due(port::Instant now);
  std::size_t due_now(port::Instant now);
  std::size_t send_batch(std::size_t due);
  void fill_batch(Port& from, std::size_t due, port::Instant now);
  void commit(std::size_t sent, port::Instant now);
  void send_questions(port::Instant now);
  Port* next_port();

  void roll_window(port::Instant now);
  void close_windows(port::Instant now);
  void close_window(port::Instant end);
  static void finish_counts(FlowState& flow, FlowCounts& counts);
  bool settled(port::Instant now) const;
  void plan_wake(port::Instant now);

  ProberOptions options_;
  std::vector<Flow> flows_;
  port::ProbeIo& io_;
  port::Clock& clock_;
  port::Instant start_;
  Phase phase_ = Phase::sending;
  std::vector<FlowState> states_;
  std::vector<Port> ports_;
  std::size_t port_at_ = 0;
  InFlightTable ledger_;
  double slots_ = 0;          // of the schedule, used or skipped
  std::uint64_t window_ = 0;  // of sending
  std::uint64_t closed_ = 0;  // windows reported
  std::array<Slot, 2> slot_;
  std::vector<WindowReport> reports_;
  ProberCounts counts_;
  port::Instant wake_at_, stopped_at_, sent_at_;
  std::uint64_t sent_ = 0;
  bool wake_is_due_ = false;  // a probe, rather than house-keeping
  std::optional<OneWay> one_way_;
  std::vector<port::Incoming> incoming_;
  std::vector<WireBytes> wires_;
  std::vector<port::Outgoing> outgoing_;
  std::vector<LedgerEntry> batch_;
};

}  // namespace weft::observe::probe
