#include "serve/meters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace weft::serve {
namespace {

void add(std::string& out, std::string_view name, std::string_view type, std::string_view help,
         std::uint64_t value) {
  fmt::format_to(std::back_inserter(out), "# HELP {0} {2}\n# TYPE {0} {1}\n{0} {3}\n", name, type,
                 help, value);
}

}  // namespace

void Meters::count(std::string_view route, int status, double seconds) {
  const std::lock_guard lock(mutex_);
  ++requests_[{std::string(route), status}];
  Latency& latency = latencies_[std::string(route)];
  const auto at = std::ranges::lower_bound(bounds, seconds);
  if (at != bounds.end()) ++latency.buckets[static_cast<std::size_t>(at - bounds.begin())];
  ++latency.count;
  latency.sum += seconds;
}

std::string Meters::text() const {
  std::string out;
  add(out, "weft_http_connections", "gauge", "Open connections.", connections);
  add(out, "weft_http_event_clients", "gauge", "Clients of /v1/events.", event_clients);
  add(out, "weft_http_body_bytes", "gauge", "Bytes of requests in progress.", body_bytes);
  add(out, "weft_http_accepted_total", "counter", "Connections.", accepted);
  add(out, "weft_http_crowded_out_total", "counter", "Idle connections closed to make room.",
      crowded_out);
  add(out, "weft_http_handshakes_failed_total", "counter", "TLS handshakes.", handshakes_failed);
  add(out, "weft_http_events_dropped_total", "counter", "Clients of /v1/events that fell behind.",
      events_dropped);
  const std::lock_guard lock(mutex_);
  const auto to = std::back_inserter(out);
  out +=
      "# HELP weft_http_requests_total Requests answered.\n"
      "# TYPE weft_http_requests_total counter\n";
  for (const auto& [key, count] : requests_)
    fmt::format_to(to, "weft_http_requests_total{{route=\"{}\",code=\"{}\"}} {}\n", key.first,
                   key.second, count);
  out +=
      "# HELP weft_http_request_seconds From the end of the head to the end of the answer.\n"
      "# TYPE weft_http_request_seconds histogram\n";
  for (const auto& [route, latency] : latencies_) {
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < bounds.size(); ++i)
      fmt::format_to(to, "weft_http_request_seconds_bucket{{route=\"{}\",le=\"{}\"}} {}\n", route,
                     bounds[i], below += latency.buckets[i]);
    fmt::format_to(to, "weft_http_request_seconds_bucket{{route=\"{}\",le=\"+Inf\"}} {}\n", route,
                   latency.count);
    fmt::format_to(to, "weft_http_request_seconds_sum{{route=\"{}\"}} {}\n", route, latency.sum);
    fmt::format_to(to, "weft_http_request_seconds_count{{route=\"{}\"}} {}\n", route,
                   latency.count);
  }
  return out;
}

bool Share::take(std::atomic<std::uint64_t>& meter, std::uint64_t amount, std::uint64_t most,
                 Share& out) {
  std::uint64_t now = meter;
  do {
    if (amount > most || now > most - amount) return false;
  } while (!meter.compare_exchange_weak(now, now + amount));
  Share taken;
  taken.meter_ = &meter;
  taken.amount_ = amount;
  out = std::move(taken);
  return true;
}

}  // namespace weft::serve
