// The controller of traffic engineering on a simulated network.
#include <doctest/doctest.h>

#include <algorithm>

#include "adapt/sim/test_te_stage.hpp"
#include "adapt/sim/world_faults.hpp"
#include "base/test_approx.hpp"
#include "route/hash.hpp"

namespace weft::adapt::sim {
namespace {

namespace te = operate::te;
using te::testing::Scene;
using te::testing::Story;
using testing::WorldStage;

TEST_CASE("te: cables cut, flapping, slow, back, and nobody left, to the microsecond") {
  const model::Fabric fabric = model::testing::make_fabric(te::testing::story_fabric);
  WorldStage stage(fabric);
  const std::vector<Scene> scenes = Story(fabric, stage).play();
  te::testing::check_story(
      fabric, scenes,
      {.notice_s = 1.2e-3, .mark_s = 2.3e-3, .bgp_s = 0.13, .lease_s = 3, .slack_s = 1e-6});
  // Bounds are reached: nothing is better than it can be.
  const Scene &cut = scenes[1], &nobody = scenes[5];
  CHECK(cut.mark_s == approx(2.3e-3));
  for (const bool leaves : {true, false}) {
    for (const std::size_t f : te::testing::flows_over(fabric, scenes[0], "rtsw:2--ctsw:1", leaves))
      CHECK(cut.dark_s[f] == approx(leaves ? 1.2e-3 : 2.3e-3));
    for (const std::size_t f : te::testing::flows_over(fabric, scenes[4], "rtsw:1--ctsw:0", leaves))
      CHECK((leaves ? nobody.dark_s[f] == approx(1.2e-3)
                    : nobody.dark_s[f] > 2 - 1e-6 && nobody.dark_s[f] <= 3));
  }
  // The same again: the same.
  WorldStage again(fabric);
  const std::vector<Scene> repeated = Story(fabric, again).play();
  for (std::size_t i = 0; i < scenes.size(); ++i) {
    CHECK(repeated[i].marks == scenes[i].marks);
    CHECK(repeated[i].dark_s == scenes[i].dark_s);
  }
}

TEST_CASE("te: a second controller finds the marks, and one that comes late makes them anew") {
  const model::Fabric fabric = model::testing::make_fabric(te::testing::story_fabric);
  WorldStage stage(fabric);
  const auto before = stage.marks();
  stage.stop_controller();
  stage.wait(1_s);
  REQUIRE(stage.world().te()->start_controller());
  CHECK(stage.events().back().is_first);
  CHECK(stage.events().back().step.changes == 0);
  stage.wait(10_s);
  CHECK(stage.marks() == before);
  // After the lease switches ignore marks; what was cut meanwhile is known to the next one.
  stage.stop_controller();
  stage.cut(fabric.find_cable({"rtsw:2--ctsw:1", {}}).value());
  stage.wait(4_s);
  CHECK(stage.marks().empty());
  CHECK(std::ranges::max(stage.dark_s()) <= 3);
  REQUIRE(stage.world().te()->start_controller());
  CHECK(stage.events().back().step.decision.hit == 6);
  stage.wait(1_s);
  CHECK(stage.marks().size() == 48);
  CHECK(std::ranges::max(stage.dark_s()) == 0);
}

TEST_CASE("te: a drain moves marks, and what has a marked flow's ports follows its mark") {
  const model::Fabric fabric = model::testing::make_fabric(te::testing::story_fabric);
  WorldStage stage(fabric);
  World& world = stage.world();
  const auto crossing = [&](std::string_view cable) {
    const Scene scene{.name = {}, .marks = stage.marks(), .dark_s = {}};
    return te::testing::flows_over(fabric, scene, cable, true).size() +
           te::testing::flows_over(fabric, scene, cable, false).size();
  };
  CHECK(crossing("rtsw:3--ctsw:2") == 6);
  REQUIRE(world.act({"1", port::ActionKind::drain, "rtsw:3--ctsw:2", "c"}));
  stage.wait(1_s);
  CHECK(crossing("rtsw:3--ctsw:2") == 0);
  CHECK(std::ranges::max(stage.dark_s()) == 0);
  REQUIRE(world.act({"2", port::ActionKind::undrain, "rtsw:3--ctsw:2", "c"}));
  stage.wait(1_s);
  CHECK(crossing("rtsw:3--ctsw:2") == 6);

  // A marked probe takes its mark's spine, whatever hashing says.
  const te::Flow flow = world.te()->flows()[7];
  const model::LinkId uplink = world.te()->uplink_of(flow.src, flow.dst, flow.port);
  REQUIRE(uplink.valid());
  const auto path = world.te()->path_of(flow.src, flow.dst, uplink);
  REQUIRE(path.size() == 4);
  CHECK(path[1] == uplink);
  CHECK(!world.te()->uplink_of(flow.src, flow.dst, 1).valid());
}

TEST_CASE("te: the loads of jobs are asked for with the marks that hold") {
  const model::Fabric fabric = model::testing::make_fabric(te::testing::story_fabric);
  std::vector<std::size_t> asked;
  WorldSettings settings;
  settings.loads = [&](const model::State&,
                       const std::vector<port::RouteMark>* marks) -> Result<std::vector<double>> {
    asked.push_back(marks == nullptr ? 999 : marks->size());
    return std::vector<double>(fabric.link_count(), 0.0);
  };
  WorldStage stage(fabric, settings);
  CHECK(asked == std::vector<std::size_t>{48});
  stage.stop_controller();
  stage.wait(4_s);
  CHECK(asked == std::vector<std::size_t>{48, 0});
}

}  // namespace
}  // namespace weft::adapt::sim
