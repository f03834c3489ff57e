// The upper bound: each layer of the shortest paths is one pool of capacity.
#include <unordered_map>

#include "route/shortest_path_scheme.hpp"

namespace weft::route {
namespace {

// Every shortest path crosses exactly one link of each layer, so whatever a balancer does, all of
// the flow passes each layer, and no set of links carries more than its sum. Hence any rates that
// some division over shortest paths achieves fit the pools too: a bound from above, per allocation.
// It is not always reached: pools of different flows that overlap without being equal count the
// shared links twice, and a cut that is no layer of any flow is not seen.
//
// Between one first and one last switch the pools are looked up, so that flows of a rack pair share
// the work. Cost: O(layers) then, O(links of the paths) the first time.
class Optimal : public ShortestPathScheme {
 public:
  using ShortestPathScheme::ShortestPathScheme;

  bool append_leg(const Stream&, NodeId from, NodeId to, std::vector<Hop>& out) override {
    const Goal goal = parts_.next_hops.goal(to);
    dag_.start(from);
    while (!dag_.done(goal)) {
      const NodeId at = dag_.only_node();
      const NodeId last = parts_.next_hops.only_arrival(goal);
      if (at.valid() && parts_.next_hops.is_switch(at) && last.valid() && at != last) {
        if (!append_middle(at, last, out)) return false;
        dag_.start(last);
      } else if (!append_layer(goal, out)) {
        return false;
      }
    }
    return true;
  }

  void on_change(std::span<const LinkChange>) override { trim_middles(); }
  void trim() override {
    if (middles_.size() > middles_max) trim_middles();
  }

 private:
  struct Range {
    std::uint32_t first, count;
  };
  static constexpr std::size_t middles_max = 1u << 18;

  bool append_layer(const Goal& goal, std::vector<Hop>& out) {
    layer_.clear();
    if (!dag_.step(goal, [&](LinkId link, double) { layer_.push_back(link); })) return false;
    out.push_back({parts_.pools.resource_of(layer_), 1});
    return true;
  }

  // From switch to switch.
  bool append_middle(NodeId from, NodeId to, std::vector<Hop>& out) {
    const std::uint64_t key = std::uint64_t{from.value} << 32 | to.value;
    const auto known = middles_.find(key);
    if (known != middles_.end()) {
      const auto [first, count] = known->second;
      out.insert(out.end(), hops_.begin() + first, hops_.begin() + first + count);
      return true;
    }
    const std::size_t start = out.size();
    const Goal goal = parts_.next_hops.goal(to);
    while (!dag_.done(goal))
      if (!append_layer(goal, out)) return false;
    middles_[key] = {static_cast<std::uint32_t>(hops_.size()),
                     static_cast<std::uint32_t>(out.size() - start)};
    hops_.insert(hops_.end(), out.begin() + static_cast<std::ptrdiff_t>(start), out.end());
    return true;
  }

  void trim_middles() {
    middles_.clear();
    hops_.clear();
  }

  std::vector<LinkId> layer_;
  std::unordered_map<std::uint64_t, Range> middles_;  // never iterated
  std::vector<Hop> hops_;                             // of all middles
};

}  // namespace

Result<std::unique_ptr<Scheme>> make_optimal(Parts& parts) {
  return std::make_unique<Optimal>(parts);
}

}  // namespace weft::route
