// Messages on their way to the sink: batches, and what waits while it is busy.
#pragma once

#include <deque>
#include <optional>
#include <string_view>
#include <vector>

#include "adapt/live/syslog_listener.hpp"
#include "port/clock.hpp"

namespace weft::adapt::live {

class SyslogQueue {
 public:
  SyslogQueue(const SyslogOptions& options, SyslogListener::Sink sink,
              SyslogListener::Counts& counts)
      : options_(options), sink_(std::move(sink)), counts_(counts), batches_(1) {}

  void push(SyslogTransport from, std::string_view text, std::string_view sender,
            Timestamp received, port::Instant now);

  enum class Which : std::uint8_t { due, all };
  // Gives the sink the batches that are full or old, or all of them, until it is busy; then
  // nothing until the time of the next try.
  void offer(port::Clock& clock, Which which);

  bool empty() const { return batches_.front().messages.empty(); }
  bool busy() const { return busy_; }
  // No room for more datagrams.
  bool full() const { return bytes_ >= options_.queue_bytes; }
  // When offer() has something to do.
  std::optional<port::Instant> due() const;
  // When the sink was last busy; nothing before that says anything about how quiet senders are.
  port::Instant last_busy() const { return last_busy_; }

 private:
  struct Batch {
    std::vector<SyslogListener::Message> messages;
    std::size_t bytes = 0;
    port::Instant begun;
  };
  SyslogListener::Verdict give(Batch& batch);

  const SyslogOptions& options_;
  SyslogListener::Sink sink_;
  SyslogListener::Counts& counts_;
  std::deque<Batch> batches_;  // at least one, only the last may have room
  std::size_t bytes_ = 0;
  bool busy_ = false;
  port::Instant retry_at_, last_busy_;
};

}  // namespace weft::adapt::live
