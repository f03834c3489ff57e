#include "engine/packet_jobs/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/hash.hpp"
#include "engine/jobs/adapt.hpp"
#include "engine/jobs/busiest.hpp"
#include "engine/jobs/stage_cost.hpp"
#include "engine/packet/loads.hpp"
#include "engine/packet/packet_run.hpp"
#include "engine/packet_jobs/estimate.hpp"
#include "engine/packet_jobs/graph.hpp"
#include "engine/packet_jobs/lowering.hpp"
#include "engine/packet_jobs/totals.hpp"

namespace weft::engine::packet {
namespace {

constexpr std::size_t unfinished_shown = 100;

double payload_of(const MessageSet& set) {
  double sum = 0;
  for (const Message& message : set.messages) sum += static_cast<double>(message.bytes);
  return sum;
}

void add_transfers(const MessageSet& set, std::span<const MessageEnd> ends,
                   engine::TimeHistogram& out) {
  for (std::size_t m = 0; m < ends.size(); ++m)
    if (set.messages[m].bytes > 0 && ends[m].end != never)
      out.add(seconds(ends[m].end - ends[m].start));
}

// The fabric's states as seen from `start` on.
std::vector<StateChange> changes_from(std::span<const StateChange> changes, Ps start) {
  std::vector<StateChange> out;
  for (const StateChange& change : changes) {
    const auto at = static_cast<Ps>(std::max<std::int64_t>(change.at.ps, 0));
    if (at <= start) {
      out.assign(1, {Time{}, change.state});
    } else {
      out.push_back({Time{static_cast<std::int64_t>(at - start)}, change.state});
    }
  }
  return out;
}

bool loses_packets(std::span<const StateChange> changes) {
  return std::ranges::any_of(changes, [](const StateChange& change) {
    return std::ranges::any_of(change.state.troubled_links(),
                               [](const auto& link) { return link.second.loss > 0; });
  });
}

// Where an iteration lies in a run.
struct Place {
  const LoweredJob& lowered;
  std::uint32_t index;   // in the run
  std::uint32_t number;  // of the job
  std::size_t first_part() const { return std::size_t{index} * (lowered.stages + 1); }
};

// A part's first start and last arrival.
struct Extent {
  Ps start = never, end = 0;
  bool ended = true;
};

Extent extent_of(const LoweredJob& lowered, std::size_t part, std::span<const MessageEnd> ends) {
  Extent out;
  for (MessageId m = lowered.first[part]; m < lowered.first[part + 1]; ++m) {
    out.start = std::min(out.start, ends[m].start);
    out.end = std::max(out.end, ends[m].arrived);
  }
  out.ended = out.end != never;
  return out;
}

// Whether GPUs are slow in some state after the first.
bool speeds_change(std::span<const StateChange> changes) {
  return std::ranges::any_of(changes, [](const StateChange& change) {
    return change.at.ps > 0 &&
           std::ranges::any_of(change.state.troubled_nodes(),
                               [](const auto& node) { return node.second.slowdown > 1; });
  });
}

// The busiest links between NICs and switches; whose bytes they carried is not known.
std::vector<model::HotLink> hot_links(const Fabric& fabric, std::span<const double> link_bytes,
                                      double makespan_s) {
  constexpr std::size_t kept = 10;
  std::vector<model::HotLink> out;
  for (const model::LinkId link : fabric.links()) {
    const double bytes = link_bytes[link.index()];
    if (!fabric.on_wire(link) || bytes <= 0 || makespan_s <= 0) continue;
    const double load = bytes / (fabric.rate(link).bytes_per_s() * makespan_s);
    out.push_back({.link = fabric.name(link), .bytes = bytes, .load = load, .flows = {}});
  }
  std::ranges::stable_sort(out, std::greater<>{}, &model::HotLink::load);
  if (out.size() > kept) out.resize(kept);
  return out;
}

class PacketJobs {
 public:
  PacketJobs(const Work& work, route::Router& router, std::span<const StateChange> changes,
             const PacketEngine& engine, double share, const Watch& watch)
      : jobs_(work.jobs),
        graphs_(work.graphs),
        router_(router),
        changes_(changes),
        options_(engine.options),
        memoise_(engine.memoise),
        share_(share),
        estimate_(engine.estimate),
        watch_(watch),
        is_chancy_((options_.balance != Balance::path && options_.balance != Balance::multipath) ||
                   options_.ecn.on || loses_packets(changes)),
        totals_(router.fabric()) {
    if (router.config().convergence) failures_.emplace(router.fabric(), changes);
    out_.jobs.resize(jobs_.size());
  }

