#include "adapt/lab/flow_check.hpp"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "adapt/lab/netns.hpp"
#include "base/fd.hpp"
#include "base/text.hpp"
#include "os/error.hpp"

namespace weft::adapt::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Mac nobody{0x02, 0x77, 0x65, 0x66, 0x74, 0x63};
constexpr int check_socket_bytes = 4 << 20;
constexpr std::int64_t dscp_max = 63;
constexpr std::chrono::milliseconds pause{4}, flow_wait{300};
constexpr std::uint64_t flow_mark = 0x7765'6674'666c'6f77ull;

struct FlowPayload {
  std::uint64_t mark;
  std::uint64_t check;
  std::uint32_t flow, number;
};
struct [[gnu::packed]] Frame {
  ether_header ethernet;
  iphdr ip;
  udphdr udp;
  FlowPayload payload;
};

// A flow and the ends of its link.
struct Way {
  EndId from;
  Frame frame{};
  std::vector<bool> came;
};
struct Socket {
  Fd fd;
  int interface = 0;
};

std::uint16_t checksum(const iphdr& header) {
  std::array<std::uint16_t, sizeof header / 2> words{};
  std::memcpy(words.data(), &header, sizeof header);
  std::uint32_t sum = 0;
  for (const std::uint16_t word : words) sum += word;
  while (sum >> 16 != 0) sum = (sum & 0xFFFFu) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

std::optional<Ipv4> address_of(const model::Fabric& fabric, std::string_view name) {
  const auto node = fabric.find_node({name, {}});
  if (!node) return std::nullopt;
  if (fabric.kind(*node) == model::NodeKind::nic) return fabric.address(*node);
  const auto nics = fabric.nics_of(*node);
  if (nics.empty()) return std::nullopt;
  return fabric.address(nics.front());
}

std::optional<Way> way_of(const model::Fabric& fabric, const LabPlan& plan, const port::Flow& flow,
                          const FlowCheckOptions& options) {
  const auto from = plan.find_sender(fabric, {flow.link, {}});
  const auto src = address_of(fabric, flow.src), dst = address_of(fabric, flow.dst);
  if (!from || !src || !dst) return std::nullopt;
  Way out{.from = *from};
  Frame& f = out.frame;
  std::ranges::copy(nobody, f.ethernet.ether_dhost);
  std::ranges::copy(plan.end(*from).mac, f.ethernet.ether_shost);
  f.ethernet.ether_type = htons(ETHERTYPE_IP);
  const auto dscp = parse_count({flow.traffic_class, {}});
  iphdr ip{};
  ip.version = 4;
  ip.ihl = 5;
  if (dscp && *dscp >= 0 && *dscp <= dscp_max) ip.tos = static_cast<std::uint8_t>(*dscp << 2);
  ip.tot_len = htons(sizeof(Frame) - sizeof(ether_header));
  ip.ttl = 64;
  ip.protocol = IPPROTO_UDP;
  ip.saddr = htonl(*src);
  ip.daddr = htonl(*dst);
  ip.check = checksum(ip);
  f.ip = ip;
  f.udp.source = htons(flow.sport == 0 ? options.responder_port : flow.sport);
  f.udp.dest = htons(flow.dport == 0 ? options.responder_port : flow.dport);
  f.udp.len = htons(sizeof(udphdr) + sizeof(FlowPayload));
  out.came.assign(options.packets_each, false);
  return out;
}

// Of frames to nobody alone: what else comes over the cable must not fill its queue.
Status take_only_ours(int fd) {
  const auto word = [](std::size_t at) {
    return static_cast<std::uint32_t>(nobody[at]) << 24 |
           static_cast<std::uint32_t>(nobody[at + 1]) << 16 |
           static_cast<std::uint32_t>(nobody[at + 2]) << 8 | nobody[at + 3];
  };
  std::array<sock_filter, 6> code{{{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},
                                   {BPF_JMP | BPF_JEQ | BPF_K, 0, 3, word(0)},
                                   {BPF_LD | BPF_W | BPF_ABS, 0, 0, 2},
                                   {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, word(2)},
                                   {BPF_RET | BPF_K, 0, 0, 0xFFFF},
                                   {BPF_RET | BPF_K, 0, 0, 0}}};
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0)
    return system_failure("a filter of a packet socket", errno);
  return {};
}

