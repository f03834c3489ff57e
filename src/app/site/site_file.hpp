// The site file: one fabric, the service that operates it, and everything that feeds the service.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/result.hpp"

namespace weft::app {

// Something to listen on that must be free before the site starts.
struct SitePort {
  enum class Protocol : std::uint8_t { tcp, udp } protocol = Protocol::tcp;
  std::string address;  // HOST:PORT
  std::string what;     // "service.listen"
};

// A file that must be readable.
struct SiteNeed {
  std::string what, path;
};

// A sub-command of weft that produces records.
struct SiteFeed {
  std::string name;                    // "snmp", "snmp 2"
  std::vector<std::string> arguments;  // behind the program
  // Whether it sends its records itself; otherwise it prints them and the supervisor sends them.
  bool sends = false;
  std::string node;  // of a lab: the namespace it runs in; "": here
};

struct SiteProbes {
  enum class Paths : std::uint8_t { learned, hash };
  std::string key, addresses;
  std::vector<std::string> hosts;  // names; empty: all of the fabric
  // Command lines with {device}, {host}, {file}, {folder}: how a program is run on a host and how a
  // file gets there. Empty: everything happens on this machine.
  std::vector<std::string> at, copy;
  std::string program, folder;  // of weft and its files on the hosts
  Paths paths = Paths::learned;
  std::int64_t port_first = 0, port_last = 0;  // source ports
  std::string window, timeout, late;           // as options of weft probe, without blanks
  std::int64_t crossings = 0, flows = 0;       // of each link in a window; flows 0: by its size
  std::int64_t routes = -1;                    // flows over each transit route; -1: by its size
  std::int64_t targets = 0, ttl_max = 0;       // of a sweep from one NIC
  double sweep_rate = 0;                       // probes a second
  std::int64_t renew_ns = 0;                   // the longest life of a plan
  bool responders = true, one_way = false;
};

struct Site {
  std::string file;  // absolute
  std::string name, fabric, state, lab, inventory, catalogue;
  std::string store, listen, tokens, certificate, key, client_ca, snapshots, traces;
  std::vector<std::string> syslog;
  std::string config;           // file with the sections of weft serve --config; "": none
  bool is_config_here = false;  // they are the `operate` section of the site file itself
  std::string url, token, ca, client_certificate, client_key;  // how feeds reach the service
  std::vector<SiteFeed> feeds;
  std::optional<SiteProbes> probes;
  std::vector<SiteNeed> files;
  std::vector<SitePort> ports;
};

// `file` is where the configuration stands: relative paths are relative to its folder. Bounds:
// 1,000 feeds. Fails: every error found, with its place.
Result<Site> read_site(const Config& config, const std::string& file);

// The options of `weft serve` for it.
std::vector<std::string> serve_arguments(const Site& site);

}  // namespace weft::app
