#include "observe/probe/suppress.hpp"

#include <array>
#include <map>
#include <string_view>

#include "base/check.hpp"

namespace weft::observe::probe {
namespace {

struct Rack {
  std::size_t hosts = 0, silent = 0;
};

// "rack:" keeps racks and hosts without one apart.
std::string rack_of(const HostCounts& host) {
  return host.rack.empty() ? "host:" + host.host : "rack:" + host.rack;
}

}  // namespace

std::string_view to_text(HostVerdict verdict) {
  constexpr std::array<std::string_view, 4> names{"alive", "unknown", "dead host", "dead rack"};
  return names[static_cast<std::size_t>(verdict)];
}

std::vector<HostVerdict> judge_hosts(std::span<const HostCounts> hosts,
                                     const SuppressOptions& options) {
  const auto is_known = [&](const HostCounts& host) { return host.sent >= options.sent_min; };
  const auto is_silent = [&](const HostCounts& host) {
    return is_known(host) && host.lost == host.sent && !host.heard;
  };
  std::map<std::string, Rack> racks;
  std::size_t troubled = 0;
  for (const HostCounts& host : hosts) {
    if (!is_known(host)) continue;
    Rack& rack = racks[rack_of(host)];
    ++rack.hosts;
    if (is_silent(host) && rack.silent++ == 0) ++troubled;
  }
  std::vector<HostVerdict> out;
  out.reserve(hosts.size());
  for (const HostCounts& host : hosts) {
    if (!is_silent(host)) {
      out.push_back(is_known(host) ? HostVerdict::alive : HostVerdict::unknown);
      continue;
    }
    const Rack& rack = racks[rack_of(host)];
    WEFT_CHECK(rack.silent > 0 && rack.silent <= rack.hosts);
    const bool all = rack.silent == rack.hosts && rack.hosts > 1;
    const bool widespread = troubled > options.dead_racks_threshold;
    out.push_back(all || widespread ? HostVerdict::dead_rack : HostVerdict::dead_host);
  }
  return out;
}

}  // namespace weft::observe::probe
