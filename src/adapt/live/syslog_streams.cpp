#include "adapt/live/syslog_streams.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "adapt/live/system_clock.hpp"
#include "observe/telemetry/syslog_framing.hpp"
#include "os/error.hpp"

namespace weft::adapt::live {
namespace {

using observe::telemetry::SyslogFraming;
using State = TlsSession::State;

constexpr std::size_t read_bytes_max = 64u << 10;  // of one connection in a turn
constexpr int turn_max = 64;                       // connections in a turn
constexpr std::int64_t doors_pause_ns = 100'000'000;

// Finds peers that vanished without a word, within two minutes.
void keep_alive(int socket) {
  const auto set = [socket](int level, int name, int value) {
    ::setsockopt(socket, level, name, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 20);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

}  // namespace

struct SyslogStreams::Connection {
  Fd fd;  // first: the session uses it
  SyslogTransport transport;
  std::string sender;
  std::optional<TlsSession> tls;
  SyslogFraming framing{SyslogFraming::Mode::stream};
  bool unfinished = false;  // amid a handshake or a message
  port::Instant since;      // so, or quiet
  State wanted = State::want_read;

  bool has_begun() const { return (tls && !tls->ready()) || !framing.between(); }
};

SyslogStreams::SyslogStreams(const SyslogOptions& options, SyslogQueue& queue,
                             SyslogListener::Counts& counts)
    : options_(options), queue_(queue), counts_(counts), buffer_(read_bytes_max) {}
SyslogStreams::~SyslogStreams() = default;

Status SyslogStreams::open(std::optional<TlsServer> tls) {
  tls_ = std::move(tls);
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  doors_epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (epoll_.valid() && doors_epoll_.valid()) return {};
  return system_failure("cannot watch sockets", errno);
}

Status SyslogStreams::add(Fd listening, SyslogTransport transport) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = static_cast<std::uint32_t>(doors_.size());
  if (::epoll_ctl(doors_epoll_.get(), EPOLL_CTL_ADD, listening.get(), &event) != 0)
    return system_failure("cannot watch a socket", errno);
  doors_.push_back({.fd = std::move(listening), .transport = transport});
  return {};
}

void SyslogStreams::accept(port::Clock& clock) {
  std::array<epoll_event, turn_max> events{};
  const int ready = ::epoll_wait(doors_epoll_.get(), events.data(), turn_max, 0);
  const port::Instant now = clock.now();
  for (int i = 0; i < ready; ++i) {
    const Door& door = doors_[events[static_cast<std::size_t>(i)].data.u32];
    for (int n = 0; n < turn_max; ++n)
      if (!accept_one(door, now)) break;
  }
}

bool SyslogStreams::accept_one(const Door& door, port::Instant now) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  Fd socket(::accept4(door.fd.get(), reinterpret_cast<sockaddr*>(&name), &size,
                      SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.valid()) {
    admit(std::move(socket), door.transport, host_text(name), now);
    return true;
  }
  switch (errno) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      ++counts_.refused;
      doors_open_at_ = now + doors_pause_ns;
      return false;
    case EAGAIN:
      return false;
    default:  // this one's own trouble: gone before it was let in
      return true;
  }
}

void SyslogStreams::admit(Fd socket, SyslogTransport transport, std::string sender,
                          port::Instant now) {
  if (counts_.connections >= options_.connections_max) {
    ++counts_.refused;
    return;
  }
  keep_alive(socket.get());
  auto connection = std::make_unique<Connection>();
  if (transport == SyslogTransport::tls) {
    auto session = tls_->accept(socket.get());
    if (!session) {
      ++counts_.refused;
      return;
    }
    connection->tls = *std::move(session);
  }
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(connections_.size()));
    connections_.emplace_back();
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = free_.back();
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0) {
    ++counts_.refused;
    return;
  }
  connection->fd = std::move(socket);
  connection->transport = transport;
  connection->sender = std::move(sender);
  connection->since = now;
  connection->unfinished = connection->has_begun();
  connections_[free_.back()] = std::move(connection);
  free_.pop_back();
  ++counts_.accepted;
  ++counts_.connections;
}

std::size_t SyslogStreams::read(port::Clock& clock, As long_as) {
  std::array<epoll_event, turn_max> events{};
  const int ready = ::epoll_wait(epoll_.get(), events.data(), turn_max, 0);
  std::size_t bytes = 0;
  for (int i = 0; i < ready; ++i) {
    if (long_as == As::sink_takes ? queue_.busy() : queue_.full()) break;
    bytes += read_one(events[static_cast<std::size_t>(i)].data.u32, clock);
    queue_.offer(clock, SyslogQueue::Which::due);
  }
  return bytes;
}

