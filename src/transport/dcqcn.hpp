// DCQCN: the rate of a RoCE queue pair that is told of marked packets.
//
//   switch marks -> notification point (receiver) sends CNPs -> reaction point (sender) slows down
//
// From: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015. Timers are
// those of the simulator of HPCC (Li et al., SIGCOMM 2019; public code): alpha and cuts each have a
// timer of their own.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/check.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "transport/time.hpp"

namespace weft::transport {

// Shared by all queue pairs of one line rate. Rates are in bytes per second.
struct DcqcnParameters {
  // Whether a second cut before any increase makes the rate it cuts the new target.
  enum class Retarget : std::uint8_t { always, after_increase };

  double gain = 1.0 / 256;  // g of alpha
  Ps alpha_timer = 0;
  Ps decrease_timer = 0;  // at most one cut in each
  Ps increase_timer = 0;
  std::uint64_t byte_counter = 0;  // bytes sent for another increase; 0: there is no such counter
  std::uint32_t stages = 5;        // F, steps of fast recovery
  Retarget retarget = Retarget::after_increase;
  double additive = 0, hyper = 0;  // what a step adds to the target
  double minimum = 0, line = 0;
  Ps cnp_interval = 0;  // of the receiver; 0: a CNP for every marked packet
};

// The two sets in use; the .cpp says where each number comes from. `line` must be positive.
DcqcnParameters dcqcn_paper(Rate line);
DcqcnParameters dcqcn_reference(Rate line);

// Fails: Errc::value for what would stop the machine from working or make it work for ever: timers
// shorter than 1 ns or longer than 1,000 s, a gain outside (0, 1], a rate that cannot rise or that
// is not within [minimum, line], a byte counter below 1 kB.
Status check(const DcqcnParameters& parameters);

// The reaction point. Runs at line rate, without state or cost, until a CNP comes:
//   first CNP       alpha = 1; a cut at once, which halves the rate
//   alpha timer     alpha <- (1 - g) alpha, + g if a CNP came since the last
//   decrease timer  if a CNP came since the last: a cut,
//                     target <- rate (but see Retarget), rate <- max(minimum, rate (1 - alpha/2)),
//                     and both counts of stages, the byte counter and the increase timer restart
//   increase timer, byte counter
//                   T and B count the steps of either since the last cut (B = T without counter)
//                     max(T, B) < F  fast recovery, the target stays
//                     min(T, B) > F  target <- target + hyper
//                     else           target <- target + additive
//                   target <- min(target, line), rate <- (rate + target) / 2, then T or B grows
// Once within 1/1024 of the line rate with no CNP to answer, the limit is lifted, which is our
// choice: the next CNP is a first one again.
// Timers run from the first CNP (increase: from the last cut) and are made up for when the object
// is looked at, in the order of their times; those due at one time in the order above, and before
// a CNP of that time. The outcome does not depend on how often one looks.
// Every `now` must be at least the one before. Cost: a comparison or two while nothing is due.
class DcqcnSender {
 public:
  // The rate to send at, in bytes per second.
  double rate(const DcqcnParameters& p, Ps now) {
    advance(p, now);
    return idle() ? p.line : rate_;
  }

  void on_cnp(const DcqcnParameters& p, Ps now) {
    advance(p, now);
    if (idle()) return start(p, now);
    settle_alpha(p, now);
    alpha_cnp_ = true;
    if (!cut_pending_) {
      cut_pending_ = true;
      if (decrease_at_ <= now)
        decrease_at_ += ((now - decrease_at_) / p.decrease_timer + 1) * p.decrease_timer;
    }
  }

  // Goes on at `rate` bytes per second, as after a cut from there with an alpha that has decayed:
  // the target is the same rate.
  void start_at(const DcqcnParameters& p, double rate, Ps now) {
    if (rate >= p.line * recovered) return;
    start(p, now);
    alpha_ = 0;
    rate_ = target_ = std::max(p.minimum, rate);
  }

  // Counts bytes towards an increase. Nothing to do without a counter or at line rate.
  void on_sent(const DcqcnParameters& p, std::uint64_t bytes, Ps now) {
    if (p.byte_counter == 0 || idle()) return;
    advance(p, now);
    if (idle()) return;
    bytes_ += bytes;
    while (bytes_ >= p.byte_counter && !idle()) {
      bytes_ -= p.byte_counter;
      increase(p, byte_stage_);
    }
  }

