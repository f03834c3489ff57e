#include "adapt/gnmi/path_search.hpp"

#include <algorithm>
#include <numeric>

namespace weft::adapt::gnmi {

void PathSearch::restart() {
  taken_.clear();
  dropped_.clear();
  waiting_.clear();
  trial_.resize(count_);
  std::iota(trial_.begin(), trial_.end(), std::size_t{0});
}

void PathSearch::next() {
  trial_.clear();
  if (waiting_.empty()) return;
  trial_ = std::move(waiting_.back());
  waiting_.pop_back();
}

std::vector<std::size_t> PathSearch::paths() const {
  std::vector<std::size_t> out = taken_;
  out.insert(out.end(), trial_.begin(), trial_.end());
  std::ranges::sort(out);
  return out;
}

bool PathSearch::taken() {
  taken_.insert(taken_.end(), trial_.begin(), trial_.end());
  next();
  return !trial_.empty();
}

bool PathSearch::refused() {
  if (trial_.size() > 1) {
    const auto middle = trial_.begin() + static_cast<std::ptrdiff_t>(trial_.size() / 2);
    waiting_.emplace_back(middle, trial_.end());
    trial_.erase(middle, trial_.end());
    return true;
  }
  // What was taken before is refused now, or nothing is left to ask for.
  const bool is_changed = trial_.empty();
  for (const std::size_t path : trial_) {
    if (path < count_ && has_substitute_[path])
      waiting_.push_back({count_ + path});
    else
      dropped_.push_back(path % count_);
  }
  next();
  if (!is_changed && !(taken_.empty() && trial_.empty())) return true;
  restart();
  return false;
}

}  // namespace weft::adapt::gnmi
