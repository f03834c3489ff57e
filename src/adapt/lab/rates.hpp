// Flows of a round at once, each paced and pinned to its path, and what of each arrives.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "adapt/lab/lab.hpp"
#include "base/result.hpp"
#include "base/units.hpp"

namespace weft::adapt::lab {

struct RateFlow {
  model::NodeId src, dst;      // NICs, of hosts of the lab
  std::uint16_t port = 49152;  // UDP source port
  model::LinkId uplink;  // that its packets leave the source's rack by; invalid: within a rack
};

struct RateOptions {
  Rate rate = {20'000'000};             // of each flow
  Duration length = {500 * ps_per_ms};  // of sending
};

// Sends UDP packets of 1,400 bytes at that rate from all sources to their destinations (port 4791),
// by marks that the overlay has for that long, and returns the share of each flow's bytes that had
// arrived when sending ended. One thread sends and receives, so that a busy machine slows both;
// where it could not send nine tenths of a flow's packets the round is sent again, five times at
// most. Fails: Errc::infeasible where that did not help or marks of traffic engineering are
// installed, Errc::unsupported without nftables, Errc::io. Cost: the length, and a core.
Result<std::vector<double>> measure_rates(const Lab& lab, std::span<const RateFlow> flows,
                                          const RateOptions& options = {});

}  // namespace weft::adapt::lab
