#include "workload/collective/system.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "base/test_approx.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::workload {
namespace {

using model::testing::make_fabric;

// Two racks of one host with 8 GPUs and 8 NICs, one spine.
model::Fabric small_zone(const std::string& more) {
  return make_fabric(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 8, spines: 2" + more + "}");
}

TEST_CASE("every preset is found and complete") {
  for (const std::string& name : system_names()) {
    CAPTURE(name);
    const auto system = system_by_name(name);
    REQUIRE(system.has_value());
    CHECK(system->name == name);
    CHECK(system->link.ring > 0);
    CHECK(system->nic_rate.bps > 0);
    CHECK(system->nic_efficiency > 0.8);
    CHECK(system->nic_efficiency < 1);
    CHECK(system->network_latency.ps > 0);
  }
  const auto typo = system_by_name("h10");
  REQUIRE_FALSE(typo.has_value());
  CHECK(typo.error().text().find("h100") != std::string::npos);
}

TEST_CASE("generations: only NVLink 4 and later reduce in the switch") {
  CHECK(system_by_name("a100")->link.nvls == 0);
  CHECK(system_by_name("h100")->link.nvls > 0);
  CHECK(system_by_name("b200")->link.ring > system_by_name("h100")->link.ring);
}

TEST_CASE("a system from a fabric") {
  const auto fabric = small_zone(", link: 400 Gbps");
  const auto gpus = fabric.gpus();
  const auto system = system_of(fabric, gpus, Transport::roce);
  if (!system) FAIL(system.error().text());
  CHECK(system->nic_rate == 400_Gbps);
  CHECK(system->transport == Transport::roce);
  CHECK(system->link.ring == system_by_name("h100")->link.ring);
  const GroupShape shape = shape_of(fabric, gpus).value();
  CHECK(shape.ranks == 16);
  CHECK(shape.hosts == 2);
  CHECK(shape.gpus_per_host == 8);
  CHECK(shape.nics_per_host == fabric.nics_of(fabric.hosts()[0]).size());
  CHECK(network_bytes_per_s(*system, shape) ==
        approx(50e9 * system->nic_efficiency * shape.nics_per_host));
}

TEST_CASE("groups that the model does not cover") {
  const auto fabric = small_zone("");
  const auto gpus = fabric.gpus();
  CHECK_FALSE(shape_of(fabric, gpus.first(1)));
  CHECK_FALSE(shape_of(fabric, {}));
  CHECK(shape_of(fabric, gpus.first(8)).value().hosts == 1);
}

TEST_CASE("a shape has the fullest host's ranks, and the NICs beside them") {
  const auto fabric = small_zone("");
  const auto gpus = fabric.gpus();
  const GroupShape uneven = shape_of(fabric, gpus.first(11)).value();
  CHECK(uneven.ranks == 11);
  CHECK(uneven.hosts == 2);
  CHECK(uneven.gpus_per_host == 8);
  CHECK(check(uneven).has_value());
  const std::vector<NodeId> one_each{gpus[0], gpus[8]};
  const GroupShape rail = shape_of(fabric, one_each).value();
  CHECK(rail.gpus_per_host == 1);
  CHECK(rail.nics_per_host == 1);
}

TEST_CASE("shapes are checked") {
  CHECK(check(GroupShape{}).has_value());
  CHECK_FALSE(check({.ranks = 0, .hosts = 0}).has_value());
  CHECK_FALSE(check({.ranks = 8, .hosts = 2, .gpus_per_host = 8}).has_value());
  CHECK_FALSE(check({.ranks = 16, .hosts = 2, .gpus_per_host = 8, .nics_per_host = 0}).has_value());
  // 2^32 places must not wrap round to the ranks.
  CHECK_FALSE(check({.ranks = 2, .hosts = 65537, .gpus_per_host = 65538}).has_value());
}

}  // namespace
}  // namespace weft::workload
