#include "adapt/linux_switch/netlink.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/fib_rules.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <functional>
#include <system_error>

#include "base/fd.hpp"
#include "base/text.hpp"
#include "os/error.hpp"

namespace weft::adapt {
inline namespace linux_switch {
namespace {

// Well below the socket's send buffer, and few enough that all errors fit its receive buffer.
constexpr std::size_t batch_bytes_max = 49'152;
constexpr std::size_t batch_count_max = 128;

// One message being built; libnl aborts on nothing, it returns an error when memory is short.
class Message {
 public:
  Message(std::uint16_t type, int flags)
      : message_(nlmsg_alloc_simple(type, NLM_F_REQUEST | flags), nlmsg_free) {
    ok_ = message_ != nullptr;
  }
  template <class Header>
  Message& header(const Header& header) {
    Header copy = header;
    ok_ = ok_ && nlmsg_append(message_.get(), &copy, sizeof copy, NLMSG_ALIGNTO) == 0;
    return *this;
  }
  template <class T>
  Message& put(int type, const T& value) {
    ok_ = ok_ && nla_put(message_.get(), type, sizeof value, &value) == 0;
    return *this;
  }
  Message& put_text(int type, const std::string& text) {
    ok_ = ok_ && nla_put_string(message_.get(), type, text.c_str()) == 0;
    return *this;
  }
  Message& put_ipv4(int type, Ipv4 address) { return put(type, htonl(address)); }
  Message& begin(int type) {
    nested_.push_back(ok_ ? nla_nest_start(message_.get(), type) : nullptr);
    ok_ = nested_.back() != nullptr;
    return *this;
  }
  Message& end() {
    if (ok_) nla_nest_end(message_.get(), nested_.back());
    nested_.pop_back();
    return *this;
  }
  // Bytes of several equal records as one attribute.
  Message& put_bytes(int type, const std::vector<char>& bytes) {
    ok_ = ok_ && nla_put(message_.get(), type, static_cast<int>(bytes.size()), bytes.data()) == 0;
    return *this;
  }
  bool ok() const { return ok_; }
  nlmsghdr* raw() const { return nlmsg_hdr(message_.get()); }

 private:
  std::unique_ptr<nl_msg, void (*)(nl_msg*)> message_;
  std::vector<nlattr*> nested_;
  bool ok_ = true;
};

ifinfomsg interface_header(std::uint32_t index, unsigned flags = 0) {
  ifinfomsg out{};
  out.ifi_family = AF_UNSPEC;
  out.ifi_index = static_cast<int>(index);
  out.ifi_flags = flags;
  out.ifi_change = flags == 0 ? 0 : IFF_UP;
  return out;
}

constexpr int create_flags = NLM_F_CREATE | NLM_F_EXCL;

template <class T>
T read_attribute(const nlattr* attribute) {
  T out{};
  if (attribute != nullptr)
    std::memcpy(&out, nla_data(attribute),
                std::min(sizeof out, static_cast<std::size_t>(nla_len(attribute))));
  return out;
}
Ipv4 read_ipv4(const nlattr* attribute) { return ntohl(read_attribute<std::uint32_t>(attribute)); }

// Calls `visit(attribute)` for each attribute of [first, first + length).
template <class Visit>
void each_attribute(const nlattr* first, int length, Visit visit) {
  for (const nlattr* at = first; nla_ok(at, length) != 0; at = nla_next(at, &length)) visit(at);
}

std::vector<char> next_hop_records(const std::vector<NextHop>& hops) {
  std::vector<char> out;
  const auto append = [&out](const auto& value) {
    const auto bytes = std::bit_cast<std::array<char, sizeof value>>(value);
    out.insert(out.end(), bytes.begin(), bytes.end());
  };
  for (const NextHop& hop : hops) {
    const bool routed = hop.gateway != 0;
    rtnexthop record{};
    record.rtnh_len = static_cast<unsigned short>(sizeof record + (routed ? 8 : 0));
    record.rtnh_ifindex = static_cast<int>(hop.interface);
    append(record);
    if (!routed) continue;
    append(nlattr{8, RTA_GATEWAY});
    append(htonl(hop.gateway));
  }
  return out;
}

void read_next_hops(const nlattr* multipath, std::vector<NextHop>& out) {
  int left = nla_len(multipath);
  const char* at = static_cast<const char*>(nla_data(multipath));
  while (left >= static_cast<int>(sizeof(rtnexthop))) {
    rtnexthop record{};
    std::memcpy(&record, at, sizeof record);
    if (record.rtnh_len < sizeof record || record.rtnh_len > left) return;
    NextHop hop{.interface = static_cast<std::uint32_t>(record.rtnh_ifindex)};
    each_attribute(reinterpret_cast<const nlattr*>(at + sizeof record),
                   record.rtnh_len - static_cast<int>(sizeof record), [&](const nlattr* attribute) {
                     if (nla_type(attribute) == RTA_GATEWAY) hop.gateway = read_ipv4(attribute);
                   });
    out.push_back(hop);
    const int step = static_cast<int>(NLMSG_ALIGN(record.rtnh_len));
    left -= step;
    at += step;
  }
}

KernelRoute read_route(nlmsghdr* header) {
  const auto* route = static_cast<const rtmsg*>(nlmsg_data(header));
  KernelRoute out;
  out.prefix_length = route->rtm_dst_len;
  out.protocol = route->rtm_protocol;
  out.type = route->rtm_type;
  out.table = route->rtm_table;
  NextHop single;
  each_attribute(nlmsg_attrdata(header, sizeof *route), nlmsg_attrlen(header, sizeof *route),
                 [&](const nlattr* attribute) {
                   switch (nla_type(attribute)) {
                     case RTA_DST:
                       out.destination = read_ipv4(attribute);
                       break;
                     case RTA_TABLE:
                       out.table = read_attribute<std::uint32_t>(attribute);
                       break;
                     case RTA_GATEWAY:
                       single.gateway = read_ipv4(attribute);
                       break;
                     case RTA_OIF:
                       single.interface = read_attribute<std::uint32_t>(attribute);
                       break;
                     case RTA_PREFSRC:
                       out.source = read_ipv4(attribute);
                       break;
                     case RTA_MULTIPATH:
                       read_next_hops(attribute, out.hops);
                       break;
                     default:
                       break;
                   }
                 });
  if (out.hops.empty() && single.interface != 0) out.hops.push_back(single);
  std::ranges::sort(out.hops);
  return out;
}

LinkState read_link(nlmsghdr* header) {
  const auto* link = static_cast<const ifinfomsg*>(nlmsg_data(header));
  LinkState out;
  out.index = static_cast<std::uint32_t>(link->ifi_index);
  out.up = (link->ifi_flags & IFF_UP) != 0;
  out.carrier = (link->ifi_flags & IFF_LOWER_UP) != 0;
  each_attribute(nlmsg_attrdata(header, sizeof *link), nlmsg_attrlen(header, sizeof *link),
                 [&](const nlattr* attribute) {
                   if (nla_type(attribute) == IFLA_IFNAME) {
                     out.name = nla_get_string(attribute);
                   } else if (nla_type(attribute) == IFLA_STATS64) {
                     const auto stats = read_attribute<rtnl_link_stats64>(attribute);
                     out.rx_packets = stats.rx_packets;
                     out.tx_packets = stats.tx_packets;
                     out.rx_bytes = stats.rx_bytes;
                     out.tx_bytes = stats.tx_bytes;
                     out.rx_dropped = stats.rx_dropped;
                     out.tx_dropped = stats.tx_dropped;
                     out.rx_errors = stats.rx_errors;
                     out.tx_errors = stats.tx_errors;
                   }
                 });
  return out;
}

}  // namespace

struct Netlink::Socket {
  std::string where;
  std::unique_ptr<nl_sock, void (*)(nl_sock*)> socket{nl_socket_alloc(), nl_socket_free};
  std::vector<char> queue;         // messages, aligned
  std::vector<std::string> texts;  // of the queued ones
  std::size_t last = 0;            // offset of the last one
  std::uint32_t sequence = 1;      // of the first queued one

  int fd() const { return nl_socket_get_fd(socket.get()); }

  Status add(Message& message, std::string text) {
    if (!message.ok()) return fail(Errc::io, {}, where + ": out of memory for a netlink message");
    nlmsghdr* header = message.raw();
    header->nlmsg_seq = sequence + static_cast<std::uint32_t>(texts.size());
    last = queue.size();
    const char* bytes = reinterpret_cast<const char*>(header);
    queue.insert(queue.end(), bytes, bytes + header->nlmsg_len);
    queue.resize(NLMSG_ALIGN(queue.size()));
    texts.push_back(std::move(text));
    return queue.size() > batch_bytes_max || texts.size() >= batch_count_max ? flush() : Status{};
  }

  // Only failures are answered, and the last message, which tells that all have been seen.
  Status flush() {
    if (texts.empty()) return {};
    nlmsghdr header{};
    std::memcpy(&header, queue.data() + last, sizeof header);
    header.nlmsg_flags |= NLM_F_ACK;
    std::memcpy(queue.data() + last, &header, sizeof header);
    const std::uint32_t final = header.nlmsg_seq;
    Status out;
    if (send(fd(), queue.data(), queue.size(), 0) < 0) {
      out = system_failure(where + ": sending to the kernel", errno);
    } else {
      out = receive(
          [&](nlmsghdr* answer) -> Result<bool> {
            if (answer->nlmsg_type != NLMSG_ERROR) return true;
            const auto* error = static_cast<const nlmsgerr*>(nlmsg_data(answer));
            if (error->error != 0) return failure(answer->nlmsg_seq, -error->error);
            return answer->nlmsg_seq != final;
          },
          final);
    }
    sequence = final + 1;
    queue.clear();
    texts.clear();
    return out;
  }

  std::unexpected<Error> failure(std::uint32_t answer, int error) const {
    const std::uint32_t index = answer - sequence;
    return system_failure(
        fmt::format("{}: {}", where, index < texts.size() ? texts[index] : "asking the kernel"),
        error);
  }

  // Calls `visit` with each answer until it returns false. After a failure it reads on, up to the
  // answer to `final`, so that nothing is left for the next request.
  Status receive(const std::function<Result<bool>(nlmsghdr*)>& visit, std::uint32_t final) {
    std::vector<char> buffer(65'536);
    Status out;
    for (;;) {
      const ssize_t size = recv(fd(), buffer.data(), buffer.size(), 0);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return system_failure(where + ": reading the kernel's answers", errno);
      int left = static_cast<int>(size);
      auto* header = reinterpret_cast<nlmsghdr*>(buffer.data());
      for (; nlmsg_ok(header, left) != 0; header = nlmsg_next(header, &left)) {
        const Result<bool> more = visit(header);
        if (more && !*more) return out;
        if (more) continue;
        if (out) out = std::unexpected(more.error());
        if (header->nlmsg_seq == final) return out;
      }
    }
  }

  Status dump(Message& message, const std::function<void(nlmsghdr*)>& visit) {
    WEFT_TRY_STATUS(flush());
    if (!message.ok()) return fail(Errc::io, {}, where + ": out of memory for a netlink message");
    message.raw()->nlmsg_seq = sequence;
    if (send(fd(), message.raw(), message.raw()->nlmsg_len, 0) < 0)
      return system_failure(where + ": sending to the kernel", errno);
    const std::uint32_t final = sequence++;
    return receive(
        [&](nlmsghdr* answer) -> Result<bool> {
          if (answer->nlmsg_type == NLMSG_DONE) return false;
          if (answer->nlmsg_type == NLMSG_ERROR) {
            const auto* error = static_cast<const nlmsgerr*>(nlmsg_data(answer));
            return system_failure(where + ": asking the kernel", -error->error);
          }
          visit(answer);
          return true;
        },
        final);
  }
};

// Anything but blanks, '/' and ':'; the first two letters of an interface must not make it "." or
// "..", which "Ethernet1/7" and the like never are.
std::string kernel_name(std::string_view name) {
  std::string out(name);
  for (char& c : out)
    if (c == '/' || c == ':' || std::isspace(static_cast<unsigned char>(c)) != 0) c = '-';
  return out;
}

Netlink::Netlink(std::unique_ptr<Socket> socket) : socket_(std::move(socket)) {}
Netlink::~Netlink() = default;
Netlink::Netlink(Netlink&&) noexcept = default;
Netlink& Netlink::operator=(Netlink&&) noexcept = default;

Result<Netlink> Netlink::open(std::string where) {
  auto socket = std::make_unique<Socket>();
  socket->where = std::move(where);
  if (socket->socket == nullptr)
    return fail(Errc::io, {}, socket->where + ": out of memory for a netlink socket");
  if (const int error = nl_connect(socket->socket.get(), NETLINK_ROUTE); error < 0)
    return fail(Errc::io, {},
                fmt::format("{}: opening a netlink socket: {}", socket->where, nl_geterror(error)));
  const int on = 1;
  // Without the failed request in the answer; where that is not known, answers are just longer.
  static_cast<void>(setsockopt(socket->fd(), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on));
  return Netlink(std::move(socket));
}

Status Netlink::add_veth(const VethEnd& a, const VethEnd& b) {
  Message message(RTM_NEWLINK, create_flags);
  message.header(interface_header(0))
      .put_text(IFLA_IFNAME, a.interface)
      .put(IFLA_ADDRESS, a.mac)
      .put(IFLA_NET_NS_FD, a.netns)
      .begin(IFLA_LINKINFO)
      .put_text(IFLA_INFO_KIND, "veth")
      .begin(IFLA_INFO_DATA)
      .begin(VETH_INFO_PEER)
      .header(interface_header(0))
      .put_text(IFLA_IFNAME, b.interface)
      .put(IFLA_ADDRESS, b.mac)
      .put(IFLA_NET_NS_FD, b.netns)
      .end()
      .end()
      .end();
  return socket_->add(message, fmt::format("creating the cable {}--{}", a.interface, b.interface));
}

Status Netlink::add_bridge(const std::string& name) {
  Message message(RTM_NEWLINK, create_flags);
  message.header(interface_header(0))
      .put_text(IFLA_IFNAME, name)
      .begin(IFLA_LINKINFO)
      .put_text(IFLA_INFO_KIND, "bridge")
      .end();
  return socket_->add(message, "creating the bridge " + name);
}

Status Netlink::set_master(std::uint32_t interface, std::uint32_t bridge) {
  Message message(RTM_NEWLINK, 0);
  message.header(interface_header(interface)).put(IFLA_MASTER, bridge);
  return socket_->add(message, fmt::format("putting interface {} on the bridge", interface));
}

Status Netlink::set_up(std::uint32_t interface) {
  Message message(RTM_NEWLINK, 0);
  message.header(interface_header(interface, IFF_UP));
  return socket_->add(message, fmt::format("setting interface {} up", interface));
}

Status Netlink::set_down(std::uint32_t interface) {
  ifinfomsg header = interface_header(interface);
  header.ifi_change = IFF_UP;
  Message message(RTM_NEWLINK, 0);
  message.header(header);
  return socket_->add(message, fmt::format("setting interface {} down", interface));
}

Status Netlink::delete_link(const std::string& name) {
  Message message(RTM_DELLINK, 0);
  message.header(interface_header(0)).put_text(IFLA_IFNAME, name);
  return socket_->add(message, "deleting the interface " + name);
}

Status Netlink::add_address(std::uint32_t interface, Ipv4 address, std::uint8_t prefix_length,
                            Ipv4 peer) {
  ifaddrmsg header{};
  header.ifa_family = AF_INET;
  header.ifa_prefixlen = prefix_length;
  header.ifa_scope = RT_SCOPE_UNIVERSE;
  header.ifa_index = interface;
  Message message(RTM_NEWADDR, create_flags);
  message.header(header)
      .put_ipv4(IFA_LOCAL, address)
      .put_ipv4(IFA_ADDRESS, peer == 0 ? address : peer);
  return socket_->add(message, fmt::format("adding the address {}", ipv4_text(address)));
}

Status Netlink::add_neighbour(std::uint32_t interface, Ipv4 address, const Mac& mac) {
  ndmsg header{};
  header.ndm_family = AF_INET;
  header.ndm_ifindex = static_cast<int>(interface);
  header.ndm_state = NUD_PERMANENT;
  Message message(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE);
  message.header(header).put_ipv4(NDA_DST, address).put(NDA_LLADDR, mac);
  return socket_->add(message, fmt::format("adding the neighbour {}", ipv4_text(address)));
}

Status Netlink::add_route(const KernelRoute& route, RouteWrite write) {
  rtmsg header{};
  header.rtm_family = AF_INET;
  header.rtm_dst_len = route.prefix_length;
  header.rtm_table = static_cast<unsigned char>(route.table < 256 ? route.table : RT_TABLE_UNSPEC);
  header.rtm_protocol = route.protocol == 0 ? std::uint8_t{RTPROT_STATIC} : route.protocol;
  header.rtm_type = route.type == 0 ? std::uint8_t{RTN_UNICAST} : route.type;
  const bool direct = route.hops.size() == 1 && route.hops.front().gateway == 0;
  header.rtm_scope = direct ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
  if (route.onlink) header.rtm_flags |= RTNH_F_ONLINK;
  Message message(RTM_NEWROUTE,
                  write == RouteWrite::create ? create_flags : NLM_F_CREATE | NLM_F_REPLACE);
  message.header(header).put(RTA_TABLE, route.table);
  if (route.prefix_length > 0) message.put_ipv4(RTA_DST, route.destination);
  if (route.hops.size() == 1) {
    message.put(RTA_OIF, route.hops.front().interface);
    if (!direct) message.put_ipv4(RTA_GATEWAY, route.hops.front().gateway);
  } else if (!route.hops.empty()) {
    message.put_bytes(RTA_MULTIPATH, next_hop_records(route.hops));
  }
  return socket_->add(message, fmt::format("adding the route {}/{}", ipv4_text(route.destination),
                                           route.prefix_length));
}

Status Netlink::delete_route(const KernelRoute& route) {
  rtmsg header{};
  header.rtm_family = AF_INET;
  header.rtm_dst_len = route.prefix_length;
  header.rtm_protocol = route.protocol;
  header.rtm_type = route.type;
  header.rtm_scope = RT_SCOPE_NOWHERE;
  Message message(RTM_DELROUTE, 0);
  message.header(header).put(RTA_TABLE, route.table);
  if (route.prefix_length > 0) message.put_ipv4(RTA_DST, route.destination);
  return socket_->add(message, fmt::format("deleting the route {}/{}", ipv4_text(route.destination),
                                           route.prefix_length));
}

Status Netlink::add_source_rule(Ipv4 source, std::uint32_t table, std::uint32_t priority) {
  fib_rule_hdr header{};
  header.family = AF_INET;
  header.src_len = 32;
  header.action = FR_ACT_TO_TBL;
  Message message(RTM_NEWRULE, create_flags);
  message.header(header)
      .put_ipv4(FRA_SRC, source)
      .put(FRA_TABLE, table)
      .put(FRA_PRIORITY, priority);
  return socket_->add(message, fmt::format("adding the rule for {}", ipv4_text(source)));
}

Status Netlink::add_mark_rule(std::uint32_t mark, std::uint32_t table, std::uint32_t priority) {
  fib_rule_hdr header{};
  header.family = AF_INET;
  header.action = FR_ACT_TO_TBL;
  Message message(RTM_NEWRULE, create_flags);
  message.header(header).put(FRA_FWMARK, mark).put(FRA_TABLE, table).put(FRA_PRIORITY, priority);
  return socket_->add(message, fmt::format("adding the rule for mark {:#x}", mark));
}

Status Netlink::delete_mark_rule(std::uint32_t mark, std::uint32_t table, std::uint32_t priority) {
  fib_rule_hdr header{};
  header.family = AF_INET;
  header.action = FR_ACT_TO_TBL;
  Message message(RTM_DELRULE, 0);
  message.header(header).put(FRA_FWMARK, mark).put(FRA_TABLE, table).put(FRA_PRIORITY, priority);
  return socket_->add(message, fmt::format("deleting the rule for mark {:#x}", mark));
}

Status Netlink::try_queue_discipline(const std::string& kind) {
  tcmsg header{};
  header.tcm_family = AF_UNSPEC;
  header.tcm_ifindex = 1;  // lo
  header.tcm_parent = TC_H_ROOT;
  Message message(RTM_NEWQDISC, create_flags);
  message.header(header).put_text(TCA_KIND, kind);
  WEFT_TRY_STATUS(socket_->add(message, "adding the queue discipline " + kind));
  Status out = flush();
  // Without options most refuse to start, but only after the kernel has found them.
  const bool known = out || out.error().what.ends_with(errno_text(EINVAL));
  if (known) return {};
  return fail(out.error().code, {}, "this kernel does not support it: " + out.error().what);
}

Status Netlink::flush() { return socket_->flush(); }

Result<std::vector<LinkState>> Netlink::links() {
  Message message(RTM_GETLINK, NLM_F_DUMP);
  message.header(interface_header(0));
  std::vector<LinkState> out;
  WEFT_TRY_STATUS(
      socket_->dump(message, [&](nlmsghdr* answer) { out.push_back(read_link(answer)); }));
  return out;
}

Result<std::map<std::string, std::uint32_t, std::less<>>> Netlink::indexes() {
  WEFT_TRY(const std::vector<LinkState> all, links());
  std::map<std::string, std::uint32_t, std::less<>> out;
  for (const LinkState& link : all) out.emplace(link.name, link.index);
  return out;
}

Result<std::vector<KernelRoute>> Netlink::routes(RouteTables tables) {
  rtmsg header{};
  header.rtm_family = AF_INET;
  Message message(RTM_GETROUTE, NLM_F_DUMP);
  message.header(header);
  std::vector<KernelRoute> out;
  WEFT_TRY_STATUS(socket_->dump(message, [&](nlmsghdr* answer) {
    KernelRoute route = read_route(answer);
    const bool wanted =
        tables == RouteTables::all ? route.table != RT_TABLE_LOCAL : route.table == RT_TABLE_MAIN;
    if (wanted) out.push_back(std::move(route));
  }));
  return out;
}

}  // namespace linux_switch
}  // namespace weft::adapt
