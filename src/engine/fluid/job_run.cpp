#include "engine/fluid/job_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "engine/fluid/serving_player.hpp"
#include "engine/fluid/stage.hpp"
#include "engine/fluid/traffic_player.hpp"
#include "engine/jobs/adapt.hpp"

namespace weft::engine::fluid {
namespace {

constexpr std::size_t unfinished_shown = 100;
constexpr std::uint64_t ended_bit = std::uint64_t{1} << 32;  // of a job's timer: its iteration ends
constexpr int serving_shift = 33;  // of the number of a ServingPlayer, above a request's

// One run: the network's only client, which hands each event to whom it belongs.
class JobRun final : Network::Client, TrafficPlayer::Listener {
 public:
  JobRun(std::span<const Job> jobs, std::span<const GraphJob> graphs, Network& network,
         Progress& progress)
      : jobs_(jobs),
        network_(network),
        progress_(progress),
        player_(network, *this),
        states_(jobs.size()) {
    for (const Job& job : jobs) {
      late_.push_back({job.ranks, job.late});
      traffic_.push_back(player_.add(job.traffic));
    }
    for (std::uint32_t g = 0; g < graphs.size(); ++g)
      graphs_.push_back(std::make_unique<GraphRun>(
          graphs[g], g,
          GraphRun::Surroundings{network, player_, steadiness_, [this] { return is_served(); }}));
  }

  Status add(std::span<const ServingJob> serving) {
    for (const ServingJob& job : serving) {
      const std::uint64_t tag = owner_tag(Owner::serving, serving_.size() << serving_shift);
      WEFT_TRY(ServingPlayer player, ServingPlayer::create(job, tag, network_));
      serving_.push_back(std::move(player));
    }
    return {};
  }

  Result<JobRunResult> run() {
    result_.jobs.resize(jobs_.size());
    for (std::uint32_t j = 0; j < jobs_.size(); ++j)
      network_.timer(jobs_[j].start.seconds(), owner_tag(Owner::job, j));
    for (const auto& graph : graphs_) graph->begin();
    for (ServingPlayer& player : serving_) player.begin();
    network_.run(*this);
    WEFT_TRY_STATUS(finish());
    return std::move(result_);
  }

 private:
  struct JobState {
    std::uint32_t iteration = 0;
    double iteration_start_s = 0;
    std::uint32_t adapted_in = 0;        // round of the network's state; 0: not yet
    const Adapted* adapted = nullptr;    // what runs instead of the job's own traffic
    TrafficPlayer::TrafficId traffic{};  // of `adapted`
  };

  void on_timer(std::uint64_t tag) override {
    show_progress();
    active_until_s_ = network_.now();
    const std::uint64_t value = owned_value(tag);
    switch (owner_of(tag)) {
      case Owner::player:
        return player_.on_timer(value);
      case Owner::job:
        if ((value & ended_bit) != 0)
          return end_iteration(static_cast<std::uint32_t>(value & ~ended_bit));
        return begin_iteration(static_cast<std::uint32_t>(value));
      case Owner::graph:
        return graph_of(value).on_timer(value);
      case Owner::graph_collective:
        return graph_of(value).on_played(tag);
      case Owner::front_end:
        return graph_of(value).on_front_end(value);
      case Owner::serving:
        return serving_[value >> serving_shift].on_timer();
    }
  }

  void on_delivered(std::uint64_t tag) override {
    active_until_s_ = network_.now();
    const std::uint64_t value = owned_value(tag);
    if (owner_of(tag) == Owner::player) return player_.on_delivered(value);
    if (owner_of(tag) == Owner::front_end) return graph_of(value).on_front_end(value);
    if (owner_of(tag) == Owner::serving) return serving_[value >> serving_shift].on_delivered(tag);
    graph_of(value).on_delivered(value);
  }

  void on_stage(std::uint64_t token, const workload::Stage& stage, double start_s) override {
    if (owner_of(token) != Owner::job) return;
    const std::uint64_t job = owned_value(token);
    JobResult& result = result_.jobs[job];
    if (result.stages.size() < span_count_max)
      result.stages.push_back({stage.name, states_[job].iteration, start_s, network_.now()});
  }

