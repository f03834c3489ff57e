#include "adapt/lab/wire_relay.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <netlink/netlink.h>
#include <netlink/route/link.h>
#include <netlink/route/link/veth.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

#include "adapt/lab/netns.hpp"
#include "os/error.hpp"

// From <net/ethernet.h>, which clashes with the kernel's headers.
#ifndef ETH_P_ALL
#define ETH_P_ALL 3
#endif

namespace weft::adapt::lab {
namespace {

constexpr const char* inner_name = "inner";
constexpr std::uint32_t ring_bytes = 8u << 20;
constexpr std::uint32_t frame_bytes_min = 2'048;
constexpr std::uint32_t frame_overhead = 128;  // the ring's header, Ethernet's, and alignment
constexpr int relay_socket_bytes = 8 << 20;
constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::int64_t retry_wait_ns = 100'000;

std::int64_t clock_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * second_ns + time.tv_nsec;
}

ifreq request_for(const std::string& interface) {
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  return request;
}

Status set_offloads_off(int control, const std::string& interface) {
  for (const unsigned command :
       {ETHTOOL_STSO + 0u, ETHTOOL_SGSO + 0u, ETHTOOL_SSG + 0u, ETHTOOL_STXCSUM + 0u}) {
    ethtool_value off{.cmd = command, .data = 0};
    ifreq request = request_for(interface);
    request.ifr_data = reinterpret_cast<char*>(&off);
    if (ioctl(control, SIOCETHTOOL, &request) != 0)
      return system_failure("switching off offloads of " + interface, errno);
  }
  return {};
}

Status bring_up(int control, const std::string& interface) {
  ifreq request = request_for(interface);
  if (ioctl(control, SIOCGIFFLAGS, &request) != 0)
    return system_failure("interface " + interface, errno);
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  if (ioctl(control, SIOCSIFFLAGS, &request) != 0)
    return system_failure("interface " + interface, errno);
  return {};
}

// "inner" in the namespace `inside`, `outer` in the calling thread's.
Status make_veth(const std::string& outer, int inside, int mtu) {
  const std::unique_ptr<nl_sock, void (*)(nl_sock*)> socket(nl_socket_alloc(), nl_socket_free);
  const std::unique_ptr<rtnl_link, void (*)(rtnl_link*)> link(rtnl_link_veth_alloc(),
                                                              rtnl_link_veth_release);
  if (!socket || !link) return fail(Errc::io, {}, "no memory for a veth");
  int error = nl_connect(socket.get(), NETLINK_ROUTE);
  if (error >= 0) {
    rtnl_link* const peer = rtnl_link_veth_get_peer(link.get());
    rtnl_link_set_name(link.get(), inner_name);
    rtnl_link_set_ns_fd(link.get(), inside);
    rtnl_link_set_name(peer, outer.c_str());
    rtnl_link_set_mtu(link.get(), static_cast<unsigned>(mtu));
    rtnl_link_set_mtu(peer, static_cast<unsigned>(mtu));
    rtnl_link_put(peer);
    error = rtnl_link_add(socket.get(), link.get(), NLM_F_CREATE | NLM_F_EXCL);
  }
  if (error < 0)
    return fail(Errc::io, {}, fmt::format("creating the veth {}: {}", outer, nl_geterror(error)));
  return {};
}

// The kernel would take it away some time after the last socket of its namespace; a wire that ends
// in order leaves no such time. In the namespace of `outer`.
void remove_veth(const std::string& outer) {
  const std::unique_ptr<nl_sock, void (*)(nl_sock*)> socket(nl_socket_alloc(), nl_socket_free);
  const std::unique_ptr<rtnl_link, void (*)(rtnl_link*)> link(rtnl_link_alloc(), rtnl_link_put);
  if (!socket || !link || nl_connect(socket.get(), NETLINK_ROUTE) < 0) return;
  rtnl_link_set_name(link.get(), outer.c_str());
  rtnl_link_delete(socket.get(), link.get());
}

Status enter(int netns, const char* what) {
  if (setns(netns, CLONE_NEWNET) == 0) return {};
  return system_failure(fmt::format("entering {}", what), errno);
}

// A wire must not wait behind busy neighbours; without the right to it, it does.
void ask_for_cpu() {
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  const sched_param priority{.sched_priority = 1};
  if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0) setpriority(PRIO_PROCESS, 0, -20);
}

}  // namespace

