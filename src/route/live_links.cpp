#include "route/live_links.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace weft::route {
namespace {

void add_troubled(const Fabric& fabric, const model::State& state, std::vector<LinkId>& out) {
  for (const auto& [link, condition] : state.troubled_links()) out.push_back(link);
  for (const auto& [node, condition] : state.troubled_nodes())
    for (const LinkId link : fabric.out(node)) {
      out.push_back(link);
      out.push_back(reverse(link));
    }
}

struct LinkNow {
  model::Health health;
  double bytes_per_s;
};

// As LiveView has it: the link's own condition, then those of its ends in id order.
LinkNow link_now(const Fabric& fabric, const model::State& state, LinkId link) {
  const auto [low, high] = std::minmax({fabric.from(link), fabric.to(link)});
  LinkNow now{model::Health::up, fabric.rate(link).bytes_per_s()};
  for (const model::Condition& condition : {state.link(link), state.node(low), state.node(high)}) {
    now.health = std::max(now.health, condition.health);
    now.bytes_per_s =
        now.health == model::Health::down ? 0 : now.bytes_per_s * condition.rate_factor;
  }
  return now;
}

}  // namespace

std::vector<LinkChange> LiveLinks::set_state(const model::State& state) {
  std::vector<LinkId> suspects;
  add_troubled(fabric_, state_, suspects);
  add_troubled(fabric_, state, suspects);
  std::ranges::sort(suspects);
  const auto repeats = std::ranges::unique(suspects);
  suspects.erase(repeats.begin(), repeats.end());

  WEFT_CHECK(view_.health.size() == view_.bytes_per_s.size());
  std::vector<LinkChange> changes;
  for (const LinkId link : suspects) {
    const LinkNow now = link_now(fabric_, state, link);
    WEFT_CHECK(now.health != model::Health::down || now.bytes_per_s == 0);
    model::Health& health = view_.health[link.index()];
    double& bytes_per_s = view_.bytes_per_s[link.index()];
    if (health == now.health && bytes_per_s == now.bytes_per_s) continue;
    changes.push_back({link, health, bytes_per_s});
    health = now.health;
    bytes_per_s = now.bytes_per_s;
  }
  state_ = state;
  return changes;
}

}  // namespace weft::route
