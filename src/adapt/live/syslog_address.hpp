// Where syslog is listened for, and sockets there.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "base/text.hpp"

namespace weft::adapt::live {

enum class SyslogTransport : std::uint8_t { udp, tcp, tls };

struct SyslogAddress {
  SyslogTransport transport = SyslogTransport::udp;
  std::string host;        // IPv4 or IPv6, "0.0.0.0" and "::" for all own addresses
  std::uint16_t port = 0;  // 0: any free one

  friend bool operator==(const SyslogAddress&, const SyslogAddress&) = default;
};

// "udp://172.31.0.1:514", "tls://[::]:6514": numbers only, so that nothing depends on a name
// service. Fails: Errc::parse.
Result<SyslogAddress> parse_syslog_address(const Token& token);
// Parses back to the same.
std::string to_text(const SyslogAddress& address);

// A socket there that does not block; of UDP with the kernel's stamps and counts of drops asked
// for, of the others listening. `receive_bytes` is for UDP, and granted as far as allowed.
// Fails: Errc::io, saying what to do.
Result<Fd> open_socket(const SyslogAddress& address, std::size_t receive_bytes);
// The same with the port that the kernel chose.
Result<SyslogAddress> bound_address(const Fd& socket, SyslogTransport transport);

// Without the port; IPv4 also where it came to an IPv6 socket. "" of any other family.
std::string host_text(const sockaddr_storage& name);

}  // namespace weft::adapt::live
