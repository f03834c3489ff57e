#include "serve/case_publisher.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "base/line_reader.hpp"
#include "model/formats/build_fabric.hpp"
#include "operate/triage/rules.hpp"
#include "serve/test_kit.hpp"

using namespace weft;
using namespace weft::serve;
namespace triage = operate::triage;

namespace {

constexpr std::int64_t s = 1'000'000'000;
constexpr std::int64_t ms = 1'000'000;

//  ctsw:0 .. ctsw:3
//   |  X  X  X  |
//  rtsw:0 .. rtsw:3
struct World {
  model::Fabric fabric = testing::small_zone();
  triage::Context settled{fabric, triage::default_rules()};
  ProvisionalSettings settings;
  triage::Context provisional{fabric, provisional_rules(triage::default_rules(), settings)};
  CasePublisher publisher{settled, provisional};
  std::uint64_t number = 0;
  std::int64_t now = 1'800'000'000 * s;

  void say(std::int64_t at, std::string_view entity, std::string_view kind,
           std::int64_t received_after = 0) {
    const std::string line =
        fmt::format(R"({{"id":"r{}","t":"{}","source":"syslog","entity":"{}","kind":"{}"}})",
                    number + 1, 1'800'000'000 * s + at, entity, kind);
    LineReader reader(line, "test");
    model::RecordCounts counts;
    const auto set = model::read_records(fabric, reader, counts);
    REQUIRE(set.has_value());
    model::Record row = set->rows.front();
    row.received.ns = row.t.ns + received_after;
    publisher.add(*set, row, ++number);
  }
  // Looks ten times a second until then.
  std::vector<CaseStatus> until(std::int64_t at) {
    std::vector<CaseStatus> out;
    for (; now < 1'800'000'000 * s + at; now += 100 * ms) {
      publisher.advance({now});
      for (CaseStatus& standing : publisher.changes()) out.push_back(std::move(standing));
    }
    return out;
  }
};

}  // namespace

TEST_CASE("a dead cable is a case within two seconds, and the same one for good") {
  World world;
  world.until(990 * ms);
  world.say(990 * ms, "rtsw:1->ctsw:2", "link_down");
  world.say(995 * ms, "ctsw:2->rtsw:1", "link_down");
  const auto early = world.until(2'900 * ms);
  REQUIRE(early.size() == 1);
  CHECK(early[0].state == CaseStatus::State::provisional);
  CHECK(model::root_name(world.fabric, early[0].body) == "rtsw:1--ctsw:2");
  CHECK(early[0].json.find(R"("standing":"provisional"})") != std::string::npos);
  CHECK(early[0].json.find(R"("record":"r1")") != std::string::npos);

  const auto later = world.until(60 * s);
  REQUIRE(later.size() == 1);
  CHECK(later[0].state == CaseStatus::State::open);
  CHECK(later[0].body.id == early[0].body.id);
  CHECK(later[0].body.members.size() == 2);

  world.say(61 * s, "rtsw:1->ctsw:2", "link_up");
  world.say(61 * s + ms, "ctsw:2->rtsw:1", "link_up");
  const auto end = world.until(4'000 * s);  // an hour of silence
  REQUIRE_FALSE(end.empty());
  CHECK(end.back().state == CaseStatus::State::closed);
  CHECK(end.back().body.id == early[0].body.id);
  for (const CaseStatus& standing : end) CHECK(standing.body.id == early[0].body.id);
}

TEST_CASE(
    "stamps of whole seconds and clocks that are off by little do not wait for the final case") {
  for (const std::int64_t behind : {0, 300, 700, 1'500, 5'000}) {
    CAPTURE(behind);
    World world;
    world.until(9'990 * ms);
    world.say((9'990 - behind) * ms, "rtsw:1->ctsw:2", "link_down", behind * ms);
    world.say((9'995 - behind) * ms, "ctsw:2->rtsw:1", "link_down", behind * ms);
    const auto early = world.until(11'900 * ms);
    REQUIRE(early.size() == 1);
    CHECK(early[0].state == CaseStatus::State::provisional);
    CHECK(model::root_name(world.fabric, early[0].body) == "rtsw:1--ctsw:2");
  }
}

TEST_CASE("what looked like several faults ends in the case that explains them") {
  World world;
  // The switch dies slowly: its cables go down a second and a half apart.
  for (int rack = 0; rack < 4; ++rack)
    world.say(std::int64_t{10 + 15 * rack} * 100 * ms, fmt::format("rtsw:{}->ctsw:2", rack),
              "link_down");
  std::map<std::string, CaseStatus> last;
  for (CaseStatus& standing : world.until(120 * s)) last[standing.body.id] = std::move(standing);
  std::size_t open = 0;
  for (const auto& [id, standing] : last) {
    CAPTURE(standing.json);
    if (standing.state == CaseStatus::State::open) {
      ++open;
      CHECK(standing.body.members.size() == 4);
      CHECK(model::root_name(world.fabric, standing.body) == "ctsw:2");
    } else {
      CHECK(standing.state == CaseStatus::State::superseded);
      CHECK(last.at(standing.into).state == CaseStatus::State::open);
    }
  }
  CHECK(open == 1);
}

TEST_CASE("what comes to nothing is withdrawn, once") {
  World world;
  world.say(1 * s, "rtsw:1->ctsw:2", "probe_loss");
  world.say(2 * s, "rtsw:1->ctsw:2", "probe_loss");
  std::vector<CaseStatus::State> states;
  for (const CaseStatus& standing : world.until(300 * s)) {
    states.push_back(standing.state);
  }
  CHECK(states == std::vector{CaseStatus::State::provisional, CaseStatus::State::withdrawn});
}

TEST_CASE("what was said in an earlier life is no change") {
  World before;
  before.say(1 * s, "rtsw:1->ctsw:2", "link_down");
  const auto first = before.until(50 * s);
  World after;
  for (const CaseStatus& standing : first)
    REQUIRE(after.publisher.restore(standing.body.id, standing.json) == standing.state);
  after.say(1 * s, "rtsw:1->ctsw:2", "link_down");
  std::size_t provisional = 0;
  for (const CaseStatus& standing : after.until(50 * s)) {
    // The provisional case is said again on the way; what it ends as is not.
    CHECK(standing.body.id == first[0].body.id);
    ++provisional;
  }
  CHECK(provisional <= 2);
}

TEST_CASE("what is recalled and not said again ends as withdrawn, with all that it said") {
  World world;
  const std::string open =
      R"({"id":"c","confidence":0.900,"members":[{"record":"r \"1\""}],"standing":"open"})";
  CHECK(world.publisher.restore("c", open) == CaseStatus::State::open);
  const auto ends = world.publisher.withdraw_stale();
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].json ==
        R"({"id":"c","confidence":0.9,"members":[{"record":"r \"1\""}],"standing":"withdrawn"})");
}

