// The kernel's routing socket: interfaces, addresses, neighbours, routes; changes in batches.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace weft::adapt {
inline namespace linux_switch {

using Mac = std::array<std::uint8_t, 6>;
using Ipv4 = std::uint32_t;  // host byte order; 0: none

// An interface's name as the kernel can have it: "Ethernet1-7" of "Ethernet1/7".
std::string kernel_name(std::string_view name);

struct VethEnd {
  std::string interface;
  Mac mac{};
  int netns = -1;  // an open namespace
};

struct NextHop {
  std::uint32_t interface = 0;  // index
  Ipv4 gateway = 0;             // 0: the destination is on the link
  friend auto operator<=>(const NextHop&, const NextHop&) = default;
};
struct KernelRoute {
  Ipv4 destination = 0;
  std::uint8_t prefix_length = 32;
  std::vector<NextHop> hops;  // ascending
  std::uint8_t protocol = 0;  // RTPROT_*
  std::uint8_t type = 0;      // RTN_*
  std::uint32_t table = 254;  // RT_TABLE_MAIN
  Ipv4 source = 0;            // preferred source address; read, not written
  bool onlink = false;        // its one gateway need not be of a network of the interface; not read
};

struct LinkState {
  std::uint32_t index = 0;
  std::string name;
  bool up = false;       // by the administrator
  bool carrier = false;  // both ends up
  std::uint64_t rx_packets = 0, tx_packets = 0, rx_bytes = 0, tx_bytes = 0;
  std::uint64_t rx_dropped = 0, tx_dropped = 0, rx_errors = 0, tx_errors = 0;
};

enum class RouteWrite : std::uint8_t { create, replace };
enum class RouteTables : std::uint8_t { main, all };

// A socket in the namespace that the opening thread is in; it stays there.
//
// Changes are queued and sent many at a time; an error names the change that failed. The kernel
// carries them out in order and goes on after a failure.
class Netlink {
 public:
  // `where` begins every error: the name of the node.
  static Result<Netlink> open(std::string where);
  ~Netlink();
  Netlink(Netlink&&) noexcept;
  Netlink& operator=(Netlink&&) noexcept;

  Status add_veth(const VethEnd& a, const VethEnd& b);
  Status add_bridge(const std::string& name);
  Status set_master(std::uint32_t interface, std::uint32_t bridge);
  Status set_up(std::uint32_t interface);
  Status set_down(std::uint32_t interface);
  Status delete_link(const std::string& name);
  // `peer`: a point-to-point address, which brings a route to the peer; 0 for none.
  Status add_address(std::uint32_t interface, Ipv4 address, std::uint8_t prefix_length,
                     Ipv4 peer = 0);
  // Never asked for by ARP again, and not counted against the machine's table of neighbours.
  Status add_neighbour(std::uint32_t interface, Ipv4 address, const Mac& mac);
  Status add_route(const KernelRoute& route, RouteWrite write);
  Status delete_route(const KernelRoute& route);
  // Packets from `source` look in `table`.
  Status add_source_rule(Ipv4 source, std::uint32_t table, std::uint32_t priority);
  // Packets that carry `mark` look in `table`.
  Status add_mark_rule(std::uint32_t mark, std::uint32_t table, std::uint32_t priority);
  Status delete_mark_rule(std::uint32_t mark, std::uint32_t table, std::uint32_t priority);
  // Whether the kernel knows a queue discipline, "tbf"; nothing stays of it. Fails: Errc::io.
  Status try_queue_discipline(const std::string& kind);
  // Sends what is queued and waits for the kernel's answers. Fails: Errc::io with the first.
  Status flush();

  // All interfaces. Fails: Errc::io.
  Result<std::vector<LinkState>> links();
  // Their indexes by name. Fails: Errc::io.
  Result<std::map<std::string, std::uint32_t, std::less<>>> indexes();
  // IPv4 routes of the main table, or of all but the kernel's own, in the kernel's order: of equal
  // prefixes the first is the one that packets take. Fails: Errc::io.
  Result<std::vector<KernelRoute>> routes(RouteTables tables = RouteTables::main);

 private:
  struct Socket;
  explicit Netlink(std::unique_ptr<Socket> socket);
  std::unique_ptr<Socket> socket_;
};

}  // namespace linux_switch
}  // namespace weft::adapt
