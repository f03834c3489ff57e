// Credit from the receiver: it knows all who want to send to it and lets just so much come as its
// link takes.
//
//   sender: first window at once -> demand -> receiver: a quantum each interval, in turn -> sender
//
// From: Olteanu et al., "An edge-queued datagram service for all datacenter traffic", NSDI 2022
// (EQDS); Handley et al., SIGCOMM 2017 (NDP) for the pull queue. We differ: demands and credits are
// in bytes of payload, a demand is told once and in full, and shares are equal (no weights).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "base/units.hpp"
#include "transport/time.hpp"

namespace weft::transport {

struct PullParameters {
  std::uint64_t quantum = 0;  // bytes of payload in one credit
  Ps interval = 0;            // in which they come in
};

// `on_wire`: what a quantum occupies on the line, headers included. All must be positive.
constexpr PullParameters pull_parameters(Rate line, Bytes quantum, Bytes on_wire) {
  return {.quantum = static_cast<std::uint64_t>(quantum.count), .interval = ps_of(on_wire / line)};
}

// A connection at its receiver; a table of them, by connection, is the caller's.
struct PullEntry {
  std::uint64_t wanted = 0;  // bytes asked for and not yet credited
  std::uint32_t next = 0;    // in the pacer's circle, while `wanted`
};

struct PullGrant {
  std::uint32_t connection = 0;
  std::uint64_t bytes = 0;
};

// One receiving NIC: connections that want bytes stand in a circle, each gets a quantum in turn.
// Every operation is O(1). All calls on pacers that share a connection need the same table.
class PullPacer {
 public:
  using Table = std::span<PullEntry>;

  // `connection` wants `bytes` more.
  void on_demand(Table table, std::uint32_t connection, std::uint64_t bytes, Ps now) {
    if (bytes == 0) return;
    PullEntry& entry = table[connection];
    const bool stands_in = entry.wanted > 0;
    entry.wanted += bytes;
    if (stands_in) return;
    if (tail_ == none) {
      entry.next = connection;
      due_ = std::max(due_, now);
    } else {
      entry.next = table[tail_].next;
      table[tail_].next = connection;
    }
    tail_ = connection;
  }

  // When the next credit goes out; never: nobody wants any.
  Ps due() const { return tail_ == none ? never : due_; }

  // Whom to send a credit, and of how much. Asks for now >= due(). A pacer that is called late
  // does not catch up: the time has passed.
  PullGrant next(const PullParameters& p, Table table, Ps now) {
    WEFT_DCHECK(now >= due());
    WEFT_CHECK(p.quantum > 0 && tail_ != none);
    const std::uint32_t head = table[tail_].next;
    PullEntry& entry = table[head];
    WEFT_CHECK(entry.wanted > 0);  // who wants nothing has left the circle
    const PullGrant out{head, std::min(p.quantum, entry.wanted)};
    entry.wanted -= out.bytes;
    if (entry.wanted > 0) {
      tail_ = head;
    } else if (head == tail_) {
      tail_ = none;
    } else {
      table[tail_].next = entry.next;
    }
    due_ = now + interval_of(p, out.bytes);
    return out;
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;

  // A part of a quantum takes its part of the interval, rounded up so as never to overrun the line.
  static Ps interval_of(const PullParameters& p, std::uint64_t bytes) {
    if (bytes == p.quantum) return p.interval;
    return (p.interval * bytes + p.quantum - 1) / p.quantum;
  }

  Ps due_ = 0;
  std::uint32_t tail_ = none;
};

// How much of its line a receiver gives credit for on an oversubscribed fabric: less while switches
// before the last one mark or trim what comes. From: OversubscribedCC of ultraethernet/uet-htsim
// (2025), with its constants. We differ: data packets alone count, there all that come.
class CreditRate {
 public:
  enum class Met : std::uint8_t { nothing, mark, trim, last_trim };

  // Judged every 1.5 round trips or so, at times that differ by `seed`. `round_trip` must not be 0.
  CreditRate(Ps round_trip, double oversubscription, std::uint64_t seed)
      : round_trip_(round_trip), least_(std::max(0.01, 0.9 / oversubscription)), seed_(seed) {
    wait();
  }

  // What a packet met that has come.
  void on_packet(Met met, Ps now) {
    judge_until(now);
    ++counts_[static_cast<std::size_t>(met)];
  }

