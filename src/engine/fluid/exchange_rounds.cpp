#include "engine/fluid/exchange_rounds.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::engine::fluid {

ExchangeRounds::ExchangeRounds(const workload::Exchange& exchange)
    : exchange_(exchange),
      window_(std::clamp(exchange.window, 1u, std::max(exchange.round_count(), 1u))),
      ranks_(exchange.size(), {exchange.first_round, exchange.first_round}),
      halves_(std::size_t{exchange.size()} * window_, 0),
      unfinished_ranks_(exchange.size()) {
  WEFT_CHECK(exchange.size() >= 2 && exchange.round_count() >= 1);
}

void ExchangeRounds::wake(std::uint32_t rank) {
  WEFT_CHECK(ranks_[rank].opening == exchange_.first_round);
  for (std::uint32_t i = 0; i < window_; ++i) open_round(rank);
}

// A message is ready when its round opens at the second of its two ends.
void ExchangeRounds::open_round(std::uint32_t rank) {
  const std::uint32_t round = ranks_[rank].opening++;
  WEFT_CHECK(round < exchange_.end_round);
  const std::uint32_t receiver = exchange_.receiver(rank, round);
  const std::uint32_t sender = exchange_.sender(rank, round);
  if (ranks_[receiver].opening > round) ready_.push_back({rank, round});
  // Where two ranks are each other's peers the one call covers both directions.
  if (ranks_[sender].opening > round) ready_.push_back({sender, round});
}

void ExchangeRounds::ended(Message message) {
  half_done(message.rank, message.round);
  half_done(exchange_.receiver(message.rank, message.round), message.round);
}

void ExchangeRounds::half_done(std::uint32_t rank, std::uint32_t round) {
  WEFT_CHECK(round >= ranks_[rank].lowest && halves(rank, round) < 2);
  ++halves(rank, round);
  Rank& r = ranks_[rank];
  while (r.lowest < r.opening && halves(rank, r.lowest) == 2) {
    halves(rank, r.lowest) = 0;
    ++r.lowest;
    if (r.opening < exchange_.end_round) open_round(rank);
    if (r.lowest == exchange_.end_round) {
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
