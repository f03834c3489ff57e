#include "model/fabric/flow_set.hpp"

#include <fmt/format.h>

namespace weft::model {

std::uint32_t FlowSet::add_via(std::span<const NodeId> list) {
  if (list.empty()) return none;
  via.insert(via.end(), list.begin(), list.end());
  via_ends.push_back(static_cast<std::uint32_t>(via.size()));
  return static_cast<std::uint32_t>(via_ends.size() - 1);
}

// Every flow waits for at most one other, so following `after` finds each circle once.
std::uint32_t find_circle(const FlowSet& set) {
  std::vector<std::uint32_t> walk(set.flows.size(), 0);  // number of the walk that came by; 0: none
  for (std::uint32_t i = 0; i < set.flows.size(); ++i) {
    std::uint32_t at = i;
    while (at != FlowSet::none && walk[at] == 0) {
      walk[at] = i + 1;
      at = set.flows[at].after;
    }
    if (at != FlowSet::none && walk[at] == i + 1) return at;
  }
  return FlowSet::none;
}

std::string circle_text(const FlowSet& set, std::uint32_t start) {
  constexpr std::size_t shown = 10;
  std::string names = set.ids[start];
  std::size_t count = 1;
  for (std::uint32_t at = set.flows[start].after; at != start; at = set.flows[at].after)
    if (++count <= shown) names += " after " + set.ids[at];
  names += " after " + (count > shown ? "..." : set.ids[start]);
  return fmt::format("{} flows wait for each other in a cycle: {}", count, names);
}

}  // namespace weft::model
