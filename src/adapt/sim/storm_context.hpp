// What of a fabric faults can strike, found once. Internal to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "model/fabric/fabric.hpp"

namespace weft::adapt::sim {

struct StormContext {
  StormContext(const model::Fabric& context, std::uint32_t card_ports);

  bool is_rack_switch(model::NodeId node) const { return on_hosts[node.index()]; }
  // Cables of `node` that carry traffic, and of those the ones to switches.
  std::vector<model::CableId> wires_of(model::NodeId node) const;
  std::vector<model::LinkId> trunks_of(model::NodeId node) const;
  // Links from the switch to NICs.
  std::vector<model::LinkId> host_ports_of(model::NodeId node) const;
  // Cards whose ports have cables to switches.
  bool has_cards(model::NodeId node) const { return fabric.out(node).size() > ports_per_card; }

  const model::Fabric& fabric;
  std::uint32_t ports_per_card;
  std::vector<bool> on_hosts;                // by node: a switch that NICs hang on
  std::vector<model::NodeId> switches;       // all of the network
  std::vector<model::NodeId> rack_switches;  // of these, with NICs
  std::vector<model::NodeId> core_switches;  // and without
  std::vector<model::NodeId> carded;         // and with line cards
  std::vector<model::CableId> trunks;        // cables between switches
  std::vector<model::NodeId> nics;           // with a cable to a switch
  std::vector<model::ScopeId> racks;         // with hosts in them
};

}  // namespace weft::adapt::sim
