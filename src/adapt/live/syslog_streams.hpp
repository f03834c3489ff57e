// Syslog over TCP and TLS: connections, their messages, and when to end them.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "adapt/live/syslog_queue.hpp"
#include "adapt/live/syslog_tls.hpp"
#include "base/fd.hpp"

namespace weft::adapt::live {

class SyslogStreams {
 public:
  SyslogStreams(const SyslogOptions& options, SyslogQueue& queue, SyslogListener::Counts& counts);
  ~SyslogStreams();
  SyslogStreams(const SyslogStreams&) = delete;
  SyslogStreams& operator=(const SyslogStreams&) = delete;

  Status open(std::optional<TlsServer> tls);
  Status add(Fd listening, SyslogTransport transport);
  // To be read where a connection has something, and where somebody wants one.
  int fd() const { return epoll_.get(); }
  int doors_fd() const { return doors_epoll_.get(); }

  // A turn: at most 64 new connections of each address.
  void accept(port::Clock& clock);
  // No connection can be had before, as descriptors have run out.
  port::Instant doors_open_at() const { return doors_open_at_; }
  enum class As : std::uint8_t { sink_takes, queue_holds };
  // A turn: at most 64 connections, 64 KiB of each; ends early when the sink is busy, or only when
  // the queue is full. Returns how many bytes came.
  std::size_t read(port::Clock& clock, As long_as);
  // Closes what was idle for too long.
  // Cost: a few ns a connection.
  void expire(port::Instant now);
  // Ends all connections; what of a message has come is one.
  void close_all(port::Clock& clock);

 private:
  struct Connection;
  struct Door {
    Fd fd;
    SyslogTransport transport;
  };
  enum class End : std::uint8_t { orderly, broken, untrusted, expired };

  // False when nobody is left to be let in for now.
  bool accept_one(const Door& door, port::Instant now);
  void admit(Fd socket, SyslogTransport transport, std::string sender, port::Instant now);
  std::size_t read_one(std::uint32_t index, port::Clock& clock);
  TlsSession::Read read_bytes(Connection& connection);
  void take(Connection& connection, std::size_t size, port::Instant now);
  void watch(Connection& connection, std::uint32_t index, TlsSession::State wanted);
  void close(std::uint32_t index, End how, port::Instant now);
  template <class Feed>
  void frame(Connection& connection, port::Instant now, Feed feed);

  const SyslogOptions& options_;
  SyslogQueue& queue_;
  SyslogListener::Counts& counts_;
  std::optional<TlsServer> tls_;
  Fd epoll_, doors_epoll_;
  std::deque<Door> doors_;
  std::vector<std::unique_ptr<Connection>> connections_;  // none: free
  std::vector<std::uint32_t> free_;
  std::vector<char> buffer_;
  port::Instant doors_open_at_;
};

}  // namespace weft::adapt::live
