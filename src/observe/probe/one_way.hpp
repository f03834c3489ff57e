// The books of one-way probes: the numbers they carry, whom to ask for the counts and on which
// flow, and what the answers say was lost. No I/O.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "observe/probe/flow.hpp"
#include "observe/probe/wire.hpp"
#include "port/probe_io.hpp"

namespace weft::observe::probe {

// On the wire a flow has two numbers, which windows use in turns: while the counts of one window
// are asked for, only the other number is sent on. The counts stay, can be asked for at any
// time and on any flow, and no loss of one window is ever booked into another.
//
// A question first travels on the flow that it is about, and again, while some of the flow's probes
// are missing, by other ways: another source port, source address or class. All probes of a flow
// may be lost without its responder being out of reach, and then the responder says so.
class OneWay {
 public:
  // What probe and question carry of a flow.
  struct Mark {
    std::uint32_t number = 0;
    std::uint64_t sequence = 0;
  };
  // What the network sees of a question, but for its target.
  struct Way {
    std::uint32_t port = 0;
    std::uint32_t local = 0;
    std::uint8_t dscp = 0;
    friend constexpr auto operator<=>(const Way&, const Way&) = default;
  };
  struct Question {
    std::uint64_t id = 0;
    std::uint32_t flow = 0;
    Mark mark;
    Way way;
  };

  // Questions about a window are asked in rounds during `settle_ns` after its end, `timeout_ns`
  // apart or more. `spare_ports`: own ports without a flow, as further ways.
  OneWay(std::span<const Flow> flows, std::span<const std::uint32_t> spare_ports,
         std::int64_t settle_ns, std::int64_t timeout_ns);

  // A window begins that uses the slot (0 or 1). Cost, as of the next four: O(flows).
  void open(std::size_t slot);
  // Its sending is over: from now on it is asked about.
  void ask(std::size_t slot, port::Instant now);
  // It is asked about no more.
  void close(std::size_t slot);

  Mark next_mark(std::uint32_t flow, std::size_t slot);
  // The probe was not sent after all. Last taken, first returned.
  void return_mark(std::uint32_t flow, std::size_t slot);

  // What is due now, at most port::batch_max.
  const std::vector<Question>& questions(port::Instant now);

  enum class Taken : std::uint8_t { good, duplicate, stale, future, misplaced };
  struct Answer {
    Taken taken = Taken::misplaced;
    std::uint32_t flow = 0;
    std::size_t slot = 0;
    std::uint64_t overflows = 0;  // of the responder's queue since its last answer
  };
  // An answer of our session.
  Answer take(const port::Incoming& in, const Message& reply);

  // Whether no answer can tell anything more about the window, or the time for them is over.
  bool settled(std::size_t slot, port::Instant now) const;
  // Fills in what became of counts.sent probes; once for each window, before close().
  void finish(std::uint32_t flow, std::size_t slot, FlowCounts& counts);

 private:
  // One of a flow's two numbers. Of `known`: all of the windows that used it before.
  struct Stream {
    std::uint32_t number = 0;
    std::uint64_t sequence = 0, known_sequence = 0;
    std::uint64_t count = 0, known_count = 0;      // that came, as the responder said
    std::uint32_t damaged = 0, known_damaged = 0;  // that came with a wrong checksum
    std::uint32_t generation = 0, known_generation = 0;
    bool answered = false;
    bool lost_track = false;  // no `known` is to be had any more

    bool forgotten() const;
    std::uint64_t newly_damaged() const { return damaged - known_damaged; }
    bool complete() const;  // nothing that the responder could say would change anything
  };
  struct FlowState {
    std::array<Stream, 2> streams;
    std::uint32_t way = 0, target = 0;  // in ways_ and targets_
    std::uint32_t overflows = 0;
    bool overflows_known = false;
  };
  struct Target {
    std::uint32_t alive = no_way;  // that brought the last answer
    std::array<bool, 2> heard{};   // by slot: since it is asked about
  };
  struct Asking {
    bool on = false;
    port::Instant since;
    std::uint32_t round = 0;
    std::size_t next = 0;  // flow
    std::size_t left = 0;  // streams that are not complete
  };
  struct Asked {
    Question question;
    std::uint32_t way = 0;
    std::uint8_t slot = 0;
    bool answered = false;
  };
  static constexpr std::uint32_t no_way = UINT32_MAX;

  std::uint32_t way_for(const FlowState& flow, std::size_t slot, std::uint32_t round) const;
  void add_question(std::uint32_t flow, std::size_t slot);
  void note(const Message& reply, Stream& stream, std::size_t slot);

  std::span<const Flow> flows_;
  std::int64_t settle_ns_, spacing_ns_;
  std::vector<FlowState> states_;
  std::vector<Way> ways_;
  std::vector<Target> targets_;
  std::uint64_t number_next_;
  std::array<Asking, 2> asking_;
  std::vector<Asked> asked_;  // a ring: question n at n mod size
  std::uint64_t asked_next_ = 0;
  std::vector<Question> questions_;
};

}  // namespace weft::observe::probe
