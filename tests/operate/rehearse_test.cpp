#include "app/rehearse/rehearse.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "adapt/sim/memory_store.hpp"
#include "app/rehearse/learn.hpp"
#include "app/rehearse/minutes.hpp"
#include "app/rehearse/plan.hpp"
#include "app/rehearse/seeds.hpp"
#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "controller_kit.hpp"
#include "model/formats/test_fabric.hpp"

using namespace weft;
using namespace weft::controller_test;
using adapt::sim::FaultKind;
using adapt::sim::Operations;

namespace {

using model::testing::make_fabric;

// 8 racks of two hosts under 8 spines.
model::Fabric eight_racks() {
  return make_fabric(
      "{generator: ai_zone, racks: 8, hosts_per_rack: 2, gpus_per_host: 2, spines: 8}");
}

app::RehearseOptions options_of(std::string_view model, std::uint32_t days) {
  const auto config = parse_yaml(model, "model.yaml");
  REQUIRE(config.has_value());
  const auto read = app::read_rehearse_model(*config);
  REQUIRE_MESSAGE(read.has_value(), (read ? "" : read.error().text()));
  return {.days = days, .seed = 3, .model = *read, .policy = operate::repair::default_policy()};
}

// All rates 0 but those of `rates`, and no lemons.
app::RehearseOptions only(std::string_view rates, std::uint32_t days) {
  auto out = options_of("{lemons: {count: 0}}", days);
  out.model.rates = {};
  const auto some = options_of(fmt::format("{{rates: {}}}", rates), days).model.rates;
  const auto none = options_of("{}", days).model.rates;
  const auto take = [&](double app::RehearseModel::Rates::* rate) {
    if (some.*rate != none.*rate) out.model.rates.*rate = some.*rate;
  };
  using Rates = app::RehearseModel::Rates;
  for (const auto rate : {&Rates::host_cable, &Rates::trunk_cable, &Rates::rack_switch,
                          &Rates::other_switch, &Rates::grey, &Rates::flap, &Rates::blips})
    take(rate);
  return out;
}

app::RehearseReport rehearsed(const model::Fabric& fabric, const app::RehearseOptions& options) {
  const auto report = app::rehearse(fabric, options, [](double) {});
  REQUIRE_MESSAGE(report.has_value(), (report ? "" : report.error().text()));
  return *report;
}

std::uint64_t bad_minutes(const app::RehearseReport& report) {
  std::uint64_t out = 0;
  for (const auto& [name, problem] : report.problems)
    out += problem.bad_inside + problem.bad_across;
  return out;
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
  const auto fault = net.begin(FaultKind::grey, *part, 0.1);
  net.advance({start_ns + 240 * second});
  net.end(fault);
  net.advance({start_ns + 600 * second});
  const app::Minutes minutes(fabric, racks, net, {start_ns}, net.now());
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
      "{rates: {trunk_cable: 0.1, grey_loss: 0.1, host: 0.2}, lemons: {count: 2, again: 1 d}}", 20);
  const auto once = app::rehearse(fabric, options, [](double) {});
  REQUIRE_MESSAGE(once.has_value(), (once ? "" : once.error().text()));
  std::uint64_t faults = 0, found = 0;
  for (const auto& [name, problem] : once->problems) {
    faults += problem.faults;
    found += problem.found;
  }
  CHECK(faults >= 10);
  CHECK(found * 10 >= faults * 9);
  CHECK(once->lemons == 2);
  CHECK(once->drains > 0);
  const auto again = app::rehearse(fabric, options, [](double) {});
  REQUIRE(again.has_value());
  CHECK(app::to_json(*once) == app::to_json(*again));
  CHECK(app::to_table(*once) == app::to_table(*again));
}

