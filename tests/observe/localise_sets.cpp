#include "localise_sets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "adapt/sim/test_probing.hpp"
#include "adapt/sim/twin.hpp"
#include "base/check.hpp"
#include "base/text.hpp"
#include "model/formats/build_fabric.hpp"
#include "observe/localise/localise.hpp"
#include "route/router.hpp"

namespace weft::evaluation {
namespace {

using adapt::sim::Twin;
using adapt::sim::TwinFlow;
using adapt::sim::TwinPlan;
using model::EvidenceSet;
using model::Fabric;
using model::LinkId;
using model::NodeId;
using observe::localise::EntityKind;
using observe::localise::Finding;
using observe::localise::Localiser;
using observe::localise::Report;
using observe::localise::Verdict;

using Names = std::set<std::string>;

double cpu_now() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

Fabric fabric_of(std::string_view yaml) {
  auto section = parse_yaml(yaml, "fabric.yaml");
  WEFT_CHECK(section.has_value());
  auto fabric = model::build_fabric(*section);
  WEFT_CHECK(fabric.has_value());
  return *std::move(fabric);
}

// A fabric with what stands on it.
struct Stage {
  explicit Stage(std::string_view yaml)
      : fabric(fabric_of(yaml)),
        router(*route::Router::create(fabric, {.scheme = "e_ecmp"}, 1)),
        localiser(fabric) {
    for (const LinkId link : fabric.links()) {
      if (fabric.on_wire(link)) wired.push_back(link);
      if (fabric.is_switch(fabric.from(link)) && fabric.is_switch(fabric.to(link)))
        inside.push_back(link);
    }
  }
  Fabric fabric;
  route::Router router;
  Localiser localiser;
  std::vector<LinkId> wired, inside;
};

// 252 racks x 2 hosts x 8 GPUs, 18 spines: 9,072 directed links between switches.
Stage& zone() {
  static Stage stage(
      "{generator: ai_zone, racks: 252, hosts_per_rack: 2, gpus_per_host: 8, spines: 18, "
      "link: 400 Gbps}");
  return stage;
}
Stage& fat_tree() {
  static Stage stage("{generator: fat_tree, k: 10, gpus_per_host: 1, link: 10 Gbps}");
  return stage;
}

double between(Rng& rng, double low, double high) { return low + (high - low) * rng.uniform(); }

template <class T>
T pick(Rng& rng, const std::vector<T>& from) {
  return from[rng.below(from.size())];
}

// One seed: the twin with its background, and what is wrong with it.
struct Scene {
  Scene(Stage& stage, std::uint64_t seed, std::size_t classes, double normal_loss)
      : stage(stage), rng(Rng(seed).stream("scene")), twin(stage.fabric, classes, seed) {
    for (const LinkId link : stage.wired) twin.set_loss(link, between(rng, 0, normal_loss));
  }
  // 2 % of hosts stall for 50 ms at random times (0.05 to 1 times a second), 0.1 % are dead.
  void trouble_hosts(double late_share = 0) {
    for (const NodeId host : stage.fabric.hosts()) {
      if (rng.uniform() < 0.02)
        twin.set_stalls(
            host, {.per_s = std::exp(between(rng, std::log(0.05), 0)), .late_share = late_share});
      if (rng.uniform() < 0.001) twin.kill(host);
    }
  }
  LinkId break_link(double low, double high) {
    for (;;) {
      const LinkId link = pick(rng, stage.inside);
      if (!truth.insert("link " + stage.fabric.name(link)).second) continue;
      twin.set_loss(link, between(rng, low, high));
      return link;
    }
  }
  void break_ports(NodeId node, std::span<const LinkId> out, double low, double high) {
    for (const LinkId link : out) {
      twin.set_loss(link, between(rng, low, high));
      twin.set_loss(model::reverse(link), between(rng, low, high));
    }
    truth.insert("switch " + stage.fabric.name(node));
  }

