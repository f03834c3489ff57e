#include "cli/serve_watch.hpp"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <string_view>

#include "base/timestamp.hpp"

namespace weft::cli {
namespace {

using Count = std::uint64_t SyslogCounts::*;
constexpr std::int64_t syslog_every_ns = 10 * ns_per_s;
constexpr std::array<std::string_view, 3> transports{"udp", "tcp", "tls"};

struct Meter {
  Count count;
  std::string_view name, type, help;
};
constexpr std::array meters{
    Meter{&SyslogCounts::dropped, "dropped_total", "counter",
          "Datagrams dropped because the queue was full."},
    Meter{&SyslogCounts::held, "held", "gauge", "Messages waiting for the store."},
    Meter{&SyslogCounts::cut, "cut_total", "counter", "Messages longer than 65,535 bytes."},
    Meter{&SyslogCounts::partial, "partial_total", "counter",
          "Messages ended by the end of their connection."},
    Meter{&SyslogCounts::connections, "connections", "gauge", "Open connections."},
    Meter{&SyslogCounts::refused, "refused_total", "counter", "Connections beyond the limit."},
    Meter{&SyslogCounts::expired, "expired_total", "counter",
          "Connections closed after being idle too long."},
    Meter{&SyslogCounts::broken, "broken_total", "counter", "Connections reset."},
    Meter{&SyslogCounts::untrusted, "untrusted_total", "counter", "TLS handshakes that failed."},
};

// What an operator has to do something about.
struct Loss {
  Count count;
  std::string_view text;
};
constexpr std::array losses{
    Loss{&SyslogCounts::dropped, "datagrams were dropped: more arrived than the store can write"},
    Loss{&SyslogCounts::cut, "messages were longer than 65,535 bytes and were truncated"},
    Loss{&SyslogCounts::refused, "connections were refused: too many are open"},
    Loss{&SyslogCounts::untrusted, "TLS handshakes failed"},
};

}  // namespace

SyslogCounts sum(std::span<const SyslogCounts> counts) {
  SyslogCounts out;
  for (const SyslogCounts& one : counts) {
    for (std::size_t i = 0; i < out.received.size(); ++i) out.received[i] += one.received[i];
    for (const Meter& meter : meters) out.*meter.count += one.*meter.count;
    if (!one.last_untrusted.empty()) out.last_untrusted = one.last_untrusted;
  }
  return out;
}

std::string syslog_metrics(const SyslogCounts& counts) {
  std::string out =
      "# HELP weft_syslog_received_total Messages of syslog.\n"
      "# TYPE weft_syslog_received_total counter\n";
  const auto to = std::back_inserter(out);
  for (std::size_t i = 0; i < transports.size(); ++i)
    fmt::format_to(to, "weft_syslog_received_total{{transport=\"{}\"}} {}\n", transports[i],
                   counts.received[i]);
  for (const Meter& meter : meters)
    fmt::format_to(to,
                   "# HELP weft_syslog_{0} {2}\n# TYPE weft_syslog_{0} {1}\nweft_syslog_{0} {3}\n",
                   meter.name, meter.type, meter.help, counts.*meter.count);
  return out;
}

std::vector<std::string> ServeWatch::news(port::Instant now, const serve::Health& health,
                                          const SyslogCounts& counts) {
  std::vector<std::string> out;
  tell_health(health, out);
  if (now - syslog_at_ >= syslog_every_ns) {
    syslog_at_ = now;
    tell_syslog(counts, out);
  }
  return out;
}

void ServeWatch::tell_health(const serve::Health& health, std::vector<std::string>& out) {
  const bool is_ready = health.is_alive && health.is_ready;
  if (is_ready == is_ready_) return;
  is_ready_ = is_ready;
  out.push_back(is_ready
                    ? "works again"
                    : fmt::format("acknowledgements and orders are suspended: {}", health.why));
}

void ServeWatch::tell_syslog(const SyslogCounts& counts, std::vector<std::string>& out) {
  for (const Loss& loss : losses) {
    const std::uint64_t more = counts.*loss.count - told_.*loss.count;
    if (more == 0) continue;
    out.push_back(fmt::format("syslog: {} {}", more, loss.text));
    if (loss.count == &SyslogCounts::untrusted)
      out.back() += fmt::format("; the last of {}", counts.last_untrusted);
  }
  told_ = counts;
}

}  // namespace weft::cli
