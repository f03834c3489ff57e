#include "engine/jobs/time_histogram.hpp"

#include <algorithm>
#include <bit>

namespace weft::engine {
namespace {

// A bin holds the doubles that agree in exponent and 7 leading bits of the mantissa, which are the
// leading bits of their representation.
constexpr int bin_shift = 52 - 7;
constexpr std::uint64_t bin_first = std::bit_cast<std::uint64_t>(1e-12) >> bin_shift;

}  // namespace

void TimeHistogram::add(double seconds) {
  const std::uint64_t key = std::bit_cast<std::uint64_t>(std::max(seconds, 0.0)) >> bin_shift;
  const std::uint64_t bin = key > bin_first ? key - bin_first : 0;
  if (bin >= bins_.size()) bins_.resize(bin + 1);
  ++bins_[bin];
  ++count_;
  sum_ += seconds;
}

void TimeHistogram::add(const TimeHistogram& other, std::uint64_t times) {
  if (bins_.size() < other.bins_.size()) bins_.resize(other.bins_.size());
  for (std::size_t bin = 0; bin < other.bins_.size(); ++bin) bins_[bin] += other.bins_[bin] * times;
  count_ += other.count_ * times;
  sum_ += other.sum_ * static_cast<double>(times);
}

double TimeHistogram::quantile(double share) const {
  const double wanted = share * static_cast<double>(count_);
  std::uint64_t seen = 0;
  for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
    seen += bins_[bin];
    if (static_cast<double>(seen) >= wanted && seen > 0)
      return std::bit_cast<double>((bin + bin_first + 1) << bin_shift);
  }
  return 0;
}

}  // namespace weft::engine
