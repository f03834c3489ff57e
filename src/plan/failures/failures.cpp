#include "plan/failures/failures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <set>

#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "plan/run/run.hpp"
#include "plan/run/setup.hpp"

namespace weft::plan::failures {
namespace {

using model::Fabric;
using model::NodeKind;
using model::Scenario;

bool is_network(NodeKind kind) { return kind == NodeKind::nic || kind == NodeKind::fabric_switch; }

// NICs that two or more cables join to switches: elsewhere a NIC fails as its cable does.
std::vector<Fault> nics_with_several_cables(const Fabric& fabric) {
  std::vector<Fault> out;
  for (const model::NodeId nic : fabric.nics()) {
    const auto links = fabric.out(nic);
    const auto to_network = std::ranges::count_if(links, [&](model::LinkId link) {
      return fabric.kind(fabric.to(link)) == NodeKind::fabric_switch;
    });
    if (to_network > 1) out.push_back({"nic_down", "nic", fabric.name(nic)});
  }
  return out;
}

// A failure is one fault of a role, or one each of two.
struct Drawn {
  std::size_t row;
  std::vector<const Fault*> faults;
};

// `count` different numbers below `of`, ascending.
std::vector<std::uint64_t> draw(std::uint64_t of, std::uint64_t count, Rng rng) {
  std::set<std::uint64_t> chosen;  // Floyd's algorithm
  for (std::uint64_t j = of - std::min(of, count); j < of; ++j) {
    const std::uint64_t at = rng.below(j + 1);
    chosen.insert(chosen.contains(at) ? j : at);
  }
  return {chosen.begin(), chosen.end()};
}

class Plan {
 public:
  Plan(const std::vector<Role>& roles, const Options& options) : options_(options) {
    for (const Role& role : roles)
      add(role.name, role.faults.size(),
          [&](std::uint64_t at) { return std::vector{&role.faults[at]}; });
    if (!options.pairs) return;
    for (std::size_t a = 0; a < roles.size(); ++a)
      for (std::size_t b = a; b < roles.size(); ++b)
        if (roles[a].name != "host" && roles[b].name != "host")
          add_pairs(roles[a], roles[b], a == b);
  }

  std::vector<Row> rows;
  std::vector<Drawn> drawn;

 private:
  template <class Choose>
  void add(std::string name, std::uint64_t of, const Choose& choose) {
    if (of == 0) return;
    const Rng rng = Rng(options_.seed).stream("failures").stream(name);
    for (const std::uint64_t at : draw(of, options_.samples, rng))
      drawn.push_back({rows.size(), choose(at)});
    const std::uint64_t ran = std::min<std::uint64_t>(of, options_.samples);
    rows.push_back({.role = std::move(name), .of = of});
    if (ran < of) rows.back().unseen_share = 1 - std::pow(0.05, 1.0 / static_cast<double>(ran));
  }

  // Of one role with itself: number k is the pair (a, b), a < b, with k = b (b - 1) / 2 + a.
  void add_pairs(const Role& first, const Role& second, bool is_same) {
    const std::uint64_t n = first.faults.size(), m = second.faults.size();
    add(fmt::format("{} + {}", first.name, second.name), is_same ? n * (n - 1) / 2 : n * m,
        [&](std::uint64_t k) {
          if (!is_same) return std::vector{&first.faults[k / m], &second.faults[k % m]};
          auto b = static_cast<std::uint64_t>((1 + std::sqrt(1 + 8 * static_cast<double>(k))) / 2);
          while (b * (b - 1) / 2 > k) --b;
          while ((b + 1) * b / 2 <= k) ++b;
          return std::vector{&first.faults[k - b * (b - 1) / 2], &first.faults[b]};
        });
  }

