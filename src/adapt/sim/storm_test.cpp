#include "adapt/sim/storm.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "adapt/sim/storm_plan.hpp"
#include "adapt/sim/storm_syslog.hpp"
#include "base/config.hpp"
#include "base/hash.hpp"
#include "model/events/entity.hpp"
#include "model/formats/test_fabric.hpp"
#include "observe/telemetry/syslog_reader.hpp"

namespace weft::adapt::sim {
namespace {

using observe::telemetry::Dialect;

using model::testing::make_fabric;

// ctsw:0 .. ctsw:7     each CTSW has 40 ports, so that it has cards of 16
//   |  \/   |
// rtsw:0 .. rtsw:39    2 hosts with 8 NICs each
model::Fabric zone() {
  return make_fabric(
      "{generator: ai_zone, racks: 40, hosts_per_rack: 2, spines: 8, link: 400 Gbps}");
}

StormOptions small_options() {
  StormOptions out;
  out.faults = 80;
  out.lines = 40'000;
  out.ports_per_card = 16;
  return out;
}

Storm make_storm(const model::Fabric& fabric, const StormOptions& options) {
  auto storm = generate_storm(fabric, options);
  REQUIRE_MESSAGE(storm.has_value(), (storm ? "" : storm.error().text()));
  return *std::move(storm);
}

std::uint64_t digest_of(const model::Fabric& fabric, const Storm& storm) {
  Digest digest;
  const model::RecordSet records = to_records(fabric, storm);
  for (const model::Record& row : records.rows)
    digest.add(std::string_view(to_json(fabric, records, row)));
  for (const model::Episode& fault : storm.truth) digest.add(std::string_view(to_json(fault)));
  return digest.value();
}

TEST_CASE("a storm has the lines, the faults and the order that were asked for") {
  const model::Fabric fabric = zone();
  const StormOptions options = small_options();
  const Storm storm = make_storm(fabric, options);
  CHECK(storm.lines.size() >= options.lines);
  CHECK(storm.lines.size() <= options.lines + 30);  // the last event may have several lines
  CHECK(storm.truth.size() == 80);
  CHECK(std::ranges::is_sorted(storm.lines, {}, &StormLine::received));
  CHECK(std::ranges::is_sorted(storm.truth, {}, &model::Episode::start));
  const auto of_faults =
      std::ranges::count_if(storm.lines, [](const StormLine& line) { return line.fault != 0; });
  CHECK(static_cast<std::uint64_t>(of_faults) == storm.fault_lines);
}

TEST_CASE("every type occurs, every fault is spoken of, and the truth names what exists") {
  const model::Fabric fabric = zone();
  StormOptions options = small_options();
  options.faults = 120;
  options.lines = 0;
  options.hours = 12;
  const Storm storm = make_storm(fabric, options);
  std::set<std::string> kinds;
  for (const model::Episode& fault : storm.truth) {
    kinds.insert(fault.kind);
    CHECK(fault.start < fault.end);
    CHECK(fault.end <= storm.end);
    REQUIRE(!fault.entities.empty());
    for (const std::string& name : fault.entities)
      CHECK_MESSAGE(model::find_entity(fabric, {name, {}}).has_value(), name);
    CHECK((fault.kind == "misconfiguration") == !fault.attrs.empty());
  }
  CHECK(kinds.size() >= problem_type_count - 1);  // a zone is one in 400
  std::vector<std::uint32_t> said(storm.truth.size() + 1, 0);
  for (const StormLine& line : storm.lines) ++said[line.fault];
  CHECK(std::ranges::none_of(said, [](std::uint32_t count) { return count == 0; }));
}

TEST_CASE("evidence lies about its fault, but for clocks that are wrong") {
  const model::Fabric fabric = zone();
  StormOptions options = small_options();
  options.wrong_clocks = 0;
  const Storm storm = make_storm(fabric, options);
  constexpr std::int64_t before = 60 * ns_per_s, behind = 120 * ns_per_s;
  for (const StormLine& line : storm.lines) {
    CHECK(line.t <= line.until);
    CHECK(line.received > line.until - 3 * ns_per_s);
    CHECK(line.received < line.until + 15 * ns_per_s);
    if (line.fault == 0) continue;
    const model::Episode& fault = storm.truth[line.fault - 1];
    CHECK(line.until > fault.start.ns - before);
    CHECK(line.t < fault.end.ns + behind);
  }
}

TEST_CASE("an end tells the loss of its link before the return, and each once") {
  const model::Fabric fabric = zone();
  StormOptions options = small_options();
  options.wrong_clocks = 0;
  options.lost = options.doubled = 0;
  const Storm storm = make_storm(fabric, options);
  std::map<model::Entity, std::vector<std::pair<std::int64_t, model::EventKind>>> told;
  for (const StormLine& line : storm.lines)
    if (line.source == model::Source::gnmi &&
        (line.kind == model::EventKind::link_down || line.kind == model::EventKind::link_up))
      told[line.entity].emplace_back(line.t, line.kind);
  for (auto& [port, words] : told) {
    std::ranges::sort(words);
    CAPTURE(name(fabric, port));
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i].second == model::EventKind::link_up) continue;
      CHECK(words[i - 1].second == model::EventKind::link_up);
      CHECK(words[i].first - words[i - 1].first > ns_per_s);  // pauses are of 2 s and more
    }
  }
}

