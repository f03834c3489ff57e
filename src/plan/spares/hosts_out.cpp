#include "plan/spares/hosts_out.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace weft::plan::spares {

std::uint32_t enough_for(const Tail& above, double share) {
  const auto end = std::ranges::find_if(above, [&](double a) { return a <= 1 - share; });
  return static_cast<std::uint32_t>(end - above.begin());
}

double mean_above(const Tail& above, std::uint32_t s) {
  double sum = 0;
  for (std::size_t k = above.size(); k > s; --k) sum += above[k - 1];
  return sum;
}

HostsOut::HostsOut(std::span<const Batch> batches, std::uint32_t most)
    : batches_(batches.begin(), batches.end()) {
  double events = 0;
  for (const Batch& batch : batches_) {
    WEFT_CHECK(batch.hosts > 0);
    events += batch.per_hour * batch.repair_h;
    mean_ += batch.per_hour * batch.repair_h * batch.hosts;
  }
  // p[0] = exp(-events) may be too small to write: all are kept on a common scale.
  std::vector<double> p(std::size_t{most} + 1, 0);
  constexpr double large = 1e250;
  double log_scale = 0;
  p[0] = 1;
  for (std::uint32_t k = 1; k <= most; ++k) {
    double sum = 0;
    for (const Batch& batch : batches_)
      if (batch.hosts <= k)
        sum += batch.per_hour * batch.repair_h * batch.hosts * p[k - batch.hosts];
    p[k] = sum / k;
    if (p[k] > large) {
      for (std::uint32_t i = 0; i <= k; ++i) p[i] /= large;
      log_scale += std::log(large);
    }
  }
  const double scale = std::exp(std::max(log_scale - events, -700.0));
  double total = 0;
  for (const double share : p) total += share * scale;
  // From the top, so that small tails keep their digits; what is cut off counts as `most`.
  constexpr double rounding = 1e-9;
  above_.assign(p.size(), 0);
  double sum = total < 1 - rounding ? 1 - total : 0;
  for (std::uint32_t k = most; k > 0; --k) {
    sum += p[k] * scale;
    above_[k - 1] = std::min(sum, 1.0);
  }
}

double HostsOut::crossings_per_hour(std::uint32_t s) const {
  double rate = 0;
  for (const Batch& batch : batches_) {
    const double below = s >= batch.hosts ? 1 - above(s - batch.hosts) : 0;
    rate += batch.per_hour * (1 - above(s) - below);
  }
  return rate;
}

}  // namespace weft::plan::spares
