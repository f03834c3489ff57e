#include "adapt/live/syslog_datagrams.hpp"

#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "adapt/live/datagram_header.hpp"
#include "adapt/live/system_clock.hpp"
#include "os/error.hpp"

namespace weft::adapt::live {
namespace {

constexpr std::size_t call_max = 64;  // datagrams of one system call
constexpr std::size_t turn_calls = 16;
constexpr std::size_t datagram_bytes = 65'535;

}  // namespace

// Shared by all sockets. Pages that no datagram reaches are never touched.
struct SyslogDatagrams::Buffers {
  using Datagram = std::array<char, datagram_bytes>;

  std::unique_ptr<Datagram[]> bytes = std::make_unique_for_overwrite<Datagram[]>(call_max);
  std::array<mmsghdr, call_max> headers{};
  std::array<iovec, call_max> parts{};
  std::array<sockaddr_storage, call_max> names{};
  std::array<ControlBytes<128>, call_max> controls{};

  // Most datagrams come from the sender of the one before.
  sockaddr_storage last{};
  socklen_t last_size = 0;
  std::string last_text;

  void prepare() {
    for (std::size_t i = 0; i < call_max; ++i) {
      parts[i] = {bytes[i].data(), bytes[i].size()};
      headers[i].msg_hdr =
          header_for(parts[i], std::as_writable_bytes(std::span(&names[i], 1)), controls[i].bytes);
    }
  }
};

SyslogDatagrams::SyslogDatagrams(SyslogQueue& queue, SyslogListener::Counts& counts)
    : queue_(queue), counts_(counts), buffers_(std::make_unique<Buffers>()) {}
SyslogDatagrams::~SyslogDatagrams() = default;

Status SyslogDatagrams::open() {
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (epoll_.valid()) return {};
  return system_failure("cannot watch sockets", errno);
}

Status SyslogDatagrams::add(Fd socket) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = static_cast<std::uint32_t>(sockets_.size());
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0)
    return system_failure("cannot watch a socket", errno);
  sockets_.push_back({.fd = std::move(socket), .dropped = 0});
  return {};
}

std::size_t SyslogDatagrams::receive_bytes() const {
  int bytes = 0;
  socklen_t size = sizeof bytes;
  if (::getsockopt(sockets_.back().fd.get(), SOL_SOCKET, SO_RCVBUF, &bytes, &size) != 0) return 0;
  return static_cast<std::size_t>(bytes);
}

std::size_t SyslogDatagrams::receive(port::Clock& clock, Room room) {
  constexpr int events_max = 16;
  std::array<epoll_event, events_max> events{};
  const int ready = ::epoll_wait(epoll_.get(), events.data(), events_max, 0);
  std::size_t count = 0;
  for (int i = 0; i < ready; ++i) {
    Socket& socket = sockets_[events[static_cast<std::size_t>(i)].data.u32];
    for (std::size_t call = 0; call < turn_calls; ++call) {
      if (queue_.full() && room == Room::kept) break;
      const std::size_t got = receive_some(socket, clock, room);
      count += got;
      if (got < call_max) break;
    }
  }
  return count;
}

std::size_t SyslogDatagrams::receive_some(Socket& socket, port::Clock& clock, Room room) {
  buffers_->prepare();
  const int got = ::recvmmsg(socket.fd.get(), buffers_->headers.data(),
                             static_cast<unsigned>(call_max), MSG_DONTWAIT, nullptr);
  if (got <= 0) return 0;
  const port::Instant now = clock.now();
  const auto count = static_cast<std::size_t>(got);
  for (std::size_t i = 0; i < count; ++i) take(socket, i, now, room);
  return count;
}

void SyslogDatagrams::take(Socket& socket, std::size_t i, port::Instant now, Room room) {
  msghdr& header = buffers_->headers[i].msg_hdr;
  Timestamp received{};
  for (cmsghdr* at = CMSG_FIRSTHDR(&header); at != nullptr; at = CMSG_NXTHDR(&header, at)) {
    if (at->cmsg_level != SOL_SOCKET) continue;
    if (at->cmsg_type == SO_RXQ_OVFL) note_drops(socket, control_value<std::uint32_t>(at));
    if (at->cmsg_type == SCM_TIMESTAMPNS) received = {to_ns(control_value<timespec>(at))};
  }
  const std::string_view text(buffers_->bytes[i].data(), buffers_->headers[i].msg_len);
  if (text.empty()) {
    ++counts_.empty;
    return;
  }
  if (received.ns == 0) received = SystemClock().wall();
  if ((header.msg_flags & MSG_TRUNC) != 0) ++counts_.cut;
  if (queue_.full() && room == Room::given_up) {
    ++counts_.received[static_cast<std::size_t>(SyslogTransport::udp)];
    ++counts_.abandoned;
    return;
  }
  queue_.push(SyslogTransport::udp, text, sender_of(i), received, now);
}

std::string_view SyslogDatagrams::sender_of(std::size_t i) {
  Buffers& b = *buffers_;
  const socklen_t size = b.headers[i].msg_hdr.msg_namelen;
  if (size != b.last_size || std::memcmp(&b.names[i], &b.last, size) != 0) {
    b.last = b.names[i];
    b.last_size = size;
    b.last_text = host_text(b.names[i]);
  }
  return b.last_text;
}

// Counters of the kernel wrap; and a datagram tells how it stood when that came, which may be
// less than is known by now.
void SyslogDatagrams::note_drops(Socket& socket, std::uint32_t dropped) {
  const std::uint32_t more = dropped - socket.dropped;
  if (more > UINT32_MAX / 2) return;
  counts_.dropped += more;
  socket.dropped = dropped;
}

void SyslogDatagrams::count_drops() {
  for (Socket& socket : sockets_) {
    std::array<std::uint32_t, SK_MEMINFO_VARS> info{};
    socklen_t size = sizeof info;
    if (::getsockopt(socket.fd.get(), SOL_SOCKET, SO_MEMINFO, info.data(), &size) == 0 &&
        size == sizeof info)
      note_drops(socket, info[SK_MEMINFO_DROPS]);
  }
}

}  // namespace weft::adapt::live