Result<Mapping> Mapping::of(int fd, std::size_t bytes) {
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return system_failure("mapping", errno);
  Mapping mapping;
  mapping.data_ = static_cast<std::uint8_t*>(data);
  mapping.bytes_ = bytes;
  return mapping;
}

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Result<WireRelay> WireRelay::open(const WireSpec& spec) {
  WireRelay relay(spec);
  WEFT_TRY_STATUS(relay.open_count());
  WEFT_TRY(relay.netns_, open_netns(spec.netns));
  // The inner end lives in a namespace that nobody else sees and that goes with this process.
  if (unshare(CLONE_NEWNET) != 0) return system_failure("a namespace for the wire", errno);
  const Fd inside(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!inside.valid()) return system_failure("the wire's namespace", errno);
  WEFT_TRY_STATUS(enter(relay.netns_.get(), spec.netns.c_str()));
  WEFT_TRY_STATUS(relay.open_outside(inside.get()));
  WEFT_TRY_STATUS(enter(inside.get(), "the wire's namespace"));
  WEFT_TRY_STATUS(relay.open_inside());
  // The inner end is up by now. In the other order the outer one would get its carrier late, and
  // the kernel, which looks at carriers once a second, would drop all frames until then.
  WEFT_TRY_STATUS(bring_up(relay.control_.get(), spec.name));
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGTERM);
  relay.signals_ = Fd(signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!relay.signals_.valid()) return system_failure("signalfd", errno);
  WEFT_TRY_STATUS(enter(relay.netns_.get(), spec.netns.c_str()));  // where nft looks names up
  WEFT_TRY_STATUS(relay.redirect());
  ask_for_cpu();
  return relay;
}

