#include "engine/packet/wheel.hpp"

#include "base/check.hpp"

namespace weft::engine::packet {

void Wheel::open(std::uint32_t width, std::uint32_t bucket_bits) {
  WEFT_CHECK(pending_ == 0 && bucket_bits < 32 && width <= width_max);
  width_ = width;
  buckets_ = 1u << std::max(bucket_bits, 6u);
  bucket_.assign(buckets_, {});
  busy_.assign(buckets_ / 64, 0);
  present_.reserve(4096);
}

void Wheel::clear() {
  bucket_.assign(buckets_, {});
  busy_.assign(busy_.size(), 0);
  chained_.clear();
  free_chained_ = none;
  tick_ = 0;
  present_.clear();
  early_.clear();
  at_ = 0;
  pending_ = 0;
  far_ = {};
}

// Most belong behind all others, or nearly. Where thousands of hosts go in step, a few do not, and
// would move thousands.
void Wheel::insert_present(const Event& event) {
  constexpr std::size_t near = 32;
  if (event.t >> width_ < tick_) return push_early(event);  // what comes from another shard
  const Key key = key_of(event);
  std::size_t i = present_.size();
  if (i - at_ > near && key < present_[i - near]) return push_early(event);
  present_.push_back(key);
  for (; i > at_ && key < present_[i - 1]; --i) present_[i] = present_[i - 1];
  present_[i] = key;
}

void Wheel::push_early(const Event& event) {
  early_.push_back(event);
  std::ranges::push_heap(early_, after());
}

Event Wheel::pop_early() {
  std::ranges::pop_heap(early_, after());
  const Event event = early_.back();
  early_.pop_back();
  return event;
}

// The first bucket with events after the present one, unwrapped; UINT64_MAX when there is none.
std::uint64_t Wheel::next_busy() const {
  const auto from = static_cast<std::uint32_t>((tick_ + 1) & (buckets_ - 1));
  const std::uint32_t words = buckets_ / 64;
  std::uint32_t word = from >> 6;
  std::uint64_t bits = busy_[word] & (~std::uint64_t{0} << (from & 63));
  for (std::uint32_t looked = 0; bits == 0 && looked < words; ++looked) {
    word = (word + 1) & (words - 1);
    bits = busy_[word];
  }
  if (bits == 0) return UINT64_MAX;
  const std::uint32_t bucket = (word << 6) + static_cast<std::uint32_t>(std::countr_zero(bits));
  return tick_ + 1 + ((bucket - from) & (buckets_ - 1));
}

bool Wheel::advance() {
  if (pending_ == 0) return false;
  std::uint64_t tick = next_busy();
  if (!far_.empty()) tick = std::min(tick, far_.top().t >> width_);
  WEFT_CHECK(tick != UINT64_MAX && tick > tick_);
  tick_ = tick;
  present_.clear();
  at_ = 0;
  collect(static_cast<std::uint32_t>(tick & (buckets_ - 1)));
  while (!far_.empty() && far_.top().t >> width_ == tick) {
    present_.push_back(key_of(far_.top()));
    far_.pop();
  }
  sort_present();
  return true;
}

void Wheel::collect(std::uint32_t bucket) {
  busy_[bucket >> 6] &= ~(std::uint64_t{1} << (bucket & 63));
  for (std::uint32_t link = bucket_[bucket].arrivals; link != none;) {
    const Link& l = links_[link];
    __builtin_prefetch(&l.at(l.head));
    __builtin_prefetch(&l.at(l.head + 1));
    present_.push_back(key_of({l.due, EventKind::arrival, link}));
    link = l.next_due;
    if (link != none) __builtin_prefetch(&links_[link]);
  }
  for (std::uint32_t slot = bucket_[bucket].others; slot != none;) {
    present_.push_back(key_of(chained_[slot].event));
    const std::uint32_t next = chained_[slot].next;
    chained_[slot].next = free_chained_;
    free_chained_ = slot;
    slot = next;
  }
  bucket_[bucket] = {};
}

void Wheel::sort_present() {
  constexpr std::size_t few = 16;
  if (present_.size() > few) {
    std::ranges::sort(present_);
    return;
  }
  for (std::size_t i = 1; i < present_.size(); ++i) {
    const Key key = present_[i];
    std::size_t j = i;
    for (; j > 0 && key < present_[j - 1]; --j) present_[j] = present_[j - 1];
    present_[j] = key;
  }
}

}  // namespace weft::engine::packet
