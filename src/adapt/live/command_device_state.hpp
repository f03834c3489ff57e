// What devices say about themselves to an operator's own programs.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"
#include "base/result.hpp"
#include "model/fabric/fabric.hpp"
#include "os/keep.hpp"
#include "port/device_state.hpp"

namespace weft::adapt::live {

struct DeviceCommands {
  struct Piece {
    std::string name;
    std::vector<std::string> argv;  // may hold {device} and {host}
    Keep keep = Keep::begin;
  };
  // Devices whose whole name matches are asked for these pieces; the first group that fits counts.
  struct Group {
    std::string match;  // RE2; empty: all
    std::vector<std::string> environment;
    std::vector<Piece> pieces;
  };
  std::vector<Group> groups;
  std::chrono::milliseconds patience{800};  // with all devices of a snapshot together
};

// YAML: patience; devices: a list of {match, environment, pieces: {NAME: argv}}, or of a piece
// {run: argv, keep: begin | end}. Names of pieces hold small letters, digits and "_".
// Fails: every error found.
Result<DeviceCommands> read_device_commands(const Config& config);

class CommandDeviceState : public port::DeviceState {
 public:
  // `fabric` must outlive it.
  CommandDeviceState(const model::Fabric& fabric, DeviceCommands commands);

  // Runs the programs of a device side by side. {host} is the device's name as a host name can be:
  // with "-" for ":". A program that fails is a piece with an error, and with what it printed.
  // No group matches: no pieces. Cost: a thread and a process a piece.
  Result<std::vector<port::StatePiece>> collect(std::string_view device,
                                                std::chrono::milliseconds patience,
                                                std::size_t bytes_max) override;

 private:
  const model::Fabric& fabric_;
  DeviceCommands commands_;
};

}  // namespace weft::adapt::live
