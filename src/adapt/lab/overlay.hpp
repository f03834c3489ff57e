// Paths of flows in a lab, above the routes of BGP or of the kernel.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "adapt/lab/lab.hpp"
#include "port/route_sink.hpp"

namespace weft::adapt::lab {

// A rack's end of a cable to a spine; its place among the switch's ends gives mark and table.
struct OverlayUplink {
  std::uint32_t place = 0;
  EndId end;
};

// At each rack switch, nftables give the packets of a marked flow (UDP; addresses and source port)
// the mark of an uplink, a rule sends that mark to a table of its own, and the table's one route
// leads over the uplink. Where the uplink is down, the table has no route and the packet goes on to
// the main table: what BGP found. The same holds for flows without a mark, and for all flows when
// nobody has called renew() for overlay_lease: a mark over a live uplink to a spine that has lost
// the other rack would otherwise lead nowhere. What is installed stays when the process ends, for
// the next one to renew; remove() takes it away.
inline constexpr Duration overlay_lease = 3_s;

class Overlay final : public port::RouteSink {
  struct Key {};  // open() alone makes one

 public:
  // `lab` must outlive it. What is there already stays. Fails: Errc::io, Errc::unsupported without
  // nftables.
  static Result<std::unique_ptr<Overlay>> open(const Lab& lab);
  Overlay(Key, const Lab& lab);
  ~Overlay() override;

  // One transaction a switch. Cost: 1 to 2 ms a switch, and some 10 us a mark.
  Status apply(std::span<const port::RouteMark> changes) override;
  Result<std::vector<port::RouteMark>> installed() override;
  // Cost: a packet a switch.
  Status renew() override;
  // Writes the routes of the tables of both switches again: the kernel forgets one when its
  // interface is set down.
  Status restore(std::span<const model::CableId> cables) override;

  // Also of an overlay that was left half done; nothing there is no failure.
  static Status remove(const Lab& lab);

 private:
  struct Rack;
  Status open_rack(LabNodeId node);
  Status write_rack(Rack& rack, std::span<const port::RouteMark> changes);

  const Lab* lab_;
  std::map<LabNodeId, Rack> racks_;
};

}  // namespace weft::adapt::lab
