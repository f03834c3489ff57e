// Announcements to many listeners, none of which can hold up another, or whoever announces.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "serve/service.hpp"

namespace weft::serve {

// A ring of what was announced last, in numbers 1, 2, ... Whoever falls behind it loses what is
// oldest, and is told so. All calls may come from any thread.
class Bus {
 public:
  struct Bounds {
    std::size_t rows = 4096;
    std::size_t bytes = std::size_t{32} << 20;
  };
  Bus() : Bus(Bounds{}) {}
  explicit Bus(Bounds bounds) : bounds_(bounds) {}

  // Never waits for a listener. Cost: one allocation, whatever the number of listeners.
  void publish(Announcement announcement);
  // All who wait return at once.
  void wake();

  class Listener;

 private:
  // Shared: the ring and all listeners who have not sent it yet hold one copy.
  using Shared = std::shared_ptr<const Announcement>;

  const Bounds bounds_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Shared> ring_;
  std::uint64_t next_ = 1;  // number of the next announcement; ring_ ends before it
  std::uint64_t wakes_ = 0;
  std::size_t bytes_ = 0;
};

// Hears what is announced after its making. Of one thread.
class Bus::Listener {
 public:
  explicit Listener(Bus& bus);  // which must outlive it

  struct Heard {
    std::vector<std::shared_ptr<const Announcement>> rows;  // in order
    std::uint64_t lost = 0;                                 // before them
  };
  // What is new, at most `rows_max`; waits for it up to `patience`. Nothing after that time, and
  // when the bus was woken.
  Heard wait(std::chrono::milliseconds patience, std::size_t rows_max);

 private:
  Bus& bus_;
  std::uint64_t next_;
  std::uint64_t wakes_;
};

}  // namespace weft::serve
