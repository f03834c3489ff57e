#include "route/path_age.hpp"

#include <algorithm>

#include "route/next_hops.hpp"

namespace weft::route {
struct PathAge::Views {
  struct View {
    View(const Fabric& fabric, const model::State& state)
        : live(with_state(fabric, state)), next_hops(fabric, live, Weighting::equal) {}
    static LiveLinks with_state(const Fabric& fabric, const model::State& state) {
      LiveLinks out(fabric);
      static_cast<void>(out.set_state(state));
      return out;
    }
    LiveLinks live;
    NextHops next_hops;
  };

  Views(const Fabric& of, const model::State& before, const model::State& after)
      : fabric(of), then(of, before), now(of, after) {}

  // From one end to the next; inside a host there is nothing to choose.
  bool holds(std::span<const LinkId> path) {
    const NodeId end = fabric.to(path.back());
    if (path.size() == 1 && !now.next_hops.is_switch(end) &&
        !now.next_hops.is_switch(fabric.from(path[0])))
      return holds_without_switch(path[0]);
    then.next_hops.trim();
    now.next_hops.trim();
    const Goal was = then.next_hops.goal(end), is = now.next_hops.goal(end);
    return std::ranges::all_of(path, [&](LinkId link) {
      const NodeId at = fabric.from(link);
      if (then.next_hops.reached(at, was) || now.next_hops.reached(at, is)) return false;  // a loop
      const auto before = then.next_hops.next(at, was).links;
      const auto after = now.next_hops.next(at, is).links;
      return std::ranges::equal(before, after) && std::ranges::find(after, link) != after.end();
    });
  }

  // Inside a host there is nothing to choose; between two NICs, whether to take the direct cable.
  bool holds_without_switch(LinkId link) const {
    const auto is_same = [&](LinkId out) { return then.live.health(out) == now.live.health(out); };
    return now.live.usable(link) &&
           (!fabric.on_wire(link) || (std::ranges::all_of(fabric.out(fabric.from(link)), is_same)));
  }

  const Fabric& fabric;
  View then, now;
};

PathAge::PathAge(const Fabric& fabric, const model::State& then, const model::State& now)
    : views_(std::make_unique<Views>(fabric, then, now)) {}
PathAge::PathAge(PathAge&&) noexcept = default;
PathAge& PathAge::operator=(PathAge&&) noexcept = default;
PathAge::~PathAge() = default;

bool PathAge::holds(std::span<const LinkId> path) {
  std::size_t first = 0;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const bool is_end =
        i + 1 == path.size() || !views_->now.next_hops.is_switch(views_->fabric.to(path[i]));
    if (!is_end) continue;
    if (!views_->holds(path.subspan(first, i + 1 - first))) return false;
    first = i + 1;
  }
  return true;
}

}  // namespace weft::route
