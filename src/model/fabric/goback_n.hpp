// What packet loss leaves of a transport that repeats everything behind a lost packet.
#pragma once

#include <algorithm>

namespace weft::model {

// Goodput of go-back-N as a share of the rate, in (0, 1].
// In:  `loss`, the share of packets lost, each for itself, in [0, 1); `window_packets`, how many
//      packet times pass from sending a packet until the sender goes back to it: rate x RTT / MTU,
//      counted as 1 where it is less (a lost packet has taken at least its own time).
// A packet sent is lost with probability p, and then its own time and that of all that follow it
// until the sender hears of it, W in all, are for nothing: the receiver discards what is out of
// order. A packet fails p / (1 - p) times on average before it comes through, so that it costs
// 1 + W p / (1 - p) packet times:
//   share = (1 - p) / (1 - p + p W)
// From: Bertsekas & Gallager, Data Networks, 2nd ed., section 2.4 (go back n). Left out: lost
// acknowledgements, timeouts longer than the RTT, and congestion control that reacts to loss.
constexpr double goodput_share(double loss, double window_packets) {
  return (1 - loss) / (1 - loss + loss * std::max(window_packets, 1.0));
}

}  // namespace weft::model
