// A flow of probes, and what became of its probes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "observe/probe/histogram.hpp"
#include "port/probe_io.hpp"

namespace weft::observe::probe {

// What switches see of a stream of probes. FlowId of the program's tables is its index.
struct Flow {
  std::uint32_t port = 0;  // index of our own UDP port
  port::Endpoint target;
  std::uint32_t local = 0;  // own address to send from; 0: the system's choice
  std::uint8_t dscp = 0;
};

// Why nothing is known of a flow's probes of one window.
enum class Unknown : std::uint8_t {
  none,
  not_sent,          // there were none
  prober_busy,       // this host was too busy to tell
  responder_silent,  // nothing came back from the responder on any flow: dead, or cut off
  unanswered,        // one-way: the responder answered about other flows, but not about this one
  forgotten,         // one-way: the responder has restarted, or given the flow's place to another
};
std::string_view to_text(Unknown why);

// What became of one flow's probes of one window.
struct FlowCounts {
  std::uint64_t sent = 0, answered = 0, late = 0;  // late ones are among the answered
  std::uint64_t lost = 0;
  // That came with a wrong payload, on the way there and back: neither lost nor answered.
  std::uint64_t damaged_forward = 0, damaged_back = 0;
  // Of the lost: before they came to the responder. Nothing: not known.
  std::optional<std::uint64_t> lost_forward = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t refused = 0;    // by our own system; not among the sent
  std::uint64_t remarked = 0;   // that came to the responder with another DSCP
  std::uint64_t unknown = 0;    // one-way, and the responder did not say; neither lost nor arrived
  Unknown why = Unknown::none;  // with `unknown`
  bool heard = false;           // the responder answered something, on whatever flow of ours
  std::uint64_t overflows = 0;  // that the responder's own queue refused meanwhile, of all flows
  Histogram rtt;                // network time: round trip less the responder's own

  std::uint64_t damaged() const { return damaged_forward + damaged_back; }
  void merge(const FlowCounts& other);
};

}  // namespace weft::observe::probe
