#include "serve/wire.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

#include "base/text.hpp"

namespace weft::serve {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t block_bytes = 16'384;
constexpr unsigned vanished_ms = 30'000;  // with bytes that it did not acknowledge
constexpr std::size_t common_name_bytes_max = 128;
constexpr std::uint64_t drained_bytes_max = 64 << 20;

int milliseconds_to(SteadyTime deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, INT_MAX));
}

// The end of a head behind `from`, or npos. Lines that end with "\n" alone end it too: they are
// refused later, but not waited on.
std::size_t end_of_head(std::string_view text, std::size_t from) {
  for (std::size_t at = text.find('\n', from); at != std::string_view::npos;
       at = text.find('\n', at + 1)) {
    if (text.substr(at + 1).starts_with('\n')) return at + 2;
    if (text.substr(at + 1).starts_with("\r\n")) return at + 3;
  }
  return std::string_view::npos;
}

}  // namespace

void Wire::FreeTls::operator()(ssl_st* tls) const { SSL_free(tls); }

Wire::Wire(Fd socket, int stop) : socket_(std::move(socket)), stop_(stop) {
  const int flags = ::fcntl(socket_.get(), F_GETFL);
  ::fcntl(socket_.get(), F_SETFL, flags | O_NONBLOCK);
  // Both fail on a socket file, where there is nothing to delay and nobody can vanish.
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &vanished_ms, sizeof vanished_ms);
}

Wire::~Wire() = default;

Wire::End Wire::wait(short events, SteadyTime deadline, Heed heed) const {
  std::array<pollfd, 2> on{{{socket_.get(), events, 0}, {stop_, POLLIN, 0}}};
  for (;;) {
    const int count = ::poll(on.data(), heed == Heed::stop ? 2 : 1, milliseconds_to(deadline));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return End::broken;
    if (count == 0) return End::late;
    return heed == Heed::stop && on[1].revents != 0 ? End::stopped : End::none;
  }
}

Wire::End Wire::wait_for_tls(int result, SteadyTime deadline, Heed heed) {
  const int error = SSL_get_error(tls_.get(), result);
  ERR_clear_error();  // the queue is the thread's, and the next call reads it
  switch (error) {
    case SSL_ERROR_WANT_READ:
      return wait(POLLIN, deadline, heed);
    case SSL_ERROR_WANT_WRITE:
      return wait(POLLOUT, deadline, heed);
    case SSL_ERROR_ZERO_RETURN:
      return End::closed;
    default:
      return End::broken;
  }
}

Wire::End Wire::handshake(ssl_ctx_st* context, SteadyTime deadline) {
  tls_.reset(SSL_new(context));
  if (tls_ == nullptr || SSL_set_fd(tls_.get(), socket_.get()) != 1) return End::broken;
  for (;;) {
    const int result = SSL_accept(tls_.get());
    if (result == 1) return End::none;
    if (const End end = wait_for_tls(result, deadline, Heed::stop); end != End::none) return end;
  }
}