  Result<RunResult> run() {
    const std::vector<Job> adapted = adapt_jobs();
    if (!adapted.empty()) jobs_ = adapted;
    const std::span<const Job> whole = jobs_;
    std::vector<Job> jobs;
    std::vector<GraphJob> graphs;
    if (is_estimate()) {
      for (const Job& job : jobs_) jobs.push_back(scaled(share_, job));
      for (const GraphJob& graph : graphs_) graphs.push_back(scaled(share_, graph));
      jobs_ = jobs;
      graphs_ = graphs;
    }
    const bool alone =
        jobs_.size() == 1 && graphs_.empty() && options_.congestion == Congestion::none;
    WEFT_TRY_STATUS(alone ? run_apart() : run_together());
    return finish(whole);
  }

 private:
  bool is_estimate() const { return estimate_ < 1; }
  // A simulated iteration of a job that is alone, which later ones may be equal to.
  struct Known {
    PacketRunResult run;
    Ps duration = never;                  // when it did not end
    std::vector<JobResult::Span> stages;  // from its start
    engine::TimeHistogram transfers;
    std::uint64_t repeats = 0;
  };
  // The state of the fabric, and the messages' turns on QPs.
  using Likeness = std::pair<std::ptrdiff_t, std::uint32_t>;

  // Messages of one job or graph, in a run that began at `start`.
  struct Messages {
    const MessageSet& set;
    std::span<const MessageEnd> ends;
    MessageId first, last;
    Ps start;
  };

  std::vector<Job> adapt_jobs();
  Result<std::vector<LoweredJob>> lower_jobs(MessageGraph& graph);
  Result<std::vector<LoweredGraph>> lower_graphs(MessageGraph& graph);
  Status check_circles(const MessageSet& set, std::span<const LoweredGraph> lowered) const;
  void announce(const MessageSet& set, Progress& progress);
  Status run_together();
  void fold_jobs(std::span<const LoweredJob> lowered, const MessageSet& set,
                 std::span<const MessageEnd> ends);
  void fold_graphs(std::span<const LoweredGraph> lowered, const MessageSet& set,
                   std::span<const MessageEnd> ends);
  std::optional<BusyInterval> busiest() const;
  Status run_apart();
  Result<Known> run_iteration(std::uint32_t iteration, Ps start);
  Result<PacketRunResult> simulate(const MessageSet& set, Ps start, std::uint32_t iteration);
  Result<PacketRunResult> simulate_graphs(const MessageSet& set,
                                          std::span<const LoweredGraph> lowered);
  Likeness likeness(std::uint32_t iteration, Ps start) const;
  std::ptrdiff_t changes_until(Ps time) const;
  bool changes_within(Ps from, Ps to) const;
  std::optional<Ps> fold(std::size_t job, const Place& place, std::span<const MessageEnd> ends,
                         std::vector<JobResult::Span>& spans) const;
  void end_iteration(std::size_t job, Ps start, Ps end);
  void add_unfinished(std::size_t job, const Place& place, const Messages& messages);
  void add_line(std::string line);
  std::string why(const Connection& connection);
  bool has_path(const Connection& connection);
  engine::Standstill standstill(const Messages& messages);
  void add_note(std::string text) {
    out_.notes.push_back({model::Note::Severity::info, std::move(text)});
  }
  void add_warnings(const model::PacketOutcome& packet);
  RunResult finish(std::span<const Job> whole);

