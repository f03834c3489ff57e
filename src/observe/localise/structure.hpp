// What of a fabric may lose packets, alone and together. Internal to the room.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/id.hpp"
#include "observe/localise/localise.hpp"

namespace weft::observe::localise {

// The atoms of all causes: a link, or an end (a host, or a NIC without one) as it receives or as it
// sends. Links come first, with their LinkId's number.
using ComponentId = Id<struct ComponentTag>;
using GroupId = Id<struct GroupTag>;

// Kinds of components that share what is normal.
enum class Kind : std::uint8_t { switch_link, edge_link, end };
inline constexpr std::size_t kind_count = 3;

// Components with a common fate.
struct Group {
  Entity entity;
  std::vector<ComponentId> members;  // ascending
  std::vector<ComponentId> rivals;   // ends that together would look much like it
};

class Structure {
 public:
  explicit Structure(const Fabric& fabric);

  const Fabric& fabric() const { return fabric_; }
  std::size_t component_count() const { return kind_.size(); }
  std::size_t link_count() const { return fabric_.link_count(); }
  bool is_link(ComponentId component) const { return component.index() < link_count(); }
  Kind kind(ComponentId component) const { return kind_[component]; }
  static ComponentId of(LinkId link) { return ComponentId(link.value); }
  // The end that a host, NIC or GPU belongs to.
  ComponentId receiving(NodeId node) const { return end_of_[node]; }
  ComponentId sending(NodeId node) const { return ComponentId(end_of_[node].value + 1); }
  Entity entity(ComponentId component) const;

  const Column<GroupId, Group>& groups() const { return groups_; }
  // Groups that hold the component, ascending.
  std::span<const GroupId> groups_of(ComponentId component) const {
    return {group_ids_.data() + group_first_[component.index()],
            group_ids_.data() + group_first_[component.index() + 1]};
  }
  // Switches whose ports can form ranges, and their wired links out by port.
  std::span<const NodeId> switches() const { return switches_; }
  std::vector<LinkId> ports(NodeId node) const;
  // Ports first..last of the list `ports` as a group.
  Group range(NodeId node, std::span<const LinkId> ports, Flow flow) const;

 private:
  void add_ends();
  void add_groups();
  void add_cables();
  void add_hosts();
  void add_nic(NodeId nic);
  void add_switch(NodeId node);
  void index_groups();

  const Fabric& fabric_;
  Column<ComponentId, Kind> kind_;
  Column<NodeId, ComponentId> end_of_;  // receiving
  std::vector<NodeId> end_nodes_;       // by end component
  Column<GroupId, Group> groups_;
  std::vector<std::uint32_t> group_first_;
  std::vector<GroupId> group_ids_;
  std::vector<NodeId> switches_;
};

}  // namespace weft::observe::localise