  void on_played(std::uint64_t token) override {
    if (owner_of(token) == Owner::graph_collective)
      return graph_of(owned_value(token)).on_played(token);
    end_iteration(static_cast<std::uint32_t>(owned_value(token)));
  }

  // Now and then: reading the clock for every event would cost more than the event.
  void show_progress() {
    constexpr std::uint64_t every = 4096;
    if (++events_ % every != 0) return;
    double done = static_cast<double>(iterations_done_);
    for (const auto& graph : graphs_) done += graph->progress();
    progress_.update(done);
  }

  GraphRun& graph_of(std::uint64_t value) { return *graphs_[GraphRun::index_of(value)]; }

  void begin_iteration(std::uint32_t job) {
    JobState& state = states_[job];
    state.iteration_start_s = network_.now();
    if (network_.contention() == NetworkOptions::Contention::off)
      return network_.timer(network_.now() + alone_s(job), owner_tag(Owner::job, job | ended_bit));
    if (jobs_[job].adaptive) adapt_to_state(job);
    player_.play({.traffic = state.adapted ? state.traffic : traffic_[job],
                  .step_overhead = jobs_[job].step_overhead,
                  .cost = state.adapted ? state.adapted->cost : jobs_[job].cost,
                  .message = state.iteration,
                  .late = state.iteration == 0 && !late_[job].late.empty() ? &late_[job] : nullptr,
                  .token = owner_tag(Owner::job, job)});
  }

  void adapt_to_state(std::uint32_t job) {
    JobState& state = states_[job];
    if (state.adapted_in == network_.state_round()) return;
    state.adapted_in = network_.state_round();
    state.adapted = nullptr;
    std::optional<Adapted> found = adapt(jobs_[job], network_.router());
    if (!found) return;
    state.adapted = &adapted_.emplace_back(*std::move(found));
    state.traffic = player_.add(state.adapted->traffic);
    add_adapted_note(jobs_[job], *state.adapted, network_.now(), result_.notes);
  }

  // The collective at the speed of its own hosts, from its last rank's arrival on.
  double alone_s(std::uint32_t job) const {
    Duration last{};
    if (states_[job].iteration == 0)
      for (const Duration late : jobs_[job].late) last = std::max(last, late);
    return last.seconds() + least_seconds(jobs_[job], network_.router());
  }

  void end_iteration(std::uint32_t job) {
    JobState& state = states_[job];
    JobResult& result = result_.jobs[job];
    WEFT_CHECK(!result.finished && state.iteration < jobs_[job].iterations);
    result.iteration_s.push_back(network_.now() - state.iteration_start_s);
    result.end_s = network_.now();
    progress_.update(static_cast<double>(++iterations_done_));
    if (++state.iteration < jobs_[job].iterations) {
      // By timer, so that a thousand empty iterations are a loop and no recursion.
      network_.timer(network_.now(), owner_tag(Owner::job, job));
    } else {
      result.finished = true;
    }
  }

  bool is_served() const { return std::ranges::all_of(serving_, &ServingPlayer::is_over); }
  Status finish();
  Status finish_serving(std::span<const Network::Undelivered> left);
  void find_standstills(std::span<const Network::Undelivered> left);
  std::string unfinished_line(std::uint64_t tag) const;
  std::string why(std::uint64_t tag) const;

