// Asking many devices at once, for no longer than allowed.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "operate/snapshot/devices.hpp"
#include "port/device_state.hpp"

namespace weft::operate::snapshot {

struct Limits {
  std::chrono::milliseconds patience{800};  // for all devices together
  std::size_t devices_max = 32;
  std::size_t at_once_max = 8;  // devices that are asked side by side
  std::size_t piece_bytes_max = 1 << 20;
  std::size_t device_bytes_max = 4 << 20;
  std::size_t bytes_max = 32 << 20;  // of all answers
};

struct DeviceAnswer {
  Asked asked;
  std::vector<port::StatePiece> pieces;
  std::string error;  // why there are none
  std::chrono::milliseconds took{0};
};

// One after the other the rounds of one service. A device that does not come back, against the
// port's contract, is given up 200 ms after the patience; it holds its thread until it does, and
// with `stuck_max` such threads nobody is asked any more.
class Collector {
 public:
  static constexpr std::size_t stuck_max = 64;

  // Shared: a thread that was given up still uses it.
  explicit Collector(std::shared_ptr<port::DeviceState> devices);

  // Answers in the order of `asked`, within the limits; the first have the first right to bytes.
  std::vector<DeviceAnswer> collect(const std::vector<Asked>& asked, const Limits& limits);

 private:
  struct Round;
  std::shared_ptr<port::DeviceState> devices_;
  std::vector<std::shared_ptr<Round>> unfinished_;
};

}  // namespace weft::operate::snapshot
