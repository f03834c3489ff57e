// The controller of traffic engineering, at work on a lab.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "adapt/lab/lab.hpp"
#include "operate/te/controller.hpp"

namespace weft::adapt::lab {

struct TeEvent {
  Time at;                        // since the start
  std::vector<std::string> news;  // "ctsw:0--rtsw:1 down"; empty at the start and after a hold
  operate::te::Step step;
  bool is_first = false;  // of this controller
  Duration took;          // from hearing the news to the last mark installed
};

struct TeRun {
  operate::te::LoopOptions loop;
  std::function<bool()> stop;                     // asked every 20 ms and after each event
  std::function<void(const TeEvent&)> tell = {};  // of each decision
  std::function<void()> standby = {};  // another controller has the lab: this one waits for its end
};

// A te::Controller that hears of cables from the kernels of all switches, as from agents on them,
// and keeps the marks of `flows` right until `stop` says so. The marks stay, and hold for
// overlay_lease: then all is left to the routes beneath. One controller of a lab is at
// work at a time; others wait, and take over what it left when it ends or is killed. Drains are
// those of the start. Fails: Errc::io, Errc::unsupported for what is no two-tier Clos; a switch
// that refuses is tried again each second.
Status run_te(const Lab& lab, std::vector<operate::te::Flow> flows, const TeRun& run);

}  // namespace weft::adapt::lab