std::optional<std::string> Wire::common_name() const {
  if (tls_ == nullptr || SSL_get_verify_result(tls_.get()) != X509_V_OK) return std::nullopt;
  const X509* certificate = SSL_get0_peer_certificate(tls_.get());
  if (certificate == nullptr) return std::nullopt;
  const X509_NAME* subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return std::nullopt;
  unsigned char* bytes = nullptr;
  const int size =
      ASN1_STRING_to_UTF8(&bytes, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (size < 0) return std::nullopt;
  std::string name(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  const bool is_printable =
      find_not_text(name) == std::string::npos && name.find_first_of("\t\r\n") == std::string::npos;
  if (name.empty() || name.size() > common_name_bytes_max || !is_printable) return std::nullopt;
  return name;
}

Wire::Got Wire::receive(std::span<char> out, SteadyTime deadline, Heed heed) {
  for (;;) {
    End end = End::none;
    if (tls_ != nullptr) {
      const int size = static_cast<int>(std::min<std::size_t>(out.size(), INT_MAX));
      const int count = SSL_read(tls_.get(), out.data(), size);
      if (count > 0) return {End::none, static_cast<std::size_t>(count)};
      end = wait_for_tls(count, deadline, heed);
    } else {
      const ssize_t count = ::recv(socket_.get(), out.data(), out.size(), 0);
      if (count > 0) return {End::none, static_cast<std::size_t>(count)};
      if (count == 0) return {End::closed, 0};
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return {End::broken, 0};
      end = wait(POLLIN, deadline, heed);
    }
    if (end != End::none) return {end, 0};
  }
}

Wire::HeadBytes Wire::take_head(std::size_t bytes_max, SteadyTime idle_until,
                                milliseconds patience) {
  bool has_begun = !ahead_.empty();
  SteadyTime deadline = has_begun ? std::chrono::steady_clock::now() + patience : idle_until;
  for (std::size_t searched = 0;;) {
    while (searched == 0 && ahead_.starts_with("\r\n")) ahead_.erase(0, 2);
    const bool begins = ahead_.empty() || (ahead_[0] >= 'A' && ahead_[0] <= 'Z');
    const std::size_t end = begins ? end_of_head(ahead_, searched) : ahead_.size();
    if (end != std::string::npos) {
      if (end > bytes_max) return {End::too_long, {}};
      HeadBytes out{End::none, ahead_.substr(0, end)};
      ahead_.erase(0, end);
      return out;
    }
    if (ahead_.size() > bytes_max) return {End::too_long, {}};
    searched = ahead_.size() - std::min<std::size_t>(ahead_.size(), 3);
    std::array<char, block_bytes> block{};
    // Between requests nothing is lost by stopping; inside one there is.
    const auto [how, count] = receive(block, deadline, ahead_.empty() ? Heed::stop : Heed::nothing);
    if (how != End::none) return {how, std::move(ahead_)};
    if (!std::exchange(has_begun, true)) deadline = std::chrono::steady_clock::now() + patience;
    ahead_.append(block.data(), count);
  }
}

Wire::Got Wire::read(std::span<char> out, SteadyTime deadline) {
  if (ahead_.empty()) return receive(out, deadline, Heed::nothing);
  const std::size_t count = std::min(out.size(), ahead_.size());
  std::copy_n(ahead_.begin(), count, out.begin());
  ahead_.erase(0, count);
  return {End::none, count};
}

Wire::Got Wire::write(std::string_view bytes, SteadyTime deadline) {
  for (;;) {
    End end = End::none;
    if (tls_ != nullptr) {
      const int size = static_cast<int>(std::min<std::size_t>(bytes.size(), INT_MAX));
      const int count = SSL_write(tls_.get(), bytes.data(), size);
      if (count > 0) return {End::none, static_cast<std::size_t>(count)};
      end = wait_for_tls(count, deadline, Heed::nothing);
    } else {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count > 0) return {End::none, static_cast<std::size_t>(count)};
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno != EAGAIN) return {End::broken, 0};
      end = wait(POLLOUT, deadline, Heed::nothing);
    }
    if (end != End::none) return {end, 0};
  }
}

bool Wire::is_gone() {
  char byte = 0;
  if (tls_ != nullptr) {
    const int count = SSL_peek(tls_.get(), &byte, 1);
    const int error = SSL_get_error(tls_.get(), count);
    ERR_clear_error();
    return count <= 0 && error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE;
  }
  const ssize_t count = ::recv(socket_.get(), &byte, 1, MSG_PEEK);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

void Wire::close_gently(milliseconds patience) {
  const SteadyTime deadline = std::chrono::steady_clock::now() + patience;
  if (tls_ != nullptr) {
    SSL_shutdown(tls_.get());
    ERR_clear_error();
  }
  ::shutdown(socket_.get(), SHUT_WR);
  // A close with unread bytes would reset the connection and the answer with it.
  std::array<char, block_bytes> block{};
  for (std::uint64_t drained = 0; drained < drained_bytes_max;) {
    const ssize_t count = ::recv(socket_.get(), block.data(), block.size(), 0);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return;
    if (count > 0) drained += static_cast<std::uint64_t>(count);
    if (count < 0 && wait(POLLIN, deadline, Heed::stop) != End::none) return;
    if (std::chrono::steady_clock::now() > deadline) return;
  }
}

std::string Wire::sender() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::getpeername(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  const void* bytes = nullptr;
  if (address.ss_family == AF_INET)
    bytes = &reinterpret_cast<const sockaddr_in*>(&address)->sin_addr;
  if (address.ss_family == AF_INET6)
    bytes = &reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr;
  if (bytes == nullptr ||
      ::inet_ntop(address.ss_family, bytes, text.data(), text.size()) == nullptr)
    return "";
  return text.data();
}

std::optional<std::uint32_t> Wire::user() const {
  ucred peer{};
  socklen_t size = sizeof peer;
  sockaddr_storage own{};
  socklen_t own_size = sizeof own;
  if (::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&own), &own_size) != 0 ||
      own.ss_family != AF_UNIX ||
      ::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return std::nullopt;
  return peer.uid;
}

}  // namespace weft::serve