TEST_CASE("what broke is left alone until it has recovered") {
  const model::Fabric fabric = zone();
  const StormOptions options = small_options();
  const StormContext context(fabric, options.ports_per_card);
  const auto faults = plan_storm(context, options);
  REQUIRE(faults.has_value());
  for (std::size_t i = 0; i < faults->size(); ++i)
    for (std::size_t k = 0; k < i; ++k) {
      const StormFault &a = (*faults)[i], &b = (*faults)[k];
      if (a.start >= b.end + storm_guard_ns || b.start >= a.end + storm_guard_ns) continue;
      std::vector<model::CableId> common;
      std::ranges::set_intersection(a.cables, b.cables, std::back_inserter(common));
      CHECK(common.empty());
      for (const model::NodeId node : a.nodes)
        CHECK(std::ranges::find(b.nodes, node) == b.nodes.end());
    }
}

TEST_CASE("the same seed gives the same bytes, another one others") {
  const model::Fabric fabric = zone();
  StormOptions options = small_options();
  options.adjacent = 0.5;
  const std::uint64_t first = digest_of(fabric, make_storm(fabric, options));
  CHECK(first == digest_of(fabric, make_storm(fabric, options)));
  options.seed = 2;
  CHECK(first != digest_of(fabric, make_storm(fabric, options)));
}

TEST_CASE("neighbours begin together and stand beside each other") {
  const model::Fabric fabric = zone();
  const StormContext context(fabric, 16);
  const auto close_pairs = [&](double adjacent) {
    StormOptions options = small_options();
    options.adjacent = adjacent;
    const auto faults = plan_storm(context, options);
    REQUIRE(faults.has_value());
    std::size_t out = 0;
    for (std::size_t i = 1; i < faults->size(); ++i)
      out += (*faults)[i].start - (*faults)[i - 1].start < 20 * ns_per_s ? 1 : 0;
    return out;
  };
  CHECK(close_pairs(0.5) > close_pairs(0) + 20);
}

