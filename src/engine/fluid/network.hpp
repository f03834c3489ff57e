// Transfers over a routed fabric whose state changes: the fluid engine's view of the network.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "engine/fluid/simulation.hpp"
#include "model/faults.hpp"
#include "route/router.hpp"

namespace weft::engine::fluid {

using model::Fabric;
using model::NodeId;
using route::Router;

using TransferId = Id<struct TransferTag>;

// From its `at` on, the fabric is in its `state`.
using StateChange = model::FaultTimeline::Snapshot;

// A piece of a transfer: some of its bytes from one end to another. Ends are two NICs (the wire
// alone), GPUs (with the host's inside), or, for reduction on the way, switches. `streams`
// consecutive QPs, from `qp` or, where messages take turns, from `message` on, carry equal parts.
struct Part {
  NodeId from, to;
  std::uint32_t qp = 0;
  std::uint32_t streams = 1;
  std::uint32_t message = 0;
  double weight = 1;  // bytes per byte of the transfer's size
};

// Bytes that advance at one rate: one stream, or all edges of a ring in steady state.
struct TransferSpec {
  std::span<const Part> parts;
  double bytes = 0;
  double overhead_s = 0;  // from the last byte sent to its arrival: software, and ...
  enum class Wire : std::uint8_t {
    ignored,
    counted
  } wire = Wire::ignored;  // ... the first part's
                           // path latency
  std::uint64_t tag = 0;
  std::span<const NodeId> via = {};  // must outlive the network; NIC ends only
};

// Keeps every transfer on live paths: after a state change all paths are asked for again; a
// transfer that leaves a dead link sends again what was in flight on it (rate x path latency), one
// without any path waits for the next change.
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
  Network(Router& router, std::span<const StateChange> changes, const Simulation::Options& options);

  double now() const { return simulation_.now(); }
  void send(const TransferSpec& spec);
  void timer(double at_s, std::uint64_t tag);
  void run(Client& client);

  Router& router() { return router_; }
  const Simulation& simulation() const { return simulation_; }
  // Tags of what was sent and could not be delivered, ascending; complete after run().
  std::vector<std::uint64_t> undelivered() const;
  // Bytes that each link of the fabric has carried; pools are spread over their members by
  // capacity. Complete after run().
  std::vector<double> link_bytes() const;

 private:
  struct Transfer {
    FlowId flow;  // invalid while it has no path, and when all is sent
    std::uint32_t parts = 0, part_count = 0;
    bool waiting = false;  // for a path, with so many bytes
    double waiting_bytes = 0;
    double overhead_s = 0;
    double latency_s = 0;  // with the wire, of the present path
    TransferSpec::Wire wire = TransferSpec::Wire::ignored;
    std::uint64_t tag = 0;
    std::span<const NodeId> via;
    bool active = false;
  };

  void on_flow_end(FlowId flow, std::uint64_t tag) override;
  void on_timer(std::uint64_t tag) override;
  // Fills path_ with the transfer's hops; false where some part has no path.
  bool find_path(const Transfer& transfer);
  void append_part(const Part& part, std::span<const NodeId> via);
  bool append_cable(NodeId from, NodeId to);
  void launch(std::uint32_t id, double bytes);
  void update_latency(Transfer& transfer);
  void deliver(std::uint32_t id);
  void add_new_pools();
  void apply_change(std::size_t index);
  void reroute(std::uint32_t id);
  bool same_path(FlowId flow) const;

  Router& router_;
  std::span<const StateChange> changes_;
  Simulation simulation_;
  Client* client_ = nullptr;
  std::vector<Transfer> transfers_;
  std::vector<std::uint32_t> free_transfers_;
  BlockArena<Part> parts_;
  std::vector<Hop> path_;
  bool reachable_ = true;
};

}  // namespace weft::engine::fluid