TEST_CASE("ten times more grey loss costs no fewer bad minutes, and leaves all else as it was") {
  const model::Fabric fabric = eight_racks();
  const std::string rates =
      "host_cable: 0.02, trunk_cable: 0.1, optic: 0.1, port_flap: 0.1, host_nic: 0.05, host: 0.1, "
      "rack_switch: 0.1, control_plane: 0.1";
  std::int64_t more = 0;
  for (std::uint64_t seed = 1; seed <= test_effort(12); ++seed) {
    CAPTURE(seed);
    const auto with = [&](double grey) {
      return options_of(fmt::format("{{rates: {{{}, grey_loss: {}}}, loss: {{grey_least: 0.02, "
                                    "grey_most: 0.5}}}}",
                                    rates, grey),
                        10);
    };
    auto few = with(0.05), many = with(0.5);
    few.model.lemons = many.model.lemons = 0;  // which fail again once they are repaired
    few.seed = many.seed = seed;
    auto before = rehearsed(fabric, few), after = rehearsed(fabric, many);
    CHECK(after.blips == before.blips);
    for (const char* kind :
         {"optic", "port_flap", "host_nic", "host", "rack_switch", "control_plane"})
      CHECK_MESSAGE(after.problems[kind].faults == before.problems[kind].faults, kind);
    CHECK(after.problems["cable"].faults >= before.problems["cable"].faults);
    CHECK(bad_minutes(after) >= bad_minutes(before));
    more += static_cast<std::int64_t>(bad_minutes(after) - bad_minutes(before));
  }
  CHECK(more > 0);
}

TEST_CASE("faults stay where and when they are: other rates, more days, one rack more") {
  using adapt::sim::FaultKind;
  const auto plan_of = [](const model::Fabric& fabric, const app::RehearseOptions& options) {
    std::set<std::tuple<std::int64_t, std::string, FaultKind, double, std::int64_t, std::uint64_t>>
        out;
    const app::RehearseParts parts(fabric, options.model.operations.ports_per_card);
    for (const app::PlannedFault& f : app::plan_faults(fabric, parts, options))
      out.emplace(f.t.ns, name(fabric, f.start.part), f.start.kind, f.start.loss, f.start.lasts_ns,
                  f.start.key);
    return out;
  };
  const model::Fabric fabric = eight_racks();
  const model::Fabric larger =
      make_fabric("{generator: ai_zone, racks: 9, hosts_per_rack: 2, gpus_per_host: 2, spines: 8}");
  const std::string_view some = "{rates: {trunk_cable: 0.5, grey_loss: 0.5, host: 1}}";
  const auto base = plan_of(fabric, options_of(some, 40));
  CHECK(base.size() > 100);
  const auto holds_all = [&](const auto& more) { return std::ranges::includes(more, base); };
  const auto raised =
      plan_of(fabric, options_of("{rates: {trunk_cable: 0.5, grey_loss: 5, host: 1}}", 40));
  CHECK(holds_all(raised));
  CHECK(raised.size() > base.size() + 100);
  for (const auto& row : raised)
    CHECK((std::get<FaultKind>(row) == FaultKind::grey || base.contains(row)));
  const auto longer = plan_of(fabric, options_of(some, 60));
  CHECK(holds_all(longer));
  auto no_lemons = options_of(some, 40);
  no_lemons.model.lemons = 0;
  const auto small = plan_of(fabric, no_lemons);
  CHECK(std::ranges::includes(plan_of(larger, no_lemons), small));
  CHECK(std::ranges::includes(base, small));
}

TEST_CASE("losses of carrier that heal by themselves are no repairs") {
  const auto report = rehearsed(eight_racks(), only("{blips_per_day: 1}", 10));
  CHECK(report.blips > 300);
  CHECK(report.blip_repairs > 0);
  for (const auto& problem : report.ledger.problems) CHECK(problem.whole.count == 0);
}

// Nobody may drain the only switch of a rack, so people are called; they take 4 h on average.
TEST_CASE("a rack switch that dies is believed, and people come") {
  const auto report = rehearsed(eight_racks(), only("{rack_switch: 1}", 30));
  const auto& problem = report.problems.at("rack_switch");
  CHECK(problem.faults >= 4);
  CHECK(problem.found == problem.faults);
  CHECK(report.visits >= problem.faults - 1);  // the last may still be under way
  CHECK(problem.bad_across <= problem.faults * 12 * 60);
}

