#include "serve/listener.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <system_error>

namespace weft::serve {
namespace {

constexpr int backlog = 512;
constexpr std::string_view file_mark = "unix:";

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
};

std::unexpected<Error> failed(const ListenAddress& address, std::string_view what) {
  return fail(Errc::io, {},
              fmt::format("cannot listen at {}: {}: {}", address.text(), what,
                          std::generic_category().message(errno)));
}

std::optional<in_addr> ipv4(const std::string& host) {
  in_addr out{};
  if (::inet_pton(AF_INET, host.c_str(), &out) != 1) return std::nullopt;
  return out;
}
std::optional<in6_addr> ipv6(const std::string& host) {
  in6_addr out{};
  if (::inet_pton(AF_INET6, host.c_str(), &out) != 1) return std::nullopt;
  return out;
}

template <class T>
Address address_of(const T& from) {
  Address out;
  std::memcpy(&out.bytes, &from, sizeof from);
  out.size = sizeof from;
  return out;
}

Address socket_address(const ListenAddress& listen) {
  if (listen.is_file()) {
    sockaddr_un out{};
    out.sun_family = AF_UNIX;
    std::copy_n(listen.path.begin(), std::min(listen.path.size(), sizeof out.sun_path - 1),
                out.sun_path);
    return address_of(out);
  }
  if (const auto four = ipv4(listen.host)) {
    sockaddr_in out{};
    out.sin_family = AF_INET;
    out.sin_port = htons(listen.port);
    out.sin_addr = *four;
    return address_of(out);
  }
  sockaddr_in6 out{};
  out.sin6_family = AF_INET6;
  out.sin6_port = htons(listen.port);
  out.sin6_addr = ipv6(listen.host).value_or(in6_addr{});
  return address_of(out);
}

std::uint16_t bound_port(int socket) {
  Address own;
  own.size = sizeof own.bytes;
  if (::getsockname(socket, own.get(), &own.size) != 0) return 0;
  if (own.bytes.ss_family == AF_INET)
    return ntohs(reinterpret_cast<const sockaddr_in*>(&own.bytes)->sin_port);
  return ntohs(reinterpret_cast<const sockaddr_in6*>(&own.bytes)->sin6_port);
}

// Takes away a socket file at which nobody listens.
Status clear_file(const ListenAddress& listen) {
  struct stat info{};
  if (::lstat(listen.path.c_str(), &info) != 0) {
    if (errno == ENOENT) return {};
    return failed(listen, "stat");
  }
  if (!S_ISSOCK(info.st_mode))
    return fail(Errc::io, {listen.path}, "is no socket, and in the way",
                "move it, or listen elsewhere");
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Address address = socket_address(listen);
  if (::connect(probe.get(), address.get(), address.size) == 0)
    return fail(Errc::io, {listen.path}, "somebody listens there already",
                "stop the other, or listen elsewhere");
  if (errno != ECONNREFUSED) return failed(listen, "connect");
  if (::unlink(listen.path.c_str()) != 0) return failed(listen, "unlink");
  return {};
}

std::uint64_t inode_of(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode) ? info.st_ino : 0;
}

}  // namespace

bool ListenAddress::is_local() const {
  if (is_file()) return true;
  if (const auto four = ipv4(host)) return ntohl(four->s_addr) >> 24 == 127;
  const auto six = ipv6(host);
  return six && IN6_IS_ADDR_LOOPBACK(&*six);
}

std::string ListenAddress::text() const {
  if (is_file()) return fmt::format("{}{}", file_mark, path);
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

Result<ListenAddress> parse_listen_address(std::string_view text) {
  const auto wrong = [&](std::string_view what) {
    return fail(Errc::parse, {}, fmt::format("cannot listen at \"{}\": {}", text, what),
                "write ADDRESS:PORT, [IPV6]:PORT or unix:/path");
  };
  ListenAddress out;
  if (text.starts_with(file_mark)) {
    out.path = text.substr(file_mark.size());
    if (out.path.empty() || out.path.find('\0') != std::string::npos) return wrong("no path");
    if (out.path.size() >= sizeof(sockaddr_un::sun_path)) return wrong("a path of over 107 bytes");
    return out;
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong("no port");
  const std::string_view port = text.substr(colon + 1);
  const auto [stop, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
  if (error != std::errc() || stop != port.data() + port.size()) return wrong("no such port");
  std::string_view host = text.substr(0, colon);
  if (host == "localhost") host = "127.0.0.1";
  const bool is_bracketed = host.starts_with('[') && host.ends_with(']') && host.size() > 2;
  if (is_bracketed) host = host.substr(1, host.size() - 2);
  out.host = host;
  if (!(is_bracketed ? ipv6(out.host).has_value() : ipv4(out.host).has_value()))
    return wrong("no IP address");
  return out;
}

Result<Listener> Listener::open(const ListenAddress& listen) {
  if (listen.is_file()) WEFT_TRY_STATUS(clear_file(listen));
  Address address = socket_address(listen);
  Fd socket(::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return failed(listen, "socket");
  const int on = 1;
  if (!listen.is_file()) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.bytes.ss_family == AF_INET6)
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  // Before the file exists, so that there is no moment in which others may connect.
  if (listen.is_file() && ::fchmod(socket.get(), S_IRUSR | S_IWUSR) != 0)
    return failed(listen, "chmod");
  if (::bind(socket.get(), address.get(), address.size) != 0) return failed(listen, "bind");
  if (::listen(socket.get(), backlog) != 0) return failed(listen, "listen");
  Listener out(std::move(socket), listen);
  if (listen.is_file()) {
    out.inode_ = inode_of(listen.path);
  } else {
    out.address_.port = bound_port(out.get());
  }
  return out;
}

Listener::~Listener() {
  // Only our own: another may have taken the place.
  if (socket_.valid() && inode_ != 0 && inode_of(address_.path) == inode_)
    ::unlink(address_.path.c_str());
}

Fd Listener::accept() const { return Fd(::accept4(get(), nullptr, nullptr, SOCK_CLOEXEC)); }

}  // namespace weft::serve
