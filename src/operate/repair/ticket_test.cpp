#include "operate/repair/ticket.hpp"

#include <set>

#include "base/json_line.hpp"
#include "operate/repair/test_kit.hpp"

namespace weft::operate::repair {
namespace {

using namespace testing;

// Nothing at its default, so that a forgotten field shows.
Ticket full(const model::Fabric& fabric) {
  const Entity cable = part(fabric, "rtsw:0--ctsw:1");
  Ticket t{.id = "c/7", .serial = 7, .orders = 12, .kind = CauseKind::optic};
  t.root = part(fabric, "rtsw:0->ctsw:1");
  t.part = cable;
  t.cases = {
      {"c \"1\"", CauseKind::link, cable, model::CaseState::settled, 0.25, at(1), false, true},
      {"c2", CauseKind::card, part(fabric, "ctsw:1/card:0")}};
  t.stage = Stage::returning;
  t.since = at(2);
  t.opened = at(3);
  t.seen = at(4);
  t.reason = "because\n\xc3\xa4";
  t.retry_at = at(5);
  t.resolution = Resolution::replaced;
  t.spent_ns = {1, 2, 3, 4, 5, 6};
  t.is_reserved = t.was_drained = t.is_rejected = t.has_relapsed = t.is_offender = true;
  t.is_held = t.no_means = true;
  t.approved_by = "ann";
  t.repaired_by = "bob";
  t.service = port::Service::drained;
  t.deed =
      ActionAttempt{port::ActionKind::undrain, "weft-7-3", ActionAttempt::Phase::doubt, 2, at(6)};
  t.after_undo = Stage::blocked;
  t.retry = Stage::returning;
  t.refused_by = "capacity";
  t.pending = Pending{"7.4", OrderKind::check, at(7)};
  t.snapshot = Pending{"7.snapshot", OrderKind::snapshot, at(8)};
  t.snapshot_tries = 1;
  t.look_at = at(9);
  t.forecast = Forecast{3, 1, 1.0625, "llama3"};
  t.baseline = {100, 3};
  t.verify = {200, 4};
  t.checks_failed = 5;
  t.verifications = 6;
  t.check_at = at(10);
  t.told_at = at(9);
  t.rollbacks = 8;
  t.exonerations = 9;
  t.held_until = at(15);
  t.drained_at = at(11);
  t.returned_at = at(12);
  t.ended = at(13);
  t.rma = Rma{"R 1", at(16), at(17), at(18), Stage::failed};
  t.overdue = 33;
  t.messages = {{"7.5", "C", "repair_drained", "drained", 2, at(14), true}};
  return t;
}

TEST_CASE("a ticket comes back from its document as it was") {
  const model::Fabric fabric = small_zone();
  const Ticket t = full(fabric);
  const auto back = read_ticket(fabric, to_json(fabric, t));
  REQUIRE_MESSAGE(back.has_value(), (back ? "" : back.error().text()));
  CHECK(*back == t);
  CHECK(to_json(fabric, *back) == to_json(fabric, t));
}

TEST_CASE("an empty ticket does, too") {
  const model::Fabric fabric = small_zone();
  Ticket t{.id = "c/1"};
  t.cases.push_back({.id = "c"});
  const auto back = read_ticket(fabric, to_json(fabric, t));
  REQUIRE_MESSAGE(back.has_value(), (back ? "" : back.error().text()));
  CHECK(*back == t);
}

TEST_CASE("documents that are cut, changed or of another fabric are refused") {
  const model::Fabric fabric = small_zone();
  const std::string json = to_json(fabric, full(fabric));
  for (std::size_t n = 0; n < json.size(); n += 7)
    CHECK_FALSE(read_ticket(fabric, json.substr(0, n)).has_value());
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string changed = json;
    const auto where = changed.find(from);
    REQUIRE(where != std::string::npos);
    changed.replace(where, from.size(), to);
    const auto read = read_ticket(fabric, changed);
    return read ? std::string("accepted") : read.error().text();
  };
  CHECK(contains(with("\"stage\":\"returning\"", "\"stage\":\"returnin\""), "returning"));
  CHECK(contains(with("\"orders\":12", "\"orders\":-1"), "out of range"));
  CHECK(contains(with("\"orders\":12", "\"orders\":\"12\""), "whole number"));
  CHECK(
      contains(with("rtsw:0--ctsw:1", "rtsw:9--ctsw:1"), "this fabric has no \"rtsw:9--ctsw:1\""));
  CHECK(contains(with("\"stage\":\"returning\"", "\"stage\":\"returned\""), "are inconsistent"));
  CHECK(contains(with("\"kind\":\"check\"", "\"kind\":\"forecast\""), "does not order"));
  CHECK(contains(with("\"phase\":\"doubt\"", "\"phase\":\"asked\""), "are inconsistent"));
  CHECK(contains(with("\"is_reserved\":true", "\"is_reserved\":false"), "are inconsistent"));
  CHECK(contains(with("\"tries\":2,\"due\"", "\"tries\":0,\"due\""), "never sent"));
  CHECK(read_ticket(fabric, "null").has_value() == false);
  CHECK(read_ticket(fabric, "[]").has_value() == false);
}

TEST_CASE("a ticket of weft 0.1.0 is read, without the keys that came since") {
  const model::Fabric fabric = small_zone();
  const std::string json = to_json(fabric, full(fabric));
  const auto older = JsonLine::parse(json, {})
                         ->but({"exonerations", "held_until", "overdue", "loss", "rma", "rma_ns"})
                         .text();
  REQUIRE(older.size() < json.size());
  const auto read = read_ticket(fabric, older);
  REQUIRE_MESSAGE(read.has_value(), (read ? "" : read.error().text()));
  CHECK(read->cases == full(fabric).cases);
  CHECK(read->spent_ns[0] == 1);
  CHECK_FALSE(read->rma.has_value());
}

TEST_CASE("a ticket has all keys that weft 0.1.0 reads, to which one may go back") {
  const model::Fabric fabric = small_zone();
  const auto json = JsonLine::parse(to_json(fabric, full(fabric)), {});
  REQUIRE(json.has_value());
  std::set<std::string> keys;
  for (const auto& [key, value] : json->members()) keys.insert(key);
  for (const char* key : {"id",          "serial",        "orders",
                          "kind",        "root",          "part",
                          "cases",       "stage",         "since",
                          "opened",      "seen",          "reason",
                          "retry_at",    "resolution",    "detect_ns",
                          "triage_ns",   "drain_ns",      "repair_ns",
                          "verify_ns",   "is_reserved",   "was_drained",
                          "is_rejected", "has_relapsed",  "is_offender",
                          "is_held",     "no_means",      "approved_by",
                          "repaired_by", "service",       "deed",
                          "after_undo",  "retry",         "refused_by",
                          "pending",     "snapshot",      "snapshot_tries",
                          "look_at",     "forecast",      "baseline",
                          "verify",      "checks_failed", "verifications",
                          "check_at",    "told_at",       "rollbacks",
                          "drained_at",  "returned_at",   "ended",
                          "messages"})
    CHECK_MESSAGE(keys.contains(key), key);
}

TEST_CASE("names of stages and resolutions are unique") {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < stage_count; ++i) names.insert(to_text(static_cast<Stage>(i)));
  CHECK(names.size() == stage_count);
  names.clear();
  for (std::size_t i = 0; i < resolution_count; ++i)
    names.insert(to_text(static_cast<Resolution>(i)));
  CHECK(names.size() == resolution_count);
}

}  // namespace
}  // namespace weft::operate::repair
