// How a running lab is: its links, routes, daemons and counters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "adapt/lab/lab.hpp"
#include "adapt/linux_switch/netlink.hpp"
#include "base/result.hpp"

namespace weft::adapt::lab {

struct NodeStatus {
  LabNodeId node;
  std::size_t routes_missing = 0;  // of switches; those of a drained one are not counted
  bool drained = false;
  std::vector<LabProcess> processes;  // the youngest of each role
  std::vector<LabProcess> dead;       // of these, those that do not run
  std::vector<LinkState> links;       // of its ends, in their order; no name where one is gone
  std::string trouble;                // why nothing could be read of it; empty when all went well
};

struct LabStatus {
  std::vector<NodeStatus> nodes;  // by LabNodeId
  std::vector<LabCableId> cables_down;
  std::vector<LabProcess> dead;  // that work for the lab as a whole, and do not run
  std::size_t routes = 0, routes_missing = 0;
  double cpu_pressure = 0;  // % of the last 10 s that something waited for a processor; -1: unknown
  bool is_well() const;
};

// Fails: Errc::io. Nodes that cannot be read are told, not failed with.
Result<LabStatus> look_at(const Lab& lab);
std::string to_json(const Lab& lab, const LabStatus& status);

}  // namespace weft::adapt::lab