TEST_CASE("the account of a long rehearsal holds all its repairs") {
  const auto report = rehearsed(eight_racks(), only("{trunk_cable: 0.2}", 100));
  std::uint64_t repairs = 0;
  for (const auto& problem : report.ledger.problems) repairs += problem.repairs;
  CHECK(report.problems.at("cable").found >= 20);
  CHECK(repairs >= report.problems.at("cable").found);
}

TEST_CASE("a cable whose name needs escaping in JSON is found as others are") {
  //  spine "a"  spine "b"
  //      |    X    |          two hosts below each rack switch
  //   rtsw:0    rtsw:1
  model::FabricBuilder b;
  const auto zone = b.add_scope(model::ScopeKind::zone, {});
  const model::FabricBuilder::LinkSpec wire{400_Gbps, 500_ns};
  std::vector<model::NodeId> nics, racks, spines;
  for (int r = 0; r < 2; ++r) {
    const auto rack = b.add_scope(model::ScopeKind::rack, zone);
    const auto host = b.add_node({.kind = model::NodeKind::host, .role = "host", .scope = rack});
    nics.push_back(
        b.add_node({.kind = model::NodeKind::nic, .role = "nic", .scope = rack, .host = host}));
    racks.push_back(
        b.add_node({.kind = model::NodeKind::fabric_switch, .role = "rtsw", .scope = rack}));
  }
  for (const char* name : {"spine \"a\"", "spine \"b\""})
    spines.push_back(b.add_node(
        {.kind = model::NodeKind::fabric_switch, .role = "ctsw", .scope = zone, .name = name}));
  for (std::size_t r = 0; r < 2; ++r) {
    b.add_circuit(nics[r], racks[r], wire);
    for (const model::NodeId spine : spines) b.add_circuit(racks[r], spine, wire);
  }
  const model::Fabric fabric = b.freeze();
  const auto report = rehearsed(fabric, only("{grey_loss: 0.5}", 60));
  const auto cable = report.problems.at("cable");
  CHECK(cable.faults >= 3);
  CHECK(cable.found == cable.faults);
  CHECK(report.cases_false == 0);
}

TEST_CASE("seeds: the same report on any number of threads, and pairs against a baseline") {
  const model::Fabric fabric = eight_racks();
  const auto days = static_cast<std::uint32_t>(std::max<std::uint64_t>(test_effort(4), 2));
  const auto options = options_of("{rates: {grey_loss: 0.5}, lemons: {count: 2}}", days);
  auto slow = options;
  slow.model.operations.visit_mean_ns *= 6;
  double done = 0;
  const auto set = [&](std::uint32_t threads) {
    const auto out = app::rehearse_seeds(fabric, slow, options, {.seeds = 3, .threads = threads},
                                         [&](double days) { done = days; });
    REQUIRE_MESSAGE(out.has_value(), (out ? "" : out.error().text()));
    return *out;
  };
  const auto one = set(1);
  CHECK(done == approx(2 * 3 * days));
  const auto three = set(3);
  CHECK(app::to_json(one) == app::to_json(three));
  CHECK(app::to_table(one) == app::to_table(three));
  REQUIRE(one.reports.size() == 3);
  auto alone = options;
  alone.seed = options.seed + 2;
  CHECK(app::to_json(one.baseline[2]) == app::to_json(rehearsed(fabric, alone)));
  for (const app::FigureEstimate& row : app::estimates(one)) {
    CAPTURE(row.name);
    REQUIRE(row.difference.has_value());
    if (row.value.count == 3 && row.baseline->count == 3)
      CHECK(row.baseline->mean + row.difference->mean == approx(row.value.mean));
    if (row.name == "faults.port_flap") CHECK(row.difference->most == 0);
    if (row.name == "time_to_repair_s") CHECK(row.difference->least > 0);
  }
}

