// For tests: flows with windows over one FIFO link, closed loop.
//
//   flow 0 --\                          ACKs come back base_rtt after the packet left the queue
//   flow 1 ---+--> [queue] --link--> receivers ------> flows
//   flow n --/        \ no room: trimmed, the sender knows base_rtt after it sent
#pragma once

#include <algorithm>
#include <cstdint>
#include <queue>
#include <vector>

#include "base/rng.hpp"
#include "transport/hpcc.hpp"
#include "transport/red.hpp"
#include "transport/time.hpp"

namespace weft::transport::test {

struct ToyLink {
  Rate rate;
  Ps base_rtt = 0;
  std::uint64_t packet = 4160;
  Bytes kmin{INT64_MAX}, kmax{INT64_MAX};
  double pmax = 0.2;
  double room = 1e18;  // bytes that may wait
};

struct ToyFeedback {
  Ps at = 0;  // when the sender hears of it
  std::uint64_t order = 0;
  std::size_t flow = 0;
  std::uint32_t psn = 0, next_psn = 0;
  Ps rtt = 0;
  Mark mark = Mark::clear;
  bool trimmed = false;
  IntHop hop;
  bool operator>(const ToyFeedback& other) const {
    return at != other.at ? at > other.at : order > other.order;
  }
};

// Counted between `warm` and `end`.
struct ToyOutcome {
  std::vector<double> bytes;             // of each flow through the link
  double busy = 0;                       // share of the time
  double queue_mean = 0, queue_max = 0;  // bytes that a packet found waiting
  std::uint64_t trimmed = 0;

  double jain() const {
    double sum = 0, squares = 0;
    for (const double b : bytes) {
      sum += b;
      squares += b * b;
    }
    return sum * sum / (static_cast<double>(bytes.size()) * squares);
  }
};

// `Flow` has double window() and void on_feedback(const ToyFeedback&).
template <class Flow>
class ToyRun {
 public:
  ToyRun(const ToyLink& link, std::vector<Flow>& flows)
      : link_(link), flows_(flows), sent_(flows.size()), in_flight_(flows.size()) {
    out_.bytes.resize(flows.size());
  }

  ToyOutcome run(Ps warm, Ps end) {
    warm_ = warm;
    for (std::size_t flow = 0; flow < flows_.size(); ++flow) send_all(flow, 0);
    while (feedback_.top().at < end) {
      ToyFeedback heard = feedback_.top();
      feedback_.pop();
      in_flight_[heard.flow] -= link_.packet;
      heard.next_psn = sent_[heard.flow];
      flows_[heard.flow].on_feedback(heard);
      if (heard.at >= warm && !heard.trimmed)
        out_.bytes[heard.flow] += static_cast<double>(link_.packet);
      out_.trimmed += heard.trimmed ? 1 : 0;
      send_all(heard.flow, heard.at);
    }
    double total = 0;
    for (const double b : out_.bytes) total += b;
    out_.busy = total / (link_.rate.bytes_per_s() * static_cast<double>(end - warm) * 1e-12);
    out_.queue_mean /= static_cast<double>(std::max<std::uint64_t>(samples_, 1));
    return out_;
  }

 private:
  void send_all(std::size_t flow, Ps now) {
    const auto packet = static_cast<double>(link_.packet);
    do {
      send(flow, now);
    } while (static_cast<double>(in_flight_[flow]) + packet <= flows_[flow].window());
  }

  void send(std::size_t flow, Ps now) {
    if (in_flight_[flow] > 0 &&
        static_cast<double>(in_flight_[flow] + link_.packet) > flows_[flow].window())
      return;
    in_flight_[flow] += link_.packet;
    ToyFeedback heard{.order = order_++, .flow = flow, .psn = sent_[flow]++};
    const double wait_s = free_at_ > now ? static_cast<double>(free_at_ - now) * 1e-12 : 0;
    const double queue = wait_s * link_.rate.bytes_per_s();
    if (now >= warm_) {
      ++samples_;
      out_.queue_mean += queue;
      out_.queue_max = std::max(out_.queue_max, queue);
    }
    heard.trimmed = queue + static_cast<double>(link_.packet) > link_.room;
    if (heard.trimmed) {
      heard.at = now + link_.base_rtt;
    } else {
      pass(heard, queue, now);
    }
    heard.rtt = heard.at - now;
    feedback_.push(heard);
  }

  void pass(ToyFeedback& heard, double queue, Ps now) {
    const Bytes waiting{static_cast<std::int64_t>(queue)};
    const double p = mark_probability(waiting, link_.kmin, link_.kmax, link_.pmax);
    heard.mark = rng_.uniform() < p ? Mark::congested : Mark::clear;
    const Bytes packet{static_cast<std::int64_t>(link_.packet)};
    free_at_ = std::max(free_at_, now) + ps_of(packet / link_.rate);
    tx_bytes_ += link_.packet;
    heard.at = free_at_ + link_.base_rtt;
    heard.hop = {.at = free_at_,
                 .tx_bytes = tx_bytes_,
                 .queue_bytes = static_cast<std::uint32_t>(queue),
                 .bytes_per_s = link_.rate.bytes_per_s()};
  }

  ToyLink link_;
  std::vector<Flow>& flows_;
  std::vector<std::uint32_t> sent_;
  std::vector<std::uint64_t> in_flight_;
  std::priority_queue<ToyFeedback, std::vector<ToyFeedback>, std::greater<>> feedback_;
  Rng rng_{1};
  Ps free_at_ = 0, warm_ = 0;
  std::uint64_t tx_bytes_ = 0, order_ = 0, samples_ = 0;
  ToyOutcome out_;
};

}  // namespace weft::transport::test