TEST_CASE("a document without a standing is none of a case") {
  World world;
  for (const char* text : {"", "{}", R"({"standing":1})", R"({"standing":"opne"})",
                           R"({"note":",\"standing\":\"open\""})"})
    CHECK_FALSE(world.publisher.restore("c", text).has_value());
}

TEST_CASE(
    "a case that turns out to be two: one keeps the name, the other says what it comes from") {
  World world;
  const auto down = [&](std::int64_t at, const char* end) { world.say(at, end, "link_down"); };
  // Half of a rack switch's uplinks, and both of its hosts.
  world.until(990 * ms);
  down(990 * ms, "rtsw:1->ctsw:0");
  down(991 * ms, "rtsw:1->ctsw:1");
  down(992 * ms, "rtsw:1/0");
  down(993 * ms, "rtsw:1/1");
  const auto first = world.until(100 * s);
  REQUIRE_FALSE(first.empty());
  const CaseStatus& whole = first.back();
  CHECK(whole.state == CaseStatus::State::open);
  CHECK(model::root_name(world.fabric, whole.body) == "rtsw:1");
  CHECK(whole.body.members.size() == 4);

  for (int i = 0; i < 3; ++i) world.say((101 + i) * s, "rtsw:1->ctsw:0", "rx_power");
  const auto after = world.until(160 * s);
  std::map<std::string, CaseStatus> last;
  for (const CaseStatus& standing : after) last[standing.body.id] = standing;
  REQUIRE(last.size() == 4);
  std::map<std::string, std::string> roots;
  for (const auto& [id, standing] : last) {
    CHECK(standing.state == CaseStatus::State::open);
    CHECK(standing.into.empty());
    CHECK(standing.body.split_from == (id == whole.body.id ? "" : whole.body.id));
    const bool says_so = standing.json.find(fmt::format(R"("split_from":"{}","standing":"open"}})",
                                                        whole.body.id)) != std::string::npos;
    CHECK(says_so == (id != whole.body.id));
    roots[model::root_name(world.fabric, standing.body)] = id;
  }
  CHECK(roots.size() == 4);
  CHECK(roots["rtsw:1--ctsw:0"] == whole.body.id);
  CHECK(roots.contains("rtsw:1--ctsw:1"));

  // The parts end each on its own: what recovers after an hour, the rest after four.
  world.say(170 * s, "rtsw:1->ctsw:1", "link_up");
  const auto end = world.until(16'000 * s);
  std::map<std::string, CaseStatus::State> ended;
  for (const CaseStatus& standing : end) ended[standing.body.id] = standing.state;
  REQUIRE(ended.size() == 4);
  for (const auto& [id, state] : ended) CHECK(state == CaseStatus::State::closed);
}

TEST_CASE("what comes to nothing is withdrawn though another case is open for hours") {
  World world;
  world.say(1 * s, "rtsw:0->ctsw:0", "link_down");
  world.until(60 * s);
  world.say(61 * s, "rtsw:1->ctsw:2", "probe_loss");
  world.say(62 * s, "rtsw:1->ctsw:2", "probe_loss");
  std::vector<CaseStatus::State> states;
  for (const CaseStatus& standing : world.until(300 * s)) states.push_back(standing.state);
  CHECK(states == std::vector{CaseStatus::State::provisional, CaseStatus::State::withdrawn});
  CHECK(world.publisher.open_count() == 1);
}

TEST_CASE("looks that find nothing new describe nothing") {
  World world;
  world.say(1 * s, "rtsw:1->ctsw:2", "link_down");
  world.until(60 * s);
  const std::uint64_t before = world.publisher.work().cases;
  CHECK(before > 0);
  CHECK(before < 10);
  world.until(1'000 * s);
  CHECK(world.publisher.work().cases == before);
  world.say(1'001 * s, "rtsw:1->ctsw:2", "interface_down");
  world.until(1'100 * s);
  CHECK(world.publisher.work().cases > before);
  CHECK(world.publisher.work().cases <= before + 4);
}
