#include "model/work/outcome.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace weft::model {

std::string to_text(const Unfinished& unfinished) {
  return fmt::format("unfinished at {}: {}", human_seconds(unfinished.at_s), unfinished.why);
}

std::string to_text(const Estimate& estimate) {
  return fmt::format("times are estimates from {:.3g} % of the work (engine.estimate)",
                     100 * estimate.share);
}

double time_of(const JobOutcome& job) {
  if (job.unfinished) return no_number;
  return job.training ? job.training->step_time_s : job.time_mean_s;
}

double CriticalPath::total_s() const {
  double total = compute_s;
  for (const auto& dimension : communication_s)
    for (const double seconds : dimension) total += seconds;
  return total;
}

}  // namespace weft::model
