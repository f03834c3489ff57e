#include "operate/repair/capacity_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "operate/repair/guards.hpp"

namespace weft::operate::repair {

std::vector<CapacityNews> CapacityWatch::look(std::vector<Entity> gone, Timestamp now) {
  std::ranges::sort(gone);
  gone.erase(std::ranges::unique(gone).begin(), gone.end());
  if (gone != gone_) is_weighed_ = false;
  gone_ = std::move(gone);
  std::vector<CapacityNews> out;
  if (!is_weighed_ && now.ns - weighed_.ns >= look_ns) {
    const std::map<Entity, Low> before = low_;
    weigh(now);
    for (const auto& [at, low] : before)
      if (low.told && !low_.contains(at))
        out.push_back({at, model::EventKind::capacity_ok, 1,
                       fmt::format("{} has its reserve of uplinks again", name(fabric_, at))});
  }
  for (auto& [at, low] : low_) {
    const std::int64_t due =
        low.told ? low.told->ns + again_ns : low.since.ns + policy_.timing.short_ns;
    if (now.ns < due) continue;
    low.told = now;
    out.push_back({at, model::EventKind::capacity_low, low.share, low.words});
  }
  std::ranges::sort(out, {}, &CapacityNews::at);
  return out;
}

std::optional<Timestamp> CapacityWatch::next_due() const {
  std::optional<Timestamp> out;
  const auto offer = [&](std::int64_t ns) {
    out = std::min(out.value_or(Timestamp{ns}), Timestamp{ns});
  };
  if (!is_weighed_) offer(weighed_.ns + look_ns);
  for (const auto& [at, low] : low_)
    offer(low.told ? low.told->ns + again_ns : low.since.ns + policy_.timing.short_ns);
  return out;
}

void CapacityWatch::recall(const Entity& at, model::EventKind kind, Timestamp t) {
  if (kind == model::EventKind::capacity_ok) low_.erase(at);
  if (kind != model::EventKind::capacity_low || at.kind == model::EntityKind::none) return;
  Low& low = low_.try_emplace(at, Low{.since = t}).first->second;
  low.told = t;
  is_weighed_ =
      is_weighed_ && !low.words.empty();  // of another life: what it says now is not known
}

void CapacityWatch::weigh(Timestamp now) {
  is_weighed_ = true;
  weighed_ = now;
  Gone gone(fabric_);
  for (const Entity& part : gone_) gone.add(part);
  const std::vector<Uplinks> rows = reserve_.uplinks(gone);
  std::map<Entity, std::size_t> shortest;  // of a place: a switch, the rack, the rack in a plane
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!is_short(policy_.guards, rows[i])) continue;
    const std::size_t other = shortest.try_emplace(rows[i].at, i).first->second;
    if (rows[i].share() <= rows[other].share()) shortest[rows[i].at] = i;
  }
  std::erase_if(low_, [&](const auto& low) { return !shortest.contains(low.first); });
  const std::map<Entity, std::vector<Entity>> independent = independent_parts(shortest);
  for (const auto& [at, row] : shortest) {
    const std::vector<Entity>& parts = independent.at(at);
    if (parts.empty() && !low_.contains(at)) continue;
    Low& low = low_.try_emplace(at, Low{.since = now}).first->second;
    low.share = rows[row].share();
    low.words = words_of(rows[row], parts);
  }
}

std::map<Entity, std::vector<Entity>> CapacityWatch::independent_parts(
    const std::map<Entity, std::size_t>& rows) const {
  std::map<Entity, std::vector<Entity>> out;
  std::set<Entity> is_one_enough;
  for (const auto& [at, row] : rows) out[at];
  for (const Entity& part : gone_) {
    // Parts of other racks cost these nothing; what stands above the racks may.
    const std::vector<model::ScopeId> racks = reserve_.racks_of(part);
    const auto is_of_them = [&](model::ScopeId rack) { return rows.contains(model::entity(rack)); };
    if (!racks.empty() && std::ranges::none_of(racks, is_of_them)) continue;
    Gone alone(fabric_);
    alone.add(part);
    const std::vector<Uplinks> left = reserve_.uplinks(alone);
    for (const auto& [at, row] : rows) {
      if (is_short(policy_.guards, left[row])) is_one_enough.insert(at);
      if (left[row].live_bps < left[row].whole_bps) out[at].push_back(part);
    }
  }
  for (const Entity& at : is_one_enough) out[at].clear();
  return out;
}

std::string CapacityWatch::words_of(const Uplinks& row, std::span<const Entity> parts) const {
  const std::string out = parts.empty() ? "" : fmt::format(" without {}", names(fabric_, parts));
  return fmt::format("{} has {:.4g} of {:.4g} Gbps upwards{}; its reserve is {:.4g}", row.name,
                     row.live_bps / 1e9, row.whole_bps / 1e9, out,
                     needed_bps(policy_.guards, row) / 1e9);
}

}  // namespace weft::operate::repair
