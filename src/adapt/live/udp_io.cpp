#include "adapt/live/udp_io.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/errqueue.h>
#include <linux/icmp.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "adapt/live/datagram_header.hpp"
#include "adapt/live/system_clock.hpp"
#include "base/fd.hpp"
#include "observe/probe/quote.hpp"
#include "observe/probe/targets.hpp"
#include "observe/probe/wire.hpp"
#include "os/error.hpp"

namespace weft::adapt::live {
namespace {

using port::batch_max;
using port::Endpoint;
using Control = ControlBytes<256>;

constexpr std::size_t quote_bytes_max = 512;
constexpr std::uint32_t watched = UINT32_MAX, raw_icmp = UINT32_MAX - 1;

sockaddr_in address_of(const Endpoint& at) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(at.port);
  out.sin_addr.s_addr = htonl(at.address);
  return out;
}

Endpoint endpoint_of(const sockaddr_in& at) {
  return {ntohl(at.sin_addr.s_addr), ntohs(at.sin_port)};
}

template <class Visit>
void for_each_control(msghdr& message, Visit visit) {
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at))
    visit(at);
}

// Control messages of one outgoing datagram, one behind the other.
class ControlWriter {
 public:
  ControlWriter(msghdr& message, Control& control) : message_(message), control_(control) {}
  template <class T>
  void put(int level, int type, const T& value) {
    cmsghdr header{};
    header.cmsg_level = level;
    header.cmsg_type = type;
    header.cmsg_len = CMSG_LEN(sizeof value);
    std::memcpy(control_.bytes.data() + used_, &header, sizeof header);
    std::memcpy(control_.bytes.data() + used_ + CMSG_LEN(0), &value, sizeof value);
    used_ += CMSG_SPACE(sizeof value);
    message_.msg_control = control_.bytes.data();
    message_.msg_controllen = used_;
  }

 private:
  msghdr& message_;
  Control& control_;
  std::size_t used_ = 0;
};

bool set_option(int fd, int level, int name, int value) {
  return ::setsockopt(fd, level, name, &value, sizeof value) == 0;
}

std::unexpected<Error> bind_error(const Endpoint& at, int error) {
  const std::string what =
      fmt::format("cannot use UDP address {}: {}", observe::probe::to_text(at), errno_text(error));
  switch (error) {
    case EADDRINUSE:
      return fail(Errc::io, {}, what,
                  "another program is using it; choose other ports, or stop that program");
    case EADDRNOTAVAIL:
      return fail(Errc::io, {}, what, "use an address of this host");
    case EACCES:
      return fail(Errc::io, {}, what, "use a port above 1023, or run with CAP_NET_BIND_SERVICE");
    default:
      return fail(Errc::io, {}, what, "see the operating system's reason");
  }
}

}  // namespace

class UdpIo::Impl {
 public:
  Impl(const UdpIoOptions& options, port::Clock& clock)
      : options_(options), clock_(clock), arrivals_(clock), departures_(clock) {
    for (std::size_t i = 0; i < batch_max; ++i) {
      in_[i].msg_hdr = {};
      out_[i].msg_hdr = {};
    }
  }

  Status open();
  Status watch(int fd, std::uint32_t mark);
  port::SendResult send(std::span<const port::Outgoing> batch);
  std::size_t receive(std::span<port::Incoming> batch);
  std::size_t send_stamps(std::span<port::SendStamp> batch);
  std::size_t complaints(std::span<port::Complaint> batch);
  void wait(port::Instant until, port::Wake wake);
  std::uint64_t dropped() const;

  UdpIoOptions options_;
  std::vector<Endpoint> bound_;

 private:
  struct Socket {
    Fd fd;
    bool any = false;         // bound to no address of its own
    bool stamps_due = false;  // in stamp_list_
    std::uint32_t dropped = 0;
  };

  Status open_socket(const Endpoint& at, int tries = 16);
  Status open_icmp();
  Status open_raw();
  port::SendResult send_raw(const port::Outgoing& datagram);
  void set_options(const Socket& socket) const;
  void prepare(const port::Outgoing& datagram, std::size_t i, const Socket& socket);
  std::size_t receive_from(std::uint32_t index, std::span<port::Incoming> batch);
  void read_control(msghdr& message, port::Incoming& in, Socket& socket);
  std::size_t stamps_from(Socket& socket, std::span<port::SendStamp> batch);
  void find_ready(int timeout_ms);
  void expect_stamps(std::uint32_t index) {
    if (std::exchange(sockets_[index].stamps_due, true)) return;
    stamp_list_.push_back(index);
  }

