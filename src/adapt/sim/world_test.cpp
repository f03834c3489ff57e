#include "adapt/sim/world.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <string>

#include "adapt/sim/job_tracer.hpp"
#include "adapt/sim/people.hpp"
#include "adapt/sim/world_faults.hpp"
#include "base/json_line.hpp"
#include "base/line_reader.hpp"
#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "base/text.hpp"
#include "model/events/evidence.hpp"
#include "model/formats/test_fabric.hpp"
#include "observe/localise/localise.hpp"
#include "observe/probe/wire.hpp"

namespace weft::adapt::sim {
namespace {

constexpr Timestamp world_begin{1'800'000'000 * ns_per_s};

model::Fabric probed_zone() {
  return model::testing::make_fabric(
      "{generator: ai_zone, racks: 3, hosts_per_rack: 2, gpus_per_host: 1, spines: 4, "
      "link: 400 Gbps}");
}

struct Stage {
  explicit Stage(std::uint64_t seed = 1, WorldSettings settings = {}) {
    settings.operations.seed = seed;
    auto made = World::create(fabric, {}, settings, world_begin);
    REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().text()));
    world = *std::move(made);
  }
  void start(std::string_view yaml) {
    const auto config = parse_yaml(yaml, "test");
    REQUIRE(config.has_value());
    const auto faults = read_world_faults(fabric, *config, world_begin);
    REQUIRE_MESSAGE(faults.has_value(), (faults ? "" : faults.error().text()));
    for (const TimedFault& fault : *faults) world->net().begin_at(fault.at, fault.start);
  }
  void to(double seconds) {
    const Status done = world->advance({world_begin.ns + static_cast<std::int64_t>(seconds * 1e9)});
    REQUIRE(done.has_value());
  }
  // What probes met since the last call.
  model::EvidenceSet seen() {
    std::string text;
    for (const std::string& line : world->evidence()) text += line + "\n";
    LineReader reader(text, "evidence");
    auto set = model::read_evidence(fabric, reader);
    REQUIRE_MESSAGE(set.has_value(), (set ? "" : set.error().text()));
    return *std::move(set);
  }
  // Sent and lost on rows whose path crosses the link, or on all.
  std::pair<double, double> counts(const model::EvidenceSet& set, std::string_view link = "") {
    std::pair<double, double> out;
    for (const model::Evidence& row : set.rows) {
      const auto path = set.path(row);
      if (!link.empty() &&
          std::ranges::none_of(path, [&](model::LinkId one) { return fabric.name(one) == link; }))
        continue;
      out.first += row.sent;
      out.second += row.lost;
    }
    return out;
  }
  model::Fabric fabric = probed_zone();
  std::unique_ptr<World> world;
};

TEST_CASE("probes of a healthy network lose nothing, and cross every link") {
  Stage stage;
  stage.to(60);
  const model::EvidenceSet set = stage.seen();
  const auto [sent, lost] = stage.counts(set);
  CHECK(lost == 0);
  for (const model::LinkId link : stage.fabric.links())
    if (stage.fabric.on_wire(link)) {
      CAPTURE(stage.fabric.name(link));
      // 500 crossings a second, in a minute.
      CHECK(stage.counts(set, stage.fabric.name(link)).first >= 0.95 * 500 * 60);
    }
}

TEST_CASE("loss is binomial over the paths that cross the link, and over no others") {
  Stage stage;
  stage.start("[{kind: link_lossy, link: \"ctsw:1->rtsw:2\", loss: 0.02}]");
  stage.to(30);
  const model::EvidenceSet set = stage.seen();
  const auto [sent, lost] = stage.counts(set, "ctsw:1->rtsw:2");
  REQUIRE(sent > 10'000);
  CHECK(std::abs(lost - 0.02 * sent) < 5 * std::sqrt(0.02 * 0.98 * sent));
  CHECK(stage.counts(set).second == lost);
  CHECK(stage.counts(set, "rtsw:2->ctsw:1").second < lost);
}

TEST_CASE("of flipped packets most arrive damaged, and doubled answers come on the way back") {
  Stage stage;
  stage.start(
      "[{kind: corrupt, link: \"ctsw:1->rtsw:2\", loss: 0.05},"
      " {kind: duplicate, link: \"rtsw:0--ctsw:2\", share: 0.1}]");
  stage.to(30);
  const model::EvidenceSet set = stage.seen();
  double damaged = 0, doubled = 0, back = 0;
  for (const model::Evidence& row : set.rows) {
    const auto crosses = [&](std::string_view name) {
      return std::ranges::any_of(
          set.path(row), [&](model::LinkId link) { return stage.fabric.name(link) == name; });
    };
    damaged += row.damaged;
    doubled += row.duplicates;
    CHECK((row.damaged == 0 || crosses("ctsw:1->rtsw:2")));
    if (row.leg == model::Leg::back && (crosses("rtsw:0->ctsw:2") || crosses("ctsw:2->rtsw:0")))
      back += row.sent - row.lost - row.damaged;
  }
  const auto [sent, lost] = stage.counts(set, "ctsw:1->rtsw:2");
  const double share = 0.05 * observe::probe::flip_shows;
  CHECK(std::abs(damaged - share * sent) < 5 * std::sqrt(share * sent));
  CHECK(std::abs(lost - (0.05 - share) * sent) < 5 * std::sqrt((0.05 - share) * sent));
  CHECK(std::abs(doubled - 0.1 * back) < 5 * std::sqrt(0.09 * back));
}

TEST_CASE("a carrier that is lost takes its probes along until routes follow") {
  Stage stage;
  stage.start("[{kind: link_down, link: \"rtsw:0--ctsw:0\", at: 10 s}]");
  stage.to(10.2);
  stage.seen();
  stage.to(11);
  const auto [sent, lost] = stage.counts(stage.seen(), "rtsw:0->ctsw:0");
  CHECK(lost > 0);
  stage.to(40);
  const model::EvidenceSet after = stage.seen();
  CHECK(stage.counts(after, "rtsw:0->ctsw:0").first == 0);
  CHECK(stage.counts(after).second == 0);
}

TEST_CASE("what is drained is not crossed, is lost all the same by a check, and comes back") {
  Stage stage;
  stage.start("[{kind: link_lossy, link: \"rtsw:0--ctsw:0\", loss: 0.1}]");
  stage.to(2);
  CHECK(stage.world->act({"1", port::ActionKind::drain, "rtsw:0--ctsw:0", "c"}).has_value());
  stage.to(4);
  stage.seen();
  stage.to(30);
  CHECK(stage.counts(stage.seen()).second == 0);
  CHECK(stage.world->check("rtsw:0--ctsw:0")->lost > 800);
  CHECK(stage.world->state("rtsw:0--ctsw:0").value() == port::Service::drained);
  stage.world->net().end_all();
  CHECK(stage.world->check("rtsw:0--ctsw:0")->lost == 0);
  CHECK(stage.world->act({"2", port::ActionKind::undrain, "rtsw:0--ctsw:0", "c"}).has_value());
  stage.to(32);
  stage.seen();
  stage.to(92);
  CHECK(stage.counts(stage.seen(), "rtsw:0->ctsw:0").first > 0);
}

TEST_CASE("a black hole eats what goes to one host over one switch; its own flows show it") {
  Stage stage;
  stage.start("[{kind: blackhole, switch: \"ctsw:1\", to: \"host:5\"}]");
  stage.to(10);
  const model::EvidenceSet set = stage.seen();
  double lost = 0;
  for (const model::Evidence& row : set.rows) {
    lost += row.lost;
    if (row.lost == 0) continue;
    const bool crosses = std::ranges::any_of(set.path(row), [&](model::LinkId link) {
      return stage.fabric.name(stage.fabric.from(link)) == "ctsw:1";
    });
    CHECK(crosses);
    CHECK(row.lost == row.sent);
    const auto host = [&](NodeId nic) { return stage.fabric.name(stage.fabric.host_of(nic)); };
    CHECK((host(row.src) == "host:5" || host(row.dst) == "host:5"));
  }
  CHECK(lost > 0);
  CHECK(stage.world->check("ctsw:1")->lost == 0);
  const NodeId nic = stage.fabric.nics_of(stage.fabric.hosts()[5]).front();
  const std::vector<port::Flow> flows{{.link = "ctsw:1->rtsw:2",
                                       .src = "nic:0",
                                       .dst = std::string(stage.fabric.name(nic)),
                                       .traffic_class = "0"}};
  CHECK(stage.world->check_flows("ctsw:1", flows)->lost == 10'000);
}

TEST_CASE("the localiser names every black hole where four flows cross each route; few otherwise") {
  const model::Fabric fabric = probed_zone();
  const auto spines = fabric.role(fabric.find_role("ctsw")).nodes;
  const std::size_t holes = spines.size() * fabric.hosts().size();
  std::array<std::size_t, 2> found{};
  for (const bool has_routes : {false, true})
    for (const NodeId spine : spines)
      for (const NodeId host : fabric.hosts()) {
        Stage stage(1, {.flows_each = 4, .routes_each = has_routes ? 4u : 0u});
        const std::string device(stage.fabric.name(spine)), to(stage.fabric.name(host));
        stage.start(fmt::format("[{{kind: blackhole, switch: \"{}\", to: \"{}\"}}]", device, to));
        stage.to(10);
        const observe::localise::Report report =
            observe::localise::Localiser(stage.fabric).run(stage.seen());
        if (report.verdicts.size() != 1) continue;
        const observe::localise::Verdict& verdict = report.verdicts.front();
        const NodeId end = verdict.destination;
        if (verdict.finding == observe::localise::Finding::route &&
            name(stage.fabric, verdict.entity) == device &&
            (end == host || stage.fabric.host_of(end) == host))
          ++found[has_routes ? 1 : 0];
      }
  CHECK(found[1] == holes);
  CHECK(found[0] < holes / 2);
  MESSAGE(found[1] << " and " << found[0] << " of " << holes);
}

TEST_CASE("delay and the load of jobs are seen in round-trip times") {
  // M/D/1 at half load: half a packet's time on average. 4,096 bytes at 400 Gbps: 81.92 ns.
  CHECK(mean_wait_ns(0.5, 50e9) == approx(40.96));
  CHECK(mean_wait_ns(0, 50e9) == 0);
  const auto p50 = [](Stage& stage) {
    stage.to(60);
    float most = 0;
    for (const model::Evidence& row : stage.seen().rows) most = std::max(most, row.rtt_p50_us);
    return most;
  };
  Stage idle, late;
  const float before = p50(idle);
  CHECK(before > 0);
  late.start("[{kind: delay, link: \"rtsw:0->ctsw:0\", delay: 2 ms}]");
  CHECK(p50(late) == approx(before + 2000).epsilon(0.001));
  WorldSettings busy;
  const std::size_t links = idle.fabric.link_count();
  busy.loads = [links](const model::State&,
                       const std::vector<port::RouteMark>*) -> Result<std::vector<double>> {
    return std::vector<double>(links, 0.9);
  };
  Stage loaded(1, busy);
  // Four cables each way, 9/2 of a packet's time in front of each, its median ln 2 of that.
  CHECK(p50(loaded) == approx(before + 8 * std::log(2.0) * 4.5 * 0.08192).epsilon(0.01));
}

TEST_CASE("the same seed says the same, however often it is asked") {
  const auto end = static_cast<double>(std::max<std::uint64_t>(test_effort(120), 40));
  const auto story = [end](std::uint64_t seed, double step) {
    Stage stage(seed);
    stage.start(
        "[{kind: port_flap, link: \"rtsw:0--ctsw:1\", at: 5 s},"
        " {kind: link_lossy, link: \"rtsw:1--ctsw:1\", loss: 0.01, at: 20 s, until: 60 s},"
        " {kind: host_down, host: \"host:3\", at: 30 s}]");
    std::string out;
    for (double t = step; t <= end; t += step) {
      stage.to(t);
      for (const std::string& line : stage.world->evidence()) out += line;
      for (const std::string& line : stage.world->records()) out += line;
    }
    std::ranges::sort(out);  // between two calls records and evidence stand apart
    return out;
  };
  CHECK(story(1, end) == story(1, 0.5));
  CHECK(story(1, end) != story(2, end));
}

TEST_CASE("mistakes in faults are told with their place") {
  const Stage stage;
  const auto errors = [&](std::string_view yaml) {
    const auto config = parse_yaml(yaml, "w.yaml");
    REQUIRE(config.has_value());
    const auto read = read_world_faults(stage.fabric, *config, world_begin);
    return read ? std::string() : read.error().text();
  };
  CHECK(errors("[{kind: link_lossy, link: \"rtsw:0--ctsw:0\"}]").contains("loss"));
  CHECK(errors("[{kind: link_losy, link: \"rtsw:0--ctsw:0\"}]").contains("link_lossy"));
  CHECK(errors("[{kind: link_down, link: \"rtsw:0->ctsw:0\"}]").contains("both directions"));
  CHECK(errors("[{kind: switch_down, switch: \"host:0\"}]").contains("not a switch"));
  CHECK(errors("[{kind: blackhole, switch: \"ctsw:0\", to: \"ctsw:1\"}]").contains("not a host"));
  CHECK(errors("[{kind: nic_down, nic: \"nic:0\", at: 5 s, until: 4 s}]").contains("ends before"));
  CHECK(errors("[{kind: link_down, link: \"rtsw:0--ctsw:0\", speed: 3}]").contains("speed"));
}

// A job on all GPUs of a zone, looked at every half a minute.
struct TracedStage : Stage {
  explicit TracedStage(std::uint64_t seed = 1) : Stage(seed) {
    TracedJob job{.name = "llama", .gpus = {}};
    for (const NodeId gpu : fabric.gpus()) job.gpus.push_back(gpu);
    tracer = std::make_unique<JobTracer>(*world, std::vector{job}, seed);
    world->take_probes();
  }
  // Parts named by records of these kinds in looks up to then, with how often.
  std::map<std::string, int> look_to(double seconds, std::string_view kind) {
    std::map<std::string, int> out;
    for (; at + 30 <= seconds; at += 30) {
      to(at + 30);
      const auto lines = tracer->look();
      REQUIRE_MESSAGE(lines.has_value(), (lines ? "" : lines.error().text()));
      for (const std::string& line : *lines) {
        const auto record = JsonLine::parse(line, {"record", 0, 0});
        REQUIRE(record.has_value());
        Errors errors;
        if (record->text("kind", {}, errors) == kind) ++out[record->text("entity", {}, errors)];
        CHECK(errors.empty());
      }
    }
    return out;
  }
  std::unique_ptr<JobTracer> tracer;
  double at = 0;
};

TEST_CASE("job traces: what they name is what is broken, and nothing where nothing is") {
  CHECK(TracedStage().look_to(3600, "job_slow").empty());
  int slowed = 0;
  for (int spine = 0; spine < 4; ++spine) {
    TracedStage stage;
    const std::string link = fmt::format("ctsw:{}->rtsw:2", spine);
    stage.start(fmt::format("[{{kind: link_lossy, link: '{}', loss: 0.02, at: 1 min}}]", link));
    const auto named = stage.look_to(600, "job_slow");
    if (named.empty()) continue;  // the job does not cross it
    ++slowed;
    CAPTURE(link);
    for (const auto& [entity, often] : named)
      CHECK((entity == link || entity == fmt::format("rtsw:2--ctsw:{}", spine)));
  }
  CHECK(slowed > 0);
  TracedStage stage;
  stage.start("[{kind: host_down, host: 'host:3', at: 1 min, until: 10 min}]");
  CHECK(stage.look_to(150, "job_hang").empty());  // for less than two minutes
  CHECK(stage.look_to(600, "job_hang") == std::map<std::string, int>{{"host:3", 1}});
  CHECK(stage.look_to(900, "job_hang").empty());
}

}  // namespace
}  // namespace weft::adapt::sim
