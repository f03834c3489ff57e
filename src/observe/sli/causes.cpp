#include "observe/sli/causes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/check.hpp"
#include "base/text.hpp"
#include "model/events/entity.hpp"

namespace weft::observe::sli {
namespace {

using model::CableId;
using model::LinkId;
using model::NodeId;
using model::ScopeId;

constexpr std::int64_t indexed_minutes_max = std::int64_t{3} * 24 * 60;

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Saturates: an episode may be open.
std::int64_t add_ns(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  if (__builtin_add_overflow(a, b, &out)) return b > 0 ? INT64_MAX : INT64_MIN;
  return out;
}

int depth_of(const model::Fabric& fabric, ScopeId scope) {
  int depth = 0;
  for (; scope.valid(); scope = fabric.scopes()[scope].parent) ++depth;
  return depth;
}

bool has_text(const std::vector<std::string>& list, const std::string& text) {
  return std::ranges::find(list, text) != list.end();
}

}  // namespace

std::int64_t minute_of(Timestamp t) { return floor_div(t.ns, ns_per_minute); }
std::int64_t hour_of(std::int64_t minute) { return floor_div(minute, minutes_per_hour); }
Timestamp start_of(std::int64_t minute) { return {minute * ns_per_minute}; }

Result<Causes> Causes::create(const model::Fabric& fabric, std::vector<model::Episode> episodes,
                              const Settings& settings) {
  Causes out(fabric);
  Errors errors;
  std::ranges::sort(episodes, {}, [](const model::Episode& e) { return std::tie(e.start, e.id); });
  for (const model::Episode& episode : episodes) {
    auto& entities = out.entities_.emplace_back();
    for (const std::string& name : episode.entities) {
      auto entity = out.find_entity(name, episode.id);
      if (entity)
        entities.push_back(*std::move(entity));
      else if (errors.size() < errors_max)
        errors.push_back(std::move(entity).error());
    }
    Planned planned = has_text(settings.planned, episode.kind) ? Planned::yes : Planned::no;
    for (const auto& [key, value] : episode.attrs)
      if (key == "planned") planned = value == "true" ? Planned::yes : Planned::no;
    out.planned_.push_back(planned);
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  out.episodes_ = std::move(episodes);
  out.index_hours(settings.slack_ns);
  WEFT_CHECK(out.minutes_.size() == out.episodes_.size());
  WEFT_CHECK(out.entities_.size() == out.planned_.size());
  return out;
}

Result<Causes::Entity> Causes::find_entity(const std::string& name, const std::string& id) const {
  using model::EntityKind;
  const auto lower = [&](LinkId link) {
    const ScopeId x = fabric_->scope(fabric_->from(link)), y = fabric_->scope(fabric_->to(link));
    return depth_of(*fabric_, x) >= depth_of(*fabric_, y) ? x : y;
  };
  const model::Entity found = model::find_entity(*fabric_, {name, {}}).value_or(model::Entity{});
  switch (found.kind) {
    case EntityKind::node:
    case EntityKind::card:  // how many ports it has is not known here: the switch stands for it
      return Entity{{}, NodeId(found.id), fabric_->scope(NodeId(found.id))};
    case EntityKind::scope:
      return Entity{{}, {}, ScopeId(found.id)};
    case EntityKind::link:
      return Entity{{LinkId(found.id)}, {}, lower(LinkId(found.id))};
    case EntityKind::port:
    case EntityKind::cable: {
      const LinkId one =
          found.kind == EntityKind::port ? LinkId(found.id) : model::forward(CableId(found.id));
      return Entity{{one, model::reverse(one)}, {}, lower(one)};
    }
    case EntityKind::none:
      break;
  }
  return fail(Errc::unknown, {},
              fmt::format("episode {}: the fabric has no node, link, cable, port, card or scope {}",
                          quote(id), quote(name)),
              "use the fabric's entity names, e.g. \"rtsw:3\", \"a->b\", \"a--b\", \"rack:7\"");
}

void Causes::index_hours(std::int64_t slack_ns) {
  for (EpisodeIndex i = 0; i < episodes_.size(); ++i) {
    const model::Episode& e = episodes_[i];
    const std::int64_t last_ns = std::max(e.start.ns, add_ns(e.end.ns, -1));
    const std::int64_t first = minute_of({add_ns(e.start.ns, -slack_ns)});
    const std::int64_t last = minute_of({add_ns(last_ns, slack_ns)});
    minutes_.emplace_back(first, last);
    if (last - first > indexed_minutes_max) {
      lasting_.push_back(i);
      continue;
    }
    const std::int64_t last_hour = hour_of(last);
    for (std::int64_t h = hour_of(first); h <= last_hour; ++h) by_hour_[h].push_back(i);
  }
}

bool Causes::is_inside(NodeId node, ScopeId scope) const {
  for (ScopeId at = fabric_->scope(node); at.valid(); at = fabric_->scopes()[at].parent)
    if (at == scope) return true;
  return false;
}

// Is the node the entity, or a part of it?
bool Causes::meets(const Entity& entity, NodeId node) const {
  if (entity.node.valid()) return node == entity.node || fabric_->host_of(node) == entity.node;
  return entity.links.empty() && is_inside(node, entity.scope);
}

bool Causes::is_crossed(const Entity& entity, const model::Evidence& row,
                        std::span<const LinkId> path) const {
  if (meets(entity, row.src) || meets(entity, row.dst)) return true;
  return std::ranges::any_of(path, [&](LinkId link) {
    if (!entity.links.empty()) return std::ranges::find(entity.links, link) != entity.links.end();
    return meets(entity, fabric_->from(link)) || meets(entity, fabric_->to(link));
  });
}

bool Causes::may_be_crossed(const Entity& entity, const model::Evidence& row) const {
  if (meets(entity, row.src) || meets(entity, row.dst)) return true;
  // A host is on the way of its own probes alone.
  if (entity.node.valid() && !fabric_->is_switch(entity.node)) return false;
  if (!entity.scope.valid()) return true;  // of no scope: anywhere
  const bool at_src = is_inside(row.src, entity.scope), at_dst = is_inside(row.dst, entity.scope);
  if (at_src != at_dst) return true;
  if (!at_src) return false;
  // It holds both ends: it must not lie above the lowest scope that does.
  for (ScopeId at = fabric_->scope(row.src); at.valid(); at = fabric_->scopes()[at].parent) {
    if (at == entity.scope) return true;
    if (is_inside(row.dst, at)) return false;
  }
  return false;
}

bool Causes::explains(EpisodeIndex index, const model::Evidence& row,
                      std::span<const LinkId> path) const {
  const std::int64_t minute = minute_of(row.t);
  if (minute < minutes_[index].first || minute > minutes_[index].second) return false;
  return std::ranges::any_of(entities_[index], [&](const Entity& entity) {
    return path.empty() ? may_be_crossed(entity, row) : is_crossed(entity, row, path);
  });
}

void Causes::explain(const model::Evidence& row, std::span<const LinkId> path,
                     std::vector<EpisodeIndex>& out) const {
  out.clear();
  const auto keep = [&](const std::vector<EpisodeIndex>& candidates) {
    for (const EpisodeIndex i : candidates)
      if (explains(i, row, path)) out.push_back(i);
  };
  if (const auto hour = by_hour_.find(hour_of(minute_of(row.t))); hour != by_hour_.end())
    keep(hour->second);
  keep(lasting_);
  std::ranges::sort(out);
}

}  // namespace weft::observe::sli