  port::Clock& clock_;
  StampReader arrivals_, departures_;
  Fd epoll_, icmp_, raw_;
  std::vector<Socket> sockets_;
  std::vector<std::uint32_t> ready_, stamp_list_;
  std::array<mmsghdr, batch_max> in_, out_;
  std::array<iovec, batch_max> in_parts_, out_parts_;
  std::array<sockaddr_in, batch_max> in_names_, out_names_;
  std::array<Control, batch_max> in_controls_, out_controls_;
  std::array<std::array<std::byte, port::datagram_bytes_max>, batch_max> out_bytes_;
  std::array<std::array<std::byte, quote_bytes_max>, batch_max> quotes_;
};

Status UdpIo::Impl::open() {
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return system_failure("cannot watch sockets", errno);
  if (options_.use == UdpIoOptions::Ports::raw) {
    WEFT_TRY_STATUS(open_raw());
  } else {
    for (const Endpoint& at : options_.ports) WEFT_TRY_STATUS(open_socket(at));
  }
  return options_.complaints == UdpIoOptions::Complaints::heard ? open_icmp() : Status{};
}

// Such a socket receives nothing; the kernel fills in the IP header's checksum and identification,
// and the source where it is 0.
Status UdpIo::Impl::open_raw() {
  raw_ = Fd(::socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_RAW));
  if (!raw_.valid())
    return system_failure("cannot send from ports that others use", errno,
                          "run as root, or grant the capability: setcap cap_net_raw+ep weft");
  bound_ = options_.ports;
  return {};
}

port::SendResult UdpIo::Impl::send_raw(const port::Outgoing& datagram) {
  constexpr std::uint8_t default_ttl = 64;
  const Endpoint& from = bound_[datagram.port];
  iphdr ip{};
  ip.version = 4;
  ip.ihl = sizeof ip / 4;
  ip.tos = static_cast<std::uint8_t>(datagram.dscp << 2);
  ip.ttl = datagram.ttl == 0 ? default_ttl : datagram.ttl;
  ip.protocol = IPPROTO_UDP;
  ip.saddr = htonl(datagram.local != 0 ? datagram.local : from.address);
  ip.daddr = htonl(datagram.to.address);
  udphdr udp{};  // without a checksum, as those of the sockets
  udp.source = htons(from.port);
  udp.dest = htons(datagram.to.port);
  udp.len = htons(static_cast<std::uint16_t>(sizeof udp + datagram.payload.size()));
  std::vector<std::byte> bytes;
  for (const auto part :
       {std::as_bytes(std::span(&ip, 1)), std::as_bytes(std::span(&udp, 1)), datagram.payload})
    bytes.insert(bytes.end(), part.begin(), part.end());
  const sockaddr_in to = address_of({datagram.to.address, 0});
  if (::sendto(raw_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT,
               reinterpret_cast<const sockaddr*>(&to), sizeof to) >= 0)
    return {1, 0};
  const bool no_room = errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM || errno == EINTR;
  return {0, no_room ? std::size_t{0} : std::size_t{1}};
}

Status UdpIo::Impl::open_icmp() {
  icmp_ = Fd(::socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_ICMP));
  if (!icmp_.valid())
    return system_failure("cannot receive ICMP from routers", errno,
                          "run as root, or grant the capability: setcap cap_net_raw+ep weft");
  // A bit is a type that is not wanted.
  const std::uint32_t unwanted = ~(1u << ICMP_DEST_UNREACH | 1u << ICMP_TIME_EXCEEDED);
  const icmp_filter filter{.data = unwanted};
  ::setsockopt(icmp_.get(), SOL_RAW, ICMP_FILTER, &filter, sizeof filter);
  set_option(icmp_.get(), SOL_SOCKET, SO_RCVBUF, static_cast<int>(options_.queue_bytes));
  return watch(icmp_.get(), raw_icmp);
}