Status WireRelay::open_count() {
  const Fd file(::open(spec_.count_file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.valid() || ftruncate(file.get(), sizeof(WireCount)) != 0)
    return system_failure(spec_.count_file, errno);
  WEFT_TRY(shared_count_, Mapping::of(file.get(), sizeof(WireCount)));
  return {};
}

Status WireRelay::open_outside(int inside_netns) {
  control_ = Fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!control_.valid()) return system_failure("socket", errno);
  ifreq request = request_for(spec_.interface);
  if (ioctl(control_.get(), SIOCGIFINDEX, &request) != 0)
    return system_failure(fmt::format("interface {} of {}", spec_.interface, spec_.netns), errno);
  interface_index_ = request.ifr_ifindex;
  if (ioctl(control_.get(), SIOCGIFMTU, &request) != 0)
    return system_failure(fmt::format("MTU of {}", spec_.interface), errno);
  const int mtu = request.ifr_mtu;
  frame_bytes_ =
      std::bit_ceil(std::max(frame_bytes_min, static_cast<std::uint32_t>(mtu) + frame_overhead));
  WEFT_TRY(Nft nft, Nft::here());
  nft_ = std::make_unique<Nft>(std::move(nft));
  WEFT_TRY_STATUS(make_veth(spec_.name, inside_netns, mtu));
  // No address, no IPv6 chatter of its own: what it said would come out of the real interface.
  const auto quiet = write_sysctl(fmt::format("net/ipv6/conf/{}/disable_ipv6", spec_.name), "1");
  if (!quiet && quiet.error().code != Errc::unsupported) return quiet;
  WEFT_TRY_STATUS(set_offloads_off(control_.get(), spec_.name));

  // Protocol 0: it sends and never receives.
  sender_ = Fd(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (!sender_.valid()) return system_failure("packet socket", errno);
  const std::uint32_t mark = wire_mark_base | spec_.index;
  if (setsockopt(sender_.get(), SOL_SOCKET, SO_MARK, &mark, sizeof mark) != 0)
    return system_failure("SO_MARK", errno);
  if (setsockopt(sender_.get(), SOL_SOCKET, SO_SNDBUFFORCE, &relay_socket_bytes,
                 sizeof relay_socket_bytes) != 0)
    setsockopt(sender_.get(), SOL_SOCKET, SO_SNDBUF, &relay_socket_bytes,
               sizeof relay_socket_bytes);
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_ifindex = interface_index_;
  if (bind(sender_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return system_failure("packet socket on " + spec_.interface, errno);
  return {};
}

Status WireRelay::open_inside() {
  const Fd control(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!control.valid()) return system_failure("socket", errno);
  ring_ = Fd(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (!ring_.valid()) return system_failure("packet socket", errno);
  const int version = TPACKET_V2;
  const int yes = 1;
  if (setsockopt(ring_.get(), SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0 ||
      setsockopt(ring_.get(), SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof yes) != 0)
    return system_failure("packet socket", errno);
  frame_count_ = ring_bytes / frame_bytes_;
  const std::uint32_t block = std::max(frame_bytes_, 65'536u);
  const tpacket_req request{.tp_block_size = block,
                            .tp_block_nr = ring_bytes / block,
                            .tp_frame_size = frame_bytes_,
                            .tp_frame_nr = frame_count_};
  if (setsockopt(ring_.get(), SOL_PACKET, PACKET_RX_RING, &request, sizeof request) != 0)
    return system_failure("packet ring", errno);
  WEFT_TRY(frames_, Mapping::of(ring_.get(), ring_bytes));
  ifreq inner = request_for(inner_name);
  if (ioctl(control.get(), SIOCGIFINDEX, &inner) != 0)
    return system_failure("the wire's inner end", errno);
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = inner.ifr_ifindex;
  const auto quiet = write_sysctl(fmt::format("net/ipv6/conf/{}/disable_ipv6", inner_name), "1");
  if (!quiet && quiet.error().code != Errc::unsupported) return quiet;
  WEFT_TRY_STATUS(bring_up(control.get(), inner_name));
  if (bind(ring_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return system_failure("packet ring", errno);
  return {};
}

Status WireRelay::redirect() {
  // "owner": the table goes with the socket, however this process ends.
  const auto status = nft_->run(
      fmt::format("table netdev {0} {{\n"
                  " flags owner\n"
                  " chain egress {{\n"
                  "  type filter hook egress device \"{1}\" priority {2}; policy accept;\n"
                  "  meta mark {3:#x}-{4:#x} accept\n"
                  "  fwd to \"{0}\"\n"
                  " }}\n}}\n",
                  spec_.name, spec_.interface, 100 + int{spec_.index}, wire_mark_base | spec_.index,
                  wire_mark_last));
  if (!status)
    return fail(Errc::unsupported, {}, status.error().what,
                "a wire needs the netdev egress hook with \"fwd\" (Linux 5.16)");
  return {};
}

void WireRelay::run() {
  std::int64_t looked_ns = clock_ns(CLOCK_MONOTONIC);
  while (!stopping_) {
    wait();
    read_ring();
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    send_due(now_ns);
    if (now_ns - looked_ns > second_ns) {
      looked_ns = now_ns;
      add_unread();
      if (!still_there()) break;
    }
    publish();
  }
  nft_.reset();  // frames go past the wire from here on
  read_ring();
  while (!queue_.empty() && send_front()) {
  }
  add_unread();
  queue_.count.unsent += queue_.waiting();
  publish();
  remove_veth(spec_.name);
}

void WireRelay::wait() {
  const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
  const std::int64_t next_ns = std::min(std::max(queue_.due_ns(), retry_ns_), now_ns + second_ns);
  const std::int64_t span_ns = std::max<std::int64_t>(next_ns - now_ns, 0);
  const timespec timeout{.tv_sec = span_ns / second_ns, .tv_nsec = span_ns % second_ns};
  std::array<pollfd, 2> events{{{ring_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}}};
  if (ppoll(events.data(), events.size(), &timeout, nullptr) > 0 && events[1].revents != 0)
    stopping_ = true;
}

void WireRelay::read_ring() {
  // One turn of the ring at most, so that sending has its turn too.
  for (std::uint32_t i = 0; i < frame_count_; ++i) {
    auto* const header =
        reinterpret_cast<tpacket2_hdr*>(frames_.data() + std::size_t{next_} * frame_bytes_);
    std::atomic_ref<std::uint32_t> status(header->tp_status);
    if ((status.load(std::memory_order_acquire) & TP_STATUS_USER) == 0) return;
    // The kernel stamped its arrival, so that waking up late does not add to the delay. The clocks
    // are read once the frame is there and in this order: to be interrupted in between makes it
    // look younger and go later; otherwise it would go before its time. The wall clock may have
    // stepped since: hence the bounds.
    const std::int64_t wall_ns = clock_ns(CLOCK_REALTIME);
    const std::int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    const std::int64_t stamp_ns = std::int64_t{header->tp_sec} * second_ns + header->tp_nsec;
    const std::int64_t age_ns = std::clamp<std::int64_t>(wall_ns - stamp_ns, 0, second_ns);
    queue_.admit(now_ns - age_ns, {reinterpret_cast<const std::uint8_t*>(header) + header->tp_mac,
                                   header->tp_snaplen});
    status.store(TP_STATUS_KERNEL, std::memory_order_release);
    next_ = next_ + 1 == frame_count_ ? 0 : next_ + 1;
  }
}

void WireRelay::send_due(std::int64_t now_ns) {
  if (now_ns < retry_ns_) return;
  retry_ns_ = 0;
  while (queue_.due_ns() <= now_ns) {
    const auto late_ns = static_cast<std::uint64_t>(now_ns - queue_.due_ns());
    if (!send_front()) {
      retry_ns_ = now_ns + retry_wait_ns;
      return;
    }
    queue_.count.late_ns_max = std::max(queue_.count.late_ns_max, late_ns);
  }
}

bool WireRelay::send_front() {
  const WireQueue::Frame frame = queue_.front();
  const ssize_t sent = ::send(sender_.get(), frame.data(), frame.size(), MSG_DONTWAIT);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  ++(sent >= 0 ? queue_.count.sent : queue_.count.unsent);
  queue_.pop();
  return true;
}

void WireRelay::add_unread() {
  tpacket_stats stats{};
  socklen_t size = sizeof stats;
  if (getsockopt(ring_.get(), SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0)
    queue_.count.unread += stats.tp_drops;  // the kernel starts again from 0
}

void WireRelay::publish() { std::memcpy(shared_count_.data(), &queue_.count, sizeof queue_.count); }

bool WireRelay::still_there() const {
  ifreq request = request_for(spec_.interface);
  if (ioctl(control_.get(), SIOCGIFINDEX, &request) != 0 || request.ifr_ifindex != interface_index_)
    return false;
  // This process keeps a deleted namespace alive, so that only its name can tell.
  struct stat named{};
  struct stat held{};
  return stat(fmt::format("{}/{}", netns_directory, spec_.netns).c_str(), &named) == 0 &&
         fstat(netns_.get(), &held) == 0 && named.st_ino == held.st_ino &&
         named.st_dev == held.st_dev;
}

}  // namespace weft::adapt::lab
