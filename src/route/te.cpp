// Central traffic engineering: a controller gives each flow that it was told of its spine, by
// Assignment; what it does not know, and what it assigned to a link that is dead by now, goes as
// with e_ecmp, as over the BGP routes beneath (Meta, SIGCOMM 2024).
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "route/assign.hpp"
#include "route/scheme.hpp"

namespace weft::route {
namespace {

using model::NodeKind;

// Racks are the switches with back-end NICs. A column is a spine or, where parallel cables lead to
// it, the k-th of these cables of every rack: its flows go up by a rack's k-th cable and down by
// another's k-th.
struct Zone {
  static constexpr std::uint32_t none = UINT32_MAX;
  Column<NodeId, std::uint32_t> rack_of;  // of NICs; `none` for other nodes
  Column<NodeId, LinkId> port_of;         // of NICs: their link to the rack
  std::uint32_t racks = 0, columns = 0;
  std::vector<LinkId> up;  // by rack, then column; invalid where there is no cable
};

std::unexpected<Error> refuse(const std::string& why) {
  return fail(Errc::unsupported, {},
              "scheme te assigns the paths of a two-tier Clos fabric: " + why,
              "use e_ecmp or spray, which work on any fabric");
}

// Fills what the zone says of NICs; `number` gets the number of each rack.
Result<std::vector<NodeId>> find_racks(const Fabric& fabric, Zone& zone,
                                       Column<NodeId, std::uint32_t>& number) {
  std::vector<NodeId> racks;
  number.resize(fabric.node_count(), Zone::none);
  zone.rack_of.resize(fabric.node_count(), Zone::none);
  zone.port_of.resize(fabric.node_count());
  for (const NodeId nic : fabric.nics())
    for (const LinkId link : fabric.out(nic)) {
      const NodeId rack = fabric.to(link);
      if (!fabric.on_wire(link)) continue;
      if (!fabric.is_switch(rack) || zone.port_of[nic].valid())
        return refuse(fmt::format("{} needs one port, to a switch", fabric.name(nic)));
      if (number[rack] == Zone::none) {
        number[rack] = static_cast<std::uint32_t>(racks.size());
        racks.push_back(rack);
      }
      zone.rack_of[nic] = number[rack];
      zone.port_of[nic] = link;
    }
  return racks;
}

Result<Zone> find_zone(const Fabric& fabric) {
  Zone zone;
  Column<NodeId, std::uint32_t> number;
  WEFT_TRY(const std::vector<NodeId> racks, find_racks(fabric, zone, number));
  const auto is_rack = [&](NodeId node) { return number[node] != Zone::none; };
  Column<NodeId, std::uint32_t> first, width;  // columns of a spine
  first.resize(fabric.node_count(), 0);
  width.resize(fabric.node_count(), 0);
  std::vector<NodeId> spines;
  const auto visit = [&](NodeId rack, auto each) {
    std::unordered_map<std::uint32_t, std::uint32_t> seen;  // never iterated
    for (const LinkId link : fabric.out(rack))
      if (fabric.is_switch(fabric.to(link))) each(link, seen[fabric.to(link).value]++);
  };
  for (const NodeId rack : racks)
    visit(rack, [&](LinkId link, std::uint32_t k) {
      const NodeId spine = fabric.to(link);
      if (width[spine] == 0) spines.push_back(spine);
      width[spine] = std::max(width[spine], k + 1);
    });
  for (const NodeId spine : spines) {
    if (is_rack(spine))
      return refuse(
          fmt::format("{} has NICs, and so has a switch that it is cabled to", fabric.name(spine)));
    for (const LinkId link : fabric.out(spine))
      if (fabric.is_switch(fabric.to(link)) && !is_rack(fabric.to(link)))
        return refuse(fmt::format("{} joins {} to another tier", fabric.name(spine),
                                  fabric.name(fabric.to(link))));
    first[spine] = zone.columns;
    zone.columns += width[spine];
  }
  zone.racks = static_cast<std::uint32_t>(racks.size());
  zone.up.resize(std::size_t{zone.racks} * zone.columns);
  for (std::uint32_t r = 0; r < zone.racks; ++r)
    visit(racks[r], [&](LinkId link, std::uint32_t k) {
      zone.up[std::size_t{r} * zone.columns + first[fabric.to(link)] + k] = link;
    });
  return zone;
}

class Te final : public Scheme {
 public:
  Te(Parts& parts, Zone zone, std::unique_ptr<Scheme> beneath)
      : parts_(parts), zone_(std::move(zone)), beneath_(std::move(beneath)) {
    see({});
  }

