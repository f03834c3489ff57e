#include "engine/fluid/exchange_rounds.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::engine::fluid {

ExchangeRounds::ExchangeRounds(std::uint32_t ranks, std::uint32_t window)
    : window_(std::clamp(window, 1u, std::max(ranks, 2u) - 1)),
      rounds_(ranks - 1),
      ranks_(ranks),
      halves_(std::size_t{ranks} * window_, 0),
      unfinished_ranks_(ranks) {
  WEFT_CHECK(ranks >= 2);
}

void ExchangeRounds::wake(std::uint32_t rank) {
  WEFT_CHECK(ranks_[rank].opened == 0);
  for (std::uint32_t i = 0; i < window_; ++i) open_round(rank);
}

// A message is ready when its round opens at the second of its two ends.
void ExchangeRounds::open_round(std::uint32_t rank) {
  const std::uint32_t round = ++ranks_[rank].opened;
  WEFT_CHECK(round <= rounds_);
  const auto count = static_cast<std::uint32_t>(ranks_.size());
  const std::uint32_t receiver = (rank + round) % count;
  const std::uint32_t sender = (rank + count - round) % count;
  if (ranks_[receiver].opened >= round) ready_.push_back({rank, round});
  // Where two ranks are each other's peers the one call covers both directions.
  if (ranks_[sender].opened >= round) ready_.push_back({sender, round});
}

void ExchangeRounds::ended(Message message) {
  const auto count = static_cast<std::uint32_t>(ranks_.size());
  half_done(message.rank, message.round);
  half_done((message.rank + message.round) % count, message.round);
}

void ExchangeRounds::half_done(std::uint32_t rank, std::uint32_t round) {
  WEFT_CHECK(round >= ranks_[rank].lowest && halves(rank, round) < 2);
  ++halves(rank, round);
  Rank& r = ranks_[rank];
  while (r.lowest <= rounds_ && r.lowest <= r.opened && halves(rank, r.lowest) == 2) {
    halves(rank, r.lowest) = 0;
    ++r.lowest;
    if (r.opened < rounds_) open_round(rank);
    if (r.lowest > rounds_) {
      WEFT_CHECK(unfinished_ranks_ > 0);
      --unfinished_ranks_;
    }
  }
}

std::optional<ExchangeRounds::Message> ExchangeRounds::next_ready() {
  if (taken_ == ready_.size()) {
    ready_.clear();
    taken_ = 0;
    return std::nullopt;
  }
  return ready_[taken_++];
}

}  // namespace weft::engine::fluid
