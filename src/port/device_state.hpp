// What a device can be asked about itself when something is wrong with it.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "os/keep.hpp"

namespace weft::port {

// One answer, as the device gave it.
struct StatePiece {
  std::string name;   // "routes", "neighbours", "interfaces", "log", "bgp", ...
  std::string text;   // of at most the bytes that were asked for
  std::string error;  // why there is none; "" where there is
  bool is_cut = false;
  std::chrono::milliseconds took{0};  // until it was there; 0: not known
};

// Cuts the text to that many bytes, in whole lines where it has some, and says so.
void cut(StatePiece& piece, std::size_t bytes_max, Keep keep);

class DeviceState {
 public:
  virtual ~DeviceState() = default;
  // All that a switch or host (by name) tells within `patience`: what is not there by then has an
  // error. Each piece is cut to `bytes_max`, keeping its end where it is a log.
  // Fails: Errc::unknown for a device that it does not know.
  // May be called from several threads at once, for different devices.
  virtual Result<std::vector<StatePiece>> collect(std::string_view device,
                                                  std::chrono::milliseconds patience,
                                                  std::size_t bytes_max) = 0;
};

}  // namespace weft::port
