// When a switch marks a packet instead of dropping it.
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace weft::transport {

// What the ECN bits of a packet said when it arrived; its acknowledgement carries it back.
enum class Mark : std::uint8_t { clear, congested };

// Probability in [0, 1] that a packet is marked which finds `queue` waiting: 0 up to `kmin`, then
// rising to `pmax` at `kmax`, and 1 beyond. kmin == kmax is a step.
// From: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015
// (RED of Floyd & Jacobson, on the queue of this moment instead of its average).
constexpr double mark_probability(Bytes queue, Bytes kmin, Bytes kmax, double pmax) {
  if (queue <= kmin) return 0;
  if (queue > kmax) return 1;
  return pmax * static_cast<double>((queue - kmin).count) /
         static_cast<double>((kmax - kmin).count);
}

}  // namespace weft::transport
