#include "model/events/record.hpp"

#include "model/formats/test_fabric.hpp"

namespace weft::model {
namespace {

using testing::contains;
using testing::two_rack_zone;

TEST_CASE("every entity is found by its name") {
  const Fabric fabric = two_rack_zone();
  std::vector<Entity> all{card_of(testing::node(fabric, "ctsw:1"), 1)};
  for (const NodeId node : fabric.nodes()) all.push_back(entity(node));
  for (const LinkId link : fabric.links()) {
    all.push_back(entity(link));
    all.push_back(port_of(link));
    all.push_back(entity(cable_of(link)));
  }
  for (std::uint32_t i = 0; i < fabric.scopes().size(); ++i)
    if (fabric.scopes()[ScopeId(i)].kind != ScopeKind::host) all.push_back(entity(ScopeId(i)));
  for (const Entity& one : all) {
    const std::string text = name(fabric, one);
    const auto found = find_entity(fabric, {text, {}});
    REQUIRE_MESSAGE(found.has_value(), text);
    CHECK_MESSAGE(*found == one, text);
    if (one.kind != EntityKind::port) continue;
    const LinkId out(one.id);
    const std::string interface = fabric.name(fabric.from(out)) + "/" + fabric.interface_name(out);
    const auto by_interface = find_entity(fabric, {interface, {}});
    REQUIRE_MESSAGE(by_interface.has_value(), interface);
    CHECK_MESSAGE(*by_interface == one, interface);
  }
  for (const char* none : {"", "ctsw:9", "ctsw:0/99", "ctsw:0/card:99", "ctsw:0/", "/1", "a->b"})
    CHECK_MESSAGE(!find_entity(fabric, {none, {}}), none);
}

TEST_CASE("kinds and sources have names, downs have ups") {
  for (std::size_t i = 0; i < event_kind_count; ++i) {
    const auto kind = static_cast<EventKind>(i);
    CHECK(event_kind(to_text(kind)) == kind);
    CHECK(clears(clears(kind)) == EventKind::info);
  }
  CHECK(clears(EventKind::bgp_down) == EventKind::bgp_up);
  for (std::size_t i = 0; i < source_count; ++i)
    CHECK(source(to_text(static_cast<Source>(i))) == static_cast<Source>(i));
  CHECK_FALSE(event_kind("link_dow"));
}

TEST_CASE("records are read, and written as they were") {
  const Fabric fabric = two_rack_zone();
  const std::string text =
      R"({"id":"a","t":"2026-03-01T12:00:00Z","until":"2026-03-01T12:00:10Z",)"
      R"("received":"2026-03-01T12:00:11Z","source":"probe","entity":"rtsw:0->ctsw:1",)"
      R"("kind":"probe_loss","value":0.5})"
      "\n"
      R"({"id":"2","t":"2026-03-01T12:00:01Z","source":"syslog","entity":"sw9","kind":"odd",)"
      R"("value":1,)"
      R"("attrs":{"message":"x \"y\""}})"
      "\n";
  LineReader lines(text, "r.jsonl");
  RecordCounts counts;
  const auto set = read_records(fabric, lines, counts);
  REQUIRE_MESSAGE(set.has_value(), (set ? "" : set.error().text()));
  REQUIRE(set->rows.size() == 2);
  CHECK(set->rows[0].entity == entity(testing::link(fabric, "rtsw:0->ctsw:1")));
  CHECK(set->rows[1].entity == Entity{});
  CHECK(counts.unknown_entities == 1);
  CHECK(counts.unknown_kinds == 1);
  CHECK(to_json(fabric, *set, set->rows[0]) + "\n" + to_json(fabric, *set, set->rows[1]) + "\n" ==
        text);
}

TEST_CASE("records that cannot be are refused, equal ones kept once") {
  const Fabric fabric = two_rack_zone();
  const auto refuse = [&](std::string_view text) {
    LineReader lines(text, "r.jsonl");
    RecordCounts counts;
    const auto set = read_records(fabric, lines, counts);
    return set ? std::to_string(set->rows.size()) + " kept, " + std::to_string(counts.duplicates)
               : set.error().text();
  };
  const std::string one = R"({"id":"a","t":1,"source":"snmp","kind":"link_up"})";
  CHECK(refuse(one + "\n" + one) == "1 kept, 1");
  CHECK(contains(refuse(one + "\n" + R"({"id":"a","t":2,"source":"snmp","kind":"link_up"})"),
                 "r.jsonl:2: duplicate id \"a\""));
  CHECK(
      contains(refuse(R"({"t":1,"source":"sylog","kind":"link_up"})"), "did you mean \"syslog\""));
  CHECK(contains(refuse(R"({"t":1,"source":"snmp"})"), "\"kind\" is missing"));
  CHECK(contains(refuse(R"({"t":2,"until":1,"source":"snmp","kind":"info"})"), "before \"t\""));
}

