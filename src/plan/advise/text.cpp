#include "base/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "base/json_text.hpp"
#include "plan/advise/advise.hpp"

namespace weft::plan::advise {
namespace {

std::string seconds(double s) { return std::isnan(s) ? "never ends" : human_seconds(s); }

std::string hosts(const std::vector<std::string>& names) {
  constexpr std::size_t shown = 4;
  if (names.empty()) return "-";
  const std::size_t count = std::min(shown, names.size());
  std::string out = fmt::format(
      "{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(count), " "));
  if (names.size() > shown) out += fmt::format(" +{}", names.size() - shown);
  return out;
}

std::string verdict(const Round& round, const Options& options) {
  const std::string until = human_seconds(options.horizon.seconds());
  if (!round.moves()) return fmt::format("Stay: no move gains within {}.\n", until);
  const Candidate& best = round.candidates.front();
  std::string out = fmt::format("Move {}: {}. It gains {:.1f} GPU-hours within {}", best.job,
                                best.how, best.gain_gpu_hours, until);
  if (!std::isnan(best.pays_after_s))
    out += fmt::format(", and pays for itself after {}", human_seconds(best.pays_after_s));
  return out + ".\n";
}

}  // namespace

std::string to_table(const Advice& advice, const Options& options) {
  std::string out = advice.struck.empty()
                        ? std::string("No host is struck by a fault.\n")
                        : fmt::format("Hosts struck by faults: {}\n", hosts(advice.struck));
  for (const Round& round : advice.rounds) {
    Table table({{"job", Table::Align::left},
                 {"move", Table::Align::left},
                 {"step"},
                 {"GPU-hours"},
                 {"pays after"},
                 {"leaves", Table::Align::left},
                 {"takes", Table::Align::left}});
    for (const Round::JobTime& job : round.stay)
      table.add({job.name, "stay", seconds(job.seconds), "0", "", "", ""});
    for (const Candidate& one : round.candidates)
      table.add({one.job, one.how, seconds(one.moved_s), fmt::format("{:+.1f}", one.gain_gpu_hours),
                 std::isnan(one.pays_after_s) ? "never" : human_seconds(one.pays_after_s),
                 hosts(one.leaves), hosts(one.takes)});
    out += "\n" + table.text() + "\n" + verdict(round, options);
  }
  if (const auto& estimate = advice.rounds.front().estimate)
    out += fmt::format("\nnote: {}\n", to_text(*estimate));
  return out;
}

std::string to_json(const Advice& advice) {
  JsonList rounds;
  for (const Round& round : advice.rounds) {
    JsonList stay, candidates;
    for (const Round::JobTime& job : round.stay)
      stay.add(JsonObject().add("job", job.name).add("gpus", job.gpus).add("seconds", job.seconds));
    for (const Candidate& one : round.candidates)
      candidates.add(JsonObject()
                         .add("job", one.job)
                         .add("move", one.how)
                         .add("seconds", one.moved_s)
                         .add("gain_gpu_hours", one.gain_gpu_hours)
                         .add("pays_after_s", one.pays_after_s)
                         .add("leaves", one.leaves)
                         .add("takes", one.takes)
                         .add("ranks", one.ranks));
    rounds.add(JsonObject()
                   .add("advice", round.moves() ? "move" : "stay")
                   .add("stay", stay)
                   .add("candidates", candidates));
  }
  return JsonObject()
             .add("struck_hosts", advice.struck)
             .add("rounds", rounds)
             .add_if("estimate", advice.rounds.front().estimate)
             .text() +
         "\n";
}

}  // namespace weft::plan::advise