  Stage& stage;
  Rng rng;
  Twin twin;
  Names truth, congested;
};

Names fabric_names(const Fabric& fabric, const Report& report) {
  Names out;
  for (const Verdict& v : report.verdicts) {
    if (v.finding == Finding::starved || v.finding == Finding::dead ||
        v.finding == Finding::congestion)
      continue;
    if (v.entity.kind == EntityKind::cable) {
      const model::CableId cable(v.entity.id);
      out.insert("link " + fabric.name(model::forward(cable)));
      out.insert("link " + fabric.name(model::reverse(model::forward(cable))));
      continue;
    }
    out.insert(fmt::format("{} {}", to_text(v.entity.kind), name(fabric, v.entity)));
  }
  return out;
}

Names congestion_names(const Fabric& fabric, const Report& report) {
  Names out;
  for (const Verdict& v : report.verdicts)
    if (v.finding == Finding::congestion) out.insert("link " + name(fabric, v.entity));
  return out;
}

// Hosts that are blamed and had nothing.
std::size_t false_hosts(const Scene& scene, const Report& report) {
  return static_cast<std::size_t>(std::ranges::count_if(report.verdicts, [&](const Verdict& v) {
    if (v.finding != Finding::starved && v.finding != Finding::dead) return false;
    const NodeId host(v.entity.id);
    return !scene.twin.stalls().contains(host) && !scene.twin.is_dead(host);
  }));
}

void judge(Outcome& out, std::uint64_t seed, const Names& truth, const Names& got) {
  for (const std::string& one : got) {
    truth.contains(one) ? ++out.right : ++out.wrong;
    if (!truth.contains(one)) out.mistakes.push_back(fmt::format("seed {}: +{}", seed, one));
  }
  for (const std::string& one : truth)
    if (!got.contains(one)) {
      ++out.missed;
      out.mistakes.push_back(fmt::format("seed {}: -{}", seed, one));
    }
}

Report localise(Outcome& out, const Stage& stage, const EvidenceSet& evidence,
                std::span<const observe::localise::LinkCounters> counters = {}) {
  const double start = cpu_now();
  Report report = stage.localiser.run(evidence, counters);
  out.cpu_s.push_back(cpu_now() - start);
  return report;
}

constexpr Timestamp start{1'700'000'000 * ns_per_s};

struct ZoneProbing {
  double per_host = 450;
  Duration length = 10_s;
  std::vector<std::string> classes{"0"};
};

TwinPlan zone_plan(Scene& scene, const ZoneProbing& probing, std::uint64_t seed) {
  return *adapt::sim::testing::make_plan(
      scene.stage.router, {.per_host = probing.per_host, .classes = probing.classes}, seed);
}

// One window, one look.
Outcome one_window(const ZoneProbing& probing, std::uint64_t first, std::size_t seeds,
                   const std::function<void(Scene&)>& strike) {
  Outcome out;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    Scene scene(zone(), seed, probing.classes.size(), 1e-5);
    scene.trouble_hosts();
    strike(scene);
    const TwinPlan plan = zone_plan(scene, probing, seed);
    const bool two = probing.classes.size() > 1;
    const auto seen =
        scene.twin.observe(plan, start, probing.length,
                           two ? adapt::sim::Counters::all_links : adapt::sim::Counters::none);
    const Report report = localise(out, scene.stage, seen.evidence, seen.counters);
    judge(out, seed, scene.truth, fabric_names(scene.stage.fabric, report));
    out.false_hosts += false_hosts(scene, report);
    Outcome labels;
    judge(labels, seed, scene.congested, congestion_names(scene.stage.fabric, report));
    out.marked += labels.right;
    out.mismarked += labels.wrong;
    out.unmarked += labels.missed;
  }
  return out;
}

std::vector<LinkId> suspect_links(const Fabric& fabric, const Report& report) {
  constexpr std::size_t most = 6;
  std::vector<LinkId> out;
  for (const Verdict& v : report.suspects) {
    if (out.size() >= most) break;
    if (v.entity.kind == EntityKind::link) out.emplace_back(v.entity.id);
    if (v.entity.kind == EntityKind::cable) {
      out.push_back(model::forward(model::CableId(v.entity.id)));
      out.push_back(model::reverse(out.back()));
    }
  }
  std::erase_if(out, [&](LinkId link) {
    return !fabric.is_switch(fabric.from(link)) || !fabric.is_switch(fabric.to(link));
  });
  return out;
}

// A look each second at all that was seen so far; probes are re-aimed at suspects. Judged by the
// last look; found_s holds when the fault was first named.
Outcome watching(const ZoneProbing& probing, std::uint64_t first, std::size_t seeds, double loss) {
  Outcome out;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    Scene scene(zone(), seed, 1, 1e-5);
    scene.trouble_hosts();
    scene.break_link(loss, loss);
    TwinPlan plan = zone_plan(scene, probing, seed);
    adapt::sim::testing::Accumulator seen;
    const int looks = static_cast<int>(probing.length.seconds());
    double found = 0;
    for (int second = 1; second <= looks; ++second) {
      const auto now = scene.twin.observe(plan, start, 1_s);
      seen.add(plan, now.evidence);
      const Report report = localise(out, scene.stage, seen.total());
      const Names got = fabric_names(scene.stage.fabric, report);
      if (found == 0 && std::ranges::includes(got, scene.truth)) found = second;
      if (second == looks) judge(out, seed, scene.truth, got);
      adapt::sim::testing::aim(plan, scene.stage.router, suspect_links(scene.stage.fabric, report));
    }
    if (found > 0) out.found_s.push_back(found);
  }
  return out;
}

// Hosts stall, one is dead, nothing else is wrong: every verdict about the fabric is false.
Outcome healthy_day(std::uint64_t first, std::size_t windows) {
  Outcome out;
  Scene scene(zone(), first, 1, 1e-5);
  scene.trouble_hosts();
  scene.twin.kill(pick(scene.rng, std::vector<NodeId>(scene.stage.fabric.hosts().begin(),
                                                      scene.stage.fabric.hosts().end())));
  const TwinPlan plan = zone_plan(scene, {}, first);
  for (std::size_t i = 0; i < windows; ++i) {
    const auto seen = scene.twin.observe(plan, start, 10_s);
    const Report report = localise(out, scene.stage, seen.evidence);
    out.false_hosts += false_hosts(scene, report);
    judge(out, i, {}, fabric_names(scene.stage.fabric, report));
  }
  return out;
}

void strike_spine(Scene& scene) {
  const NodeId spine =
      pick(scene.rng, scene.stage.fabric.role(scene.stage.fabric.find_role("ctsw")).nodes);
  scene.break_ports(spine, scene.stage.fabric.out(spine), 0.005, 0.01);
}

void strike_congested(Scene& scene) {
  scene.break_link(0.005, 0.005);
  while (scene.congested.size() < 10) {
    const LinkId link = pick(scene.rng, scene.stage.inside);
    const std::string name = "link " + scene.stage.fabric.name(link);
    if (scene.truth.contains(name) || !scene.congested.insert(name).second) continue;
    // 0.4 bursts of 50 ms a second, in which a tenth is lost: 0.2 %.
    scene.twin.add(adapt::sim::Bursts{.link = link, .per_s = 0.4, .loss = 0.1});
  }
}

// 14 neighbouring ports of a spine: in, out or both ways.
void strike_card(Scene& scene) {
  const Fabric& fabric = scene.stage.fabric;
  const NodeId spine = pick(scene.rng, fabric.role(fabric.find_role("ctsw")).nodes);
  const auto first = 14 * scene.rng.below(18);
  const auto way = scene.rng.below(3);
  for (const LinkId out : fabric.out(spine).subspan(first, 14)) {
    if (way != 0) scene.twin.set_loss(out, between(scene.rng, 0.003, 0.008));
    if (way != 1) scene.twin.set_loss(model::reverse(out), between(scene.rng, 0.003, 0.008));
  }
  scene.truth.insert(fmt::format("card {}/{}-{}", fabric.name(spine), first, first + 13));
}

void strike_rack(Scene& scene) {
  const Fabric& fabric = scene.stage.fabric;
  const NodeId rack = pick(scene.rng, fabric.role(fabric.find_role("rtsw")).nodes);
  scene.break_ports(rack, fabric.out(rack), 0.005, 0.01);
}

void strike_cable(Scene& scene) {
  const LinkId link = pick(scene.rng, scene.stage.inside);
  for (const LinkId way : {link, model::reverse(link)}) {
    scene.twin.set_loss(way, 0.01);
    scene.truth.insert("link " + scene.stage.fabric.name(way));
  }
}

void strike_nic(Scene& scene) {
  const NodeId nic = pick(scene.rng, std::vector<NodeId>(scene.stage.fabric.nics().begin(),
                                                         scene.stage.fabric.nics().end()));
  for (const LinkId out : scene.stage.fabric.out(nic)) {
    if (!scene.stage.fabric.on_wire(out)) continue;
    const LinkId link = scene.rng.below(2) == 0 ? out : model::reverse(out);
    scene.twin.set_loss(link, 0.01);
    scene.truth.insert("link " + scene.stage.fabric.name(link));
  }
}

// A spine loses one of 64 tuples.
void strike_tuples(Scene& scene) {
  const Fabric& fabric = scene.stage.fabric;
  const NodeId spine = pick(scene.rng, fabric.role(fabric.find_role("ctsw")).nodes);
  adapt::sim::TupleFault fault{.links = {}, .salt = scene.rng.next(), .buckets = 64, .loss = 1};
  for (const LinkId out : fabric.out(spine)) fault.links.push_back(model::reverse(out));
  std::ranges::sort(fault.links);
  scene.twin.add(std::move(fault));
  scene.truth.insert("switch " + fabric.name(spine));
}

void strike_dark(Scene& scene) { scene.break_link(1, 1); }

void strike_class(Scene& scene) {
  const LinkId link = pick(scene.rng, scene.stage.inside);
  scene.twin.set_loss(link, 1, 0.01);
  scene.truth.insert("link " + scene.stage.fabric.name(link));
}

// Pareto (shape 1.05) in packets of 1,500 bytes. The cut at 100 MiB takes about half off the mean.
struct FlowSizes {
  double nominal_mean_bytes;
};
constexpr FlowSizes ten_kilobytes{22'420}, eighty_kilobytes{222'000};

// One-way flows between random hosts over random shortest paths.
TwinPlan flows_of(Scene& scene, std::size_t count, const FlowSizes& sizes) {
  constexpr double shape = 1.05, bytes_max = 100.0 * 1024 * 1024;
  const Fabric& fabric = scene.stage.fabric;
  const std::vector<NodeId> nics(fabric.nics().begin(), fabric.nics().end());
  TwinPlan plan;
  std::vector<route::Hop> hops;
  while (plan.flows.size() < count) {
    TwinFlow flow{.src = pick(scene.rng, nics), .dst = pick(scene.rng, nics)};
    if (flow.src == flow.dst) continue;
    const auto qp = static_cast<std::uint32_t>(scene.rng.below(1U << 24));
    hops.clear();
    WEFT_CHECK(scene.stage.router.append_path({.src = flow.src, .dst = flow.dst, .qp = qp}, hops));
    flow.sport = static_cast<std::uint16_t>(qp);
    flow.forward_first = static_cast<std::uint32_t>(plan.links.size());
    flow.forward_size = static_cast<std::uint16_t>(hops.size());
    for (const route::Hop& hop : hops) plan.links.push_back(hop.link);
    double bytes = 0;
    do
      bytes = sizes.nominal_mean_bytes * (shape - 1) / shape /
              std::pow(1 - scene.rng.uniform(), 1 / shape);
    while (bytes > bytes_max);
    flow.per_s = std::ceil(bytes / 1500);
    plan.flows.push_back(flow);
  }
  return plan;
}

Outcome flows(std::size_t count, const FlowSizes& sizes, std::uint64_t first, std::size_t seeds,
              const std::function<void(Scene&)>& strike) {
  Outcome out;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    Scene scene(fat_tree(), seed, 1, 1e-4);
    strike(scene);
    const TwinPlan plan = flows_of(scene, count, sizes);
    for (const TwinFlow& flow : plan.flows)
      out.crossings += flow.per_s * (flow.forward_size - 2.0) /
                       static_cast<double>(scene.stage.inside.size() * seeds);
    const auto seen = scene.twin.observe(plan, start, 1_s);
    const Report report = localise(out, scene.stage, seen.evidence);
    const Names got = fabric_names(scene.stage.fabric, report);
    judge(out, seed, scene.truth, got);
    out.false_hosts += false_hosts(scene, report);
    out.hinted += got.empty() && report.coverage.needs_probes > 0 ? 1 : 0;
  }
  return out;
}