std::size_t UdpIo::Impl::complaints(std::span<port::Complaint> batch) {
  std::size_t count = 0;
  while (icmp_.valid() && count < batch.size()) {
    std::span<std::byte> into(quotes_[0]);
    const ssize_t size = ::recv(icmp_.get(), into.data(), into.size(), MSG_DONTWAIT);
    if (size < 0) break;
    const auto found = observe::probe::read_complaint(into.first(static_cast<std::size_t>(size)));
    if (!found) continue;
    batch[count] = *found;
    batch[count++].when = clock_.now();
  }
  return count;
}

Status UdpIo::Impl::open_socket(const Endpoint& at, int tries) {
  Socket socket{.fd = Fd(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
                .any = at.address == 0};
  if (!socket.fd.valid())
    return system_failure(
        "cannot open a UDP socket", errno,
        errno == EMFILE ? "use fewer ports, or raise the limit on open files" : "");
  set_options(socket);
  sockaddr_in name = address_of(at);
  const auto* generic = reinterpret_cast<const sockaddr*>(&name);
  if (::bind(socket.fd.get(), generic, sizeof name) != 0) return bind_error(at, errno);
  socklen_t size = sizeof name;
  if (::getsockname(socket.fd.get(), reinterpret_cast<sockaddr*>(&name), &size) != 0)
    return system_failure("cannot read a socket's address", errno);
  // From here on are the ports that probes name: one that the kernel chooses shall be none of them.
  constexpr std::uint16_t first_probe_port = 49'152;
  if (at.port == 0 && endpoint_of(name).port >= first_probe_port && tries > 1)
    return open_socket(at, tries - 1);
  WEFT_TRY_STATUS(watch(socket.fd.get(), static_cast<std::uint32_t>(sockets_.size())));
  bound_.push_back(endpoint_of(name));
  sockets_.push_back(std::move(socket));
  return {};
}

// Options that a kernel lacks leave the fields that they fill empty.
void UdpIo::Impl::set_options(const Socket& socket) const {
  const int fd = socket.fd.get();
  const int bytes = static_cast<int>(options_.queue_bytes);
  const auto set_queue = [&](int force, int plain) {
    if (!set_option(fd, SOL_SOCKET, force, bytes)) set_option(fd, SOL_SOCKET, plain, bytes);
  };
  set_queue(SO_RCVBUFFORCE, SO_RCVBUF);
  set_queue(SO_SNDBUFFORCE, SO_SNDBUF);
  set_option(fd, SOL_SOCKET, SO_TIMESTAMPING,
             SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE);
  set_option(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
  // With UDP's own checksum the receiving kernel would drop a damaged probe, as if it were lost.
  set_option(fd, SOL_SOCKET, SO_NO_CHECK, 1);
  set_option(fd, IPPROTO_IP, IP_RECVTOS, 1);
  if (socket.any) set_option(fd, IPPROTO_IP, IP_PKTINFO, 1);
}

Status UdpIo::Impl::watch(int fd, std::uint32_t mark) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = mark;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
  return system_failure("cannot watch a socket", errno);
}

void UdpIo::Impl::prepare(const port::Outgoing& datagram, std::size_t i, const Socket& socket) {
  msghdr& message = out_[i].msg_hdr;
  out_names_[i] = address_of(datagram.to);
  // A copy, as the system's type for what is sent is that for what is received.
  const std::size_t size = std::min(datagram.payload.size(), port::datagram_bytes_max);
  std::copy_n(datagram.payload.begin(), size, out_bytes_[i].begin());
  out_parts_[i] = {out_bytes_[i].data(), size};
  message = {};
  message.msg_name = &out_names_[i];
  message.msg_namelen = sizeof out_names_[i];
  message.msg_iov = &out_parts_[i];
  message.msg_iovlen = 1;
  ControlWriter control(message, out_controls_[i]);
  if (datagram.dscp != 0) control.put(IPPROTO_IP, IP_TOS, int{datagram.dscp} << 2);
  if (datagram.ttl != 0) control.put(IPPROTO_IP, IP_TTL, int{datagram.ttl});
  if (datagram.stamp == port::Stamp::wanted && options_.send_stamps == port::Stamp::wanted)
    control.put(SOL_SOCKET, SO_TIMESTAMPING, std::uint32_t{SOF_TIMESTAMPING_TX_SOFTWARE});
  if (datagram.local != 0 && socket.any) {
    in_pktinfo from{};
    from.ipi_spec_dst.s_addr = htonl(datagram.local);
    control.put(IPPROTO_IP, IP_PKTINFO, from);
  }
}

port::SendResult UdpIo::Impl::send(std::span<const port::Outgoing> batch) {
  if (batch.empty()) return {};
  if (raw_.valid()) return send_raw(batch.front());
  const std::uint32_t index = batch.front().port;
  const Socket& socket = sockets_[index];
  const std::size_t count = std::min(batch.size(), batch_max);
  bool stamps = false;
  for (std::size_t i = 0; i < count; ++i) {
    prepare(batch[i], i, socket);
    stamps = stamps || batch[i].stamp == port::Stamp::wanted;
  }
  if (stamps) expect_stamps(index);
  const int sent =
      ::sendmmsg(socket.fd.get(), out_.data(), static_cast<unsigned>(count), MSG_DONTWAIT);
  if (sent >= 0) return {static_cast<std::size_t>(sent), 0};
  const bool no_room = errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM || errno == EINTR;
  return {0, no_room ? std::size_t{0} : std::size_t{1}};
}

void UdpIo::Impl::find_ready(int timeout_ms) {
  std::array<epoll_event, batch_max> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), batch_max, timeout_ms);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.u32 >= sockets_.size()) continue;
    if ((event.events & EPOLLIN) != 0) ready_.push_back(event.data.u32);
    if ((event.events & EPOLLERR) != 0) expect_stamps(event.data.u32);
  }
}

