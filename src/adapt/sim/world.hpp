// One simulated network: a fabric, its state and one clock, behind the ports that a service has,
// and behind `weft probe --twin`.
//
// Operations decides what breaks, what devices say of it, and what drains and people change. Probes
// cross the links that routing gives them; how many are lost is drawn per flow and window from the
// state of these links (Twin), how long they take follows from the links' latency, faults and the
// load of running jobs. A window ends where state or routes change, so that each has one path and
// one loss; while nothing suffers windows are long. The same calls after the same seed give the
// same lines.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/sim/operations.hpp"
#include "adapt/sim/twin.hpp"
#include "adapt/sim/world_te.hpp"
#include "observe/probe/plan.hpp"
#include "port/clock.hpp"
#include "port/device_state.hpp"
#include "route/router.hpp"

namespace weft::adapt::sim {

struct WorldSettings {
  OperationsSettings operations;
  double crossings_per_s = 500;   // of each link by probes,
  std::uint32_t flows_each = 4;   // by so many flows at least
  std::uint32_t routes_each = 0;  // and each transit route
  std::vector<TwinFlow> flows;    // these instead, where there are any, along planned paths
  double good_loss_max = 0;       // what links without a fault lose, each its own share of it
  // Windows of evidence: after a change, once a fault is a minute old, and where nothing suffers.
  std::int64_t window_ns = ns_per_s, steady_window_ns = 5 * ns_per_s;
  std::int64_t quiet_window_ns = ns_per_minute;
  std::int64_t converge_ns = 300'000'000;  // until routes follow a change
  // Until a switch turns from a link of its own that is down to others that it has a route over;
  // none: it waits for routes, too.
  std::optional<std::int64_t> notice_ns;
  std::optional<WorldTeSettings> te;
  // How busy running jobs keep each link, a mean share of its rate by LinkId, in a state of the
  // fabric and with the marks that hold (null without `te`); empty: nothing runs. Asked for anew
  // where paths change.
  std::function<Result<std::vector<double>>(const model::State&,
                                            const std::vector<port::RouteMark>*)>
      loads;
};

// A flow of `te` without a path: over a dead link, or none at all.
struct Blackout {
  std::uint32_t flow = 0;  // in WorldTe::flows()
  Timestamp from;
  std::optional<Timestamp> to;  // it lasts
};

// The time of day of a world; any thread. Its monotonic time is the machine's, for those who watch
// over threads.
class WorldClock final : public port::Clock {
 public:
  explicit WorldClock(Timestamp start) : wall_ns_(start.ns) {}
  port::Instant now() override;
  Timestamp wall() override { return {wall_ns_.load()}; }
  void set(Timestamp t) { wall_ns_ = t.ns; }

 private:
  std::atomic<std::int64_t> wall_ns_;
};

// Mean wait in front of a link that is busy for `load` of the time with packets of one size that
// come at random (M/D/1): load / (2 (1 - load)) of their time on the link. Loads above 0.99 count
// as 0.99: sources slow down then. In ns; `bytes_per_s` > 0.
double mean_wait_ns(double load, double bytes_per_s);

class World final : public port::Actuator, public port::DeviceState {
 public:
  // `fabric` must outlive it. Fails: as Router::create, as observe::probe::make_plan, as `loads`;
  // Errc::infeasible where nothing joins the ends of a flow that was given.
  static Result<std::unique_ptr<World>> create(const Fabric& fabric,
                                               const route::RoutingConfig& routing,
                                               const WorldSettings& settings, Timestamp start);

  Operations& net() { return net_; }
  const Operations& net() const { return net_; }
  WorldClock& clock() { return clock_; }
  Timestamp now() const { return net_.now(); }
  const Fabric& fabric() const { return fabric_; }
  WorldTe* te() { return te_.get(); }  // null without
  // In the order of their beginnings. Empty without `te`.
  const std::vector<Blackout>& blackouts() const { return blackouts_; }

  // Everything until then happens. Time does not go back. Fails: as `loads`.
  Status advance(Timestamp to);
  // What probes met in the window that is under way is told now.
  void end_window();
  // When something happens next, or now, where lines wait.
  Timestamp next_due() const;
  // JSON lines since the last call: what sources said, and what probes met.
  std::vector<std::string> records() { return std::exchange(records_, {}); }
  std::vector<std::string> evidence() { return std::exchange(evidence_, {}); }
  std::size_t flow_count() const { return plan_.flows.size(); }
  // The same rows as evidence(), since the last call; kept from the first call on.
  model::EvidenceSet take_probes();

  // Between two NICs as routes are now; empty: there is no way.
  route::Path path(NodeId src_nic, NodeId dst_nic, const route::UdpPorts& ports);
  // What a packet meets there, one way, without the traffic of jobs; of the rate the least.
  struct Way {
    double loss = 0, delay_ns = 0, bytes_per_s = 0;
  };
  Way way(std::span<const LinkId> path) const;

  Status act(const port::Action& action) override;
  Result<port::Service> state(std::string_view entity) override { return net_.state(entity); }
  Result<port::Check> check(std::string_view entity) override { return net_.check(entity); }
  Result<port::Check> check_flows(std::string_view entity,
                                  std::span<const port::Flow> flows) override {
    return net_.check_flows(entity, flows);
  }
  // Ports of a switch or host: what is at the other end, carrier, session, service.
  Result<std::vector<port::StatePiece>> collect(std::string_view device,
                                                std::chrono::milliseconds patience,
                                                std::size_t bytes_max) override;

  // For create(): nobody else can finish one.
  World(const Fabric& fabric, const WorldSettings& settings, Timestamp start, route::Router router);

 private:
  Status plan_probes();
  double loss_with_good(LinkId link, double loss) const;
  Status settle();
  void note_change();
  Status find_paths();
  void find_blackouts();
  bool packet_path(NodeId src, NodeId dst, const route::UdpPorts& ports, route::Path& out);
  void add_path(NodeId src, NodeId dst, const route::UdpPorts& ports,
                const std::vector<LinkId>& before, std::uint32_t& first, std::uint16_t& size);
  void set_losses();
  std::int64_t window_length() const;
  void close_window();
  void say_flow(const EvidenceSet& seen, std::size_t first, std::size_t last, const TwinFlow& flow);
  double leg_ns(std::span<const LinkId> path, double waits, double jitter) const;

  const Fabric& fabric_;
  WorldSettings settings_;
  Operations net_;
  WorldClock clock_;
  route::Router router_;
  Twin twin_;
  TwinPlan plan_;
  std::map<LinkId, Operations::Trouble> troubles_;
  std::unique_ptr<WorldTe> te_;
  std::vector<Blackout> blackouts_;
  std::vector<std::uint32_t> dark_;     // by flow of te_: number of its blackout, from 1; 0: none
  model::State routed_, noticed_;       // as routes are, and as switches know their own links
  std::vector<model::Entity> drained_;  // when paths were found
  std::vector<double> wait_ns_;         // by LinkId: mean wait behind the traffic of jobs
  std::map<std::string, std::vector<double>> waits_;  // by state, as far as found
  std::optional<Timestamp> reroute_, notice_;
  Timestamp changed_;        // state or routes, last
  Timestamp window_, edge_;  // start and end of the window
  std::uint64_t version_ = 0;
  std::vector<std::string> records_, evidence_;
  std::optional<model::EvidenceSet> probes_;
};

}  // namespace weft::adapt::sim
