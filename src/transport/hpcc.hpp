// HPCC: a window set from what switches write into packets (in-band telemetry, INT).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/check.hpp"
#include "transport/sequence.hpp"
#include "transport/time.hpp"

namespace weft::transport {

// What the egress of one switch wrote when the packet left.
struct IntHop {
  Ps at = 0;
  std::uint64_t tx_bytes = 0;     // sent by this egress since the start of the run
  std::uint32_t queue_bytes = 0;  // left waiting
  double bytes_per_s = 0;         // of the link
};

// Paths are at most this long: to the spine of three tiers and back, with a detour.
inline constexpr std::size_t int_hop_max = 8;

struct HpccParameters {
  double eta = 0.95;            // share of the links to use
  std::uint32_t max_stage = 5;  // rounds of additive increase before a multiplicative one
  double additive_bytes = 0;    // W_AI
  Ps base_rtt = 0;              // T, the longest of the network without queues
  double window_init = 0;       // line rate x T, and the most there is
};

// From: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, algorithm 1:
// every ACK estimates U, the bytes in flight over the busiest link in units of its rate x T; the
// window follows eta / U from a reference that is renewed once per round trip, so that no ACK is
// answered twice. Some 300 bytes of state.
class HpccSender {
 public:
  explicit HpccSender(const HpccParameters& p) : window_(p.window_init), base_(p.window_init) {}

  // `hops`: of the packet now acknowledged, at most int_hop_max. `acked_psn` is its number,
  // `next_psn` that of the next new packet. Returns the window in bytes, at least additive_bytes.
  // A path of another length than the last one's starts a new measurement; one without hops says
  // nothing.
  double on_ack(const HpccParameters& p, std::span<const IntHop> hops, std::uint32_t acked_psn,
                std::uint32_t next_psn) {
    WEFT_DCHECK(hops.size() <= int_hop_max);
    if (hops.empty()) return window_;
    if (hops.size() == hop_count_) {
      measure(p, hops);
      const bool round_over = psn_distance(round_end_, acked_psn) >= 0;
      set_window(p, round_over);
      if (round_over) round_end_ = next_psn;
    } else {
      hop_count_ = static_cast<std::uint8_t>(hops.size());
      round_end_ = next_psn;
      std::ranges::copy(hops, last_.begin());
    }
    return window_;
  }

  // Goes on at `rate` bytes per second, as if it had found that before.
  void start_at(const HpccParameters& p, double rate) {
    const double window = rate * static_cast<double>(p.base_rtt) * 1e-12;
    window_ = base_ = std::clamp(window, std::min(p.additive_bytes, p.window_init), p.window_init);
  }

  double window() const { return window_; }
  // To pace at, in bytes per second.
  double rate(const HpccParameters& p) const {
    return window_ / (static_cast<double>(p.base_rtt) * 1e-12);
  }
  double utilisation() const { return utilisation_; }

 private:
  // U of the busiest hop, averaged over about one T. Hops that have sent nothing new, or whose
  // reports overtook each other, say nothing.
  void measure(const HpccParameters& p, std::span<const IntHop> hops) {
    const double rtt_s = static_cast<double>(p.base_rtt) * 1e-12;
    double busiest = -1, span_s = 0;
    for (std::size_t i = 0; i < hops.size(); ++i) {
      const IntHop& hop = hops[i];
      IntHop& last = last_[i];
      if (hop.at <= last.at || hop.tx_bytes < last.tx_bytes) continue;
      const double dt = static_cast<double>(hop.at - last.at) * 1e-12;
      const double sent = static_cast<double>(hop.tx_bytes - last.tx_bytes);
      const double queue = std::min(hop.queue_bytes, last.queue_bytes);
      const double used = (queue / rtt_s + sent / dt) / hop.bytes_per_s;
      if (used > busiest) {
        busiest = used;
        span_s = dt;
      }
      last = hop;
    }
    if (busiest < 0) return;
    const double weight = std::min(span_s / rtt_s, 1.0);
    utilisation_ = (1 - weight) * utilisation_ + weight * busiest;
  }

  void set_window(const HpccParameters& p, bool round_over) {
    const bool scale = utilisation_ >= p.eta || stage_ >= p.max_stage;
    // U is positive where it scales, but for a path that stands still with max_stage 0.
    const double factor = scale ? p.eta / std::max(utilisation_, 1e-9) : 1;
    window_ = std::min(base_ * factor + p.additive_bytes, p.window_init);
    if (!round_over) return;
    WEFT_CHECK(window_ > 0 && utilisation_ >= 0);
    stage_ = scale ? 0 : stage_ + 1;
    base_ = window_;
  }

  double window_, base_;    // W and the reference W^c
  double utilisation_ = 1;  // a link is held to be full until measured
  std::uint32_t round_end_ = 0;
  std::uint32_t stage_ = 0;
  std::uint8_t hop_count_ = 0;
  std::array<IntHop, int_hop_max> last_{};
};

}  // namespace weft::transport
