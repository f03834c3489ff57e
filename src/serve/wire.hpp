// One accepted connection, plain or TLS, on which nothing waits longer than it was told.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.hpp"

struct ssl_st;
struct ssl_ctx_st;

namespace weft::serve {

using SteadyTime = std::chrono::steady_clock::time_point;

class Wire {
 public:
  enum class End : std::uint8_t {
    none,      // it goes on
    closed,    // by the other side
    late,      // the time is over
    stopped,   // `stop` became readable
    too_long,  // a head of more bytes than allowed
    broken,
  };
  // Whether a wait heeds the wish to stop.
  enum class Heed : std::uint8_t { nothing, stop };

  // `stop` is a descriptor that becomes readable when all is to end; it must outlive the wire.
  Wire(Fd socket, int stop);
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  ~Wire();

  End handshake(ssl_ctx_st* context, SteadyTime deadline);
  // The common name of the client's certificate, which was verified; none where there is no such
  // certificate, or it names nobody in printable characters.
  std::optional<std::string> common_name() const;
  bool is_tls() const { return tls_ != nullptr; }

  // The bytes up to and with the next blank line. Waits till `idle_until` for the first of them,
  // then at most `patience` for the rest. Bytes that begin no request are given as they are.
  struct HeadBytes {
    End end = End::none;
    std::string text;
  };
  HeadBytes take_head(std::size_t bytes_max, SteadyTime idle_until,
                      std::chrono::milliseconds patience);

  // At least one byte, as many as are there. Does not heed the wish to stop.
  struct Got {
    End end = End::none;
    std::size_t bytes = 0;
  };
  Got read(std::span<char> out, SteadyTime deadline);
  // At least one byte.
  Got write(std::string_view bytes, SteadyTime deadline);
  // The other side has gone; asked without waiting.
  bool is_gone();
  // Ends the connection so that what was written still arrives, even where more was sent to us than
  // we took.
  void close_gently(std::chrono::milliseconds patience);

  int socket() const { return socket_.get(); }
  // Of the other side: "10.0.0.1"; "" over a socket file.
  std::string sender() const;
  // The user at the other side of a socket file.
  std::optional<std::uint32_t> user() const;

 private:
  struct FreeTls {
    void operator()(ssl_st* tls) const;
  };

  End wait(short events, SteadyTime deadline, Heed heed) const;
  // After an OpenSSL call: what to wait for, or how it ended.
  End wait_for_tls(int result, SteadyTime deadline, Heed heed);
  Got receive(std::span<char> out, SteadyTime deadline, Heed heed);

  Fd socket_;
  int stop_;
  std::unique_ptr<ssl_st, FreeTls> tls_;
  std::string ahead_;  // received and not taken
};

}  // namespace weft::serve
