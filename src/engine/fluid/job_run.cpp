#include "engine/fluid/job_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/hash.hpp"
#include "engine/fluid/exchange_rounds.hpp"
#include "engine/fluid/stage.hpp"

namespace weft::engine::fluid {
namespace {

// A bin holds the doubles that agree in exponent and 7 leading bits of the mantissa, which are the
// leading bits of their representation.
constexpr int bin_shift = 52 - 7;
constexpr std::uint64_t bin_first = std::bit_cast<std::uint64_t>(1e-12) >> bin_shift;
constexpr std::size_t unfinished_shown = 100;

class JobRun final : Network::Client {
 public:
  JobRun(std::span<const Job> jobs, Network& network, Progress& progress)
      : jobs_(jobs), network_(network), progress_(progress), states_(jobs.size()) {
    for (const Job& job : jobs) iterations_total_ += job.iterations;
  }

  JobRunResult run() {
    result_.jobs.resize(jobs_.size());
    for (std::uint32_t j = 0; j < jobs_.size(); ++j)
      set_timer(jobs_[j].start.seconds(), {.job = j, .what = Timer::What::begin_iteration});
    network_.run(*this);
    finish();
    return std::move(result_);
  }

 private:
  struct JobState {
    std::uint32_t iteration = 0;
    std::size_t stage = 0;
    std::size_t outstanding = 0;  // transfers and timers that this stage waits for
    double iteration_start_s = 0, stage_start_s = 0;
    std::vector<ExchangeRounds> exchanges;
  };
  // What a transfer's tag stands for.
  struct Sent {
    std::uint32_t job = 0;
    std::uint32_t exchange = no_exchange;
    ExchangeRounds::Message message{};
    double start_s = 0;
  };
  static constexpr std::uint32_t no_exchange = UINT32_MAX;
  struct Timer {
    enum class What : std::uint8_t { begin_iteration, begin_stage, begin_chain, wake_rank };
    std::uint32_t job = 0;
    What what = What::begin_iteration;
    std::uint32_t item = 0;  // chain, or exchange
    std::uint32_t rank = 0;
  };

  const workload::Stage& stage_of(std::uint32_t job) const {
    return jobs_[job].traffic.stages[states_[job].stage];
  }

  void set_timer(double at_s, const Timer& timer) {
    timers_.push_back(timer);
    network_.timer(at_s, timers_.size() - 1);
  }

  void on_timer(std::uint64_t tag) override {
    const Timer timer = timers_[tag];
    switch (timer.what) {
      case Timer::What::begin_iteration:
        return begin_iteration(timer.job);
      case Timer::What::begin_stage:
        return begin_stage(timer.job);
      case Timer::What::begin_chain:
        return begin_chain(timer.job, timer.item);
      case Timer::What::wake_rank:
        return wake_rank(timer.job, timer.item, timer.rank);
    }
  }

  void begin_iteration(std::uint32_t job) {
    JobState& state = states_[job];
    state.stage = 0;
    state.iteration_start_s = network_.now();
    prepare_stage(job);
  }

  // Latency first, then bytes.
  void prepare_stage(std::uint32_t job) {
    JobState& state = states_[job];
    if (state.stage == jobs_[job].traffic.stages.size()) return end_iteration(job);
    state.stage_start_s = network_.now();
    const double latency =
        stage_latency_s(stage_of(job), jobs_[job].step_overhead, network_.router());
    if (latency <= 0) return begin_stage(job);
    set_timer(network_.now() + latency, {.job = job, .what = Timer::What::begin_stage});
  }

  bool late_applies(std::uint32_t job) const {
    return states_[job].iteration == 0 && states_[job].stage == 0 && !jobs_[job].late.empty();
  }