  std::span<const Job> jobs_;
  Network& network_;
  Progress& progress_;
  TrafficPlayer player_;
  Steadiness steadiness_;
  std::vector<JobState> states_;
  std::deque<Adapted> adapted_;  // of all jobs; each stays where it is
  std::vector<LateRanks> late_;
  std::vector<TrafficPlayer::TrafficId> traffic_;
  std::vector<std::unique_ptr<GraphRun>> graphs_;
  std::vector<ServingPlayer> serving_;
  std::uint64_t iterations_done_ = 0, events_ = 0;
  double active_until_s_ = 0;  // of the last event of a job; the fabric may change after it
  JobRunResult result_;
};

std::string JobRun::unfinished_line(std::uint64_t tag) const {
  const std::uint64_t value = owned_value(tag);
  if (owner_of(tag) == Owner::graph)
    return graphs_[GraphRun::index_of(value)]->describe_transfer(value);
  if (owner_of(tag) == Owner::front_end) {
    const GraphRun& graph = *graphs_[GraphRun::index_of(value)];
    return fmt::format("job {}: {}", graph.name(), graph.why_front_end(value));
  }
  if (owner_of(tag) == Owner::serving) {
    const ServingPlayer& player = serving_[value >> serving_shift];
    return fmt::format("job {}: {}", player.name(), player.why(tag));
  }
  const TrafficPlayer::Origin origin = player_.origin(value);
  if (owner_of(origin.token) == Owner::graph_collective)
    return graphs_[GraphRun::index_of(owned_value(origin.token))]->describe_play(origin.token);
  const std::uint64_t job = owned_value(origin.token);
  const std::string what = origin.sender.valid()
                               ? "a message of " + network_.fabric().name(origin.sender)
                               : std::string("a transfer");
  return fmt::format("job {}, iteration {}, stage {}: {} has no live path or no bandwidth",
                     jobs_[job].name, states_[job].iteration + 1, origin.stage->name, what);
}

// Of a transfer that is stalled, without the job it belongs to.
std::string JobRun::why(std::uint64_t tag) const {
  const std::uint64_t value = owned_value(tag);
  if (owner_of(tag) == Owner::graph) return graphs_[GraphRun::index_of(value)]->why_transfer(value);
  if (owner_of(tag) == Owner::front_end)
    return graphs_[GraphRun::index_of(value)]->why_front_end(value);
  const TrafficPlayer::Origin origin = player_.origin(value);
  if (owner_of(origin.token) == Owner::graph_collective)
    return graphs_[GraphRun::index_of(owned_value(origin.token))]->why_play(origin.token);
  const std::string path =
      origin.sender.valid() ? describe_dead_path(origin.sender, origin.receiver, network_.router())
                            : describe_dead_path(*origin.stage, network_.router());
  return fmt::format("{} (stage {})", path.empty() ? "a transfer has no bandwidth" : path,
                     origin.stage->name);
}

// The earliest transfer of each job tells when it came to a stop; of equals, that with the lowest
// tag.
void JobRun::find_standstills(std::span<const Network::Undelivered> left) {
  std::vector<const Network::Undelivered*> of_job(jobs_.size()), of_graph(graphs_.size());
  for (const Network::Undelivered& transfer : left) {
    if (owner_of(transfer.tag) == Owner::serving) continue;
    const std::uint64_t value = owned_value(transfer.tag);
    const bool played = owner_of(transfer.tag) == Owner::player;
    const std::uint64_t token = played ? player_.origin(value).token : transfer.tag;
    const auto*& first = owner_of(token) == Owner::job
                             ? of_job[owned_value(token)]
                             : of_graph[GraphRun::index_of(owned_value(token))];
    if (first == nullptr || transfer.since_s < first->since_s) first = &transfer;
  }
  const auto standstill = [&](const Network::Undelivered* first) {
    if (first == nullptr) return Standstill{network_.now(), "no further progress was possible"};
    return Standstill{first->since_s, why(first->tag)};
  };
  // Bytes of what did not end have crossed links too.
  if (!left.empty()) result_.makespan_s = std::max(result_.makespan_s, active_until_s_);
  for (const Network::Undelivered& transfer : left)
    result_.makespan_s = std::max(result_.makespan_s, transfer.since_s);
  for (std::size_t j = 0; j < jobs_.size(); ++j)
    if (!result_.jobs[j].finished) result_.jobs[j].standstill = standstill(of_job[j]);
  for (std::size_t g = 0; g < graphs_.size(); ++g)
    if (!result_.graphs[g].finished) result_.graphs[g].standstill = standstill(of_graph[g]);
}

Status JobRun::finish_serving(std::span<const Network::Undelivered> left) {
  for (std::size_t s = 0; s < serving_.size(); ++s) {
    ServingResult& out = result_.serving.emplace_back();
    WEFT_TRY(out.run, serving_[s].take_result());
    result_.makespan_s = std::max(result_.makespan_s, out.run.end.seconds());
    if (out.run.ended == out.run.requests.size()) continue;
    const Network::Undelivered* first = nullptr;
    for (const Network::Undelivered& transfer : left)
      if (owner_of(transfer.tag) == Owner::serving &&
          owned_value(transfer.tag) >> serving_shift == s &&
          (first == nullptr || transfer.since_s < first->since_s))
        first = &transfer;
    WEFT_CHECK(first != nullptr);  // nothing else holds a request up
    out.standstill = {first->since_s, serving_[s].why(first->tag)};
  }
  return {};
}

Status JobRun::finish() {
  const std::vector<Network::Undelivered> left = network_.undelivered();
  for (const auto& [tag, since_s] : left) {
    if (result_.unfinished.size() == unfinished_shown) {
      result_.unfinished.push_back(fmt::format("... and {} more", left.size() - unfinished_shown));
      break;
    }
    std::string line = unfinished_line(tag);  // rows and streams of one operation say the same
    if (result_.unfinished.empty() || result_.unfinished.back() != line)
      result_.unfinished.push_back(std::move(line));
  }
  result_.link_bytes = network_.link_bytes();
  result_.busiest = network_.busiest_interval();
  Digest digest;
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    JobResult& job = result_.jobs[j];
    job.roofline_s = least_seconds(jobs_[j], network_.router());
    result_.makespan_s = std::max(result_.makespan_s, job.end_s);
    digest.add(jobs_[j].name);
    for (const double s : job.iteration_s) digest.add(from_seconds(s).ps);
  }
  for (const auto& graph : graphs_) {
    result_.graphs.push_back(graph->take_result());
    result_.makespan_s = std::max(result_.makespan_s, result_.graphs.back().end_s);
    for (const double s : result_.graphs.back().iteration_s) digest.add(from_seconds(s).ps);
  }
  WEFT_CHECK(result_.jobs.size() == jobs_.size() && result_.graphs.size() == graphs_.size());
  find_standstills(left);
  WEFT_TRY_STATUS(finish_serving(left));
  result_.hot_links = hottest_links(result_.link_bytes, result_.makespan_s, graphs_, network_);
  result_.transfer_times = player_.transfer_times();
  result_.rate_error = network_.simulation().rate_error();
  result_.counters = network_.simulation().counters();
  for (const double bytes : result_.link_bytes)
    digest.add(static_cast<std::int64_t>(std::llround(bytes)));
  result_.digest = digest.hex();
  return {};
}

}  // namespace

