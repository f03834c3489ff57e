#include "serve/board.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/line_reader.hpp"
#include "model/generate.hpp"
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
  triage::Ground patient{fabric, triage::default_rules()};
  EarlySettings settings;
  triage::Ground early{fabric, early_rules(triage::default_rules(), settings)};
  Board board{patient, early};
  std::uint64_t number = 0;
  std::int64_t now = 1'800'000'000 * s;

  void say(std::int64_t at, std::string_view entity, std::string_view kind) {
    const std::string line =
        fmt::format(R"({{"id":"r{}","t":"{}","source":"syslog","entity":"{}","kind":"{}"}})",
                    number + 1, 1'800'000'000 * s + at, entity, kind);
    LineReader reader(line, "test");
    model::RecordCounts counts;
    const auto set = model::read_records(fabric, reader, counts);
    REQUIRE(set.has_value());
    board.add(*set, set->rows.front(), ++number);
  }
  // Looks ten times a second until then.
  std::vector<Standing> until(std::int64_t at) {
    std::vector<Standing> out;
    for (; now < 1'800'000'000 * s + at; now += 100 * ms) {
      board.advance({now});
      for (Standing& standing : board.changes()) out.push_back(std::move(standing));
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
  CHECK(early[0].state == Standing::State::provisional);
  CHECK(model::root_name(world.fabric, early[0].body) == "rtsw:1--ctsw:2");
  CHECK(early[0].json.find(R"("standing":"provisional"})") != std::string::npos);
  CHECK(early[0].json.find(R"("record":"r1")") != std::string::npos);

  const auto later = world.until(60 * s);
  REQUIRE(later.size() == 1);
  CHECK(later[0].state == Standing::State::open);
  CHECK(later[0].body.id == early[0].body.id);
  CHECK(later[0].body.members.size() == 2);

  world.say(61 * s, "rtsw:1->ctsw:2", "link_up");
  world.say(61 * s + ms, "ctsw:2->rtsw:1", "link_up");
  const auto end = world.until(4'000 * s);  // an hour of silence
  REQUIRE_FALSE(end.empty());
  CHECK(end.back().state == Standing::State::closed);
  CHECK(end.back().body.id == early[0].body.id);
  for (const Standing& standing : end) CHECK(standing.body.id == early[0].body.id);
}

TEST_CASE("what looked like several faults ends in the case that explains them") {
  World world;
  // The switch dies slowly: its cables go down a second and a half apart.
  for (int rack = 0; rack < 4; ++rack)
    world.say((10 + 15 * rack) * 100 * ms, fmt::format("rtsw:{}->ctsw:2", rack), "link_down");
  std::map<std::string, Standing> last;
  for (Standing& standing : world.until(120 * s)) last[standing.body.id] = std::move(standing);
  std::size_t open = 0;
  for (const auto& [id, standing] : last) {
    CAPTURE(standing.json);
    if (standing.state == Standing::State::open) {
      ++open;
      CHECK(standing.body.members.size() == 4);
      CHECK(model::root_name(world.fabric, standing.body) == "ctsw:2");
    } else {
      CHECK(standing.state == Standing::State::superseded);
      CHECK(last.at(standing.into).state == Standing::State::open);
    }
  }
  CHECK(open == 1);
}

TEST_CASE("what comes to nothing is withdrawn, once") {
  World world;
  world.say(1 * s, "rtsw:1->ctsw:2", "probe_loss");
  world.say(2 * s, "rtsw:1->ctsw:2", "probe_loss");
  std::vector<Standing::State> states;
  for (const Standing& standing : world.until(300 * s)) {
    states.push_back(standing.state);
  }
  CHECK(states == std::vector{Standing::State::provisional, Standing::State::withdrawn});
}

TEST_CASE("what was said in an earlier life is no change") {
  World before;
  before.say(1 * s, "rtsw:1->ctsw:2", "link_down");
  const auto first = before.until(50 * s);
  World after;
  for (const Standing& standing : first)
    after.board.recall(standing.body.id, standing.state, standing.json);
  after.say(1 * s, "rtsw:1->ctsw:2", "link_down");
  std::size_t provisional = 0;
  for (const Standing& standing : after.until(50 * s)) {
    // The early case is said again on the way; what it ends as is not.
    CHECK(standing.body.id == first[0].body.id);
    ++provisional;
  }
  CHECK(provisional <= 2);
}
