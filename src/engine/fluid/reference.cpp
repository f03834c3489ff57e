#include "engine/fluid/reference.hpp"

#include <algorithm>

namespace weft::engine::fluid {

std::vector<double> reference_rates(std::span<const double> capacity,
                                    std::span<const std::vector<Hop>> entities) {
  std::vector<double> rate(entities.size(), unlimited);
  std::vector<bool> frozen(entities.size(), false);
  for (std::size_t e = 0; e < entities.size(); ++e) frozen[e] = entities[e].empty();
  for (;;) {
    std::vector<double> left(capacity.begin(), capacity.end());
    std::vector<double> weight(capacity.size(), 0);
    for (std::size_t e = 0; e < entities.size(); ++e)
      for (const Hop& hop : entities[e]) {
        if (frozen[e]) {
          left[hop.link.index()] -= hop.share * rate[e];
        } else {
          weight[hop.link.index()] += hop.share;
        }
      }
    double share = unlimited;
    for (std::size_t r = 0; r < capacity.size(); ++r)
      if (weight[r] > 0) share = std::min(share, std::max(left[r], 0.0) / weight[r]);
    if (share == unlimited) return rate;
    for (std::size_t e = 0; e < entities.size(); ++e) {
      if (frozen[e]) continue;
      frozen[e] = std::ranges::any_of(entities[e], [&](const Hop& hop) {
        const std::size_t r = hop.link.index();
        return std::max(left[r], 0.0) / weight[r] <= share * (1 + 1e-13);
      });
      if (frozen[e]) rate[e] = share;
    }
  }
}

}  // namespace weft::engine::fluid
