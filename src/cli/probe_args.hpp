// What `weft probe` was asked to do: to probe hosts, or to plan which probes cross which links.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::cli {

struct Common;

struct ProbeArgs {
  std::vector<std::string> targets, classes{"0"};
  std::string key, list, fabric, plan, from, addresses, bind, metrics;
  std::string ports = "49152-49215";
  std::optional<double> rate;  // probes a second; 0: as fast as answers come
  std::uint64_t count = 0;     // of each flow; 0: no bound
  std::string duration, timeout = "100 ms", late = "1 s", window = "10 s";
  std::uint32_t stamp_every = 0;  // 0: by the rate
  bool one_way = false, sweep = false;
  bool answers = false;     // a sweep of the paths that answers take
  bool twin = false;        // a simulated fabric answers
  std::string truth;        // file for its faults
  bool hash_paths = false;  // of targets; a plan says its own
  std::uint32_t ttl_max = 16;
  // Of `weft probe plan`, which takes `fabric` and `window` too.
  bool make_plan = false;
  std::string learned;
  std::string down;                          // cables and switches out of service
  std::uint64_t crossings = 1;               // of each link in a window
  std::uint32_t flows_each = 0;              // 0: by the size of the fabric
  std::optional<std::uint32_t> routes_each;  // over each transit route; none: by the fabric's size
  double rate_max = 0;                       // probes a second of one host; 0: no bound
  std::uint16_t target_port = 8620;
};

int probe_command(const Common& common, const ProbeArgs& args);
int probe_twin_command(const Common& common, const ProbeArgs& args);
int probe_sweep_command(const Common& common, const ProbeArgs& args);
int probe_plan_command(const Common& common, const ProbeArgs& args);

}  // namespace weft::cli