  std::span<const Job> jobs_;
  std::span<const GraphJob> graphs_;
  route::Router& router_;
  std::span<const StateChange> changes_;
  const Options& options_;
  Memoise memoise_;
  double share_;     // of the work that runs
  double estimate_;  // the largest share that runs; 1: no estimate
  const Watch& watch_;
  bool is_chancy_;
  PacketTotals totals_;
  Digest digest_;
  std::size_t unfinished_ = 0;
  std::uint32_t simulations_ = 1;  // of a set of messages
  bool is_announced_ = false;
  std::optional<engine::FailureLog> failures_;
  LinkLoads loads_;  // of the whole run
  RunResult out_;
};

Result<PacketRunResult> PacketJobs::simulate(const MessageSet& set, Ps start,
                                             std::uint32_t iteration) {
  Options engine = options_;
  engine.load_windows = watch_.load_windows;
  if (engine.end != never) engine.end -= std::min(engine.end, start);
  if (is_chancy_ && iteration > 0) engine.seed = mix64(engine.seed + iteration);
  Progress progress(watch_.name, payload_of(set), watch_.show);
  announce(set, progress);
  const std::vector<StateChange> changes = changes_from(changes_, start);
  WEFT_TRY(PacketRunResult run, run_messages(set, router_, changes, engine, progress,
                                             failures_ ? &*failures_ : nullptr, start));
  totals_.add(run, start);
  return run;
}

// Once a run, for all of it; phases that recur will take less.
void PacketJobs::announce(const MessageSet& set, Progress& progress) {
  if (is_announced_) return;
  is_announced_ = true;
  if (!is_estimate())
    return announce_hops(set, router_, options_, simulations_, progress,
                         "; engine.estimate extrapolates from a part");
  constexpr double with_smaller = 1.75;  // runs, in those of the largest part
  if (share_ == estimate_)
    announce_hops(set, router_, options_, simulations_ * with_smaller, progress);
}

// Operation graphs alone: phase by phase, unless not all of it ends.
Result<PacketRunResult> PacketJobs::simulate_graphs(const MessageSet& set,
                                                    std::span<const LoweredGraph> lowered) {
  if (!phases_apply(options_, changes_)) return simulate(set, 0, 0);
  std::vector<Phase> phases;
  for (const LoweredGraph& graph : lowered)
    phases.insert(phases.end(), graph.phases.begin(), graph.phases.end());
  Options engine = options_;
  engine.load_windows = watch_.load_windows;
  const Repeat repeat = memoise_ == Memoise::on ? Repeat::replayed : Repeat::simulated;
  Progress progress(watch_.name, payload_of(set), watch_.show);
  announce(set, progress);
  PhaseCounts counts;
  WEFT_TRY(std::optional<PacketRunResult> run,
           run_phases(set, phases, router_, changes_, engine, repeat, progress, counts));
  if (!run) return simulate(set, 0, 0);
  totals_.add(*run, 0);
  if (counts.repeated > 0)
    add_note(
        fmt::format("{} of {} phases (calls of collectives, messages between stages) repeat "
                    "earlier ones exactly and were not simulated again: {} of {} packet hops "
                    "were simulated",
                    counts.repeated, counts.phases, counts.hops_simulated, run->counters.hops));
  return std::move(*run);
}

// With adaptive libraries: the jobs as they run in the first state, which the router is in then.
std::vector<Job> PacketJobs::adapt_jobs() {
  if (!router_.config().weigh_qps) return {};
  for (const StateChange& change : changes_)
    if (change.at.ps <= 0) router_.set_state(change.state);
  std::vector<Job> out(jobs_.begin(), jobs_.end());
  for (Job& job : out) {
    std::optional<engine::Adapted> adapted = engine::adapt(job, router_);
    if (!adapted) continue;
    engine::add_adapted_note(job, *adapted, 0, out_.notes);
    job.traffic = std::move(adapted->traffic);
    job.cost = adapted->cost;
  }
  if (!changes_.empty() && changes_.back().at.ps > 0)
    add_note(
        "adaptive: on the packet engine algorithms and channels are chosen for the fabric as it is "
        "at the start, and the shares of QPs where a job's messages are made");
  return out;
}

Result<std::vector<LoweredJob>> PacketJobs::lower_jobs(MessageGraph& graph) {
  double count = 0;
  for (const Job& job : jobs_)
    count += message_count(job.traffic, job.ranks.size(), router_) * job.iterations;
  WEFT_TRY_STATUS(check_message_count(count));
  std::vector<LoweredJob> out;
  for (const Job& job : jobs_) {
    WEFT_TRY(LoweredJob added, lower_collective({.traffic = job.traffic,
                                                 .ranks = job.ranks,
                                                 .step_overhead = job.step_overhead,
                                                 .cost = job.cost,
                                                 .start = job.start,
                                                 .late = job.late,
                                                 .iterations = job.iterations,
                                                 .is_part = is_estimate()},
                                                router_, graph));
    out.push_back(std::move(added));
  }
  return out;
}

Result<std::vector<LoweredGraph>> PacketJobs::lower_graphs(MessageGraph& graph) {
  const model::State healthy;
  const model::State* initial = &healthy;
  for (const StateChange& change : changes_)
    if (change.at.ps <= 0) initial = &change.state;
  std::vector<LoweredGraph> out;
  for (const GraphJob& job : graphs_) {
    WEFT_TRY(LoweredGraph added, lower_graph(job, *initial, router_, graph.size(), graph, share_));
    out.push_back(std::move(added));
    if (job.overlap_slowdown > 1)
      add_note(
          fmt::format("{}: communication does not slow the compute beside it on "
                      "the packet engine; on the fluid engine by a factor of {:.3g}",
                      job.name, job.overlap_slowdown));
    if (job.stop == GraphJob::Stop::steady)
      add_note(fmt::format("{}: {} steps were run; \"repeat:\" requests more", job.name,
                           out.back().iterations));
  }
  if (!graphs_.empty() && speeds_change(changes_))
    add_note(
        "GPU speed stays as at the start: the packet engine does not follow faults that slow GPUs "
        "later, or that end");
  return out;
}

// Collectives never wait in circles; operations that a stream runs in the order of the file can.
Status PacketJobs::check_circles(const MessageSet& set,
                                 std::span<const LoweredGraph> lowered) const {
  if (lowered.empty()) return {};
  const std::vector<bool> runs = reachable(set);
  for (std::size_t g = 0; g < lowered.size(); ++g)
    for (std::uint32_t o = 0; o < lowered[g].operations; ++o) {
      if (runs[lowered[g].ready[o]]) continue;
      const auto next = std::ranges::upper_bound(lowered[g].first, o);
      const auto actor = static_cast<std::uint32_t>(next - lowered[g].first.begin() - 1);
      const model::OpGraph& graph = *graphs_[g].graph;
      const model::Program& program = graph.programs[graph.actors[actor].program];
      return fail(Errc::infeasible, {},
                  fmt::format("job \"{}\": operation {} (\"{}\") of rank {} would never start: the "
                              "packet engine runs the operations of a stream in file order, and "
                              "these wait for each other in a cycle",
                              graphs_[g].name, o - lowered[g].first[actor],
                              graph.labels[program.operations[o - lowered[g].first[actor]].label],
                              graph.ranks_of(actor).front()),
                  "use engine: fluid, which runs them in the order in which they become ready");
    }
  return {};
}

Status PacketJobs::run_together() {
  MessageGraph graph;
  WEFT_TRY(const std::vector<LoweredJob> jobs, lower_jobs(graph));
  WEFT_TRY(const std::vector<LoweredGraph> graphs, lower_graphs(graph));
  const MessageSet set = graph.take();
  WEFT_TRY_STATUS(check_circles(set, graphs));
  WEFT_TRY(PacketRunResult run, jobs.empty() ? simulate_graphs(set, graphs) : simulate(set, 0, 0));
  loads_ = std::move(run.loads);
  digest_.add(std::string_view(run.digest));
  add_transfers(set, run.messages, out_.transfer_times);
  fold_jobs(jobs, set, run.messages);
  fold_graphs(graphs, set, run.messages);
  return {};
}

void PacketJobs::fold_jobs(std::span<const LoweredJob> lowered, const MessageSet& set,
                           std::span<const MessageEnd> ends) {
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    auto start = static_cast<Ps>(jobs_[j].start.ps);
    for (std::uint32_t i = 0; i < jobs_[j].iterations; ++i) {
      const Place place{lowered[j], i, i};
      const auto end = fold(j, place, ends, out_.jobs[j].stages);
      if (!end) {
        const MessageId first = lowered[j].first.front(), last = lowered[j].first.back();
        add_unfinished(j, place, {set, ends, first, last, 0});
        break;
      }
      end_iteration(j, start, *end);
      start = *end;
    }
  }
}

void PacketJobs::fold_graphs(std::span<const LoweredGraph> lowered, const MessageSet& set,
                             std::span<const MessageEnd> ends) {
  for (std::size_t g = 0; g < graphs_.size(); ++g) {
    out_.graphs.push_back(fold_graph(graphs_[g], lowered[g], ends));
    const engine::GraphResult& result = out_.graphs.back();
    out_.makespan_s = std::max(out_.makespan_s, result.end_s);
    for (const double s : result.iteration_s) digest_.add(from_seconds(s).ps);
    if (result.finished) continue;
    add_line(fmt::format("job {}: step {} of {} had not finished", graphs_[g].name,
                         result.iteration_s.size() + 1, lowered[g].iterations));
    out_.graphs.back().standstill =
        standstill({set, ends, lowered[g].messages_first, lowered[g].messages_last, 0});
  }
  if (!graphs_.empty())
    out_.hot_links = hot_links(router_.fabric(), totals_.link_bytes(), out_.makespan_s);
}

std::optional<BusyInterval> PacketJobs::busiest() const {
  const model::Fabric& fabric = router_.fabric();
  std::size_t count = loads_.bytes.size();
  // The last interval may go on when the run is over.
  if (count > 1 && seconds(loads_.width) * static_cast<double>(count) > out_.makespan_s) --count;
  return engine::busiest_interval(fabric, seconds(loads_.width), count, [&](std::size_t i) {
    std::vector<double> bytes(fabric.link_count(), 0);
    for (std::size_t k = 0; k < loads_.bytes[i].size(); ++k)
      bytes[loads_.links[k]] = static_cast<double>(loads_.bytes[i][k]);
    return bytes;
  });
}

// Of the fabric, up to and at `time`.
std::ptrdiff_t PacketJobs::changes_until(Ps time) const {
  const auto at = [](const StateChange& change) { return change.at.ps; };
  const auto until = static_cast<std::int64_t>(std::min<Ps>(time, INT64_MAX));
  return std::ranges::upper_bound(changes_, until, {}, at) - changes_.begin();
}

bool PacketJobs::changes_within(Ps from, Ps to) const {
  return changes_until(from) != changes_until(to);
}

PacketJobs::Likeness PacketJobs::likeness(std::uint32_t iteration, Ps start) const {
  const bool turns = router_.config().message_mode == route::MessageMode::round_robin;
  return {changes_until(start), turns ? iteration % router_.config().qps : 0};
}

Result<PacketJobs::Known> PacketJobs::run_iteration(std::uint32_t iteration, Ps start) {
  const Job& job = jobs_[0];
  MessageGraph graph;
  LoweringRequest request{.traffic = job.traffic,
                          .ranks = job.ranks,
                          .step_overhead = job.step_overhead,
                          .cost = job.cost,
                          .first_iteration = iteration,
                          .is_part = is_estimate()};
  if (iteration == 0) request.late = job.late;
  if (const std::ptrdiff_t known = changes_until(start); router_.config().weigh_qps && known > 0)
    router_.set_state(changes_[static_cast<std::size_t>(known - 1)].state);
  WEFT_TRY(const LoweredJob lowered, lower_collective(request, router_, graph));
  const MessageSet set = graph.take();
  Known known;
  WEFT_TRY(known.run, simulate(set, start, iteration));
  add_transfers(set, known.run.messages, known.transfers);
  const Place place{lowered, 0, iteration};
  const auto end = fold(0, place, known.run.messages, known.stages);
  known.duration = end.value_or(never);
  if (!end) {
    const MessageId first = lowered.first.front(), last = lowered.first.back();
    add_unfinished(0, place, {set, known.run.messages, first, last, start});
  }
  known.run.messages = {};
  return known;
}

Status PacketJobs::run_apart() {
  const Job& job = jobs_[0];
  WEFT_TRY_STATUS(check_message_count(message_count(job.traffic, job.ranks.size(), router_)));
  if (is_chancy_ || memoise_ == Memoise::off) simulations_ = job.iterations;
  std::map<Likeness, Known> all_known;
  LoadSum loads(watch_.load_windows, router_.fabric().link_count());
  auto start = static_cast<Ps>(job.start.ps);
  for (std::uint32_t i = 0; i < job.iterations; ++i) {
    const std::ptrdiff_t state = changes_until(start);
    const bool settled =
        state == 0 || changes_[static_cast<std::size_t>(state - 1)].state.is_settled();
    const bool may_repeat = memoise_ == Memoise::on && !is_chancy_ && (i > 0 || job.late.empty()) &&
                            options_.end == never && settled;
    const Likeness like = likeness(i, start);
    const auto found = may_repeat ? all_known.find(like) : all_known.end();
    Known fresh;
    Known* known = &fresh;
    if (found != all_known.end() && !changes_within(start, start + found->second.run.end)) {
      known = &found->second;
      ++known->repeats;
    } else {
      WEFT_TRY(fresh, run_iteration(i, start));
      out_.transfer_times.add(fresh.transfers, 1);
    }
    digest_.add(std::string_view(known->run.digest));
    loads.add(start, known->run.loads);
    if (known->duration == never) break;
    for (JobResult::Span span : known->stages) {
      if (out_.jobs[0].stages.size() == engine::span_count_max) break;
      span.iteration = i;
      span.start_s += seconds(start);
      span.end_s += seconds(start);
      out_.jobs[0].stages.push_back(std::move(span));
    }
    const Ps end = start + known->duration;
    end_iteration(0, start, end);
    if (known == &fresh && may_repeat && !changes_within(start, start + fresh.run.end))
      all_known.try_emplace(like, std::move(fresh));
    start = end;
  }
  loads_ = loads.take();
  std::uint64_t repeats = 0;
  for (const auto& [like, known] : all_known) {
    repeats += known.repeats;
    totals_.repeat(known.run, known.repeats);
    out_.transfer_times.add(known.transfers, known.repeats);
  }
  if (repeats > 0)
    add_note(
        fmt::format("{} of the {} iterations repeat an earlier one exactly and "
                    "were not simulated again",
                    repeats, job.iterations));
  return {};
}

// Stages of an iteration that have ended, and the iteration's end when it has one.
std::optional<Ps> PacketJobs::fold(std::size_t job, const Place& place,
                                   std::span<const MessageEnd> ends,
                                   std::vector<JobResult::Span>& spans) const {
  const LoweredJob& lowered = place.lowered;
  for (std::uint32_t s = 0; s < lowered.stages; ++s) {
    const Extent stage = extent_of(lowered, place.first_part() + s, ends);
    if (!stage.ended) return std::nullopt;
    if (spans.size() < engine::span_count_max)
      spans.push_back({jobs_[job].traffic.stages[s].name, place.number, seconds(stage.start),
                       seconds(stage.end)});
  }
  const Extent last = extent_of(lowered, place.first_part() + lowered.stages, ends);
  return last.ended ? std::optional(last.end) : std::nullopt;
}

void PacketJobs::end_iteration(std::size_t job, Ps start, Ps end) {
  JobResult& result = out_.jobs[job];
  result.iteration_s.push_back(seconds(end - start));
  result.end_s = seconds(end);
  result.finished = result.iteration_s.size() == jobs_[job].iterations;
  digest_.add(end - start);
}

bool PacketJobs::has_path(const Connection& connection) {
  std::vector<route::Hop> path;
  return router_.append_gpu_path(connection.src, connection.dst, connection.qp, connection.qp,
                                 path);
}

std::string PacketJobs::why(const Connection& connection) {
  return has_path(connection) ? "was not delivered" : "has no live path";
}

// A message that never arrived is stalled since it began without a path, or since the change that
// took its last one. Those with a path to the end were stopped with the run.
engine::Standstill PacketJobs::standstill(const Messages& messages) {
  struct Stuck {
    MessageId message;
    Ps since;
    bool path_found = false;  // in a later state of the fabric than the one looked at
  };
  constexpr std::size_t examined_max = 10'000;  // messages are in the order of their iterations
  std::vector<Stuck> stuck;
  Ps last = messages.start;
  for (MessageId m = messages.first; m < messages.last; ++m) {
    const MessageEnd& end = messages.ends[m];
    if (end.start == never) continue;
    last = std::max(last, messages.start + (end.arrived == never ? end.start : end.arrived));
    if (end.arrived == never && messages.set.messages[m].bytes > 0 && stuck.size() < examined_max)
      stuck.push_back({m, never});
  }
  const auto connection = [&](const Stuck& s) {
    return messages.set.connections[messages.set.messages[s.message].connection];
  };
  // Backwards through the states that the run saw, for as long as there is no path.
  const model::State healthy;
  for (std::ptrdiff_t c = changes_until(options_.end); c >= 0; --c) {
    const StateChange* change = c == 0 ? nullptr : &changes_[static_cast<std::size_t>(c - 1)];
    const Ps at = change == nullptr ? 0 : static_cast<Ps>(std::max<std::int64_t>(change->at.ps, 0));
    router_.set_state(change == nullptr ? healthy : change->state);
    for (Stuck& s : stuck) {
      if (s.path_found) continue;
      s.path_found = has_path(connection(s));
      if (!s.path_found) s.since = std::max(at, messages.start + messages.ends[s.message].start);
    }
  }
  router_.set_state(changes_.empty() ? healthy : changes_.back().state);
  out_.makespan_s = std::max(out_.makespan_s, seconds(last));
  const auto first = std::ranges::min_element(stuck, {}, &Stuck::since);
  if (first == stuck.end()) return {seconds(last), "no further progress was possible"};
  const model::Fabric& fabric = router_.fabric();
  const std::string from = fabric.name(connection(*first).src);
  const std::string to = fabric.name(connection(*first).dst);
  if (first->since != never)
    return {seconds(first->since), fmt::format("{} has no live path to {}", from, to)};
  const bool stopped = options_.end != never;
  return {seconds(stopped ? options_.end : last),
          fmt::format("a message of {} B from {} to {} was not delivered{}",
                      messages.set.messages[first->message].bytes, from, to,
                      stopped ? " when transport.end stopped the run" : "")};
}

void PacketJobs::add_line(std::string line) {
  std::vector<std::string>& lines = out_.unfinished;
  if (!lines.empty() && lines.back() == line) return;  // parts of one message say the same
  if (++unfinished_ <= unfinished_shown) lines.push_back(std::move(line));
}

// What had begun, from the iteration that did not end on.
void PacketJobs::add_unfinished(std::size_t job, const Place& place, const Messages& messages) {
  const auto& [set, ends, first, last, start] = messages;
  out_.jobs[job].standstill = standstill(messages);
  const model::Fabric& fabric = router_.fabric();
  const std::size_t before = unfinished_;
  const LoweredJob& lowered = place.lowered;
  for (std::size_t part = place.first_part(); part < lowered.parts(); ++part)
    for (MessageId m = lowered.first[part]; m < lowered.first[part + 1]; ++m) {
      if (ends[m].start == never || ends[m].arrived != never) continue;
      const auto& connection = set.connections[set.messages[m].connection];
      add_line(fmt::format(
          "job {}, iteration {}, stage {}: a message of {} B from {} to {} {}", jobs_[job].name,
          place.number + 1 + part / (lowered.stages + 1) - place.index,
          jobs_[job].traffic.stages[part % (lowered.stages + 1)].name, set.messages[m].bytes,
          fabric.name(connection.src), fabric.name(connection.dst), why(connection)));
    }
  if (unfinished_ == before)
    add_line(fmt::format("job {}: iteration {} of {} had not finished", jobs_[job].name,
                         place.number + 1, jobs_[job].iterations));
}

void PacketJobs::add_warnings(const model::PacketOutcome& packet) {
  const auto warn = [&](const std::string& text) {
    out_.notes.push_back({model::Note::Severity::warning, text});
  };
  for (const std::string& line : packet.deadlocks) warn(line);
  for (const std::string& line : packet.storms) warn(line);
  for (const std::string& line : packet.lossless_drops) warn(line);
  if (packet.sent_bytes != packet.received_bytes + packet.dropped_bytes + packet.in_flight_bytes)
    warn(
        "payload is missing: bytes sent differ from the sum of bytes received, dropped and in "
        "flight; this is a bug in weft");
}

RunResult PacketJobs::finish(std::span<const Job> whole) {
  if (unfinished_ > unfinished_shown)
    out_.unfinished.push_back(fmt::format("... and {} more", unfinished_ - unfinished_shown));
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    JobResult& result = out_.jobs[j];
    result.roofline_s = engine::least_seconds(whole[j], router_);
    out_.makespan_s = std::max(out_.makespan_s, result.end_s);
    digest_.add(std::string_view(jobs_[j].name));
  }
  if (failures_) out_.failures = failures_->take_outcomes();
  out_.link_bytes = totals_.link_bytes();
  out_.busiest = busiest();
  out_.digest = digest_.hex();
  out_.packet = totals_.outcome(options_.transport);
  add_warnings(*out_.packet);
  return std::move(out_);
}