  void begin_stage(std::uint32_t job) {
    JobState& state = states_[job];
    const workload::Stage& stage = stage_of(job);
    state.outstanding = 1;  // held until everything has been started
    for (std::uint32_t c = 0; c < stage.chains.size(); ++c) {
      const double delay =
          late_applies(job) ? chain_delay_s(jobs_[job], stage.chains[c], network_.router()) : 0;
      ++state.outstanding;
      if (delay > 0) {
        set_timer(network_.now() + delay,
                  {.job = job, .what = Timer::What::begin_chain, .item = c});
      } else {
        begin_chain(job, c);
      }
    }
    for (std::uint32_t f = 0; f < stage.flows.size(); ++f) {
      ++state.outstanding;
      begin_flow(job, stage.flows[f]);
    }
    state.exchanges.clear();
    for (std::uint32_t x = 0; x < stage.exchanges.size(); ++x) begin_exchange(job, x);
    release(job);
  }

  void begin_chain(std::uint32_t job, std::uint32_t index) {
    double bytes = 0;
    parts_ = chain_parts(stage_of(job).chains[index], network_.router(), bytes);
    send(job, {.parts = parts_, .bytes = bytes}, no_exchange, {});
  }

  // A stage of independent flows starts when its last rank has arrived.
  void begin_flow(std::uint32_t job, const workload::Edge& edge) {
    parts_.assign(
        1, {edge.from, edge.to, 0, network_.router().stream_count(), states_[job].iteration, 1});
    send(job, {.parts = parts_, .bytes = edge.bytes}, no_exchange, {});
  }

  void begin_exchange(std::uint32_t job, std::uint32_t index) {
    const workload::Exchange& exchange = stage_of(job).exchanges[index];
    const auto ranks = static_cast<std::uint32_t>(exchange.ranks.size());
    states_[job].exchanges.emplace_back(ranks, exchange.window);
    ++states_[job].outstanding;
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const double delay = late_applies(job) ? late_of(jobs_[job], exchange.ranks[r]) : 0;
      if (delay > 0) {
        set_timer(network_.now() + delay,
                  {.job = job, .what = Timer::What::wake_rank, .item = index, .rank = r});
      } else {
        states_[job].exchanges[index].wake(r);
      }
    }
    send_ready(job, index);
  }

  void wake_rank(std::uint32_t job, std::uint32_t index, std::uint32_t rank) {
    states_[job].exchanges[index].wake(rank);
    send_ready(job, index);
  }

  void send_ready(std::uint32_t job, std::uint32_t index) {
    const workload::Exchange& exchange = stage_of(job).exchanges[index];
    ExchangeRounds& rounds = states_[job].exchanges[index];
    const auto count = static_cast<std::uint32_t>(exchange.ranks.size());
    while (const auto message = rounds.next_ready()) {
      const std::uint32_t peer = (message->rank + message->round) % count;
      const double bytes = exchange_bytes(exchange, message->rank, peer);
      if (bytes <= 0) {
        rounds.ended(*message);
        continue;
      }
      parts_.assign(1, {exchange.ranks[message->rank], exchange.ranks[peer], 0,
                        network_.router().stream_count(), states_[job].iteration, 1});
      send(job, {.parts = parts_, .bytes = bytes}, index, *message);
    }
    if (rounds.finished()) release(job);
  }

  void send(std::uint32_t job, TransferSpec spec, std::uint32_t exchange,
            ExchangeRounds::Message message) {
    std::uint32_t tag = 0;
    if (free_sent_.empty()) {
      tag = static_cast<std::uint32_t>(sent_.size());
      sent_.emplace_back();
    } else {
      tag = free_sent_.back();
      free_sent_.pop_back();
    }
    sent_[tag] = {job, exchange, message, network_.now()};
    ++result_.jobs[job].transfers;
    spec.tag = tag;
    network_.send(spec);
  }

  void on_delivered(std::uint64_t tag) override {
    const Sent sent = sent_[tag];
    free_sent_.push_back(static_cast<std::uint32_t>(tag));
    result_.transfer_times.add(network_.now() - sent.start_s);
    if (sent.exchange == no_exchange) return release(sent.job);
    states_[sent.job].exchanges[sent.exchange].ended(sent.message);
    send_ready(sent.job, sent.exchange);
  }

