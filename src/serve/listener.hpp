// Where the API listens: an address, or a socket file.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace weft::serve {

struct ListenAddress {
  sockaddr_storage bytes{};  // IPv4, IPv6 or a socket file
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
  bool is_file() const { return bytes.ss_family == AF_UNIX; }
  // Only this machine can reach it.
  bool is_local() const;
  std::string host() const;    // "10.0.0.1"; "" of a socket file
  std::uint16_t port() const;  // 0 of a socket file
  std::string path() const;    // of the socket file
  std::string text() const;
};

// "127.0.0.1:8080", "localhost:0", "[::1]:8080" or "unix:/run/weft.sock"; port 0 is any free one.
// Fails: Errc::parse.
Result<ListenAddress> parse_listen_address(std::string_view text);

// An open listening socket. A socket file gets mode 0600 and goes away with the listener; one that
// was left behind is replaced, unless another process listens on it.
class Listener {
 public:
  // Fails: Errc::io.
  static Result<Listener> open(const ListenAddress& address);
  Listener(Listener&&) noexcept = default;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  int get() const { return socket_.get(); }
  const ListenAddress& address() const { return address_; }  // with the port that it has now
  // The next connection; not valid when there is none.
  Fd accept() const;

 private:
  Listener(Fd socket, ListenAddress address) : socket_(std::move(socket)), address_(address) {}

  Fd socket_;
  ListenAddress address_;
  std::uint64_t inode_ = 0;  // of the socket file
};

// The host at the other side of a connection; "" over a socket file.
std::string sender_of(int socket);
// The user at the other side of a socket file.
std::optional<std::uint32_t> user_of(int socket);

}  // namespace weft::serve
