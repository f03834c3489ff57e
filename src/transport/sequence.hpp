// Which packets have come, which are to be sent again. Numbers (psn) are 32 bits and wrap: one is
// before another when the signed difference says so, so that a window must stay below 2^31.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>

#include "base/check.hpp"

namespace weft::transport {

// How many steps `to` is after `from`; negative: before.
constexpr std::int32_t psn_distance(std::uint32_t from, std::uint32_t to) {
  return static_cast<std::int32_t>(to - from);
}

// What became of a packet that came in.
enum class Arrival : std::uint8_t {
  fresh,      // taken; acknowledge
  duplicate,  // had it already; acknowledge again, the first ACK may be lost
  gap,        // go-back-N: the first behind a hole, not taken; send a NACK with expected()
  ignored,    // go-back-N: another behind the hole; selective: beyond the window. Send nothing
};

// Takes packets in order only, as an RC queue pair does: one NACK per hole (InfiniBand
// Architecture Specification, vol. 1: no further NAK until the expected packet has come; if it is
// lost again, the sender's timeout must help).
class GobackReceiver {
 public:
  explicit GobackReceiver(std::uint32_t first = 0) : expected_(first) {}

  Arrival on_packet(std::uint32_t psn) {
    const std::int32_t ahead = psn_distance(expected_, psn);
    if (ahead < 0) return Arrival::duplicate;
    if (ahead > 0) {
      if (nacked_) return Arrival::ignored;
      nacked_ = true;
      return Arrival::gap;
    }
    ++expected_;
    nacked_ = false;
    return Arrival::fresh;
  }

  // Everything before has come.
  std::uint32_t expected() const { return expected_; }

 private:
  std::uint32_t expected_;
  bool nacked_ = false;
};

// One bit per packet of a window, in words that the caller owns. Sizes are powers of two.
inline constexpr std::size_t psn_window_max = 4096;

constexpr std::uint32_t window_of(std::span<const std::uint64_t> words) {
  return static_cast<std::uint32_t>(words.size() * 64);
}
constexpr bool is_window(std::size_t packets) {
  return packets >= 64 && packets <= psn_window_max && std::has_single_bit(packets);
}

class PsnBits {
 public:
  explicit PsnBits(std::span<std::uint64_t> words) : words_(words) {
    WEFT_DCHECK(is_window(window_of(words)));
  }

  bool test(std::uint32_t psn) const { return (word(psn) >> (psn % 64) & 1) != 0; }
  void set(std::uint32_t psn) { word(psn) |= std::uint64_t{1} << (psn % 64); }
  void clear(std::uint32_t psn) { word(psn) &= ~(std::uint64_t{1} << (psn % 64)); }

  // Clears the run of ones that starts at `psn` and ends within its word; returns its length.
  std::uint32_t take_run(std::uint32_t psn) {
    const auto run = static_cast<std::uint32_t>(std::countr_one(word(psn) >> (psn % 64)));
    const std::uint64_t ones = run == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << run) - 1;
    word(psn) &= ~(ones << (psn % 64));
    return run;
  }
  // Zeros from `psn` to the first one or the end of its word.
  std::uint32_t zeros_from(std::uint32_t psn) const {
    const auto zeros = static_cast<std::uint32_t>(std::countr_zero(word(psn) >> (psn % 64)));
    return std::min(zeros, 64 - psn % 64);
  }

 private:
  std::uint64_t& word(std::uint32_t psn) const { return words_[psn / 64 & (words_.size() - 1)]; }
  std::span<std::uint64_t> words_;
};

// The first number from `base` on whose bit is not set, all passed bits cleared.
inline std::uint32_t pass_ones(PsnBits bits, std::uint32_t base) {
  for (;;) {
    const std::uint32_t run = bits.take_run(base);
    base += run;
    // A run that stops inside a word has met a zero. No run: likewise.
    if (run == 0 || base % 64 != 0) return base;
  }
}

// Takes packets in any order. `bits` is always the same window, zero at first. 4 bytes of own
// state.
class SelectiveReceiver {
 public:
  explicit SelectiveReceiver(std::uint32_t first = 0) : cumulative_(first) {}

