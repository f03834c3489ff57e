#include "operate/triage/maintenance.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"

namespace weft::operate::triage {
namespace {

using model::Entity;
using model::EntityKind;

void add_parts(const Parts& parts, const Suspects& suspects, const Entity& entity,
               std::vector<PartId>& out) {
  for (const SuspectId suspect : ids<SuspectId>(suspects.size()))
    if (suspects[suspect].root == entity) {
      const auto footprint = suspects.all(suspect);
      out.insert(out.end(), footprint.begin(), footprint.end());
    }
  switch (entity.kind) {
    case EntityKind::port:
    case EntityKind::link:
      out.push_back(parts.of(cable_of(model::LinkId(entity.id))));
      return;
    case EntityKind::cable:
      out.push_back(parts.of(model::CableId(entity.id)));
      return;
    case EntityKind::node:
      out.push_back(parts.of(model::NodeId(entity.id)));
      out.push_back(parts.congestion_of(model::NodeId(entity.id)));
      out.push_back(parts.capacity_of(model::NodeId(entity.id)));
      return;
    case EntityKind::card:
      out.push_back(parts.of_card(model::NodeId(entity.id), entity.card));
      return;
    case EntityKind::scope:
      out.push_back(parts.of(model::ScopeId(entity.id)));
      out.push_back(parts.capacity_of(model::ScopeId(entity.id)));
      return;
    case EntityKind::none:
      return;
  }
}

}  // namespace

std::vector<PartId> parts_under(const Parts& parts, const Suspects& suspects,
                                const model::Entity& entity) {
  std::vector<PartId> out;
  add_parts(parts, suspects, entity, out);
  std::ranges::sort(out);
  const auto twice = std::ranges::unique(out);
  out.erase(twice.begin(), twice.end());
  return out;
}

void Maintenance::announce(std::string id, Timestamp start, Timestamp end,
                           std::vector<PartId> parts) {
  WEFT_CHECK(std::ranges::is_sorted(parts));  // covering() looks them up
  if (std::ranges::find(windows_, id, &Window::id) != windows_.end()) return;
  if (windows_.size() >= windows_max) windows_.pop_front();
  windows_.push_back({std::move(id), start, end, std::move(parts)});
}

void Maintenance::end(std::span<const PartId> parts, Timestamp at) {
  for (Window& window : windows_)
    if (window.start <= at && at < window.end && std::ranges::equal(window.parts, parts))
      window.end = at;
}

Result<Maintenance> Maintenance::create(const Parts& parts, const Suspects& suspects,
                                        const std::vector<model::Episode>& episodes) {
  Maintenance out;
  Errors errors;
  for (const model::Episode& episode : episodes) {
    Window window{episode.id, episode.start, episode.end, {}};
    for (const std::string& name : episode.entities) {
      auto entity = model::find_entity(parts.fabric(), {name, {}});
      if (entity) {
        add_parts(parts, suspects, *entity, window.parts);
        continue;
      }
      Error error = std::move(entity).error();
      error.what = fmt::format("episode {}: {}", quote(episode.id), error.what);
      errors.push_back(std::move(error));
    }
    std::ranges::sort(window.parts);
    out.windows_.push_back(std::move(window));
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

std::string_view Maintenance::covering(std::span<const PartId> parts, Timestamp at) const {
  for (const Window& window : windows_) {
    if (at < window.start || at >= window.end || parts.empty()) continue;
    if (std::ranges::all_of(
            parts, [&](PartId part) { return std::ranges::binary_search(window.parts, part); }))
      return window.id;
  }
  return {};
}

}  // namespace weft::operate::triage
