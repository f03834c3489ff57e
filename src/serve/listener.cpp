#include "serve/listener.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>

namespace weft::serve {
namespace {

constexpr int backlog = 512;
constexpr std::string_view file_mark = "unix:";

template <class T>
const T& as(const ListenAddress& address) {
  return reinterpret_cast<const T&>(address.bytes);
}
template <class T>
T& make(ListenAddress& address, sa_family_t family) {
  address.bytes.ss_family = family;
  address.size = sizeof(T);
  return reinterpret_cast<T&>(address.bytes);
}

std::unexpected<Error> failed(const ListenAddress& address, std::string_view what) {
  return fail(Errc::io, {},
              fmt::format("cannot listen at {}: {}: {}", address.text(), what,
                          std::generic_category().message(errno)));
}

// Takes away a socket file at which nobody listens.
Status clear_file(const ListenAddress& listen) {
  const std::string path = listen.path();
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return {};
    return failed(listen, "stat");
  }
  if (!S_ISSOCK(info.st_mode))
    return fail(Errc::io, {path}, "exists and is not a socket", "move it, or listen elsewhere");
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(probe.get(), listen.get(), listen.size) == 0)
    return fail(Errc::io, {path}, "is in use by another process",
                "stop the other, or listen elsewhere");
  if (errno != ECONNREFUSED) return failed(listen, "connect");
  if (::unlink(path.c_str()) != 0) return failed(listen, "unlink");
  return {};
}

std::uint64_t inode_of(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode) ? info.st_ino : 0;
}

}  // namespace

bool ListenAddress::is_local() const {
  if (is_file()) return true;
  if (bytes.ss_family == AF_INET) return ntohl(as<sockaddr_in>(*this).sin_addr.s_addr) >> 24 == 127;
  return IN6_IS_ADDR_LOOPBACK(&as<sockaddr_in6>(*this).sin6_addr);
}

// Ports of IPv4 and IPv6 stand at the same place.
std::uint16_t ListenAddress::port() const {
  return is_file() ? std::uint16_t{0} : ntohs(as<sockaddr_in>(*this).sin_port);
}

std::string ListenAddress::path() const {
  return is_file() ? as<sockaddr_un>(*this).sun_path : std::string();
}

std::string ListenAddress::host() const {
  std::array<char, INET6_ADDRSTRLEN> out{};
  if (!is_file()) ::getnameinfo(get(), size, out.data(), out.size(), nullptr, 0, NI_NUMERICHOST);
  return out.data();
}

std::string ListenAddress::text() const {
  if (is_file()) return fmt::format("{}{}", file_mark, path());
  return bytes.ss_family == AF_INET ? fmt::format("{}:{}", host(), port())
                                    : fmt::format("[{}]:{}", host(), port());
}

Result<ListenAddress> parse_listen_address(std::string_view text) {
  const auto wrong = [&](std::string_view what) {
    return fail(Errc::parse, {}, fmt::format("cannot listen at \"{}\": {}", text, what),
                "write ADDRESS:PORT, [IPV6]:PORT or unix:/path");
  };
  ListenAddress out;
  if (text.starts_with(file_mark)) {
    const std::string_view path = text.substr(file_mark.size());
    if (path.empty() || path.find('\0') != std::string::npos) return wrong("no path");
    if (path.size() >= sizeof(sockaddr_un::sun_path)) return wrong("a path of over 107 bytes");
    path.copy(make<sockaddr_un>(out, AF_UNIX).sun_path, path.size());
    return out;
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong("no port");
  const std::string_view digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || stop != digits.data() + digits.size()) return wrong("no such port");
  std::string host(text.substr(0, colon));
  if (host == "localhost") host = "127.0.0.1";
  bool is_address = false;
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    is_address = ::inet_pton(AF_INET6, host.c_str(), &make<sockaddr_in6>(out, AF_INET6).sin6_addr);
  } else {
    is_address = ::inet_pton(AF_INET, host.c_str(), &make<sockaddr_in>(out, AF_INET).sin_addr);
  }
  if (!is_address) return wrong("no IP address");
  reinterpret_cast<sockaddr_in&>(out.bytes).sin_port = htons(port);
  return out;
}

Result<Listener> Listener::open(const ListenAddress& listen) {
  if (listen.is_file()) WEFT_TRY_STATUS(clear_file(listen));
  Fd socket(::socket(listen.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return failed(listen, "socket");
  const int on = 1;
  if (!listen.is_file()) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (listen.bytes.ss_family == AF_INET6)
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  // Before the file exists, so that there is no moment in which others may connect.
  if (listen.is_file() && ::fchmod(socket.get(), S_IRUSR | S_IWUSR) != 0)
    return failed(listen, "chmod");
  if (::bind(socket.get(), listen.get(), listen.size) != 0) return failed(listen, "bind");
  if (::listen(socket.get(), backlog) != 0) return failed(listen, "listen");
  Listener out(std::move(socket), listen);
  if (listen.is_file()) {
    out.inode_ = inode_of(listen.path());
  } else {
    ::getsockname(out.get(), reinterpret_cast<sockaddr*>(&out.address_.bytes), &out.address_.size);
  }
  return out;
}

std::string sender_of(int socket) {
  ListenAddress from{.size = sizeof from.bytes};
  const int result = ::getpeername(socket, reinterpret_cast<sockaddr*>(&from.bytes), &from.size);
  return result == 0 ? from.host() : std::string();
}

std::optional<std::uint32_t> user_of(int socket) {
  int family = 0;
  socklen_t family_size = sizeof family;
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &family_size) != 0 ||
      family != AF_UNIX || ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return std::nullopt;
  return peer.uid;
}

Listener::~Listener() {
  // Only our own: another may have taken the place.
  if (socket_.valid() && inode_ != 0 && inode_of(address_.path()) == inode_)
    ::unlink(address_.path().c_str());
}

Fd Listener::accept() const { return Fd(::accept4(get(), nullptr, nullptr, SOCK_CLOEXEC)); }

}  // namespace weft::serve
