#include "adapt/sim/world_faults.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace weft::adapt::sim {
namespace {

using model::Entity;
using model::EntityKind;

bool has_directions(FaultKind kind) {
  return kind == FaultKind::grey || kind == FaultKind::corrupt || kind == FaultKind::delay ||
         kind == FaultKind::jitter || kind == FaultKind::optic;
}

class WorldFaultReader {
 public:
  WorldFaultReader(const model::Fabric& fabric, const Config& entry, std::size_t index,
                   Errors& errors)
      : fabric_(fabric),
        errors_(errors),
        reader_(entry, fmt::format("faults[{}]", index), errors) {}

  void read(Timestamp start, std::vector<TimedFault>& out) {
    const std::size_t errors_before = errors_.size();
    const std::vector<std::string> names = model::fault_names(model::by_world);
    const std::string& name = names[reader_.choice("kind", names, std::nullopt)];
    if (errors_.size() > errors_before) return;  // the other keys depend on the kind
    for (std::size_t i = 0; i < break_count; ++i)
      if (catalogued(static_cast<FaultKind>(i)).name == name)
        start_.kind = static_cast<FaultKind>(i);
    const Timestamp at{start.ns + reader_.duration("at", Duration{}).ps / ps_per_ns};
    read_end(at, start);
    read_size();
    read_names();
    reader_.finish();
    if (errors_.size() > errors_before) return;
    for (const auto& [part, way] : parts_) {
      start_.part = part;
      start_.way = way;
      out.push_back({at, start_});
    }
  }

 private:
  void read_end(Timestamp at, Timestamp start) {
    if (!reader_.has("until")) return;
    const Timestamp until{start.ns + reader_.duration("until", duration_max).ps / ps_per_ns};
    start_.lasts_ns = until.ns - at.ns;
    if (until <= at)
      reader_.error(Errc::value, reader_.where("until"), "the fault ends before it starts",
                    "give an \"until\" after \"at\", or leave it out");
  }

  void read_size() {
    constexpr double loss_least = 1e-7;
    switch (start_.kind) {
      case FaultKind::grey:
      case FaultKind::corrupt:
      case FaultKind::lossy_switch:
      case FaultKind::lossy_nic:
      case FaultKind::optic:
        start_.loss = reader_.number("loss", std::nullopt, loss_least, 1);
        return;
      case FaultKind::duplicate:
        start_.loss = reader_.number("share", 0.01, loss_least, 1);
        return;
      case FaultKind::degraded:
        start_.rate_factor = reader_.number("factor", std::nullopt, 1e-9, 1);
        return;
      case FaultKind::delay:
      case FaultKind::jitter:
        start_.delay_ns = reader_.duration("delay", std::nullopt).ps / ps_per_ns;
        return;
      case FaultKind::blackhole:
        read_victim();
        return;
      default:
        return;
    }
  }

  void read_victim() {
    const std::string name = reader_.text("to", std::nullopt);
    if (name.empty()) return;
    const auto node = fabric_.find_node({name, reader_.where("to")});
    if (!node) return reader_.error(node.error());
    if (fabric_.kind(*node) != model::NodeKind::host)
      return reader_.error(Errc::value, reader_.where("to"), fmt::format("{} is not a host", name),
                           "name a host");
    start_.victim = *node;
  }

  // A target stands under what it is.
  void read_names() {
    const auto on = split(catalogued(start_.kind).on, ' ');
    std::string_view key = on.front();
    for (const std::string_view one : on)
      if (reader_.has(one)) key = one;
    const std::vector<Token> tokens = reader_.texts(key);
    if (tokens.empty())
      reader_.error(Errc::parse, reader_.where(),
                    fmt::format("{} has no target", catalogued(start_.kind).name),
                    fmt::format("add \"{}: NAME\"", key));
    for (const Token& token : tokens) add(key, token);
  }

  void add(std::string_view key, const Token& token) {
    const auto found = model::find_entity(fabric_, token);
    if (!found) return reader_.error(found.error());
    if (key == "link") return add_link(*found, token);
    const model::NodeId node(found->id);
    const bool is_node = found->kind == EntityKind::node;
    const bool fits = key == "card"     ? found->kind == EntityKind::card
                      : key == "switch" ? is_node && fabric_.is_switch(node)
                                        : is_node && to_text(fabric_.kind(node)) == key;
    if (!fits)
      return reader_.error(Errc::value, token.where, fmt::format("{} is not a {}", token.text, key),
                           fmt::format("name a {}", key));
    parts_.emplace_back(*found, Way::both);
  }

  void add_link(const Entity& found, const Token& token) {
    if (found.kind != EntityKind::link && found.kind != EntityKind::cable)
      return reader_.error(Errc::value, token.where, fmt::format("{} is not a link", token.text),
                           "name a cable \"a--b\" or a direction \"a->b\"");
    if (found.kind == EntityKind::cable) {
      parts_.emplace_back(found, Way::both);
      return;
    }
    if (!has_directions(start_.kind))
      return reader_.error(
          Errc::value, token.where,
          fmt::format("{} takes both directions of a cable", catalogued(start_.kind).name),
          "name the cable: \"a--b\"");
    const model::LinkId link(found.id);
    const model::CableId cable = model::cable_of(link);
    parts_.emplace_back(model::entity(cable),
                        link == model::forward(cable) ? Way::forward : Way::reverse);
  }

  const model::Fabric& fabric_;
  Errors& errors_;
  Reader reader_;
  Operations::Start start_;
  std::vector<std::pair<Entity, Way>> parts_;
};

}  // namespace

Result<std::vector<TimedFault>> read_world_faults(const model::Fabric& fabric,
                                                  const Config& section, Timestamp start) {
  std::vector<TimedFault> out;
  Errors errors;
  if (section.kind != Config::Kind::null && section.kind != Config::Kind::list)
    return fail(Errc::value, section.where, "faults is not a list", "begin each with \"-\"");
  for (std::size_t i = 0; i < section.items.size(); ++i)
    WorldFaultReader(fabric, section.items[i], i, errors).read(start, out);
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  std::ranges::stable_sort(out, {}, &TimedFault::at);
  return out;
}

std::vector<model::Episode> episodes(const model::Fabric& fabric, const Operations& network) {
  std::vector<model::Episode> out;
  for (const Operations::Fault& fault : network.faults()) {
    if (catalogued(fault.kind).cause.empty()) continue;
    model::Episode& one = out.emplace_back();
    one.id = fmt::format("f{}", out.size());
    one.kind = catalogued(fault.kind).name;
    one.start = fault.start;
    one.end = fault.end.value_or(model::still_open);
    if (fault.part.kind == EntityKind::cable && fault.way != Way::both &&
        has_directions(fault.kind)) {
      const model::LinkId there = model::forward(model::CableId(fault.part.id));
      one.entities.emplace_back(
          fabric.name(fault.way == Way::forward ? there : model::reverse(there)));
    } else {
      one.entities.push_back(name(fabric, fault.part));
    }
    if (fault.loss < 1) one.attrs.emplace_back("rate", fmt::format("{}", fault.loss));
    if (fault.victim.valid()) one.attrs.emplace_back("to", fabric.name(fault.victim));
  }
  return out;
}

}  // namespace weft::adapt::sim
