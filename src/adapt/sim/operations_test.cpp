#include "adapt/sim/operations.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "adapt/sim/problem_type.hpp"
#include "base/config.hpp"
#include "base/line_reader.hpp"
#include "base/test_approx.hpp"
#include "base/text.hpp"
#include "model/events/record.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::adapt::sim {
namespace {

//  ctsw:0  ctsw:1        every rack switch to every spine
//   |   X   |
//  rtsw:0  rtsw:1        two hosts each
model::Fabric four_host_zone() {
  return model::testing::make_fabric(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 2, gpus_per_host: 1, spines: 2}");
}

constexpr Timestamp start{1'800'000'000 * ns_per_s};
constexpr std::int64_t second = ns_per_s;

model::Entity part(const model::Fabric& fabric, std::string_view name) {
  const auto found = model::find_entity(fabric, {name, {}});
  REQUIRE_MESSAGE(found.has_value(), name);
  return *found;
}

struct Bench {
  explicit Bench(OperationsSettings settings = {}) : net(fabric, settings, start) {}
  model::Fabric fabric = four_host_zone();
  Operations net;

  // All that is said within so long, as records.
  model::RecordSet pass(std::int64_t ns) {
    std::string text;
    net.advance({net.now().ns + ns});
    for (const Operations::Line& line : net.lines()) text += line.text + "\n";
    LineReader reader(text, "said");
    model::RecordCounts counts;
    auto set = model::read_records(fabric, reader, counts);
    REQUIRE_MESSAGE(set.has_value(), (set ? "" : set.error().text()));
    CHECK(counts.unknown_entities + counts.unknown_kinds == 0);
    return *std::move(set);
  }
  static std::ptrdiff_t count(const model::RecordSet& set, model::EventKind kind) {
    return std::ranges::count(set.rows, kind, &model::Record::kind);
  }
  port::Action action(port::ActionKind kind, const char* entity, const char* id) {
    return {id, kind, entity, "C"};
  }
  port::Service state(const char* entity) { return net.state(entity).value(); }
};

using model::EventKind;

TEST_CASE("both ends of a dead cable say so, and again when it is well") {
  Bench bench;
  const auto fault = bench.net.begin(FaultKind::cable, part(bench.fabric, "rtsw:0--ctsw:1"));
  const auto down = bench.pass(5 * second);
  CHECK(Bench::count(down, EventKind::link_down) == 2);
  CHECK(Bench::count(down, EventKind::bgp_down) == 2);
  CHECK(bench.net.check("rtsw:0--ctsw:1")->lost == 10'000);
  CHECK(bench.net.check("rtsw:1--ctsw:1")->lost == 0);
  bench.net.end(fault);
  const auto up = bench.pass(10 * second);
  CHECK(Bench::count(up, EventKind::link_up) == 2);
  CHECK(Bench::count(up, EventKind::bgp_up) == 2);
  CHECK(bench.net.check("rtsw:0--ctsw:1")->lost == 0);
  CHECK(bench.net.broken().empty());
  REQUIRE(bench.net.harms().size() == 1);  // until traffic took the other way
  CHECK(bench.net.harms()[0].to.ns - start.ns < second);
}

TEST_CASE("a cable that two faults hold down is up when both are over") {
  Bench bench;
  const auto cable = bench.net.begin(FaultKind::cable, part(bench.fabric, "rtsw:0--ctsw:1"));
  const auto device = bench.net.begin(FaultKind::device, part(bench.fabric, "ctsw:1"));
  CHECK(Bench::count(bench.pass(5 * second), EventKind::link_down) >= 3);
  bench.net.end(cable);
  CHECK(Bench::count(bench.pass(10 * second), EventKind::link_up) == 0);
  bench.net.end(device);
  CHECK(Bench::count(bench.pass(20 * second), EventKind::link_up) == 4);
}

TEST_CASE("a drain ends what a grey cable loses, and a return begins it again") {
  Bench bench;
  bench.net.begin(FaultKind::grey, part(bench.fabric, "rtsw:0--ctsw:1"), 0.05);
  const auto seen = bench.pass(20 * second);
  CHECK(Bench::count(seen, EventKind::probe_loss) >= 5);
  REQUIRE(bench.net.act(bench.action(port::ActionKind::drain, "rtsw:0--ctsw:1", "a")));
  bench.pass(60 * second);
  REQUIRE(bench.net.harms().size() == 1);
  CHECK(bench.net.harms()[0].to.ns == start.ns + 20 * second);
  CHECK(bench.net.harms()[0].loss == approx(0.05));
  const auto check = bench.net.check("rtsw:0--ctsw:1");  // drained parts too
  CHECK(check->lost > 300);
  CHECK(check->lost < 700);
  REQUIRE(bench.net.act(bench.action(port::ActionKind::undrain, "rtsw:0--ctsw:1", "b")));
  CHECK(Bench::count(bench.pass(20 * second), EventKind::probe_loss) >= 5);
  CHECK(bench.net.harms().size() == 2);
}

TEST_CASE("actuators fail, lie and are late as they are told to") {
  using port::Service;
  Bench bench;
  const auto drain = bench.action(port::ActionKind::drain, "ctsw:0", "a");
  bench.net.set_actuators({.fails = 1});
  CHECK_FALSE(bench.net.act(drain).has_value());
  CHECK(bench.state("ctsw:0") == Service::in_service);
  bench.net.set_actuators({.lies = 1});
  CHECK(bench.net.act(drain).has_value());
  CHECK(bench.state("ctsw:0") == Service::in_service);
  bench.net.set_actuators({.late = 1});
  CHECK(bench.net.act(drain).has_value());
  CHECK(bench.state("ctsw:0") == Service::draining);
  CHECK(bench.net.drained().size() == 1);
  bench.pass(11 * second);
  CHECK(bench.state("ctsw:0") == Service::drained);
  CHECK(bench.net.act(drain).has_value());  // again: nothing
  CHECK(bench.net.effects().size() == 1);
  bench.net.set_actuators({.unheard = 1});
  CHECK_FALSE(bench.net.act(bench.action(port::ActionKind::undrain, "ctsw:0", "b")).has_value());
  bench.pass(11 * second);
  CHECK(bench.state("ctsw:0") == Service::in_service);
  bench.net.set_actuators({.blind = 1});
  CHECK_FALSE(bench.net.state("ctsw:0").has_value());
  CHECK_FALSE(bench.net.check("ctsw:0").has_value());
  CHECK_FALSE(bench.net.act(bench.action(port::ActionKind::drain, "ctsw:9", "c")).has_value());
}

TEST_CASE("a lemon comes back until it is replaced") {
  Bench bench({.visit_least_ns = second, .visit_mean_ns = second, .nothing_found = 0});
  const model::Entity cable = part(bench.fabric, "rtsw:0--ctsw:1");
  bench.net.begin_lemon(FaultKind::grey, cable, 0.05, 100 * second);
  for (int i = 0; i < 3; ++i) {
    bench.net.call_technician("rtsw:0--ctsw:1", Operations::Job::mend);
    bench.pass(5000 * second);
    const auto visits = bench.net.visits();
    REQUIRE(visits.size() == 1);
    CHECK(visits[0].has_found);
    CHECK(bench.net.broken() == std::vector{cable});  // again
  }
  bench.net.call_technician("rtsw:0--ctsw:1", Operations::Job::replace);
  bench.pass(5000 * second);
  CHECK(bench.net.broken().empty());
  CHECK(bench.net.faults().size() == 4);
}

TEST_CASE("storms and rehearsals have the kinds that the catalogue says, and no others") {
  std::set<std::string_view> breaks, causes;
  for (std::size_t i = 0; i < break_count; ++i)
    breaks.insert(catalogued(static_cast<FaultKind>(i)).name);
  for (const model::FaultEntry& entry : model::fault_catalogue()) {
    CAPTURE(entry.name);
    CHECK(breaks.contains(entry.name) == ((entry.makers & model::by_world) != 0));
    if ((entry.makers & model::by_rehearsal) != 0) CHECK((entry.makers & model::by_world) != 0);
    if ((entry.makers & model::by_storm) == 0) continue;
    for (const std::string_view cause : split(entry.cause, ' ')) causes.insert(cause);
  }
  CHECK(causes == std::set(problem_type_names.begin(), problem_type_names.end()));
}

TEST_CASE("each kind of fault tells of itself, ends, and leaves nothing behind") {
  constexpr std::array<const char*, break_count> parts{
      "rtsw:0--ctsw:0", "rtsw:0--ctsw:0", "rtsw:0--ctsw:0", "rtsw:0--ctsw:0", "rtsw:1",
      "ctsw:0/card:0",  "ctsw:0",         "nic:0",          "host:1",         "rtsw:0--ctsw:0",
      "rtsw:0--ctsw:0", "rtsw:0--ctsw:0", "rtsw:0--ctsw:0", "rtsw:0--ctsw:0", "rtsw:0--ctsw:0",
      "rtsw:0--ctsw:0", "ctsw:0",         "nic:0",          "ctsw:0",         "ctsw:0",
      "ctsw:0",         "ctsw:0",         "ctsw:0"};
  // Nothing but what probes meet, or nothing at all.
  const std::set<FaultKind> silent{FaultKind::delay,     FaultKind::jitter,
                                   FaultKind::reorder,   FaultKind::duplicate,
                                   FaultKind::blackhole, FaultKind::icmp_ratelimit};
  for (std::size_t i = 0; i < break_count; ++i) {
    Bench bench({.ports_per_card = 2});
    const auto kind = static_cast<FaultKind>(i);
    CAPTURE(catalogued(kind).name);
    const auto fault = bench.net.begin(kind, part(bench.fabric, parts[i]), 0.1);
    CHECK(bench.pass(60 * second).rows.empty() == silent.contains(kind));
    bench.net.end(fault);
    bench.pass(60 * second);
    CHECK(bench.pass(3600 * second).rows.empty());
    for (const char* name : {"ctsw:0", "ctsw:1", "rtsw:0", "rtsw:1"})
      CHECK(bench.net.check(name)->lost == 0);
  }
}

TEST_CASE("the same seed says the same") {
  const auto story = [](std::uint64_t seed) {
    Bench bench({.seed = seed});
    bench.net.begin(FaultKind::flap, part(bench.fabric, "rtsw:0--ctsw:1"));
    bench.net.begin(FaultKind::optic, part(bench.fabric, "rtsw:1--ctsw:1"), 0.1);
    bench.net.advance({start.ns + 600 * second});
    std::string out;
    for (const auto& line : bench.net.lines()) out += line.text;
    return out;
  };
  CHECK(story(1) == story(1));
  CHECK(story(1) != story(2));
}

}  // namespace
}  // namespace weft::adapt::sim
