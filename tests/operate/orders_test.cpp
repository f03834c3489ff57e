// What the service does to the network is told by the network like anything else: it must not take
// it for a fault.
#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "controller_kit.hpp"

using namespace weft;
using namespace weft::controller_test;
using nlohmann::json;
using operate::repair::Order;
using operate::repair::OrderKind;

namespace {

// Carries orders out, and speaks as devices and probers do.
class Network {
 public:
  explicit Network(World& world) : world_(world) {}

  std::set<std::string> drained, bad;
  std::vector<Order> checks;
  bool refuses = false;
  std::map<std::string, int> drains;

  void say(std::int64_t after_ns, std::string_view source, std::string_view entity,
           std::string_view kind, std::string_view attrs = "") {
    lines_.emplace_back(
        world_.now + after_ns,
        fmt::format(
            R"({{"id":"n{}","t":"{}","source":"{}","entity":"{}","kind":"{}","attrs":{{{}}}}})",
            ++serial_, world_.now + after_ns, source, entity, kind, attrs));
  }
  // Both ends speak of the session that a drain shuts, a moment after the routes are gone.
  void shut(const std::string& cable) {
    const auto [a, b] = ends(cable);
    say(2 * second, "syslog", a + "->" + b, "bgp_down", R"("reason":"policy")");
    say(2 * second + 20'000'000, "syslog", b + "->" + a, "bgp_down", R"("reason":"reset")");
  }
  void open(const std::string& cable) {
    const auto [a, b] = ends(cable);
    say(3 * second, "syslog", a + "->" + b, "bgp_up");
    say(3 * second, "syslog", b + "->" + a, "bgp_up");
  }

  // So many seconds; `each` comes by once a second.
  void pass(Life& life, int seconds, const std::function<void()>& each = [] {}) {
    for (int tenth = 0; tenth < 10 * seconds; ++tenth) {
      if (tenth % 10 == 0) each();
      speak(life);
      auto orders = life.controller().tick({world_.now});
      REQUIRE(orders.has_value());
      for (const Order& order : *orders) perform(life, order);
      world_.now += second / 10;
    }
  }

