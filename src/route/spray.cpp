// Per-packet spray in the fluid limit: every switch divides what it forwards over all next hops.
#include "route/shortest_path_scheme.hpp"

namespace weft::route {
namespace {

class Spray : public ShortestPathScheme {
 public:
  using ShortestPathScheme::ShortestPathScheme;

  bool append_leg(const Stream&, NodeId from, NodeId to, std::vector<Hop>& out) override {
    const Goal goal = parts_.next_hops.goal(to);
    dag_.start(from);
    while (!dag_.done(goal))
      if (!dag_.step(goal, [&](LinkId link, double share) { out.push_back({link, share}); }))
        return false;
    return true;
  }
};

}  // namespace

Result<std::unique_ptr<Scheme>> make_spray(Parts& parts) { return std::make_unique<Spray>(parts); }

}  // namespace weft::route
