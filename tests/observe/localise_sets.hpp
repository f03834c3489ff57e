// The sets of faults that the localiser is judged by, and how it did.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weft::evaluation {

struct Outcome {
  std::string set;
  std::size_t seeds = 0;
  std::size_t right = 0, wrong = 0, missed = 0;         // faults of the fabric, by entity
  std::size_t marked = 0, mismarked = 0, unmarked = 0;  // congestion
  std::size_t false_hosts = 0;                          // blamed without a stall
  std::size_t hinted = 0;             // seeds without a verdict that asked for more probes
  std::vector<double> cpu_s;          // of each localisation
  std::vector<double> found_s;        // time until it was located, where that was measured
  std::vector<std::string> mistakes;  // "seed 7: +link a->b", "seed 7: -switch ctsw:3"
  double crossings = 0;               // probes over a link, mean

  double precision() const { return share(right, wrong); }
  double recall() const { return share(right, missed); }
  double f1() const;
  double congestion_precision() const { return share(marked, mismarked); }
  double congestion_recall() const { return share(marked, unmarked); }
  double cpu_median() const;
  double cpu_max() const;

 private:
  static double share(std::size_t good, std::size_t bad) {
    return good + bad == 0 ? 1 : static_cast<double>(good) / static_cast<double>(good + bad);
  }
};

// L1-L6 as in docs/localise.md; L5 takes one "seed" for a day of windows. A-E: fat tree with small
// flows; A5-E5: the same with about 5,000 crossings of each link. Others: card, rack, cable, nic,
// tuple, dark, class, quiet: faults of other kinds.
std::vector<std::string> set_names();
// `name` is one of them.
Outcome evaluate(std::string_view name, std::uint64_t first_seed, std::size_t seeds);

std::string table(const std::vector<Outcome>& outcomes);

}  // namespace weft::evaluation
