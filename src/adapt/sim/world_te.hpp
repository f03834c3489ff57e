// Central traffic engineering in a simulated network: the controller, what it hears, and the marks
// that the switches have.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "adapt/sim/operations.hpp"
#include "operate/te/controller.hpp"
#include "port/link_feed.hpp"
#include "port/route_sink.hpp"

namespace weft::adapt::sim {

struct WorldTeSettings {
  std::vector<operate::te::Flow> flows;
  operate::te::LoopOptions loop;
  Duration heard = 1'200_us;      // from a change of carrier until the controller hears of it
  Duration installed = 1'100_us;  // from the news until its marks are installed
  Duration lease = 3_s;
};

// The controller is the one that runs on labs and live networks. Marks are as the switches of a lab
// have them: one over an uplink of the rack that has no carrier gives way to the routes beneath
// once the switch has noticed; all do when nobody has renewed them for the lease.
class WorldTe final : public port::LinkFeed, public port::RouteSink {
 public:
  // Assigns all flows at once. `fabric` and `net` must outlive it. Fails: Errc::unsupported for
  // what is no two-tier Clos.
  static Result<std::unique_ptr<WorldTe>> create(const model::Fabric& fabric, const Operations& net,
                                                 const WorldTeSettings& settings);

  // What is due at net.now() happens; `routes`: those of all switches now. Returns whether some
  // packets take another mark than before. Fails: Errc::unsupported after 100 days (times are 64
  // bits of picoseconds).
  Result<bool> advance(const model::State& routes);
  // When advance() has something to do.
  Timestamp next_due() const;
  // When a path may change: without renewals and looks that change nothing.
  std::optional<Timestamp> next_change() const;

  // Nobody renews the marks any more.
  void stop_controller() { controller_.reset(); }
  // A new one, which finds the marks as they are.
  Status start_controller();

  // The uplink that switches send the packets by: invalid where hashing chooses.
  model::LinkId uplink_of(model::NodeId src, model::NodeId dst, std::uint16_t port) const;
  // The links of a mark's path, if there is such a path.
  std::vector<model::LinkId> path_of(model::NodeId src, model::NodeId dst,
                                     model::LinkId uplink) const;
  // All that hold.
  std::vector<port::RouteMark> marks() const;
  std::span<const operate::te::Flow> flows() const { return settings_.flows; }
  const std::vector<operate::te::Event>& events() const { return events_; }

  std::vector<port::LinkNews> news() override;
  std::vector<model::CableId> routed(std::span<const model::CableId> cables) override;
  model::State drained() override;
  Status apply(std::span<const port::RouteMark> changes) override;
  Result<std::vector<port::RouteMark>> installed() override;
  Status renew() override;
  Status restore(std::span<const model::CableId> /*cables*/) override { return {}; }

  WorldTe(const model::Fabric& fabric, const Operations& net, const WorldTeSettings& settings,
          route::Zone zone);  // for create()

 private:
  using Key = port::RouteMark;  // without its uplink
  struct Heard {
    Timestamp at;
    port::LinkNews news;
  };
  struct Coming {
    Timestamp at;
    std::vector<port::RouteMark> changes;
  };
  Time time() const { return time_of(net_.now()); }
  Time time_of(Timestamp t) const { return Time{(t.ns - start_.ns) * ps_per_ns}; }
  Timestamp wall_of(Time t) const { return {start_.ns + (t.ps + ps_per_ns - 1) / ps_per_ns}; }
  Timestamp after(Duration d) const { return {net_.now().ns + d.ps / ps_per_ns}; }
  bool holds() const { return net_.now() < lease_end_; }
  void watch_carriers();
  bool install();

  const model::Fabric& fabric_;
  const Operations& net_;
  WorldTeSettings settings_;
  route::Zone zone_;
  Timestamp start_, lease_end_;
  std::optional<operate::te::Controller> controller_;
  std::vector<bool> carrier_;  // by cable, as last seen
  std::vector<Heard> heard_;   // to come, by time
  std::vector<Coming> coming_;
  std::map<Key, model::LinkId> marks_;
  model::State routes_;
  std::uint64_t version_ = 0;
  bool held_ = false;  // at the last advance()
  std::vector<operate::te::Event> events_;
};

}  // namespace weft::adapt::sim
