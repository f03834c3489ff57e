#include "adapt/lab/wire_queue.hpp"

#include <algorithm>
#include <functional>

namespace weft::adapt::lab {
namespace {

constexpr std::size_t ethernet_bytes = 14;

std::int64_t ns(Duration span) { return span.ps / 1'000; }

constexpr unsigned ecn_mask = 3;
constexpr bool is_ect(unsigned ecn) { return ecn == 1 || ecn == 2; }

}  // namespace

bool mark_ce(std::span<std::uint8_t> frame) {
  if (frame.size() < ethernet_bytes + 20) return false;
  std::uint8_t* const ip = frame.data() + ethernet_bytes;
  const unsigned type = (unsigned{frame[12]} << 8) | frame[13];
  if (type == 0x86dd && is_ect((ip[1] >> 4) & ecn_mask)) {
    ip[1] |= ecn_mask << 4;
    return true;
  }
  if (type != 0x0800 || !is_ect(ip[1] & ecn_mask)) return false;
  const auto word = [&](std::size_t at) { return (unsigned{ip[at]} << 8) | ip[at + 1]; };
  const unsigned before = word(0);
  ip[1] |= ecn_mask;
  unsigned sum = (~word(10) & 0xffff) + (~before & 0xffff) + word(0);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  ip[10] = static_cast<std::uint8_t>(~sum >> 8);
  ip[11] = static_cast<std::uint8_t>(~sum);
  return true;
}

std::int64_t WireQueue::serve(std::int64_t now_ns, std::vector<std::uint8_t>& frame) {
  if (model_.rate.bps == 0) return now_ns;
  const auto bps = static_cast<double>(model_.rate.bps);
  const std::int64_t start = std::max(now_ns, busy_until_ns_);
  const double backlog = static_cast<double>(start - now_ns) * bps / 8e9;
  if (backlog + static_cast<double>(frame.size()) > static_cast<double>(model_.queue.count))
    return -1;
  if (model_.ecn.count >= 0 && backlog > static_cast<double>(model_.ecn.count) && mark_ce(frame))
    ++count.marked;
  busy_until_ns_ = start + static_cast<std::int64_t>(static_cast<double>(frame.size()) * 8e9 / bps);
  return busy_until_ns_;
}

void WireQueue::admit(std::int64_t now_ns, Frame frame) {
  ++count.received;
  scratch_.assign(frame.begin(), frame.end());
  const std::int64_t served_ns = serve(now_ns, scratch_);
  if (served_ns < 0) {
    ++count.overflowed;
    return;
  }
  if (chance(model_.corrupt) && scratch_.size() > ethernet_bytes) {
    const std::uint64_t bit = rng_.below((scratch_.size() - ethernet_bytes) * 8);
    scratch_[ethernet_bytes + bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    ++count.corrupted;
  }
  std::int64_t due = served_ns + ns(model_.delay);
  if (model_.jitter.ps > 0)
    due += static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(ns(model_.jitter)) + 1));
  due = std::max(due, last_due_ns_);
  last_due_ns_ = due;
  if (chance(model_.reorder)) {
    ++count.reordered;
    due += ns(model_.hold);
  }
  push(due, scratch_);
  if (chance(model_.duplicate)) {
    ++count.duplicated;
    push(due, scratch_);
  }
}

void WireQueue::push(std::int64_t due_ns, Frame frame) {
  if (heap_.size() >= wire_frames_max || bytes_ + frame.size() > wire_bytes_max) {
    ++count.overflowed;
    return;
  }
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  slots_[slot].assign(frame.begin(), frame.end());
  bytes_ += frame.size();
  heap_.push_back({due_ns, sequence_++, slot});
  std::ranges::push_heap(heap_, std::greater{});
}

void WireQueue::pop() {
  std::ranges::pop_heap(heap_, std::greater{});
  const std::uint32_t slot = heap_.back().slot;
  heap_.pop_back();
  bytes_ -= slots_[slot].size();
  free_.push_back(slot);
}

}  // namespace weft::adapt::lab
