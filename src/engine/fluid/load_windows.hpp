// What each resource carries in equal intervals of a run whose length is not known before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::engine::fluid {

// At most `most` intervals (even, at least 2) from time 0 on; when they are full, neighbours become
// one and the interval is twice as long. A run that has carried something is therefore cut into
// at least most / 2 intervals, and ends within one of the end of the last.
// Memory: most x resources that carry something floats, and 20 bytes a resource. Cost: 1 +
// log2(length of the run / first step) times most / 2 calls of `carried_at`.
class LoadWindows {
 public:
  explicit LoadWindows(std::size_t most) : most_(most) {}

  // Time goes on to `to` (seconds). `carried_at(at, out)` fills `out` with the bytes that each
  // resource has carried from the start to `at`, a time not after `to` and not before the last one.
  template <class CarriedAt>
  void advance(double to, CarriedAt carried_at) {
    if (to <= 0) return;
    if (width_ <= 0) width_ = to / static_cast<double>(most_);
    while (to > width_ * static_cast<double>(most_)) double_width();
    while (end_of(bytes_.size()) <= to && bytes_.size() < most_) {
      carried_at(end_of(bytes_.size()), now_);
      close_interval();
    }
  }

  std::size_t size() const { return bytes_.size(); }
  double width_s() const { return width_; }
  // By resource, in the interval from i x width_s().
  std::vector<float> bytes(std::size_t i) const;

 private:
  double end_of(std::size_t i) const { return width_ * static_cast<double>(i + 1); }
  void double_width();
  void close_interval();

  std::size_t most_;
  double width_ = 0;
  static constexpr std::uint32_t none = UINT32_MAX;
  std::vector<std::uint32_t> column_of_;  // by resource: its column; none before it carries
  std::uint32_t column_count_ = 0;
  std::vector<std::vector<float>> bytes_;  // by interval, by column: those that came later carry 0
  std::vector<float> open_;                // what the next one has carried already
  std::vector<double> before_, now_;       // carried up to the last interval's end; scratch
};

}  // namespace weft::engine::fluid
