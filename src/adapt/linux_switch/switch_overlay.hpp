// Paths of flows at one switch that forwards with its kernel, above the routes of BGP.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "adapt/linux_switch/netlink.hpp"
#include "adapt/linux_switch/nft.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"
#include "base/units.hpp"

namespace weft::adapt {
inline namespace linux_switch {

// How long marks hold after renew().
inline constexpr Duration overlay_lease = 3_s;

struct OverlayUplink {
  std::string interface;
  Ipv4 gateway = 0;  // the neighbour's address; 0: not known yet, and marks of it lead nowhere else
                     // than to the main table
};

// Packets of a flow as switches tell them apart.
struct FlowKey {
  Ipv4 src = 0, dst = 0;
  std::uint16_t port = 0;  // UDP source port
  friend auto operator<=>(const FlowKey&, const FlowKey&) = default;
};
struct FlowMark {
  FlowKey flow;
  std::optional<std::uint32_t> uplink;  // by place among the uplinks; none: left to hashing
};

// nftables give the packets of a marked flow the mark of an uplink, a rule sends that mark to a
// table of its own, and the table's one route leads over the uplink. Where the uplink is down, the
// table has no route and the packet goes on to the main table: what BGP found. The same holds for
// flows without a mark, and for all flows when nobody has called renew() for overlay_lease: a mark
// over a live uplink to a spine that has lost the other rack would otherwise lead nowhere. What is
// installed stays when the process ends, for the next one to renew; remove() takes it away.
class SwitchOverlay {
 public:
  // In the calling thread's network namespace, where it then works from any thread. `where` begins
  // every error. What is there already stays, and means the uplinks as they are given now.
  // Fails: Errc::io, Errc::unsupported without nftables.
  static Result<SwitchOverlay> open(const std::string& where, std::vector<OverlayUplink> uplinks);

  // One transaction. Idempotent. Cost: 1 to 2 ms, and some 10 us a mark. Fails: Errc::unknown for a
  // place without an uplink, Errc::io.
  Status apply(std::span<const FlowMark> changes);
  // Looks at what is there: somebody may have flushed it all. False: it was not what installed()
  // said, which now says what is there; what was missing of the table was made again, without
  // marks. Fails: as open().
  Result<bool> reread();
  // By flow, the place of the uplink.
  const std::map<FlowKey, std::uint32_t>& installed() const { return marks_; }
  // Cost: a packet. Fails: Errc::io.
  Status renew();
  // Writes the routes of the tables: the kernel forgets one when its interface is set down. Those
  // over interfaces that are down cannot be written, and are not missed. Fails: Errc::io.
  Status write_routes();
  // From the next write_routes() on.
  void set_uplink(std::size_t place, OverlayUplink uplink) { uplinks_[place] = std::move(uplink); }

  // Also of an overlay that was left half done; nothing there is no failure. As open(), of
  // `uplinks` so many.
  static Status remove(const std::string& where, std::size_t uplinks);

 private:
  SwitchOverlay(std::string where, std::vector<OverlayUplink> uplinks, Netlink netlink, Nft nft,
                Fd renewal)
      : where_(std::move(where)),
        uplinks_(std::move(uplinks)),
        netlink_(std::move(netlink)),
        nft_(std::move(nft)),
        renewal_(std::move(renewal)) {}

  std::string where_;
  std::vector<OverlayUplink> uplinks_;
  Netlink netlink_;
  Nft nft_;
  Fd renewal_;  // a packet on it renews the lease
  std::map<FlowKey, std::uint32_t> marks_;
};

}  // namespace linux_switch
}  // namespace weft::adapt