JobRunResult run_jobs(std::span<const Job> jobs, std::span<const GraphJob> graphs, Router& router,
                      std::span<const StateChange> changes, const NetworkOptions& options,
                      Progress& progress) {
  return run_work({jobs, graphs}, router, changes, options, progress).value();
}

Result<JobRunResult> run_work(const Work& work, Router& router,
                              std::span<const StateChange> changes, const NetworkOptions& options,
                              Progress& progress) {
  Network network(router, changes, options);
  JobRun run(work.jobs, work.graphs, network, progress);
  WEFT_TRY_STATUS(run.add(work.serving));
  return run.run();
}

Result<RunResult> FluidEngine::run(const Work& work, Router& router,
                                   std::span<const StateChange> changes, const Watch& watch) const {
  double iterations = 0;  // of graphs that run until they are steady two or more, not known before
  for (const Job& job : work.jobs) iterations += job.iterations;
  for (const GraphJob& job : work.graphs)
    iterations += job.stop == GraphJob::Stop::counted ? job.iterations : 1;
  Progress progress(watch.name, iterations, watch.show);
  NetworkOptions watched = options;
  watched.simulation.load_windows = watch.load_windows;
  watched.simulation.limits = watch.limits && options.contention == NetworkOptions::Contention::on;
  std::optional<FailureLog> failures;
  if (router.config().convergence) watched.failures = &failures.emplace(router.fabric(), changes);
  WEFT_TRY(JobRunResult result, run_work(work, router, changes, watched, progress));
  if (failures) result.failures = failures->take_outcomes();
  const double tolerance = options.simulation.solver.tolerance;
  if (tolerance > 0)
    result.notes.push_back(
        {model::Note::Severity::info,
         fmt::format(
             "rate levels that change by less than {:g} are kept; worst rate error seen: {:.2e}",
             tolerance, result.rate_error)});
  return static_cast<RunResult&&>(std::move(result));
}

}  // namespace weft::engine::fluid
