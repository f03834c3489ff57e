#include "operate/triage/event_queue.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.hpp"
#include "base/timestamp.hpp"

namespace weft::operate::triage {
namespace {

// A lateness of less than a second is for those who cannot wait for its end.
constexpr std::int64_t granule(std::int64_t lateness_ns) {
  return lateness_ns < ns_per_s ? ns_per_s / 10 : ns_per_s;
}

}  // namespace

EventQueue::EventQueue(std::int64_t lateness_ns)
    : lateness_ns_(lateness_ns),
      granule_ns_(granule(lateness_ns)),
      ring_(std::bit_ceil(static_cast<std::size_t>(
          std::min<std::int64_t>(2 * (lateness_ns / granule_ns_) + 64, 8192)))) {}

std::int64_t EventQueue::slice_of(std::int64_t ns) const {
  return ns / granule_ns_ - (ns % granule_ns_ < 0 ? 1 : 0);
}

// The ring holds the slices [first_, first_ + its size); before anything was let go, first_ is
// not known.
bool EventQueue::is_near(std::int64_t slice) const {
  return is_started_ && slice - first_ < static_cast<std::int64_t>(ring_.size());
}

void EventQueue::push(const Evidence& evidence) {
  observe(evidence.at);
  const std::int64_t slice = slice_of(evidence.at);
  if (is_started_ && slice < first_) {
    ++counts_.late;
  } else if (is_near(slice)) {
    slot(slice).push_back(evidence);
    ++ring_size_;
  } else if (far_size_ < far_max) {
    far_[slice].push_back(evidence);
    ++far_size_;
  } else {
    ++counts_.ahead;
  }
}

void EventQueue::observe(std::int64_t at_ns) {
  seen_[seen_count_++ % window] = at_ns;
  if (seen_count_ % window != 0) return;
  auto sorted = seen_;
  auto* const quartile = sorted.begin() + window * 3 / 4;
  std::ranges::nth_element(sorted, quartile);
  advance(*quartile);
}

void EventQueue::advance(std::int64_t now_ns) {
  const std::int64_t mark =
      slice_of(now_ns < INT64_MIN + lateness_ns_ ? INT64_MIN : now_ns - lateness_ns_);
  if (!is_started_) {
    is_started_ = true;
    first_ = due_ = far_.empty() ? mark : std::min(mark, far_.begin()->first);
  }
  due_ = std::max(due_, mark);
}

void EventQueue::close() {
  advance(std::numeric_limits<std::int64_t>::max());
  due_ = std::numeric_limits<std::int64_t>::max();
}

std::int64_t EventQueue::watermark_ns() const {
  using Limits = std::numeric_limits<std::int64_t>;
  if (!is_started_) return Limits::min();
  const std::int64_t most = Limits::max() / granule_ns_;
  return std::clamp(due_, -most, most) * granule_ns_;
}

std::optional<std::int64_t> EventQueue::next_due_ns() const {
  const auto slice = next_slice();
  if (!slice) return std::nullopt;
  return (*slice + 1) * granule_ns_ + lateness_ns_;
}

std::uint64_t EventQueue::oldest_serial() const {
  std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
  const auto look = [&](const std::vector<Evidence>& slice) {
    for (const Evidence& e : slice) oldest = std::min(oldest, e.serial);
  };
  for (const auto& slice : ring_) look(slice);
  for (const auto& [at, slice] : far_) look(slice);
  return oldest;
}

void EventQueue::append_serials(std::vector<std::uint64_t>& out) const {
  const auto append = [&](const std::vector<Evidence>& slice) {
    for (const Evidence& e : slice) out.push_back(e.serial);
  };
  for (const std::vector<Evidence>& slice : ring_) append(slice);
  for (const auto& [number, slice] : far_) append(slice);
}

// The next slice with evidence. Empty stretches of any length cost one walk round the ring.
std::optional<std::int64_t> EventQueue::next_slice() const {
  std::optional<std::int64_t> found;
  if (!far_.empty()) found = far_.begin()->first;
  if (ring_size_ == 0) return found;
  for (std::size_t i = 0; i < ring_.size(); ++i) {
    const std::int64_t slice = first_ + static_cast<std::int64_t>(i);
    if (found && *found <= slice) return found;
    if (!ring_[static_cast<std::size_t>(slice) & (ring_.size() - 1)].empty()) return slice;
  }
  return found;
}

const std::vector<Evidence>* EventQueue::next() {
  if (!is_started_ || first_ >= due_) return nullptr;
  const auto slice = next_slice();
  if (!slice || *slice >= due_) {
    if (due_ != std::numeric_limits<std::int64_t>::max() && ring_size_ == 0)
      first_ = due_;
    else if (slice)
      first_ = std::min(*slice, due_);
    return nullptr;
  }
  released_.clear();
  if (is_near(*slice)) {
    released_.swap(slot(*slice));
    WEFT_CHECK(released_.size() <= ring_size_);
    ring_size_ -= released_.size();
  }
  if (const auto far = far_.find(*slice); far != far_.end()) {
    released_.insert(released_.end(), far->second.begin(), far->second.end());
    WEFT_CHECK(far->second.size() <= far_size_);
    far_size_ -= far->second.size();
    far_.erase(far);
  }
  WEFT_CHECK(*slice >= first_);
  first_ = *slice + 1;
  std::ranges::sort(released_,
                    [](const Evidence& a, const Evidence& b) { return order(a, b) < 0; });
  return &released_;
}

}  // namespace weft::operate::triage
