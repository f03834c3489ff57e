#include "adapt/sim/score.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "adapt/sim/storm.hpp"
#include "base/config.hpp"
#include "base/test_approx.hpp"
#include "model/events/entity.hpp"
#include "model/formats/build_fabric.hpp"

namespace weft::adapt::sim {
namespace {

model::Episode fault(std::string id, std::string kind, std::string entity) {
  model::Episode out;
  out.id = std::move(id);
  out.kind = std::move(kind);
  out.entities = {std::move(entity)};
  return out;
}

// Records a1..aN of fault "a" and so on; "-" is the background.
StormLabels labels_of(const std::vector<std::pair<std::string, int>>& sizes) {
  StormLabels out;
  for (const auto& [fault, count] : sizes)
    for (int i = 1; i <= count; ++i) {
      out.record.push_back(fmt::format("{}{}", fault, i));
      out.fault.push_back(fault == "-" ? "" : fault);
    }
  return out;
}

Score score_of(const std::vector<model::Episode>& truth, const StormLabels& labels,
               const std::vector<ScoredCase>& cases) {
  auto score = score_cases(truth, labels, cases);
  REQUIRE_MESSAGE(score.has_value(), (score ? "" : score.error().text()));
  return *std::move(score);
}

TEST_CASE("cases that are the truth score 1 throughout") {
  const Score s =
      score_of({fault("a", "cable", "x--y"), fault("b", "host", "host:1")},
               labels_of({{"a", 3}, {"b", 2}, {"-", 4}}),
               {{"1", "cable", "x--y", {"a1", "a2", "a3"}}, {"2", "host", "host:1", {"b1", "b2"}}});
  CHECK(s.macro_f1 == 1);
  CHECK(s.pairwise.f1() == 1);
  CHECK(s.b_cubed.f1() == 1);
  CHECK(s.top1 == 1);
  CHECK(s.compression == 2.5);
  CHECK(s.splits + s.lost + s.false_cases == 0);
  CHECK(s.unassigned == 0);
}

// Fault a: 4 records, in a case with one of b and one of the background; b: 3 records, one there,
// one in a case of its own, one in none.
TEST_CASE("a mixture, by hand") {
  const Score s = score_of({fault("a", "cable", "x--y"), fault("b", "host", "host:1")},
                           labels_of({{"a", 4}, {"b", 3}, {"-", 5}}),
                           {{"1", "cable", "x--y", {"a1", "a2", "a3", "a4", "b1", "-1"}},
                            {"2", "host_nic", "host:1", {"b2"}},
                            {"3", "cable", "u--v", {"-2", "-3"}}});
  // Pairs: claimed 15 + 0 + 1, true 6 + 3, in common 6.
  CHECK(s.pairwise.precision == approx(6.0 / 16));
  CHECK(s.pairwise.recall == approx(6.0 / 9));
  // B-cubed over seven records: 4 x 4/6, 1 x 1/6, b2 and b3 alone; recall 4 x 1, then 1/3 each.
  CHECK(s.b_cubed.precision == approx((16.0 / 6 + 1.0 / 6 + 2) / 7));
  CHECK(s.b_cubed.recall == approx((4 + 3.0 / 3) / 7));
  // F1 of a: 2 x 4 / (6 + 4); of b the better of 2 x 1 / (6 + 3) and 2 x 1 / (1 + 3).
  CHECK(s.macro_f1 == approx((0.8 + 0.5) / 2));
  // Of b the cases have one record each: the first counts, which says a cable.
  CHECK(s.top1 == 0.5);
  CHECK(s.top1_entity == 0.5);
  CHECK(s.false_cases == 1);
  CHECK(s.lost == 0);
  CHECK(s.unassigned == 1);
  CHECK(s.background_taken == 3);
  REQUIRE(s.wrong.size() == 1);
  CHECK(s.wrong[0] == "b host host:1: case 1 says cable x--y, with 1 of its 3 records");
}

TEST_CASE("splits, losses and faults that nobody speaks of are told apart") {
  const Score s = score_of(
      {fault("a", "cable", "x--y"), fault("b", "host", "host:1"), fault("c", "host", "host:2")},
      labels_of({{"a", 4}, {"b", 1}}),
      {{"1", "cable", "x--y", {"a1", "a2"}}, {"2", "cable", "x--y", {"a3", "a4", "b1"}}});
  CHECK(s.splits == 1);
  CHECK(s.lost == 1);
  CHECK(s.silent_faults == 1);
  CHECK(s.faults == 2);
  CHECK(s.types[static_cast<std::size_t>(ProblemType::cable)].splits == 1);
  CHECK(s.types[static_cast<std::size_t>(ProblemType::host)].lost == 1);
}

TEST_CASE("a change may be named instead of a device") {
  model::Episode push = fault("a", "misconfiguration", "rtsw:1");
  push.attrs = {{"change", "CHG7"}};
  const auto top1 = [&](const std::string& entity) {
    return score_of({push}, labels_of({{"a", 1}}), {{"1", "misconfiguration", entity, {"a1"}}})
        .top1;
  };
  CHECK(top1("rtsw:1") == 1);
  CHECK(top1("change:CHG7") == 1);
  CHECK(top1("CHG7") == 1);
  CHECK(top1("change:CHG8") == 0);
}

TEST_CASE("a record counts in the first case that has it") {
  const Score s =
      score_of({fault("a", "cable", "x--y")}, labels_of({{"a", 2}}),
               {{"1", "cable", "x--y", {"a1", "a2", "a2"}}, {"2", "cable", "x--y", {"a1"}}});
  CHECK(s.doubly_claimed == 2);
  CHECK(s.macro_f1 == 1);
}

TEST_CASE("what does not belong together is refused") {
  const auto refusal = [](const StormLabels& labels, const std::vector<ScoredCase>& cases) {
    const auto score = score_cases({fault("a", "cable", "x--y")}, labels, cases);
    return score ? "accepted" : score.error().text();
  };
  CHECK(refusal(labels_of({{"b", 1}}), {}).find("no fault \"b\"") != std::string::npos);
  CHECK(refusal(labels_of({{"a", 1}, {"a", 1}}), {}).find("duplicate label") != std::string::npos);
  CHECK(refusal(labels_of({{"a", 1}}), {{"1", "cable", "", {"z"}}})
            .find("not a record of the storm") != std::string::npos);
}

TEST_CASE("a case may have more members than fit a short line") {
  std::string text = R"({"id":"c1","cause":{"kind":"switch","entity":"ctsw:1"},"members":["r0")";
  for (int i = 1; i < 20'000; ++i) text += fmt::format(R"(,{{"record":"r{}"}})", i);
  const auto cases = read_cases(text + "]}\n", "cases.jsonl");
  REQUIRE(cases.has_value());
  CHECK(cases->front().members.size() == 20'000);
}

TEST_CASE("cases are read by line, and broken ones told") {
  const auto cases = read_cases(R"({"id":"c1","cause":{"kind":"host","entity":"host:1"},)"
                                R"("members":[{"record":"r1","relation":"x"},"r2"],"more":1})",
                                "cases.jsonl");
  REQUIRE(cases.has_value());
  REQUIRE(cases->size() == 1);
  CHECK(cases->front().members == std::vector<std::string>{"r1", "r2"});
  const auto refused = read_cases(
      "{\"id\":\"c1\"}\n[1]\nnot "
      "json\n{\"id\":\"c\",\"cause\":{\"kind\":\"host\"},\"members\":[7]}\n",
      "cases.jsonl");
  REQUIRE(!refused.has_value());
  CHECK(refused.error().more.size() == 3);
  CHECK(refused.error().text().find("cases.jsonl:4") != std::string::npos);
}

// ---- two naive ways to make cases, on a real storm ----

bool says_trouble(const StormLine& line) {
  using enum model::EventKind;
  return line.kind != info && line.kind != link_up && line.kind != bgp_up && line.kind != bfd_up &&
         line.kind != nic_up && line.kind != config_commit;
}

model::NodeId device_of(const model::Fabric& fabric, const StormLine& line) {
  using enum model::EntityKind;
  switch (line.entity.kind) {
    case node:
    case card:
      return model::NodeId(line.entity.id);
    case port:
    case link:
      return fabric.from(model::LinkId(line.entity.id));
    case cable:
      return fabric.from(model::forward(model::CableId(line.entity.id)));
    default:
      return line.speaker;
  }
}

// What comes without a pause of ten seconds is one case, of the device that says most.
std::vector<ScoredCase> by_time_gap(const model::Fabric& fabric, const Storm& storm) {
  std::vector<ScoredCase> out;
  std::int64_t last = INT64_MIN / 2;
  for (std::size_t i = 0; i < storm.lines.size(); ++i) {
    const StormLine& line = storm.lines[i];
    if (!says_trouble(line)) continue;
    if (line.received - last > 10 * ns_per_s)
      out.push_back({fmt::format("{}", out.size()),
                     "switch",
                     name(fabric, model::entity(device_of(fabric, line))),
                     {}});
    out.back().members.push_back(fmt::format("r{}", i + 1));
    last = line.received;
  }
  return out;
}

// Each device's trouble is a case, until it is silent for five minutes.
std::vector<ScoredCase> by_device(const model::Fabric& fabric, const Storm& storm) {
  std::vector<ScoredCase> out;
  std::map<model::NodeId, std::pair<std::size_t, std::int64_t>> open;
  for (std::size_t i = 0; i < storm.lines.size(); ++i) {
    const StormLine& line = storm.lines[i];
    if (!says_trouble(line)) continue;
    const model::NodeId device = device_of(fabric, line);
    if (!device.valid()) continue;
    auto [at, is_new] = open.try_emplace(device, out.size(), line.received);
    if (is_new || line.received - at->second.second > 300 * ns_per_s) {
      at->second.first = out.size();
      out.push_back(
          {fmt::format("{}", out.size()), "switch", name(fabric, model::entity(device)), {}});
    }
    at->second.second = line.received;
    out[at->second.first].members.push_back(fmt::format("r{}", i + 1));
  }
  return out;
}

TEST_CASE("naive cases score badly, and the truth scores 1") {
  auto section = parse_yaml("{generator: ai_zone, racks: 60, spines: 8, link: 400 Gbps}", "t.yaml");
  REQUIRE(section.has_value());
  const auto fabric = model::build_fabric(*section);
  REQUIRE(fabric.has_value());
  StormOptions options;
  options.faults = 100;
  options.lines = 0;
  const auto storm = generate_storm(*fabric, options);
  REQUIRE(storm.has_value());
  StormLabels labels;
  std::vector<ScoredCase> perfect;
  for (const model::Episode& one : storm->truth)
    perfect.push_back({one.id, one.kind, one.entities.front(), {}});
  for (std::size_t i = 0; i < storm->lines.size(); ++i) {
    labels.record.push_back(fmt::format("r{}", i + 1));
    const std::uint32_t of = storm->lines[i].fault;
    labels.fault.push_back(of == 0 ? "" : storm->truth[of - 1].id);
    if (of != 0) perfect[of - 1].members.push_back(labels.record.back());
  }
  const Score best = score_of(storm->truth, labels, perfect);
  CHECK(best.macro_f1 == 1);
  CHECK(best.top1 == 1);
  const Score gap = score_of(storm->truth, labels, by_time_gap(*fabric, *storm));
  const Score device = score_of(storm->truth, labels, by_device(*fabric, *storm));
  MESSAGE("time gap: macro F1 " << gap.macro_f1 << ", top 1 " << gap.top1);
  MESSAGE("device:   macro F1 " << device.macro_f1 << ", top 1 " << device.top1);
  CHECK(gap.macro_f1 < 0.6);
  CHECK(gap.top1 < 0.2);
  CHECK(device.macro_f1 < 0.7);
  CHECK(device.top1 < 0.4);
}

}  // namespace
}  // namespace weft::adapt::sim
