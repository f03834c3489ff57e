#include "operate/health/book.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "operate/repair/what_if.hpp"

namespace weft::operate::health {
namespace {

using model::Entity;
using model::EntityKind;
using model::EventKind;
using model::Fabric;
using model::LinkId;
using model::NodeId;

constexpr std::uint16_t carries_nothing =
    layout::evidence_down | layout::evidence_session | layout::evidence_out;

// Which evidence a record is; 0: none.
std::uint16_t evidence_of(EventKind kind) {
  switch (kind) {
    case EventKind::link_down:
    case EventKind::interface_down:
    case EventKind::nic_down:
      return layout::evidence_down;
    case EventKind::bgp_down:
    case EventKind::bfd_down:
      return layout::evidence_session;
    case EventKind::crc_errors:
    case EventKind::discards:
    case EventKind::nic_errors:
      return layout::evidence_damage;
    case EventKind::probe_loss:
      return layout::evidence_loss;
    case EventKind::probe_latency:
      return layout::evidence_delay;
    case EventKind::ecn_marks:
    case EventKind::queue_depth:
      return layout::evidence_marks;
    case EventKind::pfc_pauses:
      return layout::evidence_pauses;
    default:
      return 0;
  }
}

// Which evidence it ends.
std::uint16_t ended_by(EventKind kind) {
  switch (kind) {
    case EventKind::link_up:
    case EventKind::nic_up:
      return layout::evidence_down;
    case EventKind::bgp_up:
    case EventKind::bfd_up:
      return layout::evidence_session;
    default:
      return 0;
  }
}

bool lasts(std::uint16_t evidence) {
  return (evidence & (layout::evidence_down | layout::evidence_session)) != 0;
}

std::optional<model::CableId> cable_of(const Entity& part) {
  switch (part.kind) {
    case EntityKind::port:
    case EntityKind::link:
      return model::cable_of(LinkId(part.id));
    case EntityKind::cable:
      return model::CableId(part.id);
    default:
      return std::nullopt;
  }
}

// One end, or the whole of a cable.
bool is_end(const Entity& part) { return part.kind == EntityKind::port; }

// What crosses the part: a link its own way; a cable, port or NIC both ways.
std::vector<LinkId> links_of(const Fabric& fabric, const Entity& part) {
  if (part.kind == EntityKind::link) return {LinkId(part.id)};
  if (const auto cable = cable_of(part))
    return {model::forward(*cable), model::reverse(model::forward(*cable))};
  std::vector<LinkId> out;
  if (part.kind == EntityKind::node && fabric.kind(NodeId(part.id)) == model::NodeKind::nic)
    for (const LinkId link : fabric.out(NodeId(part.id)))
      if (fabric.on_wire(link)) {
        const model::CableId cable = model::cable_of(link);
        out.push_back(model::forward(cable));
        out.push_back(model::reverse(model::forward(cable)));
      }
  return out;
}

std::optional<double> share(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!(value >= 0 && value <= 1)) return std::nullopt;
  return value;
}

}  // namespace

bool Book::end(const Entity& part, std::uint16_t evidence) {
  const auto cable = cable_of(part);
  return 0 < std::erase_if(marks_, [&](const auto& entry) {
           const auto& [other, bit] = entry.first;
           if (bit != evidence) return false;
           if (other == part) return true;
           // Said of the whole cable it is for both ends, and the other way round.
           return cable && cable_of(other) == cable && !(is_end(other) && is_end(part));
         });
}

bool Book::take(const model::RecordSet& set, const model::Record& row) {
  // What is said of a whole switch, card or host says nothing of one link: its cables' other ends
  // do.
  if (links_of(fabric_, row.entity).empty()) return false;
  bool is_change = false;
  if (const std::uint16_t ended = ended_by(row.kind); ended != 0)
    is_change = end(row.entity, ended);
  if (const std::uint16_t bit = evidence_of(row.kind); bit != 0) {
    const Timestamp until = lasts(bit) ? end_of_time : Timestamp{std::max(row.t, row.until).ns};
    is_change |= lasts(bit) && !marks_.contains({row.entity, bit});
    marks_[{row.entity, bit}] = {.value = row.value,
                                 .until = lasts(bit) ? until : Timestamp{until.ns + hold_ns}};
  }
  if (const auto left = share(set.attribute(row, "rate_share"))) {
    end(row.entity, layout::evidence_slow);
    if (*left < 1) marks_[{row.entity, layout::evidence_slow}] = {*left, end_of_time};
  }
  return is_change;
}

std::set<LinkId> Book::cut_off() const {
  std::set<LinkId> out;
  for (const auto& [key, mark] : marks_) {
    if (!lasts(key.second)) continue;
    for (const LinkId link : links_of(fabric_, key.first)) {
      out.insert(link);
      out.insert(model::reverse(link));
    }
  }
  return out;
}

