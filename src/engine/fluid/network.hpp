// Transfers over a routed fabric whose state changes: the fluid engine's view of the network.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/units.hpp"
#include "engine/fluid/hops.hpp"
#include "engine/fluid/simulation.hpp"
#include "engine/jobs/failures.hpp"
#include "engine/jobs/jobs.hpp"
#include "model/fabric/faults.hpp"
#include "route/router.hpp"

namespace weft::engine::fluid {

using model::Fabric;
using model::NodeId;
using route::Router;

// Parts that advance together, kept to be used again and again.
using RouteId = Id<struct RouteTag>;

// A piece of a transfer: some of its bytes from one end to another. Ends are two NICs (the wire
// alone), GPUs (with the host's inside), or, for reduction on the way, switches. `streams`
// consecutive QPs, from `qp` or, where messages take turns, from `message` on, carry equal parts.
struct Part {
  NodeId from, to;
  std::uint32_t qp = 0;
  std::uint32_t streams = 1;
  std::uint32_t message = 0;
  double weight = 1;  // bytes per byte of the transfer's size
  bool operator==(const Part&) const = default;
};

// Whether a transfer's end waits for the latency of its first part's path; of several QPs, the
// longest.
enum class Wire : std::uint8_t { ignored, counted };

// Bytes that advance at one rate: one stream, or all edges of a ring in steady state.
struct TransferSpec {
  std::span<const Part> parts;
  double bytes = 0;
  double overhead_s = 0;  // software, from the last byte sent to its arrival
  Wire wire = Wire::ignored;
  std::uint64_t tag = 0;
  std::span<const NodeId> via = {};  // must outlive the network; NIC ends only
};

struct NetworkOptions {
  Simulation::Options simulation;
  // off: nothing is shared but the ends themselves; a transfer takes what the busiest of its GPUs'
  // NVLinks and NICs needs for it alone.
  enum class Contention : std::uint8_t { on, off } contention = Contention::on;
  Bytes mtu = 4096_B;  // of packets on lossy links
  // Where given: what failures did to flows goes there. Must outlive the network.
  FailureLog* failures = nullptr;
};

// Keeps every transfer on live paths: after a state change all paths are asked for again; a
// transfer that leaves a dead link sends again what was in flight on it (rate x path latency), one
// without any path waits for the next change. A stream over lossy links carries each byte 1 /
// goodput_share times (model/goback_n.hpp), on its whole path.
class Network final : Simulation::Listener {
 public:
  class Client {
   public:
    virtual ~Client() = default;
    virtual void on_delivered(std::uint64_t tag) = 0;
    virtual void on_timer(std::uint64_t tag) = 0;
  };

  // `changes` ascend in time; those at 0 hold from the start. All references must outlive the
  // network.
  Network(Router& router, std::span<const StateChange> changes, const NetworkOptions& options);

  double now() const { return simulation_.now(); }
  // The fabric's present state, and a number that grows with each change of it.
  const model::State& state() const { return *state_; }
  std::uint32_t state_round() const { return round_; }
  bool changes_after(double at_s) const {
    return !changes_.empty() && changes_.back().at.seconds() > at_s;
  }
  void send(const TransferSpec& spec);
  // Its path is looked for when it is first used, and again after a change. Equal parts, of which
  // there are several, are one route: rings of several calls are often the same ones, with
  // thousands of hops each. Cost of a send: that of its distinct links.
  RouteId add_route(std::span<const Part> parts, Wire wire);
  void send(RouteId route, double bytes, double overhead_s, std::uint64_t tag);
  // Seconds per byte of the route's busiest host-side device, alone: no transfer is faster.
  double route_floor(RouteId route);
  // Calls visit(LinkId, double share) for the links of the route's present path.
  template <class Visit>
  void for_each_hop(RouteId route, Visit visit) {
    refresh(route.value);
    const Route& r = routes_[route.index()];
    kept_.for_each_hop(r.hops, r.hop_count, [&](const Hop& hop) { visit(hop.link, hop.share); });
  }

  void timer(double at_s, std::uint64_t tag);
  void run(Client& client);

  NetworkOptions::Contention contention() const { return options_.contention; }
  Router& router() { return router_; }
  const Fabric& fabric() const { return router_.fabric(); }
  const Simulation& simulation() const { return simulation_; }
  // Calls visit(tag, bytes left, bytes per second) for what is under way now.
  template <class Visit>
  void for_each_active(Visit visit) const {
    for (const Transfer& t : transfers_)
      if (t.active && t.flow.valid())
        visit(t.tag, simulation_.bytes_left(t.flow), simulation_.rate(t.flow));
  }
  // What was sent and could not be delivered, and since when it has been stalled; tags ascend.
  // Complete after run().
  struct Undelivered {
    std::uint64_t tag;
    double since_s;
  };
  std::vector<Undelivered> undelivered() const;
  // What held up the transfer whose delivery is being reported, from its sending on; only where
  // notes_limits().
  const LimitHistory& limits() const { return limits_[delivered_]; }
  bool notes_limits() const { return options_.simulation.limits; }
  // Of resources, by link of the fabric: what pools have is spread as in link_bytes().
  std::vector<double> by_link(const LimitSum& sum) const {
    return on_links(sum.by_resource(simulation_.limit_sets(), router_.resource_count()));
  }
  // Bytes that each link of the fabric has carried; pools are spread over their members by
  // capacity. Complete after run().
  std::vector<double> link_bytes() const;
  // The interval of Simulation::windows() whose fullest cable of the back end is fullest (to 1 %)
  // and, of several such, in which all carry most; none where nothing was carried or kept.
  std::optional<BusyInterval> busiest_interval() const;

