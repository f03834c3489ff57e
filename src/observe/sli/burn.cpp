#include "observe/sli/burn.hpp"

#include <algorithm>

namespace weft::observe::sli {
namespace {

__extension__ using Wide = __int128;

std::int64_t count_bad(std::span<const Verdict> minutes) {
  return std::ranges::count_if(minutes, is_bad);
}

std::span<const Verdict> last_of(std::span<const Verdict> minutes, std::int64_t window) {
  return minutes.last(std::min(minutes.size(), static_cast<std::size_t>(window)));
}

// The bad minutes of the last `window`, minute by minute.
class SlidingCount {
 public:
  SlidingCount(std::span<const Verdict> minutes, std::int64_t window)
      : minutes_(minutes), window_(static_cast<std::size_t>(window)) {}

  std::int64_t step(std::size_t i) {
    if (is_bad(minutes_[i])) ++bad_;
    if (i >= window_ && is_bad(minutes_[i - window_])) --bad_;
    return bad_;
  }

 private:
  std::span<const Verdict> minutes_;
  std::size_t window_;
  std::int64_t bad_ = 0;
};

}  // namespace

Budget budget_of(std::span<const Verdict> minutes, const Objective& objective) {
  return {.allowed_micro = (whole_ppb - objective.target.ppb) * objective.window_minutes / 1000,
          .bad = count_bad(last_of(minutes, objective.window_minutes))};
}

bool burns(std::int64_t bad, std::int64_t window, Share target, std::int64_t factor_milli) {
  return Wide{bad} * whole_ppb * 1000 >= Wide{factor_milli} * (whole_ppb - target.ppb) * window;
}

double burn_rate(std::span<const Verdict> minutes, std::int64_t window, Share target) {
  const auto bad = static_cast<double>(count_bad(last_of(minutes, window)));
  const auto may_be_bad = static_cast<double>((whole_ppb - target.ppb) * window) * 1e-9;
  return bad / may_be_bad;
}

std::vector<Firing> firings(std::span<const Verdict> minutes, const Alert& alert, Share target) {
  SlidingCount in_long(minutes, alert.long_minutes), in_short(minutes, alert.short_minutes);
  std::vector<Firing> out;
  bool firing = false;
  for (std::size_t i = 0; i < minutes.size(); ++i) {
    const std::int64_t bad_long = in_long.step(i), bad_short = in_short.step(i);
    const bool fires = burns(bad_long, alert.long_minutes, target, alert.factor_milli) &&
                       burns(bad_short, alert.short_minutes, target, alert.factor_milli);
    if (fires && !firing) out.push_back({i, i});
    if (fires) out.back().last = i;
    firing = fires;
  }
  return out;
}

}  // namespace weft::observe::sli