Conditions Book::conditions(Timestamp now, std::span<const Entity> out_of_service) const {
  Conditions out;
  const auto cut = [&](LinkId link, std::uint16_t bit) {
    if (!fabric_.on_wire(link)) return;
    LinkCondition& at = out[link];
    at.rate = 0;
    at.evidence |= bit;
  };
  for (const auto& [key, mark] : marks_) {
    const auto& [part, bit] = key;
    if (mark.until <= now) continue;
    for (const LinkId link : links_of(fabric_, part)) {
      if ((bit & carries_nothing) != 0) {  // both ways, whichever was named
        cut(link, bit);
        cut(model::reverse(link), bit);
        continue;
      }
      LinkCondition& at = out[link];
      at.evidence |= bit;
      if (bit == layout::evidence_slow) at.rate = std::min(at.rate, mark.value);
      if (bit == layout::evidence_loss && mark.value >= 0 && mark.value < 1)
        at.loss = std::max(at.loss, mark.value);
    }
  }
  if (out_of_service.empty()) return out;
  const model::State state = repair::state_without(fabric_, out_of_service);
  for (const auto& [link, condition] : state.troubled_links()) cut(link, layout::evidence_out);
  for (const auto& [node, condition] : state.troubled_nodes())
    for (const LinkId link : fabric_.out(node)) {
      cut(link, layout::evidence_out);
      cut(model::reverse(link), layout::evidence_out);
    }
  return out;
}

std::vector<RateWatch::Change> RateWatch::take(std::span<const Reading> readings, Timestamp now) {
  std::set<double> unknown;  // nominal rates of which nothing was seen before
  for (const Reading& r : readings) {
    if (!most_.contains(r.nominal_bps)) unknown.insert(r.nominal_bps);
    double& most = most_[r.nominal_bps];
    most = std::max(most, std::min(r.speed_bps, r.nominal_bps));
  }
  std::vector<Change> out;
  for (const Reading& r : readings) {
    if (!(r.speed_bps > 0)) continue;
    const double share = std::min(1.0, r.speed_bps / most_[r.nominal_bps]);
    const auto [known, is_new] = told_.try_emplace(r.part);
    Told& told = known->second;
    const bool is_due = share < 1 && (now < told.at || now.ns - told.at.ns >= again_ns);
    // The first speed that is seen may itself be a slow one.
    const bool is_sure = r.speed_bps >= r.nominal_bps || !unknown.contains(r.nominal_bps);
    const bool is_news = is_new ? share < 1 || is_sure : share != told.share;
    if (!is_news && !is_due) continue;
    out.push_back({r.part, share, !is_new && told.share < 1 && share >= 1});
    told = {share, now};
  }
  return out;
}

model::State state_of(const Conditions& conditions) {
  model::State out;
  for (const auto& [link, at] : conditions)
    if (at.rate <= 0)
      out.set(link, {.health = model::Health::down});
    else if (at.rate < 1 || at.loss > 0)
      out.set(link, {.rate_factor = at.rate, .loss = at.loss});
  return out;
}

Conditions conditions_of(const Fabric& fabric, const model::State& state) {
  Conditions out;
  const model::LiveView live(fabric, state);
  for (const LinkId link : fabric.links()) {
    if (!fabric.on_wire(link)) continue;
    LinkCondition at;
    const double nominal = static_cast<double>(fabric.rate(link).bps) / 8;
    at.rate = live.usable(link) ? live.bytes_per_s[link.index()] / nominal : 0;
    at.loss = state.link(link).loss;
    if (at.rate <= 0) at.evidence |= layout::evidence_down;
    if (at.rate > 0 && at.rate < 1) at.evidence |= layout::evidence_slow;
    if (at.loss > 0) at.evidence |= layout::evidence_loss;
    if (at.evidence != 0) out.emplace(link, at);
  }
  return out;
}

HealthTable table_of(const Fabric& fabric, const Conditions& conditions, Timestamp now) {
  HealthTable out{.written = now, .rails = {}, .links = {}, .advice = {}};
  std::map<std::uint16_t, RailHealth> rails;
  std::map<LinkId, std::uint16_t> rail_of;  // of the links that are not well
  for (const NodeId host : fabric.hosts()) {
    std::uint16_t place = 0;
    for (const NodeId nic : fabric.nics_of(host)) {
      const auto number =
          fabric.rail(nic) == model::no_lane ? place : static_cast<std::uint16_t>(fabric.rail(nic));
      ++place;
      if (number >= layout::rails_max) continue;
      RailHealth& rail = rails[number];
      rail.rail = number;
      ++rail.nics;
      LinkCondition worst;
      for (const LinkId out_link : fabric.out(nic)) {
        if (!fabric.on_wire(out_link)) continue;
        for (const LinkId link : {out_link, model::reverse(out_link)}) {
          const auto at = conditions.find(link);
          if (at == conditions.end()) continue;
          rail_of[link] = number;
          worst.rate = std::min(worst.rate, at->second.rate);
          worst.loss = std::max(worst.loss, at->second.loss);
          worst.evidence |= at->second.evidence;
        }
      }
      rail.evidence |= worst.evidence;
      if (worst.rate <= 0) {
        ++rail.nics_down;
      } else if (worst.evidence != 0) {
        ++rail.nics_impaired;
        rail.worst_rate = std::min(rail.worst_rate, worst.rate);
      }
      rail.worst_loss = std::max(rail.worst_loss, worst.loss);
    }
  }
  for (const auto& [number, rail] : rails) out.rails.push_back(rail);
  for (const auto& [link, at] : conditions) {
    const auto rail = rail_of.find(link);
    out.links.push_back({std::string(fabric.name(link)), at.rate, at.loss, at.evidence,
                         rail == rail_of.end() ? layout::no_rail : rail->second});
  }
  std::ranges::stable_sort(out.links, {},
                           [](const LinkHealth& l) { return std::tuple(l.rate, -l.loss); });
  return out;
}

}  // namespace weft::operate::health
