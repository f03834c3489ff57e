#include <fmt/format.h>

#include <cmath>

#include "base/csv.hpp"
#include "base/text.hpp"
#include "plan/failures/failures.hpp"

namespace weft::plan::failures {
namespace {

std::string time_text(double seconds) { return std::isnan(seconds) ? "-" : human_seconds(seconds); }
std::string ratio_text(double a, double b) {
  return std::isnan(a / b) ? "-" : fmt::format("{:.3f}", a / b);
}
std::string percent(double share) { return fmt::format("{:.3g} %", 100 * share); }

// "all 18", "20 of 4,536"
std::string ran_text(const Row& row) {
  return row.runs.size() == row.of ? fmt::format("all {}", row.of)
                                   : fmt::format("{} of {}", row.runs.size(), row.of);
}

bool is_single(const Row& row) { return row.role.find(" + ") == std::string::npos; }

// Of single failures that the job survives, the worst; and which roles stop it.
std::string finding(const Result& result, std::size_t j) {
  const Row* worst = nullptr;
  std::string stops;
  for (const Row& row : result.rows) {
    const Effect& effect = row.effects[j];
    if (!is_single(row)) continue;
    if (effect.stops > 0)
      stops += fmt::format("{}{} ({} of {} runs)", stops.empty() ? "" : ", ", row.role,
                           effect.stops, row.runs.size());
    if (!std::isnan(effect.worst_s) &&
        (worst == nullptr || effect.worst_s > worst->effects[j].worst_s))
      worst = &row;
  }
  std::string out = fmt::format("{}: {} healthy", result.jobs[j], time_text(result.healthy_s[j]));
  if (worst != nullptr) {
    const Effect& effect = worst->effects[j];
    const double slower = effect.worst_s / result.healthy_s[j];
    out +=
        slower < 1.0005
            ? "; no single failure that it survives costs it 0.1 %"
            : fmt::format(
                  "; of single failures that it survives a {} costs most, {:.3f} times the "
                  "time{}",
                  worst->role, slower, effect.stops == 0 ? fmt::format(" ({})", effect.worst) : "");
  }
  return out + (stops.empty() ? "; none of those run stops it" : "; stopped by " + stops);
}

}  // namespace

std::vector<std::string> findings(const Result& result) {
  std::vector<std::string> out;
  for (std::size_t j = 0; j < result.jobs.size(); ++j) out.push_back(finding(result, j));
  return out;
}

std::string to_table(const Result& result) {
  using enum Table::Align;
  std::string out;
  for (const std::string& line : findings(result)) out += line + ".\n";
  for (std::size_t j = 0; j < result.jobs.size(); ++j) {
    out += fmt::format("\n{}: {} healthy\n", result.jobs[j], time_text(result.healthy_s[j]));
    Table table({{"down", left},
                 {"runs", right},
                 {"stop it", right},
                 {"mean", right},
                 {"median", right},
                 {"worst", right},
                 {"x healthy", right},
                 {"worse unseen", right},
                 {"the worst", left}});
    for (const Row& row : result.rows) {
      const Effect& effect = row.effects[j];
      table.add({row.role, ran_text(row), effect.stops == 0 ? "-" : fmt::format("{}", effect.stops),
                 time_text(effect.mean_s), time_text(effect.median_s), time_text(effect.worst_s),
                 ratio_text(effect.worst_s, result.healthy_s[j]),
                 row.unseen_share > 0 ? "< " + percent(row.unseen_share) : "-", effect.worst});
    }
    out += table.text();
  }
  if (result.estimate) out += fmt::format("\nnote: {}\n", to_text(*result.estimate));
  return out;
}

std::string to_csv(const Result& result) {
  std::string out = "role,failure,job,seconds,slowdown,stopped\n";
  for (const Row& row : result.rows)
    for (const Run& run : row.runs)
      for (std::size_t j = 0; j < result.jobs.size(); ++j) {
        const double seconds = run.seconds[j];
        out += fmt::format("{},{},{},", csv_cell(row.role), csv_cell(run.failed),
                           csv_cell(result.jobs[j]));
        if (std::isnan(seconds))
          out += fmt::format(",,{}\n", csv_cell(run.stopped));
        else
          out += fmt::format("{},{},\n", seconds, seconds / result.healthy_s[j]);
      }
  return out;
}

std::string to_json(const Result& result) {
  JsonList rows;
  for (const Row& row : result.rows) {
    JsonList effects, runs;
    for (const Effect& e : row.effects)
      effects.add(JsonObject()
                      .add("job", e.job)
                      .add("stops", e.stops)
                      .add("mean_s", e.mean_s)
                      .add("median_s", e.median_s)
                      .add("worst_s", e.worst_s)
                      .add("worst", e.worst));
    for (const Run& r : row.runs)
      runs.add(JsonObject()
                   .add("failed", r.failed)
                   .add("seconds", r.seconds)
                   .add_if("stopped", r.stopped));
    rows.add(JsonObject()
                 .add("role", row.role)
                 .add("of", row.of)
                 .add("unseen_share", row.unseen_share)
                 .add("jobs", effects)
                 .add("runs", runs));
  }
  return JsonObject()
             .add("scenario", result.scenario)
             .add("jobs", result.jobs)
             .add("healthy_s", result.healthy_s)
             .add("findings", findings(result))
             .add("rows", rows)
             .add_if("estimate", result.estimate)
             .text() +
         "\n";
}

}  // namespace weft::plan::failures
