// Demands that explain what the counters of links say.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/backbone/paths.hpp"
#include "plan/backbone/wan.hpp"

namespace weft::plan::backbone {

struct Counter {
  std::uint32_t link = 0;
  double gbps = 0;
};
// CSV: src, dst, rate. Of parallel cables the sum is one counter each way, split evenly. Fails:
// sites or links that are not there, a link twice.
Result<std::vector<Counter>> read_counters(std::string_view text, const std::string& file,
                                           const Wan& wan);

struct FitOptions {
  double tolerance = 1e-4;  // of each counter, at which to stop
  std::uint32_t rounds_max = 20'000;
};
struct CounterFit {
  std::vector<Demand> demands;  // fitted, in the order given
  std::vector<double> loads;    // of each link, as the fitted demands make it
  // The largest distance of a load from its counter, over the counter (over the mean counter where
  // that is 0); before, and now; and the counter where it is now.
  double worst_before = 0, worst = 0;
  std::uint32_t worst_counter = 0;
  std::uint32_t rounds = 0;
};

// The demands nearest to those given, in relative entropy, whose loads are what the counters say;
// each demand goes on the first of its `paths`. Where no demands fit all counters, what comes
// nearest by the last rounds, and `worst` says how near. A demand of 0 stays 0.
// From: simultaneous multiplicative algebraic reconstruction (SMART; Byrne, IEEE Trans. Image
// Processing 1993) for the problem of Zhang et al., "An Information-Theoretic Approach to Traffic
// Matrix Estimation", SIGCOMM 2003. Cost: O(links of paths) a round. Deterministic.
CounterFit fit_demands(const Wan& wan, const std::vector<Demand>& demands, const PathSet& paths,
                       const std::vector<Counter>& counters, const FitOptions& options = {});

// The counters that are met worst, `rows` of them, and a summary.
std::string to_table(const Wan& wan, const std::vector<Counter>& counters, const CounterFit& fit,
                     std::size_t rows);
std::string to_json(const Wan& wan, const std::vector<Counter>& counters, const CounterFit& fit);

}  // namespace weft::plan::backbone
