// What a rehearsal came to, for people and machines.
#include <fmt/format.h>

#include "base/json_line.hpp"
#include "cli/rehearse.hpp"

namespace weft::cli {
namespace {

double ratio(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::string to_json(const RehearseReport& r) {
  std::string problems, refused;
  for (const auto& [name, p] : r.problems)
    problems +=
        fmt::format(R"({}{}:{{"faults":{},"found":{},"named":{},"bad_inside":{},"bad_across":{}}})",
                    problems.empty() ? "" : ",", json_string(name), p.faults, p.found, p.named,
                    p.bad_inside, p.bad_across);
  for (const auto& [guard, count] : r.refused)
    refused += fmt::format("{}{}:{}", refused.empty() ? "" : ",", json_string(guard), count);
  return fmt::format(
      R"({{"days":{},"seed":{},"rack_minutes":{},"bad_with_case":{},"problems":{{{}}},)"
      R"("blips":{},"lines":{},"ticks":{},"cases":{},"cases_false":{},"refused":{{{}}},)"
      R"("offenders":{{"planted":{},"found":{},"named":{},"recall":{:.4f},"precision":{:.4f},)"
      R"("replaced":{}}},"cost":{{"visits":{},"drains":{},"drained_cable_hours":{:.2f}}},)"
      "\"ledger\":{}}}\n",
      r.days, r.seed, r.rack_minutes, r.bad_known, problems, r.blips, r.lines, r.ticks, r.cases,
      r.cases_false, refused, r.lemons, r.lemons_found, r.offenders,
      ratio(r.lemons_found, r.lemons), ratio(r.lemons_found, r.offenders), r.replaced, r.visits,
      r.drains, r.drained_cable_hours, operate::repair::to_json(r.ledger));
}

std::string to_table(const RehearseReport& r) {
  std::string out =
      fmt::format("{} days, seed {}: {} lines, {} cases ({} false), {} single carrier losses\n\n",
                  r.days, r.seed, r.lines, r.cases, r.cases_false, r.blips);
  out += fmt::format("{:<16}{:>8}{:>8}{:>8}{:>14}{:>14}\n", "problem", "faults", "found", "named",
                     "bad inside", "bad across");
  std::uint64_t bad = 0;
  for (const auto& [name, p] : r.problems) {
    out += fmt::format("{:<16}{:>8}{:>8}{:>8}{:>14}{:>14}\n", name, p.faults, p.found, p.named,
                       p.bad_inside, p.bad_across);
    bad += p.bad_inside + p.bad_across;
  }
  out += fmt::format(
      "\nBad rack-minutes: {} of {} ({:.4f} %), {:.1f} % of them with a case about the cause.\n",
      bad, 2 * r.rack_minutes, 100 * (1 - ratio(2 * r.rack_minutes - bad, 2 * r.rack_minutes)),
      100 * ratio(r.bad_known, bad));
  out += fmt::format(
      "Repeat offenders: {} of {} planted found, {} named in all (recall {:.2f}, precision "
      "{:.2f}); {} replaced.\n",
      r.lemons_found, r.lemons, r.offenders, ratio(r.lemons_found, r.lemons),
      ratio(r.lemons_found, r.offenders), r.replaced);
  out += fmt::format("Cost: {} visits, {} drains, {:.1f} cable-hours drained.\n", r.visits,
                     r.drains, r.drained_cable_hours);
  for (const auto& [guard, count] : r.refused)
    out += fmt::format("Drains refused by guard \"{}\": {}\n", guard, count);
  return out + "\n" + operate::repair::to_table(r.ledger);
}

}  // namespace weft::cli