 private:
  struct Route {
    Part only;  // where part_count is 1; else the parts are in parts_
    std::uint32_t parts = 0, part_count = 0;
    std::uint32_t hops = 0, hop_count = 0;  // in kept_; of kept routes
    std::uint32_t round = 0;                // of state changes, when the path was found; 0: never
    Wire wire = Wire::ignored;
    enum class Life : std::uint8_t { kept, once } life = Life::once;
    bool reachable = false;
    double latency_s = -1;  // of the first part, where the wire counts; negative: not known yet
    double floor = -1;      // seconds per byte; negative: not known yet
    std::span<const NodeId> via;
  };
  struct Transfer {
    FlowId flow;  // invalid while it has no path, and when all is sent
    std::uint32_t route = 0;
    bool waiting = false;  // for a path, with so many bytes
    bool active = false;
    double waiting_bytes = 0;
    double still_since_s = 0;  // while it waits for a path or, after run(), for bandwidth
    double overhead_s = 0;
    std::uint64_t tag = 0;
  };

  // Of resources, by link of the fabric.
  template <class Numbers>
  std::vector<double> on_links(const Numbers& carried) const;
  void on_flow_end(FlowId flow, std::uint64_t tag) override;
  void on_timer(std::uint64_t tag) override;
  std::uint32_t new_route(std::span<const Part> parts, Wire wire);
  const Part& part_of(const Route& route, std::uint32_t at) const {
    return route.part_count == 1 ? route.only : *parts_.at(route.parts + at);
  }
  void send_along(std::uint32_t route, double bytes, double overhead_s, std::uint64_t tag);
  // Brings the route's path and latency up to the present state.
  void refresh(std::uint32_t route);
  // Fills path_ with the route's hops, unmerged; false where some part has no path.
  bool find_path(const Route& route);
  void append_part(const Part& part, std::span<const NodeId> via, bool is_measured);
  // Appends the path of a part's stream, at its whole size; false where there is none.
  bool append_stream(const Part& part, std::uint32_t stream, std::span<const NodeId> via,
                     std::vector<Hop>& out);
  // What each of a part's streams carries of it; empty: equal parts.
  std::span<const double> shares_of(const Part& part);
  void inflate_for_loss(std::size_t first_hop, const Part& part, double latency_s);
  // Of the route's first part, where nothing else looks for its path; 0 where it has none.
  double latency_alone_s(const Route& route);
  std::span<const Hop> path_of(const Route& route);
  double delay_s(const Transfer& transfer) const;
  void launch(std::uint32_t id, double bytes);
  void deliver(std::uint32_t id);
  void note_limits(std::uint32_t id, LimitId next);
  void add_new_pools();
  void enter_state(std::size_t change);
  void apply_change(std::size_t index);
  void reroute(std::uint32_t id);
  bool is_dead(LinkId link) const {  // pools are never
    return link.index() < fabric().link_count() && watch_->is_down(link);
  }
  // Tells watch_ of the transfers that cross dead links, stream by stream.
  void note_hits();
  void note_hits(std::uint32_t id);
  bool stream_has_path(std::uint64_t key);
  bool same_path(FlowId flow, std::span<const Hop> path) const;

  Router& router_;
  std::span<const StateChange> changes_;
  NetworkOptions options_;
  Simulation simulation_;
  Client* client_ = nullptr;
  model::State healthy_;
  const model::State* state_ = &healthy_;
  const model::State* lossy_state_ = nullptr;  // the present one, where some link of it loses
  std::uint32_t round_ = 1;                    // counts state changes
  std::vector<Transfer> transfers_;
  Ids free_transfers_;
  std::vector<Route> routes_;
  Ids free_routes_;
  BlockArena<Part> parts_;
  // Kept routes of several parts, by the hash of these; never iterated.
  std::unordered_multimap<std::uint64_t, std::uint32_t> rings_;
  PathStore kept_;  // of kept routes, in the present state
  HopMerger merger_;
  std::vector<Hop> path_;  // scratch: merged, or a kept path
  std::vector<Hop> raw_;   // scratch: as the router gave it
  bool reachable_ = true;
  double first_latency_s_ = 0;  // of the path found last
  std::optional<FailureWatch> watch_;
  std::vector<LimitHistory> limits_;  // by transfer, of what was before its present hops
  std::uint32_t delivered_ = 0;
};

}  // namespace weft::engine::fluid