  bool append_leg(const Stream& stream, NodeId from, NodeId to, std::vector<Hop>& out) override {
    if (dirty_) solve();
    const auto found =
        stream.qp < parts_.config.qps ? known_.find(key(from, to, stream.qp)) : known_.end();
    const std::uint32_t column = found == known_.end()
                                     ? Assignment::none
                                     : groups_[found->second.group].spine_of(found->second.flow);
    if (column == Assignment::none) return beneath_->append_leg(stream, from, to, out);
    const LinkId path[] = {zone_.port_of[from], up(zone_.rack_of[from], column),
                           reverse(up(zone_.rack_of[to], column)), reverse(zone_.port_of[to])};
    if (!std::ranges::all_of(path, [&](LinkId link) { return parts_.live.usable(link); }))
      return beneath_->append_leg(stream, from, to, out);
    for (const LinkId link : path) out.push_back({link, 1});
    return true;
  }

  void append_usable_leg(NodeId from, NodeId to, std::vector<LinkId>& out) override {
    beneath_->append_usable_leg(from, to, out);
  }

  // A pair that an earlier group has already keeps its path, and is no part of this group.
  void declare(std::span<const NicDemand> demands) override {
    Assignment group(zone_.racks, zone_.columns);
    for (const NicDemand& d : demands) {
      const std::uint32_t from = zone_.rack_of[d.src], to = zone_.rack_of[d.dst];
      if (from == Zone::none || to == Zone::none || from == to || d.bytes <= 0) continue;
      const auto [entry, is_new] = known_.try_emplace(key(d.src, d.dst, d.qp));
      if (!is_new) continue;
      entry->second = {static_cast<std::uint32_t>(groups_.size()), group.add({from, to, d.bytes})};
    }
    set_capacities(group);
    groups_.push_back(std::move(group));
    dirty_ = true;
  }

  void on_sight(const model::State& seen) override {
    const std::vector<double> before = capacity_;
    see(seen);
    if (capacity_ == before) return;
    for (Assignment& group : groups_) set_capacities(group);
    dirty_ = true;
  }

  void trim() override { beneath_->trim(); }

  std::string report() const override {
    std::string text =
        fmt::format("te assigned {} streams (kinds: {}), worst link at most {:.3f} x the bound",
                    known_.size(), groups_.size(), furthest_);
    if (solves_ > 1)
      text += fmt::format(
          "; anew after {} changes: {} streams had lost their paths, {} others made room",
          solves_ - 1, hit_, moved_);
    return text;
  }

 private:
  struct Place {
    std::uint32_t group = 0, flow = 0;
  };
  LinkId up(std::uint32_t rack, std::uint32_t column) const {
    return zone_.up[std::size_t{rack} * zone_.columns + column];
  }
  std::uint64_t key(NodeId src, NodeId dst, std::uint32_t qp) const {
    return (std::uint64_t{src.value} * parts_.fabric.node_count() + dst.value) * parts_.config.qps +
           qp;
  }

  // Shares of the fastest uplink; what drains attracts nothing.
  void see(const model::State& seen) {
    const model::LiveView view(parts_.fabric, seen);
    double most = 0;
    for (const LinkId link : zone_.up)
      if (link.valid()) most = std::max(most, parts_.fabric.rate(link).bytes_per_s());
    capacity_.assign(2 * zone_.up.size(), 0);
    for (std::size_t i = 0; i < zone_.up.size(); ++i)
      for (const bool down : {false, true}) {
        const LinkId link = down && zone_.up[i].valid() ? reverse(zone_.up[i]) : zone_.up[i];
        if (link.valid() && view.health[link.index()] == model::Health::up)
          capacity_[2 * i + (down ? 1 : 0)] = view.bytes_per_s[link.index()] / most;
      }
  }

  void set_capacities(Assignment& assignment) const {
    for (std::uint32_t r = 0; r < zone_.racks; ++r)
      for (std::uint32_t c = 0; c < zone_.columns; ++c) {
        const std::size_t i = std::size_t{r} * zone_.columns + c;
        assignment.set_capacity(r, c, capacity_[2 * i], capacity_[2 * i + 1]);
      }
  }

  void solve() {
    for (Assignment& group : groups_) {
      const Assignment::Outcome outcome = group.solve();
      if (outcome.bound > 0) furthest_ = std::max(furthest_, outcome.worst / outcome.bound);
      if (solves_ > 0) hit_ += outcome.placed;
      moved_ += outcome.moved;
    }
    ++solves_;
    dirty_ = false;
  }

  Parts& parts_;
  Zone zone_;
  std::unique_ptr<Scheme> beneath_;
  std::vector<double> capacity_;  // by cell of Zone::up: up, then down
  std::vector<Assignment> groups_;
  std::unordered_map<std::uint64_t, Place> known_;  // never iterated
  bool dirty_ = false;
  double furthest_ = 1;  // of all assignments so far
  std::uint64_t solves_ = 0, hit_ = 0, moved_ = 0;
};

}  // namespace

Result<std::unique_ptr<Scheme>> make_te(Parts& parts) {
  WEFT_TRY(Zone zone, find_zone(parts.fabric));
  WEFT_TRY(std::unique_ptr<Scheme> beneath, make_e_ecmp(parts));
  return std::make_unique<Te>(parts, std::move(zone), std::move(beneath));
}

}  // namespace weft::route
