// Durations counted on a logarithmic scale.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::observe::probe {

// Nanoseconds in buckets of at most 1/16 of their value; what is 2^40 ns (18 min) or more counts as
// just below that. Empty until the first value. Cost: some nanoseconds a value, 2.4 KB.
class Histogram {
 public:
  static constexpr unsigned sub_bits = 4;
  static constexpr unsigned value_bits = 40;
  static constexpr std::uint64_t value_max = (std::uint64_t{1} << value_bits) - 1;
  static constexpr std::size_t bucket_count = std::size_t{value_bits - sub_bits + 1} << sub_bits;

  static constexpr std::size_t bucket_of(std::uint64_t ns) {
    const std::uint64_t value = ns < value_max ? ns : value_max;
    const auto width = static_cast<unsigned>(std::bit_width(value));
    const unsigned shift = width > sub_bits ? width - sub_bits - 1 : 0;
    return (std::size_t{shift} << sub_bits) + (value >> shift);
  }
  // The least value of a bucket; of the last one plus 1, the bound of all.
  static constexpr std::uint64_t floor_of(std::size_t bucket) {
    constexpr std::size_t row = std::size_t{1} << sub_bits;
    if (bucket < 2 * row) return bucket;
    const std::size_t shift = bucket / row - 1;
    return static_cast<std::uint64_t>(bucket - shift * row) << shift;
  }

  void add(std::int64_t ns) {
    if (counts_.empty()) counts_.resize(bucket_count);
    ++counts_[bucket_of(ns > 0 ? static_cast<std::uint64_t>(ns) : 0)];
    ++total_;
  }
  void merge(const Histogram& other);
  void clear();

  std::uint64_t total() const { return total_; }
  std::uint64_t count(std::size_t bucket) const { return counts_.empty() ? 0 : counts_[bucket]; }
  // The middle of the bucket in which the value of rank ceil(share x total) lies, share in [0, 1];
  // -1 when there are no values.
  double quantile_ns(double share) const;

 private:
  std::vector<std::uint32_t> counts_;
  std::uint64_t total_ = 0;
};

}  // namespace weft::observe::probe
