#include "engine/packet_jobs/estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "base/hash.hpp"

namespace weft::engine::packet {
namespace {

Duration shortened(double share, Duration whole) { return from_seconds(whole.seconds() * share); }
Time shortened(double share, Time whole) { return Time{} + from_seconds(whole.seconds() * share); }

// The straight line through what two parts took, one twice as large as the other.
class Line {
 public:
  explicit Line(double share) : steps_((1 - share) / (share / 2)) {}
  // Replaces what the larger part took by what the whole takes.
  void extend(double& larger, double smaller) const {
    larger = std::max(larger + (larger - smaller) * steps_, 0.0);
  }
  void extend(std::vector<double>& larger, const std::vector<double>& smaller) const {
    WEFT_CHECK(larger.size() == smaller.size());
    for (std::size_t i = 0; i < larger.size(); ++i) extend(larger[i], smaller[i]);
  }
  template <class Span>
  void extend(std::vector<Span>& larger, const std::vector<Span>& smaller) const {
    WEFT_CHECK(larger.size() == smaller.size());
    for (std::size_t i = 0; i < larger.size(); ++i) {
      extend(larger[i].start_s, smaller[i].start_s);
      extend(larger[i].end_s, smaller[i].end_s);
    }
  }

 private:
  double steps_;  // from the larger part to the whole
};

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Of the mean iteration of a job: from three parts, the largest first.
double spread(double share, double large, double middle, double small) {
  Line(share).extend(large, middle);
  Line(share / 2).extend(middle, small);
  return large > 0 ? std::abs(large - middle) / large : 0;
}

// Parts of few packets may lead below what the links allow.
void extend(const Line& line, JobResult& job, const JobResult& half) {
  line.extend(job.iteration_s, half.iteration_s);
  line.extend(job.stages, half.stages);
  line.extend(job.end_s, half.end_s);
  for (double& s : job.iteration_s) {
    const double missing = std::max(job.roofline_s - s, 0.0);
    s += missing;
    job.end_s += missing;
  }
}

void extend(const Line& line, GraphResult& graph, const GraphResult& half) {
  line.extend(graph.iteration_s, half.iteration_s);
  line.extend(graph.spans, half.spans);
  for (double GraphResult::* time : {&GraphResult::end_s, &GraphResult::compute_s,
                                     &GraphResult::idle_s, &GraphResult::busiest_compute_s})
    line.extend(graph.*time, half.*time);
  for (std::size_t d = 0; d < graph.exposed_s.size(); ++d)
    line.extend(graph.exposed_s[d], half.exposed_s[d]);
}

}  // namespace

void scale(double share, workload::Traffic& traffic, std::optional<workload::CallCost>& cost) {
  const auto part_of = [&](std::uint32_t count) {
    return static_cast<std::uint32_t>(std::lround(count * share));
  };
  if (cost) {
    cost->lead_s *= share;
    cost->bytes_s *= share;
  }
  for (workload::Stage& stage : traffic.stages) {
    stage.latency_steps = part_of(stage.latency_steps);
    for (workload::Chain& chain : stage.chains) {
      for (workload::Edge& edge : chain.edges) edge.bytes *= share;
      chain.steps = std::max(1u, part_of(chain.steps));
    }
    for (workload::Edge& flow : stage.flows) flow.bytes *= share;
    for (workload::Exchange& exchange : stage.exchanges) {
      exchange.bytes_per_pair *= share;
      for (double& bytes : exchange.matrix) bytes *= share;
    }
  }
}

Job scaled(double share, const Job& job) {
  Job out = job;
  scale(share, out.traffic, out.cost);
  out.start = shortened(share, job.start);
  for (Duration& late : out.late) late = shortened(share, late);
  return out;
}

GraphJob scaled(double share, const GraphJob& job) {
  GraphJob out = job;
  out.start = shortened(share, job.start);
  return out;
}

double shortest_iteration(const RunResult& run) {
  double out = std::numeric_limits<double>::infinity();
  const auto add = [&](const std::vector<double>& iteration_s) {
    for (const double s : iteration_s) out = std::min(out, s);
  };
  for (const JobResult& job : run.jobs) add(job.iteration_s);
  for (const GraphResult& graph : run.graphs) add(graph.iteration_s);
  return out;
}

RunResult extrapolate(PartRuns parts) {
  RunResult out = std::move(parts.runs[0]);
  RunResult &middle = parts.runs[1], &small = parts.runs[2];
  const Line line(parts.share);
  double off = 0;
  // What did not end in some part remains as it was there.
  const auto all_end = [&](auto& large, const auto& half, const auto& quarter) {
    if (large.finished && !half.finished) large = half;
    if (large.finished && !quarter.finished) large = quarter;
    if (!large.finished) return false;
    off = std::max(off, spread(parts.share, mean(large.iteration_s), mean(half.iteration_s),
                               mean(quarter.iteration_s)));
    return true;
  };
  bool ended = true;
  for (std::size_t j = 0; j < out.jobs.size(); ++j) {
    if (all_end(out.jobs[j], middle.jobs[j], small.jobs[j]))
      extend(line, out.jobs[j], middle.jobs[j]);
    else
      ended = false;
  }
  for (std::size_t g = 0; g < out.graphs.size(); ++g) {
    if (all_end(out.graphs[g], middle.graphs[g], small.graphs[g]))
      extend(line, out.graphs[g], middle.graphs[g]);
    else
      ended = false;
  }
  for (RunResult* smaller : {&middle, &small})
    if (out.unfinished.empty()) out.unfinished = std::move(smaller->unfinished);
  if (ended) {
    line.extend(out.link_bytes, middle.link_bytes);
    line.extend(out.makespan_s, middle.makespan_s);
    for (const JobResult& job : out.jobs) out.makespan_s = std::max(out.makespan_s, job.end_s);
  }
  out.busiest.reset();
  out.hot_links.clear();
  out.transfer_times = {};
  out.estimate = model::Estimate{.share = parts.share, .spread = off};
  Digest digest;
  for (const RunResult* run : {&std::as_const(out), &std::as_const(middle), &std::as_const(small)})
    digest.add(std::string_view(run->digest));
  out.digest = digest.hex();
  return out;
}

}  // namespace weft::engine::packet
