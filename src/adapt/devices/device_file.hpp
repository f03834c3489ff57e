// Which switches can be told to go out of service, and how each of them is reached.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/devices/dialect.hpp"
#include "base/config.hpp"
#include "base/result.hpp"

namespace weft::adapt::devices {

struct Device {
  std::string name;  // in the fabric
  Where where;
  const Dialect* dialect = nullptr;
  std::string address;             // HOST[:PORT]
  std::string username, password;  // the password itself
  // Paths. `key`: of a certificate, or of the user for ssh.
  std::string key, certificate, ca, known_hosts;
  std::string server_name, database;  // of gNMI, as gnmi::Target has them
  bool is_plain = false;              // without TLS
};
inline constexpr std::size_t devices_max = 10'000;

struct Settings {
  std::vector<Device> devices;
  bool dry_run = true;
  std::chrono::milliseconds timeout{10'000};  // of each command, or request with commands
  std::chrono::milliseconds settle{5'000};    // for traffic to go elsewhere, and links to go down
  std::string ssh = "/usr/bin/ssh";
};

// CSV with the columns device, dialect, address; optional are those of gNMI targets and
// known_hosts. Files that it names must be readable; passwords are read. Fails: Errc::parse,
// Errc::unknown, Errc::value, Errc::io, every one with its position: also for cells that the
// device's transport has no use for, and for addresses, names and users that ssh could take for
// options.
Result<std::vector<Device>> read_devices(std::string_view text, const std::string& file);

// YAML: switches: that file; dry_run, timeout, settle, ssh. Fails: every error found.
Result<Settings> read_settings(const Config& config);

}  // namespace weft::adapt::devices