std::size_t UdpIo::Impl::receive(std::span<port::Incoming> batch) {
  arrivals_.check();
  std::size_t count = 0;
  while (count < batch.size()) {
    if (ready_.empty()) find_ready(0);
    if (ready_.empty()) break;
    const std::size_t asked = std::min(batch.size() - count, batch_max);
    const std::size_t got = receive_from(ready_.back(), batch.subspan(count, asked));
    if (got < asked) ready_.pop_back();
    count += got;
  }
  if (count < batch.size()) arrivals_.drained();
  return count;
}

std::size_t UdpIo::Impl::receive_from(std::uint32_t index, std::span<port::Incoming> batch) {
  Socket& socket = sockets_[index];
  for (std::size_t i = 0; i < batch.size(); ++i) {
    in_parts_[i] = {batch[i].bytes.data(), batch[i].bytes.size()};
    in_[i].msg_hdr = header_for(in_parts_[i], std::as_writable_bytes(std::span(&in_names_[i], 1)),
                                in_controls_[i].bytes);
  }
  const int got = ::recvmmsg(socket.fd.get(), in_.data(), static_cast<unsigned>(batch.size()),
                             MSG_DONTWAIT | MSG_TRUNC, nullptr);
  for (int i = 0; i < got; ++i) {
    const auto at = static_cast<std::size_t>(i);
    port::Incoming& in = batch[at];
    in.port = index;
    in.local = socket.any ? 0 : bound_[index].address;
    in.from = endpoint_of(in_names_[at]);
    in.size = in_[at].msg_len;
    in.dscp = 0;
    in.when.reset();
    read_control(in_[at].msg_hdr, in, socket);
    in.dropped = socket.dropped;
  }
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

void UdpIo::Impl::read_control(msghdr& message, port::Incoming& in, Socket& socket) {
  for_each_control(message, [&](cmsghdr* header) {
    if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_TIMESTAMPING)
      in.when = arrivals_.instant({to_ns(control_value<scm_timestamping>(header).ts[0])});
    else if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SO_RXQ_OVFL)
      socket.dropped = control_value<std::uint32_t>(header);
    else if (header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_TOS)
      in.dscp = static_cast<std::uint8_t>(control_value<std::uint8_t>(header) >> 2);
    else if (header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_PKTINFO)
      in.local = ntohl(control_value<in_pktinfo>(header).ipi_addr.s_addr);
  });
}

