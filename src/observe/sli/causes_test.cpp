#include "observe/sli/causes.hpp"

#include "observe/sli/test_kit.hpp"

namespace weft::observe::sli {
namespace {

using testing::episode;
using testing::RowSpec;

const std::vector<std::string_view> up_0_down{"nic:0->rtsw:0", "rtsw:0->ctsw:0", "ctsw:0->rtsw:1",
                                              "rtsw:1->nic:2"};

// The ids of the episodes that explain the row.
std::string explained(const std::vector<model::Episode>& episodes, const RowSpec& spec) {
  const model::Fabric fabric = testing::small_zone();
  const Settings settings = default_settings();
  const Causes causes = testing::causes_of(fabric, settings, episodes);
  const model::EvidenceSet set = testing::rows_of(fabric, {spec});
  std::vector<EpisodeIndex> found;
  causes.explain(set.rows[0], set.path(set.rows[0]), found);
  std::string out;
  for (const EpisodeIndex i : found) out += causes.episode(i).id + " ";
  return out;
}

// Every kind of entity that a path can cross.
TEST_CASE("with a path: what stands on it") {
  const auto met = [](const std::string& entity) {
    return explained({episode("e", "loss", {entity}, 0, 10)}, {.minute = 5, .path = up_0_down}) ==
           "e ";
  };
  for (const char* entity : {"rtsw:0->ctsw:0", "rtsw:0--ctsw:0", "ctsw:0", "rtsw:1", "nic:0",
                             "nic:2", "host:0", "rack:0", "rack:1", "zone:0"}) {
    CAPTURE(entity);
    CHECK(met(entity));
  }
  for (const char* entity :
       {"ctsw:0->rtsw:0", "rtsw:0--ctsw:1", "ctsw:1", "rtsw:2", "nic:1", "host:1", "rack:2"}) {
    CAPTURE(entity);
    CHECK_FALSE(met(entity));
  }
}

TEST_CASE("without a path: what may stand on it") {
  const auto met = [](const std::string& entity, std::string_view src, std::string_view dst) {
    return explained({episode("e", "loss", {entity}, 0, 10)},
                     {.minute = 5, .src = src, .dst = dst}) == "e ";
  };
  CHECK(met("ctsw:0", "nic:0", "nic:2"));
  CHECK(met("rtsw:0", "nic:0", "nic:2"));
  CHECK(met("rtsw:0--ctsw:1", "nic:0", "nic:2"));
  CHECK(met("rtsw:0--ctsw:1", "nic:4", "nic:1"));
  CHECK(met("host:0", "nic:0", "nic:2"));
  CHECK(met("zone:0", "nic:0", "nic:1"));
  CHECK_FALSE(met("rtsw:2", "nic:0", "nic:2"));
  CHECK_FALSE(met("rtsw:2--ctsw:0", "nic:0", "nic:2"));
  CHECK_FALSE(met("host:1", "nic:0", "nic:2"));
  CHECK_FALSE(met("ctsw:0", "nic:0", "nic:1"));  // a spine is not between ends of one rack
  CHECK(met("rtsw:0", "nic:0", "nic:1"));
}

// The episode is [10 min, 20 min); the slack is one minute.
TEST_CASE("time with slack") {
  const auto at = [](std::int64_t minute) {
    return explained({episode("e", "loss", {"ctsw:0"}, 10, 20)},
                     {.minute = minute, .path = up_0_down});
  };
  CHECK(at(8).empty());
  CHECK(at(9) == "e ");
  CHECK(at(19) == "e ");
  CHECK(at(20) == "e ");
  CHECK(at(21).empty());
}

TEST_CASE("open, long and short episodes, in order of their start") {
  model::Episode open = episode("open", "loss", {"ctsw:0"}, 3, 4);
  open.end = model::still_open;
  const std::vector<model::Episode> all{episode("short", "loss", {"ctsw:0"}, 100'000, 100'001),
                                        episode("long", "loss", {"ctsw:0"}, 0, 200'000), open};
  CHECK(explained(all, {.minute = 100'000, .path = up_0_down}) == "long open short ");
  CHECK(explained(all, {.minute = 90'000, .path = up_0_down}) == "long open ");
  CHECK(explained(all, {.minute = 300'000, .path = up_0_down}) == "open ");
}

TEST_CASE("an episode of no length has a moment") {
  CHECK(explained({episode("e", "flap", {"ctsw:0"}, 5, 5)}, {.minute = 5, .path = up_0_down}) ==
        "e ");
}

TEST_CASE("planned by kind, or by an attribute that says so") {
  const model::Fabric fabric = testing::small_zone();
  const Settings settings = default_settings();
  auto urgent = episode("c", "drain", {"ctsw:0"}, 2, 3);
  urgent.attrs = {{"planned", "false"}};
  auto reboot = episode("d", "reboot", {"ctsw:0"}, 3, 4);
  reboot.attrs = {{"planned", "true"}};
  const Causes causes =
      testing::causes_of(fabric, settings,
                         {episode("a", "loss", {"ctsw:0"}, 0, 1),
                          episode("b", "drain", {"ctsw:0"}, 1, 2), urgent, reboot});
  CHECK_FALSE(causes.is_planned(0));
  CHECK(causes.is_planned(1));
  CHECK_FALSE(causes.is_planned(2));
  CHECK(causes.is_planned(3));
}

TEST_CASE("entities that the fabric does not know are refused, all at once") {
  const model::Fabric fabric = testing::small_zone();
  const Settings settings = default_settings();
  const auto causes = Causes::create(
      fabric, {episode("x", "loss", {"ctsw:7", "ctsw:0", "spine:1->rtsw:0"}, 0, 1)}, settings);
  REQUIRE_FALSE(causes.has_value());
  const std::string text = causes.error().text();
  CHECK(text.find("episode \"x\"") != std::string::npos);
  CHECK(text.find("\"ctsw:7\"") != std::string::npos);
  CHECK(text.find("\"spine:1->rtsw:0\"") != std::string::npos);
  CHECK(text.find("\"ctsw:0\"") == std::string::npos);
}

}  // namespace
}  // namespace weft::observe::sli
