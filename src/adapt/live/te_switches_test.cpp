// What agents report becomes news and installed marks; what the controller wants becomes orders.
#include "adapt/live/te_switches.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/formats/test_fabric.hpp"
#include "operate/te/controller.hpp"

namespace weft::adapt::live {
namespace {

namespace te = operate::te;
using port::RouteMark;

class HandClock final : public port::Clock {
 public:
  port::Instant now() override { return {ns}; }
  Timestamp wall() override { return {ns}; }
  std::int64_t ns = ns_per_s;
};

//  ctsw:0  ctsw:1      every rack switch to both
//  rtsw:0 .. rtsw:2    one host of two NICs each
class Zone {
 public:
  explicit Zone(
      std::string_view yaml =
          "{generator: ai_zone, racks: 3, hosts_per_rack: 1, gpus_per_host: 2, spines: 2}")
      : fabric(model::testing::make_fabric(yaml)) {
    std::map<model::NodeId, std::uint32_t> addresses;
    for (const model::NodeId nic : fabric.nics()) addresses[nic] = fabric.address(nic);
    switches =
        std::make_unique<TeSwitches>(TeSwitches::Parts{.fabric = fabric,
                                                       .zone = route::find_zone(fabric).value(),
                                                       .addresses = std::move(addresses),
                                                       .epoch = "e1",
                                                       .clock = clock,
                                                       .lease_ns = 3 * ns_per_s,
                                                       .wake = [this] { ++wakes; }});
    const route::Zone zone = route::find_zone(fabric).value();
    for (const model::LinkId up : zone.up)
      for (const model::LinkId link : {up, model::reverse(up)}) {
        te::SwitchReport& report = reports[fabric.name(fabric.from(link))];
        report.agent = "a";
        report.ports.push_back({fabric.name(link), true, true});
      }
  }
  model::LinkId link(const std::string& name) const { return fabric.find_link({name, {}}).value(); }
  model::CableId cable(const std::string& name) const {
    return fabric.find_cable({name, {}}).value();
  }
  // A request for orders that may be held for a second; what is answered goes to `orders`.
  void ask(const std::string& name, te::OrderPlace done = {},
           std::optional<std::vector<te::SwitchMark>> marks = {}) {
    te::SwitchReport report = reports[name];
    report.serial = ++serial;
    report.done = std::move(done);
    report.marks = std::move(marks);
    orders.erase(name);
    switches->report(name, te::to_json(report), ns_per_s, [this, name](Result<std::string> text) {
      REQUIRE_MESSAGE(text.has_value(), (text ? "" : text.error().text()));
      if (*text != "{}") orders[name] = te::parse_orders(*text, name).value();
    });
  }
  // News alone.
  void tell(const std::string& name) {
    te::SwitchReport report = reports[name];
    report.serial = ++serial;
    switches->report(name, te::to_json(report), 0,
                     [](const Result<std::string>& text) { CHECK(text.value() == "{}"); });
  }
  void set_port(const std::string& name, const std::string& port, bool carrier) {
    for (auto& one : reports[name].ports)
      if (one.link == port) one.carrier = carrier;
  }
  // All agents, with nothing installed.
  void all_ready() {
    for (const auto& [name, report] : reports) {
      ask(name);
      REQUIRE(orders.at(name).wants_marks);
      ask(name, orders.at(name).place, std::vector<te::SwitchMark>());
    }
  }
  RouteMark mark(const std::string& uplink, std::uint16_t port = 50'000) const {
    return {fabric.nics()[0], fabric.nics()[2], port, link(uplink)};
  }

