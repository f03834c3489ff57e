// For tests: ports of this machine for servers that cannot choose one themselves.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "base/check.hpp"
#include "base/fd.hpp"

namespace weft {
inline namespace base {

// A port of 127.0.0.1 that was free just now; `type`: SOCK_STREAM or SOCK_DGRAM.
inline std::uint16_t free_port(int type) {
  const Fd fd(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  WEFT_CHECK(::bind(fd.get(), reinterpret_cast<sockaddr*>(&at), size) == 0);
  WEFT_CHECK(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0);
  return ntohs(at.sin_port);
}

}  // namespace base
}  // namespace weft