std::size_t UdpIo::Impl::send_stamps(std::span<port::SendStamp> batch) {
  departures_.check();
  std::size_t count = 0;
  while (count < batch.size() && !stamp_list_.empty()) {
    Socket& socket = sockets_[stamp_list_.back()];
    const std::size_t asked = std::min(batch.size() - count, batch_max);
    const std::size_t before = count;
    count += stamps_from(socket, batch.subspan(count, asked));
    if (count - before == asked) continue;
    socket.stamps_due = false;
    stamp_list_.pop_back();
  }
  if (count < batch.size()) departures_.drained();
  return count;
}

// The kernel hands back the datagram itself with its stamp, so our number can be read from its end.
std::size_t UdpIo::Impl::stamps_from(Socket& socket, std::span<port::SendStamp> batch) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    in_parts_[i] = {quotes_[i].data(), quotes_[i].size()};
    in_[i].msg_hdr = header_for(in_parts_[i], {}, in_controls_[i].bytes);
  }
  const int got = ::recvmmsg(socket.fd.get(), in_.data(), static_cast<unsigned>(batch.size()),
                             MSG_ERRQUEUE | MSG_DONTWAIT, nullptr);
  std::size_t count = 0;
  for (int i = 0; i < got; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::size_t size = std::min<std::size_t>(in_[at].msg_len, quote_bytes_max);
    if (size < observe::probe::wire_bytes) continue;
    const auto probe = observe::probe::peek_probe(
        std::span(quotes_[at])
            .subspan(size - observe::probe::wire_bytes, observe::probe::wire_bytes));
    std::optional<port::Instant> when;
    for_each_control(in_[at].msg_hdr, [&](cmsghdr* header) {
      if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_TIMESTAMPING)
        when = departures_.instant({to_ns(control_value<scm_timestamping>(header).ts[0])});
    });
    if (probe && when) batch[count++] = {*probe, *when};
  }
  return count;
}

std::uint64_t UdpIo::Impl::dropped() const {
  std::uint64_t sum = 0;
  for (const Socket& socket : sockets_) {
    // Knows of those that no later datagram has told of.
    std::array<std::uint32_t, 9> info{};  // SK_MEMINFO_DROPS is the last
    socklen_t size = sizeof info;
    const bool known =
        ::getsockopt(socket.fd.get(), SOL_SOCKET, SO_MEMINFO, info.data(), &size) == 0;
    sum += known ? info[8] : socket.dropped;
  }
  return sum;
}

void UdpIo::Impl::wait(port::Instant until, port::Wake wake) {
  const std::int64_t left = until - clock_.now();
  if (left <= 0) return;
  const timespec span{.tv_sec = left / ns_per_s, .tv_nsec = left % ns_per_s};
  if (wake == port::Wake::timer) {
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &span, nullptr);
    return;
  }
  epoll_event event;
  ::epoll_pwait2(epoll_.get(), &event, 1, &span, nullptr);
}

UdpIo::UdpIo(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
UdpIo::UdpIo(UdpIo&&) noexcept = default;
UdpIo& UdpIo::operator=(UdpIo&&) noexcept = default;
UdpIo::~UdpIo() = default;

Result<UdpIo> UdpIo::open(const UdpIoOptions& options, port::Clock& clock) {
  auto impl = std::make_unique<Impl>(options, clock);
  WEFT_TRY_STATUS(impl->open());
  return UdpIo(std::move(impl));
}

const std::vector<Endpoint>& UdpIo::ports() const { return impl_->bound_; }
Status UdpIo::watch(int fd) { return impl_->watch(fd, watched); }
port::SendResult UdpIo::send(std::span<const port::Outgoing> batch) { return impl_->send(batch); }
std::size_t UdpIo::receive(std::span<port::Incoming> batch) { return impl_->receive(batch); }
std::size_t UdpIo::send_stamps(std::span<port::SendStamp> batch) {
  return impl_->send_stamps(batch);
}
std::size_t UdpIo::complaints(std::span<port::Complaint> batch) { return impl_->complaints(batch); }
port::Stamp UdpIo::stamping() const { return impl_->options_.send_stamps; }
std::uint64_t UdpIo::dropped() { return impl_->dropped(); }
void UdpIo::wait(port::Instant until, port::Wake wake) { impl_->wait(until, wake); }

}  // namespace weft::adapt::live