TEST_CASE("a stream gives the same in pieces, and knows ids again from piece to piece") {
  const Fabric fabric = two_rack_zone();
  std::string text;
  for (int i = 0; i < 10; ++i)
    text += R"({"id":"r)" + std::to_string(i % 8) + R"(","t":)" + std::to_string(i % 8) +
            R"(,"source":"snmp","entity":"ctsw:1","kind":"link_up"})" + "\n";
  LineReader whole(text, "r.jsonl"), lines(text, "r.jsonl");
  RecordCounts counts;
  const auto set = read_records(fabric, whole, counts);
  REQUIRE(set.has_value());
  RecordStream stream(fabric, lines);
  std::vector<std::string> ids;
  for (auto piece = stream.next(3); piece && !piece->rows.empty(); piece = stream.next(3)) {
    CHECK(piece->rows.size() <= 3);
    for (const Record& row : piece->rows) ids.push_back(piece->ids[row.id]);
  }
  CHECK(ids == set->ids);
  CHECK(stream.counts().duplicates == counts.duplicates);
  CHECK(stream.counts().lines == 10);
}

TEST_CASE("a stream passes over what is no record, however much of it there is") {
  const Fabric fabric = two_rack_zone();
  const std::string good = R"({"id":"a","t":1,"source":"probe","kind":"info"})";
  std::string text = good + "\n{\"t\":2}\n";
  for (int i = 0; i < 250; ++i) text += "rubbish\n";
  text += R"({"id":"b","t":2,"source":"probe","kind":"info"})";
  LineReader lines(text, "r.jsonl");
  RecordStream stream(fabric, lines);
  const auto set = stream.next(100);
  REQUIRE(set.has_value());
  REQUIRE(set->rows.size() == 2);
  CHECK(set->ids[set->rows[1].id] == "b");
  CHECK(stream.counts().malformed == 251);
  REQUIRE(stream.refused().size() == 5);
  CHECK(stream.refused()[0].text().find("r.jsonl:2") != std::string::npos);
  const auto end = stream.next(100);
  REQUIRE(end.has_value());
  CHECK(end->rows.empty());
}

TEST_CASE("a stream passes over lines that are too long, and counts them") {
  const Fabric fabric = two_rack_zone();
  const auto good = [](const char* id) {
    return std::string(R"({"t":1,"source":"probe","kind":"info","id":")") + id + "\"}\n";
  };
  const std::string filler(line_bytes_max + 1, 'x');
  const std::string text = good("a") + filler + "\n" + good("b") + filler + filler + filler +
                           filler + filler + "\n" + good("c") + filler;
  LineReader lines(text, "r.jsonl");
  RecordStream stream(fabric, lines);
  const auto set = stream.next(100);
  REQUIRE(set.has_value());
  REQUIRE(set->rows.size() == 3);
  CHECK(set->ids[set->rows[2].id] == "c");
  CHECK(stream.counts().lines == 3);
  CHECK(stream.counts().malformed == 3);
  REQUIRE(stream.refused().size() == 3);
  CHECK(stream.refused()[0].text().find("r.jsonl:2") != std::string::npos);
  const auto end = stream.next(100);
  REQUIRE(end.has_value());
  CHECK(end->rows.empty());
}

TEST_CASE("a bad line leaves the others alone") {
  const Fabric fabric = two_rack_zone();
  RecordLines lines(fabric);
  CHECK(lines.add(R"({"id":"a","t":1,"source":"probe","kind":"info"})", {}));
  CHECK_FALSE(lines.add(R"({"id":"b","t":"when","source":"nobody","kind":"info"})", {}));
  CHECK(lines.add(R"({"t":3,"source":"probe","kind":"info"})", {}));
  const RecordSet set = lines.take();
  REQUIRE(set.rows.size() == 2);
  CHECK(set.ids[set.rows[0].id] == "a");
  CHECK(set.ids[set.rows[1].id].empty());
  CHECK(lines.counts().lines == 3);
}

}  // namespace
}  // namespace weft::model
