#include "model/fabric/state.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace weft::model {
namespace {

template <class IdType>
Condition lookup(const std::map<IdType, Condition>& exceptions, IdType id) {
  const auto it = exceptions.find(id);
  return it == exceptions.end() ? Condition{} : it->second;
}

// True when something changed.
template <class IdType>
bool store(std::map<IdType, Condition>& exceptions, IdType id, Condition condition) {
  WEFT_CHECK(condition.rate_factor > 0 && condition.rate_factor <= 1);
  WEFT_CHECK(condition.loss >= 0 && condition.loss < 1);
  WEFT_CHECK(condition.slowdown >= 1 && std::isfinite(condition.slowdown));
  if (lookup(exceptions, id) == condition) return false;
  if (condition == Condition{}) {
    exceptions.erase(id);
  } else {
    exceptions[id] = condition;
  }
  return true;
}

}  // namespace

Condition State::link(LinkId link) const { return lookup(links_, link); }
Condition State::node(NodeId node) const { return lookup(nodes_, node); }

double State::slowdown(const Fabric& fabric, NodeId gpu) const {
  if (nodes_.empty()) return 1;
  const NodeId host = fabric.host_of(gpu);
  return node(gpu).slowdown * (host.valid() && host != gpu ? node(host).slowdown : 1);
}

void State::set(LinkId link, Condition condition) {
  if (store(links_, link, condition)) ++version_;
}
void State::set(NodeId node, Condition condition) {
  if (store(nodes_, node, condition)) ++version_;
}

LiveView::LiveView(const Fabric& fabric, const State& state)
    : health(fabric.link_count(), Health::up), bytes_per_s(fabric.link_count()) {
  for (const LinkId link : fabric.links())
    bytes_per_s[link.index()] = fabric.rate(link).bytes_per_s();
  const auto apply = [&](LinkId link, const Condition& condition) {
    const std::size_t i = link.index();
    health[i] = std::max(health[i], condition.health);
    bytes_per_s[i] = health[i] == Health::down ? 0 : bytes_per_s[i] * condition.rate_factor;
  };
  for (const auto& [link, condition] : state.troubled_links()) apply(link, condition);
  for (const auto& [node, condition] : state.troubled_nodes())
    for (const LinkId link : fabric.out(node)) {
      apply(link, condition);
      apply(reverse(link), condition);
    }
}

}  // namespace weft::model