TEST_CASE("without faults there is background alone, all day") {
  const model::Fabric fabric = zone();
  StormOptions options = small_options();
  options.faults = 0;
  options.hours = 24;
  options.lines = 5'000;
  const Storm storm = make_storm(fabric, options);
  CHECK(storm.truth.empty());
  CHECK(storm.lines.size() >= 5'000);
  CHECK(std::ranges::all_of(storm.lines, [](const StormLine& line) { return line.fault == 0; }));
  // A blip is a blip: no port of a cable goes down twice.
  std::map<model::Entity, int> downs;
  for (const StormLine& line : storm.lines)
    if (line.kind == model::EventKind::link_down && line.source == model::Source::gnmi)
      ++downs[line.entity];
  for (const auto& [port, count] : downs) CHECK(count <= 2);  // one may come doubly
}

TEST_CASE("what cannot be is refused with the reason") {
  const model::Fabric fabric = zone();
  const auto refusal = [&](const StormOptions& options) {
    const auto storm = generate_storm(fabric, options);
    return storm ? "accepted" : storm.error().text();
  };
  StormOptions options = small_options();
  options.faults = 20'000;
  CHECK(refusal(options).find("no room for fault") != std::string::npos);
  options = small_options();
  options.lines = 100;
  CHECK(refusal(options).find("the faults alone produce") != std::string::npos);
  options = small_options();
  options.hours = 0;
  CHECK(refusal(options).find("hours must be in") != std::string::npos);
  options = small_options();
  options.ports_per_card = 4'000;
  options.types = {ProblemType::line_card};
  CHECK(refusal(options).find("no place for a fault of type line_card") != std::string::npos);
  options = small_options();
  options.dialects["spine"] = Dialect::junos;
  CHECK(refusal(options).find("no role") != std::string::npos);
}

TEST_CASE("any fabric can have a storm") {
  for (const char* yaml : {"{generator: fat_tree, k: 8}", "{generator: rail_optimized, groups: 4}",
                           "{generator: multi_plane, racks: 8}", "{generator: hpn, segments: 2}",
                           "{generator: dragonfly, p: 2, a: 4, h: 2, g: 5}"}) {
    CAPTURE(yaml);
    const model::Fabric fabric = make_fabric(yaml);
    StormOptions options;
    options.faults = 40;
    options.lines = 0;
    const auto storm = generate_storm(fabric, options);
    CHECK_MESSAGE(storm.has_value(), yaml << ": " << (storm ? "" : storm.error().text()));
  }
}

// records -> raw lines -> records: the same but for what raw lines do not carry.
TEST_CASE("syslog of every dialect comes back as the records that it was made of") {
  const model::Fabric fabric = zone();
  for (const Dialect dialect : {Dialect::frr, Dialect::sonic, Dialect::eos, Dialect::junos,
                                Dialect::nxos, Dialect::cumulus}) {
    StormOptions options = small_options();
    options.faults = 60;
    options.lines = 0;
    options.dialects = {{"rtsw", dialect}, {"ctsw", dialect}};
    const Storm storm = make_storm(fabric, options);
    const model::RecordSet wanted = to_records(fabric, storm, StormFormat::syslog);
    const StormScribe scribe(fabric, options);
    observe::telemetry::Inventory inventory(fabric);
    const Status added = inventory.add_csv(scribe.inventory(), "inventory.csv");
    REQUIRE_MESSAGE(added.has_value(), (added ? "" : added.error().text()));
    const auto catalogue = observe::telemetry::Catalogue::built_in();
    observe::telemetry::SyslogReader reader(inventory, catalogue, {});
    std::vector<std::size_t> raw;
    for (std::size_t i = 0; i < storm.lines.size(); ++i) {
      const StormLine& line = storm.lines[i];
      if (line.source != model::Source::syslog) continue;
      REQUIRE_MESSAGE(scribe.can_say(line.speaker, line.kind, line.reason),
                      to_text(dialect)
                          << " cannot say " << to_text(line.kind) << " " << to_text(line.reason));
      raw.push_back(i);
      reader.take_captured(scribe.captured(line));
    }
    const model::RecordSet& got = reader.records();
    REQUIRE(got.rows.size() == raw.size());
    for (std::size_t i = 0; i < raw.size(); ++i) {
      const std::string want = to_json(fabric, wanted, wanted.rows[raw[i]]);
      model::Record row = got.rows[i];
      // A stamp of whole seconds is read as a moment of that second, not after the receipt.
      const Timestamp second = wanted.rows[raw[i]].t;
      if (second.ns % ns_per_s == 0 && row.t > second && row.t.ns < second.ns + ns_per_s &&
          row.t <= row.received)
        row.t = row.until = second;
      const std::string have = to_json(fabric, got, row);
      REQUIRE_MESSAGE(want == have, to_text(dialect)
                                        << ": " << scribe.message(storm.lines[raw[i]]));
    }
    CHECK(reader.counts().unknown_messages == 0);
    CHECK(reader.counts().malformed == 0);
    CHECK(reader.counts().unknown_ports > 0);  // chronic flappers have no cable
  }
}

}  // namespace
}  // namespace weft::adapt::sim
