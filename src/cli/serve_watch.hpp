// What `weft serve` tells of itself while it runs: syslog that was lost, and a store that fails.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "adapt/live/syslog_listener.hpp"
#include "port/clock.hpp"
#include "serve/service.hpp"

namespace weft::cli {

using SyslogCounts = adapt::live::SyslogListener::Counts;

SyslogCounts sum(std::span<const SyslogCounts> counts);

// Prometheus text: what became of syslog before it was a line of the service.
std::string syslog_metrics(const SyslogCounts& counts);

// Says what changed, for people who read the service's log: a store that fails or works again at
// once, losses of syslog at most every ten seconds.
class ServeWatch {
 public:
  std::vector<std::string> news(port::Instant now, const serve::Health& health,
                                const SyslogCounts& counts);

 private:
  void tell_health(const serve::Health& health, std::vector<std::string>& out);
  void tell_syslog(const SyslogCounts& counts, std::vector<std::string>& out);

  bool is_ready_ = true;
  port::Instant syslog_at_;
  SyslogCounts told_;
};

}  // namespace weft::cli
