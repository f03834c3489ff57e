// A drawing of a fabric: layers of switches over hosts, folded until it fits a page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/fabric/fabric.hpp"
#include "model/fabric/state.hpp"

namespace weft::plan {

// What a host is coloured by: its job, or that it is free.
struct HostOwners {
  static constexpr std::uint32_t free = UINT32_MAX;
  std::vector<std::uint32_t> of;   // by number in Fabric::hosts(); empty: no colours
  std::vector<std::string> names;  // of owners
};

// Loads of links, by LinkId, as shares of their capacity: in an interval of a run, and over all of
// it. Both empty: not known.
struct MapLoads {
  std::vector<double> in_interval, in_run;
  double from_s = 0, to_s = 0;  // of the interval; 0 and 0: it is the whole run
};

struct FabricMap {
  struct Group {
    std::string label, name;  // "3", "rtsw:3"; of several nodes "0-6", "rack:0 to rack:6"
    std::vector<model::NodeId> nodes;
    std::size_t down = 0, draining = 0;
    std::vector<std::size_t> owned;  // hosts by owner, then free ones; empty without owners
  };
  struct Layer {
    std::string role;                 // of switches, or of hosts
    std::string folded;               // "by rack", "by 7 racks", "by 7"; "" for single nodes
    std::size_t first = 0, last = 0;  // of groups, which follow one another
    std::size_t nodes = 0;
  };
  struct Edge {
    std::size_t upper = 0, lower = 0;  // groups; upper < lower
    std::size_t cables = 0, down = 0, degraded = 0;
    double bps = 0;
    double load_max = 0, load_sum = 0;  // of its links, both directions; 0 without loads
    double run_max = 0;                 // of its links over the whole run
  };
  std::vector<Layer> layers;  // furthest from the NICs first; hosts, then the front end
  std::vector<Group> groups;
  std::vector<Edge> edges;
  std::size_t inside = 0;  // cables within a group
  std::vector<std::string> owners;
  double from_s = 0, to_s = 0;  // of MapLoads
};

inline constexpr std::size_t map_groups_max = 40;  // of a layer

// Every switch and every host with a NIC is in one group, every cable of the network in one edge or
// inside a group. Nodes of a role that are too many are folded by the finest of rack, pod, zone,
// building and region of which there are at most `groups_max`, else into equal runs of racks, or of
// nodes. Cost: O(nodes + links).
FabricMap fabric_map(const model::Fabric& fabric, const model::State& state,
                     const HostOwners& owners, std::size_t groups_max = map_groups_max,
                     const MapLoads& loads = {});

// {layers: [{role, folded, nodes, groups: [{label, name, nodes, down, draining}]}],
//  edges: [[upper, lower, cables, down, degraded, bits/s, highest load, mean load, highest load of
//  the run]], inside, from_s, to_s}, groups of all layers numbered together.
std::string to_json(const FabricMap& map);

// SVG, light or dark as the viewer prefers; each group and edge says in a tooltip what it stands
// for. Deterministic.
std::string to_svg(const FabricMap& map, std::string_view title);

}  // namespace weft::plan
