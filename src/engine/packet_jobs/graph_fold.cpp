// Where the time of a graph went, from when its operations became ready and ended.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "engine/packet_jobs/graph.hpp"

namespace weft::engine::packet {
namespace {

using engine::GraphJob;
using engine::GraphResult;
using model::Operation;
using Kind = model::Operation::Kind;

constexpr std::size_t stuck_shown = 100;

// Of one iteration, in picoseconds.
struct Times {
  Ps start = 0, end = 0;
  std::vector<Ps> ready, ended, moves;  // by operation; moves: when all that meet are ready
};

struct Interval {
  Ps start, end;
  model::Dimension dimension = model::Dimension::other;
};

struct Shares {
  double compute_s = 0, idle_s = 0;
  std::array<double, model::dimension_count> exposed_s{};
};

// Lets each of some intervals, in order of their start, keep what none before it covers.
std::vector<Interval> disjoint(std::vector<Interval> all) {
  std::ranges::stable_sort(all, {}, &Interval::start);
  std::vector<Interval> out;
  Ps covered = 0;
  for (Interval i : all) {
    i.start = std::max(i.start, covered);
    if (i.start >= i.end) continue;
    covered = i.end;
    out.push_back(i);
  }
  return out;
}

class Fold {
 public:
  Fold(const GraphJob& job, const LoweredGraph& lowered, std::span<const MessageEnd> ends)
      : job_(job), graph_(*job.graph), lowered_(lowered), ends_(ends) {}

  GraphResult run() {
    auto start = static_cast<Ps>(job_.start.ps);
    std::optional<Times> last;
    for (std::uint32_t i = 0; i < lowered_.iterations; ++i) {
      const std::optional<Ps> end = end_of(i);
      if (!end) {
        list_stuck(i);
        break;
      }
      result_.iteration_s.push_back(seconds(*end - start));
      last = times_of(i, start, *end);
      start = *end;
    }
    result_.end_s = seconds(start);
    result_.finished = result_.iteration_s.size() == lowered_.iterations;
    const auto done = static_cast<double>(result_.iteration_s.size());
    for (std::size_t d = 0; d < lowered_.bytes.size(); ++d)
      for (std::size_t k = 0; k < lowered_.bytes[d].size(); ++k)
        result_.bytes[d][k] = lowered_.bytes[d][k] * done;
    result_.notes = lowered_.notes;
    if (last) account(*last);
    return std::move(result_);
  }

 private:
  const model::Program& program(std::uint32_t actor) const {
    return graph_.programs[graph_.actors[actor].program];
  }
  std::optional<Ps> end_of(std::uint32_t iteration) const;
  Times times_of(std::uint32_t iteration, Ps start, Ps end) const;
  Shares shares_of(std::uint32_t actor, const Times& times) const;
  void account(const Times& times);
  void record_spans(const Times& times);
  void list_stuck(std::uint32_t iteration);

