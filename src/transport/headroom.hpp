// Memory that a lossless ingress keeps for what still comes in after it has asked for a pause.
#pragma once

#include "base/units.hpp"

namespace weft::transport {

// rate x delay x 3, as the simulator of HPCC reserves it for each port (Li et al., SIGCOMM 2019;
// public code): two delays of bits on the wire, and a third for all that has a size of its own.
// 37,500 B at 100 Gbps and 1 us. Below 2 delays + 2 packets where a delay is short.
constexpr Bytes simulator_headroom(Rate rate, Duration delay) {
  __extension__ using Wide = __int128;
  return {static_cast<std::int64_t>(Wide{rate.bps} * delay.ps * 3 / 8 / 1'000'000'000'000)};
}

// The parts of the delay between a decision to pause and the last byte that comes in nevertheless
// (IEEE 802.1Qbb-2011; vendors print MTU_sender + MTU_receiver + 3,840 B + 130 B for each
// 100 m and Gbps, where 3,840 B are the 60 quanta that a 10 Gbps port may take to respond).
struct HeadroomParts {
  Rate rate;                 // of the link, in both directions
  Duration latency{0};       // one way
  Bytes packet_here{4160};   // the largest that this end may have begun; the pause waits behind it
  Bytes packet_there{4160};  // the largest that the other end may have begun when the pause comes
  Bytes pause{64};
  Duration response{0};  // of the other end, from the pause's arrival until it obeys
};

// Bytes that can come in after the decision. Tight: when both packets have only just begun, a
// saturated link delivers as many but for a part of a packet. It supposes that the decision falls
// when a packet has come in on this very link; a packet half-way in at any other moment is to be
// added, and so is the packet that made the decision, where the accounting books it as headroom.
constexpr Bytes standard_headroom(const HeadroomParts& parts) {
  __extension__ using Wide = __int128;
  constexpr Wide bit_ps_of_byte = Wide{8} * 1'000'000'000'000;
  const Wide delay = Wide{2} * parts.latency.ps + parts.response.ps;
  return parts.packet_here + parts.pause + parts.packet_there +
         Bytes{static_cast<std::int64_t>((delay * parts.rate.bps + bit_ps_of_byte - 1) /
                                         bit_ps_of_byte)};
}

}  // namespace weft::transport
