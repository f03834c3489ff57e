// Where a controller's paths are installed: the overlay of switches, above the routes of BGP.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::port {

// A flow's packets, as switches tell them apart, leave the source's rack by `uplink`; with an
// invalid one they are left to hashing over the routes beneath.
struct RouteMark {
  model::NodeId src, dst;  // NICs
  std::uint16_t port = 0;  // UDP source port
  model::LinkId uplink;
  friend auto operator<=>(const RouteMark&, const RouteMark&) = default;
};

// What packets must fall back on where a mark is gone, or its uplink is down, is the sink's part:
// nothing may depend on the controller's being there. Marks hold for the sink's lease after the
// last renew(), and then all is left to the routes beneath, whatever is installed.
class RouteSink {
 public:
  virtual ~RouteSink() = default;
  // Installs, replaces and removes, each switch at once or not at all. Idempotent.
  // Fails: Errc::io with the first switch that refused; those before it have theirs.
  virtual Status apply(std::span<const RouteMark> changes) = 0;
  // What is installed, ascending: whoever starts takes over what is there. Fails: Errc::io.
  virtual Result<std::vector<RouteMark>> installed() = 0;
  // Fails: Errc::io with the first switch that refused; the others are renewed.
  virtual Status renew() = 0;
  // Before marks lead over cables that are back: what switches forgot of them is written again.
  // Fails: Errc::io.
  virtual Status restore(std::span<const model::CableId> cables) = 0;
};

}  // namespace weft::port
