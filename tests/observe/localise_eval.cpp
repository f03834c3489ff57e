// Judges the localiser on faults that are known:
//   localise_eval SET[,SET...]|all FIRST_SEED SEEDS [--mistakes]   prints a table
//   localise_eval --check quick|full     a few seeds or 100 fresh ones; fails below the bars
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/test_pace.hpp"
#include "base/text.hpp"
#include "localise_sets.hpp"

namespace {

using weft::evaluation::Outcome;

// What a set must reach. The quick run has so many seeds that it can fall below: with 20 faults and
// a recall of 0.95 a second miss does, with 10 the first, and nothing is forgiven.
struct Bar {
  std::string_view set;
  double precision, recall;
  double cpu_s;  // median of a localisation
  std::size_t seeds;
  std::size_t full_seeds = 100;
  bool is_healthy = false;  // without faults, for false verdicts
};
constexpr std::uint64_t fresh_seed = 3001;  // constants were chosen on 1 to 350
constexpr std::size_t day_windows = 8640;
// Wanted of E5 is precision 1; one false link in 100 seeds is what it does (0.990). B and E have
// too little evidence on purpose: what is not found must be asked for.
constexpr Bar bars[] = {
    {"L1", 0.99, 0.98, 0.15, 10},
    {"L2", 0.97, 0.95, 0.15, 20},
    {"L3", 0.99, 0.99, 0.15, 6},
    {"L4", 0.99, 0.99, 0.15, 10},
    {"L5", 1, 1, 0.15, 30, day_windows, true},
    {"L6", 0.95, 0.95, 0.15, 10},
    {"B", 1, 0, 0.05, 20},
    {"A5", 0.97, 0.94, 0.05, 100},
    {"C5", 1, 1, 0.05, 20},
    {"D5", 1, 1, 0.05, 20},
    {"E5", 0.99, 1, 0.05, 5},
    {"E", 1, 0, 0.05, 5},
    {"card", 0.95, 0.95, 0.15, 20},
    {"rack", 0.95, 0.95, 0.15, 10},
    {"cable", 0.95, 0.95, 0.15, 10},
    {"nic", 0.95, 0.95, 0.15, 10},
    {"tuple", 0.95, 0.95, 0.15, 10},
    {"dark", 0.95, 0.95, 0.15, 10},
    {"class", 0.95, 0.95, 0.15, 10},
};

// Why the set is below its bar; "" when it is not. Seconds of CPU may be `pace` times as many.
std::string failure(const Bar& bar, const Outcome& o, double pace) {
  std::string out;
  const auto least = [&](std::string_view what, double reached, double wanted) {
    if (reached < wanted) out += fmt::format(" {} {:.4f} < {}", what, reached, wanted);
  };
  least("precision", o.precision(), bar.precision);
  least("recall", o.recall(), bar.recall);
  least("congestion precision", o.congestion_precision(), bar.precision);
  least("congestion recall", o.congestion_recall(), bar.recall);
  if (bar.recall == 0 && o.right + o.hinted < o.seeds)
    out += fmt::format(" of {} seeds {} found and {} ask for more", o.seeds, o.right, o.hinted);
  if (o.cpu_median() > bar.cpu_s * pace)
    out += fmt::format(" CPU {:.4f} s > {:.4f}", o.cpu_median(), bar.cpu_s * pace);
  if (!bar.is_healthy && o.right + o.missed + o.marked + o.unmarked == 0)
    out += " no fault in any seed";
  return out;
}

int check(bool full) {
  std::vector<Outcome> outcomes;
  std::string failed;
  const double pace = weft::machine_pace();
  for (const Bar& bar : bars) {
    const std::size_t seeds = full ? bar.full_seeds : bar.seeds;
    outcomes.push_back(weft::evaluation::evaluate(bar.set, fresh_seed, seeds));
    // Other work on the machine only ever adds CPU time: what is slow is slow three times.
    for (int again = 0; again < 2 && outcomes.back().cpu_median() > bar.cpu_s * pace; ++again) {
      auto timed = weft::evaluation::evaluate(bar.set, fresh_seed, seeds);
      if (timed.cpu_median() < outcomes.back().cpu_median()) outcomes.back() = std::move(timed);
    }
    if (const std::string why = failure(bar, outcomes.back(), pace); !why.empty())
      failed += fmt::format("{}:{}\n", bar.set, why);
  }
  fmt::print("{}", weft::evaluation::table(outcomes));
  if (!failed.empty()) fmt::print("below the bar:\n{}", failed);
  return failed.empty() ? 0 : 1;
}

int run(std::string list, std::uint64_t first, std::size_t seeds, bool mistakes) {
  const std::vector<std::string> names = weft::evaluation::set_names();
  if (list == "all") list = fmt::format("{}", fmt::join(names, ","));
  std::vector<Outcome> outcomes;
  for (const std::string_view set : weft::split(list, ',')) {
    if (std::find(names.begin(), names.end(), set) == names.end()) {
      fmt::print(stderr, "unknown set \"{}\"; there are {}\n", set, fmt::join(names, ", "));
      return 2;
    }
    outcomes.push_back(weft::evaluation::evaluate(set, first, seeds));
    if (!mistakes) continue;
    for (const std::string& line : outcomes.back().mistakes) fmt::print("{} {}\n", set, line);
  }
  fmt::print("{}", weft::evaluation::table(outcomes));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() == 2 && args[0] == "--check") return check(args[1] == "full");
  if (args.size() < 3) {
    fmt::print(stderr,
               "usage: localise_eval SET[,SET...]|all FIRST_SEED SEEDS [--mistakes]\n"
               "       localise_eval --check quick|full\n");
    return 2;
  }
  const auto first = weft::parse_count({args[1], {}}), seeds = weft::parse_count({args[2], {}});
  if (!first || !seeds || *first < 0 || *seeds < 1) {
    fmt::print(stderr, "FIRST_SEED and SEEDS are counts\n");
    return 2;
  }
  return run(args[0], static_cast<std::uint64_t>(*first), static_cast<std::size_t>(*seeds),
             args.size() > 3 && args[3] == "--mistakes");
}