  const GraphJob& job_;
  const model::OpGraph& graph_;
  const LoweredGraph& lowered_;
  std::span<const MessageEnd> ends_;
  GraphResult result_;
};

std::optional<Ps> Fold::end_of(std::uint32_t iteration) const {
  const std::size_t actors = graph_.actors.size();
  Ps end = 0;
  for (std::size_t a = 0; a < actors; ++a)
    end = std::max(end, ends_[lowered_.actor_end[iteration * actors + a]].arrived);
  return end == never ? std::nullopt : std::optional(end);
}

Times Fold::times_of(std::uint32_t iteration, Ps start, Ps end) const {
  Times times{.start = start, .end = end, .ready = {}, .ended = {}, .moves = {}};
  const std::size_t row = std::size_t{iteration} * lowered_.operations;
  std::vector<Ps> last(lowered_.operations, 0);  // by meeting
  for (std::uint32_t o = 0; o < lowered_.operations; ++o) {
    times.ready.push_back(ends_[lowered_.ready[row + o]].arrived);
    times.ended.push_back(ends_[lowered_.end[row + o]].arrived);
    if (const std::uint32_t meeting = lowered_.meeting[o]; meeting < last.size())
      last[meeting] = std::max(last[meeting], times.ready.back());
  }
  times.moves = times.ready;
  for (std::uint32_t o = 0; o < lowered_.operations; ++o)
    if (const std::uint32_t meeting = lowered_.meeting[o]; meeting < last.size())
      times.moves[o] = last[meeting];
  return times;
}

// Communication folded into compute operations is exposed.
Shares Fold::shares_of(std::uint32_t actor, const Times& times) const {
  const model::Program& source = program(actor);
  Shares out;
  std::vector<Interval> computes, moves;
  for (std::uint32_t i = 0; i < source.operations.size(); ++i) {
    const std::uint32_t at = lowered_.first[actor] + i;
    const Operation& o = source.operations[i];
    if (o.kind == Kind::compute) {
      computes.push_back({times.ready[at], times.ended[at]});
    } else {
      moves.push_back({times.moves[at], times.ended[at], o.dimension});
    }
  }
  double busy_s = 0;
  computes = disjoint(std::move(computes));
  for (const Interval& compute : computes) busy_s += seconds(compute.end - compute.start);
  out.compute_s = busy_s;
  for (const model::Folded& f : source.folded) {
    const double folded_s = f.seconds * lowered_.share;
    out.exposed_s[static_cast<std::size_t>(f.dimension)] += folded_s;
    out.compute_s -= folded_s;
  }
  std::size_t c = 0;
  for (const Interval& move : disjoint(std::move(moves))) {
    Ps hidden = 0;
    while (c < computes.size() && computes[c].end <= move.start) ++c;
    for (std::size_t i = c; i < computes.size() && computes[i].start < move.end; ++i)
      hidden += std::min(computes[i].end, move.end) - std::max(computes[i].start, move.start);
    const double exposed = seconds(move.end - move.start - hidden);
    out.exposed_s[static_cast<std::size_t>(move.dimension)] += exposed;
    busy_s += exposed;
  }
  out.idle_s = std::max(0.0, seconds(times.end - times.start) - busy_s);
  return out;
}

void Fold::account(const Times& times) {
  const auto actors = static_cast<double>(graph_.actors.size());
  std::vector<double> compute_s;
  for (std::uint32_t a = 0; a < graph_.actors.size(); ++a) {
    const Shares shares = shares_of(a, times);
    compute_s.push_back(shares.compute_s);
    result_.compute_s += shares.compute_s / actors;
    result_.idle_s += shares.idle_s / actors;
    for (std::size_t d = 0; d < shares.exposed_s.size(); ++d)
      result_.exposed_s[d] += shares.exposed_s[d] / actors;
    if (shares.compute_s > result_.busiest_compute_s || a == 0) {
      result_.busiest_compute_s = shares.compute_s;
      result_.busiest_rank = graph_.ranks_of(a).front();
    }
  }
  result_.stragglers = engine::find_stragglers(graph_, compute_s, lowered_.slowest);
  record_spans(times);
}

// The first actor of each program.
void Fold::record_spans(const Times& times) {
  std::vector<bool> seen(graph_.programs.size(), false);
  for (std::uint32_t a = 0; a < graph_.actors.size(); ++a) {
    const std::uint32_t p = graph_.actors[a].program;
    if (seen[p]) continue;
    seen[p] = true;
    for (std::uint32_t i = 0; i < program(a).operations.size(); ++i) {
      if (result_.spans.size() == engine::graph_span_count_max) return;
      const std::uint32_t at = lowered_.first[a] + i;
      result_.spans.push_back({p, i, seconds(times.moves[at]), seconds(times.ended[at])});
    }
  }
}

void Fold::list_stuck(std::uint32_t iteration) {
  const std::size_t row = std::size_t{iteration} * lowered_.operations;
  for (std::uint32_t a = 0; a < graph_.actors.size(); ++a)
    for (std::uint32_t i = 0; i < program(a).operations.size(); ++i) {
      const std::size_t at = row + lowered_.first[a] + i;
      if (ends_[lowered_.ready[at]].arrived == never || ends_[lowered_.end[at]].arrived != never)
        continue;
      if (result_.stuck.size() == stuck_shown) return;
      result_.stuck.push_back(
          fmt::format("{}, step {}: {} of rank {} did not finish", job_.name, iteration + 1,
                      graph_.labels[program(a).operations[i].label], graph_.ranks_of(a).front()));
    }
}

}  // namespace

GraphResult fold_graph(const GraphJob& job, const LoweredGraph& lowered,
                       std::span<const MessageEnd> ends) {
  return Fold(job, lowered, ends).run();
}

}  // namespace weft::engine::packet
