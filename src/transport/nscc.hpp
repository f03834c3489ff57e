// Network-signalled congestion control of Ultra Ethernet: a window for sprayed traffic, from marks,
// delay and trimmed packets.
//
//                  delay below target            delay above target
//   not marked     grow in proportion to what    grow by a step that is equal
//                  is missing; fast once a       for all flows
//                  window saw no delay at all
//   marked         leave it: one path of many,   shrink in proportion to the excess of
//                  the next packet takes another  the mean delay, once a round trip
//
// Growth is summed up and added every eight packets or network round trip. Quick adaption: when a
// packet was trimmed, or waited four targets long, and less than an eighth of the largest window
// got through in a round, the window becomes what did get through, and what was in flight then
// changes it no more.
//
// Law, gains and defaults: Ultra Ethernet Specification 1.0 (NSCC) as the consortium's public
// simulator has them (ultraethernet/uet-htsim, 2025). We differ: a connection's base round trip is
// that of its path from the start, there the longest of the network until a shorter one is
// measured.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/check.hpp"
#include "base/units.hpp"
#include "transport/red.hpp"
#include "transport/time.hpp"

namespace weft::transport {

// Bytes and bytes per picosecond in double: a window's growth is far below a byte at times.
struct NsccParameters {
  Ps base_rtt = 0;            // of this connection, without queues
  Ps network_rtt = 0;         // of the longest path
  Ps target_delay = 0;        // queueing delay aimed at, positive
  double packet = 0;          // bytes, the smallest window
  double gather = 16'384;     // bytes without a mark that are one answer
  double window_first = 0;    // bytes
  double window_max = 0;      // bytes
  double proportional = 0;    // growth: bytes x missing delay x acknowledged / window
  double fair = 0;            // growth: bytes x acknowledged / window
  double steady = 0;          // bytes, added once per network round trip
  double fast = 0;            // share of what is acknowledged
  double shrink = 0.8;        // of excess / mean delay; never below half of the window
  double mean_gain = 0.0125;  // of a new delay in the mean
  double quick_share = 1.0 / 8;
};

// `payload`: bytes of a packet without its header. `target_delay` 0: three quarters of the
// network's round trip where switches trim, else all of it.
struct NsccNetwork {
  Rate line;
  Duration round_trip;
  Duration target_delay{0};
  Bytes packet, payload;
  bool trims = true;
};
NsccParameters nscc_parameters(const NsccNetwork& network, Duration base_rtt);

class NsccSender {
 public:
  explicit NsccSender(const NsccParameters& p) : window_(p.window_first) {}

  // An acknowledgement of `bytes` came at `now`; `mark` and `rtt` are those of the packet that
  // caused it. `in_flight`: bytes, without these. The new window is window().
  void on_ack(const NsccParameters& p, double bytes, Mark mark, Ps rtt, double in_flight, Ps now) {
    const bool marked = mark == Mark::congested;
    gathered_ += bytes;
    if (!marked && gathered_ < p.gather) return;
    bytes = std::exchange(gathered_, 0);
    const double delay = rtt > p.base_rtt ? static_cast<double>(rtt - p.base_rtt) : 0;
    const auto target = static_cast<double>(p.target_delay);
    achieved_ += bytes;
    ignored_ += bytes;
    since_growth_ += bytes;
    average(p, !marked && delay > target ? static_cast<double>(p.base_rtt) / 4 : delay);
    if (adapts(p, marked, delay > 4 * target, in_flight, now)) return;
    if (marked) {
      if (delay >= target) shrink(p, now);
    } else if (delay >= target) {
      growth_ += p.fair * bytes;
    } else if (!grow_fast(p, bytes, delay)) {
      growth_ += p.proportional * bytes * (target - delay);
    }
    bound(p);
    if (since_growth_ > 8 * p.packet || now - grown_ > p.network_rtt) grow(p, now);
    bound(p);
  }

  // A packet of `bytes` was trimmed or lost.
  void on_loss(const NsccParameters& p, double bytes, double in_flight, Ps now) {
    ignored_ += bytes;
    average(p, static_cast<double>(p.network_rtt));
    lossy_ = true;
    if (adapts(p, true, true, in_flight, now)) return;
    window_ -= bytes;
    bound(p);
  }

  // Nothing was heard for long.
  void on_timeout(const NsccParameters& p) { window_ = p.packet; }

  // Goes on at `rate` bytes per second, as if it had found that before.
  void start_at(const NsccParameters& p, double rate) {
    window_ = rate * static_cast<double>(p.base_rtt) * 1e-12;
    bound(p);
  }

  // Bytes that may be in flight; at least one packet.
  double window() const { return window_; }
  // What round trips are taken for that cannot be measured.
  Ps mean_rtt(const NsccParameters& p) const {
    return p.base_rtt + static_cast<Ps>(std::max(mean_delay_, 0.0));
  }

 private:
  static constexpr double no_delay = 1e6;  // ps: 1 us

  void bound(const NsccParameters& p) { window_ = std::clamp(window_, p.packet, p.window_max); }
  void average(const NsccParameters& p, double delay) {
    mean_delay_ += p.mean_gain * (delay - mean_delay_);
  }

  bool grow_fast(const NsccParameters& p, double bytes, double delay) {
    if (delay >= no_delay) {
      undelayed_ = 0;
      fast_ = false;
      return false;
    }
    undelayed_ += bytes;
    fast_ = fast_ || undelayed_ > window_;
    if (fast_) window_ += p.fast * bytes;
    return fast_;
  }

  void shrink(const NsccParameters& p, Ps now) {
    fast_ = false;
    undelayed_ = 0;
    const auto target = static_cast<double>(p.target_delay);
    if (mean_delay_ <= target || now - shrunk_ <= p.base_rtt) return;
    window_ *= std::max(1 - p.shrink * (mean_delay_ - target) / mean_delay_, 0.5);
    shrunk_ = now;
  }

  void grow(const NsccParameters& p, Ps now) {
    window_ += growth_ / window_;
    if (now - grown_ >= p.network_rtt) {
      window_ += p.steady;
      grown_ = now;
    }
    growth_ = since_growth_ = 0;
  }

  // Whether quick adaption has set the window, or lately set it. Rounds go on meanwhile: what gets
  // through in a longer time would not be a share of the bottleneck.
  bool adapts(const NsccParameters& p, bool marked, bool urgent, double in_flight, Ps now) {
    bool done = ignored_ < to_ignore_ && marked;
    if (now > round_end_) {
      if (!done && round_end_ != 0 && (lossy_ || urgent) &&
          achieved_ < p.window_max * p.quick_share) {
        window_ = std::max(achieved_, p.packet);
        to_ignore_ = in_flight;
        ignored_ = 0;
        lossy_ = false;
        done = true;
      }
      achieved_ = 0;
      round_end_ = now + p.base_rtt + p.target_delay;
    }
    if (done) growth_ = since_growth_ = 0;
    WEFT_DCHECK(window_ >= p.packet);
    return done;
  }

  double window_;
  double gathered_ = 0;                   // bytes acknowledged that wait for more
  double growth_ = 0, since_growth_ = 0;  // to be added, and bytes acknowledged since it was
  double undelayed_ = 0;                  // bytes in a row without delay
  double mean_delay_ = 0;
  double achieved_ = 0;                 // bytes, in this round
  double ignored_ = 0, to_ignore_ = 0;  // bytes since quick adaption, and how many do not count
  Ps round_end_ = 0, grown_ = 0, shrunk_ = 0;
  bool lossy_ = false, fast_ = false;
};

}  // namespace weft::transport
