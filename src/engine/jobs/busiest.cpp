#include "engine/jobs/busiest.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/fabric/frontend.hpp"

namespace weft::engine {

std::optional<BusyInterval> busiest_interval(
    const Fabric& fabric, double width_s, std::size_t count,
    const std::function<std::vector<double>(std::size_t interval)>& bytes_of) {
  if (count == 0) return std::nullopt;
  std::vector<std::pair<model::LinkId, double>> cables;  // and what they can carry in an interval
  for (const model::LinkId link : fabric.links())
    if (fabric.on_wire(link) && !model::on_front_end(fabric, link))
      cables.emplace_back(link, fabric.rate(link).bytes_per_s() * width_s);
  std::optional<BusyInterval> out;
  std::pair<double, double> most;  // per cent of the fullest cable, bytes of all
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<double> bytes = bytes_of(i);
    std::pair<double, double> here;
    for (const auto& [link, capacity] : cables) {
      here.first = std::max(here.first, bytes[link.index()] / capacity);
      here.second += bytes[link.index()];
    }
    here.first = std::round(100 * here.first);
    if (here.second <= 0 || here <= most) continue;
    most = here;
    const double from_s = width_s * static_cast<double>(i);
    out = BusyInterval{from_s, from_s + width_s, std::move(bytes)};
  }
  return out;
}

}  // namespace weft::engine
