// Drains on a real lab, as a service does them. Skipped, with the reason, where there can be none.
#include "adapt/lab/actuator.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>

#include "adapt/lab/device_state.hpp"
#include "adapt/lab/drain.hpp"
#include "adapt/lab/fault.hpp"
#include "adapt/lab/flow_check.hpp"
#include "adapt/lab/lab_test_kit.hpp"
#include "adapt/lab/sessions.hpp"

namespace weft::adapt::lab {
namespace {

using namespace std::chrono_literals;
using port::Service;
using Clock = std::chrono::steady_clock;

// A lab, its actuator, and what a service asks of it.
struct Scene {
  explicit Scene(std::string_view what, Routing routing = Routing::frr,
                 std::string_view yaml = testing::two_by_two)
      : name(testing::lab_name(what)),
        down_after(name),
        lab(testing::bring_up_and_open(name, routing, yaml)),
        actuator(*LabActuator::create(name)) {}

  Status act(port::ActionKind kind, const std::string& entity) {
    return actuator.act({.id = "a", .kind = kind, .entity = entity, .case_id = "c"});
  }
  void drain(const std::string& entity) {
    const Status done = act(port::ActionKind::drain, entity);
    CHECK_MESSAGE(done.has_value(), (done ? "" : done.error().text()));
  }
  void undrain(const std::string& entity) {
    const Status done = act(port::ActionKind::undrain, entity);
    CHECK_MESSAGE(done.has_value(), (done ? "" : done.error().text()));
  }
  Service state(const std::string& entity) {
    const auto found = actuator.state(entity);
    REQUIRE_MESSAGE(found.has_value(), (found ? "" : found.error().text()));
    return *found;
  }
  port::Check check(const std::string& entity) {
    const auto found = actuator.check(entity);
    REQUIRE_MESSAGE(found.has_value(), (found ? "" : found.error().text()));
    return *found;
  }
  std::string fault(std::string_view kind, std::string_view target,
                    const std::vector<FaultOption>& options = {}) {
    const auto spec = parse_fault(kind, target, options);
    REQUIRE_MESSAGE(spec.has_value(), (spec ? "" : spec.error().text()));
    const auto record = inject_fault(lab, *spec);
    REQUIRE_MESSAGE(record.has_value(), (record ? "" : record.error().text()));
    return record->id;
  }
  void heal(const std::string& id) {
    const auto healed = heal_faults(lab, id);
    CHECK_MESSAGE(healed.has_value(), (healed ? "" : healed.error().text()));
  }
  void await(const std::string& entity, Service wanted) {
    const auto deadline = Clock::now() + 60s;
    while (state(entity) != wanted && Clock::now() < deadline) std::this_thread::sleep_for(50ms);
    CHECK(state(entity) == wanted);
  }

