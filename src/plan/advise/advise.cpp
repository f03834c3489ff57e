#include "plan/advise/advise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "model/fabric/zones.hpp"
#include "model/work/outcome.hpp"
#include "plan/run/jobs.hpp"
#include "plan/run/placement.hpp"
#include "plan/run/setup.hpp"
#include "workload/parallel/step_cost.hpp"

namespace weft::plan::advise {
namespace {

using model::Fabric;
using model::ScopeId;
using model::ScopeKind;

// A job where it stands.
struct Placed {
  std::string name;
  std::vector<NodeId> ranks;
  std::optional<TrainingSpec> training;
  std::size_t item = 0;  // of jobs:
};

std::vector<Placed> placed_jobs(const Jobs& jobs) {
  std::vector<Placed> out;
  for (const Jobs::Entry entry : jobs.order) {
    if (entry.kind == Jobs::Entry::Kind::graph) {
      const PlacedGraph& graph = jobs.graphs[entry.index];
      out.push_back({graph.name, graph.ranks, graph.training, out.size()});
    } else {
      const engine::Job& job = jobs.collectives[entry.index].job;
      out.push_back({job.name, job.ranks, {}, out.size()});
    }
  }
  return out;
}

// Hosts that faults of the start touch: themselves, their GPUs and NICs, or a cable of these.
std::set<NodeId> struck_hosts(const Setup& setup) {
  std::set<NodeId> out;
  const Fabric& fabric = setup.fabric;
  const auto add = [&](NodeId node) {
    const NodeId host = fabric.kind(node) == model::NodeKind::host ? node : fabric.host_of(node);
    if (host.valid()) out.insert(host);
  };
  for (const auto& change : setup.changes) {
    if (change.at.ps > 0) break;
    out.clear();
    for (const auto& [node, condition] : change.state.troubled_nodes()) add(node);
    for (const auto& [link, condition] : change.state.troubled_links()) {
      add(fabric.from(link));
      add(fabric.to(link));
    }
  }
  return out;
}

class Adviser {
 public:
  Adviser(const model::Scenario& scenario, const Setup& setup, std::vector<Placed> jobs,
          const Options& options)
      : scenario_(scenario),
        fabric_(setup.fabric),
        options_(options),
        jobs_(std::move(jobs)),
        struck_(struck_hosts(setup)) {
    if (const auto zone = model::zone_kind(fabric_)) zone_ = *zone;
  }

  Result<Advice> run() {
    Advice out;
    for (const NodeId host : struck_) out.struck.push_back(fabric_.name(host));
    for (std::uint32_t i = 0; i < options_.moves; ++i) {
      WEFT_TRY(Round round, ask());
      const bool moves = round.moves();
      if (moves) carry_out(round.candidates.front());
      out.rounds.push_back(std::move(round));
      if (!moves) break;
    }
    return out;
  }

 private:
  // Every job's hosts are free to it, but not the struck ones; those of others are taken.
  std::vector<NodeId> free_hosts(const Placed& own) const {
    std::set<NodeId> taken = struck_;
    for (const Placed& job : jobs_)
      if (job.item != own.item)
        for (const NodeId gpu : job.ranks) taken.insert(fabric_.host_of(gpu));
    std::vector<NodeId> out;
    for (const NodeId host : fabric_.hosts())
      if (!taken.contains(host)) out.push_back(host);
    return out;
  }

  // How far a spare is from the host it replaces.
  int distance(NodeId a, NodeId b) const {
    if (fabric_.enclosing(a, ScopeKind::rack) == fabric_.enclosing(b, ScopeKind::rack)) return 0;
    return fabric_.enclosing(a, zone_) == fabric_.enclosing(b, zone_) ? 1 : 2;
  }