// As TlsSession::read, also of connections without TLS.
TlsSession::Read SyslogStreams::read_bytes(Connection& connection) {
  if (connection.tls) return connection.tls->read(buffer_);
  const ssize_t got = ::recv(connection.fd.get(), buffer_.data(), buffer_.size(), 0);
  if (got > 0) return {.state = State::data, .size = static_cast<std::size_t>(got)};
  if (got == 0) return {.state = State::end, .size = 0};
  const bool later = errno == EAGAIN || errno == EINTR;
  return {.state = later ? State::want_read : State::failed, .size = 0};
}

std::size_t SyslogStreams::read_one(std::uint32_t index, port::Clock& clock) {
  Connection& connection = *connections_[index];
  const auto [state, size] = read_bytes(connection);
  const port::Instant now = clock.now();
  switch (state) {
    case State::data:
      take(connection, size, now);
      watch(connection, index, State::want_read);
      return size;
    case State::want_read:
    case State::want_write:
      take(connection, 0, now);
      watch(connection, index, state);
      return 0;
    case State::end:
      close(index, End::orderly, now);
      return 0;
    case State::failed:
      close(index, connection.tls && !connection.tls->ready() ? End::untrusted : End::broken, now);
      return 0;
  }
  return 0;
}

template <class Feed>
void SyslogStreams::frame(Connection& connection, port::Instant now, Feed feed) {
  const Timestamp received = SystemClock().wall();
  const SyslogFraming::Counts& counts = connection.framing.counts();
  const std::uint64_t cut = counts.cut, bad_counts = counts.bad_counts;
  feed([&](std::string_view message) {
    queue_.push(connection.transport, message, connection.sender, received, now);
  });
  counts_.cut += counts.cut - cut;
  counts_.bad_counts += counts.bad_counts - bad_counts;
}

// The first `size` bytes of the buffer. A message that goes on keeps the time when it began, so
// that a byte now and then does not keep a connection alive.
void SyslogStreams::take(Connection& connection, std::size_t size, port::Instant now) {
  const std::uint64_t before = connection.framing.counts().messages;
  if (size > 0)
    frame(connection, now, [&](const SyslogFraming::Take& each) {
      connection.framing.feed({buffer_.data(), size}, each);
    });
  const bool completed = connection.framing.counts().messages != before;
  const bool unfinished = connection.has_begun();
  if (completed || unfinished != connection.unfinished) connection.since = now;
  connection.unfinished = unfinished;
}

void SyslogStreams::watch(Connection& connection, std::uint32_t index, State wanted) {
  if (wanted == connection.wanted) return;
  epoll_event event{};
  event.events = wanted == State::want_write ? EPOLLOUT : EPOLLIN;
  event.data.u32 = index;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.fd.get(), &event) == 0)
    connection.wanted = wanted;
}

void SyslogStreams::close(std::uint32_t index, End how, port::Instant now) {
  Connection& connection = *connections_[index];
  const std::uint64_t before = connection.framing.counts().messages;
  frame(connection, now, [&](const SyslogFraming::Take& each) { connection.framing.finish(each); });
  counts_.partial += connection.framing.counts().messages - before;
  if (how == End::expired) ++counts_.expired;
  if (how == End::broken) ++counts_.broken;
  if (how == End::untrusted) {
    ++counts_.untrusted;
    counts_.last_untrusted = connection.sender + ": " + connection.tls->why();
  }
  if (connection.tls && (how == End::orderly || how == End::expired)) connection.tls->close();
  connections_[index].reset();
  free_.push_back(index);
  --counts_.connections;
}

void SyslogStreams::expire(port::Instant now) {
  if (queue_.busy()) return;
  for (std::uint32_t i = 0; i < connections_.size(); ++i) {
    if (!connections_[i]) continue;
    const Connection& connection = *connections_[i];
    // While the sink is busy nobody is read, which is not their fault.
    const std::chrono::nanoseconds quiet(now - std::max(connection.since, queue_.last_busy()));
    if (quiet > (connection.unfinished ? options_.unfinished : options_.idle))
      close(i, End::expired, now);
  }
}

void SyslogStreams::close_all(port::Clock& clock) {
  for (std::uint32_t i = 0; i < connections_.size(); ++i)
    if (connections_[i]) close(i, End::orderly, clock.now());
}

}  // namespace weft::adapt::live
