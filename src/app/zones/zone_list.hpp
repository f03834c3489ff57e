// The file of `weft zones`: zones, and where their services are.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "adapt/live/http_client.hpp"
#include "base/config.hpp"
#include "base/result.hpp"

namespace weft::app {

struct Zone {
  std::string name;               // letters, digits, ". _ -"
  std::vector<std::string> urls;  // of the service and its standby; the one that answers is at work
  std::string console;            // for links of people; default: the first of `urls`
  std::string token;              // file; "": none
  adapt::live::TlsFiles tls;
};

struct ZoneList {
  std::vector<Zone> zones;
  std::chrono::milliseconds every{5'000}, timeout{3'000};
};

// `file` is where the configuration stands: relative paths are relative to its folder. Bounds:
// 1,000 zones. Fails: every error found, with its place.
Result<ZoneList> read_zone_list(const Config& config, const std::string& file);

}  // namespace weft::app
