// What the API counts of itself.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace weft::serve {

class Meters {
 public:
  // Upper bounds of the latency histogram's buckets, seconds.
  static constexpr std::array<double, 9> bounds{0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 1, 2.5, 10};

  // A request to a route (operationId; "none" where there is none), done in so many seconds.
  void count(std::string_view route, int status, double seconds);
  // Prometheus text; few hundred lines at most, for routes and statuses are few.
  std::string text() const;

  std::atomic<std::uint64_t> connections = 0, event_clients = 0, body_bytes = 0;  // just now
  std::atomic<std::uint64_t> accepted = 0, crowded_out = 0, handshakes_failed = 0,
                             events_dropped = 0;  // since the start

 private:
  struct Latency {
    std::array<std::uint64_t, bounds.size()> buckets{};  // not cumulative
    std::uint64_t count = 0;
    double sum = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::uint64_t, std::less<>> requests_;
  std::map<std::string, Latency, std::less<>> latencies_;
};

// Adds to a meter while it lives.
class Share {
 public:
  Share() = default;
  // None where the meter would exceed `most`.
  static bool take(std::atomic<std::uint64_t>& meter, std::uint64_t amount, std::uint64_t most,
                   Share& out);
  Share(Share&& other) noexcept
      : meter_(std::exchange(other.meter_, nullptr)), amount_(other.amount_) {}
  Share& operator=(Share&& other) noexcept {
    std::swap(meter_, other.meter_);
    std::swap(amount_, other.amount_);
    return *this;
  }
  ~Share() {
    if (meter_ != nullptr) *meter_ -= amount_;
  }

 private:
  std::atomic<std::uint64_t>* meter_ = nullptr;
  std::uint64_t amount_ = 0;
};

}  // namespace weft::serve
