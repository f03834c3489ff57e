#include "operate/triage/parts.hpp"

#include <algorithm>
#include <limits>

#include "base/check.hpp"

namespace weft::operate::triage {
namespace {

using model::CableId;
using model::Fabric;
using model::LinkId;
using model::NodeId;
using model::NodeKind;
using model::ScopeId;

constexpr std::uint16_t far_up = std::numeric_limits<std::uint16_t>::max();

}  // namespace

Parts::Parts(const Fabric& fabric, const Rules::Cards& cards)
    : fabric_(fabric),
      cards_(cards),
      first_node_(static_cast<std::uint32_t>(fabric.cable_count())),
      first_scope_(first_node_ + static_cast<std::uint32_t>(fabric.node_count())),
      first_congestion_(first_scope_ + static_cast<std::uint32_t>(fabric.scopes().size())),
      first_capacity_(first_congestion_ + static_cast<std::uint32_t>(fabric.node_count())),
      first_scope_capacity_(first_capacity_ + static_cast<std::uint32_t>(fabric.node_count())),
      first_card_(first_scope_capacity_ + static_cast<std::uint32_t>(fabric.scopes().size())),
      size_(first_card_),
      cable_part_(fabric.cable_count()),
      node_part_(fabric.node_count()),
      card_first_(fabric.node_count()),
      card_count_(fabric.node_count()),
      height_(fabric.node_count(), far_up) {
  number_nodes();
  number_cables();
  find_heights();
}

std::size_t Parts::wire_degree(NodeId node) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(fabric_.out(node), [&](LinkId link) { return fabric_.on_wire(link); }));
}

void Parts::number_nodes() {
  for (const NodeId node : fabric_.nodes()) {
    node_part_[node] = PartId(first_node_ + node.value);
    if (fabric_.kind(node) == NodeKind::nic && wire_degree(node) == 1)
      for (const LinkId link : fabric_.out(node))
        if (fabric_.on_wire(link)) node_part_[node] = PartId(cable_of(link).value);
    const bool is_inside = !fabric_.is_switch(node) && fabric_.kind(node) != NodeKind::nic;
    if (const NodeId host = fabric_.host_of(node); is_inside && host.valid() && host != node)
      node_part_[node] = PartId(first_node_ + host.value);
    const auto ports = static_cast<std::uint32_t>(fabric_.out(node).size());
    card_first_[node] = size_;
    if (!fabric_.is_switch(node) || ports <= cards_.ports) continue;
    card_count_[node] = (ports + cards_.ports - 1) / cards_.ports;
    size_ += card_count_[node];
    card_node_.insert(card_node_.end(), card_count_[node], node);
  }
}

void Parts::number_cables() {
  for (const CableId cable : ids<CableId>(fabric_.cable_count())) {
    const LinkId link = forward(cable);
    cable_part_[cable] = PartId(cable.value);
    if (fabric_.on_wire(link)) continue;
    const NodeId nic = nic_of(cable);
    cable_part_[cable] = node_part_[nic.valid() ? nic : fabric_.from(link)];
  }
}

void Parts::find_heights() {
  std::vector<NodeId> queue;
  for (const NodeId node : fabric_.nodes())
    if (fabric_.kind(node) == NodeKind::nic) {
      height_[node] = 0;
      queue.push_back(node);
    }
  for (std::size_t i = 0; i < queue.size(); ++i)
    for (const LinkId link : fabric_.out(queue[i])) {
      const NodeId next = fabric_.to(link);
      if (!fabric_.on_wire(link) || height_[next] != far_up) continue;
      height_[next] = static_cast<std::uint16_t>(height_[queue[i]] + 1);
      queue.push_back(next);
    }
}

PartId Parts::of_card(NodeId node, std::uint32_t card) const {
  return card < card_count_[node] ? PartId(card_first_[node] + card) : of(node);
}

model::Entity Parts::entity(PartId part) const {
  WEFT_CHECK(part.value < size_);
  if (is_cable(part)) return model::entity(cable(part));
  if (is_node(part)) return model::entity(node(part));
  if (is_scope(part)) return model::entity(scope(part));
  if (is_congestion(part)) return model::entity(congested(part));
  if (is_capacity(part))
    return part.value < first_scope_capacity_
               ? model::entity(NodeId(part.value - first_capacity_))
               : model::entity(ScopeId(part.value - first_scope_capacity_));
  const NodeId node = card_node_[part.value - first_card_];
  return model::card_of(node, part.value - card_first_[node]);
}

NodeId Parts::lower_switch(CableId cable) const {
  const NodeId a = fabric_.from(forward(cable));
  const NodeId b = fabric_.to(forward(cable));
  if (!fabric_.is_switch(a)) return b;
  if (!fabric_.is_switch(b)) return a;
  return height_[b] < height_[a] ? b : a;
}

