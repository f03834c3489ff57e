#include "app/store/fabric_mark.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "adapt/sim/memory_store.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::app {
namespace {

model::Fabric zone(int racks, int spines = 2) {
  return model::testing::make_fabric(
      fmt::format("{{generator: ai_zone, racks: {}, hosts_per_rack: 1, gpus_per_host: 1, "
                  "spines: {}}}",
                  racks, spines));
}

Status check(port::Store& store, const model::Fabric& fabric, const std::string& name = "",
             IfChanged if_changed = IfChanged::refuse) {
  return check_fabric(store, mark_of(fabric, name), if_changed, {7});
}

std::vector<port::AuditEntry> audit(port::Store& store) { return *store.audit(0, "", 100); }

TEST_CASE("the mark names switches, hosts and cables, sorted") {
  const FabricMark mark = mark_of(zone(2, 1), "a");
  CHECK(std::ranges::is_sorted(mark.parts));
  CHECK(mark.parts == std::vector<std::string>{"ctsw:0", "host:0", "host:1", "nic:0--rtsw:0",
                                               "nic:1--rtsw:1", "rtsw:0", "rtsw:0--ctsw:0",
                                               "rtsw:1", "rtsw:1--ctsw:0"});
}

TEST_CASE("a store is that of its first fabric, and of what that grows to") {
  adapt::sim::MemoryStore store;
  REQUIRE(check(store, zone(2)).has_value());
  REQUIRE(check(store, zone(2)).has_value());
  CHECK(audit(store).empty());
  REQUIRE(check(store, zone(3)).has_value());
  REQUIRE(audit(store).size() == 1);
  CHECK(audit(store)[0].action == "fabric_grown");
  CHECK(audit(store)[0].detail ==
        R"({"name":"","parts":17,"gone":0,"added":5,"for_example":["host:2","nic:2--rtsw:2",)"
        R"("rtsw:2","rtsw:2--ctsw:0","rtsw:2--ctsw:1"]})");

  // What it was is no longer all that it is.
  const Status smaller = check(store, zone(2));
  REQUIRE_FALSE(smaller.has_value());
  CHECK(smaller.error().code == Errc::infeasible);
  CHECK(smaller.error().what ==
        "the store is that of another fabric: of 17 parts not in this one: 5 (host:2, "
        "nic:2--rtsw:2, rtsw:2, rtsw:2--ctsw:0, rtsw:2--ctsw:1); new in this one: none");
  CHECK(smaller.error().hint.find("weft store accept") != std::string::npos);
  CHECK(audit(store).size() == 1);
  REQUIRE(check(store, zone(2), "", IfChanged::accept).has_value());
  CHECK(audit(store)[1].action == "fabric_changed");
  REQUIRE(check(store, zone(2)).has_value());
}

TEST_CASE("another zone of the same shape is told by its name") {
  adapt::sim::MemoryStore store;
  REQUIRE(check(store, zone(2)).has_value());
  REQUIRE(check(store, zone(2), "zone-a").has_value());  // now it has one
  for (const char* other : {"zone-b", ""}) {
    const Status refused = check(store, zone(2), other);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().what.find("its name is \"zone-a\", this one has") != std::string::npos);
  }
  REQUIRE(check(store, zone(2), "zone-b", IfChanged::accept).has_value());
  CHECK(audit(store).back().detail.find(R"("name_was":"zone-a")") != std::string::npos);
}

}  // namespace
}  // namespace weft::app
