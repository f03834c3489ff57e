// Syslog as it comes over the network: datagrams (RFC 5426), TCP (RFC 6587), TLS (RFC 5425).
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "adapt/live/syslog_address.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"

namespace weft::adapt::live {

struct SyslogOptions {
  std::vector<std::string> listen;  // "udp://172.31.0.1:514", "tcp://...", "tls://[::]:6514"
  // PEM files, for tls:// only. With `client_ca` only clients with a certificate of it are heard.
  std::string certificate, key, client_ca;

  std::size_t connections_max = 1024;            // further ones are closed at once
  std::chrono::milliseconds idle{86'400'000};    // without a message, until a connection is closed
  std::chrono::milliseconds unfinished{60'000};  // for a handshake, or a message that has begun
  std::size_t queue_bytes = 64u << 20;           // held for a busy sink, give or take 5 MiB
  std::size_t receive_bytes = 8u << 20;          // of the kernel's queue of each UDP address

  std::size_t batch_max = 1'000;                // messages
  std::chrono::milliseconds batch_age{50};      // a smaller batch is given when its first is so old
  std::chrono::milliseconds retry{10};          // until a busy sink is asked again
  std::chrono::milliseconds stop_grace{1'000};  // for a busy sink at the end
};

// One thread serves all addresses; it also calls the sink. Memory is bounded by the options (a
// connection holds at most one message of 64 KiB). A sink that is busy stops the reading of
// connections, so that their senders wait; datagrams go on being queued until the queue is full,
// and then the kernel drops and counts them. At any time
//   received = taken + held + abandoned,   datagrams sent here = received + dropped + empty.
class SyslogListener {
 public:
  struct Message {
    std::string text;    // as it came: at most 65,535 bytes of any kind, never empty
    std::string sender;  // its address, without the port: "10.0.0.7"
    Timestamp received;  // of a datagram by the kernel
  };
  enum class Verdict : std::uint8_t { taken, busy };
  // Given batches in the order of arrival, never empty. Taken: may have moved the messages out.
  // Busy: must leave them as they are; they come again, perhaps with more behind them. Must return
  // soon, throw nothing and not stop the listener.
  using Sink = std::function<Verdict(std::vector<Message>&)>;

  struct Counts {
    std::array<std::uint64_t, 3> received{};  // messages, by SyslogTransport
    std::uint64_t taken = 0;
    std::uint64_t held = 0;        // now
    std::uint64_t abandoned = 0;   // the sink was busy to the end of stop_grace
    std::uint64_t dropped = 0;     // datagrams for which the kernel had no room; at most 1 s old
    std::uint64_t empty = 0;       // datagrams of no bytes
    std::uint64_t busy = 0;        // batches refused
    std::uint64_t cut = 0;         // messages longer than 65,535 bytes
    std::uint64_t bad_counts = 0;  // octet counts that are none
    std::uint64_t partial = 0;     // messages whose connection ended before they did

    std::uint64_t connections = 0;  // now
    std::uint64_t accepted = 0;
    std::uint64_t refused = 0;    // more than connections_max, or no descriptors left
    std::uint64_t expired = 0;    // idle or unfinished for too long
    std::uint64_t broken = 0;     // reset, or TLS without a goodbye
    std::uint64_t untrusted = 0;  // TLS handshakes that failed
    std::string last_untrusted;   // "10.0.0.7: why"

    std::uint64_t received_all() const { return received[0] + received[1] + received[2]; }
  };
  struct Port {
    SyslogAddress address;          // as bound
    std::size_t receive_bytes = 0;  // of UDP, as the kernel granted
  };

  // Fails: Errc::parse and Errc::value on options that make no sense, Errc::io when an address,
  // a certificate or a thread cannot be had; says which and what to do. The sink is called, by
  // another thread, from now until stop() returns.
  static Result<std::unique_ptr<SyslogListener>> open(const SyslogOptions& options, Sink sink);
  class Impl;
  explicit SyslogListener(std::unique_ptr<Impl> impl);  // open()'s
  SyslogListener(const SyslogListener&) = delete;
  SyslogListener& operator=(const SyslogListener&) = delete;
  ~SyslogListener();

  // Reads what has arrived, gives it to the sink and closes everything; where the queue has no
  // room to the end, connections are closed with the rest unread, which resets them. Takes at most
  // about twice stop_grace, beside the sink's own time. Later calls do nothing. Not from two
  // threads at once.
  void stop();
  // From any thread; as of the last turn of the loop, and exact after stop().
  Counts counts() const;
  // In the order of the options.
  const std::vector<Port>& ports() const;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::adapt::live
