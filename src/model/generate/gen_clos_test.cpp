// ai_zone, three_tier, rail_optimized, rail_only and multi_plane against closed forms.
#include <cmath>

#include "model/formats/test_fabric.hpp"

namespace weft::model {
namespace {

using namespace testing;

// All switches of a role have `ports` cables.
void check_radix_of(const Fabric& f, std::string_view role, std::size_t ports) {
  for (const NodeId n : f.role(f.find_role(role)).nodes) CHECK(f.out(n).size() == ports);
}

// ctsw:0  ctsw:1  ctsw:2      2 racks x 2 hosts x 2 GPUs
//    \  x   |  x   /
//    rtsw:0  rtsw:1
TEST_CASE("ai_zone: counts, radix and order") {
  const Fabric f =
      make_fabric("{generator: ai_zone, racks: 2, hosts_per_rack: 2, gpus_per_host: 2, spines: 3}");
  CHECK(count(f, "gpu") == 8);
  CHECK(count(f, "nic") == 8);
  CHECK(count(f, "fe_nic") == 4);
  CHECK(count(f, "rtsw") == 2);
  CHECK(count(f, "ctsw") == 3);
  CHECK(tier_size(f, "nic->rtsw") == 8);
  CHECK(tier_size(f, "rtsw->nic") == 8);
  CHECK(tier_size(f, "rtsw->ctsw") == 6);
  CHECK(tier_size(f, "ctsw->rtsw") == 6);
  check_radix_of(f, "rtsw", 4 + 3);
  check_radix_of(f, "ctsw", 2);
  for (std::uint32_t g = 0; g < 8; ++g) {
    const NodeId gpu = f.gpus()[g];
    CHECK(f.scopes()[f.enclosing(gpu, ScopeKind::rack)].index == g / 4);
    CHECK(f.scopes()[f.enclosing(gpu, ScopeKind::host)].index == g / 2);
    CHECK(f.rail(gpu) == static_cast<std::int16_t>(g % 2));
    CHECK(f.nic_of(gpu) == f.nics()[g]);
    // RTSW ports count the NICs of the rack from 0: what path pinning calls a destination slice.
    const LinkId up = f.out(f.nics()[g]).back();
    CHECK(f.role_name(f.to(up)) == "rtsw");
    CHECK(f.port(reverse(up)) == g % 4);
  }
  for (const NodeId fe : f.role(f.find_role("fe_nic")).nodes) CHECK(f.out(fe).size() == 1);
}

TEST_CASE("ai_zone: P-01 252 racks of 16 are 4,032 GPUs, P-03 uplink ratio") {
  const Fabric f = make_fabric("{generator: ai_zone, racks: 252}");
  CHECK(f.gpus().size() == 252 * 16);
  CHECK(count(f, "ctsw") == 18);
  const NodeId rtsw = node(f, "rtsw:17");
  CHECK(bps_towards(f, rtsw, "nic") == 16 * (400_Gbps).bps);
  CHECK(bps_towards(f, rtsw, "ctsw") == 18 * (400_Gbps).bps);
}

TEST_CASE("ai_zone: rates and latencies as given") {
  const Fabric f = make_fabric(
      "{generator: ai_zone, racks: 2, spines: 4, link: 200 Gbps, uplink: 800 Gbps,"
      " uplinks_per_spine: 2, latency: 0 s}");
  CHECK(tier_size(f, "rtsw->ctsw") == 2 * 4 * 2);
  for (const LinkId l : f.links()) {
    const std::string& tier = f.tiers()[f.tier_id(l)].name;
    if (!contains(tier, "rtsw")) continue;
    CHECK(f.latency(l).ps == 0);
    CHECK(f.rate(l) == (contains(tier, "ctsw") ? 800_Gbps : 200_Gbps));
  }
  const Fabric with_default = make_fabric("{generator: ai_zone, racks: 2}");
  CHECK(with_default.latency(link(with_default, "rtsw:0->ctsw:0")) == 500_ns);
}

TEST_CASE("ai_zone: oversubscription is exact to 1 bit/s") {
  for (const double ratio : {0.5, 1.0, 1.125, 2.0, 7.0, 3.7}) {
    const Fabric f = make_fabric("{generator: ai_zone, racks: 2, spines: 16, oversubscription: " +
                                 std::to_string(ratio) + "}");
    const Rate uplink = f.rate(link(f, "rtsw:1->ctsw:3"));
    CHECK(std::abs(16 * 400e9 / ratio - 16 * static_cast<double>(uplink.bps)) <= 16 * 0.5);
  }
}

TEST_CASE("ai_zone: the Clos of the SimGrid comparison") {
  const Fabric f = make_fabric(
      "{generator: ai_zone, racks: 128, hosts_per_rack: 4, spines: 64, uplink: 200 Gbps,"
      " latency: 0 s}");
  CHECK(f.nics().size() == 4096);
  CHECK(tier_size(f, "rtsw->ctsw") == 128 * 64);
  // Not oversubscribed: 32 x 400 Gbps down, 64 x 200 Gbps up.
  CHECK(bps_towards(f, node(f, "rtsw:5"), "nic") == bps_towards(f, node(f, "rtsw:5"), "ctsw"));
}

TEST_CASE("hosts with fewer or more NICs than GPUs") {
  const Fabric few =
      make_fabric("{generator: ai_zone, racks: 1, gpus_per_host: 8, nics_per_host: 2}");
  CHECK(few.nics().size() == 4);
  CHECK(tier_size(few, "nic->rtsw") == 4);
  std::vector<int> users(few.nics().size());
  for (const NodeId gpu : few.gpus()) {
    ++users[few.role_index(few.nic_of(gpu))];
    CHECK(few.rail(gpu) == few.rail(few.nic_of(gpu)));
  }
  CHECK(users == std::vector<int>{4, 4, 4, 4});
  const Fabric many =
      make_fabric("{generator: ai_zone, racks: 1, gpus_per_host: 2, nics_per_host: 4}");
  CHECK(many.nics().size() == 8);
  CHECK(many.nic_of(many.gpus()[0]) != many.nic_of(many.gpus()[1]));
}

//          atsw:0 atsw:1 (column 0)   atsw:2 atsw:3 (column 1)
//  pod 0:  ctsw:0 ctsw:1              pod 1: ctsw:2 ctsw:3
TEST_CASE("three_tier: columns of CTSWs") {
  const Fabric f = make_fabric(
      "{generator: three_tier, pods: 2, racks: 3, hosts_per_rack: 1, gpus_per_host: 2, atsws: 2}");
  CHECK(count(f, "gpu") == 2 * 3 * 2);
  CHECK(count(f, "rtsw") == 6);
  CHECK(count(f, "ctsw") == 2 * 2);  // as many per pod as GPUs per rack: 1:1
  CHECK(count(f, "atsw") == 2 * 2);
  CHECK(tier_size(f, "rtsw->ctsw") == 6 * 2);
  CHECK(tier_size(f, "ctsw->atsw") == 4 * 2);
  for (std::uint32_t c = 0; c < 4; ++c)
    for (std::uint32_t a = 0; a < 4; ++a) {
      const bool same_column = c % 2 == a / 2;
      const auto joined = f.links_between(node(f, "ctsw:" + std::to_string(c)),
                                          node(f, "atsw:" + std::to_string(a)));
      CHECK(joined.size() == (same_column ? 1 : 0));
    }
  CHECK(*f.find_node({"pod:1/rtsw:0", {}}) == node(f, "rtsw:3"));
  CHECK(f.links_between(node(f, "rtsw:3"), node(f, "ctsw:1")).empty());
}

TEST_CASE("three_tier: P-04 24,576 GPUs and P-05 28 ports up, 1:6.86") {
  const Fabric f = make_fabric("{generator: three_tier, pods: 8, racks: 192}");
  CHECK(f.gpus().size() == 24'576);
  CHECK(count(f, "ctsw") == 8 * 16);
  CHECK(count(f, "atsw") == 16 * 28);
  const NodeId ctsw = node(f, "ctsw:77");
  std::size_t up = 0;
  for (const LinkId l : f.out(ctsw)) up += f.role_name(f.to(l)) == "atsw" ? 1 : 0;
  CHECK(up == 28);
  const double ratio = static_cast<double>(bps_towards(f, ctsw, "rtsw")) /
                       static_cast<double>(bps_towards(f, ctsw, "atsw"));
  CHECK(std::round(ratio * 100) == 686);
  CHECK(make_fabric("{generator: three_tier, pods: 8, racks: 252}").gpus().size() == 32'256);
}

TEST_CASE("three_tier: the pod's oversubscription is exact to 1 bit/s a link") {
  const Fabric f = make_fabric("{generator: three_tier, pods: 8, racks: 192, oversubscription: 7}");
  const double down = 192 * 16 * 400e9;
  const double up = 16.0 * 28 * static_cast<double>(f.rate(link(f, "ctsw:3->atsw:84")).bps);
  CHECK(std::abs(down / 7 - up) <= 16 * 28 * 0.5);
  CHECK(f.rate(link(f, "rtsw:0->ctsw:0")) == 400_Gbps);
}

TEST_CASE("three_tier: a single pod needs no ATSW") {
  const Fabric f = make_fabric("{generator: three_tier, pods: 1, racks: 4}");
  CHECK(count(f, "atsw") == 0);
  CHECK(f.gpus().size() == 64);
}

TEST_CASE("rail_optimized: NIC r of a group's hosts on leaf r") {
  const Fabric f = make_fabric(
      "{generator: rail_optimized, groups: 3, hosts_per_group: 4, gpus_per_host: 2, spines: 5}");
  CHECK(count(f, "gpu") == 3 * 4 * 2);
  CHECK(count(f, "leaf") == 3 * 2);
  CHECK(tier_size(f, "nic->leaf") == 24);
  CHECK(tier_size(f, "leaf->spine") == 3 * 2 * 5);
  check_radix_of(f, "leaf", 4 + 5);
  check_radix_of(f, "spine", 6);
  for (const NodeId nic : f.nics()) {
    const NodeId leaf = f.to(f.out(nic).back());
    CHECK(f.rail(leaf) == f.rail(nic));
    CHECK(f.scope(leaf) == f.enclosing(nic, ScopeKind::rack));
  }
}

TEST_CASE("rail_optimized: a scalable unit is not oversubscribed by default") {
  const Fabric f = make_fabric("{generator: rail_optimized, groups: 4}");
  CHECK(f.gpus().size() == 4 * 32 * 8);
  check_radix_of(f, "leaf", 64);
}

TEST_CASE("rail_only: rails never meet outside the hosts") {
  const Fabric f = make_fabric("{generator: rail_only, hosts: 5, gpus_per_host: 4}");
  CHECK(count(f, "rail") == 4);
  CHECK(tier_size(f, "nic->rail") == 20);
  const auto hops = hops_from(f, f.nics()[0]);
  for (const NodeId nic : f.nics())
    CHECK(hops[nic.index()] == (nic == f.nics()[0] ? 0 : f.rail(nic) == 0 ? 2 : -1));
}

TEST_CASE("multi_plane: every plane is a Clos of its own") {
  const Fabric f = make_fabric(
      "{generator: multi_plane, planes: 4, racks: 3, hosts_per_rack: 2, gpus_per_host: 2,"
      " spines: 4, link: 800 Gbps}");
  CHECK(count(f, "gpu") == 12);
  CHECK(count(f, "leaf") == 4 * 3);
  CHECK(count(f, "spine") == 4 * 4);
  CHECK(tier_size(f, "nic->leaf") == 12 * 4);
  CHECK(tier_size(f, "leaf->spine") == 4 * 3 * 4);
  for (const LinkId l : find_tier(f, "leaf->spine")->links) {
    CHECK(f.plane(f.from(l)) == f.plane(f.to(l)));
    CHECK(f.rate(l) == 200_Gbps);
  }
  for (const NodeId nic : f.nics()) {
    std::vector<std::int16_t> planes;
    for (const LinkId l : f.out(nic))
      if (f.is_switch(f.to(l))) {
        planes.push_back(f.plane(f.to(l)));
        CHECK(f.rate(l) == 200_Gbps);
        CHECK(f.scope(f.to(l)) == f.enclosing(nic, ScopeKind::rack));
      }
    CHECK(planes == std::vector<std::int16_t>{0, 1, 2, 3});
  }
}

TEST_CASE("multi_plane: P-18 eight planes put more than 100,000 NICs on two tiers") {
  // A 51.2 Tbps switch as 512 ports of 100 Gbps: 256 down, 256 up, up to 512 leaves a plane.
  const Fabric f = make_fabric(
      "{generator: multi_plane, planes: 8, racks: 512, hosts_per_rack: 32, link: 800 Gbps,"
      " radix: 512}");
  CHECK(f.nics().size() == 512 * 512 / 2);
  CHECK(f.nics().size() > 100'000);
  check_radix_of(f, "leaf", 512);
  check_radix_of(f, "spine", 512);
}

}  // namespace
}  // namespace weft::model
