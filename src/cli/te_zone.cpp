#include "cli/te_zone.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <tuple>

#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"
#include "operate/te/flow_file.hpp"
#include "operate/te/predict.hpp"
#include "plan/report/terminal.hpp"
#include "plan/run/work_flows.hpp"
#include "route/hash.hpp"

namespace weft::cli {
namespace {

namespace te = operate::te;

using Group = TeGroup;

struct Solved {
  te::Decision before, after;  // `after`: with --fail
  double before_ms = 0, after_ms = 0;
  model::FailureOutcome failure;  // the same
};

struct ZoneWork {
  std::uint64_t seed = 1;
  std::unique_ptr<const plan::Setup> setup;  // in one place: the router refers to its fabric
  route::Zone zone;
  route::Router hashing;
  model::State healthy, failed;
  std::vector<Group> groups;
  double unit = 0;  // bytes per second of a weight of 1 on the fastest uplink; 0: plain weights
};

Result<ZoneWork> load_work(const Common& common, const ZoneTeArgs& args) {
  WEFT_TRY(const model::LoadOptions options, common.load_options());
  WEFT_TRY(const model::ScenarioFile file, model::load_scenario(args.scenario, options));
  WEFT_TRY(const model::Scenario* scenario, choose_variant(file, args.variant));
  WEFT_TRY(plan::Setup read, plan::read_setup(*scenario));
  auto setup = std::make_unique<const plan::Setup>(std::move(read));
  const model::Fabric& fabric = setup->fabric;
  WEFT_TRY(route::Zone zone, route::find_zone(fabric));
  std::vector<Group> groups;
  double unit = 0;
  if (!args.flows.empty()) {
    WEFT_TRY(const std::string text, read_file(args.flows));
    WEFT_TRY(auto flows, te::read_flows_csv(fabric, text, args.flows));
    groups.push_back({"flows", std::move(flows)});
  } else if (args.check.empty()) {
    WEFT_TRY(groups, te_groups_of_jobs(*scenario, *setup));
    if (groups.empty())
      return fail(Errc::infeasible, {args.scenario, 0, 0},
                  "no job of the scenario sends anything over the network",
                  "add jobs, or pass --flows");
    for (const model::LinkId up : zone.up)
      if (up.valid()) unit = std::max(unit, fabric.rate(up).bytes_per_s());
  }
  const model::State healthy = setup->state_at_start();
  WEFT_TRY(model::State failed, read_down(fabric, args.fail, "--fail", healthy));
  WEFT_TRY(route::Router hashing,
           route::Router::create(fabric, {.hash = setup->routing.hash}, scenario->seed));
  return ZoneWork{scenario->seed, std::move(setup),  std::move(zone),   std::move(hashing),
                  healthy,        std::move(failed), std::move(groups), unit};
}

// Whether there is a load to state: not where a failure leaves no flow with a path.
bool has_loads(const te::Decision& d) { return d.without == 0 || d.judgement.worst_link.valid(); }

// Load of a link, as time where weights are bytes.
std::string load_text(const ZoneWork& work, double load) {
  return work.unit > 0 ? human_seconds(load / work.unit) : fmt::format("{:.4g}", load);
}

// The flows of a kind end together: on the link between racks and spines, or of a NIC, that takes
// longest.
double bytes_per_s(const ZoneWork& work, const Group& group, const te::Decision& before) {
  if (work.unit <= 0) return 0;
  std::map<model::LinkId, double> bytes;  // of NICs
  for (const te::Flow& flow : group.flows) {
    bytes[work.zone.port_of[flow.src]] += flow.weight;
    bytes[reverse(work.zone.port_of[flow.dst])] += flow.weight;
  }
  double seconds = before.judgement.worst / work.unit;
  for (const auto& [link, sum] : bytes)
    if (link.valid())
      seconds = std::max(seconds, sum / work.setup->fabric.rate(link).bytes_per_s());
  return seconds > 0 ? 1 / seconds : 0;
}

Result<std::vector<Solved>> solve_groups(ZoneWork& work, const ZoneTeArgs& args) {
  using Clock = std::chrono::steady_clock;
  const auto ms = [](Clock::duration span) {
    return std::chrono::duration<double, std::milli>(span).count();
  };
  std::vector<Solved> out;
  for (const Group& group : work.groups) {
    Solved solved;
    const auto start = Clock::now();
    solved.before =
        te::decide(work.zone, work.hashing, work.healthy, group.flows, {}, {.split = args.split});
    const auto middle = Clock::now();
    solved.before_ms = ms(middle - start);
    if (!args.fail.empty()) {
      const te::Settings settings{.others = args.only_hit ? route::Assignment::Others::stay
                                                          : route::Assignment::Others::may_move,
                                  .split = args.split};
      solved.after = te::decide(work.zone, work.hashing, work.failed, group.flows,
                                solved.before.marks, settings, solved.before.second);
      solved.after_ms = ms(Clock::now() - middle);
      WEFT_TRY(solved.failure,
               te::predict({.fabric = work.setup->fabric,
                            .routing = work.setup->routing,
                            .seed = work.seed,
                            .healthy = work.healthy,
                            .failed = work.failed,
                            .flows = group.flows,
                            .before = solved.before,
                            .after = solved.after,
                            .bytes_per_s = bytes_per_s(work, group, solved.before)}));
    }
    out.push_back(std::move(solved));
  }
  return out;
}

void print_zone_table(const ZoneWork& work, const std::vector<Solved>& solved,
                      const ZoneTeArgs& args) {
  std::vector<Table::Head> heads{
      {"kind", Table::Align::left}, {"flows"}, {"hashed"}, {"te"}, {"bound"}};
  if (!args.fail.empty())
    for (const char* name :
         {"hit", "moved", "no path", "hashed, failed", "te, failed", "bound, failed"})
      heads.push_back({name});
  if (args.split) heads.push_back({"over 2 QPs"});
  Table table(heads);
  const auto loads = [&](const te::Decision& d) {
    if (!has_loads(d)) return std::vector<std::string>(3, "-");
    return std::vector{load_text(work, d.judgement.hashed), load_text(work, d.judgement.worst),
                       load_text(work, d.bound)};
  };
  for (std::size_t g = 0; g < solved.size(); ++g) {
    std::vector<std::string> cells{work.groups[g].name,
                                   std::to_string(work.groups[g].flows.size())};
    std::ranges::copy(loads(solved[g].before), std::back_inserter(cells));
    if (!args.fail.empty()) {
      const te::Decision& after = solved[g].after;
      for (const std::uint32_t count : {after.hit, after.moved, after.without})
        cells.push_back(std::to_string(count));
      std::ranges::copy(loads(after), std::back_inserter(cells));
    }
    if (args.split)
      cells.push_back(
          std::to_string((args.fail.empty() ? solved[g].before : solved[g].after).divided));
    table.add(std::move(cells));
  }
  fmt::print("{}\n", table.text());
  for (std::size_t g = 0; g < solved.size(); ++g)
    for (const te::Decision* decision : {&solved[g].before, &solved[g].after})
      if (!decision->refused.empty())
        fmt::print("{}{}: left to hashing: {}\n", work.groups[g].name,
                   decision == &solved[g].after ? ", failed" : "", decision->refused);
  fmt::print(
      "The worst link between racks and spines{}, with flows hashed by switches, with the "
      "controller's marks, and below which no marks can be.\n",
      work.unit > 0 ? ": how long its bytes take" : ": its weight per capacity");
}

// How the failure converges.
void print_convergence(const ZoneWork& work, const std::vector<Solved>& solved) {
  std::vector<Table::Head> heads{{"kind", Table::Align::left}};
  plan::report::add_failure_heads(heads);
  Table table(heads);
  for (std::size_t g = 0; g < solved.size(); ++g) {
    std::vector<std::string> cells{work.groups[g].name};
    plan::report::add_failure_cells(solved[g].failure, cells);
    table.add(std::move(cells));
  }
  fmt::print("\n{}\n", table.text());
  fmt::print(
      "From the failure until flows have a path again. Stalled: what they would have sent "
      "meanwhile; lost: what was on the way.\n");
}

// Names as in `weft run --json`.
JsonObject failure_json(const model::FailureOutcome& f) {
  JsonObject out;
  out.add("flows_hit", f.hit)
      .add("flows_stranded", f.stranded)
      .add("path_again_s",
           JsonObject().add("median", f.path_again_p50_s).add("max", f.path_again_max_s))
      .add("stalled_bytes", f.stalled_bytes)
      .add("lost_bytes", f.lost_bytes);
  return out;
}

JsonObject decision_json(const ZoneWork& work, const te::Decision& d, double milliseconds) {
  JsonObject out;
  const auto load = [&](double value) {
    return has_loads(d) ? value : std::numeric_limits<double>::quiet_NaN();
  };
  out.add("hashed", load(d.judgement.hashed))
      .add("worst", load(d.judgement.worst))
      .add("bound", load(d.bound))
      .add("worst_link", d.judgement.worst_link.valid()
                             ? work.setup->fabric.name(d.judgement.worst_link)
                             : std::string())
      .add("hit", d.hit)
      .add("moved", d.moved)
      .add("without_path", d.without)
      .add("refused", d.refused)
      .add("decided_in_s", milliseconds / 1e3, decimals(6));
  return out;
}

void print_zone_json(const ZoneWork& work, const std::vector<Solved>& solved,
                     const ZoneTeArgs& args) {
  JsonList kinds;
  for (std::size_t g = 0; g < solved.size(); ++g) {
    JsonObject kind;
    kind.add("name", work.groups[g].name)
        .add("flows", work.groups[g].flows.size())
        .add("healthy", decision_json(work, solved[g].before, solved[g].before_ms));
    if (!args.fail.empty())
      kind.add("failed", decision_json(work, solved[g].after, solved[g].after_ms))
          .add("convergence", failure_json(solved[g].failure));
    if (args.split)
      kind.add("over_two_qps", (args.fail.empty() ? solved[g].before : solved[g].after).divided);
    kinds.add(kind);
  }
  fmt::print("{}\n", JsonObject()
                         .add("scenario", args.scenario)
                         .add("uplink_bps", 8 * work.unit)
                         .add("kinds", kinds)
                         .text());
}

Status write_marks(const ZoneWork& work, const std::vector<Solved>& solved,
                   const ZoneTeArgs& args) {
  if (args.marks.empty()) return {};
  if (work.groups.size() != 1)
    return fail(Errc::value, {"--marks", 0, 0},
                fmt::format("the jobs have {} kinds of flows, each with marks of its own",
                            work.groups.size()),
                "pass --flows with those that are under way together");
  const te::Decision& d = args.fail.empty() ? solved[0].before : solved[0].after;
  const te::MarkedFlows qps = te::by_qp(work.groups[0].flows, d.marks, d.second);
  return write_file(args.marks, te::marks_csv(work.setup->fabric, work.zone, qps.flows, qps.marks));
}

Result<int> check_marks(const Common& common, ZoneWork& work, const ZoneTeArgs& args) {
  WEFT_TRY(const std::string text, read_file(args.check));
  WEFT_TRY(const te::MarkedFlows file,
           te::read_marks_csv(work.setup->fabric, work.zone, text, args.check));
  te::Judgement j = te::judge(work.zone, work.hashing, work.failed, file.flows, file.marks);
  const std::vector<te::Flow> whole = te::whole_flows(file.flows);
  const te::Decision best = te::decide(work.zone, work.hashing, work.failed, whole, {});
  j.hashed = te::judge(work.zone, work.hashing, work.failed, whole,
                       te::Marks(whole.size(), route::Zone::none))
                 .hashed;
  const bool sound = j.dead.empty() && j.cut_off.empty() && j.worst <= j.hashed * (1 + 1e-9);
  const std::string worst =
      j.worst_link.valid() ? work.setup->fabric.name(j.worst_link) : std::string("none");
  if (common.json) {
    fmt::print("{}\n", JsonObject()
                           .add("flows", file.flows.size())
                           .add("worst", j.worst)
                           .add("worst_link", worst)
                           .add("hashed", j.hashed)
                           .add("bound", best.bound)
                           .add("dead", j.dead.size())
                           .add("without_path", j.cut_off.size())
                           .add("sound", sound)
                           .text());
  } else {
    fmt::print("{} flows: worst link {:.4g} ({}), hashed {:.4g}, bound {:.4g}\n", file.flows.size(),
               j.worst, worst, j.hashed, best.bound);
    for (const std::uint32_t f : j.dead)
      fmt::print("  line {}: the mark leads over a dead link\n", f + 2);
    for (const std::uint32_t f : j.cut_off) fmt::print("  line {}: no live path\n", f + 2);
    fmt::print("{}\n", sound ? "sound: never worse than hashing" : "NOT SOUND");
  }
  return sound ? done : work_failed;
}

Result<int> zone_te(const Common& common, const ZoneTeArgs& args) {
  WEFT_TRY(ZoneWork work, load_work(common, args));
  if (!args.check.empty()) return check_marks(common, work, args);
  WEFT_TRY(const std::vector<Solved> solved, solve_groups(work, args));
  WEFT_TRY_STATUS(write_marks(work, solved, args));
  if (common.json)
    print_zone_json(work, solved, args);
  else
    print_zone_table(work, solved, args);
  if (!common.json && !args.fail.empty()) print_convergence(work, solved);
  return done;
}

}  // namespace

Result<std::vector<TeGroup>> te_groups_of_jobs(const model::Scenario& scenario,
                                               const plan::Setup& setup) {
  route::RoutingConfig config = setup.routing;
  config.scheme = "te";
  WEFT_TRY(route::Router router, route::Router::create(setup.fabric, config, scenario.seed));
  WEFT_TRY(const plan::ScenarioFlows found, plan::scenario_flows(scenario, setup, router));
  for (const model::Note& note : found.notes) fmt::print(stderr, "weft: warning: {}\n", note.text);
  std::vector<TeGroup> out;
  for (const plan::WorkFlows& kind : found.kinds) {
    out.push_back({kind.kind, {}});
    for (const route::NicDemand& d : kind.flows) {
      const auto port = [&](std::uint32_t qp) {
        return route::port_of_qp(setup.fabric, d.src, d.dst, qp);
      };
      out.back().flows.push_back({.src = d.src,
                                  .dst = d.dst,
                                  .port = port(d.qp),
                                  .weight = d.bytes,
                                  .second = port(setup.routing.qps + d.qp)});
    }
  }
  return out;
}

std::vector<te::Flow> te_merged(const std::vector<TeGroup>& groups) {
  std::map<std::tuple<model::NodeId, model::NodeId, std::uint16_t>, te::Flow> all;
  for (const TeGroup& group : groups)
    for (const te::Flow& flow : group.flows) {
      const auto [at, is_new] = all.try_emplace({flow.src, flow.dst, flow.port}, flow);
      if (!is_new) at->second.weight += flow.weight;
    }
  std::vector<te::Flow> out;
  for (const auto& [key, flow] : all) out.push_back(flow);
  return out;
}

int run_zone_te(const Common& common, const ZoneTeArgs& args) {
  const Result<int> status = zone_te(common, args);
  return status ? *status : report(status.error());
}

}  // namespace weft::cli