  std::optional<std::vector<NodeId>> with_spares(const Placed& job) const {
    std::set<NodeId> own;
    for (const NodeId gpu : job.ranks) own.insert(fabric_.host_of(gpu));
    std::vector<NodeId> spares = free_hosts(job);
    std::erase_if(spares, [&](NodeId host) { return own.contains(host); });
    std::map<NodeId, NodeId> replaced;
    for (const NodeId host : own) {
      if (!struck_.contains(host)) continue;
      const auto nearest =
          std::ranges::min_element(spares, {}, [&](NodeId spare) { return distance(host, spare); });
      if (nearest == spares.end()) return std::nullopt;
      replaced[host] = *nearest;
      spares.erase(nearest);
    }
    if (replaced.empty()) return std::nullopt;
    std::vector<NodeId> out = job.ranks;
    for (NodeId& gpu : out) {
      const auto it = replaced.find(fabric_.host_of(gpu));
      if (it == replaced.end()) continue;
      const auto from = fabric_.gpus_of(it->first), to = fabric_.gpus_of(it->second);
      const auto local = static_cast<std::size_t>(std::ranges::find(from, gpu) - from.begin());
      if (local >= to.size()) return std::nullopt;
      gpu = to[local];
    }
    return out;
  }

  std::optional<std::vector<NodeId>> fitted(const Placed& job) const {
    const std::vector<NodeId> list = free_hosts(job);
    const std::set<NodeId> free(list.begin(), list.end());
    Placer placer(fabric_);
    std::vector<std::string> names;
    for (const NodeId gpu : fabric_.gpus())
      if (!free.contains(fabric_.host_of(gpu))) names.push_back(fabric_.name(gpu));
    std::vector<Token> tokens;
    for (const std::string& name : names) tokens.push_back({name, {}});
    if (!placer.place_list(tokens)) return std::nullopt;
    std::optional<model::StepCost> cost;
    if (job.training)
      if (auto known =
              workload::step_cost(job.training->model, job.training->plan, job.training->gpu))
        cost = *std::move(known);
    std::string note;
    auto out = placer.place_fitted(job.ranks.size(), cost ? &*cost : nullptr,
                                   Rng(scenario_.seed).stream("advise"), {}, note);
    if (!out || *out == job.ranks) return std::nullopt;
    return *std::move(out);
  }

  // The scenario with all jobs where they stand, `moved` elsewhere.
  Result<model::Scenario> scenario_with(const Placed* moved,
                                        const std::vector<NodeId>& ranks) const {
    model::Scenario out = scenario_;
    Config jobs = scenario_.section("jobs");
    for (const Placed& job : jobs_) {
      Config& item = jobs.items[job.item];
      item.at_or_add("place") = Config::scalar("list");
      Config list = Config::list();
      for (const NodeId gpu : moved != nullptr && moved->item == job.item ? ranks : job.ranks)
        list.items.push_back(Config::scalar(fabric_.name(gpu)));
      item.at_or_add("ranks") = std::move(list);
    }
    WEFT_TRY_STATUS(out.set("jobs", jobs));
    return out;
  }

  Candidate candidate(const Placed& job, const char* how, const std::vector<NodeId>& ranks) const {
    Candidate out{.job = job.name, .how = how};
    std::set<NodeId> before, after;
    for (const NodeId gpu : job.ranks) before.insert(fabric_.host_of(gpu));
    for (const NodeId gpu : ranks) after.insert(fabric_.host_of(gpu));
    for (const NodeId host : before)
      if (!after.contains(host)) out.leaves.push_back(fabric_.name(host));
    for (const NodeId host : after)
      if (!before.contains(host)) out.takes.push_back(fabric_.name(host));
    for (const NodeId gpu : ranks) out.ranks.push_back(fabric_.name(gpu));
    return out;
  }

