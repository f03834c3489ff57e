// Lines of all feeds from a stream of NATS, which keeps them until the service has.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "adapt/live/nats.hpp"
#include "base/config.hpp"
#include "base/result.hpp"

namespace weft::adapt::live {

struct NatsFeedSettings {
  NatsUrl url;
  NatsAccess access;
  // Of the stream, where this makes it: copies on so many servers, and at most so many bytes, above
  // which senders are refused and keep their lines.
  std::int64_t replicas = 1;
  std::uint64_t bytes_max = std::uint64_t{1} << 30;
  std::chrono::milliseconds timeout{5'000};
};

// YAML: url, token_file, ca, certificate, key, replicas, size. Fails: every error found.
Result<NatsFeedSettings> read_nats_feed(const Config& config);

// A message of subject SUBJECT.FEED (records, syslog or evidence) holds lines of that feed. It is
// acknowledged once they are durable here, and delivered again where that did not happen: lines
// come at least once, in the order of the stream but for those that are delivered again. One
// consumer at a time; what one that was killed had not acknowledged the next gets after 5 s.
class NatsFeed {
 public:
  // Makes lines durable, of feed "record", "syslog" or "evidence". Where it fails, the same are
  // offered again. Called from the feed's thread.
  using Accept =
      std::function<Status(std::string_view feed, const std::vector<std::string>& lines)>;
  using Log = std::function<void(std::string_view)>;
  struct Counts {
    std::uint64_t messages = 0, lines = 0;  // acknowledged
    std::uint64_t failures = 0;             // connections, and lines that were not taken at once
    std::uint64_t dropped = 0;              // messages of subjects that are no feed
    std::uint64_t waiting = 0;              // messages in the stream, as of some seconds ago
    bool is_connected = false;
  };

  // Connects on a thread of its own, and again whenever the connection breaks. Makes the stream,
  // named as the subject in capitals, where there is none: kept on disk, until acknowledged.
  NatsFeed(NatsFeedSettings settings, Accept accept, Log log);
  // Ends within a second or the time that `accept` takes; what was not accepted is given back.
  ~NatsFeed();
  NatsFeed(const NatsFeed&) = delete;
  NatsFeed& operator=(const NatsFeed&) = delete;

  Counts counts() const;

 private:
  class Session;
  void run(const std::stop_token& stop);
  void note(const Status& status, bool is_connected);

  NatsFeedSettings settings_;
  Accept accept_;
  Log log_;
  mutable std::mutex mutex_;  // of counts_
  Counts counts_;
  std::string trouble_;  // of the thread
  std::jthread thread_;  // last: it uses the others
};

}  // namespace weft::adapt::live
