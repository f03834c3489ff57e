#include "cli/rehearse.hpp"

#include <algorithm>

#include "adapt/sim/memory_store.hpp"
#include "cli/rehearse_minutes.hpp"
#include "desk_kit.hpp"
#include "model/test_fabric.hpp"

using namespace weft;
using namespace weft::desk_test;
using adapt::sim::Break;
using adapt::sim::Operations;

namespace {

using model::testing::make_fabric;

cli::RehearseOptions options_of(std::string_view model, std::uint32_t days) {
  const auto config = parse_yaml(model, "model.yaml");
  REQUIRE(config.has_value());
  const auto read = cli::read_rehearse_model(*config);
  REQUIRE_MESSAGE(read.has_value(), read.error().text());
  return {.days = days, .seed = 3, .model = *read, .policy = operate::repair::default_policy()};
}

}  // namespace

TEST_CASE("minutes: half of a rack's uplinks, a tenth lost, for three minutes") {
  //  ctsw:0  ctsw:1
  //   |   X   |        5 % of what rack:0 sends or gets
  //  rtsw:0  rtsw:1
  const model::Fabric fabric =
      make_fabric("{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 2, spines: 2}");
  Operations net(fabric, {}, {start_ns});
  const auto part = model::find_entity(fabric, {"rtsw:0--ctsw:1", {}});
  const auto racks = std::vector{*model::find_entity(fabric, {"rtsw:0", {}}),
                                 *model::find_entity(fabric, {"rtsw:1", {}})};
  net.advance({start_ns + 60 * second});
  const auto fault = net.begin(Break::grey, *part, 0.1);
  net.advance({start_ns + 240 * second});
  net.end(fault);
  net.advance({start_ns + 600 * second});
  const cli::Minutes minutes(fabric, racks, net, {start_ns}, net.now());
  CHECK(minutes.count() == 20);
  const auto bad = minutes.bad(0.049);
  REQUIRE(bad.size() == 3);
  CHECK(std::ranges::all_of(bad, [](const auto& b) { return b.is_across && b.fault == 0; }));
  CHECK(minutes.bad(0.051).empty());
}

TEST_CASE("a rehearsal finds its faults, and is the same again") {
  const model::Fabric fabric =
      make_fabric("{generator: ai_zone, racks: 8, hosts_per_rack: 2, gpus_per_host: 2, spines: 8}");
  const auto options = options_of(
      "{rates: {trunk_cable: 0.1, grey_loss: 0.1, host: 0.2}, lemons: {planted: 2, again: 1 d}}",
      20);
  const auto once = cli::rehearse(fabric, options, [](double) {});
  REQUIRE_MESSAGE(once.has_value(), once.error().text());
  std::uint64_t faults = 0, found = 0;
  for (const auto& [name, problem] : once->problems) {
    faults += problem.faults;
    found += problem.found;
  }
  CHECK(faults >= 10);
  CHECK(found * 10 >= faults * 9);
  CHECK(once->lemons == 2);
  CHECK(once->drains > 0);
  const auto again = cli::rehearse(fabric, options, [](double) {});
  REQUIRE(again.has_value());
  CHECK(cli::to_json(*once) == cli::to_json(*again));
  CHECK(cli::to_table(*once) == cli::to_table(*again));
}

TEST_CASE("a model with errors is refused, all of them at once") {
  const auto config = parse_yaml(
      "{rates: {host_cable: -1, trunks: 2}, people: {answer: 0 s}, loss: {grey_least: 0.5}}", "m");
  const auto read = cli::read_rehearse_model(*config);
  REQUIRE_FALSE(read.has_value());
  for (const char* key : {"host_cable", "trunks", "take some time", "grey_most"})
    CHECK_MESSAGE(read.error().text().find(key) != std::string::npos, key);
}

TEST_CASE("the store of rehearsals counts, pages and forgets") {
  adapt::sim::MemoryStore store;
  CHECK(store.commit({.events = {{0, {1}, "record", "a"}, {0, {2}, "record", "b"}}}) == 1);
  CHECK(store.commit({.events = {{0, {3}, "record", "c"}}}) == 3);
  CHECK(store.commit({.documents = {{"case", "x", {5}, "1"}, {"case", "y", {6}, "2"}},
                      .audit = {{0, {5}, "weft", "x", "opened", "{}"}}}) == 0);
  CHECK(store.events(2, 1)->front().line == "b");
  CHECK(store.documents("case", {6}, 9)->size() == 1);
  CHECK(store.documents("case", {9}, 9)->front().id == "y");
  CHECK(store.document("case", "z").error().code == Errc::unknown);
  CHECK(store.audit(1, "x", 9)->size() == 1);
  CHECK(store.audit(2, "", 9)->empty());
  CHECK(store.forget_events(3) == 2);
  CHECK(store.events(1, 9)->front().seq == 3);
  CHECK(store.forget_documents("case", {6}) == 1);
}
