// The server's side of TLS, for sockets that do not block. Wraps OpenSSL.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.hpp"
#include "os/tls.hpp"

struct ssl_st;

namespace weft::adapt::live {

class TlsSession;

// A certificate and whom it lets in.
class TlsServer {
 public:
  // PEM files: own certificate with those between it and the authority, its key, and the
  // authorities of clients ("": clients need no certificate). TLS 1.2 and later.
  // Fails: Errc::io with the file and OpenSSL's reason. Never asks for a password.
  static Result<TlsServer> open(const std::string& certificate, const std::string& key,
                                const std::string& client_ca);
  // Of an accepted socket, which must outlive it. Fails: Errc::io when memory is short.
  Result<TlsSession> accept(int socket) const;

 private:
  explicit TlsServer(TlsContextHandle context) : context_(std::move(context)) {}
  TlsContextHandle context_;
};

class TlsSession {
 public:
  enum class State : std::uint8_t { data, want_read, want_write, end, failed };
  struct Read {
    State state = State::failed;
    std::size_t size = 0;  // of data
  };
  // Also does the handshake. One record at most: none stays behind in memory when `into` has room
  // for 16 KiB, so readiness of the socket tells of all there is.
  Read read(std::span<char> into);
  // The handshake is done, and the client trusted as far as that was asked for.
  bool ready() const { return ready_; }
  // Why the last read failed.
  const std::string& why() const { return why_; }
  // Says goodbye without waiting for an answer.
  void close();

 private:
  friend class TlsServer;
  struct Free {
    void operator()(ssl_st* session) const;
  };
  using Session = std::unique_ptr<ssl_st, Free>;
  explicit TlsSession(Session session) : session_(std::move(session)) {}
  State failed(int code);

  Session session_;
  bool ready_ = false;
  std::string why_;
};

}  // namespace weft::adapt::live