  bool idle() const { return increase_at_ == never; }

  // For reports and tests; meaningful while not idle.
  double alpha(const DcqcnParameters& p, Ps now) {
    advance(p, now);
    settle_alpha(p, now);
    return alpha_;
  }
  double target() const { return target_; }
  std::uint32_t time_stage() const { return time_stage_; }
  std::uint32_t byte_stage() const { return byte_stage_; }

 private:
  static constexpr double recovered = 1 - 1.0 / 1024;
  static constexpr double alpha_zero = 0x1p-64;  // no cut can tell it from 0

  void advance(const DcqcnParameters& p, Ps now) {
    for (;;) {
      const Ps cut_at = cut_pending_ ? decrease_at_ : never;
      if (now < std::min(cut_at, increase_at_)) [[likely]]
        return;
      if (cut_at <= increase_at_) {
        cut(p, cut_at);
      } else if (idle()) {
        return;  // the run is at the end of time
      } else {
        increase_at_ += p.increase_timer;
        increase(p, time_stage_);
      }
    }
  }

  void start(const DcqcnParameters& p, Ps now) {
    alpha_ = 1;
    alpha_at_ = now + p.alpha_timer;
    rate_ = target_ = p.line;
    cut(p, now);
  }

  void cut(const DcqcnParameters& p, Ps at) {
    settle_alpha(p, at);
    WEFT_CHECK(alpha_ >= 0 && alpha_ <= 1);
    const bool increased = time_stage_ + byte_stage_ > 0;
    if (increased || p.retarget == DcqcnParameters::Retarget::always) target_ = rate_;
    rate_ = std::max(p.minimum, rate_ * (1 - alpha_ / 2));
    WEFT_CHECK(target_ >= rate_);
    time_stage_ = byte_stage_ = 0;
    bytes_ = 0;
    increase_at_ = at + p.increase_timer;
    decrease_at_ = at + p.decrease_timer;
    cut_pending_ = false;
  }

  void increase(const DcqcnParameters& p, std::uint16_t& stage) {
    const auto [fewer, more] =
        std::minmax({time_stage_, p.byte_counter == 0 ? time_stage_ : byte_stage_});
    if (more >= p.stages)
      target_ = std::min(p.line, target_ + (fewer > p.stages ? p.hyper : p.additive));
    rate_ = (rate_ + target_) / 2;
    if (stage < UINT16_MAX) ++stage;
    if (rate_ >= p.line * recovered && !cut_pending_) *this = {};
  }

  // Makes up for the alpha timer. A CNP counts for the first expiry after it only.
  void settle_alpha(const DcqcnParameters& p, Ps now) {
    if (alpha_at_ > now) return;
    const Ps expiries = (now - alpha_at_) / p.alpha_timer + 1;
    const double keep = 1 - p.gain;
    for (Ps i = 0; i < expiries && (alpha_ > 0 || alpha_cnp_); ++i) {
      alpha_ = keep * alpha_ + (alpha_cnp_ ? p.gain : 0);
      if (alpha_ < alpha_zero) alpha_ = 0;
      alpha_cnp_ = false;
    }
    alpha_at_ += expiries * p.alpha_timer;
  }

  double rate_ = 0, target_ = 0, alpha_ = 0;
  Ps alpha_at_ = never, decrease_at_ = never, increase_at_ = never;
  std::uint64_t bytes_ = 0;
  std::uint16_t time_stage_ = 0, byte_stage_ = 0;
  bool alpha_cnp_ = false, cut_pending_ = false;
};
static_assert(sizeof(DcqcnSender) <= 64);

// The notification point of one queue pair.
class DcqcnReceiver {
 public:
  // A marked packet came in. True: a CNP goes out now.
  bool on_marked(const DcqcnParameters& p, Ps now) {
    if (now < next_at_) return false;
    next_at_ = now + p.cnp_interval;
    return true;
  }

 private:
  Ps next_at_ = 0;
};

}  // namespace weft::transport
