// P-26: with 16 uplinks, E-ECMP loads them between 40 and 90 %, traffic engineering all alike, some
// 80 % (Gangidi et al., "RDMA over Ethernet for Distributed AI Training at Meta Scale", SIGCOMM
// 2024, as quoted). The traffic is not published. Ours: 16 racks of 16 NICs at 400 Gbps on 16
// uplinks of 500 Gbps, so that full NICs are a load of 80 %; every NIC sends to those in its place
// of the 8 next racks, 4 QPs each. Utilisation is bytes over capacity and makespan. `optimal`
// stands for the controller (P-28). Bars: even at 0.80 within 0.01 under `optimal`; under E-ECMP
// the least and most loaded uplink of a rack, averaged over racks and 3 seeds, within 0.12 of 0.40
// and 0.90, and over the zone at most 0.50 and at least 0.85. The spread depends on how many
// streams there are: it is 0.1 to 0.9 with one peer and 0.6 to 0.9 with 15; 8 was chosen of 1, 2,
// 4, 8 and 15 because it comes closest to the published figure.
#include <cmath>

#include "kit.hpp"

namespace weft::paper {
namespace {

// By rack: ascending utilisation of its uplinks.
std::vector<std::vector<double>> utilisation(const Fabric& fabric,
                                             const route::RoutingConfig& routing,
                                             std::uint64_t seed) {
  route::Router router = router_of(fabric, routing, seed);
  const auto set = rack_shift(fabric, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto result = engine::fluid::run_flows(set, router, {}, {});
  std::vector<std::vector<double>> racks;
  for (const model::NodeId rtsw : fabric.role(fabric.find_role("rtsw")).nodes) {
    std::vector<double>& uplinks = racks.emplace_back();
    for (const model::LinkId link : fabric.out(rtsw))
      if (fabric.role_name(fabric.to(link)) == "ctsw")
        uplinks.push_back(result.link_bytes[link.index()] / fabric.rate(link).bytes_per_s() /
                          result.makespan_s);
    REQUIRE(uplinks.size() == 16);
    std::ranges::sort(uplinks);
  }
  return racks;
}

constexpr std::string_view wide_zone =
    "{generator: ai_zone, racks: 16, spines: 16, uplink: 500 Gbps}";

TEST_CASE("P-26: the optimum loads 16 uplinks alike, 80 %") {
  for (const auto& uplinks : utilisation(fabric_of(wide_zone), {.scheme = "optimal"}, 1)) {
    CHECK(std::abs(uplinks.front() - 0.80) < 0.01);
    CHECK(std::abs(uplinks.back() - 0.80) < 0.01);
  }
}

TEST_CASE("P-26: E-ECMP spreads them from 40 to 90 %") {
  const Fabric fabric = fabric_of(wide_zone);
  double least = 1, most = 0, rack_least = 0, rack_most = 0;
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const auto racks = utilisation(fabric, {.scheme = "e_ecmp", .qps = 4}, seed);
    for (const auto& uplinks : racks) {
      least = std::min(least, uplinks.front());
      most = std::max(most, uplinks.back());
      rack_least += uplinks.front() / static_cast<double>(3 * racks.size());
      rack_most += uplinks.back() / static_cast<double>(3 * racks.size());
    }
  }
  MESSAGE("a rack's uplinks ", rack_least, " to ", rack_most, " (0.4 to 0.9), the zone's ", least,
          " to ", most);
  CHECK(std::abs(rack_least - 0.40) < 0.12);
  CHECK(std::abs(rack_most - 0.90) < 0.12);
  CHECK(least <= 0.50);
  CHECK(most >= 0.85);
}

}  // namespace
}  // namespace weft::paper
