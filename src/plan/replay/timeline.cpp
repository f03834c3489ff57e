#include "plan/replay/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace weft::plan::replay {
namespace {

using model::Entity;
using model::EntityKind;
using model::EventKind;
using model::Fabric;
using model::NodeKind;

struct Change {
  Timestamp at;
  bool begins;
  Trouble trouble;
  std::string said_by;  // an end of a cable is over when the end that said so says so
};

std::optional<model::CableId> cable_of(const Entity& entity) {
  if (entity.kind == EntityKind::link || entity.kind == EntityKind::port)
    return model::cable_of(model::LinkId(entity.id));
  if (entity.kind == EntityKind::cable) return model::CableId(entity.id);
  return std::nullopt;
}

class StateChanges {
 public:
  explicit StateChanges(const Fabric& fabric) : fabric_(fabric) {}

  // False for what says nothing about the state.
  bool add(const model::Record& record) {
    const std::string said_by = model::name(fabric_, record.entity);
    switch (record.kind) {
      case EventKind::link_down:
      case EventKind::interface_down:
        return add_link(record, true, said_by);
      case EventKind::link_up:
        return add_link(record, false, said_by);
      case EventKind::nic_down:
        return add_nic(record, true);
      case EventKind::nic_up:
        return add_nic(record, false);
      case EventKind::drain:
        return add_drain(record, true);
      case EventKind::undrain:
        return add_drain(record, false);
      default:
        return false;
    }
  }

  std::vector<Change> changes;

 private:
  std::optional<Trouble> on_cable(const Entity& entity, const char* kind) const {
    const auto cable = cable_of(entity);
    if (!cable) return std::nullopt;
    return Trouble{kind, "link", fabric_.name(*cable)};
  }

  bool add_link(const model::Record& record, bool begins, const std::string& said_by) {
    const auto trouble = on_cable(record.entity, "link_down");
    if (trouble) changes.push_back({record.t, begins, *trouble, said_by});
    return trouble.has_value();
  }

  bool add_nic(const model::Record& record, bool begins) {
    const Entity& entity = record.entity;
    if (entity.kind != EntityKind::node) return false;
    const model::NodeId node(entity.id);
    if (fabric_.kind(node) != NodeKind::nic) return false;
    changes.push_back({record.t, begins, {"nic_down", "nic", fabric_.name(node)}, ""});
    return true;
  }

  bool add_drain(const model::Record& record, bool begins) {
    const Entity& entity = record.entity;
    std::optional<Trouble> trouble = on_cable(entity, "link_drain");
    if (!trouble && entity.kind == EntityKind::node) {
      const model::NodeId node(entity.id);
      if (fabric_.is_switch(node))
        trouble = Trouble{"switch_drain", "switch", fabric_.name(node)};
      else if (fabric_.kind(node) == NodeKind::nic)
        trouble = Trouble{"nic_drain", "nic", fabric_.name(node)};
    }
    if (!trouble) return false;
    changes.push_back({record.t, begins, *trouble, ""});
    if (begins && record.until > record.t)
      changes.push_back({record.until, false, *std::move(trouble), ""});
    return true;
  }

  const Fabric& fabric_;
};

}  // namespace

Config faults_of(const State& state) {
  Config out = Config::list();
  for (const Trouble& trouble : state) {
    Config fault = Config::map();
    fault.at_or_add("kind") = Config::scalar(trouble.kind);
    fault.at_or_add(trouble.key) = Config::scalar(trouble.name);
    out.items.push_back(std::move(fault));
  }
  return out;
}

Result<Timeline> timeline_of(const Fabric& fabric, const model::RecordSet& records,
                             const Window& window) {
  Timeline out;
  StateChanges read(fabric);
  for (const model::Record& record : records.rows) {
    const bool is_unknown =
        record.entity.kind == EntityKind::none && !records.attribute(record, "entity").empty();
    ++(is_unknown ? out.unknown : read.add(record) ? out.used : out.ignored);
  }
  std::ranges::stable_sort(read.changes, {}, &Change::at);
  if (read.changes.empty() && (!window.from || !window.until)) {
    if (out.unknown > 0)
      return fail(Errc::value, {},
                  fmt::format("{} of {} records are of parts that the fabric does not have, and "
                              "the others contain no change of state",
                              out.unknown, records.rows.size()),
                  "check that the scenario has the fabric that the records are of");
    return fail(Errc::value, {}, "no record of a link, NIC or switch that changed its state",
                "give records of link_down, link_up, nic_down, nic_up, drain or undrain");
  }
  const Timestamp from =
      window.from.value_or(read.changes.empty() ? Timestamp{} : read.changes.front().at);
  const Timestamp until =
      window.until.value_or(read.changes.empty() ? from : read.changes.back().at);
  if (!(from < until) && window.from && window.until)
    return fail(Errc::value, {}, "--until is not after --from");
  if (!(from < until))
    return fail(
        Errc::value, {},
        fmt::format("nothing lies between {} and {}", weft::to_text(from), weft::to_text(until)),
        "without --from and --until the first and the last change are taken; specify them");
  std::map<Trouble, std::set<std::string>> now;  // by whom
  std::map<State, std::uint32_t> known;
  Timestamp at = from;
  const auto add_until = [&](Timestamp end) {
    if (!(at < end)) return;
    State state;
    for (const auto& [trouble, by] : now) state.push_back(trouble);
    const auto [entry, is_new] =
        known.try_emplace(std::move(state), static_cast<std::uint32_t>(out.states.size()));
    if (is_new) out.states.push_back(entry->first);
    if (!out.intervals.empty() && out.intervals.back().state == entry->second)
      out.intervals.back().until = end;
    else
      out.intervals.push_back({at, end, entry->second});
    at = end;
  };
  for (const Change& change : read.changes) {
    if (!(change.at < until)) break;
    add_until(change.at);
    if (change.begins) {
      now[change.trouble].insert(change.said_by);
    } else if (const auto found = now.find(change.trouble); found != now.end()) {
      found->second.erase(change.said_by);
      if (found->second.empty()) now.erase(found);
    }
  }
  add_until(until);
  return out;
}

}  // namespace weft::plan::replay
