// Central traffic engineering: a controller gives each flow that it was told of its spine, by
// Assignment; what it does not know, and what it assigned to a link that is dead by now, goes as
// with e_ecmp, as over the BGP routes beneath (Meta, SIGCOMM 2024).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/plural.hpp"
#include "route/assign.hpp"
#include "route/divide.hpp"
#include "route/scheme.hpp"
#include "route/zone.hpp"

namespace weft::route {
namespace {

class Te final : public Scheme {
 public:
  Te(Parts& parts, Zone zone, std::unique_ptr<Scheme> beneath)
      : parts_(parts), zone_(std::move(zone)), beneath_(std::move(beneath)) {
    WEFT_CHECK(!parts_.config.te_split || parts_.config.qps % 2 == 0);
    see({});
  }

  bool append_leg(const Stream& stream, NodeId from, NodeId to, std::vector<Hop>& out) override {
    felt_lapse_ = felt_lapse_ || lapsed_;
    const std::uint32_t column = lapsed_ ? Assignment::none : column_of(from, to, stream.qp);
    if (column == Assignment::none) return beneath_->append_leg(stream, from, to, out);
    const std::array<LinkId, 4> path = zone_.path(from, to, column);
    // Switches give up a mark over an uplink of their own that is dead, and no other: where they
    // hear late, one to a spine that has lost the other rack stays until the controller changes it.
    const auto usable = [&](LinkId link) { return parts_.live.usable(link); };
    const bool holds = parts_.noticed != nullptr ? parts_.noticed->usable(path[1])
                                                 : std::ranges::all_of(path, usable);
    if (!holds) return beneath_->append_leg(stream, from, to, out);
    for (const LinkId link : path) out.push_back({link, 1});
    return true;
  }

  void append_usable_leg(NodeId from, NodeId to, std::vector<LinkId>& out) override {
    beneath_->append_usable_leg(from, to, out);
  }

  // A pair that an earlier group has already keeps its path, and is no part of this group. With
  // `split` QPs 2k and 2k + 1 are one flow, and both find it.
  void declare(std::span<const NicDemand> demands) override {
    if (parts_.config.te_marks != nullptr) return;
    Group group{Assignment(zone_.racks, zone_.columns), {}, {}};
    for (const NicDemand& d : demands) {
      const std::uint32_t from = zone_.rack_of[d.src], to = zone_.rack_of[d.dst];
      if (from == Zone::none || to == Zone::none || from == to || d.bytes <= 0) continue;
      if (parts_.config.te_split && d.qp % 2 != 0) continue;  // part of the one before
      const auto [entry, is_new] = known_.try_emplace(key(d.src, d.dst, d.qp));
      if (!is_new) continue;
      entry->second.group = static_cast<std::uint32_t>(groups_.size());
      if (parts_.config.te_split) {
        entry->second.flow = static_cast<std::uint32_t>(group.flows.size());
        group.flows.push_back({from, to, 2 * d.bytes});
        known_[key(d.src, d.dst, d.qp + 1)] = entry->second;
      } else {
        entry->second.flow = group.assignment.add({from, to, d.bytes});
      }
    }
    set_capacities(group.assignment, zone_, capacity_);
    groups_.push_back(std::move(group));
    dirty_ = true;
  }

  void on_sight(const model::State& state) override {
    lapsed_ = state.marks_lapsed();
    const std::vector<double> before = capacity_;
    see(state.seen());
    if (capacity_ == before) return;
    for (Group& group : groups_) set_capacities(group.assignment, zone_, capacity_);
    dirty_ = true;
  }

  void trim() override { beneath_->trim(); }

  std::string report() const override {
    if (const auto& marks = parts_.config.te_marks; marks != nullptr)
      return fmt::format("{} marks are installed", marks->size());
    std::string text =
        fmt::format("te assigned {} streams (kinds: {}), worst link at most {:.3f} x the bound",
                    known_.size(), groups_.size(), furthest_);
    if (parts_.config.te_split) text += fmt::format("; {} pairs of QPs are divided", divided());
    if (solves_ > 1)
      text += fmt::format("; anew after {}: {} had lost their paths, {} others made room",
                          counted(solves_ - 1, "change"), counted(hit_, "stream"), moved_);
    if (felt_lapse_) text += "; its marks lapsed, and all was hashed";
    return text;
  }

 private:
  struct Place {
    std::uint32_t group = 0, flow = 0;
  };
  struct Group {
    Assignment assignment;  // with `split` only the links
    std::vector<Assignment::Flow> flows;
    Placement placed;  // of `flows`
  };

  // `none`: hashed.
  std::uint32_t column_of(NodeId from, NodeId to, std::uint32_t qp) {
    if (const auto& marks = parts_.config.te_marks; marks != nullptr) {
      const auto mark = marks->find({from, to, qp});
      if (mark == marks->end()) return Assignment::none;
      const std::uint32_t column = zone_.column_of(from, mark->second);
      const std::uint32_t rack = zone_.rack_of[to];
      const bool is_path = column != Zone::none && rack != Zone::none &&
                           rack != zone_.rack_of[from] && zone_.uplink(rack, column).valid();
      return is_path ? column : Assignment::none;
    }
    if (dirty_) solve();
    const auto found = qp < parts_.config.qps ? known_.find(key(from, to, qp)) : known_.end();
    return found == known_.end() ? Assignment::none : column_of(found->second, qp);
  }

  // Where a pair of QPs is not divided, both take the same path.
  std::uint32_t column_of(const Place& place, std::uint32_t qp) const {
    const Group& group = groups_[place.group];
    if (!parts_.config.te_split) return group.assignment.spine_of(place.flow);
    const std::uint32_t second = group.placed.second[place.flow];
    return qp % 2 != 0 && second != Assignment::none ? second : group.placed.first[place.flow];
  }
  std::size_t divided() const {
    std::size_t out = 0;
    for (const Group& group : groups_)
      out += group.placed.second.size() -
             static_cast<std::size_t>(std::ranges::count(group.placed.second, Assignment::none));
    return out;
  }

  std::uint64_t key(NodeId src, NodeId dst, std::uint32_t qp) const {
    return (std::uint64_t{src.value} * parts_.fabric.node_count() + dst.value) * parts_.config.qps +
           qp;
  }

  void see(const model::State& seen) { capacity_ = zone_capacities(zone_, parts_.fabric, seen); }

  Assignment::Outcome solve(Group& group) const {
    if (!parts_.config.te_split) return group.assignment.solve();
    const std::vector<bool> all(group.flows.size(), true);
    group.placed = place(group.assignment, group.flows, all, group.placed);
    Assignment::Outcome out = group.placed.outcome;
    out.worst = group.placed.worst;
    return out;
  }
  void solve() {
    for (Group& group : groups_) {
      const Assignment::Outcome outcome = solve(group);
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
  std::vector<double> capacity_;  // as zone_capacities() has them
  std::vector<Group> groups_;
  std::unordered_map<std::uint64_t, Place> known_;  // never iterated
  bool dirty_ = false;
  bool lapsed_ = false;      // switches ignore marks
  bool felt_lapse_ = false;  // some stream was under way then
  double furthest_ = 1;      // of all assignments so far
  std::uint64_t solves_ = 0, hit_ = 0, moved_ = 0;
};

}  // namespace

Result<std::unique_ptr<Scheme>> make_te(Parts& parts) {
  WEFT_TRY(Zone zone, find_zone(parts.fabric));
  WEFT_TRY(std::unique_ptr<Scheme> beneath, make_e_ecmp(parts));
  return std::make_unique<Te>(parts, std::move(zone), std::move(beneath));
}

}  // namespace weft::route
