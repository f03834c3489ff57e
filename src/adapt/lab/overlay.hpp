// Paths of flows in a lab, above the routes of BGP or of the kernel.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "adapt/lab/lab.hpp"
#include "adapt/linux_switch/switch_overlay.hpp"
#include "port/route_sink.hpp"

namespace weft::adapt::lab {

// A SwitchOverlay at each rack switch.
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
  struct Rack {
    std::vector<EndId> uplinks;  // its ends of cables to spines, in the overlay's order
    SwitchOverlay overlay;
  };
  Status open_rack(LabNodeId node);
  Status write_rack(Rack& rack, std::span<const port::RouteMark> changes);

  const Lab* lab_;
  std::map<LabNodeId, Rack> racks_;
};

}  // namespace weft::adapt::lab
