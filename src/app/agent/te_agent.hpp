// The agent's part of traffic engineering: reports its switch's cables to the service, and installs
// the marks that it is told.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "adapt/linux_switch/link_watch.hpp"
#include "adapt/linux_switch/main_table.hpp"
#include "adapt/linux_switch/netlink.hpp"
#include "adapt/linux_switch/switch_overlay.hpp"
#include "adapt/live/http_client.hpp"
#include "model/fabric/fabric.hpp"
#include "operate/te/switch_messages.hpp"
#include "route/zone.hpp"

namespace weft::app {

struct TeAgentSettings {
  adapt::live::ServiceUrl service;
  std::string token;  // with the role ingest; "": none
  adapt::live::TlsFiles tls;
  const model::Fabric& fabric;                       // must outlive it
  model::NodeId device;                              // a switch of the zone
  std::map<model::NodeId, std::uint32_t> addresses;  // of all NICs, as packets have them
};

// Two threads with a connection each: one sends what the kernel says of the cables, the other
// keeps a request at the service, whose answers are changes of marks and renewals of the lease. A
// rack's marks hold for overlay_lease after an answer; answers that took long renew nothing, nor do
// those that could not be carried out, so that a switch that is cut off, or cannot do as it is
// told, goes back to the routes beneath. A spine reports alone. Marks stay when the process ends.
class TeAgent {
 public:
  // Works in the calling thread's network namespace. Fails: Errc::unsupported for a device that is
  // no switch of a two-tier Clos, or whose kernel has none of its interfaces, does not forward or
  // has no nftables; Errc::io for lack of rights.
  static Result<std::unique_ptr<TeAgent>> open(TeAgentSettings settings);
  // Takes all marks of a switch away. Fails: as open().
  static Status remove(const model::Fabric& fabric, model::NodeId device);

  // A cable to another switch of the zone.
  struct Port {
    model::LinkId link;     // that leaves here
    std::string name;       // of the link
    std::string interface;  // "": the kernel has none of its name
    std::uint32_t index = 0;
    bool carrier = false;
    adapt::Ipv4 gateway = 0;
    bool has_route = false;         // the overlay's table leads over it
    std::vector<std::string> lost;  // racks that the routes beneath do not lead to, of `watch`
    bool is_watched = false;
  };
  TeAgent(TeAgentSettings settings, route::Zone zone, std::vector<Port> ports,
          adapt::Netlink netlink, adapt::LinkWatch watch,
          std::optional<adapt::SwitchOverlay> overlay);  // for open()

 private:
  using Clock = std::chrono::steady_clock;
  void watch_cables(const std::stop_token& stop);
  void keep_marks(const std::stop_token& stop);
  Result<std::string> send(std::optional<adapt::live::HttpClient>& client, const std::string& path,
                           const operate::te::SwitchReport& report, const std::stop_token& stop);
  void carry_out(const operate::te::SwitchOrders& orders, Clock::time_point asked,
                 operate::te::SwitchReport& next);
  operate::te::SwitchReport compose();
  bool take_news();
  void set_carrier(Port& port, bool carrier);
  Status look();
  Status look_at_routes();
  std::vector<std::string> racks_behind(const Port& port) const;
  Result<std::optional<std::uint32_t>> place_of(const std::string& uplink) const;
  Result<std::vector<operate::te::SwitchMark>> installed();
  void say(std::string_view what, const Status& status, std::string& said) const;

  TeAgentSettings settings_;
  route::Zone zone_;
  std::string name_, path_, agent_;
  std::map<std::uint32_t, std::vector<adapt::Ipv4>> rack_addresses_;  // by rack of the zone
  std::map<std::uint32_t, std::string> rack_names_;
  adapt::Netlink netlink_;  // of the thread of cables, as the next
  adapt::LinkWatch links_;
  std::mutex overlay_mutex_;  // taken before the other where both are
  std::optional<adapt::SwitchOverlay> overlay_;
  std::mutex mutex_;  // of the next two
  std::vector<Port> ports_;
  std::uint64_t serial_ = 0;
  std::atomic<bool> is_resync_ = false;  // what is installed is not what the service knows
  std::jthread cables_, marks_;          // last: they use the others
};

}  // namespace weft::app
