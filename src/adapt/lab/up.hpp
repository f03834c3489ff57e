// A lab's beginning and end.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "adapt/lab/lab.hpp"
#include "base/progress.hpp"
#include "base/result.hpp"

namespace weft::adapt::lab {

struct UpReport {
  std::size_t switches = 0, hosts = 0, cables = 0, routes = 0;
  std::vector<std::pair<std::string, double>> steps;  // what, seconds
  std::vector<std::string> warnings;
  double seconds() const;
};

struct UpRequest {
  LabOptions options;
  std::string program;  // of the keeper: the path of weft itself
  Progress::Show progress = Progress::Show::automatic;
};

// Brings up a lab of `fabric` and waits until the kernel of every switch has every route with all
// of its next hops. After a failure, also on SIGINT and SIGTERM, nothing is left of it.
// Fails: Errc::infeasible where a lab or what one left has that name; as make_plan(); Errc::io
// naming what failed; Errc::unsupported where routing daemons are not installed.
// Cost: about 2.5 s for 1,152 cables with static routes; 0.1 s a switch more with FRRouting.
Result<UpReport> bring_up(const model::Fabric& fabric, const UpRequest& request);

struct DownReport {
  std::size_t processes = 0, namespaces = 0;
  bool had_files = false;
  bool nothing() const { return processes == 0 && namespaces == 0 && !had_files; }
};

// Takes down the lab of that name or what is left of it: ends the processes that it started and
// that still are those processes, removes its namespaces and its files. Idempotent.
// Fails: Errc::infeasible while another command is at work on it; Errc::io.
Result<DownReport> take_down(const std::string& name);

}  // namespace weft::adapt::lab
