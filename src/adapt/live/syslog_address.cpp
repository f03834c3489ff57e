#include "adapt/live/syslog_address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/fd.hpp"
#include "os/error.hpp"

namespace weft::adapt::live {
namespace {

constexpr std::array<std::string_view, 3> schemes{"udp://", "tcp://", "tls://"};

struct Name {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

template <class T>
Name name_of(const T& address) {
  Name out{.storage = {}, .size = sizeof address};
  std::memcpy(&out.storage, &address, sizeof address);
  return out;
}

template <class T>
T read_as(const sockaddr_storage& storage) {
  T out{};
  std::memcpy(&out, &storage, sizeof out);
  return out;
}

std::optional<Name> parse_name(const std::string& host, std::uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) return name_of(v4);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) return name_of(v6);
  return std::nullopt;
}

std::string text_of(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> out{};
  const char* text = ::inet_ntop(family, address, out.data(), out.size());
  return text != nullptr ? text : "";
}

bool set_option(const Fd& socket, int level, int name, int value) {
  return ::setsockopt(socket.get(), level, name, &value, sizeof value) == 0;
}

// Options that a kernel lacks leave what they would tell untold.
void ask_of_datagrams(const Fd& socket, std::size_t receive_bytes) {
  const int bytes = static_cast<int>(receive_bytes);
  if (!set_option(socket, SOL_SOCKET, SO_RCVBUFFORCE, bytes))
    set_option(socket, SOL_SOCKET, SO_RCVBUF, bytes);
  set_option(socket, SOL_SOCKET, SO_RXQ_OVFL, 1);
  set_option(socket, SOL_SOCKET, SO_TIMESTAMPNS, 1);
}

std::unexpected<Error> socket_error(const SyslogAddress& at, int error) {
  std::string hint = "see the operating system's reason";
  if (error == EADDRINUSE)
    hint = "another program is using it; stop that program, or choose another port";
  if (error == EADDRNOTAVAIL) hint = "use an address of this host, or 0.0.0.0 for all of them";
  if (error == EACCES) hint = "use a port above 1023, or run with CAP_NET_BIND_SERVICE";
  if (error == EMFILE) hint = "raise the limit on open files";
  return fail(Errc::io, {}, fmt::format("cannot listen on {}: {}", to_text(at), errno_text(error)),
              hint);
}

}  // namespace

Result<SyslogAddress> parse_syslog_address(const Token& token) {
  const auto wrong = [&](std::string_view why) {
    return fail(Errc::parse, token.where,
                fmt::format("{} is not a listen address: {}", quote(token.text), why),
                "write e.g. \"udp://172.31.0.1:514\", \"tcp://0.0.0.0:601\" or "
                "\"tls://[::]:6514\"");
  };
  std::string_view text = trim(token.text);
  std::size_t scheme = 0;
  while (scheme < schemes.size() && !text.starts_with(schemes[scheme])) ++scheme;
  if (scheme == schemes.size()) return wrong("it must begin with udp://, tcp:// or tls://");
  text.remove_prefix(schemes[scheme].size());

  const std::size_t colon = text.rfind(':');
  const bool bracketed = text.starts_with('[');
  if (colon == text.npos || (bracketed && (colon < 2 || text[colon - 1] != ']')))
    return wrong("the port is missing");
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data() + colon + 1, end, port);
  if (error != std::errc() || last != end) return wrong("the port must be 0 to 65535");

  const std::string host(bracketed ? text.substr(1, colon - 2) : text.substr(0, colon));
  const auto name = parse_name(host, port);
  if (!name || host.find('\0') != host.npos) return wrong("the host must be an IP address");
  if (bracketed != (name->storage.ss_family == AF_INET6))
    return wrong("IPv6 addresses, and no others, must be in brackets");
  const bool v6 = name->storage.ss_family == AF_INET6;
  const auto in4 = read_as<sockaddr_in>(name->storage);
  const auto in6 = read_as<sockaddr_in6>(name->storage);
  return SyslogAddress{
      .transport = static_cast<SyslogTransport>(scheme),
      .host = v6 ? text_of(AF_INET6, &in6.sin6_addr) : text_of(AF_INET, &in4.sin_addr),
      .port = port};
}

std::string to_text(const SyslogAddress& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}{}:{}", schemes[static_cast<std::size_t>(address.transport)],
                     v6 ? "[" : "", address.host, v6 ? "]" : "", address.port);
}

Result<Fd> open_socket(const SyslogAddress& address, std::size_t receive_bytes) {
  const auto name = parse_name(address.host, address.port);
  if (!name) return socket_error(address, EADDRNOTAVAIL);
  const bool datagrams = address.transport == SyslogTransport::udp;
  const int type = (datagrams ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC;
  Fd socket(::socket(name->storage.ss_family, type, 0));
  if (!socket.valid()) return socket_error(address, errno);
  if (datagrams)
    ask_of_datagrams(socket, receive_bytes);
  else
    set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);  // else a restart waits for old connections
  if (::bind(socket.get(), name->get(), name->size) != 0) return socket_error(address, errno);
  if (!datagrams && ::listen(socket.get(), SOMAXCONN) != 0) return socket_error(address, errno);
  return socket;
}

Result<SyslogAddress> bound_address(const Fd& socket, SyslogTransport transport) {
  Name name{.storage = {}, .size = sizeof(sockaddr_storage)};
  if (::getsockname(socket.get(), name.get(), &name.size) != 0)
    return system_failure("cannot read a socket's address", errno);
  const bool v6 = name.storage.ss_family == AF_INET6;
  const std::uint16_t port = v6 ? read_as<sockaddr_in6>(name.storage).sin6_port
                                : read_as<sockaddr_in>(name.storage).sin_port;
  return SyslogAddress{
      .transport = transport, .host = host_text(name.storage), .port = ntohs(port)};
}

std::string host_text(const sockaddr_storage& name) {
  if (name.ss_family == AF_INET) {
    const auto v4 = read_as<sockaddr_in>(name);
    return text_of(AF_INET, &v4.sin_addr);
  }
  if (name.ss_family != AF_INET6) return "";
  const auto v6 = read_as<sockaddr_in6>(name);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return text_of(AF_INET, &v6.sin6_addr.s6_addr[12]);
  return text_of(AF_INET6, &v6.sin6_addr);
}

}  // namespace weft::adapt::live