 private:
  static std::pair<std::string, std::string> ends(const std::string& cable) {
    const std::size_t at = cable.find("--");
    return {cable.substr(0, at), cable.substr(at + 2)};
  }
  void speak(Life& life) {
    std::erase_if(lines_, [&](const auto& line) {
      if (line.first > world_.now) return false;
      REQUIRE(life.say({line.second}).has_value());
      return true;
    });
  }
  void perform(Life& life, const Order& order) {
    operate::repair::Outcome out{.order = order.id};
    if (order.kind == OrderKind::act) {
      const bool is_drain = order.action.kind == port::ActionKind::drain;
      if (refuses) {
        out.error = Error{Errc::infeasible, {}, "the automation says no", {}, {}};
      } else if (is_drain && drained.insert(order.entity).second) {
        ++drains[order.entity];
        shut(order.entity);
      } else if (!is_drain && drained.erase(order.entity) > 0) {
        open(order.entity);
      }
    } else if (order.kind == OrderKind::look) {
      out.service =
          drained.contains(order.entity) ? port::Service::drained : port::Service::in_service;
    } else if (order.kind == OrderKind::check) {
      checks.push_back(order);
      out.check = {2'000, bad.contains(order.entity) ? 4U : 0U};
    }
    life.controller().outcome(out, {world_.now});
  }

  World& world_;
  std::vector<std::pair<std::int64_t, std::string>> lines_;
  int serial_ = 0;
};

// Cause and root of the cases that are neither superseded nor withdrawn.
std::string believed(Life& life) {
  auto documents = life.store().documents("case", {timestamp_ns_max}, 1'000);
  REQUIRE(documents.has_value());
  std::set<std::string> out;
  for (const port::Document& d : *documents) {
    const json body = json::parse(d.body);
    const std::string standing = body["standing"];
    if (standing == "superseded" || standing == "withdrawn") continue;
    const json& cause = body["cause"];
    out.insert(
        fmt::format("{} {}", cause["kind"].get<std::string>(), cause["entity"].get<std::string>()));
  }
  return fmt::format("{}", fmt::join(out, "; "));
}
// Every cause that was ever published.
std::string ever(Life& life) {
  auto documents = life.store().documents("case", {timestamp_ns_max}, 1'000);
  REQUIRE(documents.has_value());
  std::set<std::string> out;
  for (const port::Document& d : *documents) out.insert(json::parse(d.body)["cause"]["kind"]);
  return fmt::format("{}", fmt::join(out, "; "));
}

constexpr std::string_view cable = "rtsw:1--ctsw:2";
constexpr std::string_view flow = "nic:5>nic:2 49155>0 0 ctsw:2->rtsw:1";

void lose(Network& network, std::string_view link = "ctsw:2->rtsw:1") {
  network.say(0, "probe", link, "probe_loss", fmt::format(R"("flows":"{}")", flow));
}

// Twelve reports of loss at most, within 20 s.
void lose_until_drained(Network& network, Life& life) {
  int reports = 0;
  network.pass(life, 20, [&] {
    if (network.drained.empty() && reports++ < 12) lose(network);
  });
}

}  // namespace

TEST_CASE("a grey cable is drained and returned, and the final case is the cable") {
  World world;
  Network network(world);
  network.bad.insert(std::string(cable));
  auto life = std::make_unique<Life>(world);
  lose_until_drained(network, *life);
  CHECK(network.drained.contains(std::string(cable)));
  SUBCASE("in one life") {}
  SUBCASE("and the service dies meanwhile") {
    life.reset();
    life = std::make_unique<Life>(world);
  }
  network.pass(*life, 100);
  CHECK(believed(*life) == "cable rtsw:1--ctsw:2");
  network.bad.clear();
  network.pass(*life, 300);
  CHECK(network.drained.empty());
  CHECK(network.drains[std::string(cable)] == 1);
  CHECK(believed(*life) == "cable rtsw:1--ctsw:2");
  CHECK(ever(*life) == "cable");
}

TEST_CASE("test traffic repeats the flows that were lost") {
  World world;
  Network network(world);
  network.bad.insert(std::string(cable));
  auto life = std::make_unique<Life>(world);
  lose_until_drained(network, *life);
  SUBCASE("in one life") {}
  SUBCASE("and the service dies meanwhile") {
    life.reset();
    life = std::make_unique<Life>(world);
  }
  network.bad.clear();
  network.pass(*life, 300);
  REQUIRE(network.checks.size() >= 3);
  for (const Order& check : network.checks) {
    REQUIRE(check.flows.size() == 1);
    CHECK(check.flows[0] == port::Flow{"ctsw:2->rtsw:1", "nic:5", "nic:2", 49155, 0, "0"});
  }
}

TEST_CASE("a cable that probers accuse and test traffic acquits is not drained") {
  World world;
  Network network(world);
  Life life(world);
  for (int minute = 0; minute < 30; ++minute) network.pass(life, 60, [&] { lose(network); });
  CHECK(network.drains.empty());
  CHECK(network.checks.size() >= 5);
  CHECK(network.checks.size() < 100);  // less and less often
  CHECK(believed(life) == "cable rtsw:1--ctsw:2");
}

TEST_CASE("a cable that fails whenever it is back is drained twice an hour at most") {
  World world;
  Network network(world);
  Life life(world);
  // It loses in the network, and never in a test once it is drained.
  std::map<int, int> by_hour;
  for (int minute = 0; minute < 300; ++minute) {
    const int before = network.drains[std::string(cable)];
    network.pass(life, 60, [&] {
      const bool is_in = network.drained.empty();
      if (is_in) lose(network);
      network.bad.clear();
      if (is_in) network.bad.insert(std::string(cable));
    });
    by_hour[minute / 60] += network.drains[std::string(cable)] - before;
  }
  for (const auto& [hour, drains] : by_hour) CHECK_MESSAGE(drains <= 2, "hour " << hour);
  CHECK(network.drains[std::string(cable)] >= 2);
  CHECK(network.drains[std::string(cable)] <= 4);
}

TEST_CASE("a drain that is refused explains nothing that comes later") {
  World world;
  Network network(world);
  network.refuses = true;
  network.bad.insert(std::string(cable));
  Life life(world);
  network.pass(life, 10, [&] { lose(network); });
  CHECK(network.drained.empty());
  // It is tried again every half minute, and refused every time; in between somebody closes the
  // sessions of another cable of that switch: nobody ordered that.
  network.refuses = true;
  network.pass(life, 15);
  network.shut("rtsw:3--ctsw:1");
  network.pass(life, 100);
  CHECK(believed(life) == "cable rtsw:1--ctsw:2; misconfiguration rtsw:3");
}

TEST_CASE("what is drained for long is known to a new life that reads back a few minutes only") {
  World world;
  world.settings.replay_ns = 600 * second;
  world.settings.events_ns = 1'200 * second;
  Network network(world);
  network.bad.insert(std::string(cable));
  auto life = std::make_unique<Life>(world);
  lose_until_drained(network, *life);
  REQUIRE(network.drained.contains(std::string(cable)));
  for (int minute = 0; minute < 280; ++minute) {
    network.say(0, "syslog", "rtsw:0", "info");
    network.pass(*life, 60);
  }
  // The events of the first hour are gone, though the cable is still out.
  const auto events = life->store().events(1, 1'000);
  REQUIRE(events.has_value());
  CHECK(events->front().received.ns > start_ns + 1'800 * second);
  life.reset();
  life = std::make_unique<Life>(world);
  network.shut(std::string(cable));  // somebody reloads the configuration of its switch
  network.pass(*life, 100);
  CHECK(ever(*life) == "cable");
}

TEST_CASE("an operator's own drain, told as a record, is nobody's fault either") {
  World world;
  Network network(world);
  Life life(world);
  network.say(0, "agent", "ctsw:1", "drain", R"("who":"ann","why":"new optics")");
  for (int rack = 0; rack < 4; ++rack) network.shut(fmt::format("rtsw:{}--ctsw:1", rack));
  network.pass(life, 100);
  CHECK(ever(life).empty());
  network.say(0, "agent", "ctsw:1", "undrain", R"("who":"ann")");
  network.pass(life, 100);
  network.shut("rtsw:0--ctsw:1");
  network.pass(life, 100);
  CHECK(believed(life) == "misconfiguration rtsw:0");
}