// They come before what is said of the parts.
void add_estimate_notes(RunResult& out, double shortest_s) {
  using enum model::Note::Severity;
  const double percent = 100 * out.estimate->share;
  std::vector<model::Note> notes{
      {info,
       fmt::format(
           "times and loads are estimated from runs of {0:.3g} %, {1:.3g} % and {2:.3g} % of "
           "all bytes and compute; from the smaller two alone they would differ by {3:.2g} %. "
           "Packets, queues and pauses are those of the {0:.3g} %",
           percent, percent / 2, percent / 4, 100 * out.estimate->spread)}};
  constexpr double enough_s = 1e-3;
  if (shortest_s < enough_s)
    notes.push_back(
        {warning,
         fmt::format("the smallest part of an iteration took {}: queues that build up and drain "
                     "weigh more in it than in the whole; a larger engine.estimate is more exact",
                     human_seconds(shortest_s))});
  if (!out.unfinished.empty())
    notes.push_back(
        {warning, fmt::format("not everything ends; what is said of jobs that do not is of a "
                              "part of at most {:.3g} %",
                              percent)});
  out.notes.insert(out.notes.begin(), notes.begin(), notes.end());
}

}  // namespace

Result<RunResult> PacketEngine::run(const Work& work, route::Router& router,
                                    std::span<const StateChange> changes,
                                    const Watch& watch) const {
  if (!work.serving.empty())
    return fail(Errc::unsupported, {}, "the packet engine does not serve requests",
                "use engine: fluid");
  if (estimate >= 1) return PacketJobs(work, router, changes, *this, 1, watch).run();
  PartRuns parts{.share = estimate, .runs = {}};
  for (std::size_t i = 0; i < parts.runs.size(); ++i) {
    const double share = estimate / static_cast<double>(1u << i);
    WEFT_TRY(parts.runs[i], PacketJobs(work, router, changes, *this, share, watch).run());
  }
  const double shortest_s = shortest_iteration(parts.runs.back());
  RunResult out = extrapolate(std::move(parts));
  out.hot_links = hot_links(router.fabric(), out.link_bytes, out.makespan_s);
  add_estimate_notes(out, shortest_s);
  return out;
}

}  // namespace weft::engine::packet
