#include "model/fabric/fault_catalogue.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"

namespace weft::model {
namespace {

TEST_CASE("every kind of the catalogue has a name of its own, a part, and an effect in words") {
  std::set<std::string_view> names;
  constexpr std::array<std::string_view, 8> parts{"link", "switch", "card", "nic",
                                                  "host", "gpu",    "rack", "zone"};
  for (const FaultEntry& entry : fault_catalogue()) {
    CAPTURE(entry.name);
    CHECK(names.insert(entry.name).second);
    CHECK(find_fault({entry.name, {}}) == entry.kind);
    CHECK_FALSE(entry.does.empty());
    for (const std::string_view on : split(entry.on, ' '))
      CHECK(std::ranges::find(parts, on) != parts.end());
    CHECK(entry.says.empty() == (entry.when.empty() || entry.when.starts_with("seen in")));
    CHECK((entry.per_month > 0) == !entry.source.empty());
    CHECK(((entry.makers & by_lab) != 0) == !entry.lab.empty());
    // One effect on State, for those that a scenario makes and no others.
    CHECK(((entry.makers & by_scenario) != 0) == (entry.effect != FaultEffect{}));
  }
}

TEST_CASE("a name that a kind had once leads to the one it has, another to the nearest") {
  const auto refusal = [](std::string_view name) { return find_fault({name, {}}).error().text(); };
  for (const auto& [old, now] : {std::pair{"loss", "link_lossy"},
                                 {"grey_loss", "link_lossy"},
                                 {"rate", "link_degraded"},
                                 {"flap", "port_flap"},
                                 {"host_nic", "nic_down"}}) {
    CAPTURE(old);
    CHECK(refusal(old).find(std::string("did you mean \"") + now) != std::string::npos);
  }
  CHECK(refusal("switch_dwon").find("did you mean \"switch_down\"") != std::string::npos);
  CHECK(refusal("zebra crossing").find("did you mean") == std::string::npos);
  // Only of what the asker can make.
  const std::vector<std::string> some{"optic", "zone"};
  CHECK(fault_hint("loss", some).empty());
}

TEST_CASE("a scenario makes the sixteen kinds that docs/scenario.md names") {
  const std::vector<std::string> names = fault_names(by_scenario);
  CHECK(std::set<std::string>(names.begin(), names.end()) ==
        std::set<std::string>{"link_down", "link_drain", "link_degraded", "link_lossy",
                              "switch_down", "switch_drain", "switch_degraded", "switch_lossy",
                              "nic_down", "nic_drain", "nic_degraded", "nic_lossy",
                              "nic_slow_receiver", "host_down", "host_slow", "gpu_slow"});
}

}  // namespace
}  // namespace weft::model