  Arrival on_packet(std::span<std::uint64_t> bits, std::uint32_t psn) {
    const std::int32_t ahead = psn_distance(cumulative_, psn);
    if (ahead < 0) return Arrival::duplicate;
    if (ahead >= static_cast<std::int32_t>(window_of(bits))) return Arrival::ignored;
    PsnBits window(bits);
    if (window.test(psn)) return Arrival::duplicate;
    window.set(psn);
    if (ahead == 0) cumulative_ = pass_ones(window, cumulative_);
    return Arrival::fresh;
  }

  // Everything before has come.
  std::uint32_t cumulative() const { return cumulative_; }

 private:
  std::uint32_t cumulative_;
};

// Knows of every packet under way whether it is acknowledged or lost, and gives lost ones back,
// oldest first. `words` is always the same storage, zero at first: the first half the acknowledged,
// the second half the lost, each a window. 16 bytes of own state.
class SelectiveSender {
 public:
  using Words = std::span<std::uint64_t>;

  explicit SelectiveSender(std::uint32_t first = 0) : base_(first), next_(first) {}

  bool may_send(Words words) const {
    return psn_distance(base_, next_) < static_cast<std::int32_t>(window_of(words) / 2);
  }
  // The number of a new packet. Ask may_send() first.
  std::uint32_t send() { return next_++; }

  // The receiver has `psn`. False: that was known, or it was never sent.
  bool on_ack(Words words, std::uint32_t psn) {
    if (!waits(words, psn)) return false;
    forget_loss(words, psn);
    acked(words).set(psn);
    if (psn == base_) base_ = pass_ones(acked(words), base_);
    return true;
  }

  // The receiver has everything before `psn`. Returns how many of these were not known.
  std::uint32_t on_cumulative(Words words, std::uint32_t psn) {
    std::uint32_t fresh = 0;
    if (psn_distance(next_, psn) > 0) return fresh;
    while (psn_distance(base_, psn) > 0) fresh += on_ack(words, base_) ? 1 : 0;
    return fresh;
  }

  // `psn` is known to be lost (it was trimmed). False: it is acknowledged, known or never sent.
  bool on_lost(Words words, std::uint32_t psn) {
    if (!waits(words, psn) || lost(words).test(psn)) return false;
    if (lost_count_ == 0 || psn_distance(psn, lost_from_) > 0) lost_from_ = psn;
    lost(words).set(psn);
    ++lost_count_;
    return true;
  }

  // Nothing was heard for long: all that waits is held to be lost. Returns how many were not yet.
  std::uint32_t on_timeout(Words words) {
    std::uint32_t found = 0;
    for (std::uint32_t psn = base_; psn != next_; ++psn) found += on_lost(words, psn) ? 1 : 0;
    return found;
  }

  // The oldest lost packet, which is then under way again.
  std::optional<std::uint32_t> take_lost(Words words) {
    if (lost_count_ == 0) return std::nullopt;
    // None is lost before lost_from_, nor before base_: there the bits are those of a window later.
    if (psn_distance(lost_from_, base_) > 0) lost_from_ = base_;
    for (std::uint32_t step; !lost(words).test(lost_from_); lost_from_ += step)
      step = lost(words).zeros_from(lost_from_);
    lost(words).clear(lost_from_);
    --lost_count_;
    return lost_from_++;
  }

  bool is_acked(Words words, std::uint32_t psn) const {
    return psn_distance(psn, base_) > 0 || (was_sent(psn) && acked(words).test(psn));
  }
  bool is_lost(Words words, std::uint32_t psn) const {
    return waits(words, psn) && lost(words).test(psn);
  }
  std::uint32_t base() const { return base_; }  // all before are acknowledged
  std::uint32_t next() const { return next_; }
  std::uint32_t lost_count() const { return lost_count_; }

 private:
  static PsnBits acked(Words words) { return PsnBits(words.first(words.size() / 2)); }
  static PsnBits lost(Words words) { return PsnBits(words.last(words.size() / 2)); }
  bool was_sent(std::uint32_t psn) const {
    return psn_distance(base_, psn) >= 0 && psn_distance(psn, next_) > 0;
  }
  bool waits(Words words, std::uint32_t psn) const {
    return was_sent(psn) && !acked(words).test(psn);
  }
  void forget_loss(Words words, std::uint32_t psn) {
    if (!lost(words).test(psn)) return;
    lost(words).clear(psn);
    --lost_count_;
  }

  std::uint32_t base_, next_;
  std::uint32_t lost_count_ = 0;
  std::uint32_t lost_from_ = 0;
};

}  // namespace weft::transport
