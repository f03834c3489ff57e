#include "serve/bus.hpp"

#include <algorithm>
#include <utility>

namespace weft::serve {
namespace {

std::size_t bytes_of(const Announcement& row) { return row.event.size() + row.data.size(); }

}  // namespace

void Bus::publish(Announcement announcement) {
  auto row = std::make_shared<const Announcement>(std::move(announcement));
  {
    const std::lock_guard lock(mutex_);
    bytes_ += bytes_of(*row);
    ring_.push_back(std::move(row));
    ++next_;
    while (ring_.size() > bounds_.rows || (bytes_ > bounds_.bytes && ring_.size() > 1)) {
      bytes_ -= bytes_of(*ring_.front());
      ring_.pop_front();
    }
  }
  changed_.notify_all();
}

void Bus::wake() {
  {
    const std::lock_guard lock(mutex_);
    ++wakes_;
  }
  changed_.notify_all();
}

Bus::Listener::Listener(Bus& bus) : bus_(bus) {
  const std::lock_guard lock(bus_.mutex_);
  next_ = bus_.next_;
  wakes_ = bus_.wakes_;
}

Bus::Listener::Heard Bus::Listener::wait(std::chrono::milliseconds patience, std::size_t rows_max) {
  Heard out;
  std::unique_lock lock(bus_.mutex_);
  bus_.changed_.wait_for(lock, patience,
                         [&] { return bus_.next_ != next_ || bus_.wakes_ != wakes_; });
  wakes_ = bus_.wakes_;
  const std::uint64_t first = bus_.next_ - bus_.ring_.size();
  out.lost = first > next_ ? first - next_ : 0;
  next_ = std::max(next_, first);
  const auto from = static_cast<std::ptrdiff_t>(next_ - first);
  const auto count =
      static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(bus_.next_ - next_, rows_max));
  out.rows.assign(bus_.ring_.begin() + from, bus_.ring_.begin() + from + count);
  next_ += static_cast<std::uint64_t>(count);
  return out;
}

}  // namespace weft::serve