  const Options& options_;
};

model::ScenarioFile with_faults(const Scenario& scenario, const std::vector<const Fault*>& faults) {
  model::ScenarioFile file{.variants = {scenario}, .sweep = {}};
  Config& list = file.variants[0].root.at_or_add("faults");
  if (list.kind == Config::Kind::null) list = Config::list();
  for (const Fault* fault : faults) {
    Config entry = Config::map();
    entry.at_or_add("kind") = Config::scalar(fault->kind);
    entry.at_or_add(fault->key) = Config::scalar(fault->name);
    list.items.push_back(std::move(entry));
  }
  return file;
}

Run run_of(const std::vector<const Fault*>& faults, const model::VariantOutcome& outcome) {
  Run run;
  for (const Fault* fault : faults) run.failed += (run.failed.empty() ? "" : " + ") + fault->name;
  for (const model::JobOutcome& job : outcome.jobs) {
    run.seconds.push_back(model::time_of(job));
    if (job.unfinished && run.stopped.empty()) run.stopped = job.unfinished->why;
  }
  return run;
}

Effect effect_of(const std::string& job, std::size_t j, const std::vector<Run>& runs) {
  Effect out{.job = job};
  std::vector<double> times;
  for (const Run& run : runs) {
    const double seconds = run.seconds[j];
    if (std::isnan(seconds)) {
      if (out.stops++ == 0) out.worst = run.failed;
      continue;
    }
    times.push_back(seconds);
    if (!std::isnan(out.worst_s) && seconds <= out.worst_s) continue;
    out.worst_s = seconds;
    if (out.stops == 0) out.worst = run.failed;
  }
  if (times.empty()) return out;
  double sum = 0;
  for (const double t : times) sum += t;
  out.mean_s = sum / static_cast<double>(times.size());
  std::ranges::sort(times);
  const std::size_t half = times.size() / 2;
  out.median_s = times.size() % 2 == 1 ? times[half] : (times[half - 1] + times[half]) / 2;
  return out;
}

// Every drawn failure on its own; the first error in order of failures.
Status run_all(const Scenario& scenario, const Options& options, Plan& plan) {
  std::vector<weft::Result<Run>> runs(plan.drawn.size());
  Progress progress("failures", static_cast<double>(runs.size()), options.progress);
  std::mutex mutex;
  std::size_t ended = 0;
  parallel_for(runs.size(), options.threads, [&](std::size_t i) {
    const std::vector<const Fault*>& faults = plan.drawn[i].faults;
    const auto outcome = run_scenario(with_faults(scenario, faults), {});
    if (outcome)
      runs[i] = run_of(faults, outcome->variants.front());
    else
      runs[i] = std::unexpected(outcome.error());
    const std::lock_guard lock(mutex);
    progress.update(static_cast<double>(++ended));
  });
  progress.finish();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i]) return std::unexpected(runs[i].error());
    plan.rows[plan.drawn[i].row].runs.push_back(*std::move(runs[i]));
  }
  return {};
}

}  // namespace

std::vector<Role> roles_of(const Fabric& fabric, bool hosts) {
  std::vector<Role> out;
  for (const Fabric::Role& role : fabric.roles()) {
    if (role.kind != NodeKind::fabric_switch) continue;
    Role& switches = out.emplace_back(Role{role.name, {}});
    for (const model::NodeId node : role.nodes)
      switches.faults.push_back({"switch_down", "switch", fabric.name(node)});
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, Role> cables;
  for (const model::CableId cable : ids<model::CableId>(fabric.cable_count())) {
    const model::LinkId link = model::forward(cable);
    const model::NodeId a = fabric.from(link), b = fabric.to(link);
    if (!is_network(fabric.kind(a)) || !is_network(fabric.kind(b))) continue;
    const auto [low, high] = std::minmax({fabric.role_id(a), fabric.role_id(b)});
    Role& role = cables[{low.value, high.value}];
    if (role.name.empty())
      role.name = fmt::format("{}--{}", fabric.role_name(a), fabric.role_name(b));
    role.faults.push_back({"link_down", "link", fabric.name(cable)});
  }
  for (auto& [roles, role] : cables) out.push_back(std::move(role));
  if (auto nics = nics_with_several_cables(fabric); !nics.empty())
    out.push_back({"nic", std::move(nics)});
  if (!hosts) return out;
  Role& all = out.emplace_back(Role{"host", {}});
  for (const model::NodeId host : fabric.hosts())
    all.faults.push_back({"host_down", "host", fabric.name(host)});
  return out;
}

weft::Result<Result> run(const Scenario& scenario, const Options& options) {
  WEFT_TRY(const model::Outcome healthy, run_scenario(with_faults(scenario, {}), {}));
  Result out{.scenario = healthy.scenario};
  out.estimate = healthy.variants.front().estimate;
  for (const model::JobOutcome& job : healthy.variants.front().jobs) {
    if (job.unfinished)
      return fail(Errc::value, {scenario.file, 0, 0},
                  fmt::format("job {} does not end as it is: {}", job.name, job.unfinished->why),
                  "mend the scenario first");
    out.jobs.push_back(job.name);
    out.healthy_s.push_back(model::time_of(job));
  }
  WEFT_TRY(const Setup setup, read_setup(scenario));
  const std::vector<Role> roles = roles_of(setup.fabric, options.hosts);
  Plan plan(roles, options);
  WEFT_TRY_STATUS(run_all(scenario, options, plan));
  out.rows = std::move(plan.rows);
  for (Row& row : out.rows)
    for (std::size_t j = 0; j < out.jobs.size(); ++j)
      row.effects.push_back(effect_of(out.jobs[j], j, row.runs));
  return out;
}

}  // namespace weft::plan::failures
