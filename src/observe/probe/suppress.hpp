// Which silent hosts say nothing about the network.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weft::observe::probe {

// A probed host and what became of all probes to it in one window.
struct HostCounts {
  std::string host, rack;  // rack "": not known
  std::uint64_t sent = 0, lost = 0;
  bool heard = false;  // it answered something, though all probes may be lost
};

enum class HostVerdict : std::uint8_t {
  alive,
  unknown,    // too few probes to tell
  dead_host,  // silent, and the network is not to blame: its losses are no evidence
  dead_rack,  // silent as all of its rack: evidence
};
std::string_view to_text(HostVerdict verdict);

struct SuppressOptions {
  std::uint64_t sent_min = 3;  // probes before a host counts as silent
  // When more racks than this have silent hosts, hosts are not what failed. NetNORAD's UdpPinger
  // has the same rule and value (dead_racks_threshold 4).
  std::size_t dead_racks_threshold = 4;
};

// One verdict a host. A host is silent when all probes were lost and it answered nothing else
// either. A silent host is dead when another host of its rack answers, or when it is
// the only one probed there; where all of several are silent the rack's switch or power is.
// Hosts without a rack count as a rack each. Cost: O(n log n).
std::vector<HostVerdict> judge_hosts(std::span<const HostCounts> hosts,
                                     const SuppressOptions& options = {});

}  // namespace weft::observe::probe