TEST_CASE("an estimate: mean and Student's interval") {
  const std::vector<double> samples{4, 6, 8, 10};
  const auto e = app::estimate(samples);
  CHECK(e.mean == 7);
  CHECK(e.least == 4);
  CHECK(e.most == 10);
  // 3.1824 * sqrt(20 / 3 / 4)
  CHECK(*e.half == approx(4.1085).epsilon(1e-4));
  CHECK(e.is_significant());
  CHECK_FALSE(app::estimate(std::vector<double>{-4, 6, 8, 10}).is_significant());
  CHECK_FALSE(app::estimate(std::vector<double>{5}).half.has_value());
  // Tables of Student's distribution.
  for (const auto& [freedom, quantile] : std::map<std::size_t, double>{{1, 12.706},
                                                                       {9, 2.262},
                                                                       {10, 2.228},
                                                                       {11, 2.201},
                                                                       {19, 2.093},
                                                                       {29, 2.045},
                                                                       {99, 1.984}})
    CHECK(std::abs(app::student_975(freedom) - quantile) < 0.001);
}

TEST_CASE("which policy to choose: by a sum of costs, else only where nothing gets worse") {
  // By seed: bad minutes, visits, cable-hours.
  using Row = std::array<double, 3>;
  const auto set_of = [](const std::vector<Row>& a, const std::vector<Row>& b) {
    const auto reports = [](const std::vector<Row>& rows) {
      std::vector<app::RehearseReport> out;
      for (const auto& [bad, visits, hours] : rows) {
        app::RehearseReport& one = out.emplace_back();
        one.problems["cable"].bad_across = static_cast<std::uint64_t>(bad);
        one.visits = static_cast<std::uint64_t>(visits);
        one.drained_cable_hours = hours;
      }
      return out;
    };
    return app::RehearseSet{.reports = reports(b), .baseline = reports(a)};
  };
  const auto said = [&](const app::RehearseSet& set, const app::CostWeights& weights = {}) {
    const std::string text = decision_text(set, weights, "a", "b");
    return text.substr(text.rfind("\n\n") + 2);
  };
  const std::vector<Row> a{{100, 50, 10}, {120, 60, 11}, {140, 55, 12}};
  const auto trade = set_of(a, {{50, 55, 10}, {71, 65, 11}, {89, 61, 12}});
  CHECK(said(trade) ==
        "It depends: b has 41.7 % fewer bad minutes, for 9.7 % more visits. With --cost they can "
        "be added.\n");
  // 50 minutes for 5.33 visits: worth it up to 9.4 minutes a visit.
  CHECK(said(trade, {.bad_minute = 1, .visit = 5}).starts_with("Choose b: it costs "));
  CHECK(said(trade, {.bad_minute = 1, .visit = 20}).starts_with("Choose a: it costs "));
  CHECK(said(trade, {.bad_minute = 1, .visit = 9.4}).starts_with("Either: "));
  CHECK(said(set_of(a, {{50, 50, 10}, {71, 60, 11}, {89, 55, 12}})) ==
        "Choose b: 41.7 % fewer bad minutes.\n");
  CHECK(said(set_of(a, {{100, 50, 20}, {120, 60, 21}, {140, 55, 22}})) ==
        "Choose a: b has 90.9 % more drained cable-hours.\n");
  CHECK(said(set_of(a, a)) ==
        "Either: nothing differs significantly in 3 seeds. Try more --seeds.\n");
  CHECK(app::read_cost_weights("visit=2, bad_minute=0.5")->visit == 2);
  CHECK(
      app::read_cost_weights("visits=2").error().text() ==
      "--cost: \"visits=2\" is not a valid cost; write e.g. bad_minute=1,visit=20,cable_hour=0.1");
  CHECK(!app::read_cost_weights("visit=-2").has_value());
}

