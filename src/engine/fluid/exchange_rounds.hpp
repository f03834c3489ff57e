// Which messages of a pairwise exchange may start, as rounds open and end at its ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workload/collective/traffic.hpp"

namespace weft::engine::fluid {

// Semantics are those of workload::Exchange, whose ranks and rounds these are. Cost: O(1) per
// message; ranks * window bytes.
class ExchangeRounds {
 public:
  struct Message {
    std::uint32_t rank, round;
  };
  // The exchange must outlive it.
  explicit ExchangeRounds(const workload::Exchange& exchange);

  // The rank takes part from now on; nothing is sent to or from it before.
  void wake(std::uint32_t rank);
  // The message has ended at both sides.
  void ended(Message message);
  // The next message that may start, each once, in the order in which they became ready.
  std::optional<Message> next_ready();
  bool finished() const { return unfinished_ranks_ == 0; }

 private:
  struct Rank {
    std::uint32_t opening = 0;  // the rounds before it are open or complete
    std::uint32_t lowest = 0;   // incomplete round
  };
  void open_round(std::uint32_t rank);
  void half_done(std::uint32_t rank, std::uint32_t round);
  std::uint8_t& halves(std::uint32_t rank, std::uint32_t round) {
    return halves_[std::size_t{rank} * window_ + round % window_];
  }

  const workload::Exchange& exchange_;
  std::uint32_t window_;
  std::vector<Rank> ranks_;
  std::vector<std::uint8_t> halves_;  // ended messages, 0 to 2, of each open round
  std::vector<Message> ready_;
  std::size_t taken_ = 0;
  std::uint32_t unfinished_ranks_;
};

}  // namespace weft::engine::fluid
