// Error budgets and burn rates of a run of minutes. All in whole numbers: exact on boundaries.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "observe/sli/minutes.hpp"
#include "observe/sli/objectives.hpp"

namespace weft::observe::sli {

// Of the last `window` minutes: how many were bad, and how many may be, in millionths of a minute.
// A minute without data spends nothing, and the budget is that of the whole window, however much
// of it has data.
struct Budget {
  std::int64_t allowed_micro = 0;  // (1 - target) x window, rounded down
  std::int64_t bad = 0;

  double allowed_minutes() const { return static_cast<double>(allowed_micro) * 1e-6; }
  // Below 0 when it is overdrawn.
  double left_share() const {
    return 1 - static_cast<double>(bad) * 1e6 / static_cast<double>(allowed_micro);
  }
};
Budget budget_of(std::span<const Verdict> minutes, const Objective& objective);

// Does `bad` of `window` minutes burn the budget at least factor_milli / 1000 times as fast as it
// may? At exactly that rate it does.
bool burns(std::int64_t bad, std::int64_t window, Share target, std::int64_t factor_milli);

// Bad minutes per minute that may be bad, over the last `window` minutes.
double burn_rate(std::span<const Verdict> minutes, std::int64_t window, Share target);

// An alert that fired from the end of minute `first` to the end of `last`, indexes in the run.
struct Firing {
  std::size_t first = 0, last = 0;
};
// Both windows end with the minute at hand; before the run there is nothing but minutes without
// data, which count as those do. Cost: O(minutes).
std::vector<Firing> firings(std::span<const Verdict> minutes, const Alert& alert, Share target);

}  // namespace weft::observe::sli
