#include "plan/report/finding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "base/plural.hpp"
#include "base/text.hpp"

namespace weft::plan::report {
namespace {

using model::JobOutcome;
using model::TrainingOutcome;

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

// "dp 9 %, ep 4 %", largest first; what is below half a per cent is left to the sum.
using Parts = std::vector<std::pair<double, std::string>>;
std::string list_of(Parts parts) {
  std::erase_if(parts, [](const auto& part) { return part.first < 0.005; });
  std::ranges::sort(parts, std::greater{});
  std::string out;
  for (const auto& [share, name] : parts)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, percent(share));
  return out;
}

std::string_view name_of(std::size_t dimension) {
  return to_text(static_cast<model::Dimension>(dimension));
}

// "96 % compute, 4 % communication (tp in hosts 2 %, dp in zones 1 %)".
std::string critical_path(const TrainingOutcome& t) {
  constexpr std::array<std::string_view, model::distance_count> where{"in hosts", "in racks",
                                                                      "in zones", "between zones"};
  Parts parts;
  for (std::size_t d = 0; d < model::dimension_count; ++d)
    for (std::size_t k = 0; k < where.size(); ++k)
      parts.emplace_back(t.critical.communication_s[d][k] / t.step_time_s,
                         fmt::format("{} {}", name_of(d), where[k]));
  const std::string list = list_of(std::move(parts));
  const double communication = t.critical.total_s() - t.critical.compute_s;
  return fmt::format(
      "{} compute, {} communication{}", percent(t.critical.compute_s / t.step_time_s),
      percent(communication / t.step_time_s), list.empty() ? "" : fmt::format(" ({})", list));
}

// Of the whole run, what steps wait for checkpoints, which is in no step time.
double checkpoint_share(const TrainingOutcome& t) {
  if (t.checkpoints == 0 || !(t.checkpoint_stall_s > 0)) return 0;
  const double stalls = static_cast<double>(t.checkpoints) * t.checkpoint_stall_s;
  return stalls / (stalls + std::accumulate(t.step_times_s.begin(), t.step_times_s.end(), 0.0));
}

// "84 % of the run waits for checkpoints (3 in 12 steps)".
std::string checkpoint_text(const TrainingOutcome& t) {
  return fmt::format("{} of the run waits for checkpoints ({} in {})", percent(checkpoint_share(t)),
                     t.checkpoints, counted(t.step_times_s.size(), "step"));
}

// What takes the largest part beyond compute is what the job is bound by. Waiting for ranks that
// communicate counts as communication: the critical path goes through them.
std::string training_sentence(const JobOutcome& job) {
  const TrainingOutcome& t = *job.training;
  if (!(t.step_time_s > 0)) return fmt::format("{}: a step takes no time", job.name);
  const double exposed =
      std::accumulate(t.exposed_s.begin(), t.exposed_s.end(), 0.0) / t.step_time_s;
  const double idle = t.idle_s / t.step_time_s;
  const double input = std::isnan(t.ingest_stall_s) ? 0 : t.ingest_stall_s / t.step_time_s;
  const double compute = t.compute_s / t.step_time_s;
  // A path may go through communication that compute hides on every rank: that binds nobody.
  const double communication = std::max(
      exposed,
      std::min((t.critical.total_s() - t.critical.compute_s) / t.step_time_s, exposed + idle));
  const double waiting = 1 - compute - input - communication;
  std::string bound = "compute-bound";
  if (std::max({communication, waiting, input}) >= 0.1)
    bound = input >= std::max(communication, waiting) ? "input-bound"
            : communication >= waiting                ? "communication-bound"
                                                      : "bound by waiting";
  const double stalled = checkpoint_share(t);
  const bool is_stalled =
      stalled >= 0.1 && stalled >= (1 - stalled) * std::max({communication, waiting, input});
  std::string out = job.name + ": ";
  if (is_stalled) out += fmt::format("checkpoint-bound: {}; its steps are ", checkpoint_text(t));
  out += fmt::format("{}: of {} a step, {} compute", bound, human_seconds(t.step_time_s),
                     percent(compute));
  Parts parts;
  for (std::size_t d = 0; d < t.exposed_s.size(); ++d)
    parts.emplace_back(t.exposed_s[d] / t.step_time_s, name_of(d));
  if (exposed >= 0.005)
    out += fmt::format(", {} communication that nothing hides ({})", percent(exposed),
                       list_of(std::move(parts)));
  if (idle >= 0.005)
    out += fmt::format(", {} waiting for other ranks (pipeline, stragglers)", percent(idle));
  if (input >= 0.005) out += fmt::format(", {} waiting for input", percent(input));
  if (t.critical.total_s() > 0) out += "; critical path: " + critical_path(t);
  if (!is_stalled && stalled >= 0.005) out += "; " + checkpoint_text(t);
  return out;
}

std::string collective_sentence(const JobOutcome& job) {
  const std::string time =
      fmt::format("{}: {} of {}", job.name, job.op, human_seconds(job.time_mean_s));
  if (!std::isfinite(job.ratio)) return time;  // nothing was sent
  return time + fmt::format(", {:.2f} times the least that its links allow", job.ratio);
}

}  // namespace

std::string finding(const JobOutcome& job) {
  if (job.unfinished) return fmt::format("{}: {}", job.name, to_text(*job.unfinished));
  return job.training ? training_sentence(job) : collective_sentence(job);
}

std::string busiest_links(const model::VariantOutcome& variant) {
  const auto tier = std::ranges::max_element(variant.tiers, {}, &model::TierOutcome::max_load);
  if (tier == variant.tiers.end() || tier->max_load < 0.005) return "";
  return fmt::format("busiest links: {}, {} at most, {} in the mean", tier->name,
                     percent(tier->max_load), percent(tier->mean_load));
}

std::vector<std::string> findings(const model::Outcome& outcome) {
  std::vector<std::string> out;
  if (outcome.variants.empty()) return out;
  const model::VariantOutcome& first = outcome.variants.front();
  for (const JobOutcome& job : first.jobs) {
    out.push_back(finding(job));
    const model::VariantOutcome* fastest = nullptr;
    double least = time_of(job) / 1.01;
    for (const model::VariantOutcome& variant : outcome.variants)
      for (const JobOutcome& other : variant.jobs)
        if (other.name == job.name && time_of(other) < least)
          least = time_of(other), fastest = &variant;
    if (fastest != nullptr)
      out.back() += fmt::format("; fastest with {}, {:.2f} times as fast as {}", fastest->name,
                                time_of(job) / least, first.name);
  }
  if (const std::string links = busiest_links(first); !links.empty())
    out.push_back(outcome.variants.size() > 1 ? fmt::format("{}: {}", first.name, links) : links);
  return out;
}

}  // namespace weft::plan::report
