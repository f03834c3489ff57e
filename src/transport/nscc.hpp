// A window for sprayed traffic, from marks, delay and losses.
//
//                  delay below target            delay above target
//   not marked     grow in proportion            grow by a fair step
//                  to what is missing
//   marked         leave it: one path of many,   shrink in proportion
//                  the next packet takes another to the excess
//
// After Ultra Ethernet's network-signalled congestion control (UET 1.0, NSCC) and its forerunner
// (Bonato et al., "FASTFLOW: Flexible Adaptive Congestion Control for High-Performance
// Datacenters", 2024), from which these four cases and the quick adaption to losses are. The laws
// inside the cases, and the gains, are ours; so results are comparable, not equal.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/check.hpp"
#include "base/units.hpp"
#include "transport/red.hpp"
#include "transport/time.hpp"

namespace weft::transport {

struct NsccParameters {
  Ps base_rtt = 0;        // without queues
  Ps target_delay = 0;    // queueing delay aimed at, positive
  double bdp = 0;         // bytes, line rate x base_rtt: the window at first
  double mtu = 0;         // bytes, the smallest window
  double window_max = 0;  // bytes
  // Gains. Growth and decrease are per window of acknowledged bytes, that is per round trip.
  double grow = 0.25;    // of the window, at no delay at all
  double fair_step = 0;  // bytes, equal for all: what makes shares equal
  double shrink = 0.8;   // of the window, times excess / delay
};

// The window may fill the target's queue once. `target_delay` 0: half a base round trip.
NsccParameters nscc_parameters(Rate line, Duration base_rtt, Duration target_delay, Bytes mtu);

class NsccSender {
 public:
  explicit NsccSender(const NsccParameters& p) : window_(p.bdp) {}

  // `rtt`: of the packet that the acknowledgement is for, sent back at `now`. `bytes` of several
  // packets may be acknowledged together. Returns nothing new to send: ask window().
  void on_ack(const NsccParameters& p, std::uint64_t bytes, Mark mark, Ps rtt, Ps now) {
    acked_ += bytes;
    const Ps delay = rtt > p.base_rtt ? rtt - p.base_rtt : 0;
    const auto b = static_cast<double>(bytes);
    if (delay < p.target_delay) {
      if (mark == Mark::clear) {
        const double missing = static_cast<double>(p.target_delay - delay);
        window_ += b * p.grow * missing / static_cast<double>(p.target_delay) + fair(p, b);
      }
    } else if (mark == Mark::clear) {
      window_ += fair(p, b);
    } else {
      const double excess = static_cast<double>(delay - p.target_delay);
      window_ -= b * p.shrink * excess / static_cast<double>(delay);
    }
    bound(p);
    adapt(p, now);
  }

  // A packet of `bytes` was trimmed or dropped. Quick adaption: at the end of the round trip in
  // which that happens, the window becomes what got through in it, which is this sender's share of
  // the bottleneck. The round after is left alone: its losses were sent before.
  void on_loss(const NsccParameters& p, Ps now) {
    lossy_ = true;
    adapt(p, now);
  }

  // Nothing was heard for long.
  void on_timeout(const NsccParameters& p) { window_ = p.mtu; }

  // Goes on at `rate` bytes per second, as if it had found that before.
  void start_at(const NsccParameters& p, double rate) {
    window_ = rate * static_cast<double>(p.base_rtt) * 1e-12;
    bound(p);
  }

  // Bytes that may be in flight; at least one packet.
  double window() const { return window_; }

 private:
  double fair(const NsccParameters& p, double bytes) const { return p.fair_step * bytes / window_; }
  void bound(const NsccParameters& p) { window_ = std::clamp(window_, p.mtu, p.window_max); }

  void adapt(const NsccParameters& p, Ps now) {
    if (now < round_end_) return;
    const bool adapts = lossy_ && !adapted_ && round_end_ > 0;
    if (adapts) {
      window_ = std::min(window_, static_cast<double>(acked_));
      bound(p);
    }
    WEFT_CHECK(window_ >= p.mtu && window_ <= p.window_max);
    adapted_ = adapts;
    lossy_ = false;
    acked_ = 0;
    round_end_ = now + p.base_rtt + p.target_delay;
  }

  double window_;
  std::uint64_t acked_ = 0;  // in this round
  Ps round_end_ = 0;
  bool lossy_ = false, adapted_ = false;
};
static_assert(sizeof(NsccSender) <= 32);

}  // namespace weft::transport