void strike_four(Scene& scene) {
  for (int i = 0; i < 4; ++i) scene.break_link(0.002, 0.02);
}

void strike_upper_switch(Scene& scene) {
  const Fabric& fabric = scene.stage.fabric;
  std::vector<NodeId> nodes = fabric.role(fabric.find_role("agg")).nodes;
  const std::vector<NodeId>& cores = fabric.role(fabric.find_role("core")).nodes;
  nodes.insert(nodes.end(), cores.begin(), cores.end());
  const NodeId node = pick(scene.rng, nodes);
  scene.break_ports(node, fabric.out(node), 0.005, 0.01);
}

std::function<void(Scene&)> one_link(double low, double high) {
  return [=](Scene& scene) { scene.break_link(low, high); };
}

using Set = std::function<Outcome(std::uint64_t, std::size_t)>;

Set zone_set(const ZoneProbing& probing, const std::function<void(Scene&)>& strike) {
  return [=](std::uint64_t first, std::size_t seeds) {
    return one_window(probing, first, seeds, strike);
  };
}
Set flow_set(std::size_t count, const FlowSizes& sizes, const std::function<void(Scene&)>& strike) {
  return [=](std::uint64_t first, std::size_t seeds) {
    return flows(count, sizes, first, seeds, strike);
  };
}
Set watched_set(const ZoneProbing& probing, double loss) {
  return
      [=](std::uint64_t first, std::size_t seeds) { return watching(probing, first, seeds, loss); };
}