  Result<Round> ask() const {
    Round round;
    model::ScenarioFile file;
    std::vector<std::size_t> moved;  // the job of each candidate
    WEFT_TRY(model::Scenario stay, scenario_with(nullptr, {}));
    stay.name = "stay";
    file.variants.push_back(std::move(stay));
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      const auto spares = with_spares(jobs_[j]), fit = fitted(jobs_[j]);
      const auto add = [&](const char* how, const std::vector<NodeId>& ranks) -> Status {
        WEFT_TRY(model::Scenario scenario, scenario_with(&jobs_[j], ranks));
        scenario.name = fmt::format("{}: {}", jobs_[j].name, how);
        file.variants.push_back(std::move(scenario));
        round.candidates.push_back(candidate(jobs_[j], how, ranks));
        moved.push_back(j);
        return {};
      };
      if (spares) WEFT_TRY_STATUS(add("spare hosts", *spares));
      if (fit && fit != spares) WEFT_TRY_STATUS(add("fitted", *fit));
    }
    WEFT_TRY(const model::Outcome outcome, run_scenario(file, options_.run));
    round.estimate = outcome.variants.front().estimate;
    std::vector<std::vector<double>> times;
    for (const model::VariantOutcome& variant : outcome.variants) {
      times.emplace_back();
      for (const model::JobOutcome& job : variant.jobs) times.back().push_back(model::time_of(job));
    }
    for (std::size_t j = 0; j < jobs_.size(); ++j)
      round.stay.push_back({jobs_[j].name, jobs_[j].ranks.size(), times[0][j]});
    for (std::size_t c = 0; c < round.candidates.size(); ++c)
      rate(times, c, moved[c], round.candidates[c]);
    std::ranges::stable_sort(round.candidates, std::greater{}, &Candidate::gain_gpu_hours);
    return round;
  }

  // Work is counted at the best pace that any candidate gives a job; one that never ends does none.
  void rate(const std::vector<std::vector<double>>& times, std::size_t c, std::size_t moved,
            Candidate& out) const {
    const double horizon = options_.horizon.seconds(), lost = options_.move.seconds();
    const std::vector<double>&stay = times[0], &then = times[c + 1];
    for (std::size_t j = 0; j < stay.size(); ++j) {
      double best = model::no_number;
      for (const auto& row : times)
        if (!std::isnan(row[j]) && !(row[j] >= best)) best = row[j];
      if (std::isnan(best)) continue;
      const double gpu_hours = static_cast<double>(jobs_[j].ranks.size()) / 3600;
      const auto work = [&](double step, double span) {
        return std::isnan(step) ? 0 : gpu_hours * std::max(0.0, span) * best / step;
      };
      out.gain_gpu_hours +=
          work(then[j], j == moved ? horizon - lost : horizon) - work(stay[j], horizon);
    }
    out.stay_s = stay[moved];
    out.moved_s = then[moved];
    if (std::isnan(out.moved_s))
      out.pays_after_s = model::no_number;
    else if (std::isnan(out.stay_s))
      out.pays_after_s = lost;
    else
      out.pays_after_s = out.moved_s < out.stay_s ? lost * out.stay_s / (out.stay_s - out.moved_s)
                                                  : model::no_number;
  }

  void carry_out(const Candidate& best) {
    for (Placed& job : jobs_) {
      if (job.name != best.job) continue;
      for (std::size_t r = 0; r < job.ranks.size(); ++r)
        job.ranks[r] = fabric_.find_node({best.ranks[r], {}}).value();
    }
  }

  const model::Scenario& scenario_;
  const Fabric& fabric_;
  const Options& options_;
  std::vector<Placed> jobs_;
  std::set<NodeId> struck_;
  ScopeKind zone_ = ScopeKind::zone;
};

}  // namespace

Result<Advice> advise(const model::Scenario& scenario, const Options& options) {
  WEFT_TRY(const Setup setup, read_setup(scenario));
  const Config& section = scenario.section("jobs");
  if (section.kind == Config::Kind::null)
    return fail(Errc::parse, scenario.root.where, "the scenario has no jobs",
                "add \"jobs:\" with the jobs that run, and where (place: list)");
  WEFT_TRY(const Jobs jobs, read_jobs(setup, section, scenario.seed));
  std::vector<Placed> placed = placed_jobs(jobs);
  if (placed.size() != section.items.size())
    return fail(Errc::unsupported, section.where,
                "a row of jobs: describes several jobs, which would move independently",
                "write one row for each job");
  return Adviser(scenario, setup, std::move(placed), options).run();
}

}  // namespace weft::plan::advise
