#include "observe/probe/histogram.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace weft::observe::probe {

void Histogram::merge(const Histogram& other) {
  if (other.counts_.empty()) return;
  if (counts_.empty()) counts_.resize(bucket_count);
  for (std::size_t i = 0; i < bucket_count; ++i) counts_[i] += other.counts_[i];
  total_ += other.total_;
}

void Histogram::clear() {
  std::ranges::fill(counts_, 0);
  total_ = 0;
}

double Histogram::quantile_ns(double share) const {
  if (total_ == 0) return -1;
  const double wanted = std::max(1.0, std::ceil(share * static_cast<double>(total_)));
  std::uint64_t below = 0;
  std::size_t bucket = 0;
  for (; bucket + 1 < bucket_count; ++bucket) {
    below += counts_[bucket];
    if (static_cast<double>(below) >= wanted) break;
  }
  WEFT_CHECK(below <= total_);
  const auto least = static_cast<double>(floor_of(bucket));
  const auto next = static_cast<double>(floor_of(bucket + 1));
  return next - least <= 1 ? least : (least + next) / 2;
}

}  // namespace weft::observe::probe
