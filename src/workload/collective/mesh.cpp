#include "workload/collective/mesh.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

namespace weft::workload {
namespace {

// For 8 places seven rings use each of the 56 directed cables once. For 4 and 6 there is no such
// set (Tillson 1980): these use each twice.
constexpr std::array<std::string_view, 6> rings_of_4{"0123", "0132", "0213",
                                                     "0231", "0312", "0321"};
constexpr std::array<std::string_view, 10> rings_of_6{"012453", "015342", "024135", "025143",
                                                      "031254", "035214", "042315", "045132",
                                                      "052341", "054321"};
constexpr std::array<std::string_view, 7> rings_of_8{"01736452", "02651347", "03275461", "04235716",
                                                     "05637214", "06743125", "07624153"};

using Rings = std::vector<std::vector<std::uint32_t>>;

Rings listed(std::span<const std::string_view> texts) {
  Rings out;
  for (const std::string_view text : texts) {
    auto& ring = out.emplace_back();
    for (const char place : text) ring.push_back(static_cast<std::uint32_t>(place - '0'));
  }
  return out;
}

// Of a prime number of places: by steps of 1, 2, ...
Rings by_steps(std::uint32_t members) {
  Rings out;
  for (std::uint32_t step = 1; step < members; ++step) {
    auto& ring = out.emplace_back();
    for (std::uint32_t i = 0; i < members; ++i) ring.push_back(i * step % members);
  }
  return out;
}

}  // namespace

bool is_mesh(const model::Fabric& fabric, std::span<const model::NodeId> gpus) {
  const auto has_cable = [&](model::NodeId a, model::NodeId b) {
    return std::ranges::any_of(fabric.out(a),
                               [&](model::LinkId link) { return fabric.to(link) == b; });
  };
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (std::size_t j = i + 1; j < gpus.size(); ++j)
      if (!has_cable(gpus[i], gpus[j])) return false;
  return gpus.size() > 1;
}

std::vector<std::vector<std::uint32_t>> mesh_rings(std::uint32_t members) {
  switch (members) {
    case 3:
    case 5:
    case 7:
      return by_steps(members);
    case 4:
      return listed(rings_of_4);
    case 6:
      return listed(rings_of_6);
    case 8:
      return listed(rings_of_8);
    default: {
      Rings one(1, std::vector<std::uint32_t>(members));
      std::iota(one.front().begin(), one.front().end(), 0u);
      return one;
    }
  }
}

std::vector<Rank> order_in_host(const Layout& layout, std::uint32_t host, std::uint32_t channel) {
  const auto members = layout.members(host);
  if (!layout.is_mesh(host)) return {members.begin(), members.end()};
  const auto rings = mesh_rings(static_cast<std::uint32_t>(members.size()));
  const std::uint32_t turn = layout.host_count() == 1 ? channel : channel / layout.lane_count_max();
  std::vector<Rank> out;
  for (const std::uint32_t place : rings[turn % rings.size()]) out.push_back(members[place]);
  return out;
}

}  // namespace weft::workload