  // The interval of credits now, of that at the full rate.
  Ps stretched(Ps interval, Ps now) {
    judge_until(now);
    return rate_ < 1 ? static_cast<Ps>(static_cast<double>(interval) / rate_) : interval;
  }

 private:
  void judge_until(Ps now) {
    while (due_ <= now) {
      judge();
      if (rate_ == 1 && congestion_ < 1e-6) due_ = std::max(due_, now);  // nothing came for long
      wait();
    }
  }

  // Apart, or receivers would fall and rise together.
  void wait() {
    const double draw = static_cast<double>(mix64(seed_ ^ due_) >> 11) * 0x1p-53;
    due_ += static_cast<Ps>((0.75 + draw / 2) * 1.5 * static_cast<double>(round_trip_)) + 1;
  }

  void judge() {
    const auto [whole, marked, trimmed, last_trimmed] = std::exchange(counts_, {});
    const double packets = whole + marked;
    congestion_ = (congestion_ + (packets > 0 ? marked / packets : 0)) / 2;
    if (trimmed > 0) rate_ -= trimmed / (packets + trimmed + last_trimmed);
    if (congestion_ > 0.3) rate_ *= 1 - (congestion_ - 0.3) / 2;
    if (trimmed > 0 || congestion_ > 0.3) {
      rises_ = 0;
    } else {
      rate_ += marked > 0 ? 0.01 : 0.01 * static_cast<double>(1u << std::min(rises_, 7u));
      ++rises_;
    }
    rate_ = std::clamp(rate_, least_, 1.0);
  }

  Ps round_trip_;
  double least_;
  std::uint64_t seed_;
  Ps due_ = 0;
  std::array<double, 4> counts_{};  // since it was judged last, by what packets met
  double rate_ = 1;
  double congestion_ = 0;    // share of marked packets, the recent ones above all
  std::uint32_t rises_ = 0;  // since it last fell
};

// The sending end of one connection. Bytes to send are either covered by credit at hand or asked
// for; so credit for the last of them always comes, however they are cut into packets.
class PullSender {
 public:
  // `first_window`: bytes that it may send unasked.
  explicit PullSender(std::uint64_t first_window)
      : credit_(first_window), first_window_(first_window) {}

  // `bytes` more are to be sent, or again. Returns the demand to tell the receiver, maybe 0. No
  // more than `most` is asked for at a time; the rest, when asked() has become less, with
  // on_bytes(0).
  std::uint64_t on_bytes(std::uint64_t bytes, std::uint64_t most = UINT64_MAX) {
    backlog_ += bytes;
    const std::uint64_t covered = credit_ + asked_;
    const std::uint64_t demand =
        std::min(backlog_ > covered ? backlog_ - covered : 0, most - std::min(most, asked_));
    asked_ += demand;
    return demand;
  }
  void on_credit(std::uint64_t bytes) {
    asked_ -= std::min(asked_, bytes);
    credit_ += bytes;
  }

  // `bytes` are to be sent again, for which the receiver gives credit unasked.
  void on_trimmed(std::uint64_t bytes) {
    backlog_ += bytes;
    asked_ += bytes;
  }

  // Nothing was heard for long: what was asked for is held to be lost. Returns the demand to tell.
  std::uint64_t ask_again(std::uint64_t most = UINT64_MAX) {
    asked_ = 0;
    return on_bytes(0, most);
  }

  bool may_send(std::uint64_t bytes) const { return bytes <= credit_; }
  void on_sent(std::uint64_t bytes) {
    WEFT_DCHECK(may_send(bytes) && bytes <= backlog_);
    credit_ -= bytes;
    backlog_ -= bytes;
  }

  // All that was sent has come in: what follows may start unasked again.
  void on_idle() {
    if (backlog_ == 0) credit_ = std::max(credit_, first_window_);
  }

  std::uint64_t credit() const { return credit_; }
  std::uint64_t backlog() const { return backlog_; }
  std::uint64_t asked() const { return asked_; }

 private:
  std::uint64_t credit_;  // may be sent now
  std::uint64_t first_window_;
  std::uint64_t backlog_ = 0;  // to be sent
  std::uint64_t asked_ = 0;    // of the backlog, credit that is still to come
};

}  // namespace weft::transport
