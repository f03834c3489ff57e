#include "operate/triage/evidence.hpp"

#include <bit>
#include <tuple>

#include "base/hash.hpp"

namespace weft::operate::triage {
namespace {

using model::EntityKind;
using model::EventKind;
using model::LinkId;
using model::NodeId;
using model::NodeKind;

// Names of peers that are kept; a stream that names more is looked up again.
constexpr std::size_t peers_max = 1'000'000;

auto order_key(const Evidence& e) {
  return std::tuple(e.at, e.part.value, e.kind, e.source, e.end, e.begin, e.detail, e.is_policy,
                    e.content);
}

}  // namespace

bool is_repeat(const Evidence& a, const Evidence& b) {
  return a.at == b.at && a.begin == b.begin && a.part == b.part && a.kind == b.kind &&
         a.source == b.source && a.end == b.end && a.detail == b.detail;
}

std::strong_ordering order(const Evidence& a, const Evidence& b) {
  if (const auto by_time = a.at <=> b.at; by_time != 0) return by_time;
  return order_key(a) <=> order_key(b);
}

void Interpreter::set_times(const model::Record& record, Evidence& out) {
  out.at = record.until.ns;
  out.begin = record.t.ns;
  const std::int64_t received = record.received.ns;
  if (received == record.t.ns) return;  // nobody said
  const std::int64_t behind = received - out.at;
  if (behind <= rules_.clock.behind_ns && -behind <= rules_.clock.ahead_ns) return;
  ++counts_.wrong_clocks;
  const std::int64_t length = out.at - out.begin;
  out.at = received - rules_.clock.delay_ns;
  out.begin = out.at - length;
}

// An order counts from the time that it names. It may be announced long before, or said again long
// after, and is known from then on: that is no wrong clock.
void Interpreter::set_order_times(const model::Record& record, Evidence& out) const {
  const std::int64_t received = record.received.ns;
  out.begin = record.t.ns;
  out.until = record.until > record.t ? record.until.ns : 0;
  const std::int64_t age = received - out.begin;
  out.at = age >= 0 && age <= rules_.clock.behind_ns ? out.begin : received;
}

void Interpreter::place(const model::Entity& entity, Evidence& out) const {
  switch (entity.kind) {
    case EntityKind::none:
      return;
    case EntityKind::port:
    case EntityKind::link:
      out.part = parts_.of(cable_of(LinkId(entity.id)));
      out.end = entity.id & 1U;
      return;
    case EntityKind::cable:
      out.part = parts_.of(model::CableId(entity.id));
      return;
    case EntityKind::card:
      out.part = parts_.of_card(NodeId(entity.id), entity.card);
      return;
    case EntityKind::scope:
      out.part = parts_.of(model::ScopeId(entity.id));
      return;
    case EntityKind::node:
      out.part = parts_.of(NodeId(entity.id));
      if (parts_.is_cable(out.part)) {
        const LinkId ahead = forward(parts_.cable(out.part));
        out.end = parts_.fabric().from(ahead) == NodeId(entity.id) ? 0 : 1;
      }
      return;
  }
}

// A pause says that the other end is full. A lower switch is full itself; a higher one may be
// paused in turn by what lies below it.
void Interpreter::place_paused(LinkId out_link, Evidence& out) const {
  const NodeId at = parts_.fabric().from(out_link), peer = parts_.fabric().to(out_link);
  out.via = at;
  if (parts_.fabric().kind(peer) == NodeKind::nic) {
    out.part = parts_.congestion_of(at);
    out.focus = parts_.of(cable_of(out_link));
    return;
  }
  out.part = parts_.congestion_of(peer);
  out.is_indirect = parts_.height(peer) > parts_.height(at);
}

void Interpreter::place_congestion(const model::Entity& entity, Evidence& out) const {
  const model::Fabric& fabric = parts_.fabric();
  Evidence plain;
  place(entity, plain);
  if (!plain.part.valid() || parts_.is_scope(plain.part)) return;
  if (parts_.is_cable(plain.part)) {
    const model::CableId cable = parts_.cable(plain.part);
    const LinkId link = plain.end == 0 ? forward(cable) : reverse(forward(cable));
    if (out.kind == EventKind::pfc_pauses && entity.kind != EntityKind::cable)
      place_paused(link, out);
    else
      out.part = parts_.congestion_of(parts_.lower_switch(cable));
    const bool is_queue = out.kind != EventKind::probe_latency && out.kind != EventKind::pfc_pauses;
    if (is_queue && parts_.nic_of(cable).valid()) out.focus = plain.part;
    return;
  }
  NodeId node(entity.id);
  if (fabric.kind(node) == NodeKind::host)
    if (const NodeId above = parts_.only_switch(node); above.valid()) node = above;
  out.part = parts_.congestion_of(node);
}

// Apart from the rack itself: that has not failed, and the faults that cost it uplinks are cases of
// their own.
void Interpreter::place_capacity(const model::Entity& entity, Evidence& out) const {
  if (entity.kind == EntityKind::node) out.part = parts_.capacity_of(NodeId(entity.id));
  if (entity.kind == EntityKind::scope) out.part = parts_.capacity_of(model::ScopeId(entity.id));
}

// Sessions and interfaces that are said of a device, with the other end as an attribute.
void Interpreter::place_session(const model::RecordSet& set, const model::Record& record,
                                Evidence& out) {
  const std::string_view reason = set.attribute(record, "reason");
  out.is_policy = reason == "policy";
  out.has_reason = !reason.empty();
  if (record.entity.kind != EntityKind::node) return;
  const std::string_view name = set.attribute(record, "peer");
  if (name.empty()) return;
  auto known = peers_.find(name);
  if (known == peers_.end()) {
    if (peers_.size() >= peers_max) peers_.clear();
    const auto found = parts_.fabric().find_node({name, {}});
    known = peers_.emplace(std::string(name), found.value_or(NodeId())).first;
  }
  if (!known->second.valid()) return;
  for (const LinkId link : parts_.fabric().out(NodeId(record.entity.id)))
    if (parts_.fabric().to(link) == known->second) return place(model::port_of(link), out);
}

void Interpreter::place_change(const model::RecordSet& set, const model::Record& record,
                               Evidence& out) {
  const std::string_view change = set.attribute(record, "change");
  out.detail = change.empty() ? 0 : hash_text(change);
  if (!change.empty()) changes_.try_emplace(out.detail, change);
}

std::optional<Evidence> Interpreter::interpret(const model::RecordSet& set,
                                               const model::Record& record, std::uint64_t serial) {
  ++counts_.records;
  const Meaning meaning = rules_.event(record.kind).meaning;
  if (meaning == Meaning::nothing) {
    ++counts_.nothing;
    return std::nullopt;
  }
  Evidence out;
  out.kind = record.kind;
  out.source = record.source;
  out.serial = serial;
  out.content = hash_text(set.ids[record.id]);
  out.detail = std::bit_cast<std::uint64_t>(record.value);
  if (meaning == Meaning::planned) {
    out.detail = static_cast<std::uint64_t>(record.until.ns);
    out.is_verified = !set.attribute(record, "verified").empty();
    set_order_times(record, out);
  } else {
    set_times(record, out);
  }
  if (record.kind == EventKind::maintenance)
    announcements_.try_emplace(out.content, set.ids[record.id]);
  if (meaning == Meaning::congestion)
    place_congestion(record.entity, out);
  else if (record.kind == EventKind::capacity_low || record.kind == EventKind::capacity_ok)
    place_capacity(record.entity, out);
  else
    place(record.entity, out);
  if (record.attrs != 0 && meaning != Meaning::planned) {
    if (meaning == Meaning::change || record.kind == EventKind::config_error)
      place_change(set, record, out);
    else
      place_session(set, record, out);
  } else if (meaning == Meaning::change) {
    out.detail = 0;
  }
  if (out.part.valid()) return out;
  ++counts_.unplaced;
  return std::nullopt;
}

}  // namespace weft::operate::triage