  void release(std::uint32_t job) {
    JobState& state = states_[job];
    if (--state.outstanding > 0) return;
    JobResult& result = result_.jobs[job];
    if (result.stages.size() < span_count_max)
      result.stages.push_back(
          {stage_of(job).name, state.iteration, state.stage_start_s, network_.now()});
    ++state.stage;
    prepare_stage(job);
  }

  void end_iteration(std::uint32_t job) {
    JobState& state = states_[job];
    JobResult& result = result_.jobs[job];
    result.iteration_s.push_back(network_.now() - state.iteration_start_s);
    result.end_s = network_.now();
    progress_.update(static_cast<double>(++iterations_done_));
    if (++state.iteration < jobs_[job].iterations) {
      // By timer, so that a thousand empty iterations are a loop and no recursion.
      set_timer(network_.now(), {.job = job, .what = Timer::What::begin_iteration});
    } else {
      result.finished = true;
    }
  }

  void finish();

  std::span<const Job> jobs_;
  Network& network_;
  Progress& progress_;
  std::vector<JobState> states_;
  std::vector<Sent> sent_;
  std::vector<std::uint32_t> free_sent_;
  std::vector<Timer> timers_;
  std::vector<Part> parts_;  // scratch
  std::uint64_t iterations_total_ = 0, iterations_done_ = 0;
  JobRunResult result_;
};

void JobRun::finish() {
  const std::vector<std::uint64_t> left = network_.undelivered();
  for (const std::uint64_t tag : left) {
    if (result_.unfinished.size() == unfinished_shown) {
      result_.unfinished.push_back(fmt::format("... and {} more", left.size() - unfinished_shown));
      break;
    }
    const Sent& sent = sent_[tag];
    const Job& job = jobs_[sent.job];
    const auto& stage = job.traffic.stages[states_[sent.job].stage];
    std::string what =
        sent.exchange == no_exchange
            ? std::string("a transfer")
            : "a message of " + network_.router().fabric().name(
                                    stage.exchanges[sent.exchange].ranks[sent.message.rank]);
    result_.unfinished.push_back(
        fmt::format("job {}, iteration {}, stage {}: {} has no live path or no bandwidth", job.name,
                    states_[sent.job].iteration + 1, stage.name, what));
  }
  Digest digest;
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    JobResult& job = result_.jobs[j];
    job.roofline_s = roofline_s(jobs_[j], network_.router());
    result_.makespan_s = std::max(result_.makespan_s, job.end_s);
    digest.add(jobs_[j].name);
    for (const double s : job.iteration_s) digest.add(from_seconds(s).ps);
  }
  result_.link_bytes = network_.link_bytes();
  result_.rate_error = network_.simulation().rate_error();
  result_.counters = network_.simulation().counters();
  for (const double bytes : result_.link_bytes)
    digest.add(static_cast<std::int64_t>(std::llround(bytes)));
  result_.digest = digest.hex();
}

}  // namespace

void TimeHistogram::add(double seconds) {
  const std::uint64_t key = std::bit_cast<std::uint64_t>(std::max(seconds, 0.0)) >> bin_shift;
  const std::uint64_t bin = key > bin_first ? key - bin_first : 0;
  if (bin >= bins_.size()) bins_.resize(bin + 1);
  ++bins_[bin];
  ++count_;
  sum_ += seconds;
}

double TimeHistogram::quantile(double share) const {
  const double wanted = share * static_cast<double>(count_);
  std::uint64_t seen = 0;
  for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
    seen += bins_[bin];
    if (static_cast<double>(seen) >= wanted && seen > 0)
      return std::bit_cast<double>((bin + bin_first + 1) << bin_shift);
  }
  return 0;
}

JobRunResult run_jobs(std::span<const Job> jobs, Router& router,
                      std::span<const StateChange> changes, const Simulation::Options& options,
                      Progress& progress) {
  Network network(router, changes, options);
  return JobRun(jobs, network, progress).run();
}

}  // namespace weft::engine::fluid
