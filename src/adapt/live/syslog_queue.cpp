#include "adapt/live/syslog_queue.hpp"

#include <chrono>

namespace weft::adapt::live {

void SyslogQueue::push(SyslogTransport from, std::string_view text, std::string_view sender,
                       Timestamp received, port::Instant now) {
  if (batches_.back().messages.size() >= options_.batch_max) batches_.emplace_back();
  Batch& batch = batches_.back();
  if (batch.messages.empty()) {
    batch.messages.reserve(options_.batch_max);
    batch.begun = now;
  }
  batch.messages.push_back(
      {.text = std::string(text), .sender = std::string(sender), .received = received});
  const std::size_t bytes = sizeof(SyslogListener::Message) + text.size();
  batch.bytes += bytes;
  bytes_ += bytes;
  ++counts_.held;
  ++counts_.received[static_cast<std::size_t>(from)];
}

std::optional<port::Instant> SyslogQueue::due() const {
  if (empty()) return std::nullopt;
  if (busy_) return retry_at_;
  const Batch& first = batches_.front();
  if (first.messages.size() >= options_.batch_max) return first.begun;
  return first.begun + std::chrono::nanoseconds(options_.batch_age).count();
}

SyslogListener::Verdict SyslogQueue::give(Batch& batch) {
  const std::size_t count = batch.messages.size();
  if (sink_(batch.messages) == SyslogListener::Verdict::busy) {
    ++counts_.busy;
    return SyslogListener::Verdict::busy;
  }
  counts_.taken += count;
  counts_.held -= count;
  bytes_ -= batch.bytes;
  batch.bytes = 0;
  batch.messages.clear();
  return SyslogListener::Verdict::taken;
}

void SyslogQueue::offer(port::Clock& clock, Which which) {
  while (!empty()) {
    const port::Instant now = clock.now();
    const bool now_or_never = which == Which::all && !busy_;
    if (!now_or_never && now < due()) return;
    const bool refused = give(batches_.front()) == SyslogListener::Verdict::busy;
    if (refused || busy_) last_busy_ = clock.now();
    busy_ = refused;
    if (refused) {
      retry_at_ = last_busy_ + std::chrono::nanoseconds(options_.retry).count();
      return;
    }
    if (batches_.size() > 1) batches_.pop_front();
  }
}

}  // namespace weft::adapt::live
