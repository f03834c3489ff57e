#include "operate/triage/report.hpp"

#include "base/json_line.hpp"
#include "operate/triage/diff.hpp"
#include "operate/triage/test_kit.hpp"

namespace weft::operate::triage {
namespace {

using testing::rules_with;
using testing::small_zone;
using testing::Story;

TEST_CASE("a case as JSON") {
  Story story(small_zone());
  story.link_down(100, 2, 1).link_up(200, 2, 1);
  const std::string line = story.json();
  const auto json = JsonLine::parse(line.substr(0, line.size() - 1), {});
  REQUIRE_MESSAGE(json.has_value(), line);
  Errors errors;
  CHECK(json->text("state", {}, errors) == "final");
  const auto cause = json->object("cause", errors);
  REQUIRE(cause.has_value());
  CHECK(cause->text("kind", {}, errors) == "cable");
  CHECK(cause->text("entity", {}, errors) == "rtsw:2--ctsw:1");
  CHECK(json->time("opened", {}, errors).ns == testing::at_ns(100));
  CHECK(json->text("id", {}, errors).size() == 12);
  CHECK(errors.empty());
  CHECK(line.find(R"({"record":"r2","relation":"session over"})") != std::string::npos);
  const std::string table = to_table(story.fabric(), story.cases());
  CHECK(table.find("rtsw:2--ctsw:1") != std::string::npos);
  CHECK(table.find("session over 2, end of link 4") == std::string::npos);
  CHECK(table.find("end of link 4, session over 2") != std::string::npos);
}

TEST_CASE("a changed rule shows as the cases that it changes") {
  const auto tell = [](Story story) {
    story.spine_dies(100, 1, 8).link_down(900, 3, 2);
    return story.cases();
  };
  const auto before = tell(Story(small_zone()));
  // A switch that costs too much is eight cables.
  const auto after = tell(Story(small_zone(), rules_with("causes: {switch: {price: 500}, "
                                                         "zone: {price: 500}, "
                                                         "switch_part: {price: 500}}")));
  const auto changes = diff(before, after);
  CHECK(diff(before, before).empty());
  REQUIRE(changes.size() == 8);
  CHECK(changes[0].kind == CaseChange::Kind::retraced);
  for (std::size_t i = 1; i < 8; ++i) CHECK(changes[i].kind == CaseChange::Kind::added);
  const auto fabric = small_zone();
  CHECK(diff_table(fabric, before, after, changes).find("2 cases before, 9 after, 8 changed") !=
        std::string::npos);
  CHECK(diff_json(fabric, before, after, changes).find(R"("change":"added","before":null)") !=
        std::string::npos);
}

}  // namespace
}  // namespace weft::operate::triage