const std::vector<std::pair<std::string, Set>>& sets() {
  static const std::vector<std::pair<std::string, Set>> all{
      {"L1", zone_set({450, 30_s}, strike_four)},
      {"L2", watched_set({4500, 10_s}, 0.001)},
      {"L3", watched_set({450, 10_s}, 0.01)},
      {"L4", zone_set({450, 20_s}, strike_spine)},
      {"L5", healthy_day},
      {"L6", zone_set({450, 30_s, {"lossy", "lossless"}}, strike_congested)},
      {"A", flow_set(25'000, ten_kilobytes, strike_four)},
      {"B", flow_set(25'000, ten_kilobytes, one_link(0.001, 0.001))},
      {"C", flow_set(25'000, ten_kilobytes, one_link(0.01, 0.01))},
      {"D", flow_set(25'000, ten_kilobytes, strike_upper_switch)},
      {"E", flow_set(400'000, ten_kilobytes, one_link(0.001, 0.001))},
      {"A5", flow_set(25'000, eighty_kilobytes, strike_four)},
      {"B5", flow_set(25'000, eighty_kilobytes, one_link(0.001, 0.001))},
      {"C5", flow_set(25'000, eighty_kilobytes, one_link(0.01, 0.01))},
      {"D5", flow_set(25'000, eighty_kilobytes, strike_upper_switch)},
      {"E5", flow_set(400'000, eighty_kilobytes, one_link(0.001, 0.001))},
      {"card", zone_set({450, 30_s}, strike_card)},
      {"rack", zone_set({450, 30_s}, strike_rack)},
      {"cable", zone_set({450, 10_s}, strike_cable)},
      {"nic", zone_set({450, 30_s}, strike_nic)},
      {"tuple", zone_set({450, 30_s}, strike_tuples)},
      {"dark", zone_set({450, 10_s}, strike_dark)},
      {"class", zone_set({450, 30_s, {"lossy", "lossless"}}, strike_class)},
      {"quiet", zone_set({450, 10_s}, [](Scene&) {})},
  };
  return all;
}

}  // namespace

double Outcome::f1() const {
  const double p = precision(), r = recall();
  return p + r > 0 ? 2 * p * r / (p + r) : 0;
}
double Outcome::cpu_median() const {
  std::vector<double> sorted = cpu_s;
  std::ranges::sort(sorted);
  return sorted.empty() ? 0 : sorted[sorted.size() / 2];
}
double Outcome::cpu_max() const { return cpu_s.empty() ? 0 : *std::ranges::max_element(cpu_s); }

std::vector<std::string> set_names() {
  std::vector<std::string> out;
  for (const auto& [name, set] : sets()) out.push_back(name);
  return out;
}

Outcome evaluate(std::string_view name, std::uint64_t first_seed, std::size_t seeds) {
  const auto found = std::ranges::find(sets(), name, [](const auto& set) { return set.first; });
  WEFT_CHECK(found != sets().end());
  Outcome out = found->second(first_seed, seeds);
  out.set = found->first;
  out.seeds = seeds;
  return out;
}

std::string table(const std::vector<Outcome>& outcomes) {
  Table out({{"set", Table::Align::left},
             {"seeds"},
             {"P"},
             {"R"},
             {"F1"},
             {"false"},
             {"missed"},
             {"false hosts"},
             {"congestion P"},
             {"R"},
             {"asks for more"},
             {"found, p50"},
             {"found"},
             {"crossings"},
             {"CPU p50"},
             {"CPU max"}});
  for (const Outcome& o : outcomes) {
    std::vector<double> found = o.found_s;
    std::ranges::sort(found);
    const bool timed = !found.empty(), classes = o.marked + o.unmarked + o.mismarked > 0;
    const auto text = [](double value) { return fmt::format("{:.4f}", value); };
    out.add({o.set, std::to_string(o.seeds), text(o.precision()), text(o.recall()), text(o.f1()),
             std::to_string(o.wrong), std::to_string(o.missed), std::to_string(o.false_hosts),
             classes ? text(o.congestion_precision()) : "",
             classes ? text(o.congestion_recall()) : "",
             o.hinted > 0 ? std::to_string(o.hinted) : "",
             timed ? fmt::format("{:.0f} s", found[found.size() / 2]) : "",
             timed ? std::to_string(found.size()) : "",
             o.crossings > 0 ? fmt::format("{:.0f}", o.crossings) : "", text(o.cpu_median()),
             text(o.cpu_max())});
  }
  return out.text();
}

}  // namespace weft::evaluation