// In the namespace that the calling thread is in. An interface that is gone is no failure: its
// packets are lost.
Result<Socket> open_socket(const std::string& interface) {
  Socket out;
  out.fd = Fd(socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!out.fd.valid()) return system_failure("packet socket", errno);
  out.interface = static_cast<int>(if_nametoindex(interface.c_str()));
  if (out.interface == 0) return Socket{};
  WEFT_TRY_STATUS(take_only_ours(out.fd.get()));
  setsockopt(out.fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &check_socket_bytes,
             sizeof check_socket_bytes);
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_IP);
  address.sll_ifindex = out.interface;
  if (bind(out.fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == ENODEV || errno == ENETDOWN) return Socket{};
    return system_failure("packet socket on " + interface, errno);
  }
  return out;
}

using Sockets = std::map<EndId, Socket>;

Result<Sockets> open_sockets(const LabPlan& plan, const std::vector<Way>& ways) {
  Sockets out;
  for (const Way& way : ways)
    for (const EndId end : {way.from, way.from.peer()}) out[end];
  std::vector<std::string> names;
  std::vector<std::pair<EndId, Socket*>> ends;
  for (auto& [end, socket] : out) {
    names.push_back(plan.node_of(end).netns);
    ends.emplace_back(end, &socket);
  }
  WEFT_TRY_STATUS(run_in_each_netns(names, 1, [&](std::size_t i) -> Status {
    WEFT_TRY(*ends[i].second, open_socket(plan.end(ends[i].first).interface));
    return {};
  }));
  return out;
}

void send_one(Way& way, const Socket& socket, const FlowPayload& payload) {
  if (!socket.fd.valid()) return;
  way.frame.payload = payload;
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_protocol = htons(ETH_P_IP);
  to.sll_ifindex = socket.interface;
  to.sll_halen = ETH_ALEN;
  std::ranges::copy(nobody, to.sll_addr);
  // What cannot be sent does not come.
  static_cast<void>(sendto(socket.fd.get(), &way.frame, sizeof way.frame, MSG_DONTWAIT,
                           reinterpret_cast<const sockaddr*>(&to), sizeof to));
}

// How many came that had not come before.
std::size_t receive(const Sockets& sockets, std::vector<Way>& ways, std::uint64_t check) {
  std::size_t out = 0;
  for (const auto& [end, socket] : sockets) {
    Frame frame{};
    sockaddr_ll from{};
    socklen_t length = sizeof from;
    const auto take = [&] {
      length = sizeof from;
      return socket.fd.valid() && recvfrom(socket.fd.get(), &frame, sizeof frame, MSG_DONTWAIT,
                                           reinterpret_cast<sockaddr*>(&from),
                                           &length) == static_cast<ssize_t>(sizeof frame);
    };
    while (take()) {
      const FlowPayload p = frame.payload;
      if (from.sll_pkttype == PACKET_OUTGOING || p.mark != flow_mark || p.check != check ||
          p.flow >= ways.size() || ways[p.flow].from.peer() != end ||
          p.number >= ways[p.flow].came.size() || ways[p.flow].came[p.number])
        continue;
      ways[p.flow].came[p.number] = true;
      ++out;
    }
  }
  return out;
}

}  // namespace

Result<port::Check> check_flows(const model::Fabric& fabric, const LabPlan& plan,
                                std::span<const port::Flow> flows,
                                const FlowCheckOptions& options) {
  std::vector<Way> ways;
  for (const port::Flow& flow : flows)
    if (auto way = way_of(fabric, plan, flow, options)) ways.push_back(*std::move(way));
  if (ways.empty()) return port::Check{};
  WEFT_TRY(const Sockets sockets, open_sockets(plan, ways));
  const auto check = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
  std::size_t came = 0;
  const std::size_t all = ways.size() * options.packets_each;
  for (std::uint32_t number = 0; number < options.packets_each; ++number) {
    for (std::uint32_t i = 0; i < ways.size(); ++i)
      send_one(ways[i], sockets.at(ways[i].from), {flow_mark, check, i, number});
    came += receive(sockets, ways, check);
    std::this_thread::sleep_for(pause);
  }
  const auto deadline = Clock::now() + flow_wait;
  for (;;) {
    came += receive(sockets, ways, check);
    if (came == all || Clock::now() >= deadline) return port::Check{all, all - came};
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace weft::adapt::lab