  std::string name;
  testing::DownAfter down_after;
  Lab lab;
  LabActuator actuator;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

TEST_CASE("sessions are read as bgpd tells them") {
  const auto found = parse_sessions(R"x({"peers": {
    "10.128.0.1": {"state": "Established"}, "10.128.0.3": {"state": "Idle (Admin)"},
    "10.128.0.5": {"state": "Active"}, "eth0": {"state": "Active"}}})x");
  REQUIRE(found.has_value());
  CHECK(found->size() == 3);
  CHECK(found->at(0x0A800001) == Session::established);
  CHECK(found->at(0x0A800003) == Session::shut);
  CHECK(found->at(0x0A800005) == Session::down);
  CHECK(parse_sessions("{}")->empty());
  CHECK(!parse_sessions("{\"peers\": {\"1.2.3.4\": {}}}").has_value());
  CHECK(!parse_sessions("% no such command").has_value());
}

TEST_CASE("a service drains, sees it so, checks the cable, and puts it back" *
          doctest::test_suite("needs frr")) {
  if (!testing::can_run(Routing::frr)) return;
  Scene scene("a");
  for (const std::string entity : {"rtsw:0--ctsw:0", "ctsw:1"}) {
    CAPTURE(entity);
    const std::uint64_t cables = entity == "ctsw:1" ? 2 : 1;
    CHECK(scene.state(entity) == Service::in_service);
    const auto start = Clock::now();
    scene.drain(entity);
    CHECK(seconds_since(start) < 4);
    CHECK(scene.state(entity) == Service::drained);
    scene.drain(entity);  // again: nothing to do
    CHECK(scene.state(entity) == Service::drained);
    const port::Check check = scene.check(entity);
    CHECK(check.sent == cables * 2'000);
    CHECK(check.lost == 0);
    scene.undrain(entity);
    scene.undrain(entity);
    CHECK(scene.state(entity) == Service::in_service);
  }
  CHECK(scene.act(port::ActionKind::drain, "ctsw:9").error().code == Errc::unknown);
  CHECK(scene.act(port::ActionKind::drain, "rtsw:0").error().code == Errc::infeasible);
  CHECK(scene.actuator.state("nobody").error().code == Errc::unknown);
  CHECK(scene.check("nic:0--rtsw:0").lost == 0);
}

TEST_CASE("what is drained shows whether it is healed" * doctest::test_suite("needs frr")) {
  if (!testing::can_run(Routing::frr)) return;
  Scene scene("b");
  const std::string cable = "rtsw:1--ctsw:1";
  const std::string loss = scene.fault("link_lossy", "ctsw:1->rtsw:1", {{"rate", "5%"}});
  scene.drain(cable);
  const port::Check bad = scene.check(cable);
  CHECK(bad.lost > 10);
  CHECK(bad.lost < 120);
  scene.heal(loss);
  CHECK(scene.check(cable).lost == 0);

  const std::string down = scene.fault("link_down", cable);
  CHECK(scene.check(cable).lost == 2'000);
  CHECK(scene.state(cable) == Service::drained);
  scene.heal(down);
  // The kernel takes a moment to use a carrier that has come back.
  port::Check well = scene.check(cable);
  for (int i = 0; i < 3 && well.lost > 0; ++i) well = scene.check(cable);
  CHECK(well.lost == 0);
  scene.undrain(cable);
  CHECK(scene.state(cable) == Service::in_service);
}

TEST_CASE("a bad hash bucket shows on the flows that it eats, and on no others" *
          doctest::test_suite("needs frr")) {
  if (!testing::can_run(Routing::frr)) return;
  Scene scene("f");
  const std::string cable = "rtsw:1--ctsw:1";
  std::vector<port::Flow> flows;
  for (std::uint16_t i = 0; i < 256; ++i)
    flows.push_back({.link = "ctsw:1->rtsw:1",
                     .src = "nic:0",
                     .dst = "nic:1",
                     .sport = static_cast<std::uint16_t>(49'152 + i),
                     .traffic_class = i % 2 == 0 ? "0" : "26"});
  const auto lost = [&](const std::vector<port::Flow>& some) {
    const auto found = check_flows(scene.lab.fabric, scene.lab.plan, some);
    REQUIRE_MESSAGE(found.has_value(), (found ? "" : found.error().text()));
    CHECK(found->sent == some.size() * 20);
    return found->lost;
  };
  CHECK(lost(flows) == 0);
  scene.fault("switch_lossy", "ctsw:1", {{"bucket", "3/64"}});
  const std::uint64_t eaten = lost(flows) / 20;
  CHECK(lost(flows) == eaten * 20);  // all packets of a flow or none
  CHECK(eaten >= 3);                 // of 256 flows 12 are expected
  CHECK(eaten <= 30);
  std::vector<port::Flow> dead;
  for (const port::Flow& flow : flows)
    if (dead.size() < 3 && lost({flow}) > 0) dead.push_back(flow);
  // The way up and the neighbour are well, on the same flows.
  std::vector<port::Flow> up = dead, other = dead;
  for (port::Flow& flow : up) flow.link = "rtsw:1->ctsw:1";
  for (port::Flow& flow : other) flow.link = "ctsw:0->rtsw:1";
  CHECK(lost(up) == 0);
  CHECK(lost(other) == 0);
  // A service that knows the flows meets them, in service and drained, beside what its own packets
  // meet.
  const std::uint64_t own = scene.check(cable).lost;
  CHECK(scene.actuator.check_flows(cable, dead)->lost == own + 60);
  scene.drain(cable);
  const port::Check with = *scene.actuator.check_flows(cable, dead);
  CHECK(with.sent == 2'060);
  CHECK(with.lost == own + 60);
  CHECK(scene.actuator.check_flows("rtsw:1--ctsw:0", dead)->sent == 2'000);
  CHECK(scene.actuator.check_flows(cable, {})->sent == 2'000);
}

TEST_CASE("a dead link is drained at once, with another fault about" *
          doctest::test_suite("needs frr")) {
  if (!testing::can_run(Routing::frr)) return;
  Scene scene("c", Routing::frr,
              "{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, spines: 3}");
  scene.fault("link_down", "rtsw:0--ctsw:0");
  const std::string other = scene.fault("link_down", "rtsw:1--ctsw:1");
  std::this_thread::sleep_for(300ms);
  const auto start = Clock::now();
  scene.drain("rtsw:1--ctsw:1");
  CHECK(seconds_since(start) < 2.5);
  CHECK(scene.state("rtsw:1--ctsw:1") == Service::drained);
  CHECK(scene.state("rtsw:0--ctsw:0") == Service::in_service);  // broken, and nobody drained it
  // The last way is not given up.
  const Status last = scene.act(port::ActionKind::drain, "ctsw:2");
  REQUIRE(!last.has_value());
  CHECK(last.error().code == Errc::infeasible);
  scene.heal(other);
  scene.undrain("rtsw:1--ctsw:1");
  scene.await("rtsw:1--ctsw:1", Service::in_service);
}

TEST_CASE("a switch that died is drained by its neighbours, and stays so when it comes back" *
          doctest::test_suite("needs frr")) {
  if (!testing::can_run(Routing::frr)) return;
  Scene scene("d");
  const std::string down = scene.fault("switch_down", "ctsw:1");
  std::this_thread::sleep_for(500ms);
  const auto start = Clock::now();
  scene.drain("ctsw:1");
  CHECK(seconds_since(start) < 2.5);
  CHECK(scene.state("ctsw:1") == Service::drained);
  CHECK(scene.check("ctsw:1").lost == 4'000);
  CHECK(!scene.act(port::ActionKind::undrain, "ctsw:1").has_value());  // its daemon is dead
  scene.heal(down);
  std::this_thread::sleep_for(1'500ms);
  CHECK(scene.state("ctsw:1") == Service::drained);
  CHECK(scene.check("ctsw:1").lost == 0);
  testing::Stream stream(scene.lab, "host:0", "host:1");
  std::jthread sender([&] { stream.send_for(30s); });
  std::this_thread::sleep_for(100ms);
  scene.undrain("ctsw:1");
  std::this_thread::sleep_for(200ms);
  stream.stop();
  sender.join();
  CHECK(stream.received() == stream.sent());
  CHECK(scene.state("ctsw:1") == Service::in_service);
}

TEST_CASE("a lab with static routes is drained and seen too" *
          doctest::test_suite("needs namespaces")) {
  if (!testing::can_run(Routing::static_routes)) return;
  Scene scene("e", Routing::static_routes);
  CHECK(scene.state("ctsw:0") == Service::in_service);
  scene.drain("ctsw:0");
  CHECK(scene.state("ctsw:0") == Service::drained);
  CHECK(scene.check("ctsw:0").lost == 0);
  scene.undrain("ctsw:0");
  CHECK(scene.state("ctsw:0") == Service::in_service);
}

const port::StatePiece& piece(const std::vector<port::StatePiece>& all, std::string_view name) {
  for (const port::StatePiece& one : all)
    if (one.name == name) return one;
  FAIL("no piece " << name);
  return all.front();
}

TEST_CASE("devices tell their state, also with a daemon that hangs" *
          doctest::test_suite("needs frr")) {
  if (!testing::can_run(Routing::frr)) return;
  Scene scene("g");
  auto device = LabDeviceState::create(scene.name);
  REQUIRE(device.has_value());
  const auto all = device->collect("ctsw:0", 1s, 1 << 20);
  REQUIRE(all.has_value());
  for (const port::StatePiece& one : *all) {
    CAPTURE(one.name);
    CHECK(one.error == "");
    CHECK(!one.text.empty());
    CHECK(!one.is_cut);
  }
  CHECK(piece(*all, "bgp_summary").text.find("Established") != std::string::npos);
  CHECK(piece(*all, "bgpd_config").text.find("router bgp") != std::string::npos);
  CHECK(piece(*all, "interfaces").text.find("ctsw:0->rtsw:1") != std::string::npos);
  CHECK(piece(*all, "routes").text.find("10.0.0.1/32") != std::string::npos);
  CHECK(piece(*all, "log").text.find("ADJCHANGE") != std::string::npos);
  const auto host = device->collect("host:1", 1s, 1 << 20);
  REQUIRE(host.has_value());
  CHECK(piece(*host, "routes").text.find("0.0.0.0/0") != std::string::npos);
  CHECK(device->collect("ctsw:7", 1s, 1 << 20).error().code == Errc::unknown);

  const auto few = device->collect("ctsw:0", 1s, 100);
  REQUIRE(few.has_value());
  for (const port::StatePiece& one : *few) CHECK(one.text.size() <= 100);
  CHECK(piece(*few, "log").is_cut);

  const std::string hang = scene.fault("daemon_hang", "ctsw:0");
  // More than its queue of callers holds.
  for (int i = 0; i < 12; ++i) {
    const auto start = Clock::now();
    const auto hung = device->collect("ctsw:0", 100ms, 1 << 20);
    CHECK(seconds_since(start) < 0.6);
    REQUIRE(hung.has_value());
    CHECK(piece(*hung, "bgp_summary").error != "");
    CHECK(piece(*hung, "zebra_routes").error == "");
    CHECK(piece(*hung, "routes").error == "");
  }
  scene.heal(hang);
}

}  // namespace
}  // namespace weft::adapt::lab
