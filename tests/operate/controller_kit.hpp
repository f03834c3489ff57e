// A controller on a store in a directory of its own, with a clock that the test turns.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "adapt/sqlite/store.hpp"
#include "base/config.hpp"
#include "base/test_folder.hpp"
#include "model/formats/test_fabric.hpp"
#include "operate/triage/rules.hpp"
#include "serve/controller.hpp"

namespace weft::controller_test {

inline constexpr std::int64_t second = 1'000'000'000;
inline constexpr std::int64_t start_ns = 1'800'000'000 * second;

//  ctsw:0 .. ctsw:3        every rack switch to every spine
//   |  X  X  X  |
//  rtsw:0 .. rtsw:3        two hosts each
inline model::Fabric small_zone() {
  return model::testing::make_fabric(
      "{generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 1, spines: 4}");
}

inline operate::repair::Policy policy_of(std::string_view text) {
  const auto config = parse_yaml(text, "policy");
  REQUIRE(config.has_value());
  const auto policy = operate::repair::read_policy(*config);
  REQUIRE_MESSAGE(policy.has_value(), (policy ? "" : policy.error().text()));
  return *policy;
}

// What lives longer than a service.
struct World {
  explicit World(const serve::ProvisionalSettings& how = {})
      : settings{.provisional = how, .probe_monitor = {}} {}

  TestFolder directory;
  model::Fabric fabric = small_zone();
  observe::telemetry::Inventory inventory{fabric};
  observe::telemetry::Catalogue catalogue = observe::telemetry::Catalogue::built_in();
  serve::ControllerSettings settings;
  operate::triage::Context settled{fabric, operate::triage::default_rules()};
  operate::triage::Context provisional{
      fabric, serve::provisional_rules(operate::triage::default_rules(), settings.provisional)};
  operate::repair::Policy policy = policy_of("{defaults: {soak: 5 s, forecast: none}}");
  std::int64_t now = start_ns;
};

// One life of a service. `wrap` may put something between the controller and its store.
class Life {
 public:
  using Wrap = std::function<std::unique_ptr<port::Store>(std::unique_ptr<port::Store>)>;

  explicit Life(World& world, const Wrap& wrap = {}) : world_(world) {
    auto store = adapt::sqlite::open_sqlite(world.directory.file("weft.db"));
    REQUIRE_MESSAGE(store.has_value(), (store ? "" : store.error().text()));
    store_ = wrap ? wrap(*std::move(store)) : *std::move(store);
    controller_ = std::make_unique<serve::Controller>(
        serve::Controller::Context{world.fabric, world.inventory, world.catalogue, world.settled,
                                   world.provisional},
        world.settings, world.policy, *store_);
    const Status restored = controller_->restore({world.now});
    REQUIRE_MESSAGE(restored.has_value(), (restored ? "" : restored.error().text()));
  }

  Result<serve::Receipt> say(const std::vector<std::string>& lines,
                             serve::Feed feed = serve::Feed::record) {
    const serve::Controller::Batch batch{feed, lines, "192.0.2.1"};
    auto receipts = controller_->accept({&batch, 1}, {world_.now});
    if (!receipts) return std::unexpected(receipts.error());
    return std::move(receipts->front());
  }
  static std::string record(std::string_view id, std::int64_t at_ns, std::string_view entity,
                            std::string_view kind) {
    return fmt::format(R"({{"id":"{}","t":"{}","source":"syslog","entity":"{}","kind":"{}"}})", id,
                       at_ns, entity, kind);
  }

  // Ten ticks a second for so long; what it orders.
  std::vector<operate::repair::Order> pass(std::int64_t ns) {
    std::vector<operate::repair::Order> out;
    for (const std::int64_t end = world_.now + ns; world_.now < end; world_.now += second / 10) {
      auto orders = controller_->tick({world_.now});
      if (!orders) continue;
      for (auto& order : *orders) out.push_back(std::move(order));
    }
    return out;
  }

  serve::Controller& controller() { return *controller_; }
  port::Store& store() { return *store_; }

 private:
  World& world_;
  std::unique_ptr<port::Store> store_;
  std::unique_ptr<serve::Controller> controller_;
};

}  // namespace weft::controller_test
