// Routes of switches as probes meet them: a switch and a host that it passes packets on to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "model/fabric/fabric.hpp"
#include "model/fabric/state.hpp"
#include "route/router.hpp"

namespace weft::observe::probe {

struct Route {
  model::NodeId device, to;  // switch; host, or a NIC that has none
  bool operator==(const Route&) const = default;
};

// How often links or routes are crossed.
struct Crossed {
  std::size_t parts = 0, below = 0;  // fewer times than asked for
  std::uint64_t least = 0, most = 0, sum = 0;

  void add(std::uint64_t times, std::uint64_t asked);
  void add(const Crossed& other);
};

// The host of a NIC; the NIC itself where it has none.
model::NodeId end_of(const model::Fabric& fabric, model::NodeId nic);

// The routes of a fabric, and how many flows cross each. The last switch before a host is not
// counted: its route is the link. A transit route gets packets from other switches; an ingress
// route only those of the switch's own NICs.
class RouteTable {
 public:
  enum class Kind : std::uint8_t { none, ingress, transit };

  // Those of shortest paths in the state of the router, which must outlive it as must the state.
  // Fails: Errc::value for a fabric of more than 2^26 pairs of switch and host. Cost: O(racks^2 x
  // links of their shortest paths), where a rack is NICs cabled to the same switches.
  static Result<RouteTable> find(route::Router& router, const model::LiveView& live);

  // By end, then switch.
  std::size_t size() const { return kinds_.size(); }
  std::size_t switch_count() const { return switches_.size(); }
  Kind kind(std::size_t at) const { return kinds_[at]; }
  // A transit route that fewer flows cross than that.
  bool is_short(std::size_t at, std::uint32_t wanted) const {
    return kinds_[at] == Kind::transit && flows_[at] < wanted;
  }
  Route route(std::size_t at) const {
    return {switches_[at % switches_.size()], ends_[at / switches_.size()]};
  }

  // Calls visit(index) for each route on the path of a flow, from NIC to NIC.
  template <class Visit>
  void each_on(std::span<const model::LinkId> path, Visit visit) const {
    if (path.empty()) return;
    const std::size_t row = end_index_[end_of(*fabric_, fabric_->to(path.back())).index()];
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
      const model::NodeId at = fabric_->to(path[i]);
      if (fabric_->is_switch(at) && fabric_->is_switch(fabric_->to(path[i + 1])))
        visit(row * switches_.size() + switch_index_[at.index()]);
    }
  }
  bool is_on(std::size_t at, std::span<const model::LinkId> path) const;
  // Transit routes on the path that fewer than so many flows cross.
  std::size_t fresh_on(std::span<const model::LinkId> path, std::uint32_t wanted) const;
  void add(std::span<const model::LinkId> path);
  Crossed count(Kind kind, std::uint32_t wanted) const;

 private:
  explicit RouteTable(const model::Fabric& fabric);
  // Raises the kinds of `row`, by switch, by what a stream from `src` may cross.
  void raise(model::NodeId end, std::span<const Kind> row);
  void note(model::NodeId src, std::span<const model::LinkId> usable, std::vector<Kind>& row) const;

  const model::Fabric* fabric_;
  std::vector<model::NodeId> switches_, ends_;
  std::vector<std::uint32_t> switch_index_, end_index_;  // by node
  // By end, then switch.
  std::vector<Kind> kinds_;
  std::vector<std::uint32_t> flows_;
};

}  // namespace weft::observe::probe
