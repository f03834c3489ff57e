// The way of records to the service: durable on this machine first, then sent until acknowledged.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "adapt/live/http_client.hpp"
#include "adapt/live/spool.hpp"
#include "base/result.hpp"

namespace weft::adapt::live {

struct UplinkOptions {
  // "https://host[:port]"; "http://" only to this machine; "unix:/path/of/socket"; or NATS, see
  // parse_nats_url(), where a batch is a message of SUBJECT.FEED, FEED being the end of `path`.
  std::string url;
  std::string path = "/v1/records";
  std::string token;  // sent as "Authorization: Bearer", or to NATS as its token; "": none
  TlsFiles tls;       // read again after a failure: others renew them
  SpoolOptions spool;
  std::size_t batch_lines = 1000;
  std::size_t batch_bytes = std::size_t{1} << 20;
  std::chrono::milliseconds timeout{5000};  // of connecting, and of each silence
  std::chrono::milliseconds retry_first{100}, retry_max{10'000};
};

// POST URL/PATH, lines; answered 200 {"acknowledged": n} once the first n are durable
// there. 429 and 503 wait as long as Retry-After says (a minute at most), other failures longer
// each time. Lines come at least once, in order; their ids tell those who receive what came twice.
// A single line that is refused (400, 413, 422, too long for NATS) is put aside in the spool's
// refused.jsonl. NATS acknowledges what its stream has on disk.
class Uplink {
 public:
  struct Counts {
    std::uint64_t sent = 0, acknowledged = 0;  // lines
    std::uint64_t failures = 0;                // requests
    std::uint64_t refused = 0;                 // lines put aside
    std::uint64_t waiting_bytes = 0;
  };

  // Fails: Errc::parse and Errc::value on the URL and the files of TLS, Errc::io on the spool.
  // Sends in a thread of its own, for the service may take its time.
  static Result<Uplink> open(UplinkOptions options);
  Uplink(Uplink&&) noexcept;
  Uplink& operator=(Uplink&&) noexcept;
  // Ends within the time-out. What is not acknowledged stays in the spool.
  ~Uplink();

  // As Spool::append: durable here when it returns. Any thread.
  Status send(std::span<const std::string> lines, std::string_view mark = {});
  std::string mark() const;
  Counts counts() const;
  // Why the last request failed; "" when it did not.
  std::string trouble() const;
  // Waits until all is acknowledged, at most so long. Returns whether it is.
  bool flush(std::chrono::milliseconds most);

 private:
  struct Impl;
  explicit Uplink(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::adapt::live