NodeId Parts::nic_of(CableId cable) const {
  for (const NodeId end : {fabric_.from(forward(cable)), fabric_.to(forward(cable))})
    if (fabric_.kind(end) == NodeKind::nic) return end;
  return {};
}

NodeId Parts::only_switch(NodeId host) const {
  NodeId found;
  for (const NodeId nic : fabric_.nics_of(host))
    for (const LinkId link : fabric_.out(nic)) {
      if (!fabric_.on_wire(link)) continue;
      if (found.valid() && found != fabric_.to(link)) return {};
      found = fabric_.to(link);
    }
  return found;
}

// The two halves of a footprint while it is being collected.
struct Suspects::Draft {
  std::vector<PartId> expected, possible;
};
// Cables that somebody outside the scope looks at, those between its switches, all else.
struct Suspects::ScopeDraft {
  std::vector<PartId> seen, trunks, rest;
};

namespace {

// The cables of a switch, or a run of its ports.
struct Cables {
  std::vector<PartId> to_switches, to_nics;
  std::vector<PartId> nics;  // at the far ends, as far as they are parts of their own
};

Cables cables_of(const Parts& parts, std::span<const LinkId> links) {
  Cables out;
  const Fabric& fabric = parts.fabric();
  for (const LinkId link : links) {
    if (!fabric.on_wire(link)) continue;
    auto& side = fabric.is_switch(fabric.to(link)) ? out.to_switches : out.to_nics;
    side.push_back(parts.of(cable_of(link)));
    if (const PartId end = parts.of(fabric.to(link)); !fabric.is_switch(fabric.to(link)))
      if (parts.is_node(end)) out.nics.push_back(end);
  }
  return out;
}

void append(std::vector<PartId>& to, const std::vector<PartId>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

void make_unique(std::vector<PartId>& parts) {
  std::ranges::sort(parts);
  const auto rest = std::ranges::unique(parts);
  parts.erase(rest.begin(), rest.end());
}

bool lies_in(const Fabric& fabric, NodeId node, ScopeId scope) {
  for (ScopeId at = fabric.scope(node); at.valid(); at = fabric.scopes()[at].parent)
    if (at == scope) return true;
  return false;
}

}  // namespace

void Suspects::add(CauseKind kind, model::Entity root, Draft draft) {
  make_unique(draft.expected);
  make_unique(draft.possible);
  std::erase_if(draft.possible,
                [&](PartId part) { return std::ranges::binary_search(draft.expected, part); });
  const auto first = static_cast<std::uint32_t>(footprint_.size());
  append(footprint_, draft.expected);
  const auto rest = static_cast<std::uint32_t>(footprint_.size());
  append(footprint_, draft.possible);
  WEFT_CHECK(footprint_.size() <= UINT32_MAX);
  rows_.push_back({kind, root, first, rest, static_cast<std::uint32_t>(footprint_.size())});
}

void Suspects::add_cards(const Parts& parts, NodeId node) {
  const auto links = parts.fabric().out(node);
  for (std::uint32_t card = 0; card < parts.card_count(node); ++card) {
    const std::size_t from = std::size_t{card} * parts.ports_per_card();
    const std::size_t count = std::min<std::size_t>(parts.ports_per_card(), links.size() - from);
    Cables cables = cables_of(parts, links.subspan(from, count));
    if (cables.to_switches.empty()) std::swap(cables.to_switches, cables.to_nics);
    append(cables.to_nics, cables.nics);
    cables.to_nics.push_back(parts.of_card(node, card));
    add(CauseKind::card, model::card_of(node, card), {cables.to_switches, cables.to_nics});
  }
}

void Suspects::add_switch(const Parts& parts, NodeId node) {
  Cables cables = cables_of(parts, parts.fabric().out(node));
  const CauseKind kind = cables.to_nics.empty() ? CauseKind::device : CauseKind::rack_device;
  if (cables.to_switches.empty()) std::swap(cables.to_switches, cables.to_nics);
  Draft draft{cables.to_switches, cables.to_nics};
  append(draft.possible, cables.nics);
  draft.possible.push_back(parts.of(node));
  add(CauseKind::control_plane, model::entity(node), draft);
  for (std::uint32_t card = 0; card < parts.card_count(node); ++card)
    draft.possible.push_back(parts.of_card(node, card));
  for (const LinkId link : parts.fabric().out(node)) {
    const NodeId host = parts.fabric().host_of(parts.fabric().to(link));
    if (host.valid() && parts.only_switch(host) == node) draft.possible.push_back(parts.of(host));
  }
  add(kind, model::entity(node), std::move(draft));
}

void Suspects::add_host(const Parts& parts, NodeId host) {
  Draft draft;
  for (const NodeId nic : parts.fabric().nics_of(host)) {
    append(draft.expected, cables_of(parts, parts.fabric().out(nic)).to_switches);
    draft.possible.push_back(parts.of(nic));
  }
  draft.possible.push_back(parts.of(host));
  add(CauseKind::host, model::entity(host), std::move(draft));
}

void Suspects::add_nic(const Parts& parts, NodeId nic) {
  Draft draft{cables_of(parts, parts.fabric().out(nic)).to_switches, {parts.of(nic)}};
  if (draft.expected.size() > 1) add(CauseKind::nic, model::entity(nic), std::move(draft));
}

namespace {

// What holds the scope; nothing holds that of a host, which its node speaks for.
ScopeId outer_scope(const Fabric& fabric, ScopeId scope) {
  const Fabric::Scope& row = fabric.scopes()[scope];
  return row.kind == model::ScopeKind::host ? ScopeId{} : row.parent;
}

}  // namespace

// What a scope holds, as far as one node of it tells.
void Suspects::add_node_to(const Parts& parts, NodeId node, ScopeId scope, ScopeDraft& draft) {
  const Fabric& fabric = parts.fabric();
  for (const LinkId link : fabric.out(node)) {
    if (!fabric.on_wire(link)) continue;
    const NodeId to = fabric.to(link);
    const bool is_seen = fabric.is_switch(to) && !lies_in(fabric, to, scope);
    const bool is_trunk = fabric.is_switch(node) && fabric.is_switch(to);
    (is_seen    ? draft.seen
     : is_trunk ? draft.trunks
                : draft.rest)
        .push_back(parts.of(cable_of(link)));
  }
  if (!fabric.is_switch(node) && fabric.kind(node) != NodeKind::host) return;
  draft.rest.push_back(parts.of(node));
  for (std::uint32_t card = 0; card < parts.card_count(node); ++card)
    draft.rest.push_back(parts.of_card(node, card));
}

void Suspects::add_scopes(const Parts& parts) {
  const Fabric& fabric = parts.fabric();
  Column<ScopeId, ScopeDraft> drafts(fabric.scopes().size());
  for (const NodeId node : fabric.nodes())
    for (ScopeId at = fabric.scope(node); at.valid(); at = fabric.scopes()[at].parent)
      if (fabric.scopes()[at].kind != model::ScopeKind::host)
        add_node_to(parts, node, at, drafts[at]);
  for (const ScopeId scope : ids<ScopeId>(fabric.scopes().size()))
    for (ScopeId at = outer_scope(fabric, scope); at.valid(); at = fabric.scopes()[at].parent)
      drafts[at].rest.push_back(parts.of(scope));
  using enum model::ScopeKind;
  for (const model::ScopeKind kind : {rack, pod, zone, building, region})
    for (const ScopeId scope : ids<ScopeId>(fabric.scopes().size())) {
      if (fabric.scopes()[scope].kind != kind) continue;
      ScopeDraft& from = drafts[scope];
      Draft draft{std::move(from.seen), std::move(from.rest)};
      append(draft.expected.empty() ? draft.expected : draft.possible, from.trunks);
      draft.possible.push_back(parts.of(scope));
      add(kind == rack ? CauseKind::rack : CauseKind::zone, model::entity(scope), std::move(draft));
    }
}

void Suspects::index(std::size_t part_count) {
  of_first_.assign(part_count + 1, 0);
  for (const PartId part : footprint_) ++of_first_[part.index() + 1];
  for (std::size_t i = 1; i < of_first_.size(); ++i) of_first_[i] += of_first_[i - 1];
  WEFT_CHECK(of_first_.back() == footprint_.size());
  of_.resize(footprint_.size());
  std::vector<std::uint32_t> next(of_first_.begin(), of_first_.end() - 1);
  for (const SuspectId suspect : ids<SuspectId>(rows_.size()))
    for (const PartId part : all(suspect)) of_[next[part.index()]++] = suspect;
}

Suspects::Suspects(const Parts& parts) {
  const Fabric& fabric = parts.fabric();
  for (const NodeId node : fabric.nodes()) {
    if (fabric.kind(node) == NodeKind::nic) add_nic(parts, node);
    if (fabric.kind(node) == NodeKind::host) add_host(parts, node);
    if (!fabric.is_switch(node)) continue;
    add_cards(parts, node);
    add_switch(parts, node);
  }
  add_scopes(parts);
  index(parts.size());
}

}  // namespace weft::operate::triage
