// Slurm's topology.conf (topology/tree and topology/block): out of a fabric's scopes, and into a
// fabric.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "model/fabric/fabric.hpp"
#include "model/formats/fabric_yaml.hpp"
#include "model/generate/host.hpp"

namespace weft::model {

// What the file says, checked: names are unique, children exist, there is no cycle. Blocks are leaf
// switches under one switch, "blocks", which the file does not have.
struct SlurmTree {
  struct Switch {
    std::string name;
    std::vector<std::string> nodes;       // of a leaf switch
    std::vector<std::uint32_t> children;  // of others: indexes of switches
    std::vector<std::uint32_t> parents;   // several where trees share spines
    std::uint32_t height = 1;             // 1: leaf
    std::string link_speed;               // as written; "" for none
    Where where;
  };
  std::vector<Switch> switches;  // in file order
};

// Fails with file:line:column and every error found: unknown keys, a switch or node given twice,
// a child that does not exist, a switch without children or with both kinds, a cycle, host lists
// of more than `node_count_max` names. Bounds: 64 MiB of text. Cost: O(text + names).
// From: Slurm's manual page topology.conf(5).
Result<SlurmTree> parse_slurm_topology(std::string_view text, const std::string& file,
                                       std::size_t node_count_max = 1'000'000);

// What topology.conf does not say about a cluster.
struct SlurmOptions {
  HostSpec host;              // the inside of every node
  Rate link;                  // NIC to leaf switch; must be positive
  Rate uplink;                // switch to parent; 0: no oversubscription (a switch's capacity
                              // towards its nodes, divided over its parents)
  Duration latency = 500_ns;  // of each cable
  FabricLimits limits;
};

// Hosts keep their Slurm names. Switches get the roles leaf, spine, core, super_core by height
// and keep their names. Every leaf is a rack; a switch that is the only parent of its children is
// their pod, zone or building by height. All NICs of a host go to its leaf switch. Fabric::notes()
// say which rates were assumed, and that LinkSpeed was ignored.
// Fails: as parse_slurm_topology, and Errc::unsupported on more than four levels.
Result<Fabric> read_slurm_topology(std::string_view text, const std::string& file,
                                   const SlurmOptions& options);

// A switch for each scope that holds hosts: Slurm places jobs by locality, and a tree of scopes
// says that for every topology, rails and planes included, where switches would form no tree.
// "host:3" becomes host3; a scope with hosts and scopes of its own gets a leaf "NAME-hosts".
// Fails: Errc::unsupported when two names become equal or a name holds what Slurm does not allow.
Result<std::string> to_slurm_topology(const Fabric& fabric);
// The same for topology/block: a block for each innermost scope that holds hosts, their smallest
// size as the block size.
Result<std::string> to_slurm_blocks(const Fabric& fabric);

}  // namespace weft::model
