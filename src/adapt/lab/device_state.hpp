// What a switch or host of a lab tells about itself.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/lab/lab.hpp"
#include "base/result.hpp"
#include "port/device_state.hpp"

namespace weft::adapt::lab {

class LabDeviceState : public port::DeviceState {
 public:
  // Fails: as open_lab().
  static Result<LabDeviceState> create(const std::string& lab_name);

  // Of every device: "interfaces", "routes", "neighbours", "counters", "sysctl", and of a switch
  // "processes", "log", and its daemons' answers: "bgp_summary", "bgp_neighbours", "bgp_routes",
  // "zebra_routes", "bgpd_config", "zebra_config", "bfd_peers". The kernel is asked first, the
  // daemons side by side; one that hangs costs the others nothing. The names of hosts and NICs are
  // known too. Cost: 5 to 30 ms where all answer.
  Result<std::vector<port::StatePiece>> collect(std::string_view device,
                                                std::chrono::milliseconds patience,
                                                std::size_t bytes_max) override;

 private:
  explicit LabDeviceState(std::unique_ptr<const Lab> lab) : lab_(std::move(lab)) {}
  std::unique_ptr<const Lab> lab_;
};

}  // namespace weft::adapt::lab
