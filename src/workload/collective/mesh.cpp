#include "workload/collective/mesh.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "base/check.hpp"

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

// Empty where rings are not listed.
std::span<const std::string_view> listed(std::uint32_t members) {
  if (members == 4) return rings_of_4;
  if (members == 6) return rings_of_6;
  if (members == 8) return rings_of_8;
  return {};
}

// By steps of 1, 2, ...: each is a ring of its own where the number of places is prime.
bool is_by_steps(std::uint32_t members) { return members == 3 || members == 5 || members == 7; }

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

std::uint32_t mesh_ring_count(std::uint32_t members) {
  if (is_by_steps(members)) return members - 1;
  return std::max(static_cast<std::uint32_t>(listed(members).size()), 1u);
}

std::vector<std::uint32_t> mesh_ring(std::uint32_t members, std::uint32_t number) {
  WEFT_CHECK(number < mesh_ring_count(members));
  std::vector<std::uint32_t> out;
  if (const auto rings = listed(members); !rings.empty()) {
    for (const char place : rings[number]) out.push_back(static_cast<std::uint32_t>(place - '0'));
    return out;
  }
  for (std::uint32_t i = 0; i < members; ++i) out.push_back(i * (number + 1) % members);
  return out;
}

std::vector<Rank> order_in_host(const Layout& layout, std::uint32_t host, std::uint32_t channel) {
  const auto members = layout.members(host);
  if (!layout.is_mesh(host)) return {members.begin(), members.end()};
  const auto count = static_cast<std::uint32_t>(members.size());
  const std::uint32_t turn = layout.host_count() == 1 ? channel : channel / layout.lane_count_max();
  std::vector<Rank> out;
  for (const std::uint32_t place : mesh_ring(count, turn % mesh_ring_count(count)))
    out.push_back(members[place]);
  return out;
}

}  // namespace weft::workload
