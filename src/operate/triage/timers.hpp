// Timers of rows that are named by an id.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

namespace weft::operate::triage {

// Earliest first, of equals the smallest id. A timer is never taken back: who gets one looks
// whether it still holds.
template <class RowId>
class Timers {
 public:
  using Timer = std::pair<std::int64_t, RowId>;

  void push(std::int64_t due, RowId row) { queue_.emplace(due, row); }
  // Takes out the next one, if it is due.
  std::optional<Timer> pop(std::int64_t now) {
    if (queue_.empty() || queue_.top().first > now) return std::nullopt;
    const Timer next = queue_.top();
    queue_.pop();
    return next;
  }
  std::optional<std::int64_t> next() const {
    return queue_.empty() ? std::nullopt : std::optional(queue_.top().first);
  }

 private:
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> queue_;
};

}  // namespace weft::operate::triage
