#include "adapt/lab/cable_check.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "adapt/lab/netns.hpp"
#include "base/fd.hpp"
#include "os/error.hpp"

namespace weft::adapt::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t ports_each = 8;
constexpr std::size_t cables_at_once = 32;  // 16 sockets each
constexpr std::uint16_t first_port = 40'100;
constexpr std::chrono::milliseconds send_span{400};
constexpr std::chrono::milliseconds cable_wait{300};
constexpr std::array<int, 3> classes{0, 26, 48};
constexpr std::uint64_t cable_mark = 0x7765'6674'6361'626cull;

// What a packet says; of this check and no other, so that stragglers of an earlier one count for
// nothing.
struct CablePayload {
  std::uint64_t mark;
  std::uint64_t check;
  std::uint32_t end;  // index of the sending end
  std::uint32_t number;
};

// One end of a cable: its sockets, and what came to it.
struct Side {
  std::vector<Fd> sockets;
  std::array<sockaddr_in, ports_each> to{};
  std::vector<bool> came;  // by the peer's packet number
  std::size_t sent = 0, received = 0;
};

sockaddr_in ipv4(Ipv4 address, std::size_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(static_cast<std::uint16_t>(first_port + port));
  out.sin_addr.s_addr = htonl(address);
  return out;
}

// Of the namespace that the calling thread is in. An interface that is gone or down is no failure:
// its packets are lost.
Result<Fd> make_socket(const CableEnd& end, std::size_t port) {
  Fd out(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!out.valid()) return system_failure("creating a socket", errno);
  const sockaddr_in local = ipv4(end.address, port);
  const int service = classes[port % classes.size()] << 2;
  setsockopt(out.get(), IPPROTO_IP, IP_TOS, &service, sizeof service);
  if (setsockopt(out.get(), SOL_SOCKET, SO_BINDTODEVICE, end.interface.c_str(),
                 static_cast<socklen_t>(end.interface.size())) != 0 ||
      bind(out.get(), reinterpret_cast<const sockaddr*>(&local), sizeof local) != 0) {
    if (errno == ENODEV || errno == EADDRNOTAVAIL) return Fd();
    return system_failure("binding a socket to " + end.interface, errno);
  }
  return out;
}

Result<std::vector<Side>> make_sides(const LabPlan& plan, std::span<const LabCableId> cables,
                                     std::size_t packets) {
  std::vector<Side> out(cables.size() * 2);
  std::vector<std::string> names;
  for (const LabCableId cable : cables)
    for (const CableEnd& end : plan.cables[cable].ends) names.push_back(plan.nodes[end.node].netns);
  WEFT_TRY_STATUS(run_in_each_netns(names, 1, [&](std::size_t i) -> Status {
    const LabCable& cable = plan.cables[cables[i / 2]];
    for (std::size_t port = 0; port < ports_each; ++port) {
      WEFT_TRY(Fd socket, make_socket(cable.ends[i % 2], port));
      out[i].sockets.push_back(std::move(socket));
      out[i].to[port] = ipv4(cable.ends[1 - i % 2].address, port);
    }
    out[i].came.assign(packets, false);
    return {};
  }));
  return out;
}

void send_one(Side& side, const CablePayload& payload) {
  ++side.sent;
  const std::size_t pair = payload.number % (ports_each * ports_each);
  const Fd& socket = side.sockets[pair / ports_each];
  const sockaddr_in& to = side.to[pair % ports_each];
  if (!socket.valid()) return;
  // What cannot be sent does not come.
  static_cast<void>(sendto(socket.get(), &payload, sizeof payload, MSG_DONTWAIT,
                           reinterpret_cast<const sockaddr*>(&to), sizeof to));
}

void receive(std::vector<Side>& sides, std::uint64_t check) {
  for (std::size_t i = 0; i < sides.size(); ++i)
    for (const Fd& socket : sides[i].sockets) {
      CablePayload payload{};
      while (socket.valid() && recv(socket.get(), &payload, sizeof payload, MSG_DONTWAIT) ==
                                   static_cast<ssize_t>(sizeof payload)) {
        Side& side = sides[i];
        if (payload.mark != cable_mark || payload.check != check || payload.end != (i ^ 1u) ||
            payload.number >= side.came.size() || side.came[payload.number])
          continue;
        side.came[payload.number] = true;
        ++side.received;
      }
    }
}

Result<port::Check> check_batch(const LabPlan& plan, std::span<const LabCableId> cables,
                                std::size_t packets) {
  WEFT_TRY(std::vector<Side> sides, make_sides(plan, cables, packets));
  const auto start = Clock::now();
  const auto check = static_cast<std::uint64_t>(start.time_since_epoch().count());
  for (std::size_t number = 0; number < packets; ++number) {
    for (std::size_t i = 0; i < sides.size(); ++i)
      send_one(sides[i], {cable_mark, check, static_cast<std::uint32_t>(i),
                          static_cast<std::uint32_t>(number)});
    receive(sides, check);
    const auto share = static_cast<std::int64_t>(number + 1);
    std::this_thread::sleep_until(start + send_span * share / static_cast<std::int64_t>(packets));
  }
  port::Check out;
  const auto deadline = Clock::now() + cable_wait;
  for (;;) {
    receive(sides, check);
    out = {};
    for (const Side& side : sides) out.sent += side.sent;
    out.lost = out.sent;
    for (const Side& side : sides) out.lost -= side.received;
    if (out.lost == 0 || Clock::now() >= deadline) return out;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

Result<port::Check> check_cables(const LabPlan& plan, std::span<const LabCableId> cables,
                                 std::size_t packets_each_way) {
  port::Check out;
  while (!cables.empty()) {
    const auto batch = cables.first(std::min(cables.size(), cables_at_once));
    WEFT_TRY(const port::Check found, check_batch(plan, batch, packets_each_way));
    out.sent += found.sent;
    out.lost += found.lost;
    cables = cables.subspan(batch.size());
  }
  return out;
}

}  // namespace weft::adapt::lab
