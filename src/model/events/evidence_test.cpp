#include "model/events/evidence.hpp"

#include "model/events/episode.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::model {
namespace {

using testing::contains;
using testing::two_rack_zone;

Result<EvidenceSet> read_observations(const Fabric& fabric, std::string_view text) {
  LineReader lines(text, "e.jsonl");
  return read_evidence(fabric, lines);
}

std::string evidence_refusal(std::string_view text) {
  const Fabric fabric = two_rack_zone();
  const auto set = read_observations(fabric, text);
  return set ? "accepted" : set.error().text();
}

TEST_CASE("evidence is read, and written as it was") {
  const Fabric fabric = two_rack_zone();
  const std::string text =
      R"({"t":"2026-03-01T12:00:00Z","src":"nic:0","dst":"nic:1","sport":33000,"class":"46",)"
      R"("leg":"forward","path":["nic:0->rtsw:0","rtsw:0->ctsw:1","ctsw:1->rtsw:1",)"
      R"("rtsw:1->nic:1"],)"
      R"("sent":100,"lost":2,"late":1,"damaged":4,"rtt_us":{"p50":6.5,"p99":12}})"
      "\n\n"
      R"({"t":"2026-03-01T12:00:00Z","src":"host:1","dst":"nic:0","sport":0,"class":"0",)"
      R"("leg":"round_trip","path":null,"sent":5,"lost":0,"late":0})"
      "\n";
  const auto set = read_observations(fabric, text);
  REQUIRE_MESSAGE(set.has_value(), (set ? "" : set.error().text()));
  REQUIRE(set->rows.size() == 2);
  CHECK(set->rows[0].sent == 100);
  CHECK(set->rows[0].damaged == 4);
  CHECK(set->rows[0].leg == Leg::forward);
  CHECK(set->path(set->rows[0])[1] == testing::link(fabric, "rtsw:0->ctsw:1"));
  CHECK(set->classes == std::vector<std::string>{"46", "0"});
  CHECK(to_json(fabric, *set, set->rows[0]) + "\n\n" + to_json(fabric, *set, set->rows[1]) + "\n" ==
        text);
}

TEST_CASE("evidence that cannot be is refused by line") {
  const std::string head = R"({"t":0,"src":"nic:0","dst":"nic:1",)";
  CHECK(contains(evidence_refusal("\n" + head + R"("sent":3,"lost":2,"late":2})"),
                 "e.jsonl:2: 2 lost, 2 late and 0 damaged of 3 sent"));
  CHECK(contains(evidence_refusal(head + R"("sent":3,"lost":1,"damaged":3})"), "3 damaged of 3"));
  CHECK(contains(evidence_refusal(head + R"("sent":3})"), "\"lost\" is missing"));
  CHECK(contains(evidence_refusal(R"({"t":0,"src":"nic:9","dst":"nic:1","sent":1,"lost":0})"),
                 "nic"));
  CHECK(contains(
      evidence_refusal(head + R"("sent":1,"lost":0,"path":["nic:0->rtsw:0","ctsw:1->rtsw:1"]})"),
      "cannot be followed by"));
  CHECK(contains(evidence_refusal(head + R"("sent":1,"lost":0,"leg":"up"})"), "\"leg\" is \"up\""));
  CHECK(contains(evidence_refusal(head + R"("sent":5000000000,"lost":0})"), "whole number from 0"));
  CHECK(contains(evidence_refusal("{"), "e.jsonl:1: not valid JSON"));
}

TEST_CASE("episodes are read, and written as they were") {
  const std::string text =
      R"({"id":"f1","kind":"loss","entities":["ctsw:1->rtsw:3"],"start":"2026-03-01T12:00:00Z",)"
      R"("end":null,"attrs":{"rate":"0.01"}})"
      "\n"
      R"({"id":"m2","kind":"maintenance","entities":["ctsw:1","ctsw:2"],)"
      R"("start":"2026-03-01T12:00:00Z","end":"2026-03-01T13:00:00Z","attrs":{}})"
      "\n";
  LineReader lines(text, "t.jsonl");
  const auto episodes = read_episodes(lines);
  REQUIRE_MESSAGE(episodes.has_value(), (episodes ? "" : episodes.error().text()));
  REQUIRE(episodes->size() == 2);
  CHECK(episodes->front().end == still_open);
  CHECK(to_json(episodes->front()) + "\n" + to_json(episodes->back()) + "\n" == text);
}

TEST_CASE("episodes that cannot be are refused") {
  const auto refuse = [](std::string_view text) {
    LineReader lines(text, "t.jsonl");
    const auto episodes = read_episodes(lines);
    return episodes ? "accepted" : episodes.error().text();
  };
  CHECK(contains(refuse(R"({"id":"a","kind":"k","start":5,"end":4})"), "before \"start\""));
  CHECK(contains(refuse("{\"id\":\"a\",\"kind\":\"k\",\"start\":5}\n"
                        "{\"id\":\"a\",\"kind\":\"k\",\"start\":5}"),
                 "t.jsonl:2: duplicate id \"a\""));
  CHECK(contains(refuse(R"({"id":"a","kind":"k","start":5,"entities":"x"})"), "a list of strings"));
}

TEST_CASE("a scan hands over all rows in pieces, with their paths and classes") {
  const Fabric fabric = two_rack_zone();
  std::string text;
  for (int i = 0; i < 10'000; ++i)
    text += R"({"t":)" + std::to_string(i) + R"(,"src":"nic:0","dst":"nic:1","class":")" +
            std::to_string(i / 4000) + R"(","path":["nic:0->rtsw:0"],"sent":9,"lost":0})" + "\n";
  LineReader lines(text, "e.jsonl");
  std::int64_t rows = 0;
  const Status status = scan_evidence(fabric, lines, [&](const EvidenceSet& set) {
    CHECK(set.rows.size() < 10'000);
    for (const Evidence& row : set.rows) {
      REQUIRE(row.t.ns == rows);
      REQUIRE(set.classes[row.traffic_class] == std::to_string(rows / 4000));
      REQUIRE(fabric.name(set.path(row)[0]) == "nic:0->rtsw:0");
      ++rows;
    }
  });
  CHECK(status.has_value());
  CHECK(rows == 10'000);
}

TEST_CASE("a scan tells errors as a read does, and hands over nothing after the first") {
  const Fabric fabric = two_rack_zone();
  LineReader lines("{}\n{", "e.jsonl");
  const Status status =
      scan_evidence(fabric, lines, [](const EvidenceSet&) { FAIL("nothing to take"); });
  REQUIRE_FALSE(status.has_value());
  CHECK(contains(status.error().text(), "e.jsonl:1"));
  CHECK(contains(status.error().text(), "e.jsonl:2"));
}

}  // namespace
}  // namespace weft::model
