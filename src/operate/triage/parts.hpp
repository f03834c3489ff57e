// The parts of a fabric that evidence can stand on, and what each part would silence if it failed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/id.hpp"
#include "model/events/case.hpp"
#include "model/events/entity.hpp"
#include "model/fabric/fabric.hpp"
#include "operate/triage/rules.hpp"

namespace weft::operate::triage {

using model::CauseKind;

// What evidence is put on: a cable (with both of its ports; also the NIC that has no other), a
// node, a line card, a scope, the congestion of a switch, or the capacity of a switch or scope.
using PartId = Id<struct PartTag>;
// One thing that may have failed, and its footprint.
using SuspectId = Id<struct SuspectTag>;

class Parts {
 public:
  Parts(const model::Fabric& fabric, const Rules::Cards& cards);

  const model::Fabric& fabric() const { return fabric_; }
  std::size_t size() const { return size_; }

  // Wiring inside a host is its NIC, or the host.
  PartId of(model::CableId cable) const { return cable_part_[cable]; }
  // A NIC with one cable to the network is that cable; what else stands in a host is the host.
  PartId of(model::NodeId node) const { return node_part_[node]; }
  PartId of(model::ScopeId scope) const { return PartId(first_scope_ + scope.value); }
  // The card's part; the switch itself where it has no such card.
  PartId of_card(model::NodeId node, std::uint32_t card) const;
  PartId congestion_of(model::NodeId node) const { return PartId(first_congestion_ + node.value); }
  PartId capacity_of(model::NodeId node) const { return PartId(first_capacity_ + node.value); }
  PartId capacity_of(model::ScopeId scope) const {
    return PartId(first_scope_capacity_ + scope.value);
  }

  bool is_cable(PartId part) const { return part.value < first_node_; }
  bool is_node(PartId part) const { return part.value >= first_node_ && part.value < first_scope_; }
  bool is_scope(PartId part) const {
    return part.value >= first_scope_ && part.value < first_congestion_;
  }
  bool is_congestion(PartId part) const {
    return part.value >= first_congestion_ && part.value < first_capacity_;
  }
  bool is_capacity(PartId part) const {
    return part.value >= first_capacity_ && part.value < first_card_;
  }
  bool is_card(PartId part) const { return part.value >= first_card_; }
  model::CableId cable(PartId part) const { return model::CableId(part.value); }
  model::NodeId node(PartId part) const { return model::NodeId(part.value - first_node_); }
  model::ScopeId scope(PartId part) const { return model::ScopeId(part.value - first_scope_); }
  model::NodeId congested(PartId part) const {
    return model::NodeId(part.value - first_congestion_);
  }
  model::Entity entity(PartId part) const;

  // 0 for a switch that has none.
  std::uint32_t card_count(model::NodeId node) const { return card_count_[node]; }
  std::uint32_t ports_per_card() const { return cards_.ports; }
  // Hops to the nearest NIC: 0 for NICs, 1 for their switches, and so on up.
  std::uint16_t height(model::NodeId node) const { return height_[node]; }
  // The end of the cable that is nearer to the hosts, NICs left out.
  model::NodeId lower_switch(model::CableId cable) const;
  // The NIC at an end of the cable, or an invalid id.
  model::NodeId nic_of(model::CableId cable) const;
  // The one switch that all cables of a host lead to, or an invalid id.
  model::NodeId only_switch(model::NodeId host) const;

 private:
  void number_nodes();
  void number_cables();
  void find_heights();
  std::size_t wire_degree(model::NodeId node) const;

  const model::Fabric& fabric_;
  Rules::Cards cards_;
  std::uint32_t first_node_ = 0, first_scope_ = 0, first_congestion_ = 0;
  std::uint32_t first_capacity_ = 0, first_scope_capacity_ = 0, first_card_ = 0;
  std::uint32_t size_ = 0;
  Column<model::CableId, PartId> cable_part_;
  Column<model::NodeId, PartId> node_part_;
  Column<model::NodeId, std::uint32_t> card_first_, card_count_;
  std::vector<model::NodeId> card_node_;
  Column<model::NodeId, std::uint16_t> height_;
};

// Everything that may have failed as a whole: cards, switches (data and control plane), hosts,
// NICs with several cables, racks and larger scopes.
class Suspects {
 public:
  struct Suspect {
    CauseKind kind;
    model::Entity root;
    std::uint32_t first, rest, end;  // in the footprint: should speak, then may speak
  };

  explicit Suspects(const Parts& parts);

  std::size_t size() const { return rows_.size(); }
  const Suspect& operator[](SuspectId id) const { return rows_[id]; }
  // Parts that should speak when it fails: the cables that somebody outside looks at.
  std::span<const PartId> expected(SuspectId id) const {
    return slice(rows_[id].first, rows_[id].rest);
  }
  // Parts that may: its own, and those of what hangs on it.
  std::span<const PartId> possible(SuspectId id) const {
    return slice(rows_[id].rest, rows_[id].end);
  }
  std::span<const PartId> all(SuspectId id) const { return slice(rows_[id].first, rows_[id].end); }
  // Those in whose footprint the part lies.
  std::span<const SuspectId> of(PartId part) const {
    return {of_.data() + of_first_[part.index()], of_.data() + of_first_[part.index() + 1]};
  }

 private:
  struct Draft;
  struct ScopeDraft;
  std::span<const PartId> slice(std::uint32_t from, std::uint32_t to) const {
    return {footprint_.data() + from, footprint_.data() + to};
  }
  void add(CauseKind kind, model::Entity root, Draft draft);
  void add_cards(const Parts& parts, model::NodeId node);
  void add_switch(const Parts& parts, model::NodeId node);
  void add_host(const Parts& parts, model::NodeId host);
  void add_nic(const Parts& parts, model::NodeId nic);
  void add_node_to(const Parts& parts, model::NodeId node, model::ScopeId scope, ScopeDraft& draft);
  void add_scopes(const Parts& parts);
  void index(std::size_t part_count);

  Column<SuspectId, Suspect> rows_;
  std::vector<PartId> footprint_;
  std::vector<std::uint32_t> of_first_;
  std::vector<SuspectId> of_;
};

}  // namespace weft::operate::triage