  model::Fabric fabric;
  HandClock clock;
  std::unique_ptr<TeSwitches> switches;
  std::map<std::string, te::SwitchReport> reports;
  std::map<std::string, te::SwitchOrders> orders;
  std::uint64_t serial = 0;
  int wakes = 0;
};

TEST_CASE(
    "te switches: what is installed is adopted, what is strange goes, the rest is the difference") {
  Zone z;
  const std::uint32_t a = z.fabric.address(z.fabric.nics()[0]);
  const std::uint32_t b = z.fabric.address(z.fabric.nics()[2]);
  for (const auto& [name, report] : z.reports) z.ask(name);
  CHECK_FALSE(z.switches->all_known());
  REQUIRE(z.orders.at("rtsw:0").wants_marks);
  z.ask("rtsw:0", z.orders.at("rtsw:0").place,
        std::vector<te::SwitchMark>{{a, b, 50'000, "rtsw:0->ctsw:0"}, {9, b, 7, "rtsw:0->ctsw:1"}});
  for (const char* name : {"rtsw:1", "rtsw:2", "ctsw:0", "ctsw:1"})
    z.ask(name, z.orders.at(name).place, std::vector<te::SwitchMark>());
  CHECK(z.switches->all_known());
  CHECK_FALSE(z.orders.contains("rtsw:0"));  // held: no controller yet
  CHECK(z.switches->installed().value() == std::vector{z.mark("rtsw:0->ctsw:0")});
  REQUIRE(z.switches->apply(std::vector{z.mark("rtsw:0->ctsw:1")}));
  const te::SwitchOrders first = z.orders.at("rtsw:0");
  CHECK(first.changes ==
        std::vector<te::SwitchMark>{{9, b, 7, ""}, {a, b, 50'000, "rtsw:0->ctsw:1"}});
  CHECK_FALSE(z.orders.contains("rtsw:1"));
  CHECK_FALSE(z.switches->settled(z.switches->applied()));
  // The answer was lost, or refused by nftables: the same again.
  z.ask("rtsw:0", {"e1", 0});
  REQUIRE(z.orders.contains("rtsw:0"));
  CHECK(z.orders.at("rtsw:0").changes == first.changes);
  CHECK(z.orders.at("rtsw:0").place.version > first.place.version);
  z.clock.ns += 5'000'000;
  z.ask("rtsw:0", z.orders.at("rtsw:0").place);
  CHECK_FALSE(z.orders.contains("rtsw:0"));
  CHECK(z.switches->settled(z.switches->applied()) == port::Instant{z.clock.ns});
  // Renewals answer all; a request whose time is over is answered without one.
  REQUIRE(z.switches->renew());
  CHECK(z.orders.size() == 5);
  CHECK(z.orders.at("rtsw:0").renewals == 1);
  CHECK(z.orders.at("rtsw:0").changes.empty());
  z.ask("rtsw:0", z.orders.at("rtsw:0").place);
  CHECK(z.switches->answer_late() == port::Instant{z.clock.ns + ns_per_s});
  z.clock.ns += ns_per_s;
  CHECK_FALSE(z.switches->answer_late());
  CHECK(z.orders.at("rtsw:0").renewals == 1);
  // An agent that was started again, or has orders of another service, is asked.
  z.reports["rtsw:0"].agent = "b";
  z.ask("rtsw:0", z.orders.at("rtsw:0").place);
  CHECK(z.orders.at("rtsw:0").wants_marks);
  z.ask("rtsw:1", {"e0", 3});
  CHECK(z.orders.at("rtsw:1").wants_marks);
  // Gone with a mark removed.
  z.ask("rtsw:0", z.orders.at("rtsw:0").place,
        std::vector<te::SwitchMark>{{a, b, 50'000, "rtsw:0->ctsw:1"}});
  RouteMark none = z.mark("rtsw:0->ctsw:1");
  none.uplink = {};
  REQUIRE(z.switches->apply(std::vector{none}));
  CHECK(z.orders.at("rtsw:0").changes == std::vector<te::SwitchMark>{{a, b, 50'000, ""}});
  CHECK_FALSE(z.switches->apply(std::vector{z.mark("rtsw:1->ctsw:0")}));
  z.switches->close();
}

TEST_CASE("te switches: a cable needs both of its ends, a rack's also a next hop") {
  Zone z;
  z.all_ready();
  static_cast<void>(z.switches->news());
  z.wakes = 0;
  const model::CableId cable = z.cable("rtsw:1--ctsw:0");
  z.set_port("rtsw:1", "rtsw:1->ctsw:0", false);
  z.set_port("ctsw:0", "ctsw:0->rtsw:1", false);
  z.tell("ctsw:0");
  CHECK(z.wakes == 1);
  z.tell("rtsw:1");
  auto news = z.switches->news();
  REQUIRE(news.size() == 1);
  CHECK(news[0].cable == cable);
  CHECK_FALSE(news[0].is_up);
  CHECK(z.switches->cables_down() == std::vector<std::string>{"rtsw:1--ctsw:0"});
  z.set_port("ctsw:0", "ctsw:0->rtsw:1", true);
  z.tell("ctsw:0");
  CHECK(z.switches->news().empty());
  for (auto& port : z.reports["rtsw:1"].ports)
    port = {port.link, true, port.link != "rtsw:1->ctsw:0"};
  z.tell("rtsw:1");
  CHECK(z.switches->news().empty());
  CHECK(z.switches->switches()[3].without_hop == std::vector<std::string>{"rtsw:1->ctsw:0"});
  for (auto& port : z.reports["rtsw:1"].ports) port.next_hop = true;
  z.tell("rtsw:1");
  news = z.switches->news();
  REQUIRE(news.size() == 1);
  CHECK(news[0].is_up);
  // A report that was overtaken by a later one says nothing.
  te::SwitchReport old = z.reports["rtsw:1"];
  for (auto& port : old.ports) port.carrier = false;
  old.serial = 1;
  z.switches->report("rtsw:1", te::to_json(old), 0, [](const Result<std::string>&) {});
  CHECK(z.switches->news().empty());
  // Wrong names.
  const auto refused = [&](const std::string& name, const te::SwitchReport& report) {
    std::string why;
    z.switches->report(name, te::to_json(report), 0, [&](const Result<std::string>& text) {
      why = text ? "" : text.error().what;
    });
    return why;
  };
  CHECK(refused("host:0", old) == "\"host:0\" is not a switch of the zone");
  old.serial = 1'000;
  old.ports[0].link = "rtsw:0->ctsw:0";
  CHECK(refused("rtsw:1", old).starts_with("rtsw:1 has no cable \"rtsw:0->ctsw:0\""));
  z.switches->close();
}

TEST_CASE(
    "te switches: a cable has its routes when both ends say so, but for racks that are cut off") {
  Zone z;
  z.all_ready();
  static_cast<void>(z.switches->installed());
  const std::vector<model::CableId> cable{z.cable("rtsw:1--ctsw:0")};
  CHECK(z.switches->routed(cable).empty());  // nobody knows
  CHECK(z.orders.at("rtsw:1").watch == std::vector<std::string>{"rtsw:1->ctsw:0"});
  CHECK(z.orders.at("ctsw:0").watch == std::vector<std::string>{"ctsw:0->rtsw:1"});
  z.reports["ctsw:0"].routes = {{"ctsw:0->rtsw:1", {"rtsw:1"}}};
  z.reports["rtsw:1"].routes = {{"rtsw:1->ctsw:0", {"rtsw:0", "rtsw:2"}}};
  z.tell("ctsw:0");
  z.tell("rtsw:1");
  CHECK(z.switches->routed(cable).empty());
  z.reports["ctsw:0"].routes[0].missing.clear();
  z.reports["rtsw:1"].routes[0].missing = {"rtsw:2"};
  z.tell("ctsw:0");
  z.tell("rtsw:1");
  CHECK(z.switches->routed(cable).empty());
  // The spine has lost rtsw:2: nothing leads there over it.
  z.set_port("ctsw:0", "ctsw:0->rtsw:2", false);
  z.tell("ctsw:0");
  CHECK(z.switches->routed(cable) == cable);
  // Nor is a switch that is silent relied upon.
  z.clock.ns += 4 * ns_per_s;
  CHECK(z.switches->routed(cable).empty());
  CHECK(z.switches->switches()[3].is_silent);
  z.switches->close();
}

TEST_CASE("te switches: what is back in service drains until it has its routes") {
  Zone z;
  z.all_ready();
  static_cast<void>(z.switches->installed());
  model::State out;
  const model::LinkId up = z.link("rtsw:1->ctsw:0");
  out.set(up, {.health = model::Health::draining});
  z.switches->set_drained(out);
  CHECK(z.switches->drained().link(up).health == model::Health::draining);
  z.switches->set_drained({});
  CHECK(z.switches->drained().link(up).health == model::Health::draining);
  z.reports["ctsw:0"].routes = {{"ctsw:0->rtsw:1", {}}};
  z.reports["rtsw:1"].routes = {{"rtsw:1->ctsw:0", {}}};
  z.tell("ctsw:0");
  z.tell("rtsw:1");
  CHECK(z.switches->drained().healthy());
  z.switches->close();
}

// What the service adds to a cut, without the network and the switches.
TEST_CASE("te switches: figures of the page" * doctest::skip()) {
  Zone z("{generator: ai_zone, racks: 252, hosts_per_rack: 8, gpus_per_host: 2, spines: 16}");
  const auto nics = z.fabric.nics();
  std::vector<te::Flow> flows;
  for (std::uint32_t n = 0; n < nics.size(); ++n)
    for (std::uint32_t k = 1; k <= 4; ++k)
      flows.push_back({.src = nics[n],
                       .dst = nics[(n + 16 * (61 * k % 252)) % nics.size()],
                       .port = static_cast<std::uint16_t>(50'000 + k)});
  z.all_ready();
  auto controller =
      te::Controller::create(z.fabric, *z.switches, *z.switches, 1, te::LoopOptions{}).value();
  REQUIRE(controller.start(flows, Time{}));
  for (int i = 0; i < 2; ++i)
    for (const auto& [name, report] : z.reports)
      if (z.orders.contains(name)) z.ask(name, te::OrderPlace(z.orders.at(name).place));
  CHECK(z.orders.empty());  // all hold a request
  z.set_port("ctsw:3", "ctsw:3->rtsw:7", false);
  const auto begin = std::chrono::steady_clock::now();
  z.tell("ctsw:3");
  const auto event = controller.turn(Time{} + 1_us);
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  REQUIRE(event);
  MESSAGE(
      fmt::format("{} flows, {} switches: {:.1f} ms from a report to the answers of {}, {} marks",
                  flows.size(), z.reports.size(), ms, z.orders.size(), event->step.changes));
  z.switches->close();
}

}  // namespace
}  // namespace weft::adapt::live
