// Times in bins of equal ratio.
#pragma once

#include <cstdint>
#include <vector>

namespace weft::engine {

class TimeHistogram {
 public:
  void add(double seconds);
  // All values of another one, `times` over.
  void add(const TimeHistogram& other, std::uint64_t times);
  std::uint64_t count() const { return count_; }
  double mean() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : 0; }
  // Upper bin edge at which `share` of all values is reached; within 1 % of the exact value.
  double quantile(double share) const;

 private:
  std::vector<std::uint64_t> bins_;
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

}  // namespace weft::engine
