// Which of many paths a target has, where it refuses all because of one.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace weft::adapt::gnmi {

// Asks for everything; halves what is refused; adds half to half what is taken. With n paths of
// which b are refused this takes at most 1 + 2 b log2(n) + n / 2 sessions, and one where b is 0;
// twice as many where refused paths have substitutes.
class PathSearch {
 public:
  // Path i is one of [0, count); where it is refused, and `has_substitute[i]`, count + i is tried.
  explicit PathSearch(std::size_t count, std::vector<bool> has_substitute = {})
      : count_(count), has_substitute_(std::move(has_substitute)) {
    has_substitute_.resize(count);
    restart();
  }

  // To be asked for next: ascending numbers of paths.
  std::vector<std::size_t> paths() const;
  // The target takes these. True where others are still to be tried, in a new session.
  bool taken();
  // The target refuses these. False where nothing is left to be tried: all begins anew.
  bool refused();
  // Refused one by one so far, and their substitutes too.
  const std::vector<std::size_t>& dropped() const { return dropped_; }

 private:
  void restart();
  void next();

  std::size_t count_;
  std::vector<bool> has_substitute_;
  std::vector<std::size_t> taken_, trial_, dropped_;
  std::vector<std::vector<std::size_t>> waiting_;  // the last is next
};

}  // namespace weft::adapt::gnmi
