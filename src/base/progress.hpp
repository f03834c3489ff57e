// Progress with an estimate of the time left, on a terminal only.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft {
inline namespace base {

// Rewrites one line on standard error at most ten times a second; silent when standard error is
// not a terminal or `quiet` is asked for. Reads the wall clock, which no result depends on.
class Progress {
 public:
  enum class Show : std::uint8_t { automatic, never };
  Progress(std::string what, double total, Show show = Show::automatic);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // A line on standard error before long work begins, for people and for logs.
  void announce(std::string_view line);
  void update(double done);
  void finish();

 private:
  std::string what_;
  double total_;
  bool active_, silent_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point start_, last_;
};

}  // namespace base
}  // namespace weft