TEST_CASE("rates learned from repairs, as a model that is read again") {
  using operate::repair::RepairRow;
  using operate::repair::Resolution;
  const model::Fabric fabric = eight_racks();
  const Timestamp from{1'800'000'000'000'000'000};
  const std::int64_t day = std::int64_t{24} * 3600 * 1'000'000'000;
  std::vector<RepairRow> rows;
  const auto add = [&](model::CauseKind kind, const std::string& entity, Resolution resolution,
                       int count, std::int64_t at_day = 1) {
    for (int i = 0; i < count; ++i)
      rows.push_back({.kind = kind,
                      .entity = entity,
                      .opened = {from.ns + at_day * day},
                      .resolution = resolution});
  };
  const app::RehearseParts parts(fabric, 64);
  const std::string trunk = name(fabric, parts.trunks.front());
  const std::string leaf = name(fabric, parts.leaves.front());
  add(model::CauseKind::host, "host:1", Resolution::repaired, 10);
  add(model::CauseKind::host, "host:1", Resolution::rejected, 3);
  add(model::CauseKind::host, "host:1", Resolution::repaired, 5, 70);  // later
  add(model::CauseKind::link, trunk, Resolution::repaired, 40);
  add(model::CauseKind::link, trunk, Resolution::healed, 100);
  add(model::CauseKind::link, leaf, Resolution::replaced, 4);
  add(model::CauseKind::congestion, "rtsw:0", Resolution::repaired, 2);
  add(model::CauseKind::host, "host:99999", Resolution::rejected, 1);
  const auto learned = app::learn_rates(fabric, rows, from, {from.ns + 60 * day});
  CHECK(learned.left_out == 6);
  CHECK(learned.unknown == 1);
  const auto rate = [&](std::string_view key) {
    const auto at = std::ranges::find(learned.rates, key, &app::LearnedRate::key);
    REQUIRE(at != learned.rates.end());
    return *at;
  };
  CHECK(rate("host").faults == 10);
  CHECK(rate("host").rate ==
        approx(10 / static_cast<double>(fabric.hosts().size()) / 2));  // two months
  CHECK(rate("host_cable").faults == 4);
  CHECK(rate("grey_loss").faults + rate("trunk_cable").faults == approx(40));
  CHECK(rate("blips_per_day").faults == 100);
  const auto config = parse_yaml(to_yaml(learned), "m.yaml");
  REQUIRE(config.has_value());
  const auto model = app::read_rehearse_model(*config);
  REQUIRE_MESSAGE(model.has_value(), (model ? "" : model.error().text()));
  CHECK(model->rates.host == approx(rate("host").rate).epsilon(1e-3));
  CHECK(model->rates.blips == approx(rate("blips_per_day").rate).epsilon(1e-3));
  CHECK(model->rates.control_plane == 0);
}

TEST_CASE("intervals of a Poisson mean: tables") {
  for (const auto& [count, low, high] : std::vector<std::array<double, 3>>{
           {0, 0, 3.689}, {3, 0.6187, 8.767}, {10, 4.795, 18.39}, {100, 81.36, 121.63}}) {
    CHECK(app::poisson_interval(count).low == approx(low).epsilon(3e-4));
    CHECK(app::poisson_interval(count).high == approx(high).epsilon(3e-4));
  }
}

TEST_CASE("a model with more faults than memory holds is refused") {
  auto options = options_of("{rates: {blips_per_day: 100}}", 366);
  const auto report = app::rehearse(
      make_fabric(
          "{generator: ai_zone, racks: 16, hosts_per_rack: 2, gpus_per_host: 2, spines: 8}"),
      options, [](double) {});
  REQUIRE_FALSE(report.has_value());
  CHECK(report.error().text().find("are possible") != std::string::npos);
}

TEST_CASE("a model with errors is refused, all of them at once") {
  const auto config = parse_yaml(
      "{rates: {host_cable: -1, trunks: 2}, people: {answer: 0 s}, loss: {grey_least: 0.5}}", "m");
  const auto read = app::read_rehearse_model(*config);
  REQUIRE_FALSE(read.has_value());
  for (const char* key : {"host_cable", "trunks", "longer than 0", "grey_most"})
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
